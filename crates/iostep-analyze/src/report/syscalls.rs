//! A trace of system calls as text: what `iostep trace-info` prints.

use iostep_report::document::{Block, Cell, Document, Section, Table};
use iostep_report::quantity::{bytes, count, duration, percent, seconds};

use crate::syscalls::{CallInfo, FileInfo, Info, Source, Totals};

/// Reasons to leave something out that are shown; the rest is in JSON.
const MOST_REASONS: usize = 4;

/// The report: what is missing first. `with_calls`: the table of calls too; the table of files is
/// there if the numbers are.
pub fn document(info: &Info, title: &str, with_calls: bool) -> Document {
    let mut body = Section::new(title);
    body.alarms = complaints(info);
    let facts = facts(info).into_iter();
    let facts = facts.map(|(name, value)| format!("{name:<10} {value}"));
    body.push(Block::Lines(facts.collect()));
    if with_calls {
        body.push(Block::Table(calls(&info.calls)));
    }
    if let Some(found) = &info.files {
        body.push(Block::Table(files(found)));
    }
    Document::of(body)
}

/// What is missing of recorded calls, which are called so, a line each.
pub(super) fn holes(name: &str, lost: u64, cut_at_line: Option<u64>) -> Vec<String> {
    let lost = (lost > 0).then(|| {
        let lost = count(lost);
        format!("LOST: the recorder lost {lost} events; the {name} has holes")
    });
    let cut =
        cut_at_line.map(|line| format!("CUT OFF: the {name} stops at line {line} without its end"));
    lost.into_iter().chain(cut).collect()
}

/// What makes the trace less than it seems, a line each.
fn complaints(info: &Info) -> Vec<String> {
    let mut complaints = holes("trace", info.lost, info.cut_at_line);
    if info.interrupted {
        complaints.push("INTERRUPTED: only the beginning was read".to_owned());
    }
    complaints
}

fn facts(info: &Info) -> Vec<(&'static str, String)> {
    let mut rows = of_source(&info.source);
    rows.push((
        "run time",
        format!(
            "{} s (exact to {})",
            seconds(info.run_ns),
            duration(info.source.resolution_ns)
        ),
    ));
    rows.push(("lines", lines(&info.source)));
    rows.extend(of_totals(&info.totals));
    let before = &info.before;
    rows.push((
        "before",
        format!(
            "{} files ({}), {} directories, {} links, {} paths without anything; {} of these seen",
            count(before.files),
            bytes(before.bytes),
            count(before.directories),
            count(before.links),
            count(before.absent),
            count(before.seen)
        ),
    ));
    rows
}

fn of_source(source: &Source) -> Vec<(&'static str, String)> {
    let command = source.command.join(" ");
    let texts = [
        ("recorder", &source.recorder),
        ("machine", &source.machine),
        ("command", &command),
    ];
    let known = texts.into_iter().filter(|(_, text)| !text.is_empty());
    known.map(|(name, text)| (name, text.clone())).collect()
}

/// How many lines, or events, and where they went.
fn lines(source: &Source) -> String {
    let lines = source.kept + source.left_out;
    let reasons = source.left_out_because.iter().take(MOST_REASONS);
    let reasons: Vec<_> = reasons
        .map(|(reason, many)| format!("{reason} {}", count(*many)))
        .collect();
    let because = match reasons.is_empty() {
        true => String::new(),
        false => format!(": {}", reasons.join(", ")),
    };
    format!(
        "{}, {} kept ({}), {} left out{because}",
        count(lines),
        count(source.kept),
        percent(Some(source.kept as f64 / lines.max(1) as f64)),
        count(source.left_out)
    )
}

fn of_totals(totals: &Totals) -> [(&'static str, String); 6] {
    let calls = format!(
        "{}: {} failed, {} never returned, {} with unknown result",
        count(totals.calls),
        count(totals.failed),
        count(totals.unfinished),
        count(totals.unknown)
    );
    let threads = format!(
        "{} of {} processes",
        count(totals.threads),
        count(totals.processes)
    );
    let files = format!(
        "{}, opened {} times",
        count(totals.files),
        count(totals.opens)
    );
    let read = format!(
        "{} in {} calls",
        bytes(totals.read_bytes),
        count(totals.reads)
    );
    let written = format!(
        "{} in {} calls, {} syncs",
        bytes(totals.written_bytes),
        count(totals.writes),
        count(totals.syncs)
    );
    [
        ("calls", calls),
        ("threads", threads),
        ("files", files),
        ("read", read),
        ("written", written),
        ("call time", duration(totals.call_ns)),
    ]
}

fn calls(calls: &[CallInfo]) -> Table {
    let columns = ["call", ">calls", ">failed", ">bytes", ">time", ">longest"];
    let rows = calls.iter().map(|row| {
        vec![
            Cell::text(row.syscall.name()),
            Cell::count(row.calls),
            Cell::count(row.failed),
            Cell::bytes(row.bytes),
            Cell::duration(row.total_ns),
            Cell::duration(row.longest_ns),
        ]
    });
    Table::new("", columns).rows(rows)
}

fn files(files: &[FileInfo]) -> Table {
    let columns = [
        ">calls", ">opens", ">reads", ">read", ">writes", ">written", ">syncs", ">time", "~file",
    ];
    let rows = files.iter().map(|row| {
        vec![
            Cell::count(row.calls),
            Cell::count(row.opens),
            Cell::count(row.reads),
            Cell::bytes(row.read_bytes),
            Cell::count(row.writes),
            Cell::bytes(row.written_bytes),
            Cell::count(row.syncs),
            Cell::duration(row.call_ns),
            Cell::text(&row.path),
        ]
    });
    Table::new("", columns).rows(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscalls::Before;
    use iostep_report::document::Detail;
    use iostep_report::text::Style;

    #[test]
    fn losses_come_first_and_nothing_is_obeyed_by_a_terminal() {
        let info = Info {
            lost: 3,
            cut_at_line: Some(7),
            interrupted: true,
            source: Source {
                recorder: "strace\u{1b}[31m".into(),
                left_out_because: vec![("pipe".into(), 5)],
                left_out: 5,
                kept: 15,
                ..Source::default()
            },
            run_ns: 1_500_000_000,
            totals: Totals {
                calls: 15,
                written_bytes: 4096,
                ..Totals::default()
            },
            before: Before::default(),
            calls: Vec::new(),
            files: None,
        };
        let text = document(&info, "x.trace", false).text(Detail::Full, Style::default());
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("LOST: the recorder lost 3"), "{text}");
        assert!(lines[1].starts_with("CUT OFF: the trace stops at line 7"));
        assert!(lines[2].starts_with("INTERRUPTED"));
        assert_eq!(lines[3], "x.trace");
        assert!(!text.contains('\u{1b}'));
        assert!(text.contains(" run time   1.500000000 s"), "{text}");
        assert!(
            text.contains("20, 15 kept (75.0 %), 5 left out: pipe 5"),
            "{text}"
        );
        assert!(text.contains(" written    4 KiB in 0 calls"), "{text}");
    }
}
