//! What is shown of results made by hand.

use iostep_model::bench::{
    Document, Failure, Job, Latency, Run, Sync, Verification, WaldioRun, Warning,
};
use iostep_model::disk::{Bus, Disk, Health};
use iostep_model::pragma::Journal;
use iostep_report::quantity::Show as _;
use iostep_report::text::Style;

use super::*;
use crate::bench::{Comparison, fixture};
use crate::report::page::{figure, well_formed};

fn told(result: &Document, verbose: bool) -> String {
    document(result, &Summary::of(result), verbose).text(Detail::Full, Style::default())
}

fn shown(document: &Document) -> String {
    told(document, false)
}

#[test]
fn one_run_reads_well() {
    insta::assert_snapshot!(shown(&fixture::write_fdatasync(1)));
}

#[test]
fn the_result_is_the_first_line_and_settings_of_sqlite_are_verbose() {
    let document = fixture::sqlite_wal(1);
    let text = shown(&document);
    let first = text.lines().next().expect("a line");
    assert!(first.contains(" transactions/s, p50 "), "{first}");
    assert!(
        first.ends_with("; each 12 KiB written, 1.00 flushes"),
        "{first}"
    );
    assert!(!text.contains("page_size 4096"), "{text}");
    let verbose = told(&document, true);
    assert!(verbose.contains("page_size 4096"), "{verbose}");
    let mut failed = fixture::write_fdatasync(1);
    failed.runs[0].state = RunState::Failed;
    failed.runs[0].device = None;
    let text = shown(&failed);
    let mut lines = text.lines();
    assert!(
        lines
            .next()
            .is_some_and(|line| line.starts_with("PARTIAL: ")),
        "{text}"
    );
    assert_eq!(
        lines.next(),
        Some("998 IOPS, 3.90 MiB/s, p50 2.00 ms, p99 2.11 ms")
    );
}

#[test]
fn a_longer_run_tells_how_well_its_seconds_know_the_mean() {
    let mut document = fixture::write_fdatasync(1);
    document.runs[0].seconds.extend_from_within(..6);
    let text = shown(&document);
    let note = text.lines().find(|line| line.contains("whole seconds"));
    let interval = Summary::of(&document).runs[0]
        .per_second
        .and_then(|series| series.interval)
        .expect("twelve seconds");
    let ends = format!("{:.0} to {:.0}", interval.low, interval.high);
    let words = note.expect("a note").replace(',', "");
    assert!(
        words.contains(&format!("12 whole seconds: {ends} operations/s")),
        "{words}"
    );
}

#[test]
fn several_runs_have_a_line_each_and_a_median() {
    let mut document = fixture::sqlite_wal(4);
    document.warnings = vec![Warning::OnBattery];
    insta::assert_snapshot!(shown(&document));
}

#[test]
fn waldio_tells_what_it_did_and_why_it_did_not() {
    let mut document = fixture::sqlite_wal(1);
    let counters = [("commits", 400), ("durable_writes", 399), ("escapes", 0)];
    document.runs[0].waldio = Some(WaldioRun {
        layouts: vec!["W".into(), "stock".into()],
        sync: "full".into(),
        reasons: vec!["tmpfs has no disk".into()],
        counters: counters.map(|(name, n)| (name.to_owned(), n)).into(),
    });
    document.warnings = vec![Warning::StockLog {
        reason: "tmpfs has no disk".into(),
    }];
    let text = shown(&document);
    let line = "waldio: layout W and stock, sync full: 400 commits, 399 durable writes\n";
    assert!(text.contains(line), "{text}");
    assert!(
        text.contains("waldio left the log to SQLite: tmpfs has no disk; take ext4"),
        "{text}"
    );
}

