//! One column of a group of rows, written and read a batch at a time.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::Repetition;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{ColumnDescriptor, Type, TypePtr};

use super::cell::{Cell, Known, Scalar, Stored};

/// Small enough that a batch in both forms stays in the processor's cache.
pub(super) const BATCH_ROWS: usize = 8192;

/// A value that could not be read: its column, its row in the group, and why.
pub(super) type Bad = (&'static str, usize, String);

/// What writing answers.
pub(super) type Written = Result<(), ParquetError>;

/// What a table says of a column.
pub(super) struct Column {
    pub schema: TypePtr,
    /// Whether its values repeat: [`Scalar::REPEATS`].
    pub repeats: bool,
}

impl Column {
    pub(super) fn new<C: Cell>(name: &str) -> Column {
        let repetition = match C::NULLABLE {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        let schema = Type::primitive_type_builder(name, physical::<C>())
            .with_logical_type(C::Scalar::logical())
            .with_repetition(repetition)
            .build()
            .expect("the logical types are those of their physical ones");
        Column {
            schema: Arc::new(schema),
            repeats: C::Scalar::REPEATS,
        }
    }

    /// Checks that a file's column is this one. On failure, what it is.
    pub(super) fn check(&self, found: &ColumnDescriptor) -> Result<(), String> {
        let expected = &self.schema;
        if found.name() != expected.name() {
            return Err(format!("the column is {:?}", found.name()));
        }
        if found.max_rep_level() > 0 || found.max_def_level() > 1 || found.path().parts().len() > 1
        {
            return Err("a column of columns".into());
        }
        let logical = found.logical_type_ref();
        if found.physical_type() != expected.get_physical_type()
            || logical != expected.get_basic_info().logical_type_ref()
        {
            let physical = found.physical_type();
            let logical = logical.map_or("no logical type".into(), |known| format!("{known:?}"));
            return Err(format!("unexpected type {physical}, {logical}"));
        }
        Ok(())
    }
}

fn physical<C: Cell>() -> parquet::basic::Type {
    <C::Scalar as Scalar>::Physical::get_physical_type()
}

/// Writes the group's next column.
pub(super) fn write<C: Cell, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    mut values: impl Iterator<Item = C>,
) -> Written {
    let missing = || ParquetError::General("the group has fewer columns than its table".into());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let writer = column.typed::<<C::Scalar as Scalar>::Physical>();
    let (mut stored, mut levels) = (Vec::new(), Vec::new());
    loop {
        stored.clear();
        levels.clear();
        for value in values.by_ref().take(BATCH_ROWS) {
            let value = value.into_option();
            levels.push(i16::from(value.is_some()));
            stored.extend(value.map(Scalar::store));
        }
        if levels.is_empty() {
            break;
        }
        writer.write_batch(&stored, C::NULLABLE.then_some(levels.as_slice()), None)?;
    }
    column.close()
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
