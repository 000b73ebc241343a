//! Every byte to its file, its process, its class and its cause: what the trace says against what
//! the image, the workload and the device's counters say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use iostep_kernel_tests::compare::Comparison;
use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::score::Score;
use iostep_kernel_tests::stack::Below;
use iostep_lab::Kind;
use iostep_model::manifest::Backend;
use iostep_model::operation::Counter;
use iostep_model::table::Segment;
use iostep_model::{Class, SECTOR_BYTES};

use crate::case::Case;
use crate::recording::{FoundBy, Recording, Scenario};
use crate::stage;
use crate::variants;

const EXT4: &[&str] = &["-J", "size=64"];
const EXT4_FAST: &[&str] = &["-O", "fast_commit"];

/// Three filesystems with everything.
pub const WHOLE: [Scenario; 3] = [
    scenario("ext4", Kind::Ext4, EXT4),
    // Async discard would erase the freed blocks that the truth is read from.
    Scenario {
        mount: "nodiscard",
        ..scenario("btrfs", Kind::Btrfs, &[])
    },
    scenario("xfs", Kind::Xfs, &[]),
];

/// Where BPF cannot run; the choice is the command's own.
const BY_CHOICE: Scenario = Scenario {
    backend: "auto",
    ..BY_TRACEFS
};

const BY_TRACEFS: Scenario = Scenario {
    backend: "tracefs",
    ..scenario("ext4 by tracefs", Kind::Ext4, EXT4)
};

/// Variants with what matters to them.
pub const BY_BPF: [Scenario; 2] = [
    Scenario {
        mount: "data=journal",
        modes: &[
            "append-fsync",
            "overwrite-fdatasync",
            "o-dsync",
            "mmap-msync",
            "direct-4k",
            "writeback",
            "fsync-unlink",
            "concurrent-fsync",
            "freeze",
        ],
        ..scenario("ext4 data=journal", Kind::Ext4, EXT4)
    },
    Scenario {
        modes: &[
            "append-fsync",
            "overwrite-fdatasync",
            "preallocated",
            "create-rename",
            "concurrent-fsync",
        ],
        ..scenario("ext4 fast_commit", Kind::Ext4, EXT4_FAST)
    },
];

/// A recording by BPF of every mode of the workload.
pub const fn scenario(name: &'static str, kind: Kind, mkfs: &'static [&'static str]) -> Scenario {
    Scenario {
        name,
        kind,
        mkfs,
        mount: "",
        backend: "bpf",
        below: Below::Nothing,
        modes: &[],
        found: FoundBy::Image,
    }
}

/// What a test asks of a recording.
pub type Judge = fn(&Recording) -> anyhow::Result<()>;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let all = WHOLE.into_iter().chain([BY_TRACEFS]).chain(BY_BPF);
    let all = all.chain(variants::all());
    all.flat_map(cases_of).collect()
}

/// The tests of a kernel that cannot run our BPF programs.
pub fn cases_without_bpf() -> Vec<Case> {
    cases_of(BY_CHOICE)
}

fn requirements(scenario: &Scenario) -> Vec<Requirement> {
    let mut requirements = stage::requirements(scenario.kind);
    if scenario.kind == Kind::Ext4 && scenario.mount.contains("test_dummy_encryption") {
        requirements.push(Requirement::Ext4Feature("test_dummy_encryption_v2"));
    }
    let programs = scenario.below.programs().iter();
    requirements.extend(programs.map(|program| Requirement::Program(program)));
    requirements.push(match scenario.backend {
        "bpf" => Requirement::Btf,
        _ => Requirement::Tracefs,
    });
    requirements
}

/// A test of one mode of the workload, on a recording of its own.
pub fn case_of(
    scenario: Scenario,
    modes: &'static [&'static str],
    name: &str,
    judge: Judge,
) -> Case {
    let scenario = Scenario { modes, ..scenario };
    let name = format!("{}: {name}", scenario.name);
    let requirements = requirements(&scenario);
    Case::new(name, requirements, move || {
        judge(&Recording::make(&scenario)?)
    })
}

