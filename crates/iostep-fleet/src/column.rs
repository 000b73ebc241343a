//! A lake's types: text, and numbers of 64 bits with a sign, which every engine takes alike.

use std::fs::File;
use std::io::BufWriter;

use bytes::Bytes;
use iostep_model::columnar::{self, Written, write_column};
use parquet::basic::LogicalType;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::file::writer::SerializedRowGroupWriter;
use serde::Serialize;

/// Where a file is written to.
pub(crate) type Out = BufWriter<File>;

/// A group of rows that is being written.
pub(crate) type Group<'a> = SerializedRowGroupWriter<'a, Out>;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Never null; empty for what is not known.
    Text,
    Int,
    /// Null where it is not known.
    OptionalInt,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
}

impl Column {
    /// As the file has it.
    pub(crate) fn stored(self) -> columnar::Column {
        let number =
            |nullable| columnar::Column::new::<Int64Type>(self.name, None, nullable, false);
        match self.kind {
            Kind::Text => {
                let logical = Some(LogicalType::String);
                columnar::Column::new::<ByteArrayType>(self.name, logical, false, true)
            }
            Kind::Int => number(false),
            Kind::OptionalInt => number(true),
        }
    }
}

/// Columns as the file has them.
pub(crate) fn stored(columns: &[Column]) -> Vec<columnar::Column> {
    columns.iter().map(|column| column.stored()).collect()
}

/// A type of a row's field.
pub(crate) trait Cell: Sized {
    const KIND: Kind;
    type Physical: DataType;
    fn store(self) -> Option<<Self::Physical as DataType>::T>;

    /// Writes the group's next column of values.
    fn write(group: &mut Group<'_>, values: impl Iterator<Item = Self>) -> Written {
        let nullable = Self::KIND == Kind::OptionalInt;
        write_column::<Self::Physical, Out>(group, nullable, values.map(Cell::store))
    }
}

/// The empty text, at an address that there is. A writer compares every text with the least and the
/// largest; an empty `Bytes` or `str` lies nowhere, and glibc's `memcmp` loads what it then ignores with
/// AVX-512 (evex), which takes a processor a hundred times as long where no page is.
static EMPTY: Bytes = Bytes::from_static(NOTHING.split_at(0).0);
static NOTHING: [u8; 64] = [0; 64];

fn stored_text(text: Bytes) -> Option<ByteArray> {
    let text = match text.is_empty() {
        true => EMPTY.clone(),
        false => text,
    };
    Some(text.into())
}

impl Cell for Bytes {
    const KIND: Kind = Kind::Text;
    type Physical = ByteArrayType;

    fn store(self) -> Option<ByteArray> {
        stored_text(self)
    }
}

impl Cell for &Bytes {
    const KIND: Kind = Kind::Text;
    type Physical = ByteArrayType;

    fn store(self) -> Option<ByteArray> {
        stored_text(self.clone())
    }
}

impl Cell for &'static str {
    const KIND: Kind = Kind::Text;
    type Physical = ByteArrayType;

    fn store(self) -> Option<ByteArray> {
        stored_text(Bytes::from_static(self.as_bytes()))
    }
}

impl Cell for i64 {
    const KIND: Kind = Kind::Int;
    type Physical = Int64Type;

    fn store(self) -> Option<i64> {
        Some(self)
    }
}

impl Cell for Option<i64> {
    const KIND: Kind = Kind::OptionalInt;
    type Physical = Int64Type;

    fn store(self) -> Option<i64> {
        self
    }
}

/// A number as a lake has it: what does not fit, which nothing measured is, is the largest.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
