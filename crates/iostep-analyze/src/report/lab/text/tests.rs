use iostep_model::class::Class;
use iostep_model::lab::{Place, State};

use crate::lab::{Report, fixture};
use crate::report::text::Style;

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
    let text = super::render(&combined(), Style::default());
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
    let text = super::render(&combined(), Style::default());
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
    result.environment = Some(fixture::environment(Place::Guest));
    let report = Report::of(
        &fixture::lab("combined", std::slice::from_ref(&result)),
        &[result],
    );
    let text = super::render(&report, Style::default());
    assert!(text.contains("100/s*"), "{text}");
    assert!(text.contains("12 KiB\n"), "{text}");
    assert!(
        text.contains("* the time of an emulated processor"),
        "{text}"
    );
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
    let text = super::render(&report, Style::default());
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
    let text = super::render(&combined(), Style::default());
    assert!(text.contains("holds          f-insert: "), "{text}");
    assert!(
        text.contains("   + insert, ext4: baseline 1.00 ms, F 667 µs, ratio 0.67x\n"),
        "{text}"
    );
    assert!(text.contains("open           f2fs-wal-first"), "{text}");
}
