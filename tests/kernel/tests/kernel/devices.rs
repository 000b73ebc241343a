//! Filesystems with several devices: all of them are traced, whichever is named.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::image::Image;
use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::stamp::Stamp;
use iostep_kernel_tests::written::Written;
use iostep_kernel_tests::{counters, iostep};
use iostep_lab::image::{LoopImage, Options};
use iostep_lab::{Kind, Mount};
use iostep_model::class::Layer;
use iostep_model::manifest::Counters;
use iostep_model::table::{Request, Segment, Trace};
use iostep_model::{Class, Operation, SyncKind, store};

use crate::case::Case;
use crate::stage;

/// Large enough for two copies of btrfs's metadata.
const IMAGE_BYTES: u64 = 320 << 20;
/// Small enough for [`FILL`] to leave no room on it.
const SMALL_BYTES: u64 = 64 << 20;
/// f2fs uses its first device first.
const FILL: &str = "dd if=/dev/zero of=fill bs=1M count=64 2> /dev/null && sync";
const FILES: u32 = 8;
const BLOCKS: u64 = 24;

/// A filesystem on two devices.
#[derive(Clone, Copy)]
struct Pair<'a> {
    kind: Kind,
    /// Makes it of `$1` and `$2`.
    mkfs: &'a str,
    /// Mount options; `$2` stands for the second device.
    mount: &'static str,
    /// The length of the first device.
    first_bytes: u64,
    /// What is done in the filesystem before.
    before: &'static str,
    /// What is traced: `$1`, `$2`, or the mount point if it is empty.
    named: &'static str,
    /// The second device holds nothing but the log.
    has_log: bool,
}

const PAIRS: [(&str, Pair<'static>); 3] = [
    (
        "both devices of a mirrored btrfs are traced if one is named",
        Pair {
            kind: Kind::Btrfs,
            mkfs: "mkfs.btrfs -q -f -d raid1 -m raid1 $1 $2",
            mount: "nodiscard",
            first_bytes: IMAGE_BYTES,
            before: "",
            named: "$2",
            has_log: false,
        },
    ),
    (
        "an ext4 is traced with the device of its journal",
        Pair {
            kind: Kind::Ext4,
            mkfs: "mkfs.ext4 -q -b 4096 -O journal_dev $2 &&
                mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0 -J device=$2 $1",
            mount: "",
            first_bytes: IMAGE_BYTES,
            before: "",
            named: "",
            has_log: true,
        },
    ),
    (
        "an xfs is traced with the device of its log",
        Pair {
            kind: Kind::Xfs,
            mkfs: "mkfs.xfs -q -f -l logdev=$2,size=64m $1",
            mount: "logdev=$2",
            first_bytes: IMAGE_BYTES,
            before: "",
            named: "$1",
            has_log: true,
        },
    ),
];

const F2FS: Pair<'static> = Pair {
    kind: Kind::F2fs,
    mkfs: "mkfs.f2fs -q -f -c $2 $1",
    mount: "nodiscard",
    first_bytes: SMALL_BYTES,
    before: FILL,
    named: "",
    has_log: false,
};

/// Every test of this file but those of f2fs.
pub fn cases() -> Vec<Case> {
    let all = PAIRS.into_iter().map(|(name, pair)| {
        let needs = requirements(pair.kind);
        Case::new(name, needs, move || traced(pair))
    });
    all.collect()
}

/// Those of f2fs.
pub fn cases_of_f2fs() -> Vec<Case> {
    let mut all: Vec<Case> = [("", "mount"), ("$1", "first"), ("$2", "second")]
        .into_iter()
        .map(|(named, what)| {
            let name = format!("both devices of an f2fs are traced if its {what} is named");
            let pair = Pair { named, ..F2FS };
            Case::new(name, requirements(Kind::F2fs), move || traced(pair))
        })
        .collect();
    all.push(Case::new(
        "an f2fs whose second device has another name is refused",
        requirements(Kind::F2fs),
        moved,
    ));
    all
}

fn requirements(kind: Kind) -> Vec<Requirement> {
    let mut needs = stage::requirements(kind);
    needs.push(Requirement::Btf);
    needs
}

fn image(bytes: u64) -> anyhow::Result<LoopImage> {
    Ok(LoopImage::create(&Options {
        bytes,
        ..Options::default()
    })?)
}

