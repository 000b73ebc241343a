//! A file of a table, read a batch at a time. Whoever wrote it, it gives an error and no panic.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use iostep_model::columnar::caught;
use iostep_model::error::{Error, Result};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::column::{Column, Kind, stored};
use crate::format::label;
use crate::place;
use crate::table::Table;

/// Values of one column.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    Text(Vec<ByteArray>),
    Int(Vec<i64>),
    OptionalInt(Vec<Option<i64>>),
}

impl Values {
    pub(crate) fn empty(kind: Kind) -> Values {
        match kind {
            Kind::Text => Values::Text(Vec::new()),
            Kind::Int => Values::Int(Vec::new()),
            Kind::OptionalInt => Values::OptionalInt(Vec::new()),
        }
    }
}

/// A file of a table.
pub(crate) struct TableReader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    columns: Vec<Column>,
}

/// The columns of a group, being read.
pub(crate) struct GroupReader {
    path: PathBuf,
    columns: Vec<Column>,
    readers: Vec<ColumnReader>,
    left: usize,
}

fn broken(path: &Path, place: &str) -> impl Fn(ParquetError) -> Error {
    move |error| Error::corrupt(path, place, error)
}

impl TableReader {
    /// Errors: `Io`; `Unsupported` for a file of a newer lake; `Corrupt` for anything that is no file
    /// of the table.
    pub(crate) fn open(path: &Path, table: Table) -> Result<TableReader> {
        caught(path, || {
            let file = place::open(path)?;
            let file = SerializedFileReader::new(file).map_err(broken(path, "footer"))?;
            let columns = table.columns();
            let reader = TableReader {
                path: path.to_owned(),
                file,
                columns,
            };
            reader.check(table)?;
            Ok(reader)
        })
    }

    fn check(&self, table: Table) -> Result<()> {
        let (metadata, columns) = (self.file.metadata(), &self.columns);
        label(table).check(&self.path, metadata, &stored(columns))?;
        let found = metadata.file_metadata().schema_descr();
        if found.num_columns() < columns.len() {
            let reason = format!(
                "{} columns, expected {}",
                found.num_columns(),
                columns.len()
            );
            return Err(Error::corrupt(&self.path, "footer", reason));
        }
        for (column, found) in columns.iter().zip(found.columns()) {
            if (found.max_def_level() > 0) != (column.kind == Kind::OptionalInt) {
                let reason = "that values may be missing is not as the table says";
                return Err(Error::corrupt(&self.path, column.name, reason));
            }
        }
        Ok(())
    }

    /// Rows of the file.
    pub(crate) fn rows(&self) -> u64 {
        self.file.metadata().file_metadata().num_rows() as u64
    }

    pub(crate) fn groups(&self) -> usize {
        self.file.num_row_groups()
    }

    /// Opens a group's columns, or those that are asked for, in that order.
    pub(crate) fn group(&self, index: usize, only: Option<&[&str]>) -> Result<GroupReader> {
        caught(&self.path, || {
            let group = self
                .file
                .get_row_group(index)
                .map_err(broken(&self.path, "footer"))?;
            let named = |name: &&str| self.columns.iter().position(|column| column.name == *name);
            let chosen: Vec<usize> = match only {
                Some(names) => names.iter().filter_map(named).collect(),
                None => (0..self.columns.len()).collect(),
            };
            let (mut columns, mut readers) = (Vec::new(), Vec::new());
            for index in chosen {
                let column = &self.columns[index];
                let reader = group.get_column_reader(index);
                readers.push(reader.map_err(broken(&self.path, column.name))?);
                columns.push(*column);
            }
            Ok(GroupReader {
                path: self.path.clone(),
                columns,
                readers,
                left: usize::try_from(group.metadata().num_rows()).unwrap_or(0),
            })
        })
    }
}

