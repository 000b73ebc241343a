//! What a replay was, in numbers: from a recording and what became of its calls.

mod block;
mod comparison;
mod difference;
mod document;
mod lateness;
mod quantiles;
mod summary;

pub use block::BlockIo;
pub use comparison::{Comparison, Row, Spread};
pub use difference::{Difference, Reason};
pub use document::{About, Document, Run, SCHEMA_VERSION, Target};
pub use lateness::Lateness;
pub use quantiles::Quantiles;
pub use summary::{Amounts, CallSummary, Progress, SkipCount, Summary, ThreadSummary, Totals};

#[cfg(test)]
mod tests;
