//! Whole disks with partitions: what is a filesystem's, which one's, and what is none's.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::{Disk, Kind, Mount};
use iostep_model::table::Trace;
use iostep_model::{Class, SECTOR_BYTES, store};

use crate::case::Case;
use crate::stage;

const MIB: u64 = 1 << 20;
const FIRST_SECTOR: u64 = 2048;

/// The tests of filesystems that this machine's own kernel has.
pub fn cases() -> Vec<Case> {
    vec![
        behind_case(Kind::Ext4),
        Case::new(
            "each filesystem of a whole disk has its own files, structures and syncs",
            requirements(&[Kind::Ext4, Kind::Xfs, Kind::Btrfs]),
            several_filesystems,
        ),
        Case::new(
            "a filesystem that is made or mounted during the trace of its disk is known at the end",
            requirements(&[Kind::Ext4, Kind::Xfs]),
            made_and_mounted,
        ),
    ]
}

/// Those of filesystems that it may lack.
pub fn cases_for_guests() -> Vec<Case> {
    [Kind::F2fs, Kind::Fat].map(behind_case).into()
}

fn behind_case(kind: Kind) -> Case {
    Case::new(
        format!("what is behind the last block of {kind} is outside of it"),
        requirements(&[kind]),
        move || behind_the_last_block(kind),
    )
}

fn requirements(kinds: &[Kind]) -> Vec<Requirement> {
    let kinds = kinds.iter().copied();
    let mut needs: Vec<Requirement> = kinds.flat_map(stage::requirements).collect();
    needs.push(Requirement::Btf);
    needs.extend(["addpart", "blkdiscard"].map(Requirement::Program));
    needs
}

/// A loop device with partitions; detached at the end. The kernel is told of them: it may not be
/// able to read a partition table.
struct Whole {
    device: PathBuf,
}

/// One of them.
struct Partition {
    node: PathBuf,
    start_sector: u64,
}

impl Whole {
    fn new(backing: &Path, bytes: u64) -> anyhow::Result<Whole> {
        File::create(backing)?.set_len(bytes)?;
        let attached = Command::new("losetup")
            .args(["--find", "--show", "--partscan"])
            .arg(backing)
            .output()?;
        anyhow::ensure!(attached.status.success(), "losetup: {}", attached.status);
        let device = String::from_utf8(attached.stdout)?.trim().into();
        Ok(Whole { device })
    }

    fn add(&self, number: u32, start_sector: u64, bytes: u64) -> anyhow::Result<Partition> {
        let sectors = bytes / SECTOR_BYTES;
        let status = Command::new("addpart")
            .arg(&self.device)
            .args([
                number.to_string(),
                start_sector.to_string(),
                sectors.to_string(),
            ])
            .status()?;
        anyhow::ensure!(status.success(), "addpart: {status}");
        let node = PathBuf::from(format!("{}p{number}", self.device.display()));
        crate::faults::wait_until("the partition", || node.exists())?;
        Ok(Partition { node, start_sector })
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        // A failure shows as a loop device left behind, which fails the test.
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.device)
            .status();
    }
}

impl Disk for Partition {
    fn device(&self) -> &Path {
        &self.node
    }

    fn check_may_be_destroyed(&self) -> iostep_lab::Result<()> {
        Ok(())
    }
}

fn shell(script: &str, arguments: &[&Path]) -> anyhow::Result<()> {
    let mut shell = Command::new("sh");
    let output = shell.args(["-ec", script, "sh"]).args(arguments).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{script}: {said}");
    Ok(())
}

/// Traces a script, whose `$1` is the target.
fn traced(target: &Path, output: &Path, script: &str) -> anyhow::Result<Trace> {
    let (target, place) = (target.to_string_lossy(), output.to_string_lossy());
    let words = ["trace", &target, "-o", &place, "--"];
    let command = ["sh", "-ec", script, "sh", &target];
    iostep::run(words.iter().chain(&command))?;
    Ok(store::read(output)?)
}

