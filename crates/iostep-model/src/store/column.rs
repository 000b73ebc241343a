//! One column of a group of rows, written and read a batch at a time.

use std::io::Write;

use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::SerializedRowGroupWriter;

use super::cell::{Cell, Known, Scalar, Stored};
use crate::columnar::{Column, Written, write_column};

/// A value that could not be read: its column, its row in the group, and why.
pub(super) type Bad = (&'static str, usize, String);

/// A column of a table, of its field's type.
pub(super) fn column<C: Cell>(name: &str) -> Column {
    let (logical, repeats) = (C::Scalar::logical(), C::Scalar::REPEATS);
    Column::new::<<C::Scalar as Scalar>::Physical>(name, logical, C::NULLABLE, repeats)
}

/// Writes the group's next column.
pub(super) fn write<C: Cell, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl Iterator<Item = C>,
) -> Written {
    let stored = values.map(|value| value.into_option().map(Scalar::store));
    write_column::<<C::Scalar as Scalar>::Physical, W>(group, C::NULLABLE, stored)
}

/// A group's columns, in their order.
pub(super) struct GroupReader<'a> {
    pub group: &'a dyn RowGroupReader,
    /// Of the next column.
    index: usize,
}

impl GroupReader<'_> {
    pub(super) fn new(group: &dyn RowGroupReader) -> GroupReader<'_> {
        GroupReader { group, index: 0 }
    }

    /// Rows of the group; they are known not to be more than the file allows.
    pub(super) fn rows(&self) -> usize {
        usize::try_from(self.group.metadata().num_rows()).unwrap_or(0)
    }

    /// The next column, which was checked to be of this type, or none if the file is older.
    pub(super) fn next<C: Cell>(&mut self, name: &'static str) -> Result<ColumnReader<C>, Bad> {
        let index = self.index;
        self.index += 1;
        let reader = match index < self.group.num_columns() {
            true => {
                let reader = self.group.get_column_reader(index);
                let reader = reader.map_err(|error| (name, 0, error.to_string()))?;
                Some(get_typed_column_reader(reader))
            }
            false => None,
        };
        let nullable = match &reader {
            Some(_) => {
                self.group
                    .metadata()
                    .column(index)
                    .column_descr()
                    .max_def_level()
                    > 0
            }
            None => false,
        };
        Ok(ColumnReader {
            name,
            reader,
            nullable,
            stored: Vec::new(),
            known: Vec::new(),
            levels: Vec::new(),
            first_row: 0,
        })
    }
}

/// A column that is being read.
pub(super) struct ColumnReader<C: Cell> {
    name: &'static str,
    reader: Option<ColumnReaderImpl<<C::Scalar as Scalar>::Physical>>,
    /// In the file.
    nullable: bool,
    stored: Vec<Stored<C::Scalar>>,
    known: Known<C::Scalar>,
    levels: Vec<i16>,
    /// Of the next batch, in the group.
    first_row: usize,
}

impl<C: Cell> ColumnReader<C> {
    /// The next `rows` values.
    pub(super) fn values(&mut self, rows: usize) -> Result<Vec<C>, Bad> {
        let (name, first_row) = (self.name, self.first_row);
        self.first_row += rows;
        let Some(reader) = &mut self.reader else {
            let values = (0..rows).map(|_| C::absent());
            let values: Result<Vec<C>, String> = values.collect();
            return values.map_err(|why| (name, first_row, why));
        };
        self.stored.clear();
        self.levels.clear();
        let read = reader.read_records(rows, Some(&mut self.levels), None, &mut self.stored);
        let (records, ..) = read.map_err(|error| (name, first_row, error.to_string()))?;
        if records != rows {
            return Err((name, first_row + records, "the column ends".into()));
        }
        let mut stored = self.stored.iter();
        let known = &mut self.known;
        let mut values = Vec::with_capacity(rows);
        for row in 0..rows {
            let there = !self.nullable || self.levels[row] > 0;
            let stored = there.then(|| stored.next()).flatten();
            let value = stored.map(|stored| C::Scalar::load_known(stored, known));
            let value = value.transpose().and_then(C::from_option);
            values.push(value.map_err(|why| (name, first_row + row, why))?);
        }
        Ok(values)
    }
}
