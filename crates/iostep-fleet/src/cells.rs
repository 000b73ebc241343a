//! The columns of a group of rows, written one after the other.

use std::fs::File;
use std::io::BufWriter;

use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;

use crate::column::{Cell, Kind};

/// Small enough to stay in the processor's cache.
const BATCH_ROWS: usize = 8192;

/// Where a file is written to.
pub(crate) type Out = BufWriter<File>;

/// What writing a group answers.
pub(crate) type Written = std::result::Result<(), ParquetError>;

/// A group that is being written.
pub(crate) type Group<'a> = SerializedRowGroupWriter<'a, Out>;

/// Writes the group's next column of values.
pub(crate) fn write_cells<C: Cell>(
    group: &mut Group<'_>,
    mut values: impl Iterator<Item = C>,
) -> Written {
    let (mut stored, mut levels) = (Vec::new(), Vec::new());
    next_column::<C::Physical>(group, |write| {
        loop {
            stored.clear();
            levels.clear();
            for value in values.by_ref().take(BATCH_ROWS) {
                let value = value.store();
                levels.push(i16::from(value.is_some()));
                stored.extend(value);
            }
            if levels.is_empty() {
                return Ok(());
            }
            let optional = C::KIND == Kind::OptionalInt;
            write(&stored, optional.then_some(levels.as_slice()))?;
        }
    })
}

/// Opens the group's next column, and gives what writes values to it, with their levels where they
/// may be null.
pub(crate) fn next_column<T: DataType>(
    group: &mut Group<'_>,
    fill: impl FnOnce(&mut dyn FnMut(&[T::T], Option<&[i16]>) -> Written) -> Written,
) -> Written {
    let missing = || ParquetError::General("the group has fewer columns than its table".into());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let writer = column.typed::<T>();
    fill(&mut |values, levels| writer.write_batch(values, levels, None).map(drop))?;
    column.close()
}
