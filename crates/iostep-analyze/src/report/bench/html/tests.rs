use iostep_model::bench::{Document, Failure, Job, Latency, Run, RunState, Warning};
use iostep_model::pragma::Journal;

use crate::bench::{Summary, fixture};

const HOSTILE: &str = "</script></title><img src=x onerror=alert(1)>\"'--><!--";

fn page(documents: impl IntoIterator<Item = Document>) -> String {
    let summarised = documents.into_iter().map(|document| {
        let summary = Summary::of(&document);
        (document, summary)
    });
    let page = super::render(&summarised.collect::<Vec<_>>());
    well_formed(&page);
    page
}

/// Every element that is opened is closed, in order, and no attribute is left open.
pub(in crate::report) fn well_formed(page: &str) {
    const VOID: [&str; 2] = ["meta", "line"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!doctype html>").expect("a doctype");
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let (tag, after) = rest.split_once('>').expect("the end of a tag");
        rest = after;
        assert!(!tag.contains('<'), "{tag}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next();
        let name = name.expect("a name");
        match tag.strip_prefix('/') {
            Some(_) => assert_eq!(open.pop(), Some(name), "{tag}"),
            None if VOID.contains(&name) || tag.ends_with('/') => {}
            None => open.push(name),
        }
        // What is inside of these is no markup.
        if let Some("style" | "script") = open.last().copied() {
            rest = &rest[rest.find("</").expect("the end of it")..];
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// The figure under this heading.
fn figure<'a>(page: &'a str, title: &str) -> &'a str {
    let start = page.find(&format!("<h3>{title}</h3>")).expect("the figure");
    let text = &page[start..];
    &text[..text.find("</figure>").expect("its end")]
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
    assert!(figure(&page, "operations per second").contains("run 1, second 7: 1,020 operations/s"));
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
        let p99 = super::figure::nanoseconds(latency.p99_ns as f64);
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
    let bars = figure(&page, "throughput of each job");
    assert_eq!(bars.matches("<path class=\"bar\"").count(), 3);
    assert_eq!(bars.matches("<path class=\"whisker\"").count(), 3);
    assert!(bars.contains(">2 delete</text>"));
    assert_eq!(page.matches("<details>").count(), 3);
}

#[test]
fn names_from_a_result_never_become_markup() {
    let mut document = fixture::sqlite_wal(1);
    let hostile = || HOSTILE.to_owned();
    document.iostep_version = hostile();
    document.arguments = vec![hostile()];
    document.environment.kernel = hostile();
    document.environment.processor = hostile();
    document.environment.device.as_mut().expect("a device").name = hostile();
    document
        .environment
        .filesystem
        .as_mut()
        .expect("ext4")
        .options = hostile();
    let sqlite = document.environment.sqlite.as_mut().expect("SQLite");
    sqlite.version = hostile();
    sqlite.settings = vec![(hostile(), hostile())];
    document.warnings = vec![
        Warning::Compression { by: hostile() },
        Warning::NotSteady {
            run: 1,
            reason: hostile(),
        },
    ];
    document.runs[0].state = RunState::Failed;
    document.runs[0].failures = vec![Failure {
        thread: 0,
        operation: 3,
        attempt: hostile(),
        reason: hostile(),
    }];
    let mut other = document.clone();
    let Job::Sqlite(job) = &mut other.job else {
        panic!("a SQLite job")
    };
    job.directory = HOSTILE.into();
    for page in [page([document.clone()]), page([other, document])] {
        assert!(!page.contains("<img"));
        assert!(!page.contains("<!--") && !page.contains("-->"));
        assert_eq!(page.matches("<script").count(), 1);
        assert!(page.contains("role=\"alert\""));
    }
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
    assert!(super::render(&[]).contains("0 jobs"));
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

#[test]
fn the_page_asks_for_nothing_from_elsewhere() {
    let page = page([fixture::sqlite_wal(2), fixture::write_fdatasync(1)]);
    for reference in ["src=", "href=", "url(", "@import", "import(", "fetch("] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.contains("default-src 'none'"));
}
