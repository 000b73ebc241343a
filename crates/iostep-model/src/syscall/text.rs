//! The trace file of system calls: text, a call a line. docs/format-syscalls.md is its definition.
//!
//! [`Writer`] takes calls in the order in which they end and writes them in the order in which
//! they began; [`Reader`] streams a file, [`read`] takes it whole. A name that ends in `.zst` is
//! compressed.

mod escape;
mod fields;
mod head;
mod line;
mod operation;
mod reader;
mod writer;

pub use escape::{quote, unquote};
pub use line::write_call;
pub use reader::{Reader, read};
pub use writer::Writer;

// A macro, since `concat!` takes no constant.
macro_rules! version {
    () => {
        1
    };
}

/// The version of the format.
pub const VERSION: u32 = version!();

/// The first line of every file.
pub const MAGIC: &str = concat!("# iostep system calls ", version!());

/// The version in a first line, [`MAGIC`] or one like it.
fn version(line: &str) -> Option<u64> {
    let (_, number) = MAGIC.rsplit_once(' ')?;
    line.strip_prefix(MAGIC.strip_suffix(number)?)?.parse().ok()
}

/// The longest line that is read, in bytes: a path of `PATH_MAX` with every byte escaped fits, and
/// so do the 65,536 descriptors that a fork may copy.
pub const MAX_LINE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests;
