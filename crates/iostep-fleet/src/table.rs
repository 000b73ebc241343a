//! Which tables a lake has.

use crate::column::Column;
use crate::rows;

/// A table of a lake; files are put into their places in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Segments,
    Requests,
    Syncs,
    Results,
    /// Last: whoever finds a trace here finds all its rows in the others.
    Traces,
}

iostep_model::listed! { Table,
    Segments = "segments",
    Requests = "requests",
    Syncs = "syncs",
    Results = "results",
    Traces = "traces",
}

impl Table {
    /// The column that names what a row came from; unique in `traces`.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Table::Results => "result_id",
            _ => "trace_id",
        }
    }

    /// Its columns, in the order of the file.
    pub(crate) fn columns(self) -> Vec<Column> {
        match self {
            Table::Segments => rows::columns::<rows::SegmentRow<'_>>(),
            Table::Requests => rows::columns::<rows::RequestRow<'_>>(),
            Table::Syncs => rows::columns::<rows::SyncRow<'_>>(),
            Table::Results => rows::columns::<rows::ResultRow<'_>>(),
            Table::Traces => rows::columns::<rows::TraceRow<'_>>(),
        }
    }

    /// The columns that its rows are sorted by.
    pub(crate) fn key(self) -> &'static [&'static str] {
        match self {
            Table::Segments | Table::Requests | Table::Syncs => &["model", "app", "trace_id"],
            Table::Traces => &["model", "trace_id"],
            Table::Results => &["model", "result_id"],
        }
    }
}
