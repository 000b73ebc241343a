//! A partition is traced as itself: its own I/O and no other's, at the sectors of the whole disk.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::stack::{Below, Stack};
use iostep_kernel_tests::{counters, iostep};
use iostep_lab::{Disk, Kind, Mount};
use iostep_model::bench::Document;
use iostep_model::table::Trace;
use iostep_model::{Operation, store};

use crate::case::Case;
use crate::stage;

const START_SECTOR: u64 = 2048;
const SECTORS: u64 = 131_072;
const PARTITIONS: u32 = 3;
/// Nothing is committed by time, after 5 s, while the trace is not there yet.
const SELDOM: &str = "commit=600";

/// How often `dd` syncs, each time by a flush.
const SYNCS: u64 = 40;

/// Every test of this file but those on stacks.
pub fn cases() -> Vec<Case> {
    let mut needs = stage::requirements(Kind::Ext4);
    needs.push(Requirement::Program("addpart"));
    let case = |name: &str, more: &[Requirement], body: fn() -> anyhow::Result<()>| {
        Case::new(name, [&needs, more].concat(), body)
    };
    let bpf = [Requirement::Btf];
    vec![
        case(
            "a partition is traced without its neighbour",
            &bpf,
            without_its_neighbour,
        ),
        case(
            "syncs on a partition are flushes that its disk counted",
            &bpf,
            counted_by_the_disk,
        ),
        case(
            "flushes of another partition are no alarm, and not ours",
            &bpf,
            beside_flushes,
        ),
        case(
            "by tracefs, too, flushes of another partition are no alarm",
            &[Requirement::Tracefs],
            beside_flushes_by_tracefs,
        ),
        case(
            "a flush of a partition that is missing or doubled is found",
            &bpf,
            faults_are_found,
        ),
        case(
            "bench counts the flushes of a partition's disk and says so",
            &[],
            measured,
        ),
        case(
            "flushes that another partition may have asked for are none of bench's",
            &[],
            measured_beside_another,
        ),
        case(
            "by tracefs, a whole disk is said to be one device",
            &[Requirement::Tracefs],
            whole_by_tracefs,
        ),
        case("explain takes a partition", &bpf, explained),
        case(
            "partitions of one disk share its flushes: btrfs on two",
            &[
                bpf[0],
                Requirement::Filesystem("btrfs"),
                Requirement::Program("mkfs.btrfs"),
            ],
            on_two_by_btrfs,
        ),
        case(
            "partitions of one disk share its flushes: an external journal",
            &bpf,
            with_its_journal_apart,
        ),
    ]
}

/// The tests on device mapper and md on partitions.
pub fn cases_on_stacks() -> Vec<Case> {
    let all = [
        ("LVM on LUKS", Below::LvmOnLuks),
        ("RAID 0", Below::Raid0),
        ("striped LVM", Below::Striped),
    ];
    let cases = all.into_iter().map(|(name, below)| {
        let mut needs = stage::requirements(Kind::Ext4);
        let programs = below.programs().iter().chain(&["addpart"]);
        needs.extend(programs.map(|program| Requirement::Program(program)));
        needs.push(Requirement::Btf);
        let name = format!("{name} on partitions, beside flushes of another, has no alarm");
        Case::new(name, needs, move || on_a_stack(below))
    });
    cases.collect()
}

/// A loop device with partitions; detached at the end.
struct LoopDisk {
    device: PathBuf,
}

impl LoopDisk {
    /// Partitions, one behind the other. The kernel is told of them: it may not be able to
    /// read a partition table.
    fn new(backing: &Path) -> anyhow::Result<LoopDisk> {
        File::create(backing)?.set_len((2 + 64 * u64::from(PARTITIONS)) << 20)?;
        let attached = Command::new("losetup")
            .args(["--find", "--show", "--partscan"])
            .arg(backing)
            .output()?;
        anyhow::ensure!(attached.status.success(), "losetup: {}", attached.status);
        let device = String::from_utf8(attached.stdout)?.trim().into();
        let disk = LoopDisk { device };
        for number in 1..=PARTITIONS {
            disk.add(number, START_SECTOR + u64::from(number - 1) * SECTORS)?;
        }
        Ok(disk)
    }