fn traced(pair: Pair<'static>) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disks = [image(pair.first_bytes)?, image(IMAGE_BYTES)?];
    let mount = mounted(pair, &disks)?;
    let status = Command::new("sh")
        .args(["-c", pair.before])
        .current_dir(mount.path())
        .status()?;
    anyhow::ensure!(status.success(), "{}: {status}", pair.before);
    let before = counted(&disks)?;
    let output = directory.path().join("run.iostep");
    record(pair, &disks, &mount, directory.path(), &output)?;
    let after = counted(&disks)?;
    mount.unmount()?;
    let trace = store::read(&output)?;
    println!("    {}", trace.manifest.device_label());
    anyhow::ensure!(trace.manifest.check.passed(), "{:?}", trace.manifest.check);
    let mut found = 0;
    for (at, disk) in disks.iter().enumerate() {
        let part = part_of(&trace, disk)?;
        same_sums(&part, counters::difference(before[at], after[at]))?;
        if at == 1 && pair.has_log {
            only_log(&part)?;
        }
        found += blocks(&part, disk)?;
    }
    let copies = if pair.kind == Kind::Btrfs { 2 } else { 1 };
    let expected = u64::from(FILES) * BLOCKS * copies;
    anyhow::ensure!(found == expected, "{found} blocks of {expected}");
    Ok(())
}

/// The name that mkfs.f2fs was given leads elsewhere, or nowhere, while it is mounted.
fn moved() -> anyhow::Result<()> {
    let links = tempfile::Builder::new()
        .prefix("iostep-")
        .tempdir_in("/dev")?;
    let name = links.path().join("second");
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let output = output.to_string_lossy();
    let trace = |what: &str| iostep::run(["trace", what, "-o", &output, "--", "true"]);
    let lead_to = |disk: &LoopImage| {
        let _ = std::fs::remove_file(&name);
        std::os::unix::fs::symlink(disk.device(), &name)
    };
    let disks = [image(SMALL_BYTES)?, image(IMAGE_BYTES)?];
    lead_to(&disks[1])?;
    let mkfs = format!("mkfs.f2fs -q -f -c {} $1", name.display());
    let mount = mounted(
        Pair {
            mkfs: &mkfs,
            ..F2FS
        },
        &disks,
    )?;
    let first = disks[0].device().to_string_lossy().into_owned();
    let refused = |what: &str, why: &str| -> anyhow::Result<()> {
        let outcome = trace(what)?.status(4)?;
        let said = format!("{first}: f2fs over several devices is followed by the paths");
        let why = format!("{} {why}", name.display());
        let named = outcome.stderr.contains(&said) && outcome.stderr.contains(&why);
        anyhow::ensure!(named, "{}", outcome.stderr);
        Ok(())
    };
    let point = mount.path().to_string_lossy().into_owned();
    let [unused, small] = [image(IMAGE_BYTES)?, image(SMALL_BYTES)?];
    lead_to(&unused)?;
    refused(&point, "is not in use")?;
    refused(&first, "is not in use")?;
    lead_to(&small)?;
    refused(&point, "has less than ")?;
    lead_to(&disks[0])?;
    refused(&point, "is the one that it is mounted from")?;
    std::fs::remove_file(&name)?;
    refused(&point, "is no block device")?;
    lead_to(&disks[1])?;
    trace(&point)?.success()?;
    Ok(mount.unmount()?)
}

fn mounted(pair: Pair<'_>, disks: &[LoopImage; 2]) -> anyhow::Result<Mount> {
    let [first, second] = disks.each_ref().map(|disk| disk.device().to_string_lossy());
    let status = Command::new("sh")
        .args(["-c", pair.mkfs, "mkfs", &first, &second])
        .stdout(std::process::Stdio::null())
        .status()?;
    anyhow::ensure!(status.success(), "{}: {status}", pair.mkfs);
    let mount = Mount::new(pair.kind, &disks[0], &pair.mount.replace("$2", &second))?;
    mount.settle()?;
    Ok(mount)
}

fn counted(disks: &[LoopImage; 2]) -> anyhow::Result<[Counters; 2]> {
    let [first, second] = disks.each_ref().map(|disk| counters::read(disk.device()));
    Ok([first?, second?])
}

