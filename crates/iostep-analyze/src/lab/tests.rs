use iostep_model::class::Class;
use iostep_model::lab::{CellResult, Medium, State};

use super::fixture::{at_rate, cell, environment, lab, request, run, written};
use super::*;

fn report(name: &str, results: &[CellResult]) -> Report {
    Report::of(&lab(name, results), results)
}

fn finding<'a>(report: &'a Report, name: &str) -> &'a Finding {
    let mut findings = report.findings.iter();
    findings.find(|finding| finding.name == name).expect(name)
}

/// A cell of the lab `combined` that inserts so often a second.
fn insert(filesystem: &str, switches: &str, per_second: u64) -> CellResult {
    let axes = [
        ("filesystem", filesystem),
        ("switches", switches),
        ("operation", "insert"),
    ];
    at_rate(cell(&axes), per_second)
}

fn entry<'a>(grid: &'a Grid, row: &str, column: &str) -> &'a Entry {
    let row = grid
        .rows
        .iter()
        .find(|r| r.values == [row])
        .expect("the row");
    let place = grid.columns.iter().position(|c| c.values == [column]);
    row.entries[place.expect("the column")]
        .as_ref()
        .expect("a cell")
}

#[test]
fn the_papers_number_and_both_ratios_stand_beside_a_measured_one() {
    let results = [
        insert("ext4", "", 1000),
        insert("ext4", "F", 1500),
        insert("f2fs", "W", 4000),
    ];
    let report = report("combined", &results);
    let grid = &report.grids[0];
    let found = entry(grid, "F", "ext4");
    assert_eq!(found.value.expect("a number").median, 1500.0);
    assert_eq!(found.ratio, Some(1.5));
    let paper = found.paper.as_ref().expect("table 2");
    assert_eq!((paper.value, paper.paper.as_str()), (46.0, "ATC'13"));
    assert_eq!(found.paper_ratio, Some(46.0 / 39.0));
    // The baseline is ext4's, for the other filesystems too.
    assert_eq!(entry(grid, "W", "f2fs").ratio, Some(4.0));
    assert_eq!(entry(grid, "W", "f2fs").paper_ratio, Some(149.0 / 39.0));
}

#[test]
fn times_of_two_places_are_not_compared_and_counts_are() {
    let guest = |mut result: CellResult| {
        result.environment = Some(environment(Medium::Guest));
        result
    };
    let results = [insert("ext4", "", 1000), guest(insert("f2fs", "", 10))];
    let report = report("combined", &results);
    // Updates have no cells here, and so no tables.
    let [rate, _, bytes] = &report.grids[..] else {
        panic!("{} tables", report.grids.len());
    };
    assert_eq!(entry(rate, "", "f2fs").ratio, None);
    assert_eq!(entry(bytes, "", "f2fs").ratio, Some(1.0));
}

#[test]
fn an_order_is_found_only_where_every_place_has_it() {
    let modes = |filesystem: &'static str, wal: u64| {
        [("wal", wal), ("delete", 9), ("truncate", 8)].map(|(journal, writes)| {
            let mut result = cell(&[
                ("filesystem", filesystem),
                ("switches", "F"),
                ("journal", journal),
            ]);
            result.runs = vec![run(10, writes, 4096)];
            result
        })
    };
    let verdict =
        |results: &[CellResult]| finding(&report("table1", results), "wal-fewest-ios").verdict;
    let ext4 = modes("ext4", 3);
    assert_eq!(verdict(&ext4), Verdict::Holds);
    let with_btrfs = [ext4.to_vec(), modes("btrfs", 12).to_vec()].concat();
    assert_eq!(verdict(&with_btrfs), Verdict::DoesNotHold);
    let equal = modes("ext4", 8);
    assert_eq!(verdict(&equal), Verdict::DoesNotHold);
    assert_eq!(verdict(&ext4[1..]), Verdict::Open);

    let report = report("table1", &with_btrfs);
    let found = finding(&report, "wal-fewest-ios");
    let places: Vec<(&str, bool)> = found
        .evidence
        .iter()
        .map(|e| (e.place.as_str(), e.holds))
        .collect();
    assert_eq!(places, [("ext4, F", true), ("btrfs, F", false)]);
    assert_eq!(found.evidence[0].numbers[0].value, 3.0);
}