impl GroupReader {
    /// Rows that are left.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Leaves out the next rows, at most all that are left.
    ///
    /// Errors: `Corrupt`, with the column.
    pub(crate) fn skip(&mut self, rows: usize) -> Result<()> {
        let rows = rows.min(self.left);
        self.left -= rows;
        let path = self.path.clone();
        caught(&path, || {
            for (column, reader) in self.columns.iter().zip(&mut self.readers) {
                let skipped = match reader {
                    ColumnReader::ByteArrayColumnReader(reader) => reader.skip_records(rows),
                    ColumnReader::Int64ColumnReader(reader) => reader.skip_records(rows),
                    _ => Ok(0),
                };
                if skipped.map_err(broken(&path, column.name))? != rows {
                    let reason = "the column ends before its group";
                    return Err(Error::corrupt(&path, column.name, reason));
                }
            }
            Ok(())
        })
    }

    /// The next rows, at most `most`; nothing after the last.
    ///
    /// Errors: `Corrupt`, with the column.
    pub(crate) fn next(&mut self, most: usize) -> Result<Option<Vec<Values>>> {
        let rows = self.left.min(most);
        if rows == 0 {
            return Ok(None);
        }
        self.left -= rows;
        let path = self.path.clone();
        caught(&path, || {
            let columns = self.columns.iter().zip(&mut self.readers);
            let values = columns.map(|(column, reader)| {
                values(*column, reader, rows)
                    .map_err(|reason| Error::corrupt(&path, column.name, reason))
            });
            values.collect::<Result<Vec<_>>>().map(Some)
        })
    }
}

/// The next values of a column, which was checked to be of its type.
fn values(
    column: Column,
    reader: &mut ColumnReader,
    rows: usize,
) -> std::result::Result<Values, String> {
    match (column.kind, reader) {
        (Kind::Text, ColumnReader::ByteArrayColumnReader(reader)) => {
            let (texts, _) = records::<ByteArrayType>(reader, rows)?;
            match texts
                .iter()
                .all(|text| std::str::from_utf8(text.data()).is_ok())
            {
                true => Ok(Values::Text(texts)),
                false => Err("text that is not UTF-8".into()),
            }
        }
        (Kind::Int, ColumnReader::Int64ColumnReader(reader)) => {
            Ok(Values::Int(records::<Int64Type>(reader, rows)?.0))
        }
        (Kind::OptionalInt, ColumnReader::Int64ColumnReader(reader)) => {
            let (values, levels) = records::<Int64Type>(reader, rows)?;
            let mut values = values.into_iter();
            let values = levels.into_iter().map(|level| match level {
                0 => None,
                _ => values.next(),
            });
            Ok(Values::OptionalInt(values.collect()))
        }
        _ => Err("another type than its footer says".into()),
    }
}

fn records<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
) -> std::result::Result<(Vec<T::T>, Vec<i16>), String> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let read = reader.read_records(rows, Some(&mut levels), None, &mut values);
    let (records, ..) = read.map_err(|error| error.to_string())?;
    match records == rows {
        true => Ok((values, levels)),
        false => Err("the column ends before its group".into()),
    }
}

/// Rows of a file.
///
/// Errors: as [`TableReader::open`].
pub(crate) fn rows(path: &Path, table: Table) -> Result<u64> {
    Ok(TableReader::open(path, table)?.rows())
}

/// What the rows of a file came from: each id once.
///
/// Errors: as [`TableReader::open`].
pub(crate) fn ids(path: &Path, table: Table) -> Result<HashSet<String>> {
    const BATCH_ROWS: usize = 64 << 10;
    let reader = TableReader::open(path, table)?;
    let mut ids = HashSet::new();
    for index in 0..reader.groups() {
        let mut group = reader.group(index, Some(&[table.id()]))?;
        while let Some(values) = group.next(BATCH_ROWS)? {
            for values in values {
                let Values::Text(texts) = values else {
                    continue;
                };
                ids.extend(
                    texts
                        .iter()
                        .filter_map(|text| Some(text.as_utf8().ok()?.to_owned())),
                );
            }
        }
    }
    Ok(ids)
}
