//! What a trace means: attribution, statistics, reports.

pub mod advise;
pub mod attribute;
pub mod bench;
pub mod compare;
pub mod doctor;
pub mod explain;
pub mod filter;
pub mod lab;
pub mod replay;
pub mod report;
pub mod stats;
pub mod syscalls;
