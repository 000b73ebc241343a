//! One table as one Parquet file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type};

use super::checksums::{self, Checksums, Summing};
use super::column::{Bad, Column, GroupReader, Written};
use super::quiet;
use crate::error::{Error, Result};
use crate::manifest::SCHEMA_VERSION;
use crate::publish;

const TABLE_KEY: &str = "iostep.table";
const VERSION_KEY: &str = "iostep.schema_version";
/// Bounds what a reader of one group, and the writer, hold at a time.
const GROUP_ROWS: usize = 128 << 10;

/// A row that is stored as columns.
pub(super) trait Row: Sized {
    /// The table's name; its file is `TABLE.parquet`.
    const TABLE: &'static str;
    /// In the order of the file.
    fn columns() -> Vec<Column>;
    /// Writes the group's columns.
    fn write<W: Write + Send>(
        rows: &[Self],
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Written;
}

/// A row that is read back.
pub(super) trait Read: Row {
    /// Appends the group's rows to `rows`. The last columns may be missing, if they were added
    /// later.
    fn read(group: &mut GroupReader<'_>, rows: &mut Vec<Self>) -> std::result::Result<(), Bad>;
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
        write_groups(&mut file, rows).map_err(write_error(&path))?;
        sums.insert(file_name::<R>(), file.checksum);
        Ok(())
    })
}

fn write_groups<R: Row>(file: impl Write + Send, rows: &[R]) -> Written {
    let columns = R::columns();
    let fields = columns.iter().map(|column| column.schema.clone());
    let schema = Type::group_type_builder(R::TABLE)
        .with_fields(fields.collect())
        .build()?;
    let properties = Arc::new(properties::<R>(&columns));
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties)?;
    for rows in rows.chunks(GROUP_ROWS) {
        let mut group = writer.next_row_group()?;
        R::write(rows, &mut group)?;
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn properties<R: Row>(columns: &[Column]) -> WriterProperties {
    let metadata = vec![
        KeyValue::new(TABLE_KEY.into(), R::TABLE.to_owned()),
        KeyValue::new(VERSION_KEY.into(), SCHEMA_VERSION.to_string()),
    ];
    let plain = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(metadata))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(false);
    // Times and sectors hardly repeat; names do.
    let names = columns.iter().filter(|column| column.repeats);
    names
        .fold(plain, |properties, column| {
            let path = ColumnPath::from(column.schema.name());
            properties.set_column_dictionary_enabled(path, true)
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
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let metadata = reader.metadata();
    check_origin::<R>(path, metadata.file_metadata())?;
    check_sizes(path, metadata, file_bytes)?;
    check_columns::<R>(path, metadata.file_metadata().schema_descr())?;
    let mut rows = Vec::new();
    for index in 0..reader.num_row_groups() {
        let first_row = rows.len();
        let group = reader.get_row_group(index).map_err(broken)?;
        let mut group = GroupReader::new(group.as_ref());
        R::read(&mut group, &mut rows).map_err(|(column, row, why)| {
            Error::corrupt(path, format!("row {}, {column}", first_row + row), why)
        })?;
    }
    Ok(rows)
}

/// Checks that the file's columns are the table's, or the first of them: older files have fewer.
fn check_columns<R: Row>(path: &Path, found: &SchemaDescriptor) -> Result<()> {
    let columns = R::columns();
    if found.num_columns() > columns.len() {
        let reason = format!(
            "{} columns, expected {}",
            found.num_columns(),
            columns.len()
        );
        return Err(Error::corrupt(path, "footer", reason));
    }
    for (column, found) in columns.iter().zip(found.columns()) {
        let name = column.schema.name();
        column
            .check(found)
            .map_err(|why| Error::corrupt(path, name, why))?;
    }
    Ok(())
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
