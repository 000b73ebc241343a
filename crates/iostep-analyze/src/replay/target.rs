//! Where a recording was performed, and what each performance was.

use serde::{Deserialize, Serialize};

use super::{BlockIo, Summary};

/// A directory that replays ran in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Its path as it was given.
    pub directory: String,
    /// The filesystem's type, if it could be found.
    pub filesystem: Option<String>,
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
    /// True if every call was issued in order, each difference is explained, and block I/O was
    /// recorded without holes.
    pub fn is_good(&self) -> bool {
        let summary = &self.summary;
        let whole = self.block.as_ref().is_none_or(|block| block.whole);
        !summary.interrupted && summary.order_violations == 0 && summary.unexplained() == 0 && whole
    }
}