/// The tests of a recording.
pub fn cases_of(scenario: Scenario) -> Vec<Case> {
    let requirements = requirements(&scenario);
    let shared = Arc::new(OnceLock::new());
    promises(&scenario)
        .into_iter()
        .map(|(promise, judge)| {
            let shared = Arc::clone(&shared);
            let name = format!("{}: {promise}", scenario.name);
            Case::new(name, requirements.clone(), move || {
                let made = shared.get_or_init(|| Recording::make(&scenario));
                match made {
                    Ok(recording) => judge(recording),
                    Err(error) => anyhow::bail!("no recording: {error:#}"),
                }
            })
        })
        .collect()
}

fn promises(scenario: &Scenario) -> Vec<(&'static str, Judge)> {
    let mut promises: Vec<(&str, Judge)> = vec![
        (
            "every byte that the device counted is in the trace",
            accounting,
        ),
        ("segments add up to their requests", segments),
    ];
    if scenario.backend == "auto" {
        promises.push(("tracefs is chosen, and said", chosen));
    }
    if scenario.backend != "bpf" {
        promises.push(("99 % of the data go to their file", files_by_tracefs));
        promises.push(("98 % of the data go to their process", processes_by_tracefs));
        return promises;
    }
    promises.extend([
        ("the kernel takes the BPF programs", by_bpf as Judge),
        ("99.9 % of the data go to their file", files),
        ("99.5 % of the data go to their process", processes),
        ("99.9 % of the bytes have their class", classes),
        ("every sync call is seen", syncs),
    ]);
    if scenario.name == "ext4" && scenario.modes.is_empty() {
        promises.push((
            "a mistake of any kind would be noticed",
            mistakes_are_noticed,
        ));
    }
    promises.extend(own_promises(scenario.name));
    promises.extend(crate::stacks::promises(scenario.below));
    promises
}

const CAUSES: (&str, Judge) = (
    "98 % of the journal go to the sync call that needed it",
    causes,
);
const LOG_CONTENTS: (&str, Judge) = (
    "99.9 % of the journal have the transaction and home of logdump",
    log_contents,
);
const HOME_CLASSES: (&str, Judge) = (
    "99.9 % of the logged blocks have the class of their home",
    home_classes,
);

/// What only one filesystem can be asked; it is the first word of a name.
fn own_promises(name: &str) -> Vec<(&'static str, Judge)> {
    match name.split(" on ").next().unwrap_or(name) {
        "ext4" => vec![
            CAUSES,
            (
                "journal blocks that nobody waited for have no cause",
                causeless,
            ),
            LOG_CONTENTS,
            HOME_CLASSES,
        ],
        // A commit that nobody waits for comes when the clock says so.
        "ext4 data=journal" => vec![CAUSES, LOG_CONTENTS, HOME_CLASSES],
        "xfs" => vec![(
            "98 % of the log go to the sync call that needed it",
            causes as Judge,
        )],
        "f2fs" | "f2fs checkpoint_merge" => vec![
            (
                "98 % of the inodes written for an fsync go to that call",
                causes as Judge,
            ),
            (
                "98 % of the data go to the call that made them durable",
                data_causes,
            ),
        ],
        "nilfs2" => vec![
            (
                "98 % of the logs go to the sync call that needed them",
                causes as Judge,
            ),
            (
                "98 % of the data go to the call that made them durable",
                data_causes,
            ),
            ("logs of direct writes have no cause", causeless),
            (
                "99.9 % of the logs have the place that dumpseg tells",
                log_contents,
            ),
        ],
        "vfat" => vec![(
            "98 % of the data go to the call that made them durable",
            data_causes as Judge,
        )],
        "btrfs" => vec![
            (
                "98 % of the tree log go to the sync call that needed it",
                causes as Judge,
            ),
            (
                "99.9 % of the tree blocks have their logical address",
                logical_addresses,
            ),
            (
                "tree blocks are seen in every copy of the chunk tree",
                copies,
            ),
        ],
        _ => Vec::new(),
    }
}

