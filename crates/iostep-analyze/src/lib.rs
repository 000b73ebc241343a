//! What a trace means: attribution, statistics, reports.

pub mod fixture;
pub mod stats;
