//! A file of a table, read a batch at a time. Whoever wrote it, it gives an error and no panic.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use iostep_model::error::{Error, Result};
use iostep_model::store::quiet;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::column::{Column, Kind};
use crate::format::{TABLE_KEY, VERSION, VERSION_KEY};
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

/// The Parquet reader asserts parts of the format.
fn caught<T>(path: &Path, body: impl FnOnce() -> Result<T>) -> Result<T> {
    quiet::catch(body).unwrap_or_else(|| {
        Err(Error::corrupt(
            path,
            "content",
            "the Parquet reader gave up",
        ))
    })
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
        let metadata = self.file.metadata().file_metadata();
        let value_of = |key: &str| {
            let pairs = metadata.key_value_metadata()?;
            pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
        };
        let corrupt = |place: &str, reason: String| Err(Error::corrupt(&self.path, place, reason));
        if value_of(TABLE_KEY) != Some(table.name()) {
            let found = value_of(TABLE_KEY).unwrap_or("nothing");
            return corrupt(
                TABLE_KEY,
                format!("holds {found:?}, expected {:?}", table.name()),
            );
        }
        match value_of(VERSION_KEY).and_then(|version| version.parse::<u32>().ok()) {
            Some(version) if version > VERSION => {
                let found = version.into();
                return Err(Error::newer(
                    &self.path,
                    "a lake of version",
                    found,
                    VERSION,
                    None,
                ));
            }
            Some(_) => {}
            None => return corrupt(VERSION_KEY, "missing or no number".into()),
        }
        let schema = metadata.schema_descr();
        if schema.num_columns() != self.columns.len() {
            let (found, expected) = (schema.num_columns(), self.columns.len());
            return corrupt("footer", format!("{found} columns, expected {expected}"));
        }
        for (column, found) in self.columns.iter().zip(schema.columns()) {
            if let Err(reason) = column.check(found) {
                return corrupt(column.name, reason);
            }
        }
        let groups = self.file.metadata().row_groups().iter();
        let rows = groups
            .map(|group| group.num_rows())
            .try_fold(0_i64, |sum, rows| {
                (rows >= 0).then_some(sum.checked_add(rows)?)
            });
        match rows == Some(metadata.num_rows()) {
            true => Ok(()),
            false => corrupt("footer", "row groups do not add up".into()),
        }
    }

    /// Rows of the file.
    pub(crate) fn rows(&self) -> u64 {
        self.file.metadata().file_metadata().num_rows() as u64
    }

    pub(crate) fn groups(&self) -> usize {
        self.file.num_row_groups()
    }

    /// Opens a group's columns, or the one column that is asked for.
    pub(crate) fn group(&self, index: usize, only: Option<&str>) -> Result<GroupReader> {
        caught(&self.path, || {
            let group = self
                .file
                .get_row_group(index)
                .map_err(broken(&self.path, "footer"))?;
            let chosen = self.columns.iter().zip(0..);
            let chosen = chosen.filter(|(column, _)| only.is_none_or(|name| column.name == name));
            let (mut columns, mut readers) = (Vec::new(), Vec::new());
            for (column, index) in chosen {
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
        let mut group = reader.group(index, Some(table.id()))?;
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
