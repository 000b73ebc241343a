//! Drives I/O.
//!
//! [`engine`] runs threads and measures them; [`mod@file`] and [`transactions`] are what the threads do:
//! reads and writes of files, and transactions. [`environment`] says where that was, and what
//! spoils the figures; [`sandbox`] keeps to what Android allows its apps. [`script`] runs a script one transaction at a time, in a process of its own.

mod batch_atomic;
pub mod engine;
pub mod environment;
pub mod error;
pub mod file;
mod library;
pub mod replay;
pub mod sandbox;
pub mod script;
pub mod transactions;
mod work_directory;

pub use error::{Error, Result};
