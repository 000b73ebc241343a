//! Tables as Markdown, which is also what the terminal gets, and as JSON.

use std::fmt::Write;

use serde::Serialize;

use crate::bench::{Pace, described};
use crate::goal::{Verdict, ratio};
use crate::sample::Sample;
use crate::stats::{Spread, column};
use crate::table::Table;

/// A table with its figures.
#[derive(Debug, Serialize)]
pub struct Measured {
    pub name: String,
    /// What it is about.
    pub title: String,
    /// The share of the CPUs that others used in user mode, in percent.
    pub others_percent: Option<f64>,
    /// Its lines.
    pub rows: Vec<MeasuredRow>,
}

/// A line with its figures.
#[derive(Debug, Serialize)]
pub struct MeasuredRow {
    label: String,
    command: String,
    paper: &'static str,
    per_second: Option<Spread>,
    ratio: Option<Spread>,
    p50_us: Option<Spread>,
    slowest_ms: Option<Spread>,
    kb: Option<Spread>,
    flushes: Option<Spread>,
    note: Option<String>,
    verdicts: Vec<Verdict>,
    samples: Vec<Sample>,
}

impl Measured {
    /// Sums up the samples of a table.
    pub fn new(table: &Table, samples: Vec<Vec<Sample>>, pace: &Pace) -> Measured {
        let rows = table.rows.iter().enumerate().map(|(number, row)| {
            let own = &samples[number];
            let of = |get: fn(&Sample) -> Option<f64>| Spread::of(column(own, get));
            let rate = |s: &Sample| Some(s.per_second);
            MeasuredRow {
                label: row.label.clone(),
                command: described(row, pace),
                paper: row.paper,
                per_second: of(rate),
                ratio: row
                    .base
                    .filter(|base| *base != number)
                    .and_then(|base| ratio(number, base, &samples, rate)),
                p50_us: of(|s| Some(s.p50_us)),
                slowest_ms: of(|s| Some(s.slowest_ms)),
                kb: of(|s| s.kb),
                flushes: of(|s| s.flushes),
                note: own.last().and_then(|sample| sample.note.clone()),
                verdicts: row
                    .goals
                    .iter()
                    .map(|g| g.judge(number, &samples))
                    .collect(),
                samples: own.clone(),
            }
        });
        Measured {
            name: table.name.clone(),
            title: table.title.clone(),
            others_percent: None,
            rows: rows.collect(),
        }
    }

    /// The table, and its goals below.
    pub fn markdown(&self) -> String {
        let has_paper = self.rows.iter().any(|row| !row.paper.is_empty());
        let notes = || self.rows.iter().filter_map(|row| row.note.as_deref());
        let has_note = notes().any(|note| Some(note) != notes().next() || !note.ends_with(" W"));
        let mut head = vec![
            "",
            "1/s",
            ": stock",
            "p50, µs",
            "slowest, ms",
            "KB each",
            "flushes each",
        ];
        head.extend(has_paper.then_some("paper"));
        head.extend(has_note.then_some("log"));
        let mut text = line(&head);
        text += &format!("|{}\n", "---|".repeat(head.len()));
        for row in &self.rows {
            let mut cells = row.cells();
            cells.extend(has_paper.then(|| row.paper.to_owned()));
            cells.extend(has_note.then(|| row.note.clone().unwrap_or_default()));
            text += &line(&cells);
        }
        text += &self.goals();
        if let Some(percent) = self.others_percent {
            let _ = write!(
                text,
                "\nOthers used {percent:.0} % of the CPUs meanwhile.\n"
            );
        }
        text
    }

    fn goals(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            for verdict in &row.verdicts {
                let separator = if text.is_empty() { "\n" } else { "" };
                let _ = writeln!(
                    text,
                    "{separator}- {}: {}: **{}**, {}",
                    row.label,
                    verdict.goal,
                    verdict.word(),
                    verdict.measured
                );
            }
        }
        text
    }
}

impl MeasuredRow {
    fn cells(&self) -> Vec<String> {
        let text = |spread: Option<Spread>, digits: usize| match spread {
            Some(s) => format!("{:.digits$}", s.median),
            None => String::new(),
        };
        let range = |spread: Option<Spread>, digits: usize| match spread {
            Some(s) => format!(
                "{:.digits$} ({:.digits$} to {:.digits$})",
                s.median, s.least, s.most
            ),
            None => String::new(),
        };
        vec![
            self.label.clone(),
            range(self.per_second, 0),
            range(self.ratio, 2),
            text(self.p50_us, 1),
            text(self.slowest_ms, 1),
            text(self.kb, 2),
            text(self.flushes, 3),
        ]
    }
}

