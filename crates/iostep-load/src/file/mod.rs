//! Reads and writes of files and block devices.
//!
//! ```text
//! offsets   where each operation of a thread goes
//! payload   buffers of incompressible bytes; stamp: what tells their blocks apart
//! ```

pub mod aligned;
pub mod capability;
pub mod device;
pub mod lane;
pub mod offsets;
pub mod payload;
pub mod stamp;

#[cfg(test)]
mod sample;