/// A filesystem of 64 MiB, than which f2fs is not smaller, in a partition of 88 MiB.
fn behind_the_last_block(kind: Kind) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = Whole::new(&directory.path().join("disk"), 90 * MIB)?;
    let partition = disk.add(1, FIRST_SECTOR, 88 * MIB)?;
    let mkfs = match kind {
        Kind::Ext4 => "mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0 $1 16384",
        Kind::F2fs => "mkfs.f2fs -q -f $1 131072",
        _ => "mkfs.fat -F 32 -s 1 $1 65536 > /dev/null",
    };
    shell(mkfs, &[&partition.node])?;
    let mount = Mount::new(kind, &partition, "")?;
    mount.settle()?;
    let file = mount.path().join("file");
    let script = format!(
        "dd if=/dev/zero of=$1 bs=64k count=16 seek=1100 oflag=direct
        dd if=/dev/zero of=$1 bs=4k count=7 seek=18000 conv=fsync,notrunc
        dd if=$1 of=/dev/null bs=4k count=3 skip=17000 iflag=direct
        blkdiscard -f -o 75497472 -l 2097152 $1
        blkdiscard -z -f -o 81788928 -l 1048576 $1
        dd if=/dev/zero of={} bs=4k count=5 conv=fsync",
        file.display()
    );
    let output = directory.path().join("run.iostep");
    let trace = traced(&partition.node, &output, &script)?;
    mount.unmount()?;
    let end = partition.start_sector + 64 * MIB / SECTOR_BYTES;
    let [mut outside, mut of_file] = [0, 0];
    for segment in &trace.segments {
        let is_behind = segment.sector >= end;
        let is_outside = segment.class == Class::OutsideFilesystem;
        anyhow::ensure!(is_behind == is_outside, "{segment:?}");
        let bytes = u64::from(segment.bytes);
        outside += if is_outside { bytes } else { 0 };
        of_file += if segment.class == Class::FileData {
            bytes
        } else {
            0
        };
    }
    // The kernel may read ahead of a buffered write, and writes zeros as it likes.
    let least = 16 * 65_536 + 7 * 4096 + 3 * 4096 + 2 * MIB + MIB;
    anyhow::ensure!(outside >= least, "{outside} bytes of {least}");
    anyhow::ensure!(of_file == 5 * 4096, "{of_file} bytes of the file");
    anyhow::ensure!(
        trace.manifest.check.lost_events == 0,
        "{:?}",
        trace.manifest.check
    );
    Ok(())
}

/// The filesystems of one disk: kind, and MiB. Of two ext4 the inodes and commits have equal numbers.
const PARTITIONS: [(Kind, u64); 4] = [
    (Kind::Ext4, 64),
    (Kind::Ext4, 72),
    (Kind::Xfs, 320),
    (Kind::Btrfs, 160),
];
const FILES: u64 = 5;
const BLOCKS: u64 = 6;
const BLOCK_BYTES: u64 = 4096;

/// A block that says which filesystem's it is, which file's, and where in it.
fn stamp(volume: usize, file: u64, block: u64) -> Vec<u8> {
    let mut bytes = format!("stamp {volume} {file} {block}\n").into_bytes();
    bytes.resize(BLOCK_BYTES as usize, b'.');
    bytes
}

fn read_stamp(bytes: &[u8]) -> Option<[u64; 3]> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line)
        .ok()?
        .strip_prefix("stamp ")?
        .split(' ');
    let mut number = || words.next()?.parse().ok();
    Some([number()?, number()?, number()?])
}

