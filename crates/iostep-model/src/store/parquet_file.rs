//! One table as one Parquet file.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedRowGroupWriter;

use super::checksums::{Checksums, Summing};
use super::column::{Bad, GroupReader};
use crate::columnar::{BATCH_ROWS, Column, GROUP_ROWS, Label, Written, caught, write_error};
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
    /// A group's columns, being read.
    type Columns;
    /// Opens the group's columns. The last ones may be missing, if they were added later.
    fn open(group: &mut GroupReader<'_>) -> std::result::Result<Self::Columns, Bad>;
    /// Appends the next `count` rows, which the group has, to `rows`.
    fn read(
        columns: &mut Self::Columns,
        count: usize,
        rows: &mut Vec<Self>,
    ) -> std::result::Result<(), Bad>;
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

/// The rows of a table, read some at a time.
pub(super) struct Rows<R: Read> {
    path: PathBuf,
    file: SerializedFileReader<File>,
    next_group: usize,
    /// The columns of the group that is being read, and its rows that are left.
    group: Option<(R::Columns, usize)>,
    /// Row of that group's first.
    first_row: usize,
    /// Rows that were read.
    row: usize,
}

impl<R: Read> Rows<R> {
    /// Opens `dir/TABLE.parquet`, which has to be as it was written.
    ///
    /// Errors: `Io`; `Unsupported` for a newer schema; `Corrupt` for anything else that this build
    /// did not write.
    pub(super) fn open(dir: &Path, sums: &Checksums) -> Result<Rows<R>> {
        let path = path_of::<R>(dir);
        let file = sums.open(&path)?;
        caught(&path, || {
            let broken = |error: ParquetError| Error::corrupt(&path, "footer", error);
            let file_bytes = file.metadata().map_err(Error::io(&path, "stat"))?.len();
            let file = SerializedFileReader::new(file).map_err(broken)?;
            let metadata = file.metadata();
            label::<R>().check(&path, metadata, &R::columns())?;
            check_sizes(&path, metadata, file_bytes)?;
            Ok(Rows {
                path: path.clone(),
                file,
                next_group: 0,
                group: None,
                first_row: 0,
                row: 0,
            })
        })
    }

    /// Rows of the table, as its footer says.
    pub(super) fn count(&self) -> usize {
        let rows = self.file.metadata().file_metadata().num_rows();
        usize::try_from(rows).unwrap_or(0)
    }

    /// Appends the next rows, at most `most`, to `rows`; fewer only where the table ends.
    ///
    /// Errors: `Io`; `Corrupt` for a damaged table, with row and column.
    pub(super) fn read(&mut self, most: usize, rows: &mut Vec<R>) -> Result<()> {
        let path = self.path.clone();
        caught(&path, || {
            let mut left = most;
            while left > 0 {
                // A forged row may ask for more than there is memory for.
                let done = self.read_batch(left.min(BATCH_ROWS), rows)?;
                if done == 0 {
                    break;
                }
                left -= done;
            }
            Ok(())
        })
    }

    /// Appends rows of one group; their number, 0 only at the end.
    fn read_batch(&mut self, most: usize, rows: &mut Vec<R>) -> Result<usize> {
        let path = &self.path;
        let bad = |first_row: usize| {
            move |(column, row, why): Bad| {
                Error::corrupt(path, format!("row {}, {column}", first_row + row), why)
            }
        };
        while self.group.as_ref().is_none_or(|(_, left)| *left == 0) {
            if self.next_group == self.file.num_row_groups() {
                return Ok(0);
            }
            let group = self.file.get_row_group(self.next_group);
            let group = group.map_err(|error| Error::corrupt(path, "footer", error))?;
            let mut group = GroupReader::new(group.as_ref());
            let columns = R::open(&mut group).map_err(bad(self.row))?;
            self.group = Some((columns, group.rows()));
            self.first_row = self.row;
            self.next_group += 1;
        }
        let Some((columns, left)) = &mut self.group else {
            return Ok(0);
        };
        let count = most.min(*left);
        R::read(columns, count, rows).map_err(bad(self.first_row))?;
        *left -= count;
        self.row += count;
        Ok(count)
    }
}

/// Reads all of `dir/TABLE.parquet`.
///
/// Errors: as [`Rows::open`] and [`Rows::read`].
pub(super) fn read<R: Read>(dir: &Path, sums: &Checksums) -> Result<Vec<R>> {
    let mut table = Rows::open(dir, sums)?;
    let mut rows = Vec::new();
    table.read(usize::MAX, &mut rows)?;
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
