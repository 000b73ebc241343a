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
    let places = places(results);
    // A flush that nobody can poll for is waited for.
    let polled = |place: &&Place| place[1].1 != "fsync";
    let accesses = |access| {
        let is_there = move |place: &&Place| place[0].1 == access;
        places.iter().filter(polled).filter(is_there)
    };
    let switches = |place| divided(results, place, "0", Measure::Switches, 50.0);
    let voluntary = places.iter().filter(polled).flat_map(|place| {
        ["0", "2"].map(|load| divided(results, place, load, Measure::VoluntarySwitches, 100.0))
    });
    vec![
        VOLUNTARY.judge(voluntary),
        WRITES.judge(accesses("random-write").map(switches)),
        READS.judge(accesses("random-read").map(switches)),
        UNDER_LOAD.judge(places.iter().map(|place| load_gain(results, place))),
    ]
}

/// Access, sync and threads with their values.
type Place<'a> = [(&'a str, &'a str); 3];

/// Those that the lab has, in the order of its cells.
fn places(results: Results<'_>) -> Vec<Place<'_>> {
    let mut places: Vec<Place<'_>> = Vec::new();
    for result in results.0 {
        let value = |axis| result.cell.argument(axis).unwrap_or("");
        let place = ["access", "sync", "threads"].map(|axis| (axis, value(axis)));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Whether polling divides a number by `least`.
fn divided(
    results: Results<'_>,
    place: &Place<'_>,
    load: &str,
    measure: Measure,
    least: f64,
) -> Answer {
    let at = [place[0], place[1], place[2], ("cpu-load", load)];
    let series = results.series(&at, "switches", measure);
    series.ratio("", "P", |ratio| ratio * least <= 1.0)
}

/// Whether polling gains more beside a load than without one.
fn load_gain(results: Results<'_>, place: &Place<'_>) -> Answer {
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

const VOLUNTARY: Claim = Claim {
    name: "voluntary-divided-by-100",
    claim: "Polling divides the voluntary context switches by at least 100.",
    source: "ATC'13 section 6.4, figure 9",
    explanation: "",
};

const WRITES: Claim = Claim {
    name: "switches-divided-by-50",
    claim: "Polling divides all context switches of writes by at least 50.",
    source: "ATC'13 section 6.4, figure 9",
    explanation: "A thread that polls is never woken; but before Linux 6.6 a worker of the kernel ends each asynchronous direct write (iomap_dio_bio_end_io, fs/iomap/direct-io.c) and takes the CPU from the thread that polls: one involuntary switch for each write. Reads end without one, as the next claim shows.",
};

const READS: Claim = Claim {
    name: "switches-of-reads",
    claim: "Polling divides all context switches of reads by at least 50.",
    source: "ATC'13 section 6.4, figure 9",
    explanation: "",
};

const UNDER_LOAD: Claim = Claim {
    name: "gain-under-load",
    claim: "Polling gains more throughput beside a load than without one.",
    source: "ATC'13 section 6.4, table 1",
    explanation: "The paper polled beside one process on four cores. Here two processes spin on the two CPUs, so a thread that polls has none to itself, and in an emulated guest the device is emulated by the same processor; times of such a guest decide nothing.",
};
