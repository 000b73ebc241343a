//! What a trace of system calls holds, in numbers: what `iostep trace-info` shows.

mod count;
mod info;

pub use count::Count;
pub use info::{Before, CallInfo, FileInfo, Info, Source, Totals};

#[cfg(test)]
mod tests;
