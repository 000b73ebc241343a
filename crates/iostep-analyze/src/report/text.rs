//! The summary as text: what `iostep trace` and `iostep report` print.

mod blocks;
pub mod comparison;
pub(crate) mod grid;
mod owners;

use iostep_model::manifest::Check;

use super::quantity::{self, printable};
use crate::stats::{Summary, overview};

/// How text may be decorated, and how wide its tables may be.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Use colours and bold type: for a terminal, unless `NO_COLOR` is set.
    pub colour: bool,
    /// Characters of a line. Names of files are shortened for it, numbers never.
    pub columns: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style {
            colour: false,
            columns: 100,
        }
    }
}

impl Style {
    fn wrap(self, code: &str, text: &str) -> String {
        match self.colour {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }

    /// For titles.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// For what must not be missed.
    pub fn alarm(self, text: &str) -> String {
        self.wrap("1;31", text)
    }
}

/// The line that comes first if a trace is not whole: `CHECK FAILED: lost 312 events; ...`.
pub fn complaint_of(check: &Check) -> Option<String> {
    let complaint = overview::complaint(check)?;
    Some(format!("CHECK FAILED: {}", printable(&complaint)))
}

/// The whole summary. The first line is the failed self-check, if it failed.
pub fn render(summary: &Summary, style: Style) -> String {
    let mut text = String::new();
    if let Some(complaint) = complaint_of(&summary.overview.check) {
        text.push_str(&style.alarm(&complaint));
        text.push('\n');
    }
    text.push_str(&head(summary, style));
    for part in [
        blocks::totals,
        blocks::layers,
        blocks::file_types,
        blocks::modes,
        blocks::sizes,
        blocks::rewrites,
        owners::files,
        owners::processes,
        owners::sync_kinds,
        owners::slowest_syncs,
        owners::joj,
        blocks::latencies,
        blocks::interrupts,
    ] {
        text.push_str(&part(summary, style));
    }
    text
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
        quantity::bytes(overview.device_bytes),
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
        text.push_str(&format!(
            "command: {} ({status})\n",
            one_line(&argv.join(" "))
        ));
    }
    text.push_str(&notes(summary));
    if summary.totals.is_empty() {
        let duration = quantity::duration(overview.duration_ns);
        text.push_str(&format!("no I/O in {duration}\n"));
    }
    text
}

/// The beginning of a command line: scripts given with `-c` may be long.
fn one_line(command: &str) -> String {
    const CHARACTERS: usize = 100;
    let words: Vec<&str> = command.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(CHARACTERS) {
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
        let failed = quantity::count(overview.failed_requests);
        notes.push(format!("requests that the device failed: {failed}"));
    }
    if overview.unfinished_requests > 0 {
        let open = quantity::count(overview.unfinished_requests);
        notes.push(format!("requests under way at the end: {open}"));
    }
    if overview.check.late_completions > 0 {
        let late = quantity::count(overview.check.late_completions);
        notes.push(format!(
            "completions told late, whose latency is an upper bound: {late}"
        ));
    }
    if overview.check.unseen_calls > 0 {
        let unseen = quantity::count(overview.check.unseen_calls);
        notes.push(format!(
            "system calls that were not looked at; whether a sync call was among them, only its \
             filesystem told: {unseen}"
        ));
    }
    notes.extend(overview.check.notes.iter().cloned());
    if !summary.tracer.is_empty() {
        notes.push(format!(
            "the tracer's own I/O, counted nowhere below: {} read, {} written",
            quantity::bytes(summary.tracer.read.bytes),
            quantity::bytes(summary.tracer.write.bytes),
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
        insta::assert_snapshot!(render(&summary, Style::default()));
    }

    #[test]
    fn an_empty_summary_is_its_head() {
        let summary = Summary::of(&fixture::empty());
        insta::assert_snapshot!(render(&summary, Style::default()));
    }

    #[test]
    fn a_failed_check_is_the_first_line() {
        let mut trace = fixture::sqlite_on_ext4(10);
        trace.manifest.check.lost_events = 312;
        trace.manifest.check.differences =
            vec!["device counted 40960 written bytes more than were completed".into()];
        let text = render(&Summary::of(&trace), Style::default());
        let expected = "CHECK FAILED: lost 312 events; \
                        device counted 40960 written bytes more than were completed";
        assert_eq!(text.lines().next(), Some(expected));
    }

    #[test]
    fn a_long_command_is_cut_at_a_character() {
        assert_eq!(one_line("sh -c  a\nb"), "sh -c a b");
        let line = one_line(&"ä".repeat(101));
        assert_eq!(line.chars().count(), 101);
        assert!(line.ends_with("ä…"));
    }

    #[test]
    fn escapes_are_only_in_coloured_text() {
        let mut trace = fixture::sqlite_on_ext4(40);
        trace.files[0].path = Some("/a\u{1b}[2Jb".into());
        trace.processes[0].comm = "x\u{1b}c".into();
        let summary = Summary::of(&trace);
        assert!(!render(&summary, Style::default()).contains('\u{1b}'));
        let coloured = Style {
            colour: true,
            ..Style::default()
        };
        assert!(render(&summary, coloured).contains("\u{1b}[1m"));
    }
}
