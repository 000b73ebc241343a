//! What was kept of an input and what was left out, and why: as lines of text, and as JSON.

use iostep_model::syscall::Ledger;
use serde_json::{Map, Value};

/// The sums of what was kept and what was left out, which `titles` name, each before its reasons, the
/// most frequent first; `line` has a number and what it is of.
pub fn lines(
    ledger: &Ledger,
    titles: [&str; 2],
    line: impl Fn(u64, &str) -> String,
) -> Vec<String> {
    let (kept, left_out) = ledger.totals();
    let mut lines = Vec::new();
    for (is_kept, sum, title) in [(true, kept, titles[0]), (false, left_out, titles[1])] {
        lines.push(line(sum, title));
        let mut reasons: Vec<_> = ledger.lines.iter().filter(|l| l.kept == is_kept).collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
        let of_it = reasons.iter();
        lines.extend(of_it.map(|reason| line(reason.count, &format!("  {}", reason.reason))));
    }
    lines
}

/// How much was kept, or left out, for each reason.
pub fn reasons(ledger: &Ledger, is_kept: bool) -> Map<String, Value> {
    let lines = ledger.lines.iter().filter(|line| line.kept == is_kept);
    lines
        .map(|line| (line.reason.clone(), line.count.into()))
        .collect()
}