/// Traces a program that copies files of stamped blocks, one after the other.
fn record(
    pair: Pair<'_>,
    disks: &[LoopImage; 2],
    mount: &Mount,
    directory: &Path,
    output: &Path,
) -> anyhow::Result<()> {
    let mut script = String::new();
    for file in 0..FILES {
        let source = directory.join(format!("file-{file}"));
        std::fs::write(&source, stamped(file))?;
        let target = mount.path().join(format!("file-{file}"));
        let (source, target) = (source.display(), target.display());
        script += &format!("dd if={source} of={target} bs=64k conv=fsync 2> /dev/null\n");
    }
    let named = match pair.named {
        "$1" => disks[0].device(),
        "$2" => disks[1].device(),
        _ => mount.path(),
    };
    let named = named.to_string_lossy();
    let output = output.to_string_lossy();
    let words = [
        "trace", &named, "-o", &output, "--settle", "--", "sh", "-c", &script,
    ];
    iostep::run(words)?.success()?;
    Ok(())
}

fn stamped(file: u32) -> Vec<u8> {
    let stamps = (0..BLOCKS).map(|index| Stamp {
        file_id: file,
        pid: 1,
        index,
        sequence: index,
    });
    stamps.flat_map(|stamp| stamp.encode()).collect()
}

/// What of a trace is one disk's.
fn part_of(trace: &Trace, disk: &LoopImage) -> anyhow::Result<Trace> {
    let name = disk.device().file_name().context("a name")?;
    let index = (0..trace.manifest.device_count() as u8)
        .find(|index| *trace.manifest.device_at(*index).name == *name)
        .with_context(|| format!("{name:?} is not in the trace"))?;
    let mut part = trace.clone();
    part.requests.retain(|request| request.device == index);
    Ok(part)
}

fn same_sums(part: &Trace, counted: Counters) -> anyhow::Result<()> {
    println!("    counted: {counted:?}");
    let of = |wanted: fn(&Request) -> bool| part.requests.iter().filter(move |r| wanted(r));
    let bytes: u64 = of(|r| r.operation.is_write())
        .map(|r| u64::from(r.bytes))
        .sum();
    let written = counted.write.bytes;
    anyhow::ensure!(
        bytes == written && bytes > 0,
        "{bytes} bytes, {written} counted"
    );
    let flushes = of(|r| r.operation == Operation::Flush).count() as u64;
    let counted = counted.flush.ios;
    anyhow::ensure!(flushes == counted, "{flushes} flushes, {counted} counted");
    Ok(())
}

fn only_log(part: &Trace) -> anyhow::Result<()> {
    let writes = part.requests.iter().filter(|r| r.operation.is_write());
    for segment in writes.flat_map(|request| part.segments_of(request)) {
        let is_log = segment.class.layer() == Layer::Journal;
        anyhow::ensure!(is_log, "on the log's device: {segment:?}");
    }
    Ok(())
}

/// Looks every block of the image up in the trace; how many there are.
fn blocks(part: &Trace, disk: &LoopImage) -> anyhow::Result<u64> {
    let status = Command::new("blockdev")
        .arg("--flushbufs")
        .arg(disk.device())
        .status()?;
    anyhow::ensure!(status.success(), "blockdev --flushbufs: {status}");
    let stamps: BTreeMap<u64, Stamp> = Image::open(disk.device())?.stamps()?;
    let written = Written::of(part);
    for (sector, stamp) in &stamps {
        let (_, segment) = written
            .get(*sector)
            .with_context(|| format!("sector {sector} is not in the trace: {stamp:?}"))?;
        same_owner(part, *sector, segment, stamp)?;
    }
    Ok(stamps.len() as u64)
}

fn same_owner(part: &Trace, sector: u64, segment: &Segment, stamp: &Stamp) -> anyhow::Result<()> {
    let file = segment.file.map(|file| part.file_path(file));
    let path = format!("/file-{}", stamp.file_id);
    anyhow::ensure!(
        file.as_deref() == Some(&path[..]),
        "{file:?}, not {path}: {segment:?}"
    );
    let inside = (sector - segment.sector) * 512;
    let offset = segment.file_offset_bytes.map(|offset| offset + inside);
    anyhow::ensure!(offset == Some(stamp.index * 4096), "{stamp:?}: {segment:?}");
    anyhow::ensure!(segment.class == Class::FileData, "{segment:?}");
    let dirtier = segment
        .dirtier
        .map(|row| &part.processes[row as usize].comm[..]);
    anyhow::ensure!(dirtier == Some("dd"), "{dirtier:?}: {segment:?}");
    let cause = segment.cause.map(|row| part.syncs[row as usize].kind);
    anyhow::ensure!(cause == Some(SyncKind::Fsync), "{cause:?}: {segment:?}");
    Ok(())
}
