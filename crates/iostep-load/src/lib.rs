//! Drives I/O.
//!
//! [`sql`] runs a script one transaction at a time, in a process of its own.

pub mod error;
pub mod sql;

pub use error::{Error, Result};