    fn add(&self, number: u32, start: u64) -> anyhow::Result<()> {
        let status = Command::new("addpart")
            .arg(&self.device)
            .args([number.to_string(), start.to_string(), SECTORS.to_string()])
            .status()?;
        anyhow::ensure!(status.success(), "addpart: {status}");
        Ok(())
    }

    fn part(&self, number: u32) -> anyhow::Result<Partition> {
        Ok(Partition(self.partition(number)?))
    }

    /// Its name below /dev.
    fn name(&self) -> String {
        let name = self.device.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn flushes(&self) -> anyhow::Result<u64> {
        Ok(counters::read(&self.device)?.flush.ios)
    }

    fn partition(&self, number: u32) -> anyhow::Result<PathBuf> {
        let node = PathBuf::from(format!("{}p{number}", self.device.display()));
        crate::faults::wait_until("the partition", || node.exists())?;
        Ok(node)
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        // A failure shows as a loop device left behind, which fails the test.
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.device)
            .status();
    }
}

/// A partition of it.
struct Partition(PathBuf);

impl Disk for Partition {
    fn device(&self) -> &Path {
        &self.0
    }

    /// Of a disk that was just made.
    fn check_may_be_destroyed(&self) -> iostep_lab::Result<()> {
        Ok(())
    }
}

fn formatted(disk: &impl Disk) -> anyhow::Result<Mount> {
    iostep_lab::mkfs(Kind::Ext4, disk, iostep_lab::tool(Kind::Ext4).at_once)?;
    let mount = Mount::new(Kind::Ext4, disk, SELDOM)?;
    mount.settle()?;
    Ok(mount)
}

fn flushes_of(trace: &Trace) -> u64 {
    let requests = trace.requests.iter();
    requests
        .filter(|request| request.operation == Operation::Flush)
        .count() as u64
}

/// `dd` that syncs after each of its writes.
fn dd(to: &Path) -> String {
    let to = to.display();
    format!("dd if=/dev/zero of={to} bs=4k count={SYNCS} oflag=dsync 2>/dev/null")
}

fn traced(target: &Path, flags: &[&str], script: &str) -> anyhow::Result<Trace> {
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let (target, place) = (target.to_string_lossy(), output.to_string_lossy());
    let words = [
        &["trace", &target, "-o", &place],
        flags,
        &["--", "sh", "-c", script],
    ];
    iostep::run(words.concat())?.success()?;
    Ok(store::read(&output)?)
}

/// Runs `body` while a partition is written and synced all the time; how often it was.
fn beside_syncs_of(
    partition: &Path,
    body: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let file = File::options().write(true).open(partition)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let syncs = scope.spawn(|| -> anyhow::Result<u64> {
            let mut syncs = 0;
            while !is_over.load(Ordering::Relaxed) {
                file.write_all_at(&[1; 4096], 0)?;
                file.sync_data()?;
                syncs += 1;
            }
            Ok(syncs)
        });
        let result = body();
        is_over.store(true, Ordering::Relaxed);
        let syncs = syncs.join().map_err(|_| anyhow::anyhow!("it panicked"))??;
        result.map(|()| syncs)
    })
}

