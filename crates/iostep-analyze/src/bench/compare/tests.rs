//! Verdicts over documents made by hand.

use super::*;
use crate::bench::fixture;
use iostep_model::disk::Health;
use proptest::prelude::*;

/// `runs` runs that take `factor` times as long as those of the fixture.
fn slower(runs: u32, factor: f64) -> Document {
    let mut document = fixture::write_fdatasync(runs);
    for run in &mut document.runs {
        run.elapsed_ns = (run.elapsed_ns as f64 * factor) as u64;
        for second in &mut run.seconds {
            second.operations = (second.operations as f64 / factor) as u64;
        }
    }
    document
}

/// A single run of 24 and a half seconds.
fn long(factor: f64) -> Document {
    let mut document = slower(1, factor);
    let seconds = &mut document.runs[0].seconds;
    let whole = seconds[..6].repeat(3);
    seconds.splice(0..0, whole);
    document
}

fn compared(first: &Document, second: &Document) -> Comparison {
    Comparison::of(first, second).expect("the same work")
}

fn headline(first: &Document, second: &Document) -> Row {
    *compared(first, second)
        .headline()
        .expect("both have a throughput")
}

/// A result from a disk of a model.
fn on(model: &str) -> Document {
    let mut document = fixture::write_fdatasync(1);
    document.environment.disks = vec![Disk {
        name: "nvme0n1".into(),
        model: Some(model.into()),
        ..Disk::default()
    }];
    document
}

#[test]
fn other_hardware_is_told_and_other_wear_or_none_known_is_not() {
    let different = compared(&on("A"), &on("B"));
    let disks = different.different_disks.expect("they differ");
    assert_eq!(disks[1][0].model.as_deref(), Some("B"));
    let names: Vec<&str> = different
        .differences
        .iter()
        .map(|d| d.name.as_str())
        .collect();
    assert_eq!(names, ["environment.disks.0.model"]);
    let mut worn = on("A");
    worn.environment.disks[0].health_after = Some(Health::default());
    let same = compared(&on("A"), &worn);
    assert_eq!((same.different_disks, same.differences), (None, vec![]));
    let old = compared(&on("A"), &fixture::write_fdatasync(1));
    assert_eq!((old.different_disks, old.differences), (None, vec![]));
    let mut pair = on("A");
    pair.environment.disks.extend(on("A").environment.disks);
    assert!(compared(&on("A"), &pair).different_disks.is_some());
}

#[test]
fn nothing_differs_from_itself() {
    let several = [1, 4, 8].map(fixture::write_fdatasync);
    for document in several.into_iter().chain([long(1.0)]) {
        let comparison = compared(&document, &document);
        assert_eq!(comparison.differences, []);
        for row in &comparison.rows {
            let judged = comparison.judge(row.measure);
            assert!(!matches!(judged, Judged::WorseBy(share) if share > 0.0));
        }
        for row in &comparison.rows {
            assert!(
                !matches!(row.verdict, Verdict::Better | Verdict::Worse),
                "{row:?}"
            );
            assert!(
                row.ratio.is_none_or(|ratio| (ratio - 1.0).abs() < 1e-12),
                "{row:?}"
            );
        }
    }
}

#[test]
fn five_runs_tell_a_tenth() {
    let row = headline(&slower(5, 1.0), &slower(5, 1.1));
    assert_eq!((row.verdict, row.basis), (Verdict::Worse, Basis::Runs));
    let interval = row.interval.expect("five runs");
    assert!(
        interval.low < 1.0 / 1.1 && 1.0 / 1.1 < interval.high,
        "{interval:?}"
    );
    assert!(interval.high < 1.0, "{interval:?}");
    let comparison = compared(&slower(5, 1.0), &slower(5, 1.1));
    let Judged::WorseBy(worse) = comparison.judge(comparison.headline) else {
        panic!("five runs tell");
    };
    assert!((worse - (1.0 - 1.0 / 1.1)).abs() < 0.01, "{worse}");
    let back = compared(&slower(5, 1.1), &slower(5, 1.0));
    assert_eq!(back.judge(back.headline), Judged::WorseBy(0.0));
}

#[test]
fn three_runs_on_each_side_are_too_few_however_far_apart() {
    let row = headline(&slower(3, 1.0), &slower(3, 10.0));
    assert_eq!(row.verdict, Verdict::TooFewRuns { needed: 4 });
    assert_eq!((row.basis, row.interval), (Basis::Nothing, None));
    assert!(row.ratio.is_some_and(|ratio| (ratio - 0.1).abs() < 0.001));
    let row = headline(&slower(3, 1.0), &slower(5, 10.0));
    assert_eq!(row.verdict, Verdict::Worse);
}

