//! Traces that begin and end while the device is busy: none fails, and every fault is found.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::image::{LoopImage, Options};
use iostep_model::manifest::Check;
use iostep_model::store;

use crate::case::Case;
use crate::variants;

/// Size of what the load writes to.
const BYTES: u64 = 64 << 20;
/// Points of a request's way, and what goes wrong there.
const POINTS: [&str; 3] = ["queue", "issue", "complete"];
/// Traces until one meets the load.
const TRIES: usize = 5;
const KINDS: [&str; 4] = ["skip", "twice", "byte", "lose"];

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let needs = [Requirement::Root, Requirement::Btf, Requirement::Loop];
    let cases = [
        Case::new(
            "no trace of a loop device fails, with any scheduler",
            needs,
            schedulers,
        ),
        Case::new("no trace of this machine's disk fails", needs, disk),
        Case::new("every fault is found", needs, faults),
        Case::new("a fault of a flush is found", needs, faults_of_flushes),
        Case::new(
            "a completion inside a flush sequence that nobody saw is told late",
            needs,
            lost_in_a_flush_sequence,
        ),
    ];
    cases.map(|case| case.about("busy")).into()
}

/// The tests on the guest's own disk, of each kind that a guest can have; those of faults, which
/// take minutes there, where `IOSTEP_VARIANTS=all` asks for them.
pub fn cases_on_disks() -> Vec<Case> {
    let needs = [Requirement::Root, Requirement::Btf];
    let name = "no trace fails, with any scheduler";
    let mut cases = vec![Case::new(name, needs, guest_disk)];
    if variants::are_all_wanted() {
        cases.push(Case::new("every fault is found", needs, || {
            faults_on(&disk_of_guest()?)
        }));
    }
    cases
}

