//! What every part of iostep agrees on: identities, events, tables, and the files that hold them.
//!
//! The data goes one way: a probe writes [`event::Event`]s into a [`spool`], `iostep-analyze`
//! turns the spool into the tables of [`table`], and [`store`] keeps these as Parquet beside the
//! [`manifest`]. Nothing here looks at a kernel but [`host`], [`disk`] and [`mountinfo`], which say where it was.
//!
//! Units, always: `*_bytes` are bytes, `sector` counts 512-byte sectors from the start of the
//! whole disk, `*_ns` are nanoseconds of `CLOCK_MONOTONIC` unless the name says `wall`.

pub mod bench;
pub mod class;
pub mod clock;
pub mod columnar;
pub mod database;
pub mod directory;
pub mod disk;
pub mod durability;
pub mod error;
pub mod event;
pub mod filesystem;
pub mod fixture;
pub mod goal;
pub mod hex;
pub mod host;
pub mod identity;
mod json;
pub mod lab;
pub mod manifest;
pub mod mountinfo;
pub mod name_service;
mod names;
pub mod operation;
pub mod pragma;
pub mod printable;
pub mod publish;
pub mod quantile;
pub mod replay;
pub mod rights;
pub mod spool;
pub mod store;
pub mod sync;
pub mod syscall;
pub mod table;
pub mod turns;
pub mod unit;
pub mod units;

pub use class::{Class, Evidence, FileType, Layer, Role};
pub use error::{Error, Result};
pub use identity::{FileKey, SyncKey};
pub use names::UnknownName;
pub use operation::{Flags, Operation};
pub use printable::printable;
pub use sync::SyncKind;

/// Bytes in a sector: the unit of every `sector` field, whatever the device's own block size is.
pub const SECTOR_BYTES: u64 = 512;

/// The last sector number whose byte offset fits 63 bits: what lies behind it is on no device.
pub const SECTORS_MAX: u64 = (i64::MAX as u64) / SECTOR_BYTES;
