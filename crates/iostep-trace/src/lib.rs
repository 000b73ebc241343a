//! Capture: what a block device does, who made it do so, and which sync call waited for it.
//!
//! [`target::Target`] is the device, [`session::Session`] a recording. The backends are [`bpf`]
//! (the kernel's tracepoints through BPF), [`tracefs`] (where there is no BTF) and [`blkparse`]
//! (text that somebody else recorded); all of them make [`iostep_model::event::Event`]s. [`mounts`]
//! tells where users see the files. Without the feature `bpf` there are only the device and its
//! counters.

// What recordings alone use of these is a handful of functions.
#![cfg_attr(not(feature = "bpf"), allow(dead_code))]

#[cfg(feature = "bpf")]
pub mod blkparse;
#[cfg(feature = "bpf")]
pub mod bpf;
#[cfg(feature = "bpf")]
mod check;
pub mod counters;
mod device_mapper;
pub mod device_number;
mod devices;
pub mod error;
pub mod f2fs;
#[cfg(feature = "bpf")]
pub mod fault;
#[cfg(feature = "bpf")]
pub mod interrupts;
#[cfg(feature = "bpf")]
mod ledger;
#[cfg(feature = "bpf")]
mod libbpf_log;
pub mod mounts;
#[cfg(feature = "bpf")]
pub mod rights;
#[cfg(feature = "bpf")]
mod ring;
#[cfg(feature = "bpf")]
mod rwbs;
#[cfg(feature = "bpf")]
pub mod session;
pub mod stack;
#[cfg(feature = "bpf")]
pub mod sums;
#[cfg(feature = "bpf")]
pub mod syscalls;
pub mod target;
#[cfg(feature = "bpf")]
pub mod tracefs;
#[cfg(feature = "bpf")]
pub mod user;

pub use error::{Error, Result};
