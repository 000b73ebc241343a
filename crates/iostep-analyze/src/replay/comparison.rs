//! Targets side by side.

use serde::{Deserialize, Serialize};

use super::{BlockIo, Run, Summary, Target};
use iostep_model::unit::Unit;

/// Rows of numbers, a column for each target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Times, calls and bytes.
    pub totals: Vec<Row>,
    /// Time in each system call, the longest first.
    pub calls: Vec<Row>,
    /// Block I/O; empty if it was not recorded.
    pub block: Vec<Row>,
}

/// One number of all targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    /// What it is counted in.
    pub unit: Unit,
    /// By target; none where it has no runs.
    pub values: Vec<Option<Spread>>,
}

/// A number over the runs of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The median; of an even number the lower of the two in the middle.
    pub median: u64,
    pub least: u64,
    pub greatest: u64,
}

impl Spread {
    /// None of an empty list.
    pub fn of(mut values: Vec<u64>) -> Option<Spread> {
        values.sort_unstable();
        Some(Spread {
            median: *values.get(values.len().checked_sub(1)? / 2)?,
            least: *values.first()?,
            greatest: *values.last()?,
        })
    }
}

type OfSummary = fn(&Summary) -> u64;
type OfBlock = fn(&BlockIo) -> u64;

const TOTALS: &[(&str, Unit, OfSummary)] = &[
    ("I/O time", Unit::Nanoseconds, |s| s.totals.replayed_io_ns),
    ("run time", Unit::Nanoseconds, |s| s.replayed_ns),
    ("calls issued", Unit::Count, |s| s.totals.done),
    ("calls with another result", Unit::Count, |s| {
        s.totals.differing
    }),
    ("bytes read", Unit::Bytes, |s| s.totals.replayed.read_bytes),
    ("bytes written", Unit::Bytes, |s| {
        s.totals.replayed.written_bytes
    }),
];

const BLOCK: &[(&str, Unit, OfBlock)] = &[
    ("reads", Unit::Count, |b| b.reads),
    ("writes", Unit::Count, |b| b.writes),
    ("flushes", Unit::Count, |b| b.flushes),
    ("forced writes", Unit::Count, |b| b.forced_writes),
    ("read", Unit::Bytes, |b| b.read_bytes.sum()),
    ("  data", Unit::Bytes, |b| b.read_bytes.data),
    ("  metadata", Unit::Bytes, |b| b.read_bytes.metadata),
    ("  journal", Unit::Bytes, |b| b.read_bytes.journal),
    ("  unknown", Unit::Bytes, |b| b.read_bytes.unknown),
    ("written", Unit::Bytes, |b| b.written_bytes.sum()),
    ("  data", Unit::Bytes, |b| b.written_bytes.data),
    ("  metadata", Unit::Bytes, |b| b.written_bytes.metadata),
    ("  journal", Unit::Bytes, |b| b.written_bytes.journal),
    ("  unknown", Unit::Bytes, |b| b.written_bytes.unknown),
];

impl Comparison {
    /// Of targets with their runs.
    pub fn of(targets: &[Target]) -> Comparison {
        let row = |name: &str, unit, value: &dyn Fn(&Run) -> Option<u64>| Row {
            name: name.to_owned(),
            unit,
            values: targets
                .iter()
                .map(|target| Spread::of(target.runs.iter().filter_map(value).collect()))
                .collect(),
        };
        let totals = TOTALS
            .iter()
            .map(|(name, unit, of)| row(name, *unit, &|run| Some(of(&run.summary))));
        let mut calls: Vec<Row> = call_names(targets)
            .iter()
            .map(|name| row(name, Unit::Nanoseconds, &|run| time_in(run, name)))
            .collect();
        calls.sort_by_key(|row| std::cmp::Reverse(longest(row)));
        let block = BLOCK
            .iter()
            .map(|(name, unit, of)| row(name, *unit, &|run| run.block.as_ref().map(of)))
            .filter(|row| row.values.iter().any(Option::is_some));
        Comparison {
            totals: totals.collect(),
            calls,
            block: block.collect(),
        }
    }
}

fn call_names(targets: &[Target]) -> Vec<String> {
    let runs = targets.iter().flat_map(|target| &target.runs);
    let calls = runs.flat_map(|run| &run.summary.calls);
    let mut names: Vec<String> = calls
        .filter(|call| call.done > 0)
        .map(|call| call.syscall.clone())
        .collect();
    names.sort();
    names.dedup();
    names
}

fn time_in(run: &Run, name: &str) -> Option<u64> {
    let mut calls = run.summary.calls.iter();
    calls
        .find(|call| call.syscall == name)
        .map(|call| call.sum_ns)
}

fn longest(row: &Row) -> u64 {
    let medians = row.values.iter().flatten().map(|spread| spread.median);
    medians.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_one_of_the_values() {
        let spread = |values: &[u64]| Spread::of(values.to_vec()).map(|s| s.median);
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[7]), Some(7));
        assert_eq!(spread(&[9, 1]), Some(1));
        assert_eq!(spread(&[9, 1, 4]), Some(4));
    }
}
