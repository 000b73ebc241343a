//! Labs: matrices of storage, workload and switches, and what their cells measured.
//!
//! A [`Lab`] is a list of [`Cell`]s. Each is run on storage of its own and answers with a
//! [`CellResult`]. Both are JSON on disk: a directory of results holds the lab and one file for
//! each cell (`docs/format-lab.md`).
//!
//! Units: `*_bytes` are bytes, `sector` counts 512 bytes from the start of the whole disk, `*_ns`
//! are nanoseconds.

mod analysis;
mod cell;
mod document;
mod filesystem;
mod measure;
mod result;
mod switches;

pub use analysis::{
    Analysis, At, Bounds, Choices, Claim, Condition, Numbers, Order, PaperTable, Side, Values, View,
};
pub use cell::{Cell, Storage, Workload, WorkloadKind};
pub use filesystem::Filesystem;
pub use measure::Measure;
pub use result::{
    CellResult, ClassCount, Environment, Latency, Medium, PatternRequest, Run, State, Tool,
};
pub use switches::{Switches, UnknownSwitch};

use serde::{Deserialize, Serialize};

/// Version of the JSON of a lab and of a cell's result. A reader takes this and older ones.
pub const SCHEMA_VERSION: u32 = 1;

/// What is measured together, and shown together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lab {
    /// As in `iostep lab run NAME`: letters, digits and hyphens.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Every cell, in the order of its file.
    pub cells: Vec<Cell>,
    /// What is shown of them; nothing in files from before there was such a thing.
    #[serde(default)]
    pub analysis: Analysis,
}
