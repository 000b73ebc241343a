//! A file of a table, a group of rows at a time.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iostep_model::error::{Error, Result};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::cells::{Group, Out, Written};
use crate::column::{Column, Kind};
use crate::format::{TABLE_KEY, VERSION, VERSION_KEY};
use crate::table::Table;

/// Bounds what a writer holds, and is enough for an engine to read in one go.
pub(crate) const GROUP_ROWS: usize = 128 << 10;
/// A file that is being written; synced by [`TableFile::finish`].
pub(crate) struct TableFile {
    path: PathBuf,
    writer: SerializedFileWriter<Out>,
    rows: u64,
}

impl TableFile {
    /// Errors: `Io`.
    pub(crate) fn create(path: &Path, table: Table) -> Result<TableFile> {
        let file = File::options().write(true).create_new(true).open(path);
        let file = file.map_err(Error::io(path, "create"))?;
        let columns = table.columns();
        let fields = columns.iter().map(|column| column.schema()).collect();
        let schema = Type::group_type_builder(table.name())
            .with_fields(fields)
            .build();
        let properties = Arc::new(properties(table, &columns));
        let writer = schema.and_then(|schema| {
            SerializedFileWriter::new(
                BufWriter::with_capacity(1 << 20, file),
                Arc::new(schema),
                properties,
            )
        });
        Ok(TableFile {
            path: path.to_owned(),
            writer: writer.map_err(write_error(path))?,
            rows: 0,
        })
    }

    /// Writes `rows` rows as a group.
    ///
    /// Errors: `Io`.
    pub(crate) fn group(
        &mut self,
        rows: usize,
        fill: impl FnOnce(&mut Group<'_>) -> Written,
    ) -> Result<()> {
        let mut group = self
            .writer
            .next_row_group()
            .map_err(write_error(&self.path))?;
        fill(&mut group).map_err(write_error(&self.path))?;
        group.close().map_err(write_error(&self.path))?;
        self.rows += rows as u64;
        Ok(())
    }

    /// Bytes of the groups so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// Rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Ends the file and syncs it; its length in bytes.
    ///
    /// Errors: `Io`.
    pub(crate) fn finish(self) -> Result<u64> {
        let out = self.writer.into_inner().map_err(write_error(&self.path))?;
        let file = out.into_inner().map_err(|error| error.into_error());
        let file = file.map_err(Error::io(&self.path, "write"))?;
        file.sync_all().map_err(Error::io(&self.path, "sync"))?;
        let metadata = file.metadata().map_err(Error::io(&self.path, "stat"))?;
        Ok(metadata.len())
    }
}

fn properties(table: Table, columns: &[Column]) -> WriterProperties {
    let metadata = vec![
        KeyValue::new(TABLE_KEY.into(), table.name().to_owned()),
        KeyValue::new(VERSION_KEY.into(), VERSION.to_string()),
    ];
    let level = ZstdLevel::try_new(1).expect("zstd has level 1");
    let plain = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_key_value_metadata(Some(metadata))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(false);
    // Times and sectors hardly repeat; names do.
    let names = columns.iter().filter(|column| column.kind == Kind::Text);
    names
        .fold(plain, |properties, column| {
            properties.set_column_dictionary_enabled(ColumnPath::from(column.name), true)
        })
        .build()
}

fn write_error(path: &Path) -> impl Fn(ParquetError) -> Error {
    move |error| match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => Error::io(path, "write")(*source),
            Err(source) => Error::io(path, "write")(std::io::Error::other(source)),
        },
        error => Error::io(path, "write")(std::io::Error::other(error)),
    }
}
