//! A trace of system calls as text: what `iostep trace-info` prints.

use iostep_model::printable;

use crate::report::quantity::{bytes, count, duration, percent, seconds};
use crate::report::text::Style;
use crate::report::text::grid::grid;
use crate::syscalls::{CallInfo, FileInfo, Info, Source, Totals};

/// Reasons to leave something out that are shown; the rest is in JSON.
const MOST_REASONS: usize = 4;

/// The whole text: what is missing first. `calls`: the table of calls too; the table of files is
/// there if the numbers are.
pub fn render(info: &Info, title: &str, calls: bool, style: Style) -> String {
    let mut text = String::new();
    for complaint in complaints(info) {
        text.push_str(&style.alarm(&complaint));
        text.push('\n');
    }
    text.push_str(&format!("{}\n", style.bold(&printable(title))));
    for (name, value) in rows(info) {
        text.push_str(&format!(" {name:<10} {value}\n"));
    }
    if calls {
        text.push_str(&call_table(&info.calls, style));
    }
    if let Some(files) = &info.files {
        text.push_str(&file_table(files, style));
    }
    text
}

/// What makes the trace less than it seems, a line each.
fn complaints(info: &Info) -> Vec<String> {
    let mut complaints = Vec::new();
    if info.lost > 0 {
        let lost = count(info.lost);
        complaints.push(format!(
            "LOST: the recorder lost {lost} events; the trace has holes"
        ));
    }
    if let Some(line) = info.cut_at_line {
        complaints.push(format!(
            "CUT OFF: the trace stops at line {line} without its end"
        ));
    }
    if info.interrupted {
        complaints.push("INTERRUPTED: only the beginning was read".to_owned());
    }
    complaints
}

fn rows(info: &Info) -> Vec<(&'static str, String)> {
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
    known
        .map(|(name, text)| (name, printable(text).into_owned()))
        .collect()
}

/// How many lines, or events, and where they went.
fn lines(source: &Source) -> String {
    let lines = source.kept + source.left_out;
    let reasons = source.left_out_because.iter().take(MOST_REASONS);
    let reasons: Vec<_> = reasons
        .map(|(reason, many)| format!("{} {}", printable(reason), count(*many)))
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

fn call_table(calls: &[CallInfo], style: Style) -> String {
    let mut table = grid(
        style,
        &["call", ">calls", ">failed", ">bytes", ">time", ">longest"],
    );
    for row in calls {
        table.row([
            row.syscall.name().to_owned(),
            count(row.calls),
            count(row.failed),
            bytes(row.bytes),
            duration(row.total_ns),
            duration(row.longest_ns),
        ]);
    }
    table.untitled()
}

fn file_table(files: &[FileInfo], style: Style) -> String {
    let names = [
        ">calls", ">opens", ">reads", ">read", ">writes", ">written", ">syncs", ">time", "~file",
    ];
    let mut table = grid(style, &names);
    for row in files {
        table.row([
            count(row.calls),
            count(row.opens),
            count(row.reads),
            bytes(row.read_bytes),
            count(row.writes),
            bytes(row.written_bytes),
            count(row.syncs),
            duration(row.call_ns),
            printable(&row.path).into_owned(),
        ]);
    }
    table.untitled()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscalls::Before;

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
        let text = render(&info, "x.trace", false, Style::default());
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
