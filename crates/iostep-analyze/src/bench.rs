//! What the runs of a generator mean: every number that a report of a bench prints.
//!
//! Input: a [`Document`](iostep_model::bench::Document). [`Summary::of`] works out one of them,
//! [`Comparison::of`] puts two side by side.

mod compare;
mod cost;
mod difference;
mod estimate;
pub mod fixture;
mod gate;
mod latency;
mod measure;
mod rank_test;
mod run;
mod sample;
mod series;
mod spoilers;
mod steady;
mod strip;
mod student;
mod summary;

pub use compare::{Basis, Comparison, DifferentWork, Judged, Row, Verdict};
pub use cost::{CpuCost, DeviceCost, MachineShares};
pub use difference::{Difference, varying};
pub use estimate::{Estimate, spread};
pub use gate::{Gate, Judgement, Passage};
pub use latency::StepLatency;
pub use measure::{Better, Measure, Quantile};
pub use run::{RunSummary, ThreadSpread, Throughput};
pub use sample::Interval;
pub(crate) use sample::mean;
pub use series::SeriesMean;
pub use steady::{Steadiness, Unsteadiness};
pub use strip::strip;
pub(crate) use student::{t_95, welch_95};
pub use summary::{Summary, work};
