//! What a replay was, in numbers: from a recording and what became of its calls.

mod difference;
mod lateness;
mod quantiles;
mod summary;

pub use difference::{Difference, Reason};
pub use lateness::Lateness;
pub use quantiles::Quantiles;
pub use summary::{Amounts, CallSummary, Progress, SkipCount, Summary, ThreadSummary, Totals};

#[cfg(test)]
mod tests;