/// Threads that write, each to its own part of a device or file, until the value goes.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// `depth` direct writers of `bytes` each, beside one that writes by the page cache and syncs:
    /// its write-back is plugged and merged.
    fn start(path: &Path, depth: usize, bytes: usize) -> anyhow::Result<Load> {
        Load::with_syncs(path, depth, bytes, 256 << 10)
    }

    /// The same with a sync after every `sync_bytes`.
    fn with_syncs(
        path: &Path,
        depth: usize,
        bytes: usize,
        sync_bytes: usize,
    ) -> anyhow::Result<Load> {
        let mut load = Load::of_direct_writers(path, depth, bytes, 0)?;
        let (file, stop) = (open(path, 0)?, Arc::clone(&load.stop));
        load.threads.push(std::thread::spawn(move || {
            buffered(&file, &stop, sync_bytes)
        }));
        Ok(load.settled())
    }

    /// Direct writers only, with more flags of open(2).
    fn of_direct_writers(
        path: &Path,
        depth: usize,
        bytes: usize,
        flags: i32,
    ) -> anyhow::Result<Load> {
        let mut load = Load {
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
        };
        for number in 0..depth {
            let (file, stop) = (open(path, libc::O_DIRECT | flags)?, Arc::clone(&load.stop));
            load.threads.push(std::thread::spawn(move || {
                direct(&file, &stop, number, bytes)
            }));
        }
        Ok(load)
    }

    fn settled(self) -> Load {
        std::thread::sleep(Duration::from_millis(200));
        self
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn open(path: &Path, flags: i32) -> std::io::Result<File> {
    OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(path)
}

/// Between two writes of a thread: an emulated processor has to read what it traces, too.
fn pause() {
    if std::env::var_os("IOSTEP_GUEST").is_some() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn direct(file: &File, stop: &AtomicBool, number: usize, bytes: usize) {
    let space = vec![number as u8; bytes + 4096];
    let aligned = space.as_ptr().align_offset(4096);
    let places = (BYTES / 2) / bytes as u64;
    let mut place = number as u64 * 7919;
    while !stop.load(Ordering::Relaxed) {
        place = (place * 25_214_903_917 + 11) % places;
        // An error ends the load; the traces do not depend on it.
        if file
            .write_at(&space[aligned..aligned + bytes], place * bytes as u64)
            .is_err()
        {
            return;
        }
        pause();
    }
}

fn buffered(file: &File, stop: &AtomicBool, sync_bytes: usize) {
    let bytes = vec![1; sync_bytes.min(16 << 10)];
    let mut place = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..sync_bytes / bytes.len() {
            place = (place + bytes.len() as u64) % (BYTES / 2);
            if file.write_at(&bytes, BYTES / 2 + place).is_err() {
                return;
            }
        }
        let _ = file.sync_data();
        pause();
    }
}

/// Traces for a moment, and gives what the self-check says. On a machine that does much else, a moment
/// can be too short for anything to be done in it.
fn trace(target: &Path, more: &[&str]) -> anyhow::Result<Check> {
    for _ in 1..TRIES {
        let check = trace_once(target, more)?;
        if check.completed.bytes() > 0 {
            return Ok(check);
        }
    }
    let check = trace_once(target, more)?;
    anyhow::ensure!(
        check.completed.bytes() > 0,
        "the device was idle: {check:?}"
    );
    Ok(check)
}

fn trace_once(target: &Path, more: &[&str]) -> anyhow::Result<Check> {
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let (target, place) = (target.to_string_lossy(), output.to_string_lossy());
    let words = [
        "trace",
        &target,
        "-o",
        &place,
        "--duration",
        "0.1",
        "--allow-loss",
    ];
    iostep::run(words.iter().chain(more))?.success()?;
    Ok(store::read(&output)?.manifest.check)
}

/// Traces under loads of several depths.
fn trace_all(target: &Path, file: &Path, loads: &[(usize, usize)]) -> anyhow::Result<()> {
    for (depth, bytes) in loads {
        let load = Load::start(file, *depth, *bytes)?;
        let check = trace(target, &[])?;
        drop(load);
        println!(
            "    depth {depth}, {bytes} bytes: {} requests, {} bytes under way before, {} after, {} told late",
            check.completed.write.ios,
            check.in_flight_before_bytes,
            check.in_flight_after_bytes,
            check.late_completions
        );
        anyhow::ensure!(check.passed(), "depth {depth}, {bytes} bytes: {check:#?}");
    }
    Ok(())
}

fn loop_device() -> anyhow::Result<LoopImage> {
    Ok(LoopImage::create(&Options {
        bytes: BYTES,
        ..Options::default()
    })?)
}

/// Where a property of a device's queue is set.
fn of_queue(device: &Path, property: &str) -> PathBuf {
    let name = device.file_name().unwrap_or_default();
    let queue = Path::new("/sys/block").join(name).join("queue");
    queue.join(property)
}

/// A property of a device's queue that has another value until the drop: it would outlive a loop
/// device's image.
#[must_use]
pub struct QueueProperty {
    path: PathBuf,
    before: String,
}

impl QueueProperty {
    pub fn set(device: &Path, property: &str, value: &str) -> anyhow::Result<QueueProperty> {
        let path = of_queue(device, property);
        let text = std::fs::read_to_string(&path)?;
        let before = match text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'))
        {
            Some((chosen, _)) => chosen,
            None => text.trim(),
        };
        let before = before.to_owned();
        std::fs::write(&path, value).with_context(|| format!("{value} to {}", path.display()))?;
        Ok(QueueProperty { path, before })
    }
}

impl Drop for QueueProperty {
    fn drop(&mut self) {
        let _ = std::fs::write(&self.path, &self.before);
    }
}

pub fn schedulers_of(device: &Path) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(of_queue(device, "scheduler"))?;
    let names = text.split_whitespace();
    Ok(names
        .map(|name| name.trim_matches(['[', ']']).to_owned())
        .collect())
}

