//! What a replay made the device do.

use iostep_model::class::Layer;
use serde::{Deserialize, Serialize};

use crate::stats;

/// Block I/O from a replay's first call until everything is on the device (ATC'13 figure 10).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockIo {
    /// The device's name.
    pub device: String,
    /// False if the recording of the device has holes: the numbers are too small.
    pub whole: bool,
    /// Requests that read.
    pub reads: u64,
    /// Requests that wrote.
    pub writes: u64,
    /// Bytes read, by block type.
    pub read_bytes: ByLayer,
    /// Bytes written, by block type.
    pub written_bytes: ByLayer,
    /// Flushes that the device executed.
    pub flushes: u64,
    /// Writes that are durable when complete.
    pub forced_writes: u64,
}

/// Bytes by block type (FI'13 section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByLayer {
    /// Content of files.
    pub data: u64,
    /// What the filesystem keeps for itself.
    pub metadata: u64,
    /// The filesystem's log.
    pub journal: u64,
    /// Not known.
    pub unknown: u64,
}

impl ByLayer {
    pub fn sum(&self) -> u64 {
        self.data + self.metadata + self.journal + self.unknown
    }

    fn add(&mut self, layer: Layer, bytes: u64) {
        *match layer {
            Layer::Data => &mut self.data,
            Layer::Metadata => &mut self.metadata,
            Layer::Journal => &mut self.journal,
            Layer::Unknown => &mut self.unknown,
        } += bytes;
    }
}

impl BlockIo {
    /// Of a recording of the device. `whole` is what its self-check says.
    pub fn of(device: &str, whole: bool, summary: &stats::Summary) -> BlockIo {
        let all = summary.all();
        let mut block = BlockIo {
            device: device.to_owned(),
            whole,
            reads: all.read.requests,
            writes: all.write.requests,
            flushes: summary.barriers.flushes,
            forced_writes: summary.barriers.fua_writes,
            ..BlockIo::default()
        };
        for share in &summary.layers {
            block.read_bytes.add(share.of, share.amounts.read.bytes);
            block.written_bytes.add(share.of, share.amounts.write.bytes);
        }
        block
    }
}