fn counted_by_the_disk() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = LoopDisk::new(&directory.path().join("disk"))?;
    let mount = formatted(&disk.part(1)?)?;
    for target in [mount.path().to_owned(), disk.partition(1)?] {
        let before = disk.flushes()?;
        let trace = traced(&target, &["--settle"], &dd(&mount.path().join("file")))?;
        let counted = disk.flushes()? - before;
        let check = &trace.manifest.check;
        println!("    {counted} flushes, {:?}", check.device);
        let device = &trace.manifest.device;
        anyhow::ensure!(device.part_of == Some(disk.name()), "{device:?}");
        let all = [
            check.device.map(|device| device.flush.ios),
            Some(check.completed.flush.ios),
            Some(flushes_of(&trace)),
        ];
        anyhow::ensure!(all == [Some(counted); 3], "{all:?} of {counted}");
        anyhow::ensure!(counted >= SYNCS, "{counted}");
    }
    Ok(mount.unmount()?)
}

/// Syncs a partition by itself: each sync is a flush, and there is no other.
fn noisy(flags: &[&str], look: impl FnOnce(&Trace) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = LoopDisk::new(&directory.path().join("disk"))?;
    let (first, second) = (disk.partition(1)?, disk.partition(2)?);
    let syncs = beside_syncs_of(&second, || {
        let trace = traced(&first, flags, &dd(&first))?;
        let check = &trace.manifest.check;
        println!("    {} of the disk", check.completed.flush.ios);
        anyhow::ensure!(check.completed.flush.ios > SYNCS, "no noise: {check:?}");
        let writes = trace.requests.iter().filter(|r| r.operation.is_write());
        let written: u64 = writes.map(|request| u64::from(request.bytes)).sum();
        anyhow::ensure!(written == SYNCS * 4096, "{written} bytes");
        look(&trace)
    })?;
    println!("    {syncs} syncs of the other partition");
    Ok(())
}

fn beside_flushes() -> anyhow::Result<()> {
    noisy(&[], |trace| {
        let ours = flushes_of(trace);
        anyhow::ensure!(ours == SYNCS, "{ours} flushes of {SYNCS}");
        Ok(())
    })
}

fn beside_flushes_by_tracefs() -> anyhow::Result<()> {
    noisy(&["--backend", "tracefs"], |_| Ok(()))
}

fn faults_are_found() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = LoopDisk::new(&directory.path().join("disk"))?;
    let first = disk.partition(1)?;
    // A sync is a write, the flush, and the end of the bio that asked for it.
    for number in 20..23 {
        for (kind, may_be_made_good) in [("twice", false), ("skip", true)] {
            let output = directory.path().join(format!("{kind}-{number}"));
            let fault = format!("complete:{kind}:{number}");
            let (target, place) = (first.to_string_lossy(), output.to_string_lossy());
            let script = dd(&first);
            let words = ["trace", &target, "-o", &place, "--fault", &fault];
            let command = ["--", "sh", "-c", &script];
            let outcome = iostep::run(words.iter().chain(&command))?;
            let check = store::read(&output)?.manifest.check;
            let is_made_good = may_be_made_good && check.late_completions > 0;
            println!("    {fault}: {:?}", check.differences);
            anyhow::ensure!(!check.passed() || is_made_good, "{fault}: {outcome:?}");
        }
    }
    Ok(())
}

fn measured() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = LoopDisk::new(&directory.path().join("disk"))?;
    let mount = formatted(&disk.part(1)?)?;
    let result = directory.path().join("result.json");
    let (place, file) = (mount.path().to_string_lossy(), result.to_string_lossy());
    let words = ["bench", "file", &place, "--access", "write", "--size"];
    let rest = ["256KiB", "--sync", "fdatasync", "-o", &file];
    let outcome = iostep::run(words.iter().chain(&rest))?.success()?;
    let document = Document::read(&result)?;
    let run = document.runs.first().context("no run")?;
    let flushes = run.device.context("no counters")?.flush.ios;
    println!("    {} writes, {flushes} flushes", run.operations);
    // The journal's own commits flush too, once in five seconds.
    let expected = run.operations..run.operations + 4;
    anyhow::ensure!(expected.contains(&flushes), "{flushes} flushes");
    anyhow::ensure!(document.environment.flushes_of == [disk.name()]);
    let said = format!("{flushes} flushes of the whole disk {}", disk.name());
    anyhow::ensure!(outcome.stdout.contains(&said), "{}", outcome.stdout);
    Ok(mount.unmount()?)
}

