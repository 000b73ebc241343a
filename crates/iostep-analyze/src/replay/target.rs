//! Where a recording was performed, and what each performance was.

use iostep_model::disk::Disk;
use iostep_model::manifest::Device;
use serde::{Deserialize, Serialize};

use super::{BlockIo, Summary};

/// A directory that replays ran in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Its path as it was given.
    pub directory: String,
    /// The filesystem's type, if it could be found.
    pub filesystem: Option<String>,
    /// Its device; `None` where it has none of its own, and in older results.
    #[serde(default)]
    pub device: Option<Device>,
    /// The disks below that; empty where none is known, and in older results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Disk>,
    /// Its replays, in their order.
    pub runs: Vec<Run>,
}

/// One replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its numbers.
    pub summary: Summary,
    /// Block I/O, if that was recorded.
    pub block: Option<BlockIo>,
}

impl Run {
    /// True if every call was issued in order, no byte of the recording was left out, each difference
    /// is explained, and block I/O was recorded without holes.
    pub fn is_good(&self) -> bool {
        let summary = &self.summary;
        let whole = self.block.as_ref().is_none_or(|block| block.whole);
        let lost = summary.order_violations + summary.lost_bytes() + summary.unexplained();
        !summary.interrupted && lost == 0 && whole
    }
}