fn line(cells: &[impl AsRef<str>]) -> String {
    let mut text = "|".to_owned();
    for cell in cells.iter().map(AsRef::as_ref) {
        text += if cell.is_empty() { "" } else { " " };
        text += cell;
        text += " |";
    }
    text + "\n"
}

/// From here on, in percent, others' use of the CPUs spoils the figures.
const BUSY_PERCENT: f64 = 5.0;

/// What has to be said of the figures, if anything.
fn caution(tables: &[Measured]) -> String {
    let others = tables.iter().filter_map(|table| table.others_percent);
    match others.fold(0.0, f64::max) {
        most if most > BUSY_PERCENT => format!(
            "**Other programs used up to {most:.0} % of the CPUs, so these figures say little:** \
             repeat them on a quiet machine.\n\n"
        ),
        _ => String::new(),
    }
}

/// All goals of all tables, those that are missed first.
pub fn summary(tables: &[Measured]) -> String {
    let mut rows: Vec<(&'static str, String)> = Vec::new();
    for table in tables {
        for row in &table.rows {
            for verdict in &row.verdicts {
                let cells = [
                    table.name.as_str(),
                    &row.label,
                    &verdict.goal,
                    &verdict.measured,
                    verdict.word(),
                ];
                rows.push((verdict.word(), line(&cells)));
            }
        }
    }
    // Stable: within a verdict as in the tables.
    rows.sort_by_key(|(word, _)| *word == "met");
    let met = rows.iter().filter(|(word, _)| *word == "met").count();
    let mut text = caution(tables);
    text += &format!("{met} of {} goals are met.\n\n", rows.len());
    text += &line(&["table", "row", "goal", "measured", "verdict"]);
    text += "|---|---|---|---|---|\n";
    for (_, row) in rows {
        text += &row;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::Goal;
    use crate::table::{Place, Work};

    const PACE: Pace = Pace {
        rounds: 2,
        ms: 1,
        long_ms: 1,
        count: 1,
    };

    fn sample(per_second: f64, note: Option<&str>) -> Sample {
        Sample {
            per_second,
            p50_us: 50.0,
            slowest_ms: 2.0,
            kb: Some(4.25),
            flushes: Some(1.0),
            note: note.map(str::to_owned),
        }
    }

    fn measured(note: Option<&str>) -> Measured {
        let mut table = Table::new("t", Place::Tmpfs, "A title");
        let stock = table.row("stock", Work::Floor("dsync"), None);
        table.row("waldio", Work::Floor("dsync"), Some(stock));
        let faster = |by| Goal::Faster {
            than: 0,
            name: "stock",
            by,
            floor: Vec::new(),
        };
        table.goal(faster(2.0));
        table.goal(faster(3.0));
        let samples = vec![
            vec![sample(100.0, None), sample(100.0, None)],
            vec![sample(200.0, note), sample(220.0, note)],
        ];
        Measured::new(&table, samples, &PACE)
    }

    #[test]
    fn a_table_has_medians_spread_and_verdicts() {
        let expected = "\
| | 1/s | : stock | p50, µs | slowest, ms | KB each | flushes each |
|---|---|---|---|---|---|---|
| stock | 100 (100 to 100) | | 50.0 | 2.0 | 4.25 | 1.000 |
| waldio | 210 (200 to 220) | 2.10 (2.00 to 2.20) | 50.0 | 2.0 | 4.25 | 1.000 |

- waldio: at least 2.00 times the commits/s of stock: **met**, 2.10 times (2.00 to 2.20)
- waldio: at least 3.00 times the commits/s of stock: **missed**, 2.10 times (2.00 to 2.20)
";
        assert_eq!(measured(Some("layout W")).markdown(), expected);
    }

    #[test]
    fn a_stock_log_is_shown() {
        let text = measured(Some("stock log: tmpfs has no disk")).markdown();
        assert!(text.contains("| log |"), "{text}");
        assert!(text.contains("| stock log: tmpfs has no disk |"), "{text}");
    }

    #[test]
    fn the_summary_begins_with_what_is_missed() {
        let text = summary(&[measured(None)]);
        assert!(text.starts_with("1 of 2 goals are met.\n"), "{text}");
        let missed = text.find("| missed |").expect("a missed goal");
        assert!(missed < text.find("| met |").expect("a met goal"));
    }

    #[test]
    fn the_summary_says_that_the_machine_was_busy() {
        let mut table = measured(None);
        table.others_percent = Some(4.0);
        assert!(summary(&[table]).starts_with("1 of 2"));
        let mut table = measured(None);
        table.others_percent = Some(42.0);
        let text = summary(&[table]);
        assert!(
            text.starts_with("**Other programs used up to 42 % of the CPUs"),
            "{text}"
        );
    }
}
