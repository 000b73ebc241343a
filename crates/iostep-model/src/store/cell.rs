//! How a field's type becomes a column, and back.

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use arrow_schema::DataType;

use crate::class::{Class, Evidence, FileType};
use crate::operation::Operation;
use crate::sync::SyncKind;
use crate::table::Phase;

/// A value that could not be read: its row in the batch, and why.
pub(super) type Bad = (usize, String);

/// A column's type: a [`Scalar`], or an `Option` of one.
pub(super) trait Cell: Sized {
    const NULLABLE: bool;
    fn data_type() -> DataType;
    fn encode(values: impl Iterator<Item = Self>) -> ArrayRef;
    fn decode(array: &ArrayRef) -> Result<Vec<Self>, Bad>;
    /// The values of a column that older files do not have.
    fn absent(rows: usize) -> Result<Vec<Self>, Bad>;
}

/// A type of value; the codec sees every value as one that may be null.
pub(super) trait Scalar: Sized {
    /// What a column of this type means where a file does not have it; most must be there.
    const ABSENT: Option<Self> = None;
    fn data_type() -> DataType;
    fn encode(values: impl Iterator<Item = Option<Self>>) -> ArrayRef;
    fn decode(array: &ArrayRef) -> Result<Vec<Option<Self>>, Bad>;
}

impl<T: Scalar> Cell for Option<T> {
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        T::data_type()
    }

    fn encode(values: impl Iterator<Item = Self>) -> ArrayRef {
        T::encode(values)
    }

    fn decode(array: &ArrayRef) -> Result<Vec<Self>, Bad> {
        T::decode(array)
    }

    fn absent(rows: usize) -> Result<Vec<Self>, Bad> {
        Ok((0..rows).map(|_| None).collect())
    }
}

impl<T: Scalar> Cell for T {
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        T::data_type()
    }

    fn encode(values: impl Iterator<Item = Self>) -> ArrayRef {
        <T as Scalar>::encode(values.map(Some))
    }

    fn decode(array: &ArrayRef) -> Result<Vec<Self>, Bad> {
        <T as Scalar>::decode(array)?
            .into_iter()
            .enumerate()
            .map(|(row, value)| value.ok_or_else(|| (row, "null".into())))
            .collect()
    }

    fn absent(rows: usize) -> Result<Vec<Self>, Bad> {
        let missing = || (0, "missing".into());
        (0..rows).map(|_| T::ABSENT.ok_or_else(missing)).collect()
    }
}

fn wrong_type(array: &ArrayRef) -> Bad {
    (0, format!("unexpected type {}", array.data_type()))
}

fn encode_primitive<P: ArrowPrimitiveType>(
    values: impl Iterator<Item = Option<P::Native>>,
) -> ArrayRef {
    Arc::new(values.collect::<PrimitiveArray<P>>())
}

fn decode_primitive<P: ArrowPrimitiveType>(
    array: &ArrayRef,
) -> Result<Vec<Option<P::Native>>, Bad> {
    let array = array
        .as_primitive_opt::<P>()
        .ok_or_else(|| wrong_type(array))?;
    Ok(array.iter().collect())
}

macro_rules! primitives {
    ($($native:ty => $arrow:ty, $absent:expr;)*) => {$(
        impl Scalar for $native {
            const ABSENT: Option<Self> = $absent;

            fn data_type() -> DataType {
                <$arrow>::DATA_TYPE
            }

            fn encode(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
                encode_primitive::<$arrow>(values)
            }

            fn decode(array: &ArrayRef) -> Result<Vec<Option<Self>>, Bad> {
                decode_primitive::<$arrow>(array)
            }
        }
    )*};
}

primitives! {
    u8 => UInt8Type, Some(0);
    u16 => UInt16Type, None;
    u32 => UInt32Type, None;
    u64 => UInt64Type, None;
    i64 => Int64Type, None;
}

impl Scalar for bool {
    fn data_type() -> DataType {
        DataType::Boolean
    }

    fn encode(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        Arc::new(values.collect::<BooleanArray>())
    }

    fn decode(array: &ArrayRef) -> Result<Vec<Option<Self>>, Bad> {
        let array = array.as_boolean_opt().ok_or_else(|| wrong_type(array))?;
        Ok(array.iter().collect())
    }
}

impl Scalar for String {
    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn encode(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        Arc::new(values.collect::<StringArray>())
    }

    fn decode(array: &ArrayRef) -> Result<Vec<Option<Self>>, Bad> {
        let array = array
            .as_string_opt::<i32>()
            .ok_or_else(|| wrong_type(array))?;
        Ok(array.iter().map(|text| text.map(str::to_owned)).collect())
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

/// Names are a dictionary column: a byte a row in memory, and text for whoever reads the file.
fn encode_names(names: impl Iterator<Item = Option<&'static str>>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<UInt8Type>::new();
    for name in names {
        builder.append_option(name);
    }
    Arc::new(builder.finish())
}

fn decode_names<T: Copy>(
    array: &ArrayRef,
    from_name: impl Fn(&str) -> Option<T>,
) -> Result<Vec<Option<T>>, Bad> {
    let array = array
        .as_dictionary_opt::<UInt8Type>()
        .ok_or_else(|| wrong_type(array))?;
    let names = array
        .values()
        .as_string_opt::<i32>()
        .ok_or_else(|| wrong_type(array.values()))?;
    let known: Vec<Option<T>> = names.iter().map(|n| n.and_then(&from_name)).collect();
    let value_of = |(row, key): (usize, Option<u8>)| match key {
        None => Ok(None),
        Some(key) => match known.get(usize::from(key)).copied().flatten() {
            Some(value) => Ok(Some(value)),
            None => Err((row, format!("unknown name (number {key} of {names:?})"))),
        },
    };
    array.keys().iter().enumerate().map(value_of).collect()
}

macro_rules! names {
    ($($type:ty,)*) => {$(
        impl Scalar for $type {
            fn data_type() -> DataType {
                DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8))
            }

            fn encode(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
                encode_names(values.map(|value| value.map(<$type>::name)))
            }

            fn decode(array: &ArrayRef) -> Result<Vec<Option<Self>>, Bad> {
                decode_names(array, <$type>::from_name)
            }
        }
    )*};
}

names!(
    Operation, Class, Evidence, FileType, Phase, SyncKind, MarkerKind,
);
