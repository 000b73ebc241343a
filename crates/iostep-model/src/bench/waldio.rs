//! The SQLite extension waldio: how it is asked to work, and what it says it did.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::names::named;

/// Options of waldio; what is `None` stays as waldio has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaldioOptions {
    /// When a commit is durable: `PRAGMA waldio_sync`.
    pub sync: Option<WaldioSync>,
    /// Frames that wait before Group Sync flushes: `PRAGMA waldio_group_frames`.
    #[serde(default)]
    pub group_frames: Option<u32>,
    /// How long they wait at most, milliseconds: `PRAGMA waldio_group_ms`.
    #[serde(default)]
    pub group_ms: Option<u32>,
    /// Where the frames of a log are.
    pub layout: Option<WaldioLayout>,
    /// Bytes that frames of layout P are padded to a multiple of: `PRAGMA waldio_padding`.
    pub padding_bytes: Option<u32>,
    /// The first step by which a log is extended ahead, 0 for never: `PRAGMA waldio_prealloc`.
    pub prealloc_bytes: Option<u32>,
    /// The extension to load into another SQLite; the one inside if `None`.
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
