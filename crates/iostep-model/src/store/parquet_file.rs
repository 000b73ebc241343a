//! One table as one Parquet file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::cell::Bad;
use super::checksums::{self, Checksums, Summing};
use super::quiet;
use crate::error::{Error, Result};
use crate::manifest::SCHEMA_VERSION;
use crate::publish;

const TABLE_KEY: &str = "iostep.table";
const VERSION_KEY: &str = "iostep.schema_version";
/// Small enough that a batch in both forms stays in the processor's cache.
const BATCH_ROWS: usize = 8192;
/// Bounds what a reader of one group, and the writer, hold at a time.
const GROUP_ROWS: usize = 128 << 10;

/// A row that is stored as columns.
pub(super) trait Row: Sized {
    /// The table's name; its file is `TABLE.parquet`.
    const TABLE: &'static str;
    /// The columns' names and types.
    fn schema() -> Schema;
    /// `rows` as arrays, in the order of the schema.
    fn encode(rows: &[Self]) -> Vec<ArrayRef>;
}

/// A row that is read back.
pub(super) trait Read: Row {
    /// Appends the batch's rows to `rows`. On failure, the column and what is wrong in it. The
    /// last columns may be missing, if they were added later.
    fn decode(
        batch: &RecordBatch,
        rows: &mut Vec<Self>,
    ) -> std::result::Result<(), (&'static str, Bad)>;
}

/// The first columns of a table: older files have fewer.
fn schema_of<R: Row>(columns: usize) -> Arc<Schema> {
    let fields = R::schema().fields;
    let first: Vec<_> = fields.iter().take(columns).cloned().collect();
    Arc::new(Schema::new(first))
}

fn file_name<R: Row>() -> String {
    format!("{}.parquet", R::TABLE)
}

fn path_of<R: Row>(dir: &Path) -> PathBuf {
    dir.join(file_name::<R>())
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

/// Writes `dir/TABLE.parquet` and adds it to `sums`.
///
/// Errors: `Io`.
pub(super) fn write<R: Row>(dir: &Path, rows: &[R], sums: &mut Checksums) -> Result<()> {
    let path = path_of::<R>(dir);
    publish::write_private_with(&path, |file| {
        let mut file = Summing::new(file);
        let schema = schema_of::<R>(usize::MAX);
        let mut writer = ArrowWriter::try_new(&mut file, schema.clone(), Some(properties::<R>()))
            .map_err(write_error(&path))?;
        for rows in rows.chunks(BATCH_ROWS) {
            let batch = RecordBatch::try_new(schema.clone(), R::encode(rows))
                .expect("the arrays are made by the schema's own types");
            writer.write(&batch).map_err(write_error(&path))?;
        }
        writer.close().map_err(write_error(&path))?;
        sums.insert(file_name::<R>(), file.checksum);
        Ok(())
    })
}

fn properties<R: Row>() -> WriterProperties {
    let metadata = vec![
        KeyValue::new(TABLE_KEY.into(), R::TABLE.to_owned()),
        KeyValue::new(VERSION_KEY.into(), SCHEMA_VERSION.to_string()),
    ];
    let plain = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(metadata))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(false);
    // Times and sectors hardly repeat; names do.
    let schema = R::schema();
    let names = schema
        .fields()
        .iter()
        .filter(|f| matches!(f.data_type(), DataType::Dictionary(..)));
    names
        .fold(plain, |properties, field| {
            let column = ColumnPath::from(field.name().as_str());
            properties.set_column_dictionary_enabled(column, true)
        })
        .build()
}

/// Reads `dir/TABLE.parquet`.
///
/// Errors: `Io`; `Unsupported` for a newer schema; `Corrupt` for anything else that this build
/// did not write.
pub(super) fn read<R: Read>(dir: &Path, sums: &Checksums) -> Result<Vec<R>> {
    let path = path_of::<R>(dir);
    sums.verify(&path)?;
    // The Parquet reader asserts parts of the format. Whoever forges a file and its checksum gets
    // an error, too.
    quiet::catch(|| read_rows(&path)).unwrap_or_else(|| {
        Err(Error::corrupt(
            &path,
            "content",
            "the Parquet reader gave up",
        ))
    })
}

fn read_rows<R: Read>(path: &Path) -> Result<Vec<R>> {
    let broken = |error: ParquetError| Error::corrupt(path, "footer", error);
    let file = checksums::open(path)?;
    let file_bytes = file.metadata().map_err(Error::io(path, "stat"))?.len();
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(broken)?;
    let footer = metadata.metadata().file_metadata();
    let columns = footer.schema_descr().num_columns();
    let options = ArrowReaderOptions::new().with_schema(schema_of::<R>(columns));
    let metadata =
        ArrowReaderMetadata::try_new(metadata.metadata().clone(), options).map_err(broken)?;
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    check_origin::<R>(path, builder.metadata().file_metadata())?;
    check_sizes(path, builder.metadata(), file_bytes)?;
    let batches = builder
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(broken)?;
    let mut rows = Vec::new();
    for batch in batches {
        let first_row = rows.len();
        let batch = batch
            .map_err(|error| Error::corrupt(path, format!("row {first_row} or later"), error))?;
        R::decode(&batch, &mut rows).map_err(|(column, (row, why))| {
            Error::corrupt(path, format!("row {}, {column}", first_row + row), why)
        })?;
    }
    Ok(rows)
}

/// Checks that the file says it is this table, of a schema that this build reads.
fn check_origin<R: Row>(path: &Path, metadata: &FileMetaData) -> Result<()> {
    let value_of = |key: &str| {
        let pairs = metadata.key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
    };
    if value_of(TABLE_KEY) != Some(R::TABLE) {
        let found = value_of(TABLE_KEY).unwrap_or("nothing").to_owned();
        let reason = format!("holds {found:?}, expected {:?}", R::TABLE);
        return Err(Error::corrupt(path, TABLE_KEY, reason));
    }
    let version = value_of(VERSION_KEY)
        .and_then(|text| text.parse::<u32>().ok())
        .ok_or_else(|| Error::corrupt(path, VERSION_KEY, "missing or no number"))?;
    if version > SCHEMA_VERSION {
        let version = version.into();
        return Err(Error::newer(
            path,
            "trace schema",
            version,
            SCHEMA_VERSION,
            None,
        ));
    }
    Ok(())
}

/// Checks what the footer promises before any memory is taken for it.
///
/// A row of any table has at least one column that does not repeat, so it takes more than a byte
/// of the file; Snappy cannot shrink anything to less than a 64th.
fn check_sizes(path: &Path, metadata: &ParquetMetaData, file_bytes: u64) -> Result<()> {
    let rows = metadata.file_metadata().num_rows();
    let groups = metadata.row_groups().iter();
    let in_groups = groups
        .clone()
        .try_fold(0i64, |sum, group| sum.checked_add(group.num_rows()));
    if in_groups != Some(rows) || groups.clone().any(|group| group.num_rows() < 0) {
        return Err(Error::corrupt(path, "footer", "row groups do not add up"));
    }
    if !u64::try_from(rows).is_ok_and(|rows| rows <= file_bytes && rows < u64::from(u32::MAX)) {
        let reason = format!("{rows} rows cannot be in {file_bytes} bytes");
        return Err(Error::corrupt(path, "footer", reason));
    }
    let too_large = |bytes: i64| u64::try_from(bytes).map_or(true, |b| b / 64 > file_bytes);
    for column in groups.flat_map(|group| group.columns()) {
        if too_large(column.uncompressed_size()) || too_large(column.compressed_size()) {
            let reason = "its size is larger than the file allows";
            return Err(Error::corrupt(path, column.column_path().string(), reason));
        }
    }
    Ok(())
}
