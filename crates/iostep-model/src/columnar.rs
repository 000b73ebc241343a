//! What every Parquet file of ours has: columns of known types, the table and the version that it
//! says it is of, and an error where the library panics.
//!
//! [`crate::store`] has the files of a trace, the crate `iostep-fleet` those of a lake.

mod quiet;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type, TypePtr};

use crate::error::{Error, Result};

/// Bounds what a reader of one group, and the writer, hold at a time, and is enough for an engine
/// to read in one go.
pub const GROUP_ROWS: usize = 128 << 10;
/// Small enough that a batch in both forms stays in the processor's cache.
pub const BATCH_ROWS: usize = 8192;
const TABLE_KEY: &str = "iostep.table";

/// What writing answers.
pub type Written = std::result::Result<(), ParquetError>;

/// What a table says of a column.
pub struct Column {
    schema: TypePtr,
    /// Whether its values repeat, so that each is stored once.
    repeats: bool,
}

impl Column {
    /// A column of values that are stored as `T`. Panics if `logical` is no type of `T`'s.
    pub fn new<T: DataType>(
        name: &str,
        logical: Option<LogicalType>,
        nullable: bool,
        repeats: bool,
    ) -> Column {
        let repetition = match nullable {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        let schema = Type::primitive_type_builder(name, T::get_physical_type())
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
            .expect("the logical types are those of their physical ones");
        Column {
            schema: Arc::new(schema),
            repeats,
        }
    }

    /// Checks that a file's column is this one, whether it may be null or not. On failure, what it
    /// is.
    fn check(&self, found: &ColumnDescriptor) -> std::result::Result<(), String> {
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

/// What a file says of itself.
#[derive(Clone, Copy)]
pub struct Label {
    pub table: &'static str,
    /// The key of the version in the file's metadata.
    pub version_key: &'static str,
    /// The newest version that is read, and the one that is written.
    pub version: u32,
    /// What has that version, as a refusal calls it.
    pub versioned: &'static str,
}

impl Label {
    /// Begins a file of these columns.
    ///
    /// Errors: what `out` says.
    pub fn writer<W: Write + Send>(
        self,
        out: W,
        columns: &[Column],
        compression: Compression,
    ) -> std::result::Result<SerializedFileWriter<W>, ParquetError> {
        let fields = columns.iter().map(|column| column.schema.clone());
        let schema = Type::group_type_builder(self.table)
            .with_fields(fields.collect())
            .build()?;
        let metadata = vec![
            KeyValue::new(TABLE_KEY.into(), self.table.to_owned()),
            KeyValue::new(self.version_key.into(), self.version.to_string()),
        ];
        let plain = WriterProperties::builder()
            .set_compression(compression)
            .set_key_value_metadata(Some(metadata))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_dictionary_enabled(false);
        // Times and sectors hardly repeat; names do.
        let names = columns.iter().filter(|column| column.repeats);
        let properties = names.fold(plain, |properties, column| {
            let path = ColumnPath::from(column.schema.name());
            properties.set_column_dictionary_enabled(path, true)
        });
        SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))
    }

    /// Checks that the file at `path`, whose footer says `found`, is of this table and of a version
    /// that this build reads, and that its columns are the first of `columns`: older files may have
    /// fewer.
    ///
    /// Errors: `Unsupported` for a newer version; `Corrupt` for anything else.
    pub fn check(self, path: &Path, found: &ParquetMetaData, columns: &[Column]) -> Result<()> {
        let file = found.file_metadata();
        let value_of = |key: &str| {
            let pairs = file.key_value_metadata()?;
            pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
        };
        if value_of(TABLE_KEY) != Some(self.table) {
            let found = value_of(TABLE_KEY).unwrap_or("nothing");
            let reason = format!("holds {found:?}, expected {:?}", self.table);
            return Err(Error::corrupt(path, TABLE_KEY, reason));
        }
        let version = value_of(self.version_key)
            .and_then(|text| text.parse::<u32>().ok())
            .ok_or_else(|| Error::corrupt(path, self.version_key, "missing or no number"))?;
        if version > self.version {
            let (what, version) = (self.versioned, version.into());
            return Err(Error::newer(path, what, version, self.version, None));
        }
        let schema = file.schema_descr();
        if schema.num_columns() > columns.len() {
            let (found, expected) = (schema.num_columns(), columns.len());
            let reason = format!("{found} columns, expected {expected}");
            return Err(Error::corrupt(path, "footer", reason));
        }
        for (column, found) in columns.iter().zip(schema.columns()) {
            let wrong = |why| Error::corrupt(path, column.schema.name(), why);
            column.check(found).map_err(wrong)?;
        }
        let mut groups = found.row_groups().iter().map(|group| group.num_rows());
        let rows = groups.try_fold(0_i64, |sum, rows| {
            (rows >= 0).then_some(sum.checked_add(rows)?)
        });
        match rows == Some(file.num_rows()) {
            true => Ok(()),
            false => Err(Error::corrupt(path, "footer", "row groups do not add up")),
        }
    }
}

/// Opens the group's next column, and gives what writes values to it, with their levels where they
/// may be null.
pub fn next_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    fill: impl FnOnce(&mut dyn FnMut(&[T::T], Option<&[i16]>) -> Written) -> Written,
) -> Written {
    let missing = || ParquetError::General("the group has fewer columns than its table".into());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let writer = column.typed::<T>();
    fill(&mut |values, levels| writer.write_batch(values, levels, None).map(drop))?;
    column.close()
}

/// Writes the group's next column of values, which `nullable` says may be null.
pub fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    nullable: bool,
    mut values: impl Iterator<Item = Option<T::T>>,
) -> Written {
    let (mut stored, mut levels) = (Vec::new(), Vec::new());
    next_column::<T, W>(group, |write| {
        loop {
            stored.clear();
            levels.clear();
            for value in values.by_ref().take(BATCH_ROWS) {
                levels.push(i16::from(value.is_some()));
                stored.extend(value);
            }
            if levels.is_empty() {
                return Ok(());
            }
            write(&stored, nullable.then_some(levels.as_slice()))?;
        }
    })
}

/// The error of a file that could not be written.
pub fn write_error(path: &Path) -> impl Fn(ParquetError) -> Error {
    move |error| match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => Error::io(path, "write")(*source),
            Err(source) => Error::io(path, "write")(std::io::Error::other(source)),
        },
        error => Error::io(path, "write")(std::io::Error::other(error)),
    }
}

/// Runs what reads the file at `path`: the Parquet reader asserts parts of the format, and whoever
/// forges a file gets an error, too.
///
/// Errors: what `body` says; `Corrupt` if it panics.
pub fn caught<T>(path: &Path, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let gave_up = || Error::corrupt(path, "content", "the Parquet reader gave up");
    quiet::catch(body).unwrap_or_else(|| Err(gave_up()))
}
