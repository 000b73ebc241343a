//! The file generator against what plain reads of its files find.

#[path = "file/bench.rs"]
mod bench;
#[path = "file/psync.rs"]
mod psync;
