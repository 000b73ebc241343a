//! The numbers that a lab's tables are made of.

use serde::{Deserialize, Serialize};

use super::Run;
use crate::class::Layer;

use crate::unit::Unit;

/// A number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Operations a second.
    Throughput,
    /// Length of the measured part, nanoseconds.
    Elapsed,
    /// Half of the operations took at most this, nanoseconds.
    OperationP50,
    /// The longest operation, nanoseconds.
    OperationMax,
    /// Half of the sync calls took at most this, nanoseconds.
    SyncP50,
    /// Writes by the kernel's counters for an operation, flushes that come alone among them.
    Ios,
    /// Writes that move data, for an operation; needs a trace.
    Writes,
    /// Bytes that the device wrote for an operation.
    WrittenBytes,
    /// Bytes that the device read for an operation.
    ReadBytes,
    /// Mean length of the writes that move data, bytes; needs a trace.
    BytesPerWrite,
    /// Flushes of the device for an operation.
    Flushes,
    /// Writes of the whole run.
    TotalWrites,
    /// Bytes that the device wrote in the whole run.
    TotalWrittenBytes,
    /// Flushes of the device in the whole run.
    TotalFlushes,
    /// Bytes of files written for an operation; needs a trace, as the next three.
    DataBytes,
    /// Bytes of the filesystem's own log written for an operation.
    JournalBytes,
    /// Bytes of the filesystem's other metadata written for an operation.
    MetadataBytes,
    /// Bytes of the filesystem's own log that syncs of a database's log caused, for an operation.
    JournalOfJournalBytes,
    /// Voluntary context switches of the workload for an operation.
    VoluntarySwitches,
    /// All context switches of the workload for an operation.
    Switches,
    /// Time of all CPUs that was not idle, from 0 to 1.
    CpuActive,
}

impl Measure {
    /// The name shown to people, without the unit.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Throughput => "throughput",
            Measure::Elapsed => "time",
            Measure::OperationP50 => "p50",
            Measure::OperationMax => "slowest",
            Measure::SyncP50 => "sync p50",
            Measure::Ios => "I/Os each",
            Measure::Writes => "writes each",
            Measure::WrittenBytes => "written each",
            Measure::ReadBytes => "read each",
            Measure::BytesPerWrite => "bytes a write",
            Measure::Flushes => "flushes each",
            Measure::TotalWrites => "writes",
            Measure::TotalWrittenBytes => "written",
            Measure::TotalFlushes => "flushes",
            Measure::DataBytes => "data each",
            Measure::JournalBytes => "journal each",
            Measure::MetadataBytes => "metadata each",
            Measure::JournalOfJournalBytes => "JOJ each",
            Measure::VoluntarySwitches => "voluntary switches each",
            Measure::Switches => "switches each",
            Measure::CpuActive => "CPU active",
        }
    }

    /// What it counts in.
    pub fn unit(self) -> Unit {
        match self {
            Measure::Throughput => Unit::PerSecond,
            Measure::Elapsed | Measure::OperationP50 | Measure::OperationMax | Measure::SyncP50 => {
                Unit::Nanoseconds
            }
            Measure::WrittenBytes
            | Measure::ReadBytes
            | Measure::TotalWrittenBytes
            | Measure::BytesPerWrite
            | Measure::DataBytes
            | Measure::JournalBytes
            | Measure::MetadataBytes
            | Measure::JournalOfJournalBytes => Unit::Bytes,
            Measure::Ios
            | Measure::Writes
            | Measure::Flushes
            | Measure::TotalWrites
            | Measure::TotalFlushes
            | Measure::VoluntarySwitches
            | Measure::Switches => Unit::Mean,
            Measure::CpuActive => Unit::Share,
        }
    }

    /// True if it depends on how fast the place is: such numbers of two places are not compared.
    pub fn is_time(self) -> bool {
        matches!(
            self,
            Measure::Throughput
                | Measure::Elapsed
                | Measure::OperationP50
                | Measure::OperationMax
                | Measure::SyncP50
                | Measure::CpuActive
        )
    }

    /// Its value in a run; `None` if the run does not have it.
    pub fn of(self, run: &Run) -> Option<f64> {
        match self {
            Measure::Throughput => (run.elapsed_ns > 0).then(|| run.per_second()),
            Measure::Elapsed => Some(run.elapsed_ns as f64),
            Measure::OperationP50 => run.latency.map(|latency| latency.p50_ns as f64),
            Measure::OperationMax => run.latency.map(|latency| latency.max_ns as f64),
            Measure::SyncP50 => run.sync_latency.map(|latency| latency.p50_ns as f64),
            Measure::Ios => each(run, run.device?.write.ios),
            Measure::Writes => each(run, run.write_requests?),
            Measure::WrittenBytes => each(run, run.device?.write.bytes),
            Measure::ReadBytes => each(run, run.device?.read.bytes),
            Measure::BytesPerWrite => {
                let writes = run.write_requests?;
                (writes > 0).then(|| run.device.map(|d| d.write.bytes as f64 / writes as f64))?
            }
            Measure::Flushes => each(run, run.own_flushes()?),
            Measure::TotalWrites => Some(run.device?.write.ios as f64),
            Measure::TotalWrittenBytes => Some(run.device?.write.bytes as f64),
            Measure::TotalFlushes => Some(run.own_flushes()? as f64),
            Measure::DataBytes => each(run, written(run, Layer::Data)?),
            Measure::JournalBytes => each(run, written(run, Layer::Journal)?),
            Measure::MetadataBytes => each(run, written(run, Layer::Metadata)?),
            Measure::JournalOfJournalBytes => each(run, run.journal_of_journal_bytes?),
            Measure::VoluntarySwitches => each(run, run.cpu?.voluntary_switches),
            Measure::Switches => {
                let cpu = run.cpu?;
                let all = cpu.voluntary_switches.checked_add(cpu.involuntary_switches);
                each(run, all?)
            }
            Measure::CpuActive => {
                let machine = run.cpu?.machine?;
                let total = machine.total_ns();
                (total > 0).then(|| machine.active_ns() as f64 / total as f64)
            }
        }
    }
}

fn each(run: &Run, number: u64) -> Option<f64> {
    (run.operations > 0).then(|| number as f64 / run.operations as f64)
}

/// Bytes written of the classes of a layer; `None` without a trace.
fn written(run: &Run, layer: Layer) -> Option<u64> {
    let classes = run.classes.as_ref()?.iter();
    let of_layer = classes.filter(|count| {
        count.operation.is_write() && count.class.is_some_and(|class| class.layer() == layer)
    });
    let bytes = of_layer.map(|count| count.bytes);
    Some(bytes.fold(0, u64::saturating_add))
}