#[test]
fn batch_atomic_writes_are_told_with_how_many_commits_they_made() {
    let mut document = fixture::sqlite_wal(1);
    assert!(!shown(&document).contains("batch atomic"));
    let Job::Sqlite(job) = &mut document.job else {
        panic!("a job of SQLite");
    };
    (job.journal, job.batch_atomic) = (Journal::Delete, true);
    document.runs[0].atomic_commits = Some(1400);
    let text = shown(&document);
    for told in [
        "batch atomic writes in place of the journal",
        "batch atomic writes: 1,400 commits\n",
    ] {
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn what_failed_comes_first_with_its_number() {
    let mut document = fixture::write_fdatasync(2);
    document.runs[1].state = RunState::Failed;
    document.runs[1].failures = vec![Failure {
        thread: 1,
        operation: 1234,
        attempt: "write of 4096 bytes at 12288 of /mnt/test/\u{1b}[2J".into(),
        reason: "No space left on device".into(),
    }];
    document.runs[0].verification = Some(Verification {
        compared: 10,
        wrong: 1,
        examples: vec!["record 3 of file-0".into()],
    });
    let text = shown(&document);
    let lines: Vec<&str> = text.lines().take(3).collect();
    assert_eq!(
        lines,
        [
            "PARTIAL: run 2 failed; what is here is what was done until then, 6,422 operations",
            "WRONG CONTENT: run 1: 1 of 10 that were read back; record 3 of file-0",
            "FAILED: run 2, thread 1, operation 1,234: write of 4096 bytes at 12288 of \
             /mnt/test/\\x1b[2J: No space left on device",
        ]
    );
}

#[test]
fn a_document_without_runs_says_so() {
    let text = shown(&fixture::write_fdatasync(0));
    assert!(text.starts_with("NOTHING MEASURED"), "{text}");
}

#[test]
fn the_picture_fits_a_narrow_terminal() {
    let text = shown(&fixture::write_fdatasync(1));
    let plot = text.lines().filter(|line| line.contains(" |"));
    assert!(plot.clone().count() == 5 && plot.clone().all(|line| line.chars().count() <= 80));
}

#[test]
fn two_results_are_compared_in_a_sentence_and_a_table() {
    let first = fixture::write_fdatasync(5);
    let mut second = first.clone();
    let Job::File(job) = &mut second.job else {
        panic!("a file job")
    };
    job.sync = Sync::Fsync;
    for run in &mut second.runs {
        run.elapsed_ns = run.elapsed_ns * 5 / 4;
    }
    let compared = Comparison::of(&first, &second).expect("the same work");
    let text =
        comparison(&compared, None, ["a.json", "b.json"]).text(Detail::Full, Style::default());
    insta::assert_snapshot!(text);
}

#[test]
fn too_few_runs_are_called_so() {
    let document = fixture::write_fdatasync(3);
    let compared = Comparison::of(&document, &document).expect("the same work");
    let text = comparison(&compared, None, ["a", "b"]).text(Detail::Full, Style::default());
    assert!(
        text.starts_with("too few runs to tell (3 and 3): repeat both at least 4 times"),
        "{text}"
    );
}

#[test]
fn one_run_each_is_a_weaker_statement() {
    let mut document = fixture::write_fdatasync(1);
    let seconds = &mut document.runs[0].seconds;
    seconds.extend_from_within(..6);
    let compared = Comparison::of(&document, &document).expect("the same work");
    let text = comparison(&compared, None, ["a", "b"]).text(Detail::Full, Style::default());
    let first = text.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("no difference found; one of more than"),
        "{first}"
    );
    assert!(
        first.contains("from the seconds of one run each"),
        "{first}"
    );
}

#[test]
fn a_matrix_has_a_row_for_each_cell_and_a_column_for_what_varies() {
    let first = fixture::write_fdatasync(3);
    let mut second = first.clone();
    let Job::File(job) = &mut second.job else {
        panic!("a file job")
    };
    job.sync = Sync::Fsync;
    job.threads = 8;
    second.runs[2].state = RunState::Interrupted;
    let summaries = [Summary::of(&first), Summary::of(&second)];
    let cells: Vec<Cell<'_>> = [("sync-0", &first), ("sync-1", &second)]
        .into_iter()
        .zip(&summaries)
        .map(|((name, document), summary)| Cell {
            name,
            document,
            summary,
        })
        .collect();
    insta::assert_snapshot!(matrix(&cells).text(Detail::Full, Style::default()));
    assert_eq!(matrix(&[]).text(Detail::Full, Style::default()), "");
}

/// The greatest numbers wherever a file may hold any.
fn damaged() -> Document {
    let mut document = fixture::write_fdatasync(5);
    for run in &mut document.runs {
        let greatest = iostep_model::manifest::Totals {
            ios: u64::MAX,
            bytes: u64::MAX,
        };
        let counters = iostep_model::manifest::Counters {
            read: greatest,
            write: greatest,
            discard: greatest,
            flush: greatest,
        };
        (run.operations, run.bytes, run.idle_ns) = (u64::MAX, u64::MAX, u64::MAX);
        (run.cpu.user_ns, run.cpu.system_ns) = (u64::MAX, u64::MAX);
        run.device = Some(counters);
        for second in &mut run.seconds {
            second.length_ns = u64::MAX;
            second.operations = u64::MAX;
            second.latency_sum_ns = u64::MAX;
            second.device = Some(counters);
        }
        for thread in &mut run.threads {
            thread.operations = u64::MAX;
            thread.elapsed_ns = u64::MAX;
        }
    }
    document.runs[2].elapsed_ns = 0;
    document.runs[3].seconds.clear();
    document.runs[3].threads.clear();
    document.runs[4].latencies.clear();
    document
}

#[test]
fn a_disk_is_named_in_a_line_and_its_name_steers_nothing() {
    let mut document = fixture::write_fdatasync(1);
    document.environment.disks = vec![Disk {
        name: "nvme0n1".into(),
        bus: Some(Bus::Nvme),
        vendor: Some("0x144d".into()),
        model: Some("<b>\x1b[2JSSD".into()),
        firmware: Some("5B2Q".into()),
        capacity_bytes: Some(1 << 40),
        health_before: Some(Health {
            used_percent: Some(3),
            ..Health::default()
        }),
        ..Disk::default()
    }];
    let text = shown(&document);
    let disk = "; below it nvme0n1: <b>\\x1b[2JSSD (NVMe, vendor 0x144d, firmware 5B2Q, 1 TiB)\n";
    assert!(text.contains(disk), "{text}");
    assert!(
        text.contains("health of nvme0n1: 3 % of its life used\n"),
        "{text}"
    );
    let mut other = document.clone();
    other.environment.disks[0].model = Some("T7".into());
    let compared = Comparison::of(&document, &other).expect("the same work");
    let text = comparison(&compared, None, ["a", "b"]).text(Detail::Full, Style::default());
    let first = text.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("DIFFERENT DEVICES: a on nvme0n1: <b>"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "{text}");
    let page = page([document]);
    assert!(
        page.contains("nvme0n1: &#60;b&#62;\\x1b[2JSSD (NVMe"),
        "{page}"
    );
}

#[test]
fn whatever_a_damaged_result_holds_is_shown() {
    let document = damaged();
    let text = shown(&document);
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    for other in [
        damaged(),
        fixture::write_fdatasync(5),
        fixture::write_fdatasync(0),
    ] {
        let compared = Comparison::of(&document, &other).expect("the same work");
        let text = comparison(&compared, None, ["a", "b"]).text(Detail::Full, Style::default());
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}

/// The page of these, each alone or several together.
fn page(results: impl IntoIterator<Item = Document>) -> String {
    let results = results.into_iter().map(|result| {
        let summary = Summary::of(&result);
        (result, summary)
    });
    let page = matrix_page(&results.collect::<Vec<_>>()).html();
    well_formed(&page);
    page
}

#[test]
fn every_second_has_its_mark_in_every_plot_over_time() {
    let document = fixture::write_fdatasync(3);
    let seconds: usize = document.runs.iter().map(|run| run.seconds.len()).sum();
    let page = page([document]);
    for title in [
        "operations per second",
        "time of each operation",
        "device bytes per second",
    ] {
        let figure = figure(&page, title);
        assert_eq!(figure.matches("class=\"zone\"").count(), seconds, "{title}");
        assert_eq!(figure.matches(">run 2</text>").count(), 1, "{title}");
    }
    let rates = figure(&page, "operations per second");
    let rest = "run 1, second 7: 510 operations in the last 500 ms, too short for a rate";
    assert!(
        rates.contains(rest) && rates.contains("run 1, second 6: 990 operations/s"),
        "{rates}"
    );
}

#[test]
fn the_distribution_has_a_line_for_each_step_and_dots_at_its_percentiles() {
    let document = fixture::write_fdatasync(1);
    let summary = Summary::of(&document);
    let page = page([document]);
    let figure = figure(&page, "latency by step");
    assert_eq!(figure.matches("<path class=\"line").count(), 3);
    assert_eq!(figure.matches("<circle").count(), 3 * 4);
    for latency in &summary.runs[0].latencies {
        let p99 = Unit::Nanoseconds.show(latency.p99_ns as f64);
        let dot = format!("{} p99: {p99}<", latency.step.name());
        assert!(figure.contains(&dot), "{dot}");
    }
}

#[test]
fn a_matrix_has_a_row_and_a_bar_for_each_job_and_a_column_for_what_differs() {
    let jobs = [Journal::Wal, Journal::Delete, Journal::Off].map(|journal| {
        let mut document = fixture::sqlite_wal(2);
        let Job::Sqlite(job) = &mut document.job else {
            panic!("a SQLite job")
        };
        job.journal = journal;
        document
    });
    let page = page(jobs);
    let table = &page[..page.find("<figure").expect("the bars")];
    assert_eq!(table.matches("<tr>").count(), 1 + 3);
    assert!(table.contains("sortable") && table.contains(">journal</th>"));
    assert!(!table.contains(">synchronous</th>"));
    assert_eq!(table.matches("number bar write").count(), 3);
    assert!(page.contains("<summary>2 "));
    assert_eq!(page.matches("<details>").count(), 3);
}

#[test]
fn warnings_come_with_their_advice() {
    let mut document = fixture::write_fdatasync(1);
    document.warnings = vec![Warning::OnBattery];
    let page = page([document]);
    assert!(page.contains("the machine runs on its battery <span class=\"advice\">plug it in<"));
}

#[test]
fn whatever_a_damaged_result_holds_there_is_a_page() {
    let mut empty = fixture::write_fdatasync(0);
    empty.environment.device = None;
    empty.environment.filesystem = None;
    let mut odd = fixture::write_fdatasync(2);
    for run in &mut odd.runs {
        empty_some(run);
    }
    let page = page([empty.clone(), odd]);
    let markup = &page[..page.find("<script").expect("a script")];
    assert!(!markup.contains("NaN") && !markup.contains("inf"));
    assert!(matrix_page(&[]).html().contains("0 jobs"));
    let alone = self::page([empty]);
    assert!(!alone.contains("<svg"));
}

/// Zeros and the greatest numbers where a page divides, adds or takes logarithms.
fn empty_some(run: &mut Run) {
    run.elapsed_ns = 0;
    run.operations = 0;
    run.latencies.push(Latency {
        histogram: Default::default(),
        ..run.latencies[0].clone()
    });
    run.seconds[0].length_ns = 0;
    run.seconds[1].operations = 0;
    run.seconds[2].operations = u64::MAX;
    run.seconds[2].latency_sum_ns = 0;
    run.seconds[3].latency_max_ns = u64::MAX;
    run.seconds[4].device = None;
    if let Some(device) = &mut run.seconds[5].device {
        device.write.bytes = u64::MAX;
    }
}
