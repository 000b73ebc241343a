//! Makes recordings of system calls.
//!
//! A recorder, or an importer of foreign text ([`mobigen`], [`strace`]), says what a call's
//! arguments were: numbers of descriptors and paths as the program wrote them
//! ([`iostep_model::syscall::raw`]). The [`Tracker`] follows both through dup, fork, exec and chdir,
//! leaves out what is no file, concludes what was there before, and hands calls to a [`Sink`].
//! Nothing is dropped without being counted.

pub mod error;
#[cfg(test)]
mod fixture;
pub mod import;
pub mod input;
pub mod mobigen;
pub mod sink;
pub mod strace;
pub mod tracker;

pub use error::{Error, Result};
pub use sink::Sink;
pub use tracker::{Finished, Tracker};
