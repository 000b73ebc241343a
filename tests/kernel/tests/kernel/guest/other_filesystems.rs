//! Filesystems that iostep has no rules for: files and sync calls are known all the same, and what is
//! no file's is unknown.
//!
//! Ground truth: what the command writes and syncs.

use anyhow::{Context, ensure};
use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::{iostep, kernels};
use iostep_model::class::Layer;
use iostep_model::{Class, Operation, SyncKind, store};

use super::{LIMIT, guest};
use crate::case::Case;

/// 64 files of 8 blocks, and four that are synced in four ways, of 4 blocks each.
const WRITES: &str = r#"
set -e
for i in 1 2 3 4 5 6 7 8; do
    mkdir "$1/d$i"
    for j in 1 2 3 4 5 6 7 8; do
        dd if=/dev/urandom of="$1/d$i/f$j" bs=4k count=8 2> /dev/null
    done
done
dd if=/dev/urandom of="$1/osync" bs=4k count=4 oflag=sync 2> /dev/null
dd if=/dev/urandom of="$1/odsync" bs=4k count=4 oflag=dsync 2> /dev/null
dd if=/dev/urandom of="$1/fsync" bs=4k count=4 conv=fsync 2> /dev/null
python3 -c '
import mmap, sys
f = open(sys.argv[1], "w+b")
f.write(b"x" * 16384)
f.flush()
m = mmap.mmap(f.fileno(), 16384)
m[0:4] = b"abcd"
m.flush()
' "$1/mapped"
"#;
const FILES: usize = 64 + 4;
const FILE_BYTES: u64 = (64 * 8 + 4 * 4) * 4096;
const SYNCS: [(SyncKind, usize); 4] = [
    (SyncKind::OSync, 4),
    (SyncKind::ODsync, 4),
    (SyncKind::Fsync, 1),
    (SyncKind::Msync, 1),
];

const RUN: &str = r#"
set -e
modprobe "$3"
$4 /dev/vda > /dev/null 2>&1
mkdir /tmp/m
mount -t "$3" /dev/vda /tmp/m
"$1" trace /tmp/m -o "$2/trace" --settle -- sh -c "$5" sh /tmp/m
"#;

/// By the kernel's name: the command that makes one, and the kernels that have it.
const KINDS: [(&str, &str, &str, &[&str]); 4] = [
    ("minix", "mkfs.minix", "mkfs.minix -3", &["6.1", "newest-7"]),
    ("exfat", "mkfs.exfat", "mkfs.exfat", &["6.1", "newest-7"]),
    ("udf", "mkfs.udf", "mkfs.udf -b 512", &["6.12"]),
    ("ntfs3", "mkfs.ntfs", "mkfs.ntfs -F -f", &["6.12"]),
];

/// Every test of this file.
pub fn cases(needs: impl Fn(&[&'static str]) -> Vec<Requirement>) -> Vec<Case> {
    let mut all = Vec::new();
    for (kind, program, make, roles) in KINDS {
        for role in roles {
            let mut needs = needs(&[program, "python3"]);
            needs.push(Requirement::Kernel(role));
            let name =
                format!("{role}, {kind}: files and sync calls are known, the rest is unknown");
            all.push(Case::new(name, needs, move || known(role, kind, make)));
        }
    }
    all
}

fn known(role: &str, kind: &str, make: &str) -> anyhow::Result<()> {
    let kernel = kernels::image(role).context("it was there a moment ago")?;
    let directory = tempfile::tempdir()?;
    let (kernel, place) = (kernel.to_string_lossy(), directory.path().to_string_lossy());
    let binary = iostep::binary()?;
    let binary = binary.to_string_lossy();
    let flags = ["--kernel", &kernel, "--size", "128MiB", "--rw", &place];
    let command = [
        "--", "sh", "-c", RUN, "sh", &binary, &place, kind, make, WRITES,
    ];
    guest(&[&flags[..], &command].concat(), LIMIT)?.status(0)?;
    let trace = store::read(&directory.path().join("trace"))?;
    ensure!(trace.manifest.check.passed(), "{:#?}", trace.manifest.check);
    let (mut of_files, mut unknown) = (0, 0);
    let mut files: Vec<u32> = Vec::new();
    for request in trace
        .requests
        .iter()
        .filter(|it| it.operation == Operation::Write)
    {
        for segment in trace.segments_of(request) {
            let bytes = u64::from(segment.bytes);
            match segment.class {
                Class::FileData => {
                    let file = segment.file.context("data without a file")?;
                    ensure!(segment.dirtier.is_some(), "{segment:?}");
                    files.push(file);
                    of_files += bytes;
                }
                Class::Directory => {}
                class => {
                    ensure!(class.layer() == Layer::Unknown, "{segment:?}");
                    unknown += bytes;
                }
            }
        }
    }
    files.sort_unstable();
    files.dedup();
    println!(
        "    {of_files} bytes of {} files, {unknown} unknown",
        files.len()
    );
    ensure!(files.len() == FILES, "{} files", files.len());
    // What is mapped is written twice where the first write-back came in between.
    ensure!(
        (FILE_BYTES..=FILE_BYTES + 4 * 4096).contains(&of_files),
        "{of_files}"
    );
    ensure!(unknown > 0, "the filesystem has no structures");
    for (kind, expected) in SYNCS {
        let calls: Vec<_> = trace
            .syncs
            .iter()
            .filter(|call| call.kind == kind)
            .collect();
        ensure!(calls.len() == expected, "{kind:?}: {} calls", calls.len());
        for call in calls {
            ensure!(call.file.is_some() && call.exit_ns.is_some(), "{call:?}");
        }
    }
    Ok(())
}
