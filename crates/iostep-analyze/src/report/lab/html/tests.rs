use iostep_model::class::Class;
use iostep_model::lab::CellResult;

use crate::lab::{Report, fixture, recorded};
use crate::report::bench::html::tests::well_formed;

const HOSTILE: &str = "</script></title><img src=x onerror=alert(1)>\"'--><!--";

fn page(name: &str, results: &[CellResult]) -> String {
    let page = super::render(&Report::of(&fixture::lab(name, results), results));
    well_formed(&page);
    page
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

/// The figure under this heading.
fn figure<'a>(page: &'a str, title: &str) -> &'a str {
    let start = page.find(&format!("<h3>{title}</h3>")).expect("the figure");
    let text = &page[start..];
    &text[..text.find("</figure>").expect("its end")]
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
        let page = super::render(&report);
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
    let page = super::render(&recorded::report("matrix"));
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
    let page = super::render(&Report::of(&lab, &[result, other]));
    well_formed(&page);
    assert!(!page.contains("<img"), "{page}");
    assert!(page.contains("onerror"), "the names are there");
}

#[test]
fn a_lab_without_results_says_that_everything_is_open() {
    let lab = fixture::lab("matrix", &[insert("ext4", "", 1)]);
    let page = super::render(&Report::of(&lab, &[]));
    well_formed(&page);
    assert!(page.contains("1 of 1 cells have no complete result"));
    assert!(page.contains("not run yet"));
}