fn schedulers() -> anyhow::Result<()> {
    on_schedulers(loop_device()?.device(), &[(1, 4096), (32, 65_536)])
}

fn on_schedulers(device: &Path, loads: &[(usize, usize)]) -> anyhow::Result<()> {
    for scheduler in schedulers_of(device)? {
        println!("    {scheduler}");
        let _scheduler = QueueProperty::set(device, "scheduler", &scheduler)?;
        trace_all(device, device, loads)?;
    }
    Ok(())
}

/// The disk that the test's own binary is on, whatever it is: its scheduler stays as it is.
fn disk() -> anyhow::Result<()> {
    let own = std::env::current_exe()?;
    let directory = tempfile::tempdir_in(own.parent().unwrap_or(Path::new("/")))?;
    let file = directory.path().join("file");
    File::create(&file)?.set_len(BYTES)?;
    trace_all(directory.path(), &file, &[(1, 4096), (64, 131_072)])
}

fn guest_disk() -> anyhow::Result<()> {
    let disk = disk_of_guest()?;
    on_schedulers(&disk, &[(1, 4096), (3, 65_536)])
}

fn disk_of_guest() -> anyhow::Result<PathBuf> {
    let mut disks = ["nvme0n1", "sda", "mmcblk0", "vda"].map(|name| Path::new("/dev").join(name));
    let disk = disks.iter_mut().find(|disk| disk.exists());
    Ok(disk.context("the guest has no disk")?.clone())
}

fn faults() -> anyhow::Result<()> {
    faults_on(loop_device()?.device())
}

fn faults_on(device: &Path) -> anyhow::Result<()> {
    let _load = Load::start(device, 4, 4096)?;
    for (number, point) in POINTS.iter().enumerate() {
        for kind in KINDS {
            let fault = format!("{point}:{kind}:{}", 7 + 5 * number);
            let check = trace(device, &["--fault", &fault])?;
            // The next request with the tag tells that one late, and says so.
            let is_made_good = fault.starts_with("complete:skip") && check.late_completions > 0;
            println!("    {fault}: {:?}", check.differences);
            anyhow::ensure!(!check.passed() || is_made_good, "{fault}: not found");
        }
    }
    Ok(())
}

/// Every other bio only flushes: its request has no bytes, and no place. Which of them a fault meets
/// is chance.
fn faults_of_flushes() -> anyhow::Result<()> {
    let image = loop_device()?;
    let _load = Load::with_syncs(image.device(), 0, 0, 4096)?;
    for kind in ["skip", "twice"] {
        let meets = |number| -> anyhow::Result<bool> {
            let fault = format!("queue:{kind}:{number}");
            let check = trace(image.device(), &["--fault", &fault])?;
            println!("    {fault}: {:?}", check.differences);
            anyhow::ensure!(!check.passed(), "{fault}: not found");
            let mut differences = check.differences.iter();
            Ok(differences.any(|words| words.contains(" 0 bytes")))
        };
        let mut tries = (7..27).map(meets);
        let met = tries.find(|met| !matches!(met, Ok(false)));
        anyhow::ensure!(
            met.transpose()?.is_some(),
            "no {kind} met a bio that only flushes"
        );
    }
    Ok(())
}

/// Each write is a flush sequence: its data come back, then a flush that may be another's, then the
/// write itself, without bytes.
fn lost_in_a_flush_sequence() -> anyhow::Result<()> {
    let image = loop_device()?;
    let _load = Load::of_direct_writers(image.device(), 4, 4096, libc::O_DSYNC)?.settled();
    for number in 17..27 {
        let fault = format!("complete:skip:{number}");
        let check = trace(image.device(), &["--fault", &fault])?;
        println!(
            "    {fault}: {} told late, {:?}",
            check.late_completions, check.differences
        );
        anyhow::ensure!(check.passed(), "{fault}: {check:#?}");
        anyhow::ensure!(check.late_completions > 0, "{fault}: not found");
    }
    Ok(())
}
