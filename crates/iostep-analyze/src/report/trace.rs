//! The summary of a trace as a report: what `iostep trace` and `iostep report` print, and the tables
//! of its page.

mod comparison;
pub(in crate::report) mod owners;
pub(in crate::report) mod requests;

use iostep_model::manifest::Check;
use iostep_model::printable;

use super::document::{Block, Cell, Detail, Document, Section, Table};
use super::quantity::{self, bytes, count, percent};
use super::text::Style;
use crate::stats::amount::ratio;
use crate::stats::{Amount, Split, Stage, Summary, overview};

pub use comparison::document as comparison;

/// The line that comes first if a trace is not whole: `CHECK FAILED: lost 312 events; ...`.
pub fn complaint_of(check: &Check) -> Option<String> {
    let complaint = overview::complaint(check)?;
    Some(format!("CHECK FAILED: {}", printable(&complaint)))
}

/// What matters of a summary on a screen, or all of it. The first line is the failed self-check, if
/// it failed.
pub fn render(summary: &Summary, detail: Detail, style: Style) -> String {
    let mut text = String::new();
    if let Some(complaint) = complaint_of(&summary.overview.check) {
        text.push_str(&(style.alarm(&complaint) + "\n"));
    }
    text.push_str(&head(summary, style));
    let tables = Document::of(tables(summary, detail)).text(detail, style);
    if !tables.is_empty() {
        text.push_str(&format!("\n{tables}"));
    }
    if detail == Detail::Brief && !summary.totals.is_empty() {
        text.push_str("--full has every table and row\n");
    }
    text
}

fn tables(summary: &Summary, detail: Detail) -> Section {
    let mut body = Section::default();
    body.push(Block::Table(sums(summary)));
    let mut full = vec![requests::totals(summary)];
    full.extend(requests::distributions(summary));
    full.push(requests::rewrites(summary));
    let full = full.into_iter().map(Block::Table);
    full.for_each(|table| body.push_from(Detail::Full, table));
    body.push(Block::Table(owners::files(summary)));
    body.push(Block::Table(owners::processes(summary)));
    body.push(Block::Table(owners::sync_kinds(summary)));
    body.push_from(Detail::Full, Block::Table(owners::slowest_syncs(summary)));
    body.push(Block::Table(owners::joj(summary)));
    let latencies = summary.latencies.iter();
    body.push(Block::Table(match detail {
        Detail::Brief => requests::latencies(
            "Latency of the device, from issue to completion",
            latencies.filter(|latency| latency.stage == Stage::IssueToComplete),
            false,
        ),
        _ => requests::latencies("Latency", latencies, true),
    }));
    body.push_from(Detail::Full, Block::Table(requests::interrupts(summary)));
    body
}

/// A direction of transfer, by name.
type Side = (&'static str, fn(&Split) -> Amount);
const WRITTEN: Side = ("written", |split| split.write);
const READ: Side = ("read", |split| split.read);

/// Bytes read and written, of what, and what journaling of journal took of them.
fn sums(summary: &Summary) -> Table {
    let all = summary.all();
    let layers: Vec<_> = summary
        .layers
        .iter()
        .filter(|layer| !layer.amounts.is_empty())
        .collect();
    let mut columns = vec!["".to_owned(), ">requests".into(), ">bytes".into()];
    columns.extend(layers.iter().map(|layer| format!(">{}", layer.of.name())));
    let sides = [WRITTEN, READ].into_iter();
    let sides = sides.map(|(name, side)| (name, side, side(&all)));
    let rows = sides
        .filter(|(.., sum)| sum.requests > 0)
        .map(|(name, side, sum)| {
            let mut row = vec![
                Cell::text(name),
                Cell::count(sum.requests),
                Cell::bytes(sum.bytes),
            ];
            row.extend(layers.iter().map(|layer| {
                let part = side(&layer.amounts).bytes;
                let share = ratio(part, sum.bytes).unwrap_or(0.0) * 100.0;
                Cell::text(format!("{} ({share:.0} %)", bytes(part)))
            }));
            row
        });
    let mut table = Table::new("", columns).rows(rows);
    if summary.barriers.flushes > 0 {
        let flushes = count(summary.barriers.flushes);
        table.lines.push(format!("flushes {flushes}"));
    }
    let joj = &summary.joj;
    if !joj.files.is_empty() {
        table.lines.push(format!(
            "journaling of journal {}: {} of data and journal",
            bytes(joj.joj_bytes),
            percent(joj.joj_share),
        ));
    }
    table
}

fn head(summary: &Summary, style: Style) -> String {
    let overview = &summary.overview;
    let filesystem = match &overview.filesystem {
        Some(kind) => kind.clone(),
        None => "no filesystem".into(),
    };
    let mut text = format!(
        "{} {}, {}; kernel {}, {}; {}\n",
        style.bold(&printable(&overview.device)),
        bytes(overview.device_bytes),
        printable(&filesystem),
        printable(&overview.kernel),
        overview.backend.name(),
        quantity::duration(overview.duration_ns),
    );
    if let Some(argv) = &overview.command {
        let status = match (overview.exit_status, overview.signal) {
            (_, Some(signal)) => format!("killed by signal {signal}"),
            (Some(status), None) => format!("exit status {status}"),
            (None, None) => "did not end".into(),
        };
        let room = style
            .columns
            .saturating_sub("command:  ()…".chars().count() + status.len());
        let command = one_line(&argv.join(" "), room);
        text.push_str(&format!("command: {command} ({status})\n"));
    }
    if overview.passed {
        text.push_str("check passed: no event lost, no sum disagrees\n");
    }
    text.push_str(&notes(summary));
    if summary.totals.is_empty() {
        let duration = quantity::duration(overview.duration_ns);
        text.push_str(&format!("no I/O in {duration}\n"));
    }
    text
}

/// The beginning of a command line: scripts given with `-c` may be long.
fn one_line(command: &str, characters: usize) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", printable(&line[..end])),
        None => printable(&line).into(),
    }
}

