//! Large folios, which several programs write to: each page has its writer, or says that it is not
//! known.
//!
//! Ground truth: of two programs each writes every other page, by its arguments.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::table::Trace;
use iostep_model::{Class, Operation, store};

use crate::case::Case;
use crate::stage::{self, Stage};

const PAGE_BYTES: u64 = 4096;
const PAGES: u64 = 1024;

/// Reads a file into the page cache, and prints how many of its pages are in large folios
/// (`KPF_COMPOUND_HEAD`, `KPF_COMPOUND_TAIL`, Documentation/admin-guide/mm/pagemap.rst).
const READ: &str = r#"
import ctypes, mmap, os, struct, sys
f = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
while os.read(f, 65536): pass
size = os.fstat(f).st_size
m = mmap.mmap(f, size, access=mmap.ACCESS_COPY)
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
pages, flags = open('/proc/self/pagemap', 'rb', 0), open('/proc/kpageflags', 'rb', 0)
large = 0
for page in range(size // 4096):
    m[page * 4096]
    pages.seek((at // 4096 + page) * 8)
    frame = struct.unpack('Q', pages.read(8))[0] & (1 << 55) - 1
    flags.seek(frame * 8)
    large += struct.unpack('Q', flags.read(8))[0] >> 15 & 3 != 0
print(large)
"#;

/// Two programs by their own names, each of which writes every other page in the way that its
/// argument says; at the same time, or (`then`) the second after the first.
const WRITE: &str = r#"
import mmap, os, sys
path, ways = sys.argv[1], sys.argv[2].split('-')
def write(me, way):
    open('/proc/self/comm', 'w').write('writer-%d' % me)
    f = os.open(path, os.O_RDWR)
    m = mmap.mmap(f, 0) if way == 'map' else None
    for page in range(me, os.fstat(f).st_size // 4096, 2):
        data = bytes([65 + me]) * 4096
        if m: m[page * 4096:page * 4096 + 4096] = data
        elif os.pwrite(f, data, page * 4096) != 4096: os._exit(1)
    os._exit(0)
for me in range(2):
    if not os.fork(): write(me, ways[me])
    if ways[2] == 'then': assert os.wait()[1] == 0
if ways[2] != 'then':
    for me in range(2): assert os.wait()[1] == 0
"#;

/// Of the first program, of the second, and when.
const WAYS: [&str; 5] = [
    "call-call-at_once",
    "call-call-then",
    "map-call-then",
    "call-map-then",
    "map-map-at_once",
];

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let on = |kind, run: fn() -> anyhow::Result<()>| {
        let mut needs = stage::requirements(kind);
        needs.extend([Requirement::Btf, Requirement::Program("python3")]);
        let name = format!("pages of large folios have their writer or a mark on {kind}");
        Case::new(name, needs, run).about("folios")
    };
    vec![
        on(Kind::Ext4, || written(Kind::Ext4)),
        on(Kind::Xfs, || written(Kind::Xfs)),
        on(Kind::Btrfs, || written(Kind::Btrfs)),
    ]
}

fn written(kind: Kind) -> anyhow::Result<()> {
    let stage = Stage::new(kind, &[], "")?;
    for way in WAYS {
        let shares = Shares::of(&stage, way)?;
        println!(
            "    {way}, {} pages in large folios: {shares:?}",
            shares.large
        );
        let sum = shares.right + shares.marked + shares.wrong;
        ensure!(sum >= PAGES, "{way}: {sum} pages of {PAGES} were written");
        ensure!(shares.wrong == 0, "{way}: {shares:?}");
        ensure!(
            way.contains("map") || shares.marked == 0,
            "{way}: what was written by calls is known, {shares:?}"
        );
    }
    Ok(())
}

/// Pages that were written.
#[derive(Debug, Default)]
struct Shares {
    /// In the page cache, before they were written.
    large: u64,
    right: u64,
    /// Only the file's last writer is known, and the row says so.
    marked: u64,
    wrong: u64,
}

impl Shares {
    fn of(stage: &Stage, way: &str) -> anyhow::Result<Shares> {
        let path = stage.root().join(way);
        std::fs::write(&path, vec![0; (PAGES * PAGE_BYTES) as usize])?;
        stage.settle()?;
        let path = path.display().to_string();
        let read = Command::new("python3").args(["-c", READ, &path]).output()?;
        let large = String::from_utf8(read.stdout)?;
        let mut shares = Shares {
            large: large.trim().parse().context("pages in large folios")?,
            ..Shares::default()
        };
        let (trace, text) = traced(stage, &["python3", "-c", WRITE, &path, way])?;
        let writes = trace.requests.iter();
        let writes = writes.filter(|it| it.operation == Operation::Write);
        for segment in writes.flat_map(|it| trace.segments_of(it)) {
            let offset = segment.file_offset_bytes;
            let Some(offset) = offset.filter(|_| segment.class == Class::FileData) else {
                continue;
            };
            let dirtier = segment.dirtier.context("data without a dirtier")?;
            let name = &trace.processes[dirtier as usize].comm;
            let first = offset / PAGE_BYTES;
            for page in first..first + u64::from(segment.bytes) / PAGE_BYTES {
                match *name == format!("writer-{}", page % 2) {
                    _ if segment.dirtier_by_inode => shares.marked += 1,
                    true => shares.right += 1,
                    false => shares.wrong += 1,
                }
            }
        }
        let says = text.contains("that are the file's last writer's");
        ensure!(
            says == (shares.marked > 0),
            "{shares:?}, and the report:\n{text}"
        );
        Ok(shares)
    }
}

/// A trace, and what is printed of it.
fn traced(stage: &Stage, command: &[&str]) -> anyhow::Result<(Trace, String)> {
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    let run = iostep::run(stage.trace(&output, &["--settle"], &command))?;
    let text = run.success()?.stdout;
    let trace = store::read(Path::new(&output)).context("a whole trace")?;
    ensure!(trace.manifest.check.passed(), "{:#?}", trace.manifest.check);
    Ok((trace, text))
}
