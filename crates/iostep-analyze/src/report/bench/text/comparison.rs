//! Two benches side by side.

use iostep_model::printable;

use crate::bench::{Basis, Comparison, Interval, Measure, Row, Unit, Verdict};
use crate::report::quantity::{bytes, count, decimal, duration, percent};
use crate::report::text::Style;
use crate::report::text::grid::grid;

/// Shows a comparison; `names` are the two results'. First what is wrong with either, then what
/// they do not have in common, then the verdict, then every measure.
pub fn render(comparison: &Comparison, names: [&str; 2], style: Style) -> String {
    let names = names.map(printable);
    let mut text = String::new();
    for (name, broken) in names.iter().zip(comparison.broken_runs) {
        if broken > 0 {
            let complaint = format!("PARTIAL: {name}: {} runs are not whole", count(broken));
            text.push_str(&style.alarm(&complaint));
            text.push('\n');
        }
    }
    let mut differences = grid(style, &["not the same", &names[0], &names[1]]);
    for difference in &comparison.differences {
        let value = |value: &Option<String>| value.as_deref().map_or("-", |value| value).to_owned();
        differences.row([
            printable(&difference.name).into(),
            printable(&value(&difference.first)).into(),
            printable(&value(&difference.second)).into(),
        ]);
    }
    text.push_str(differences.untitled().trim_start_matches('\n'));
    let verdict = match comparison.headline() {
        Some(row) => sentence(comparison, row, &names),
        None => "nothing to compare: neither has a complete run".into(),
    };
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&style.bold(&verdict));
    text.push('\n');
    let [first, second] = names.each_ref().map(|name| format!(">{name}"));
    let mut table = grid(style, &["", &first, &second, ">ratio", "95 % interval", ""]);
    for row in rows(comparison) {
        table.row([
            row.measure.label(comparison.work),
            row.first
                .map_or_else(|| "-".into(), |value| shown(row.unit, value)),
            row.second
                .map_or_else(|| "-".into(), |value| shown(row.unit, value)),
            row.ratio
                .map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}x")),
            row.interval
                .map_or_else(String::new, |i| format!("{:.3} to {:.3}", i.low, i.high)),
            word(row),
        ]);
    }
    text.push_str(&table.untitled());
    text
}

/// The rows, without those that are 0 on both sides, which say nothing.
fn rows(comparison: &Comparison) -> impl Iterator<Item = &Row> {
    let zero = |value: Option<f64>| value.is_none_or(|value| value == 0.0);
    comparison
        .rows
        .iter()
        .filter(move |row| !zero(row.first) || !zero(row.second))
}

fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::PerSecond | Unit::Count => decimal(value),
        Unit::BytesPerSecond => format!("{}/s", bytes(value.round() as u64)),
        Unit::Bytes => bytes(value.round() as u64),
        Unit::Nanoseconds => duration(value.round() as u64),
    }
}

fn word(row: &Row) -> String {
    match row.verdict {
        Verdict::Better => "better".into(),
        Verdict::Worse => "WORSE".into(),
        Verdict::NoDifference { .. } => "no difference found".into(),
        Verdict::TooFewRuns { .. } => "too few runs".into(),
        Verdict::Missing => "only in one".into(),
    }
}

/// The verdict on the headline in a sentence.
fn sentence(comparison: &Comparison, row: &Row, names: &[std::borrow::Cow<'_, str>; 2]) -> String {
    let [first, second] = names;
    let [runs, other_runs] = comparison.runs;
    let work = comparison.work;
    let basis = match row.basis {
        Basis::Runs => format!("{runs} and {other_runs} runs"),
        Basis::Seconds => {
            "from the seconds of one run each: other runs may differ by more; --repeat tells".into()
        }
        Basis::Nothing => String::new(),
    };
    let ratio = row.ratio.unwrap_or(1.0);
    match row.verdict {
        Verdict::Better | Verdict::Worse => {
            let change = match (row.measure, ratio > 1.0) {
                (Measure::TimePerOperation, true) => format!("takes more time per {work}"),
                (Measure::TimePerOperation, false) => format!("takes less time per {work}"),
                (_, true) => format!("does more {work}s/s"),
                (_, false) => format!("does fewer {work}s/s"),
            };
            let by = percent(Some((ratio - 1.0).abs()));
            let interval = row.interval.map_or_else(String::new, within);
            format!("{second} {change} than {first}: {by}{interval} ({basis})")
        }
        Verdict::NoDifference { seen_above } => {
            let seen = seen_above.map_or_else(String::new, |share| {
                format!(
                    "; one of more than {} would have been seen",
                    percent(Some(share))
                )
            });
            format!("no difference found{seen} ({basis})")
        }
        Verdict::TooFewRuns { needed } => format!(
            "too few runs to tell ({runs} and {other_runs}): repeat both at least {needed} times"
        ),
        Verdict::Missing => format!(
            "only {} has a complete run",
            if row.first.is_some() { first } else { second }
        ),
    }
}

fn within(interval: Interval) -> String {
    let mut ends = [interval.low, interval.high].map(|end| (end - 1.0).abs());
    ends.sort_by(f64::total_cmp);
    let [least, most] = ends.map(|end| percent(Some(end)));
    format!(", 95 % sure between {least} and {most}")
}