fn several_filesystems() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let backing = directory.path().join("disk");
    let disk = Whole::new(&backing, 700 * MIB)?;
    let (mut mounts, mut places) = (Vec::new(), Vec::new());
    let mut start = FIRST_SECTOR;
    for (number, (kind, mib)) in (1..).zip(PARTITIONS) {
        let partition = disk.add(number, start, mib * MIB)?;
        let options: &[&str] = match kind {
            Kind::Ext4 => &["-b", "4096"],
            _ => &[],
        };
        let options = [iostep_lab::tool(kind).at_once, options].concat();
        iostep_lab::mkfs(kind, &partition, &options)?;
        let mount = Mount::new(kind, &partition, "")?;
        mount.settle()?;
        mounts.push(mount);
        places.push(start..start + mib * MIB / SECTOR_BYTES);
        start += (mib + 1) * MIB / SECTOR_BYTES;
    }
    // Without a filesystem.
    let raw = disk.add(5, start, 8 * MIB)?;
    let mut script = String::new();
    for (volume, mount) in mounts.iter().enumerate() {
        script += "(";
        for file in 0..FILES {
            let source = directory.path().join(format!("source-{volume}-{file}"));
            let blocks = (0..BLOCKS).flat_map(|block| stamp(volume, file, block));
            std::fs::write(&source, blocks.collect::<Vec<u8>>())?;
            let to = mount.path().join(format!("file-{file}"));
            let (from, to) = (source.display(), to.display());
            script += &format!("dd if={from} of={to} bs=8k conv=fsync 2> /dev/null\n");
        }
        script += ") &\n";
    }
    let raw = raw.node.display();
    script += &format!("dd if=/dev/zero of={raw} bs=64k count=9 oflag=direct 2> /dev/null\nwait");
    let output = directory.path().join("run.iostep");
    let trace = traced(&disk.device, &output, &script)?;
    let points: Vec<PathBuf> = mounts.iter().map(|mount| mount.path().to_owned()).collect();
    for mount in mounts {
        mount.unmount()?;
    }
    anyhow::ensure!(trace.manifest.check.passed(), "{:?}", trace.manifest.check);
    check_places(&trace, &places)?;
    check_files(&trace, &std::fs::read(&backing)?, &points)?;
    check_syncs(&trace)
}

/// What a script mounts; unmounted at the end.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // A failure shows as a loop device left behind, which fails the test.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// One that was there is mounted, and one is made and mounted; then the same without partitions.
fn made_and_mounted() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let backing = directory.path().join("disk");
    let disk = Whole::new(&backing, 400 * MIB)?;
    let old = disk.add(1, FIRST_SECTOR, 64 * MIB)?;
    let new = disk.add(2, FIRST_SECTOR + 65 * MIB / SECTOR_BYTES, 320 * MIB)?;
    shell("mkfs.ext4 -q -b 4096 $1", &[&old.node])?;
    let points = ["old", "new"].map(|name| directory.path().join(name));
    let write = |node: &Path, point: &Path| {
        format!(
            "mount {0} {1}; dd if=/dev/zero of={1}/file bs=4k count=5 conv=fsync 2> /dev/null;",
            node.display(),
            point.display()
        )
    };
    points.iter().try_for_each(std::fs::create_dir)?;
    let script = format!(
        "{} mkfs.xfs -q {}; {}",
        write(&old.node, &points[0]),
        new.node.display(),
        write(&new.node, &points[1])
    );
    let mounted = points.clone().map(Mounted);
    let trace = traced(&disk.device, &directory.path().join("both.iostep"), &script)?;
    drop(mounted);
    let volumes = trace.manifest.volumes.iter();
    let found: Vec<_> = volumes
        .filter_map(|volume| volume.filesystem.as_ref())
        .map(|it| (it.kind.as_str(), Path::new(&it.mount_point)))
        .collect();
    anyhow::ensure!(
        found == [("ext4", &*points[0]), ("xfs", &*points[1])],
        "{found:?}"
    );
    check_whole_file(&trace, &points[0])?;
    check_whole_file(&trace, &points[1])?;

    let whole = Whole::new(&directory.path().join("whole"), 64 * MIB)?;
    let script = format!("mkfs.ext4 -q $1; {}", write(&whole.device, &points[0]));
    let mounted = Mounted(points[0].clone());
    let trace = traced(&whole.device, &directory.path().join("one.iostep"), &script)?;
    drop(mounted);
    let found = trace.manifest.filesystem.as_ref();
    let found = found.map(|it| (it.kind.as_str(), Path::new(&it.mount_point)));
    anyhow::ensure!(found == Some(("ext4", &points[0])), "{found:?}");
    check_whole_file(&trace, &points[0])
}

/// The five blocks of the file below a mount point are its data.
fn check_whole_file(trace: &Trace, point: &Path) -> anyhow::Result<()> {
    let name = point.join("file");
    let of_file = trace.segments.iter().filter(|segment| {
        let file = segment.file.map(|file| trace.file_name(file));
        segment.class == Class::FileData && file.is_some_and(|file| Path::new(&*file) == name)
    });
    let bytes: u64 = of_file.map(|segment| u64::from(segment.bytes)).sum();
    anyhow::ensure!(bytes == 5 * BLOCK_BYTES, "{bytes} of {}", name.display());
    Ok(())
}

