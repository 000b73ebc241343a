//! The SQLite extension waldio: how it is asked to work, and what it says it did.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::value;
use crate::names::named;

/// Options of waldio; what is `None` stays as waldio has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[command(next_help_heading = "Options of --journal waldio")]
pub struct WaldioOptions {
    #[arg(id = "waldio_sync", long = "waldio-sync", value_name = "MODE",
          help = format!("When a commit is durable: {}", WaldioSync::CHOICES))]
    pub sync: Option<WaldioSync>,

    /// Frames that wait before Group Sync flushes
    #[arg(long = "waldio-group-frames", value_name = "N")]
    #[serde(default)]
    pub group_frames: Option<u32>,

    /// How long they wait at most, in milliseconds
    #[arg(long = "waldio-group-ms", value_name = "N")]
    #[serde(default)]
    pub group_ms: Option<u32>,

    // Written with its path, so that clap leaves the `Option` to the parser.
    #[arg(long = "waldio-layout", value_name = "LAYOUT", default_value = AUTO,
          value_parser = layout,
          help = format!("Where frames are in the log: auto, {}", WaldioLayout::CHOICES))]
    pub layout: std::option::Option<WaldioLayout>,

    /// Pad frames of layout P to a multiple: 512, 4096, 8192
    #[arg(long = "waldio-padding", value_name = "SIZE", value_parser = value::sqlite_bytes)]
    pub padding_bytes: Option<u32>,

    /// First step by which the log is extended ahead; 0: never
    #[arg(long = "waldio-prealloc", value_name = "SIZE", value_parser = value::sqlite_bytes)]
    pub prealloc_bytes: Option<u32>,

    /// Load this waldio.so instead of the one inside
    #[arg(id = "waldio_lib", long = "waldio-lib", value_name = "FILE")]
    pub library: Option<PathBuf>,
}

/// `PRAGMA waldio_sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaldioSync {
    /// A commit is durable; those that wait at the same time share a flush.
    Full,
    /// Each commit is a durable write of its own.
    Persistent,
    /// A commit is written and not flushed.
    Normal,
    /// A commit may return before its group is written: the paper's Group Sync.
    Group,
}

named!(
    WaldioSync,
    "waldio sync mode",
    Full = "full",
    Persistent = "persistent",
    Normal = "normal",
    Group = "group",
);

/// Where the frames of waldio's log are; its manual has the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaldioLayout {
    /// Frame header and padding behind the page.
    P,
    /// Frame header in reserved bytes of the page.
    W,
    /// Frame header in zeros of the page.
    T,
}

named!(WaldioLayout, "waldio layout", P = "P", W = "W", T = "T",);

/// What waldio said after a run (`waldio_stat`), of all databases together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaldioRun {
    /// `PRAGMA waldio_layout`, of each kind once: `P`, `W`, `T`, `stock`, `none`.
    pub layouts: Vec<String>,
    /// `PRAGMA waldio_sync` of the first connection.
    pub sync: String,
    /// Why logs are SQLite's own, each reason once.
    pub reasons: Vec<String>,
    /// What was counted from the warm-up to the end of the threads, ramp included.
    pub counters: Vec<(String, i64)>,
}

/// [`layout`] for waldio's own choice.
const AUTO: &str = "auto";
/// `auto`, or a layout.
fn layout(text: &str) -> Result<Option<WaldioLayout>, String> {
    if text.eq_ignore_ascii_case(AUTO) {
        return Ok(None);
    }
    let layout = text.parse::<WaldioLayout>();
    layout
        .map(Some)
        .map_err(|error| format!("{error}, or auto"))
}
