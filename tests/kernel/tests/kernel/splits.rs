//! Bios larger than a request: their parts go to the driver in whatever order the scheduler likes.

use std::collections::HashMap;

use anyhow::ensure;
use iostep_kernel_tests::compare::Comparison;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::truth::Truth;
use iostep_kernel_tests::written::Written;
use iostep_lab::Kind;
use iostep_model::Class;
use iostep_model::store;
use iostep_model::table::Trace;

use crate::busy::{QueueProperty, schedulers_of};
use crate::case::Case;
use crate::stage::{self, Stage};

/// At the same time, so that a scheduler has something to choose from.
const MODES: [&str; 3] = ["buffered-big", "writeback", "direct-big"];
/// Of a request: small bios are split, too.
const REQUEST_KIB: &str = "64";
/// At most; in about every second recording it issues a part before the one in front.
const BFQ_ROUNDS: usize = 8;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut needs = stage::requirements(Kind::Ext4);
    needs.push(Requirement::Btf);
    let name = "the parts of split bios go to their files, with any scheduler";
    vec![Case::new(name, needs, schedulers).about("splits")]
}

fn schedulers() -> anyhow::Result<()> {
    let of_one = Stage::new(Kind::Ext4, &[], "")?;
    let schedulers = schedulers_of(of_one.device())?;
    drop(of_one);
    for scheduler in schedulers {
        let rounds = if scheduler == "bfq" { BFQ_ROUNDS } else { 1 };
        for _ in 0..rounds {
            if split_on(&scheduler)? > 0 {
                break;
            }
        }
    }
    Ok(())
}

/// How many parts went before the part in front of them.
fn split_on(scheduler: &str) -> anyhow::Result<usize> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let _scheduler = QueueProperty::set(stage.device(), "scheduler", scheduler)?;
    let _size = QueueProperty::set(stage.device(), "max_sectors_kb", REQUEST_KIB)?;
    let started = MODES.map(|mode| format!("{} &", stage.workload(&[mode]).join(" ")));
    let script = format!("{} wait", started.join(" "));
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let command = ["sh".to_owned(), "-c".to_owned(), script];
    iostep::run(stage.trace(&output, &["--settle"], &command))?.success()?;
    let trace = store::read(&output)?;
    let (parts, early) = parts(&trace);
    println!(
        "    {scheduler}: {parts} parts of split bios, {early} of them before an earlier part"
    );
    ensure!(parts > 0, "nothing was split: the test shows nothing");
    let unknown = trace.segments.iter().filter(|s| s.class == Class::Unknown);
    let unknown: u64 = unknown.map(|segment| u64::from(segment.bytes)).sum();
    ensure!(
        unknown == 0,
        "{scheduler}: {unknown} bytes of class unknown"
    );
    let remains = stage.unmount()?;
    let stamps = remains.image.stamp_map()?;
    let (written, truth) = (Written::of(&trace), Truth::default());
    let comparison = Comparison::new(&trace, &written, &remains.facts, &stamps, &truth);
    comparison.files().require("data to file", 100.0)?;
    Ok(early)
}

/// Requests that carry no bio's beginning, and how many of them came before the part in front.
fn parts(trace: &Trace) -> (usize, usize) {
    let mut issued: HashMap<u64, u64> = HashMap::new();
    let (mut parts, mut early) = (0, 0);
    for request in trace.requests.iter().filter(|row| row.bytes > 0) {
        parts += usize::from(request.bios == 0);
        let last = issued.insert(request.queue_ns, request.sector);
        early += usize::from(last.is_some_and(|last| last > request.sector));
    }
    (parts, early)
}