/// Each part is in the volume in which its place is, and nothing else is.
fn check_places(trace: &Trace, places: &[std::ops::Range<u64>]) -> anyhow::Result<()> {
    let kinds = trace
        .manifest
        .volumes
        .iter()
        .map(|it| it.filesystem.as_ref());
    let kinds: Vec<&str> = kinds.map(|it| it.map_or("", |it| &it.kind)).collect();
    anyhow::ensure!(kinds == ["ext4", "ext4", "xfs", "btrfs", ""], "{kinds:?}");
    let mut raw = 0;
    for segment in &trace.segments {
        let place = places
            .iter()
            .position(|place| place.contains(&segment.sector));
        let volume = segment.volume.map(usize::from);
        if volume == Some(4) {
            anyhow::ensure!(segment.class == Class::DeviceData, "{segment:?}");
            raw += segment.bytes;
        } else {
            anyhow::ensure!(volume == place, "{segment:?}: {place:?}");
        }
    }
    anyhow::ensure!(
        raw == 9 * 65_536,
        "{raw} bytes of the partition without a filesystem"
    );
    for (volume, classes) in [
        (0, &[Class::LogCommit, Class::LogDescriptor][..]),
        (1, &[Class::LogCommit, Class::LogDescriptor]),
        (2, &[Class::LogRecord]),
        (3, &[Class::TreeLog]),
    ] {
        for class in classes {
            let mut own = trace.segments.iter().filter(|it| it.volume == Some(volume));
            let any = own.any(|segment| segment.class == *class);
            anyhow::ensure!(any, "no {} on volume {volume}", class.name());
        }
    }
    Ok(())
}

/// Each block of a file is where the disk has it, once, under its own name.
fn check_files(trace: &Trace, disk: &[u8], points: &[PathBuf]) -> anyhow::Result<()> {
    let mut found = std::collections::BTreeSet::new();
    for request in trace
        .requests
        .iter()
        .filter(|request| request.operation.is_write())
    {
        for segment in trace.segments_of(request) {
            let Some(file) = segment.file.filter(|_| segment.class == Class::FileData) else {
                continue;
            };
            let name = trace.file_name(file);
            for at in (0..u64::from(segment.bytes)).step_by(BLOCK_BYTES as usize) {
                let from = (segment.sector * SECTOR_BYTES + at) as usize;
                let stamp = read_stamp(&disk[from..from + 64]);
                let [volume, file, block] = stamp.with_context(|| format!("{name}: no stamp"))?;
                let path = points[volume as usize].join(format!("file-{file}"));
                anyhow::ensure!(path.to_string_lossy() == name, "{name}: {}", path.display());
                let offset = segment.file_offset_bytes.map(|offset| offset + at);
                anyhow::ensure!(offset == Some(block * BLOCK_BYTES), "{name}: {offset:?}");
                anyhow::ensure!(found.insert((volume, file, block)), "{name} twice");
            }
        }
    }
    let all = points.len() as u64 * FILES * BLOCKS;
    anyhow::ensure!(found.len() as u64 == all, "{} blocks of {all}", found.len());
    Ok(())
}

/// What a sync call caused is on the filesystem that it was called on.
fn check_syncs(trace: &Trace) -> anyhow::Result<()> {
    let mut caused = [0; 4];
    for segment in &trace.segments {
        let Some(cause) = segment.cause else {
            continue;
        };
        let sync = &trace.syncs[cause as usize];
        anyhow::ensure!(sync.volume == segment.volume, "{segment:?}: {sync:?}");
        if segment.class == Class::FileData {
            anyhow::ensure!(sync.file == segment.file, "{segment:?}: {sync:?}");
        }
        caused[usize::from(segment.volume.unwrap_or(0))] += 1;
    }
    anyhow::ensure!(caused.iter().all(|parts| *parts >= FILES), "{caused:?}");
    let of_log = trace
        .segments
        .iter()
        .filter(|it| it.class == Class::LogCommit);
    let uncaused = of_log.filter(|it| it.cause.is_none()).count();
    anyhow::ensure!(uncaused <= 2, "{uncaused} commits without a cause");
    for volume in 0..4 {
        let own = trace
            .syncs
            .iter()
            .filter(|sync| sync.volume == Some(volume));
        anyhow::ensure!(own.count() as u64 == FILES, "syncs of volume {volume}");
    }
    Ok(())
}