fn measured_beside_another() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = LoopDisk::new(&directory.path().join("disk"))?;
    let mount = formatted(&disk.part(1)?)?;
    let result = directory.path().join("result.json");
    let (place, file) = (mount.path().to_string_lossy(), result.to_string_lossy());
    let words = ["bench", "file", &place, "--access", "write", "--size"];
    let rest = ["2MiB", "--sync", "fdatasync", "-o", &file];
    let mut said = String::new();
    let syncs = beside_syncs_of(&disk.partition(2)?, || {
        said = iostep::run(words.iter().chain(&rest))?.success()?.stdout;
        Ok(())
    })?;
    let document = Document::read(&result)?;
    let run = document.runs.first().context("no run")?;
    let beside = run.others.as_ref().context("nobody looked")?.beside;
    println!("    {syncs} syncs of the other, {beside:?}");
    // Each sync of the other partition writes a block, and its flush counts as a write, too.
    let blocks = beside.write.bytes / 4096;
    anyhow::ensure!((1..=syncs + 1).contains(&blocks), "{beside:?}");
    let both = blocks..=2 * blocks + 1;
    anyhow::ensure!(both.contains(&beside.write.ios), "{beside:?}");
    let own = run.device.context("no counters")?;
    anyhow::ensure!(own.flush.ios > run.operations, "no noise: {own:?}");
    let told = format!(
        "may be among {} writes and flushes of its other",
        beside.write.ios
    );
    anyhow::ensure!(said.replace(',', "").contains(&told), "{said}");
    let output = iostep::run(["report", &*file, "--json"])?.success()?.stdout;
    let summary: serde_json::Value = serde_json::from_str(&output)?;
    let device = &summary["summary"]["runs"][0]["device"];
    anyhow::ensure!(device["flushes_per_operation"].is_null(), "{device}");
    anyhow::ensure!(device["writes_per_operation"].is_number(), "{device}");
    Ok(mount.unmount()?)
}

fn whole_by_tracefs() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = LoopDisk::new(&directory.path().join("disk"))?;
    let first = disk.partition(1)?;
    let by_tracefs = ["--backend", "tracefs"];
    let is_told = |trace: &Trace| {
        let notes = &trace.manifest.check.notes;
        notes.iter().any(|note| note.contains("as one device"))
    };
    let trace = traced(&disk.device, &by_tracefs, &dd(&first))?;
    anyhow::ensure!(is_told(&trace), "{:?}", trace.manifest.check.notes);
    let trace = traced(&first, &by_tracefs, &dd(&first))?;
    anyhow::ensure!(!is_told(&trace), "{:?}", trace.manifest.check.notes);
    Ok(())
}

fn explained() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = LoopDisk::new(&directory.path().join("disk"))?;
    let mount = formatted(&disk.part(1)?)?;
    let database = mount.path().join("app.db");
    // An empty file is an empty database.
    std::fs::write(&database, "")?;
    let database = database.to_string_lossy();
    let sql = "CREATE TABLE t(x); INSERT INTO t VALUES (1)";
    let outcome = iostep::run(["explain", &database, sql, "--json"])?.success()?;
    let explanation: serde_json::Value = serde_json::from_str(&outcome.stdout)?;
    let flushes = explanation["runs"][0]["transactions"][0]["cost"]["flushes"].as_u64();
    anyhow::ensure!(flushes > Some(0), "{flushes:?} flushes");
    Ok(mount.unmount()?)
}

