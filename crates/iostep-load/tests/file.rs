//! The file generator against what plain reads of its files find.

#[path = "file/bench.rs"]
mod bench;
#[path = "file/faults.rs"]
mod faults;
#[path = "file/mmap.rs"]
mod mmap;
#[path = "file/psync.rs"]
mod psync;
#[path = "file/verify.rs"]
mod verify;
#[path = "file/work_files.rs"]
mod work_files;
