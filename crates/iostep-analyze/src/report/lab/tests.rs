use iostep_model::class::Class;
use iostep_model::lab::{CellResult, Medium, State};
use iostep_report::text::Style;

use super::*;
use crate::lab::{fixture, recorded};
use crate::report::page::{figure, well_formed};

const HOSTILE: &str = "</script></title><img src=x onerror=alert(1)>\"'--><!--";

fn page(name: &str, results: &[CellResult]) -> String {
    let page = document(&Report::of(&fixture::lab(name, results), results)).html();
    well_formed(&page);
    page
}

fn text(report: &Report) -> String {
    document(report).text(Detail::Full, Style::default())
}

fn insert(filesystem: &str, switches: &str, rate: u64) -> CellResult {
    let axes = [
        ("filesystem", filesystem),
        ("switches", switches),
        ("operation", "insert"),
    ];
    fixture::at_rate(fixture::cell(&axes), rate)
}

#[test]
fn a_table_has_a_bar_for_each_cell_and_the_papers_beside() {
    let page = page(
        "combined",
        &[
            insert("ext4", "", 1000),
            insert("xfs", "", 800),
            insert("ext4", "F", 1500),
        ],
    );
    let measured = figure(&page, "throughput");
    assert_eq!(measured.matches("<rect class=\"bar").count(), 3);
    assert!(measured.contains("<title>F: 1,500/s</title>"), "{measured}");
    let paper = figure(&page, "throughput, the paper&#39;s");
    assert_eq!(paper.matches("<rect class=\"bar").count(), 3);
    assert!(
        paper.contains("46.0/s, ATC&#39;13 section 7, table 2"),
        "{paper}"
    );
}

#[test]
fn a_single_bar_is_no_chart() {
    let two = page(
        "combined",
        &[insert("ext4", "", 1000), insert("xfs", "", 800)],
    );
    assert!(two.contains("<h3>throughput</h3>"));
    let one = page("combined", &[insert("ext4", "", 1000)]);
    assert!(!one.contains("<h3>throughput</h3>"), "{one}");
    let zero = page(
        "combined",
        &[insert("ext4", "", 1000), insert("xfs", "", 0)],
    );
    assert!(!zero.contains("<h3>throughput</h3>"), "{zero}");
}

#[test]
fn a_pattern_has_a_mark_for_each_request_with_its_size() {
    let mut result = fixture::cell(&[("workload", "file"), ("access", "append")]);
    result.runs[0].pattern = Some(vec![
        fixture::request(0, 16, 8, Class::FileData),
        fixture::request(20_000, 80_000, 3, Class::LogCommit),
    ]);
    let page = page("fsync-patterns", &[result]);
    let picture = figure(&page, "ext4, append");
    assert_eq!(picture.matches("<rect class=\"mark").count(), 2);
    assert_eq!(picture.matches("<rect class=\"mark forced").count(), 1);
    assert!(picture.contains(">1.5</text>"), "{picture}");
    assert!(picture.contains("> data</span>") && picture.contains("> journal</span>"));
}

#[test]
fn every_recorded_lab_is_a_page_with_a_figure_for_each_measure_and_pattern() {
    for report in recorded::reports() {
        let page = document(&report).html();
        well_formed(&page);
        let measures: usize = report
            .grids
            .iter()
            .map(|grid| {
                let mut measures: Vec<_> = grid.columns.iter().map(|c| c.measure.name()).collect();
                measures.sort_unstable();
                measures.dedup();
                measures.len()
            })
            .sum();
        let figures = page.matches("<figure").count();
        // A measure that is 0 everywhere has none, and papers' rates have their own.
        assert!(
            figures >= measures / 2 + report.patterns.len(),
            "{}",
            report.name
        );
        for pattern in &report.patterns {
            let picture = figure(&page, &pattern.title);
            let moving = pattern.requests.iter().filter(|r| r.sectors > 0).count();
            assert_eq!(
                picture.matches("<rect class=\"mark").count(),
                moving,
                "{}",
                pattern.title
            );
        }
        for finding in &report.findings {
            assert!(page.contains(finding.verdict.name()), "{}", finding.name);
        }
    }
}

#[test]
fn bars_of_an_emulated_processor_are_marked_and_counts_are_not() {
    let page = document(&recorded::report("matrix")).html();
    assert!(figure(&page, "throughput").contains("f2fs *</text>"));
    let counts = figure(&page, "I/Os each");
    assert!(counts.contains("f2fs</text>") && !counts.contains("f2fs *"));
}