/// What two partitions of a disk are for, as the shell has it; `$1` and `$2` are their nodes.
fn on_two(kind: Kind, mkfs: &str) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = LoopDisk::new(&directory.path().join("disk"))?;
    let (first, second) = (disk.part(1)?, disk.part(2)?);
    let nodes = [&first, &second].map(|part| part.device().to_owned());
    let status = Command::new("sh")
        .args(["-c", mkfs, "mkfs"])
        .args(&nodes)
        .stdout(std::process::Stdio::null())
        .status()?;
    anyhow::ensure!(status.success(), "{mkfs}: {status}");
    let mount = Mount::new(kind, &first, SELDOM)?;
    mount.settle()?;
    let before = disk.flushes()?;
    let trace = traced(mount.path(), &["--settle"], &dd(&mount.path().join("file")))?;
    let counted = disk.flushes()? - before;
    mount.unmount()?;
    let check = &trace.manifest.check;
    let flushes = [check.completed.flush.ios, flushes_of(&trace)];
    println!("    {counted} flushes, {flushes:?}");
    anyhow::ensure!(
        trace.manifest.devices.len() == 2,
        "not what is to be tested"
    );
    // Of two that are asked for at once, the trace may know one alone by name.
    let [all, ours] = flushes;
    let is_right = all == counted && (SYNCS..=all).contains(&ours);
    anyhow::ensure!(is_right, "{flushes:?} of {counted}");
    Ok(())
}

fn on_two_by_btrfs() -> anyhow::Result<()> {
    // As small as they are, data and metadata share their chunks.
    on_two(Kind::Btrfs, "mkfs.btrfs -q -f -M $1 $2")
}

fn with_its_journal_apart() -> anyhow::Result<()> {
    let mkfs = "mke2fs -q -F -b 4096 -O journal_dev $2 && mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0 -J device=$2 $1";
    on_two(Kind::Ext4, mkfs)
}

fn on_a_stack(below: Below) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = LoopDisk::new(&directory.path().join("disk"))?;
    let parts = [disk.part(1)?, disk.part(2)?];
    let stack = Stack::new(below, &parts[..below.disks()])?;
    let mount = formatted(&stack)?;
    let script = dd(&mount.path().join("file"));
    let syncs = beside_syncs_of(&disk.partition(3)?, || {
        let trace = traced(mount.path(), &["--settle"], &script)?;
        let (all, ours) = (trace.manifest.check.completed.flush.ios, flushes_of(&trace));
        println!("    {all} flushes of the disk, {ours} of ours");
        anyhow::ensure!(all > ours && ours >= SYNCS, "{ours} of {all}");
        Ok(())
    })?;
    println!("    {syncs} syncs of the other partition");
    Ok(mount.unmount()?)
}

fn without_its_neighbour() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = LoopDisk::new(&directory.path().join("disk"))?;
    let (first, second) = (disk.partition(1)?, disk.partition(2)?);
    let output = directory.path().join("run.iostep");
    let write = |partition: &Path, count: u32| {
        let partition = partition.display();
        format!(
            "dd if=/dev/zero of={partition} bs=64k count={count} seek=3 oflag=direct 2>/dev/null"
        )
    };
    let script = format!("{}; {}", write(&first, 23), write(&second, 7));
    let (target, place) = (first.to_string_lossy(), output.to_string_lossy());
    let words = ["trace", &target, "-o", &place, "--", "sh", "-c", &script];
    iostep::run(words)?.success()?;
    let trace = store::read(&output)?;
    let device = &trace.manifest.device;
    println!("    {device:?}");
    anyhow::ensure!(device.start_sector == START_SECTOR, "{device:?}");
    anyhow::ensure!(device.sectors == SECTORS, "{device:?}");
    let mut written = 0;
    for request in trace.requests.iter().filter(|r| r.operation.is_write()) {
        let begin = START_SECTOR + 3 * 128;
        let inside = (begin..begin + 23 * 128).contains(&request.sector);
        anyhow::ensure!(inside, "not of the partition's dd: {request:?}");
        written += request.bytes;
    }
    anyhow::ensure!(written == 23 * 65_536, "{written} bytes");
    Ok(())
}
