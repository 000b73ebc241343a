//! What is asked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The lake's directory, absolute.
    pub lake: PathBuf,
    /// Where what does not fit the memory goes; an empty directory of the caller's.
    pub spill: PathBuf,
    /// Bytes of memory that a query may hold before it spills.
    pub memory_bytes: usize,
    pub threads: usize,
    /// Each table's columns, in their order.
    pub tables: BTreeMap<String, Vec<Column>>,
    pub sql: String,
}

/// A column of a lake's table (docs/format-lake.md).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Text,
    Int,
    /// May be null.
    OptionalInt,
}
