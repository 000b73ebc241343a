//! How a field's type becomes a column, and back.

use bytes::Bytes;
use parquet::basic::LogicalType;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};

use crate::class::{Class, Evidence, FileType};
use crate::operation::Operation;
use crate::sync::SyncKind;
use crate::table::Phase;

/// How Parquet stores a value.
pub(super) type Stored<T> = <<T as Scalar>::Physical as DataType>::T;

/// A column's type: a [`Scalar`], or an `Option` of one.
pub(super) trait Cell: Sized {
    type Scalar: Scalar;
    const NULLABLE: bool;
    fn into_option(self) -> Option<Self::Scalar>;
    /// On failure, why it cannot be null.
    fn from_option(value: Option<Self::Scalar>) -> Result<Self, String>;
    /// The value where a file does not have the column. On failure, why it must be there.
    fn absent() -> Result<Self, String>;
}

/// A type of value.
pub(super) trait Scalar: Sized {
    type Physical: DataType;
    /// What a column of this type means where a file does not have it; most must be there.
    const ABSENT: Option<Self> = None;
    /// Whether values repeat so much that each is stored once.
    const REPEATS: bool = false;
    fn logical() -> Option<LogicalType>;
    fn store(self) -> Stored<Self>;
    /// On failure, what is wrong with the value.
    fn load(stored: &Stored<Self>) -> Result<Self, String>;
    /// As `load`; where values repeat, `known` has those that were loaded.
    fn load_known(stored: &Stored<Self>, known: &mut Known<Self>) -> Result<Self, String> {
        let _ = known;
        Self::load(stored)
    }
}

/// Values as they are stored, and what they are.
pub(super) type Known<T> = Vec<(Stored<T>, T)>;

/// No type has more names; a forged file may.
const KNOWN_MAX: usize = 64;

impl<T: Scalar> Cell for Option<T> {
    type Scalar = T;
    const NULLABLE: bool = true;

    fn into_option(self) -> Option<T> {
        self
    }

    fn from_option(value: Option<T>) -> Result<Self, String> {
        Ok(value)
    }

    fn absent() -> Result<Self, String> {
        Ok(None)
    }
}

impl<T: Scalar> Cell for T {
    type Scalar = T;
    const NULLABLE: bool = false;

    fn into_option(self) -> Option<T> {
        Some(self)
    }

    fn from_option(value: Option<T>) -> Result<Self, String> {
        value.ok_or_else(|| "null".into())
    }

    fn absent() -> Result<Self, String> {
        T::ABSENT.ok_or_else(|| "missing".into())
    }
}

/// Parquet has numbers of 32 and 64 bits with a sign; what they are is said beside them.
macro_rules! numbers {
    ($($native:ty as $stored:ty => $physical:ty, $logical:expr, $absent:expr;)*) => {$(
        impl Scalar for $native {
            type Physical = $physical;
            const ABSENT: Option<Self> = $absent;

            fn logical() -> Option<LogicalType> {
                $logical
            }

            fn store(self) -> $stored {
                self as $stored
            }

            fn load(stored: &$stored) -> Result<Self, String> {
                let value = *stored as $native;
                let same = value as $stored == *stored;
                same.then_some(value).ok_or_else(|| format!("{stored} is too large"))
            }
        }
    )*};
}

numbers! {
    u8 as i32 => Int32Type, Some(LogicalType::integer(8, false)), Some(0);
    u16 as i32 => Int32Type, Some(LogicalType::integer(16, false)), None;
    u32 as i32 => Int32Type, Some(LogicalType::integer(32, false)), None;
    u64 as i64 => Int64Type, Some(LogicalType::integer(64, false)), None;
    i64 as i64 => Int64Type, None, None;
}

impl Scalar for bool {
    type Physical = BoolType;

    fn logical() -> Option<LogicalType> {
        None
    }

    fn store(self) -> bool {
        self
    }

    fn load(stored: &bool) -> Result<Self, String> {
        Ok(*stored)
    }
}

impl Scalar for String {
    type Physical = ByteArrayType;

    fn logical() -> Option<LogicalType> {
        Some(LogicalType::String)
    }

    fn store(self) -> ByteArray {
        self.into_bytes().into()
    }

    fn load(stored: &ByteArray) -> Result<Self, String> {
        String::from_utf8(stored.data().to_vec()).map_err(|error| error.to_string())
    }
}

/// The kind of a [`crate::event::Marker`], without its text.
#[derive(Clone, Copy)]
pub(super) enum MarkerKind {
    CommandStart,
    CommandEnd,
    SettleStart,
    SettleEnd,
    Step,
}

crate::listed! { MarkerKind,
    CommandStart = "command start",
    CommandEnd = "command end",
    SettleStart = "settle start",
    SettleEnd = "settle end",
    Step = "step",
}

macro_rules! names {
    ($($type:ty,)*) => {$(
        impl Scalar for $type {
            type Physical = ByteArrayType;
            const REPEATS: bool = true;

            fn logical() -> Option<LogicalType> {
                Some(LogicalType::String)
            }

            fn store(self) -> ByteArray {
                Bytes::from_static(self.name().as_bytes()).into()
            }

            fn load(stored: &ByteArray) -> Result<Self, String> {
                let name = stored.as_utf8().map_err(|error| error.to_string())?;
                <$type>::from_name(name).ok_or_else(|| format!("unknown name {name:?}"))
            }

            // Each is stored once, so the same value is at the same place.
            fn load_known(
                stored: &ByteArray,
                known: &mut Known<Self>,
            ) -> Result<Self, String> {
                let place = stored.data().as_ptr_range();
                let same = |(bytes, _): &&(ByteArray, _)| bytes.data().as_ptr_range() == place;
                if let Some((_, value)) = known.iter().find(same) {
                    return Ok(*value);
                }
                let value = Self::load(stored)?;
                if known.len() < KNOWN_MAX {
                    known.push((stored.clone(), value));
                }
                Ok(value)
            }
        }
    )*};
}

names!(
    Operation, Class, Evidence, FileType, Phase, SyncKind, MarkerKind,
);
