//! What the rows of each table are made of.

mod known;
mod origin;
mod request;
mod result;
mod segment;
mod sync;
mod trace;

pub(crate) use known::Known;
pub(crate) use origin::{Origin, Surroundings};
pub(crate) use request::RequestRow;
pub(crate) use result::ResultRow;
pub(crate) use segment::SegmentRow;
pub(crate) use sync::SyncRow;
pub(crate) use trace::{Totals, TraceRow};

use iostep_model::columnar::Written;

use crate::column::{Column, Group};

/// A row that is stored as columns.
pub(crate) trait Row: Sized {
    /// In the order of the file.
    fn columns() -> Vec<Column>;
    /// Writes the group's columns.
    fn write(rows: &[Self], group: &mut Group<'_>) -> Written;
}

/// The columns of a row's table.
pub(crate) fn columns<R: Row>() -> Vec<Column> {
    R::columns()
}

/// A table: `column: type = value of a row`, in the order of the file. Behind `with` stands where a
/// row has its origin, whose columns come last.
macro_rules! table {
    ($type:ty, |$row:ident| { $($column:ident: $cell:ty = $get:expr,)* } with $origin:expr) => {
        impl $crate::rows::Row for $type {
            fn columns() -> Vec<$crate::column::Column> {
                let mut columns = vec![$($crate::column::Column {
                    name: stringify!($column),
                    kind: <$cell as $crate::column::Cell>::KIND,
                },)*];
                columns.extend($crate::rows::origin::columns());
                columns
            }

            fn write(
                rows: &[Self],
                group: &mut $crate::column::Group<'_>,
            ) -> iostep_model::columnar::Written {
                $(<$cell as $crate::column::Cell>::write(group, rows.iter().map(|$row| $get))?;)*
                $crate::rows::origin::write(group, || rows.iter().map(|$row| $origin))
            }
        }
    };
}
use table;
