//! Counts and bytes.

use iostep_model::Operation;
use serde::Serialize;

/// A number of requests and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    pub requests: u64,
    pub bytes: u64,
}

impl Amount {
    /// Counts one request of `bytes`.
    pub fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
    }
}

/// Reads and writes apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Split {
    pub read: Amount,
    /// Writes and zone appends: what carries data to the device.
    pub write: Amount,
}

impl Split {
    /// The side that `operation` belongs to; `None` for what moves no data.
    pub fn side(&mut self, operation: Operation) -> Option<&mut Amount> {
        match operation {
            Operation::Read => Some(&mut self.read),
            operation if operation.is_write() => Some(&mut self.write),
            _ => None,
        }
    }

    /// True if nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Split::default()
    }

    /// Reads and writes together.
    pub fn sum(&self) -> Amount {
        Amount {
            requests: self.read.requests + self.write.requests,
            bytes: self.read.bytes + self.write.bytes,
        }
    }
}

/// `part / whole`, or nothing if there is no whole.
pub fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
