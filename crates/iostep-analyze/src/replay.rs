//! What a replay was, in numbers: from a recording and what became of its calls.

mod block;
mod comparison;
mod difference;
mod document;
mod lateness;
mod quantiles;
mod summary;
mod target;

pub use block::BlockIo;
pub use comparison::{Comparison, Row, Spread};
pub use difference::{Difference, Reason};
pub use document::{About, Document, SCHEMA_VERSION};
pub use lateness::Lateness;
pub use quantiles::Quantiles;
pub use summary::{Amounts, CallSummary, Progress, SkipCount, Summary, ThreadSummary, Totals};
pub use target::{Run, Target};

#[cfg(test)]
mod tests;
