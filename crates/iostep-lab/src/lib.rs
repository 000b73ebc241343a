//! Environments for experiments: loop devices with a filesystem of their own, mounted in private.
//!
//! Whatever is built here is taken down again on every way out. A value's drop does it for a
//! return, an error or a panic, so a command that turns SIGINT and SIGTERM into a return is
//! covered too. SIGKILL runs no code of ours, so there the kernel has to do it:
//!
//! - the image is a file without a name, so its blocks go with its last descriptor;
//! - the loop device has `LO_FLAGS_AUTOCLEAR`, so it detaches itself at its last close;
//! - [`enter_private_mounts`] moves the caller into a mount namespace of its own, so the mount goes
//!   with the last process in it, and nobody else ever saw it. Children start in the same
//!   namespace, hence they must end when their parent does: iostep's own read their work from a
//!   pipe and leave at its end.
//!
//! What a SIGKILL can leave is the mount point: an empty directory with mode 0700.

pub mod batch;
pub mod builtin;
pub mod child;
mod command_result;
mod console;
mod cpu_load;
pub mod disk;
pub mod environment;
pub mod error;
mod free_space;
pub mod guest;
pub mod image;
mod loop_device;
pub mod matrix;
mod measure;
mod measured;
pub mod mkfs;
pub mod mount;
pub mod plan;
mod recording;
mod replay_result;
pub mod results;
pub mod run;
mod scratch;
pub mod storage;

pub use console::Console;
pub use disk::{Disk, GivenDevice};
pub use error::{Error, Result};
pub use image::LoopImage;
pub use measured::{Measured, is_of_bench_alone};
pub use mkfs::{Kind, MADE, mkfs, tool};
pub use mount::{Mount, enter_private_mounts};