/// What a reader has to know before believing the numbers.
fn notes(summary: &Summary) -> String {
    let overview = &summary.overview;
    let mut notes = Vec::new();
    if overview.state == iostep_model::manifest::State::Recovered {
        notes.push("the recorder was killed; this is what it had written".to_owned());
    }
    if overview.failed_requests > 0 {
        let failed = count(overview.failed_requests);
        notes.push(format!("requests that the device failed: {failed}"));
    }
    if overview.unfinished_requests > 0 {
        let open = count(overview.unfinished_requests);
        notes.push(format!("requests under way at the end: {open}"));
    }
    if overview.check.late_completions > 0 {
        let late = count(overview.check.late_completions);
        notes.push(format!(
            "completions told late, whose latency is an upper bound: {late}"
        ));
    }
    if overview.check.unseen_calls > 0 {
        let unseen = count(overview.check.unseen_calls);
        notes.push(format!(
            "system calls that were not looked at; whether a sync call was among them, only its \
             filesystem told: {unseen}"
        ));
    }
    notes.extend(overview.check.notes.iter().cloned());
    if !summary.tracer.is_empty() {
        notes.push(format!(
            "the tracer's own I/O, counted nowhere below: {} read, {} written",
            bytes(summary.tracer.read.bytes),
            bytes(summary.tracer.write.bytes),
        ));
    }
    notes
        .into_iter()
        .map(|note| format!("note: {note}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_summary_reads_well() {
        let summary = Summary::of(&fixture::sqlite_on_ext4(120));
        insta::assert_snapshot!(render(&summary, Detail::Full, Style::default()));
    }

    #[test]
    fn what_matters_fits_a_screen() {
        let mut trace = fixture::sqlite_on_ext4(400);
        let file = trace.files[0].clone();
        for number in 0..50 {
            let mut file = file.clone();
            file.path = Some(format!("/app/{}/{number}.db", "deep/".repeat(30)));
            file.key.inode += 1000 + number;
            trace.files.push(file);
        }
        let files = trace.files.len() as u32;
        for (number, segment) in (0..).zip(&mut trace.segments) {
            segment.file = segment.file.map(|file| file + number * 7 % (files - file));
        }
        let command = trace.manifest.command.as_mut().expect("a command");
        command.argv.push("an-argument ".repeat(20));
        let style = Style {
            columns: 80,
            ..Style::default()
        };
        let text = render(&Summary::of(&trace), Detail::Brief, style);
        assert!((24..=39).contains(&text.lines().count()), "{text}");
        let wide = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{text}");
        let begin: Vec<&str> = text.lines().take(9).map(str::trim_start).collect();
        assert!(begin[2].starts_with("check passed: "), "{text}");
        assert!(begin[5].starts_with("written "), "{text}");
        assert!(begin[8].starts_with("journaling of journal "), "{text}");
    }

    #[test]
    fn an_empty_summary_is_its_head() {
        let summary = Summary::of(&fixture::empty());
        insta::assert_snapshot!(render(&summary, Detail::Brief, Style::default()));
    }

    #[test]
    fn a_failed_check_is_the_first_line() {
        let mut trace = fixture::sqlite_on_ext4(10);
        trace.manifest.check.lost_events = 312;
        trace.manifest.check.differences =
            vec!["device counted 40960 written bytes more than were completed".into()];
        let text = render(&Summary::of(&trace), Detail::Brief, Style::default());
        let expected = "CHECK FAILED: lost 312 events; \
                        device counted 40960 written bytes more than were completed";
        assert_eq!(text.lines().next(), Some(expected));
    }

    #[test]
    fn a_long_command_is_cut_at_a_character() {
        assert_eq!(one_line("sh -c  a\nb", 100), "sh -c a b");
        let line = one_line(&"ä".repeat(101), 100);
        assert_eq!(line.chars().count(), 101);
        assert!(line.ends_with("ä…"));
    }

    #[test]
    fn escapes_are_only_in_coloured_text() {
        let mut trace = fixture::sqlite_on_ext4(40);
        trace.files[0].path = Some("/a\u{1b}[2Jb".into());
        trace.processes[0].comm = "x\u{1b}c".into();
        let summary = Summary::of(&trace);
        assert!(!render(&summary, Detail::Brief, Style::default()).contains('\u{1b}'));
        let coloured = Style {
            colour: true,
            ..Style::default()
        };
        assert!(render(&summary, Detail::Brief, coloured).contains("\u{1b}[1m"));
    }
}
