//! Two benches side by side.

mod gate;

use iostep_model::unit::Unit;
use iostep_report::document::{Block, Cell, Document, Section, Table};
use iostep_report::quantity::{count, percent};

use crate::bench::{Basis, Comparison, Gate, Interval, Measure, Row, Verdict};
use crate::report::disk;

/// The report of a comparison; `names` are the two results'. First what is wrong with either, then
/// the verdict, then what they do not have in common, then every measure. The verdict is the gate's
/// where there is one.
pub fn document(comparison: &Comparison, gate: Option<&Gate>, names: [&str; 2]) -> Document {
    let mut body = Section::default();
    let broken = names.iter().zip(comparison.broken_runs);
    let broken = broken
        .filter(|(_, broken)| *broken > 0)
        .map(|(name, broken)| format!("PARTIAL: {name}: {} runs are not whole", count(broken)));
    body.alarms.extend(broken);
    let different = comparison.different_disks.as_ref().map(|disks| {
        let [one, other] = disks
            .each_ref()
            .map(|disks| disk::line(disks).unwrap_or_default());
        format!(
            "DIFFERENT DEVICES: {} on {one}, {} on {other}",
            names[0], names[1]
        )
    });
    body.alarms.extend(different);
    match gate {
        Some(gate) => {
            let mut lines = gate::lines(gate, comparison);
            body.headline = lines.remove(0);
            body.push(Block::Lines(lines));
        }
        None => {
            body.headline = match comparison.headline() {
                Some(row) => sentence(comparison, row, names),
                None => "nothing to compare: neither has a complete run".into(),
            }
        }
    }
    let columns = ["not the same", names[0], names[1]].map(str::to_owned);
    let rows = comparison.differences.iter().map(|difference| {
        let value = |value: &Option<String>| Cell::text(value.as_deref().unwrap_or("-"));
        let values = [&difference.first, &difference.second].map(value);
        std::iter::once(Cell::text(&difference.name))
            .chain(values)
            .collect()
    });
    body.push(Block::Table(Table::new("", columns).rows(rows)));
    let [first, second] = names.map(|name| format!(">{name}"));
    let [ratio, interval] = [">ratio", "95 % interval"].map(str::to_owned);
    let columns = [String::new(), first, second, ratio, interval, String::new()];
    let rows = rows_of(comparison).map(|row| cells(comparison, row));
    body.push(Block::Table(Table::new("", columns).rows(rows)));
    Document::of(body)
}

fn cells(comparison: &Comparison, row: &Row) -> Vec<Cell> {
    // The rows' names say what is counted a second.
    let unit = match row.unit {
        Unit::PerSecond => Unit::Mean,
        unit => unit,
    };
    let ratio = Cell::number(Unit::Factor, row.ratio);
    let interval = row.interval;
    let interval = interval.map(|i| format!("{:.3} to {:.3}", i.low, i.high));
    vec![
        Cell::text(row.measure.label(comparison.work)),
        Cell::number(unit, row.first),
        Cell::number(unit, row.second),
        match row.ratio {
            // A change of a thousandth can be told from none.
            Some(exact) => ratio.saying(format!("{exact:.3}x")),
            None => ratio,
        },
        Cell::text(interval.unwrap_or_default()),
        Cell::text(word(row)),
    ]
}

/// The rows, without those that are 0 on both sides, which say nothing.
fn rows_of(comparison: &Comparison) -> impl Iterator<Item = &Row> {
    let zero = |value: Option<f64>| value.is_none_or(|value| value == 0.0);
    comparison.rows.iter().filter(move |row| {
        let is_known = !zero(row.first) || !zero(row.second);
        is_known || row.verdict == Verdict::Disturbed
    })
}

fn word(row: &Row) -> &'static str {
    match row.verdict {
        Verdict::Better => "better",
        Verdict::Worse => "WORSE",
        Verdict::NoDifference { .. } => "no difference found",
        Verdict::TooFewRuns { .. } => "too few runs",
        Verdict::Disturbed => "others used the device",
        Verdict::Missing => "only in one",
    }
}

/// The verdict on the headline in a sentence.
fn sentence(comparison: &Comparison, row: &Row, names: [&str; 2]) -> String {
    let [first, second] = names;
    let [runs, other_runs] = comparison.runs;
    let work = comparison.work;
    let basis = match row.basis {
        Basis::Runs => format!("{runs} and {other_runs} runs"),
        Basis::Seconds => {
            "from the seconds of one run each: other runs may differ by more; --repeat tells".into()
        }
        Basis::Counts => "counted".into(),
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
        Verdict::Disturbed => "others used the device, so it is not known".into(),
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
