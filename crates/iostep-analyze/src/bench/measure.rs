//! The numbers of a run that runs and documents are compared by.

use std::fmt;

use iostep_model::bench::Step;
use serde::{Serialize, Serializer};

use super::run::RunSummary;
use iostep_model::unit::Unit;

/// A share of the values of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantile {
    /// Half of them.
    P50,
    /// 99 %.
    P99,
}

/// One number of a run. Its name, as JSON and CSV have it, ends in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Operations or transactions a second.
    OperationsPerSecond,
    /// The same with the time taken out in which threads thought or waited for their schedule.
    BusyOperationsPerSecond,
    /// Payload bytes a second.
    BytesPerSecond,
    /// Mean time of an operation with its share of the syncs.
    TimePerOperation,
    /// A percentile of one step.
    Latency(Step, Quantile),
    /// Bytes that the device wrote for an operation.
    WrittenPerOperation,
    /// Bytes that the device read for an operation.
    ReadPerOperation,
    /// Flushes that the device did for an operation.
    FlushesPerOperation,
    /// Processor time of an operation in the load's own threads.
    CpuPerOperation,
    /// Context switches of an operation, voluntary and not.
    SwitchesPerOperation,
}

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Higher,
    Lower,
}

impl Measure {
    /// All of them, in the order of a report.
    pub fn all() -> impl Iterator<Item = Measure> {
        let before = [
            Measure::OperationsPerSecond,
            Measure::BusyOperationsPerSecond,
            Measure::BytesPerSecond,
            Measure::TimePerOperation,
        ];
        let latencies = Step::ALL.into_iter().flat_map(|step| {
            [Quantile::P50, Quantile::P99].map(|quantile| Measure::Latency(step, quantile))
        });
        let after = [
            Measure::WrittenPerOperation,
            Measure::ReadPerOperation,
            Measure::FlushesPerOperation,
            Measure::CpuPerOperation,
            Measure::SwitchesPerOperation,
        ];
        before.into_iter().chain(latencies).chain(after)
    }

    /// Its value in a run; `None` if the run does not have it.
    pub fn of(self, run: &RunSummary) -> Option<f64> {
        let device = run.device.as_ref();
        match self {
            Measure::OperationsPerSecond => Some(run.throughput?.operations_per_second),
            Measure::BusyOperationsPerSecond => Some(run.busy_throughput?.operations_per_second),
            Measure::BytesPerSecond => Some(run.throughput?.bytes_per_second),
            Measure::TimePerOperation => run.time_per_operation_ns,
            Measure::Latency(step, quantile) => {
                let latency = run.latency(step)?;
                Some(match quantile {
                    Quantile::P50 => latency.p50_ns as f64,
                    Quantile::P99 => latency.p99_ns as f64,
                })
            }
            Measure::WrittenPerOperation => device?.written_bytes_per_operation,
            Measure::ReadPerOperation => device?.read_bytes_per_operation,
            Measure::FlushesPerOperation => device?.flushes_per_operation,
            Measure::CpuPerOperation => run.cpu.ns_per_operation(),
            Measure::SwitchesPerOperation => {
                let voluntary = run.cpu.voluntary_switches_per_operation?;
                Some(voluntary + run.cpu.involuntary_switches_per_operation?)
            }
        }
    }

    pub fn unit(self) -> Unit {
        match self {
            Measure::OperationsPerSecond | Measure::BusyOperationsPerSecond => Unit::PerSecond,
            Measure::BytesPerSecond => Unit::BytesPerSecond,
            Measure::TimePerOperation | Measure::Latency(..) | Measure::CpuPerOperation => {
                Unit::Nanoseconds
            }
            Measure::WrittenPerOperation | Measure::ReadPerOperation => Unit::Bytes,
            Measure::FlushesPerOperation | Measure::SwitchesPerOperation => Unit::Mean,
        }
    }

    /// True for what the device counts: the same work has the same number in every run, but for
    /// who else uses the device.
    pub fn is_counted(self) -> bool {
        matches!(
            self,
            Measure::WrittenPerOperation | Measure::ReadPerOperation | Measure::FlushesPerOperation
        )
    }

    /// Which of two values is the better one.
    pub fn better(self) -> Better {
        match self.unit() {
            Unit::PerSecond | Unit::BytesPerSecond => Better::Higher,
            _ => Better::Lower,
        }
    }

    /// The words for people; `work` is what an operation is called.
    pub fn label(self, work: &str) -> String {
        match self {
            Measure::OperationsPerSecond => format!("{work}s/s"),
            Measure::BusyOperationsPerSecond => format!("{work}s/s without idle time"),
            Measure::BytesPerSecond => "payload/s".into(),
            Measure::TimePerOperation => format!("mean time per {work}"),
            Measure::Latency(step, quantile) => format!("{} {quantile}", step.name()),
            Measure::WrittenPerOperation => format!("device written per {work}"),
            Measure::ReadPerOperation => format!("device read per {work}"),
            Measure::FlushesPerOperation => format!("flushes per {work}"),
            Measure::CpuPerOperation => format!("CPU time per {work}"),
            Measure::SwitchesPerOperation => format!("context switches per {work}"),
        }
    }
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Quantile::P50 => "p50",
            Quantile::P99 => "p99",
        })
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Measure::Latency(step, quantile) => {
                let step = step.name().replace(' ', "_");
                return write!(f, "{step}_{quantile}_ns");
            }
            Measure::OperationsPerSecond => "operations_per_second",
            Measure::BusyOperationsPerSecond => "busy_operations_per_second",
            Measure::BytesPerSecond => "bytes_per_second",
            Measure::TimePerOperation => "time_per_operation_ns",
            Measure::WrittenPerOperation => "device_written_bytes_per_operation",
            Measure::ReadPerOperation => "device_read_bytes_per_operation",
            Measure::FlushesPerOperation => "device_flushes_per_operation",
            Measure::CpuPerOperation => "cpu_ns_per_operation",
            Measure::SwitchesPerOperation => "context_switches_per_operation",
        })
    }
}

impl Serialize for Measure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
