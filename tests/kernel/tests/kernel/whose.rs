//! Whose bytes are: where a thread that syncs makes others' pages dirty again, and where btrfs reads
//! or moves files' data by itself.
//!
//! Ground truth: each program writes blocks of its own, by its arguments.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::class::Layer;
use iostep_model::table::Trace;
use iostep_model::{Class, Operation, store};

use crate::case::Case;
use crate::stage::{self, Stage};

const BLOCK_BYTES: u64 = 4096;
const WRITERS: u64 = 4;
const BLOCKS: u64 = 64;

/// Each of four processes, by its own name, writes every fourth block of one file, and syncs the file
/// after each block.
const SHARED: &str = r#"
open(F, '+<', $ARGV[0]) or die;
binmode F;
for my $me (0..3) {
    next if fork;
    $0 = "writer-$me";
    open(G, '+<', $ARGV[0]) or die;
    for (my $at = $me; $at < 64; $at += 4) {
        sysseek(G, $at * 4096, 0);
        syswrite(G, chr(65 + $me) x 4096) == 4096 or die;
        IO::Handle::sync(*G) or die;
    }
    exit 0;
}
1 while wait > 0;
"#;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let ext4 = [
        &stage::requirements(Kind::Ext4)[..],
        &[Requirement::Btf, Requirement::Program("perl")],
    ];
    let btrfs = [
        &stage::requirements(Kind::Btrfs)[..],
        &[Requirement::Btf, Requirement::Program("btrfs")],
    ];
    let (ext4, btrfs) = (ext4.concat(), btrfs.concat());
    let all = vec![
        Case::new(
            "with data=journal, a page that others sync stays its writer's",
            ext4,
            shared,
        ),
        Case::new(
            "what a scrub reads is not metadata",
            btrfs.clone(),
            scrubbed,
        ),
        Case::new("what a balance moves is no other file's", btrfs, balanced),
    ];
    all.into_iter().map(|case| case.about("whose")).collect()
}

fn shared() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "data=journal")?;
    let path = stage.root().join("shared");
    std::fs::write(&path, vec![0; (BLOCKS * BLOCK_BYTES) as usize])?;
    stage.settle()?;
    let path = path.display().to_string();
    let command = ["perl", "-MIO::Handle", "-e", SHARED, &path].map(str::to_owned);
    let trace = traced(&stage, &command)?;
    let (mut right, mut wrong) = (0, 0);
    for segment in trace.requests.iter().flat_map(|it| trace.segments_of(it)) {
        let is_data = matches!(segment.class, Class::FileData | Class::LoggedData);
        let Some(offset) = segment.file_offset_bytes.filter(|_| is_data) else {
            continue;
        };
        let Some(dirtier) = segment.dirtier else {
            continue;
        };
        let block = offset / BLOCK_BYTES;
        for at in block..block + u64::from(segment.bytes) / BLOCK_BYTES {
            let name = format!("writer-{}", at % WRITERS);
            match trace.processes[dirtier as usize].comm == name {
                true => right += 1,
                false => wrong += 1,
            }
        }
    }
    println!("    {right} blocks right, {wrong} wrong");
    ensure!(
        right >= BLOCKS && wrong == 0,
        "{wrong} blocks are another's, {right} right"
    );
    Ok(())
}

/// A btrfs with a file of 8 MiB.
fn filled() -> anyhow::Result<Stage> {
    let stage = Stage::new(Kind::Btrfs, &[], "")?;
    let made = Command::new("dd")
        .args([
            "if=/dev/urandom",
            "bs=1M",
            "count=8",
            "conv=fsync",
            "status=none",
        ])
        .arg(format!("of={}/file", stage.root().display()))
        .status()?;
    ensure!(made.success(), "dd failed");
    stage.settle()?;
    Ok(stage)
}

fn scrubbed() -> anyhow::Result<()> {
    let stage = filled()?;
    let root = stage.root().display().to_string();
    let command = ["btrfs", "scrub", "start", "-B", &root].map(str::to_owned);
    let trace = traced(&stage, &command)?;
    let bytes = |wanted: &dyn Fn(Class) -> bool| sum(&trace, Operation::Read, wanted);
    let (system, all) = (bytes(&|class| class == Class::SystemFile), bytes(&|_| true));
    println!("    {all} bytes read, {system} of them a system file's");
    ensure!(all >= 8 << 20, "the scrub read {all} bytes");
    ensure!(
        system == 0,
        "{system} bytes of a user's file are a system file's"
    );
    Ok(())
}

fn balanced() -> anyhow::Result<()> {
    let stage = filled()?;
    let root = stage.root().display().to_string();
    let command = ["btrfs", "balance", "start", "-d", &root].map(str::to_owned);
    let trace = traced(&stage, &command)?;
    let data = sum(&trace, Operation::Write, &|class| {
        class.layer() == Layer::Data
    });
    ensure!(data >= 8 << 20, "the balance moved {data} bytes");
    for segment in &trace.segments {
        let Some(file) = segment.file else { continue };
        let key = trace.files[file as usize].key;
        // The tree of a balance's own inodes.
        ensure!(key.subvolume != (-9i64) as u64, "{segment:?} is {key:?}'s");
    }
    Ok(())
}

fn sum(trace: &Trace, operation: Operation, wanted: &dyn Fn(Class) -> bool) -> u64 {
    let requests = trace.requests.iter().filter(|it| it.operation == operation);
    let segments = requests.flat_map(|it| trace.segments_of(it));
    let segments = segments.filter(|it| wanted(it.class));
    segments.map(|it| u64::from(it.bytes)).sum()
}

fn traced(stage: &Stage, command: &[String]) -> anyhow::Result<Trace> {
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    iostep::run(stage.trace(&output, &["--settle"], command))?.success()?;
    let trace = store::read(Path::new(&output)).context("a whole trace")?;
    ensure!(trace.manifest.check.passed(), "{:#?}", trace.manifest.check);
    Ok(trace)
}
