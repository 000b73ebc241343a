//! A trace as a text of strace, and back without a loss.
//!
//! The text is that of `strace -f -ttt -T` with nanoseconds, for tools that read strace. What
//! strace has no words for stands in comments, so that the trace can be made of it again:
//!
//! | line | what it is |
//! |---|---|
//! | `# iostep strace 1` | the first one |
//! | `#@...` | a declaration of the trace, `@end` too |
//! | `#= ...` | a call as it is in the trace: requests of io_uring, what fork, exec and exit do to open files, munmap, mremap and msync (whose addresses are not kept), results that nobody knows |
//! | others | a call, as strace writes it |
//!
//! A descriptor is the number of its open file in the trace + 2, in every process: h1 is 3. dup
//! gives the same number again.

mod restore;
mod write;

pub use restore::{is_exported, restore};
pub use write::export;

/// The first line of an exported trace.
pub const EXPORTED_MAGIC: &str = "# iostep strace 1";
const DECLARATION: &str = "#@";
const CALL: &str = "#= ";

/// What is added to an open file's number to be a descriptor that is no standard stream's.
const FIRST_DESCRIPTOR: i64 = 2;

#[cfg(test)]
mod tests;