#[test]
fn rates_of_two_places_leave_an_order_unmeasured() {
    let mut f2fs = insert("f2fs", "W", 5000);
    f2fs.environment = Some(environment(Medium::Guest));
    let report = report("combined", &[insert("ext4", "W", 1000), f2fs]);
    let found = finding(&report, "f2fs-wal-first");
    assert_eq!(found.verdict, Verdict::Open);
    let reason = "f2fs was measured on an emulated guest, ext4 on a loop device over a file";
    assert_eq!(found.missing[0].reason, reason);
}

#[test]
fn one_that_beats_the_winner_is_enough_and_one_that_cannot_be_compared_leaves_it_open() {
    let in_guest = |mut result: CellResult| {
        result.environment = Some(environment(Medium::Guest));
        result
    };
    let replay = |filesystem: &str, elapsed_ns: u64| {
        let mut result = cell(&[
            ("workload", "replay"),
            ("filesystem", filesystem),
            ("switches", ""),
        ]);
        result.runs[0].elapsed_ns = elapsed_ns;
        result
    };
    let verdict = |results: &[CellResult]| {
        let report = report("replay", results);
        finding(&report, "f2fs-first").verdict
    };
    let [f2fs, nilfs2] = [replay("f2fs", 50), replay("nilfs2", 80)].map(in_guest);
    let elsewhere = replay("ext4", 10);
    let both = [f2fs.clone(), nilfs2.clone()];
    assert_eq!(verdict(&both), Verdict::Holds);
    let all = [f2fs.clone(), nilfs2, elsewhere.clone()];
    assert_eq!(verdict(&all), Verdict::Open);
    let beaten = [f2fs.clone(), in_guest(replay("btrfs", 20)), elsewhere];
    assert_eq!(verdict(&beaten), Verdict::DoesNotHold);

    let mut failed = in_guest(replay("xfs", 0));
    failed.state = State::Failed {
        reason: "no space".into(),
    };
    failed.runs.clear();
    assert_eq!(
        verdict(&[both.to_vec(), vec![failed]].concat()),
        Verdict::Open
    );
}

#[test]
fn a_replays_writes_are_those_of_the_whole_run() {
    let result = cell(&[("workload", "replay"), ("switches", "F")]);
    let report = report("replay", &[result]);
    let row = &report.grids[1].rows[0];
    let medians: Vec<f64> = row
        .entries
        .iter()
        .filter_map(|entry| Some(entry.as_ref()?.value?.median))
        .collect();
    assert_eq!(medians, [300.0, 300.0 * 4096.0, 100.0]);
}

#[test]
fn the_last_operation_has_all_of_its_sync_calls() {
    let steps = |operations: u32, calls: u32| {
        let mut result = cell(&[("workload", "sqlite"), ("journal", "delete")]);
        result.cell.pattern = operations;
        let request = |step| iostep_model::lab::PatternRequest {
            step,
            ..request(u64::from(step), 8, 8, Class::FileData)
        };
        result.runs[0].pattern = Some((0..calls).map(request).collect());
        let report = report("table1", &[result]);
        let last = report.patterns[0].last_operation();
        last.map(|request| request.step).collect::<Vec<_>>()
    };
    assert_eq!(steps(1, 4), [0, 1, 2, 3]);
    assert_eq!(steps(3, 3), [2]);
    assert_eq!(steps(2, 6), [3, 4, 5]);
    assert_eq!(steps(3, 1), [0]);
}

#[test]
fn the_parts_of_a_request_are_one_request() {
    let mut result = cell(&[("workload", "sqlite"), ("journal", "wal")]);
    result.cell.pattern = 1;
    result.runs[0].pattern = Some(vec![
        request(0, 8, 8, Class::FileData),
        request(0, 80, 8, Class::LogDescriptor),
        request(0, 88, 8, Class::LoggedBlock),
        request(0, 96, 8, Class::LoggedBlock),
        request(5, 104, 8, Class::LogCommit),
    ]);
    let report = report("table1", &[result]);
    let found = report.patterns[0].requests.iter();
    let found: Vec<(u64, usize)> = found.map(|r| (r.sectors, r.classes.len())).collect();
    assert_eq!(found, [(8, 1), (24, 2), (8, 1)]);
}

