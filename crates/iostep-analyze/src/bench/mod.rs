//! What the runs of a generator mean: every number that a report of a bench prints.
//!
//! Input: a [`Document`](iostep_model::bench::Document). [`Summary::of`] works out one of them,
//! [`Comparison::of`] puts two side by side.

mod cost;
mod estimate;
pub mod fixture;
mod latency;
mod measure;
mod series;
mod student;
mod summary;

pub use cost::{CpuCost, DeviceCost, MachineShares};
pub use estimate::{Estimate, Interval, spread};
pub use latency::StepLatency;
pub use measure::{Better, Measure, Quantile, Unit};
pub use series::SeriesMean;
pub use summary::{RunSummary, Summary, ThreadSpread, Throughput};
