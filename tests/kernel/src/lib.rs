//! What the kernel tests share: a workload whose every block names itself, readers of the raw
//! image it leaves, and the comparison of both with a trace.
//!
//! The truth never comes from the tracer: blocks are found by scanning the image, metadata by
//! `debugfs`, `dumpe2fs` and the structures' own magic numbers, sync calls by the process that
//! made them, and sums by `/sys/block/X/stat`.

pub mod clock;
pub mod compare;
pub mod counters;
pub mod demand;
pub mod dmesg;
pub mod extents;
pub mod facts;
pub mod image;
pub mod iostep;
pub mod kernels;
pub mod leftovers;
pub mod requirement;
pub mod score;
pub mod sector_map;
pub mod stack;
pub mod stamp;
pub mod truth;
pub mod written;