#[test]
fn runs_that_overlap_leave_an_order_of_times_open_and_one_of_counts_decided() {
    let mode = |journal: &str, rates: [u64; 3]| {
        let mut result = cell(&[
            ("workload", "sqlite"),
            ("operation", "insert"),
            ("journal", journal),
        ]);
        let writes = if journal == "wal" { 3 } else { 9 };
        result.runs = rates.map(|rate| run(rate, writes, 4096)).into();
        result
    };
    let verdicts = |truncate| {
        let report = report(
            "matrix",
            &[mode("wal", [50, 90, 100]), mode("truncate", truncate)],
        );
        ["wal-first-insert", "wal-fewest-ios"].map(|name| finding(&report, name).verdict)
    };
    assert_eq!(verdicts([20, 30, 49]), [Verdict::Holds, Verdict::Holds]);
    assert_eq!(verdicts([20, 30, 60]), [Verdict::Open, Verdict::Holds]);
    assert_eq!(
        verdicts([101, 101, 102]),
        [Verdict::DoesNotHold, Verdict::Holds]
    );
}

#[test]
fn a_gain_is_judged_by_the_runs_least_and_greatest() {
    let at = |switches: &str, rates: [u64; 2]| {
        let mut result = insert("ext4", switches, 1);
        result.runs = rates.map(|rate| run(rate, 3, 4096)).into();
        result
    };
    let verdict = |fdatasync| {
        let report = report("combined", &[at("", [100, 105]), at("F", fdatasync)]);
        finding(&report, "f-insert").verdict
    };
    assert_eq!(verdict([150, 160]), Verdict::Holds);
    assert_eq!(verdict([100, 160]), Verdict::Open);
    assert_eq!(verdict([80, 90]), Verdict::DoesNotHold);
}

/// Cells that took turns, with so many operations a second in each round.
fn by_turns(rates: &[(&str, [u64; 3])]) -> Vec<CellResult> {
    let result = |(label, rates): &(&str, [u64; 3])| {
        let mut result = cell(&[("filesystem", "ext4"), ("turns", "peers"), ("label", label)]);
        result.cell.axes.push(("turns".into(), "peers".into()));
        result.runs = rates.map(|rate| run(rate, 1, 4096)).into();
        result
    };
    rates.iter().map(result).collect()
}

#[test]
fn cells_that_took_turns_are_judged_by_the_median_of_the_rounds() {
    // The machine got faster: rounds overlap as a whole, and each by itself does not.
    let rates = [
        ("LMDB", [100, 150, 400]),
        ("RocksDB, sync", [100, 250, 150]),
        ("stock WAL, FULL", [100, 200, 300]),
        ("waldio, FULL", [210, 360, 400]),
    ];
    let results = by_turns(&rates);
    let report = report("waldio-peers", &results);
    let numbers = |name: &str| finding(&report, name).evidence[0].clone();
    let lmdb = numbers("peers-lmdb");
    assert_eq!(lmdb.numbers[2].value, 2.1);
    assert_eq!(lmdb.numbers[2].rounds, Some((1.0, 2.4)));
    assert!(lmdb.holds && numbers("peers-rocksdb").holds);
    assert_eq!(
        finding(&report, "peers-lmdb").verdict,
        Verdict::DoesNotHold,
        "its bytes"
    );
    let waldio = report.grids[0].rows[3].entries[0].as_ref().expect("a cell");
    assert_eq!(
        (waldio.ratio, waldio.ratio_rounds),
        (Some(1.8), Some((4.0 / 3.0, 2.1)))
    );
    let mut later = results.clone();
    later[0].environment.as_mut().expect("it ran").start_wall_ns = 1;
    let report = Report::of(&lab("waldio-peers", &later), &later);
    let missing = &finding(&report, "peers-lmdb").missing[0];
    assert_eq!(
        missing.reason, "the runs differ too much to tell",
        "other rounds"
    );
}

#[test]
fn a_number_is_set_beside_the_sum_of_others_round_by_round() {
    let mut results = by_turns(&[
        ("floor: O_DIRECT, fdatasync", [100, 200, 100]),
        ("stock WAL, NORMAL", [400, 200, 400]),
        ("stock WAL, FULL", [50, 50, 50]),
        ("waldio, FULL", [80, 100, 80]),
    ]);
    for result in &mut results {
        result.cell.turns = "steady".into();
        result.cell.axes.last_mut().expect("an axis").1 = "steady".into();
    }
    let report = report("waldio-peers", &results);
    let evidence = |name: &str| &finding(&report, name).evidence[0];
    let above = &evidence("steady-p50").numbers[1];
    assert_eq!(above.value, 0.0);
    assert!(evidence("steady-p50").holds);
    let allowed = &evidence("steady").numbers[3];
    assert_eq!(allowed.name, "the floor allows");
    assert!((allowed.value - 1.6).abs() < 1e-9, "{allowed:?}");
    assert!(evidence("steady").holds && evidence("steady-bytes").holds);
}

