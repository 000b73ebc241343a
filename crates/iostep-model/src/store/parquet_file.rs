//! One table as one Parquet file.

use std::io::Write;
use std::path::{Path, PathBuf};

use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedRowGroupWriter;

use super::checksums::{self, Checksums, Summing};
use super::column::{Bad, GroupReader};
use crate::columnar::{Column, GROUP_ROWS, Label, Written, caught, write_error};
use crate::error::{Error, Result};
use crate::manifest::SCHEMA_VERSION;
use crate::publish;

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

fn label<R: Row>() -> Label {
    Label {
        table: R::TABLE,
        version_key: "iostep.schema_version",
        version: SCHEMA_VERSION,
        versioned: "trace schema",
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
    let mut writer = label::<R>().writer(file, &R::columns(), Compression::SNAPPY)?;
    for rows in rows.chunks(GROUP_ROWS) {
        let mut group = writer.next_row_group()?;
        R::write(rows, &mut group)?;
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

/// Reads `dir/TABLE.parquet`.
///
/// Errors: `Io`; `Unsupported` for a newer schema; `Corrupt` for anything else that this build
/// did not write.
pub(super) fn read<R: Read>(dir: &Path, sums: &Checksums) -> Result<Vec<R>> {
    let path = path_of::<R>(dir);
    sums.verify(&path)?;
    caught(&path, || read_rows(&path))
}

fn read_rows<R: Read>(path: &Path) -> Result<Vec<R>> {
    let broken = |error: ParquetError| Error::corrupt(path, "footer", error);
    let file = checksums::open(path)?;
    let file_bytes = file.metadata().map_err(Error::io(path, "stat"))?.len();
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let metadata = reader.metadata();
    label::<R>().check(path, metadata, &R::columns())?;
    check_sizes(path, metadata, file_bytes)?;
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

/// Checks what the footer promises before any memory is taken for it.
///
/// A row of any table has at least one column that does not repeat, so it takes more than a byte
/// of the file; Snappy cannot shrink anything to less than a 64th.
fn check_sizes(path: &Path, metadata: &ParquetMetaData, file_bytes: u64) -> Result<()> {
    let rows = metadata.file_metadata().num_rows();
    if !u64::try_from(rows).is_ok_and(|rows| rows <= file_bytes && rows < u64::from(u32::MAX)) {
        let reason = format!("{rows} rows cannot be in {file_bytes} bytes");
        return Err(Error::corrupt(path, "footer", reason));
    }
    let too_large = |bytes: i64| u64::try_from(bytes).map_or(true, |b| b / 64 > file_bytes);
    for column in metadata
        .row_groups()
        .iter()
        .flat_map(|group| group.columns())
    {
        if too_large(column.uncompressed_size()) || too_large(column.compressed_size()) {
            let reason = "its size is larger than the file allows";
            return Err(Error::corrupt(path, column.column_path().string(), reason));
        }
    }
    Ok(())
}
