//! Capture: what a block device does, who made it do so, and which sync call waited for it.
//!
//! [`target::Target`] is the device, [`session::Session`] a recording. The backends are [`bpf`]
//! (the kernel's tracepoints through BPF), [`tracefs`] (where there is no BTF) and [`blkparse`]
//! (text that somebody else recorded); all of them make [`iostep_model::event::Event`]s. [`mounts`]
//! tells where users see the files.

pub mod blkparse;
pub mod bpf;
mod check;
pub mod counters;
mod device_mapper;
pub mod device_number;
mod devices;
pub mod error;
pub mod fault;
pub mod interrupts;
mod ledger;
mod libbpf_log;
pub mod mounts;
pub mod rights;
mod ring;
pub mod session;
pub mod stack;
pub mod sums;
pub mod syscalls;
pub mod target;
pub mod tracefs;
pub mod user;

pub use error::{Error, Result};
