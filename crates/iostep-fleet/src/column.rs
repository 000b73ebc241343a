//! A lake's types: text, and numbers of 64 bits with a sign, which every engine takes alike.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::schema::types::{ColumnDescriptor, Type, TypePtr};
use serde::Serialize;

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
    pub(crate) fn schema(self) -> TypePtr {
        let (physical, logical) = match self.kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Int | Kind::OptionalInt => (Physical::INT64, None),
        };
        let repetition = match self.kind {
            Kind::OptionalInt => Repetition::OPTIONAL,
            _ => Repetition::REQUIRED,
        };
        let schema = Type::primitive_type_builder(self.name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build();
        Arc::new(schema.expect("the logical type is one of its physical one"))
    }

    /// Checks that a file's column is this one. On failure, what it is.
    pub(crate) fn check(self, found: &ColumnDescriptor) -> Result<(), String> {
        let expected = self.schema();
        let is_same = found.path().parts().len() == 1
            && found.name() == self.name
            && found.physical_type() == expected.get_physical_type()
            && found.logical_type_ref() == expected.get_basic_info().logical_type_ref()
            && found.max_rep_level() == 0
            && found.max_def_level() == i16::from(self.kind == Kind::OptionalInt);
        match is_same {
            true => Ok(()),
            false => Err(format!(
                "a column {:?} of {}, {}",
                found.path().string(),
                found.physical_type(),
                found
                    .logical_type_ref()
                    .map_or("plain".into(), |known| format!("{known:?}")),
            )),
        }
    }
}

/// A type of a row's field.
pub(crate) trait Cell {
    const KIND: Kind;
    type Physical: DataType;
    fn store(self) -> Option<<Self::Physical as DataType>::T>;
}

impl Cell for Bytes {
    const KIND: Kind = Kind::Text;
    type Physical = ByteArrayType;

    fn store(self) -> Option<ByteArray> {
        Some(self.into())
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