fn require(
    recording: &Recording,
    what: &str,
    minimum: f64,
    score: impl FnOnce(&Comparison<'_>) -> Score,
) -> anyhow::Result<()> {
    recording.compare(score).require(what, minimum)
}

/// The recording was made by them; nothing was lost for want of one.
fn by_bpf(recording: &Recording) -> anyhow::Result<()> {
    let manifest = &recording.trace.manifest;
    println!("    Linux {}", manifest.host.kernel);
    anyhow::ensure!(manifest.backend == Backend::Bpf, "{:?}", manifest.backend);
    let lost = manifest.check.lost_events;
    anyhow::ensure!(lost == 0, "{lost} events were lost");
    Ok(())
}

fn chosen(recording: &Recording) -> anyhow::Result<()> {
    let manifest = &recording.trace.manifest;
    println!("    Linux {}", manifest.host.kernel);
    anyhow::ensure!(
        manifest.backend == Backend::Tracefs,
        "{:?}",
        manifest.backend
    );
    let said = &recording.outcome.stdout;
    anyhow::ensure!(said.contains("tracefs"), "nothing of it in:\n{said}");
    Ok(())
}

fn files(recording: &Recording) -> anyhow::Result<()> {
    found_most_blocks(recording)?;
    require(recording, "data to file", 99.9, |c| c.files())
}

fn processes(recording: &Recording) -> anyhow::Result<()> {
    require(recording, "data to process", 99.5, |c| c.processes())
}

fn files_by_tracefs(recording: &Recording) -> anyhow::Result<()> {
    found_most_blocks(recording)?;
    require(recording, "data to file", 99.0, |c| c.files())
}

fn processes_by_tracefs(recording: &Recording) -> anyhow::Result<()> {
    require(recording, "data to process", 98.0, |c| c.processes())
}

/// Another row of the same table.
fn neighbour(row: u32) -> u32 {
    row.checked_sub(1).unwrap_or(1)
}

/// The comparison itself: every answer of the trace is made wrong in turn, and its score falls.
/// Not to nothing: of processes that sync together, a neighbour can be right.
fn mistakes_are_noticed(recording: &Recording) -> anyhow::Result<()> {
    type Mistake = fn(&mut Segment);
    type Measure = fn(&Comparison<'_>) -> Score;
    let mistakes: [(&str, Mistake, Measure); 7] = [
        ("file", |s| s.file = s.file.map(neighbour), |c| c.files()),
        (
            "offset",
            |s| s.file_offset_bytes = s.file_offset_bytes.map(|o| o + 512),
            |c| c.files(),
        ),
        (
            "process",
            |s| s.dirtier = s.dirtier.map(neighbour),
            |c| c.processes(),
        ),
        ("class", |s| s.class = Class::Directory, |c| c.classes()),
        (
            "cause",
            |s| s.cause = s.cause.map(neighbour),
            |c| c.causes(),
        ),
        (
            "commit",
            |s| s.commit = s.commit.map(|commit| commit + 1),
            |c| c.log_contents(),
        ),
        ("home", |s| s.home_class = None, |c| c.home_classes()),
    ];
    for (what, mistake, measure) in mistakes {
        let mut trace = recording.trace.clone();
        trace.segments.iter_mut().for_each(mistake);
        let score = recording.compare_other(&trace, measure);
        println!("    every {what} wrong: {score}");
        anyhow::ensure!(
            score.percent() < 30.0,
            "every {what} is wrong, and yet: {score}"
        );
    }
    Ok(())
}

/// A comparison over few blocks would prove little: overwritten and deleted blocks may be gone,
/// half of all must be there.
fn found_most_blocks(recording: &Recording) -> anyhow::Result<()> {
    let found = recording.compare(|c| c.files()).total();
    let written = recording.facts().bytes();
    println!("    {found} bytes found of {written} written");
    let enough = match recording.found {
        FoundBy::Image => written / 2,
        // What was deleted since is not found; of compressed extents, only the first block is.
        FoundBy::Files => written / 4,
        FoundBy::CompressedFiles => written / 64,
    };
    anyhow::ensure!(
        found > enough,
        "only {found} bytes of {written} are on the image"
    );
    Ok(())
}

fn classes(recording: &Recording) -> anyhow::Result<()> {
    let known = match recording.found {
        FoundBy::Image | FoundBy::Files => 95.0,
        // Of a compressed extent, only the first block is known.
        FoundBy::CompressedFiles => 10.0,
    };
    require(recording, "known classes", known, |c| c.class_coverage())?;
    require(recording, "class", 99.9, |c| c.classes())
}

fn syncs(recording: &Recording) -> anyhow::Result<()> {
    require(recording, "sync calls", 100.0, |c| c.syncs())
}

fn causes(recording: &Recording) -> anyhow::Result<()> {
    require(recording, "known causes", 90.0, |c| c.cause_coverage())?;
    require(recording, "log to sync call", 98.0, |c| c.causes())
}

fn data_causes(recording: &Recording) -> anyhow::Result<()> {
    require(recording, "data to sync call", 98.0, |c| c.data_causes())
}

fn causeless(recording: &Recording) -> anyhow::Result<()> {
    require(recording, "log to nobody", 98.0, |c| c.causeless())
}

fn log_contents(recording: &Recording) -> anyhow::Result<()> {
    require(recording, "commit and home", 99.9, |c| c.log_contents())
}

fn home_classes(recording: &Recording) -> anyhow::Result<()> {
    require(recording, "class of home", 99.9, |c| c.home_classes())
}

fn logical_addresses(recording: &Recording) -> anyhow::Result<()> {
    require(recording, "logical address", 99.9, |c| {
        c.logical_addresses()
    })
}

/// The trace's own sums at all three points against the counters that this test read. Reads are
/// left out: the command itself reads the superblock before it begins to record.
fn accounting(recording: &Recording) -> anyhow::Result<()> {
    let manifest = &recording.trace.manifest;
    let check = &manifest.check;
    anyhow::ensure!(check.passed(), "the self-check failed: {check:?}");
    let writes = recording.trace.requests.iter();
    let writes = writes.filter(|r| r.operation.counter() == Counter::Write);
    let in_table: u64 = writes.map(|r| u64::from(r.bytes)).sum();
    let counted = recording.counted;
    println!("    device: {counted:?}");
    let sums = [
        ("queued", check.queued.write.bytes),
        ("issued", check.issued.write.bytes),
        ("completed", check.completed.write.bytes),
        ("in the table", in_table),
    ];
    for (point, bytes) in sums {
        let expected = counted.write.bytes;
        anyhow::ensure!(
            bytes == expected,
            "{bytes} bytes {point}, {expected} counted"
        );
    }
    let ios = check.completed.write.ios;
    anyhow::ensure!(ios == counted.write.ios, "{ios} writes, {counted:?}");
    let flushes = check.completed.flush.ios;
    anyhow::ensure!(
        flushes == counted.flush.ios,
        "{flushes} flushes, {counted:?}"
    );
    Ok(())
}

fn segments(recording: &Recording) -> anyhow::Result<()> {
    let trace = &recording.trace;
    let mut seen = 0;
    for request in &trace.requests {
        let segments = trace.segments_of(request);
        seen += segments.len();
        let mut sector = request.sector;
        for segment in segments {
            anyhow::ensure!(
                segment.sector == sector,
                "a gap before {segment:?} in {request:?}"
            );
            sector += u64::from(segment.bytes) / SECTOR_BYTES;
        }
        let bytes: u64 = segments.iter().map(|s| u64::from(s.bytes)).sum();
        anyhow::ensure!(
            bytes == u64::from(request.bytes) || !request.operation.is_write(),
            "{bytes} bytes in segments of {request:?}"
        );
    }
    anyhow::ensure!(
        seen == trace.segments.len(),
        "{seen} of {}",
        trace.segments.len()
    );
    println!("    {} requests, {seen} segments", trace.requests.len());
    println!(
        "    first line: {}",
        recording.outcome.stdout.lines().next().unwrap_or("")
    );
    Ok(())
}

fn copies(recording: &Recording) -> anyhow::Result<()> {
    let mut seen: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for segment in &recording.above.segments {
        if let Some(home) = segment.home {
            seen.entry(home).or_default().insert(segment.sector);
        }
    }
    for (logical, sectors) in &seen {
        let expected: BTreeSet<u64> = recording.copies[logical].iter().copied().collect();
        anyhow::ensure!(
            *sectors == expected,
            "{logical}: {sectors:?}, expected {expected:?}"
        );
    }
    println!("    {} tree blocks", seen.len());
    anyhow::ensure!(!seen.is_empty(), "no tree block in the trace");
    Ok(())
}