#[test]
fn claims_and_names_are_escaped() {
    let mut result = insert("ext4", "", 1);
    result.cell.axes.push(("operation".into(), HOSTILE.into()));
    result.cell.axes.remove(2);
    let mut lab = fixture::lab("mine", std::slice::from_ref(&result));
    lab.title = HOSTILE.into();
    let mut other = result.clone();
    other.cell.key = "other".into();
    other.cell.axes[2].1 = "x".into();
    lab.cells.push(other.cell.clone());
    let page = document(&Report::of(&lab, &[result, other])).html();
    well_formed(&page);
    assert!(!page.contains("<img"), "{page}");
    assert!(page.contains("onerror"), "the names are there");
}

#[test]
fn a_lab_without_results_says_that_everything_is_open() {
    let lab = fixture::lab("matrix", &[insert("ext4", "", 1)]);
    let page = document(&Report::of(&lab, &[])).html();
    well_formed(&page);
    assert!(page.contains("1 of 1 cells have no complete result"));
    assert!(page.contains("not run yet"));
}

/// Two rates with a number of the paper, one that failed, one that means nothing.
fn combined() -> Report {
    let cell = |switches: &str, rate| {
        let axes = [
            ("filesystem", "ext4"),
            ("switches", switches),
            ("operation", "insert"),
        ];
        fixture::at_rate(fixture::cell(&axes), rate)
    };
    let mut results = [cell("", 1000), cell("F", 1500), cell("P", 0), cell("W", 0)];
    results[2].state = State::NotApplicable {
        reason: "nothing to poll".into(),
    };
    results[3].state = State::Failed {
        reason: "no \u{1b}[31mspace".into(),
    };
    for result in &mut results[2..] {
        result.runs.clear();
    }
    Report::of(&fixture::lab("combined", &results), &results)
}

#[test]
fn a_row_of_the_paper_stands_below_the_measured_one() {
    let text = text(&combined());
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let rates: Vec<&str> = lines
        .iter()
        .copied()
        .skip_while(|line| !line.starts_with("switches"))
        .take(9)
        .collect();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(rates[1]), "- 1,000/s 1.00x");
    assert_eq!(words(rates[2]), "paper 39.0/s 1.00x");
    assert_eq!(words(rates[3]), "F 1,500/s 1.50x");
    assert_eq!(words(rates[4]), "paper 46.0/s 1.18x");
    assert_eq!(words(rates[5]), "P n/a");
    assert_eq!(words(rates[7]), "W FAILED");
}

#[test]
fn what_is_missing_is_told_with_its_reason_and_cannot_steer_the_terminal() {
    let text = text(&combined());
    assert!(
        text.contains("1 of 4 cells have no complete result\n"),
        "{text}"
    );
    assert!(
        text.contains("Not applicable\n nothing to poll\n"),
        "{text}"
    );
    assert!(
        text.contains("No complete result\n no \\x1b[31mspace\n"),
        "{text}"
    );
}

#[test]
fn a_time_of_an_emulated_processor_is_marked_and_a_count_is_not() {
    let mut result = fixture::cell(&[("filesystem", "f2fs"), ("operation", "insert")]);
    result.environment = Some(fixture::environment(Medium::Guest));
    let report = Report::of(
        &fixture::lab("combined", std::slice::from_ref(&result)),
        &[result],
    );
    let text = text(&report);
    assert!(text.contains("100/s*"), "{text}");
    assert!(text.contains("12 KiB\n"), "{text}");
    assert!(text.contains("; its times (*) are not those"), "{text}");
}

#[test]
fn the_last_operation_is_listed_request_by_request() {
    let mut result = fixture::cell(&[("workload", "file"), ("access", "append")]);
    let early = fixture::request(0, 8, 8, Class::FileData);
    let mut last = [
        fixture::request(1_000_000, 16, 8, Class::FileData),
        fixture::request(1_020_000, 80_000, 8, Class::LogCommit),
    ];
    for request in &mut last {
        request.step = 1;
    }
    let all = [std::slice::from_ref(&early), &last].concat();
    result.runs[0].pattern = Some(all);
    result.cell.pattern = 2;
    let report = Report::of(
        &fixture::lab("fsync-patterns", std::slice::from_ref(&result)),
        &[result],
    );
    let text = text(&report);
    let table = text
        .split("Requests of the last operation: ext4, append\n")
        .nth(1);
    let rows: Vec<String> = table
        .expect("the pattern")
        .lines()
        .skip(1)
        .take(2)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(rows[0], "0 ns write 4 KiB 16 file data file-0");
    assert_eq!(rows[1], "20.0 µs write, forced 4 KiB 80,000 log commit");
}

#[test]
fn a_claim_is_told_with_its_numbers() {
    let text = text(&combined());
    assert!(text.contains("holds          f-insert: "), "{text}");
    assert!(
        text.contains("   + insert, ext4: baseline 1.00 ms, F 667 µs, ratio 0.67x\n"),
        "{text}"
    );
    assert!(text.contains("open           f2fs-wal-first"), "{text}");
}
