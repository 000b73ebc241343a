//! Completions by interrupt or by polling: ATC'13 figure 9 and table 1.

use super::Experiment;
use crate::lab::Measure;
use crate::lab::finding::{Answer, Claim, Finding};
use crate::lab::grid::View;
use crate::lab::order::{both, words};
use crate::lab::results::Results;

const DIFFERS: &str = "Switches of the workload's own threads by io_uring with IORING_SETUP_IOPOLL on an NVMe device with poll queues, where the paper counts those of its changed mmcqd daemon; processes that spin take the place of HD recording. fsync is not polled for, so the durable writes that are polled are those with O_DSYNC, which the device completes by FUA.";

const fn view(
    title: &'static str,
    source: &'static str,
    measures: &'static [Measure],
    found: &'static str,
) -> View<'static> {
    View {
        title,
        source,
        at: &[],
        rows: &["access", "sync", "threads", "cpu-load"],
        columns: &["switches"],
        measures,
        baseline: &[("switches", "")],
        found,
        differs: DIFFERS,
    }
}

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "polling",
    views: &[
        view(
            "Context switches of a 4 KiB random write or read",
            "ATC'13 figure 9",
            &[Measure::VoluntarySwitches, Measure::Switches],
            "Polling divides voluntary context switches by 100 and all of them by 50.",
        ),
        view(
            "4 KiB random writes or reads a second",
            "ATC'13 table 1",
            &[Measure::Throughput],
            "Little when idle; 13 % more with one thread while HD video is recorded, 10 % with ten.",
        ),
        view(
            "CPUs that were active",
            "ATC'13 table 1",
            &[Measure::CpuActive],
            "4 % more of the CPUs.",
        ),
    ],
    findings,
};

fn findings(results: Results<'_>) -> Vec<Finding> {
    let threads = results.values_of("threads", &[]);
    let loads = results.values_of("cpu-load", &[]);
    let mut all = Vec::new();
    let mut voluntary = Vec::new();
    let mut under_load = Vec::new();
    for access in &results.values_of("access", &[]) {
        for sync in &results.values_of("sync", &[("access", access)]) {
            for threads in &threads {
                let place = [("access", &**access), ("sync", sync), ("threads", threads)];
                for load in &loads {
                    let at = [place[0], place[1], place[2], ("cpu-load", load)];
                    // A flush that nobody can poll for is waited for.
                    if sync != "fsync" {
                        all.push(divided(results, &at, Measure::Switches, 50.0));
                        voluntary.push(divided(results, &at, Measure::VoluntarySwitches, 100.0));
                    }
                }
                under_load.push(load_gain(results, &place));
            }
        }
    }
    vec![
        SWITCHES.judge(all),
        VOLUNTARY.judge(voluntary),
        UNDER_LOAD.judge(under_load),
    ]
}

/// Whether polling divides a number by `least`.
fn divided(results: Results<'_>, at: &[(&str, &str)], measure: Measure, least: f64) -> Answer {
    let series = results.series(at, "switches", measure);
    series.ratio("", "P", |ratio| ratio * least <= 1.0)
}

/// Whether polling gains more beside a load than without one.
fn load_gain(results: Results<'_>, place: &[(&str, &str); 3]) -> Answer {
    let factor = |load| {
        let at = [place[0], place[1], place[2], ("cpu-load", load)];
        let series = results.series(&at, "switches", Measure::Throughput);
        series.factor("", "P")
    };
    let factors = [("idle", factor("0")?), ("under load", factor("2")?)];
    both(words(place), factors, |idle, loaded| {
        loaded > idle && loaded > 1.0
    })
}

const SWITCHES: Claim = Claim {
    name: "switches-divided-by-50",
    claim: "Polling divides the context switches by at least 50.",
    source: "ATC'13 section 6.4, figure 9",
    explanation: "A thread that polls is never woken, so reads have no switch left. A write has one that is involuntary: until Linux 6.6 the kernel hands the end of each asynchronous direct write to a worker (iomap_dio_bio_end_io), which takes the CPU from the thread that polls. Beside a load the scheduler takes it, too.",
};

const VOLUNTARY: Claim = Claim {
    name: "voluntary-divided-by-100",
    claim: "Polling divides the voluntary context switches by at least 100.",
    source: "ATC'13 section 6.4, figure 9",
    explanation: "",
};

const UNDER_LOAD: Claim = Claim {
    name: "gain-under-load",
    claim: "Polling gains more throughput beside a load than without one.",
    source: "ATC'13 section 6.4, table 1",
    explanation: "",
};
