//! What numbers are counted in.

use serde::{Deserialize, Serialize};

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// How many, of what is whole.
    Count,
    /// How many, as a mean.
    #[serde(rename(serialize = "count"))]
    Mean,
    /// How many a second.
    PerSecond,
    Bytes,
    BytesPerSecond,
    Nanoseconds,
    /// A part of 1.
    Share,
    /// A ratio.
    Factor,
}
