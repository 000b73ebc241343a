//! Statistics of a trace: everything that a report shows, as plain numbers.
//!
//! [`Summary`] is what `iostep report --json` prints. Its rules, which `docs/report.md` repeats
//! for users:
//!
//! - The tracer's own I/O is in [`Summary::tracer`] and nowhere else.
//! - Bytes are sums over segments. Every byte of a request has exactly one class; a byte that no
//!   segment covers is [`iostep_model::Class::Unknown`]. So bytes by class add up to the totals.
//! - Requests are counted once in each row that any of their bytes belong to. So requests by
//!   class add up to the totals or to more.
//! - Distributions are over reads and writes; discards, flushes and the rest are in
//!   [`Summary::totals`].

pub mod amount;
mod by_path;
pub mod distribution;
pub mod heat;
pub mod interrupts;
pub mod joj;
pub mod latency;
pub mod overview;
pub mod owners;
pub mod passthrough;
pub mod syncs;
pub mod totals;
pub mod volumes;

#[cfg(test)]
mod tests;

use iostep_model::class::{Class, FileType, Layer};
use iostep_model::table::{Request, Segment, Trace};
use serde::Serialize;

pub use amount::{Amount, Split};
pub use distribution::{Mode, Order, Share, SizeBucket};
pub use heat::{Heat, Rewrites};
pub use interrupts::Interrupts;
pub use joj::{Joj, JojRow};
pub use latency::{Latency, Percentiles, Stage};
pub use overview::Overview;
pub use owners::{FileRow, ProcessRow};
pub use passthrough::PassthroughRow;
pub use syncs::{SyncKindRow, SyncRow};
pub use totals::{Barriers, PhaseLayer, Total};
pub use volumes::VolumeRow;

/// The statistics of one trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// What was traced, and whether the trace is whole.
    pub overview: Overview,
    /// Requests and bytes by phase and operation.
    pub totals: Vec<Total>,
    /// Bytes by phase and layer.
    pub phase_layers: Vec<PhaseLayer>,
    /// By filesystem; empty where there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<VolumeRow>,
    /// Commands past the block layer, by who sent them; in no sum of reads and writes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passthrough: Vec<PassthroughRow>,
    /// Bytes written of which only the file's last writer is known, and not the page's.
    #[serde(skip_serializing_if = "is_zero")]
    pub dirtied_by_inode_bytes: u64,
    /// The tracer's own reads and writes, which no other number includes.
    pub tracer: Split,
    /// Flushes and forced writes.
    pub barriers: Barriers,
    /// By the type of the file whose data it is (ATC'13 figure 2(a)); `None` is no file's data.
    pub file_types: Vec<Share<Option<FileType>>>,
    /// By layer (ATC'13 figure 2(b)).
    pub layers: Vec<Share<Layer>>,
    /// By class, which is finer than by layer.
    pub classes: Vec<Share<Class>>,
    /// Synchronous or buffered (ATC'13 figure 2(c)).
    pub modes: Vec<Share<Mode>>,
    /// Random or sequential (ATC'13 figure 2(d)).
    pub orders: Vec<Share<Order>>,
    /// By size (ATC'13 figure 2(e)).
    pub sizes: Vec<Share<SizeBucket>>,
    /// Hot or cold.
    pub heat: Vec<Share<Heat>>,
    /// How often and how soon blocks are written again.
    pub rewrites: Rewrites,
    /// Interrupts (ATC'13 figure 2(f)).
    pub interrupts: Interrupts,
    /// By operation and stage.
    pub latencies: Vec<Latency>,
    /// Files with I/O or sync calls, the most written first.
    pub files: Vec<FileRow>,
    /// Processes with I/O or sync calls, those that dirtied most first.
    pub processes: Vec<ProcessRow>,
    /// By kind of sync call.
    pub sync_kinds: Vec<SyncKindRow>,
    /// Every sync call, in the order of entry.
    pub sync_calls: Vec<SyncRow>,
    /// Journaling of journal: what each file's syncs cost (ATC'15 table 1).
    pub joj: Joj,
}

impl Summary {
    /// Computes the statistics of `trace`, whose references must be sound, as those of
    /// [`iostep_model::store::read`] are.
    pub fn of(trace: &Trace) -> Summary {
        let mut totals = totals::Collector::default();
        let mut distributions = distribution::Collector::default();
        let mut heat = heat::Collector::new(&trace.manifest);
        let mut latencies = latency::Collector::default();
        let mut owners = owners::Collector::new(trace);
        let mut syncs = syncs::Collector::new(trace.syncs.len());
        let mut volumes = volumes::Collector::new(&trace.manifest);
        let mut passthrough = passthrough::Collector::default();
        let mut dirtied_by_inode_bytes = 0;
        for request in &trace.requests {
            let segments = trace.segments_of(request);
            totals.add(request, segments);
            if request.by_tracer {
                continue;
            }
            distributions.add(trace, request, segments);
            heat.add(request);
            latencies.add(request);
            owners.add(request, segments);
            syncs.add(request, segments);
            volumes.add(request, segments);
            passthrough.add(request);
            if request.operation.is_write() {
                dirtied_by_inode_bytes += guessed_bytes(segments);
            }
        }
        let (heat, rewrites) = heat.finish();
        let distributions = distributions.finish();
        let syncs = syncs.finish(trace);
        let joj = Joj::of(trace, &syncs.calls);
        let (files, processes) = owners.finish(trace);
        Summary {
            overview: Overview::of(trace),
            totals: totals.totals(),
            phase_layers: totals.phase_layers(),
            volumes: volumes.finish(trace),
            passthrough: passthrough.finish(trace),
            dirtied_by_inode_bytes,
            tracer: totals.tracer,
            barriers: totals.barriers,
            file_types: distributions.file_types,
            layers: distributions.layers,
            classes: distributions.classes,
            modes: distributions.modes,
            orders: distributions.orders,
            sizes: distributions.sizes,
            heat,
            rewrites,
            interrupts: Interrupts::of(&trace.manifest.interrupts),
            latencies: latencies.finish(),
            files,
            processes,
            sync_kinds: syncs.kinds,
            sync_calls: syncs.calls,
            joj,
        }
    }

    /// All reads and writes but the tracer's own.
    pub fn all(&self) -> Split {
        let mut sum = Split::default();
        for share in &self.layers {
            sum.read.bytes += share.amounts.read.bytes;
            sum.write.bytes += share.amounts.write.bytes;
        }
        // Each request has one mode, so these counts do add up.
        for share in &self.modes {
            sum.read.requests += share.amounts.read.requests;
            sum.write.requests += share.amounts.write.requests;
        }
        sum
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Bytes of which only the file's last writer is known.
fn guessed_bytes(segments: &[Segment]) -> u64 {
    let guessed = segments
        .iter()
        .filter(|it| it.dirtier_by_inode && it.dirtier.is_some());
    guessed.map(|segment| u64::from(segment.bytes)).sum()
}

/// Bytes of `request` that no segment covers.
fn uncovered_bytes(request: &Request, segments: &[Segment]) -> u64 {
    let covered: u64 = segments.iter().map(|s| u64::from(s.bytes)).sum();
    u64::from(request.bytes).saturating_sub(covered)
}