#[test]
fn single_runs_are_judged_by_their_seconds_and_only_where_these_tell() {
    let comparison = compared(&long(1.0), &long(2.0));
    let row = comparison.headline().expect("a throughput");
    assert_eq!((row.verdict, row.basis), (Verdict::Worse, Basis::Seconds));
    let time = comparison
        .rows
        .iter()
        .find(|row| row.measure == Measure::TimePerOperation);
    assert_eq!(time.map(|row| row.basis), Some(Basis::Seconds));
    let sync = comparison.rows.iter().find(|row| {
        matches!(
            row.measure,
            Measure::Latency(iostep_model::bench::Step::Sync, _)
        )
    });
    let sync = sync.expect("syncs were timed");
    let short = headline(&slower(1, 1.0), &slower(1, 2.0));
    assert_eq!(short.verdict, Verdict::TooFewRuns { needed: 4 });
    assert_eq!(sync.verdict, Verdict::TooFewRuns { needed: 4 });
}

#[test]
fn files_and_sqlite_are_not_compared() {
    let [file, sqlite] = [fixture::write_fdatasync(5), fixture::sqlite_wal(5)];
    assert_eq!(Comparison::of(&file, &sqlite), Err(DifferentWork));
    assert_eq!(Comparison::of(&sqlite, &file), Err(DifferentWork));
}

#[test]
fn one_run_tells_what_the_device_was_asked_for_and_no_latency() {
    let first = fixture::write_fdatasync(1);
    let mut second = first.clone();
    let device = second.runs[0].device.as_mut().expect("it counted");
    device.flush.ios *= 2;
    let judged = compared(&first, &second);
    let flushes = Measure::FlushesPerOperation;
    assert_eq!(judged.judge(flushes), Judged::WorseBy(1.0));
    let written = judged.judge(Measure::WrittenPerOperation);
    assert_eq!(written, Judged::WorseBy(0.0));
    let p99 = Measure::Latency(
        iostep_model::bench::Step::Total,
        crate::bench::Quantile::P99,
    );
    assert_eq!(judged.judge(p99), Judged::TooFewRuns(4));
    let back = compared(&second, &first);
    assert_eq!(back.judge(flushes), Judged::WorseBy(0.0));
    second.runs[0].device = None;
    let judged = compared(&first, &second);
    assert_eq!(judged.judge(flushes), Judged::Missing);
}

#[test]
fn counts_of_a_device_that_others_used_are_not_judged() {
    use iostep_model::bench::{OthersIo, ReadWritten};
    let first = fixture::write_fdatasync(1);
    let mut second = first.clone();
    second.runs[0].others = Some(OthersIo {
        here: ReadWritten {
            written_bytes: 1 << 20,
            ..ReadWritten::default()
        },
        ..OthersIo::default()
    });
    let comparison = compared(&first, &second);
    for measure in [Measure::WrittenPerOperation, Measure::FlushesPerOperation] {
        assert_eq!(comparison.judge(measure), Judged::Disturbed);
    }
    let gate = crate::bench::Gate::of(&comparison, &[Measure::WrittenPerOperation], 0.01);
    assert_eq!(gate.verdict, crate::bench::Passage::CannotTell);
    let both = compared(&second, &second);
    assert_eq!(both.judge(Measure::FlushesPerOperation), Judged::Disturbed);
}

#[test]
fn a_step_that_one_side_lacks_is_missing() {
    let first = fixture::write_fdatasync(5);
    let mut second = first.clone();
    for run in &mut second.runs {
        run.latencies
            .retain(|latency| latency.step != iostep_model::bench::Step::Sync);
    }
    let comparison = compared(&first, &second);
    let missing = comparison
        .rows
        .iter()
        .filter(|row| row.verdict == Verdict::Missing);
    assert_eq!(missing.count(), 2);
}

#[test]
fn a_paced_job_is_judged_by_its_times() {
    let first = fixture::write_fdatasync(1);
    let mut second = first.clone();
    let Job::File(job) = &mut second.job else {
        panic!("a file job")
    };
    job.measurement.pace.operations_per_second = Some(100.0);
    let comparison = compared(&first, &second);
    assert_eq!(comparison.headline, Measure::TimePerOperation);
}

#[test]
fn broken_runs_are_counted_and_left_out() {
    let first = fixture::write_fdatasync(5);
    let mut second = first.clone();
    second.runs[0].state = iostep_model::bench::RunState::Failed;
    let comparison = compared(&first, &second);
    assert_eq!((comparison.runs, comparison.broken_runs), ([5, 4], [0, 1]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_ratio_is_what_both_were_scaled_by(factor in 1.05f64..3.0, runs in 4u32..7) {
        let row = headline(&slower(runs, 1.0), &slower(runs, factor));
        prop_assert!(row.ratio.is_some_and(|ratio| (ratio * factor - 1.0).abs() < 1e-3));
        let both = headline(&slower(runs, factor), &slower(runs, factor));
        prop_assert!(!matches!(both.verdict, Verdict::Better | Verdict::Worse), "{:?}", both);
    }
}
