//! What a filesystem writes anew by itself is no program's write.
//!
//! Ground truth: the command writes so many pages, each once, and nothing else to its file.

use std::fs::File;
use std::os::unix::fs::FileExt;

use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::{Class, Operation, store};

use crate::case::Case;
use crate::stage::{self, Stage};

const PAGE_BYTES: u64 = 4096;
const PAGES: u64 = 150;
/// Pages from one that the command writes to the next.
const APART: u64 = 16;
/// How often it is looked whether the filesystem has begun.
const TRIES: usize = 3;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut needs = stage::requirements(Kind::Btrfs);
    needs.extend([Requirement::Btf, Requirement::Program("perl")]);
    let name = "what btrfs defragments by itself is dirtied by its cleaner";
    vec![Case::new(name, needs, defragmented).about("rewritten")]
}

/// The command syncs what it wrote, in many small extents, and makes changes until a commit wakes
/// the cleaner, which makes large extents of them.
fn defragmented() -> anyhow::Result<()> {
    for _ in 1..TRIES {
        if by_cleaner()? > 0 {
            return Ok(());
        }
    }
    anyhow::ensure!(by_cleaner()? > 0, "btrfs defragmented nothing");
    Ok(())
}

/// Bytes that the cleaner dirtied.
fn by_cleaner() -> anyhow::Result<u64> {
    let stage = Stage::new(Kind::Btrfs, &[], "autodefrag,commit=1")?;
    let path = stage.root().join("fragments");
    let file = File::create_new(&path)?;
    file.write_all_at(&vec![1; (PAGES * APART * PAGE_BYTES) as usize], 0)?;
    file.sync_all()?;
    stage.settle()?;
    let script = format!(
        "use IO::Handle; open(F, '+<', $ARGV[0]) or die; F->autoflush(1); \
         for (0..{PAGES} - 1) {{ seek(F, ($_ * {APART} + 1) * {PAGE_BYTES}, 0); \
         print F chr($_) x {PAGE_BYTES} }} F->sync or die; \
         for (1..8) {{ open(N, '>', \"$ARGV[0]-$_\"); close(N); sleep 1 }}"
    );
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let command = [
        "perl".into(),
        "-e".into(),
        script,
        path.display().to_string(),
    ];
    iostep::run(stage.trace(&output, &["--settle"], &command))?.success()?;
    let trace = store::read(&output)?;
    let (mut cleaner, mut program) = (0, 0);
    for request in &trace.requests {
        if request.operation != Operation::Write {
            continue;
        }
        let data = trace.segments_of(request).iter();
        for segment in data.filter(|segment| segment.class == Class::FileData) {
            let bytes = u64::from(segment.bytes);
            match segment.dirtier.map(|row| trace.program(row)) {
                Some("btrfs-cleaner") => cleaner += bytes,
                Some("perl") => program += bytes,
                _ => {}
            }
        }
    }
    println!("    {program} bytes by the program, {cleaner} by the cleaner");
    anyhow::ensure!(program == PAGES * PAGE_BYTES, "{program} bytes");
    Ok(cleaner)
}
