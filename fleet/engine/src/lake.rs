//! A lake as tables of DataFusion.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::request::{Column, Kind, Request};

/// The column that the name of a directory is (`date=YYYY-MM-DD`).
const PARTITION: &str = "date";

/// A context whose tables are the lake's, those too that have no rows.
///
/// Errors: the request's directories are none.
pub fn open(request: &Request) -> anyhow::Result<SessionContext> {
    let disk = DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![request.spill.clone()]));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(request.memory_bytes)))
        .with_disk_manager_builder(disk)
        .build_arc()
        .context("cannot make place for the query")?;
    let config = SessionConfig::new()
        .with_target_partitions(request.threads.max(1))
        .with_information_schema(true)
        // A lake is said to be in order within its files, but not across them.
        .with_collect_statistics(true);
    let context = SessionContext::new_with_config_rt(config, runtime);
    for (name, columns) in &request.tables {
        let table = table(&request.lake.join(name), columns)?;
        context.register_table(name.as_str(), Arc::new(table))?;
    }
    Ok(context)
}

fn table(directory: &Path, columns: &[Column]) -> anyhow::Result<ListingTable> {
    let url = directory.to_str().context("the lake's path is not UTF-8")?;
    let url = ListingTableUrl::parse(format!("{url}/"))?;
    let options = ListingOptions::new(Arc::new(ParquetFormat::default()))
        .with_file_extension(".parquet")
        .with_table_partition_cols(vec![(PARTITION.to_owned(), DataType::Utf8)]);
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let config = ListingTableConfig::new(url)
        .with_listing_options(options)
        .with_schema(Arc::new(Schema::new(fields)));
    Ok(ListingTable::try_new(config)?)
}

fn field(column: &Column) -> Field {
    let (kind, is_optional) = match column.kind {
        Kind::Text => (DataType::Utf8View, false),
        Kind::Int => (DataType::Int64, false),
        Kind::OptionalInt => (DataType::Int64, true),
    };
    Field::new(&column.name, kind, is_optional)
}
