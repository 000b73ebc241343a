//! Writes to a device itself, past any filesystem: who made each byte dirty, and which calls sync.
//!
//! Ground truth: which program wrote which sectors, by its arguments.

use std::path::Path;

use anyhow::{Context, ensure};
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::image::{LoopImage, Options};
use iostep_model::table::Trace;
use iostep_model::{Class, Operation, SECTOR_BYTES, SyncKind, store};

use crate::case::Case;

const BLOCK_BYTES: u64 = 4096;
/// Programs by their names, each with its own blocks: written and left to the kernel, of which `sync`
/// makes writes; synced by `fsync`; written by O_DSYNC; through memory, of which only two pages change;
/// written over by another before they were written; by direct I/O.
const COMMAND: &str = r#"
set -e
write() { name=$1; shift; cp "$(command -v dd)" "$D/$name"; "$D/$name" if=/dev/urandom of="$1" bs=4k \
    conv=notrunc "$2" "$3" $4 2> /dev/null; }
write buffered "$1" count=64 seek=0
sync
write synced "$1" count=64 seek=100 conv=notrunc,fsync
write durable "$1" count=3 seek=200 oflag=dsync
write direct "$1" count=5 seek=300 oflag=direct
write first "$1" count=16 seek=400
write second "$1" count=16 seek=400
sync
python3 -c '
import mmap, sys
f = open(sys.argv[1], "r+b")
m = mmap.mmap(f.fileno(), 65536, offset=4096 * 1024)
m[0:4] = b"abcd"
m[40000] = 7
m.flush()
' "$1"
"#;

/// Who dirtied which blocks: the first block, how many, and the program.
const WRITTEN: [(u64, u64, &str); 7] = [
    (0, 64, "buffered"),
    (100, 64, "synced"),
    (200, 3, "durable"),
    (300, 5, "direct"),
    // Of several threads between two write-backs, the first.
    (400, 16, "first"),
    (1024, 1, "python3"),
    (1033, 1, "python3"),
];

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let needs = [
        Requirement::Root,
        Requirement::Loop,
        Requirement::Btf,
        Requirement::Program("python3"),
    ];
    let name = "every byte has the program that wrote it, and every sync call is there";
    vec![Case::new(name, needs, written).about("raw device")]
}

fn written() -> anyhow::Result<()> {
    let image = LoopImage::create(&Options {
        bytes: 16 << 20,
        ..Options::default()
    })?;
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let trace = traced(image.device(), &output, directory.path())?;
    dirtied(&trace)?;
    synced(&trace)
}

/// Each block has the program that wrote it.
fn dirtied(trace: &Trace) -> anyhow::Result<()> {
    let mut blocks = 0;
    for request in &trace.requests {
        for segment in trace.segments_of(request) {
            if request.operation != Operation::Write {
                continue;
            }
            ensure!(segment.class == Class::DeviceData, "{segment:?}");
            let first = segment.sector * SECTOR_BYTES / BLOCK_BYTES;
            let here = u64::from(segment.bytes) / BLOCK_BYTES;
            let known = WRITTEN.iter();
            let mut known = known.filter(|(at, count, _)| (*at..at + count).contains(&first));
            let (at, count, program) = known.next().context("a block that nobody wrote")?;
            ensure!(
                first + here <= at + count,
                "{segment:?} goes on behind {program}'s"
            );
            let dirtier = segment.dirtier.context("no dirtier")?;
            let found = &trace.processes[dirtier as usize].comm;
            ensure!(
                found.starts_with(program),
                "{program}'s block {first} is {found}'s"
            );
            ensure!(!segment.dirtier_by_inode, "{segment:?}");
            blocks += here;
        }
    }
    let expected: u64 = WRITTEN.iter().map(|(_, count, _)| count).sum();
    ensure!(
        blocks == expected,
        "{blocks} blocks, {expected} were written"
    );
    Ok(())
}

/// Each sync call is there, and is the cause of what it wrote.
fn synced(trace: &Trace) -> anyhow::Result<()> {
    let count = |kind| trace.syncs.iter().filter(|call| call.kind == kind).count();
    let kinds = [
        SyncKind::Fsync,
        SyncKind::ODsync,
        SyncKind::Msync,
        SyncKind::Sync,
    ];
    let counts = kinds.map(count);
    ensure!(counts == [1, 3, 1, 2], "{counts:?} of {kinds:?}");
    ensure!(trace.syncs.len() == 7, "{:?}", trace.syncs);
    // A call on the device is on no file, and the cause of what it writes.
    for call in trace
        .syncs
        .iter()
        .filter(|call| call.kind == SyncKind::ODsync)
    {
        ensure!(call.file.is_none() && call.exit_ns.is_some(), "{call:?}");
    }
    let caused = |kind| {
        let segments = trace.segments.iter();
        let segments = segments.filter(|it| {
            it.cause
                .is_some_and(|at| trace.syncs[at as usize].kind == kind)
        });
        segments
            .map(|it| u64::from(it.bytes) / BLOCK_BYTES)
            .sum::<u64>()
    };
    let caused = [
        caused(SyncKind::Fsync),
        caused(SyncKind::ODsync),
        caused(SyncKind::Msync),
    ];
    ensure!(caused == [64, 3, 2], "{caused:?}");
    Ok(())
}

fn traced(device: &Path, output: &Path, programs: &Path) -> anyhow::Result<Trace> {
    let [device, output, programs] = [device, output, programs].map(|path| path.to_string_lossy());
    let script = format!("D='{programs}'\n{COMMAND}");
    let command = [
        "trace", &device, "-o", &output, "--", "sh", "-c", &script, "sh", &device,
    ];
    iostep::run(command)?.success()?;
    let trace = store::read(Path::new(&*output))?;
    ensure!(trace.manifest.check.passed(), "{:#?}", trace.manifest.check);
    Ok(trace)
}