#[test]
fn polling_divides_context_switches_or_does_not() {
    let polled = |switches: &'static str, voluntary: u64| {
        let mut result = cell(&[
            ("workload", "file"),
            ("switches", switches),
            ("access", "random-read"),
            ("sync", "none"),
            ("threads", "1"),
        ]);
        let cpu = result.runs[0].cpu.as_mut().expect("it is told");
        cpu.voluntary_switches = voluntary;
        result
    };
    let verdict = |polled_switches| {
        let results = [polled("", 10_000), polled("P", polled_switches)];
        finding(&report("polling", &results), "switches-of-reads").verdict
    };
    assert_eq!(verdict(200), Verdict::Holds);
    assert_eq!(verdict(201), Verdict::DoesNotHold);
    assert_eq!(verdict(0), Verdict::Holds);
}

#[test]
fn the_journals_share_comes_from_the_classes() {
    let with_classes = |journal_bytes: u64| {
        let mut result = cell(&[
            ("filesystem", "ext4"),
            ("switches", "F"),
            ("journal", "wal"),
        ]);
        result.runs[0].classes = Some(vec![
            written(Class::FileData, 8192),
            written(Class::LogDescriptor, journal_bytes / 2),
            written(Class::LogCommit, journal_bytes / 2),
        ]);
        result
    };
    let verdict = |bytes| {
        let report = report("table1", &[with_classes(bytes)]);
        finding(&report, "journal-over-half").verdict
    };
    assert_eq!(verdict(20_480), Verdict::Holds);
    assert_eq!(verdict(8192), Verdict::DoesNotHold);
}

#[test]
fn what_is_not_applicable_is_no_failure_and_what_was_not_run_is_named() {
    let mut external = insert("f2fs", "E", 0);
    external.state = State::NotApplicable {
        reason: "f2fs has no journal that could lie elsewhere".into(),
    };
    external.runs.clear();
    external.environment = None;
    let results = [insert("ext4", "", 100), external];
    let all = lab("combined", &results);
    let report = Report::of(&all, &results);
    assert!(report.is_complete());
    assert!(entry(&report.grids[0], "E", "f2fs").not_applicable);

    let half = Report::of(&all, &results[1..]);
    assert!(!half.is_complete());
    let reasons: Vec<&str> = half
        .incomplete
        .iter()
        .map(|cell| cell.reason.as_str())
        .collect();
    assert_eq!(reasons[0], "not run yet");
    assert_eq!(half.incomplete[0].cell, "ext4, insert");
}

#[test]
fn a_lab_of_somebody_elses_is_a_table_of_its_cells() {
    let results = [insert("ext4", "", 100), insert("ext4", "F", 150)];
    let report = report("my", &results);
    assert!(report.findings.is_empty());
    let [grid] = &report.grids[..] else {
        panic!("{} tables", report.grids.len());
    };
    assert_eq!(grid.row_axes, ["switches"]);
    assert_eq!(grid.rows.len(), 2);
    assert!(
        grid.rows[0]
            .entries
            .iter()
            .flatten()
            .all(|entry| entry.paper.is_none())
    );
}

#[test]
fn a_lab_of_somebody_elses_has_its_own_claims() {
    let results = [insert("ext4", "", 100), insert("ext4", "F", 150)];
    let mut own = lab("my", &results);
    own.analysis = iostep_lab::builtin::analysis("combined");
    let report = Report::of(&own, &results);
    assert_eq!(finding(&report, "f-insert").verdict, Verdict::Holds);
    assert!(entry(&report.grids[0], "F", "ext4").paper.is_some());
}

#[test]
fn a_result_of_another_lab_is_left_out() {
    let results = [insert("ext4", "", 100), insert("ext4", "F", 150)];
    let report = Report::of(&lab("combined", &results[..1]), &results);
    assert_eq!(report.grids[0].rows.len(), 1);
}
