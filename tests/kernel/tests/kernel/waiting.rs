//! Bios that were queued before a trace and get their requests in it: no difference, and no shelter for
//! one. The loop device lies on a filesystem that is frozen, so that nothing comes back and threads wait
//! for tags until it is thawed.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::Context;
use iostep_kernel_tests::iostep::{self, Running};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::image::{LoopImage, Options};
use iostep_lab::{Kind, Mount, mkfs};
use iostep_model::manifest::Check;
use iostep_model::store;
use tempfile::TempDir;

use crate::busy::{QueueProperty, schedulers_of};
use crate::case::Case;
use crate::faults::wait_until;

const WRITERS: usize = 16;
/// The fewest that the kernel has (`BLKDEV_MIN_RQ`).
const TAGS: usize = 4;
const BLOCK: usize = 4096;
const MIB: u64 = 1 << 20;
const FIFREEZE: libc::c_ulong = 0xc004_5877;
const FITHAW: libc::c_ulong = 0xc004_5878;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let needs = [Requirement::Root, Requirement::Btf, Requirement::Loop];
    let cases = [
        Case::new(
            "bios that wait for a tag since before the trace are no difference",
            needs,
            no_difference,
        ),
        Case::new(
            "a bio that is not seen is found while older ones still come",
            needs,
            fault_is_found,
        ),
    ];
    cases.map(|case| case.about("waiting")).into()
}

/// A filesystem that takes no writes until the drop.
struct Frozen(File);

impl Frozen {
    fn new(root: &Path) -> anyhow::Result<Frozen> {
        let root = File::open(root)?;
        // SAFETY: the call ignores its argument.
        let result = unsafe { libc::ioctl(root.as_raw_fd(), FIFREEZE as _, 0) };
        anyhow::ensure!(result == 0, "freeze: {}", std::io::Error::last_os_error());
        Ok(Frozen(root))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // SAFETY: the call ignores its argument.
        unsafe { libc::ioctl(self.0.as_raw_fd(), FITHAW as _, 0) };
    }
}

/// A loop device on a filesystem that can be frozen.
struct Device {
    image: LoopImage,
    below: Mount,
    _disk: LoopImage,
    directory: TempDir,
}

impl Device {
    fn new() -> anyhow::Result<Device> {
        let directory = TempDir::new_in("/dev/shm")?;
        let disk = LoopImage::create(&Options {
            bytes: 256 * MIB,
            directory: Some(directory.path().to_owned()),
            ..Options::default()
        })?;
        mkfs(Kind::Ext4, &disk, &[] as &[&str])?;
        let below = Mount::new(Kind::Ext4, &disk, "")?;
        let image = LoopImage::create(&Options {
            bytes: 64 * MIB,
            directory: Some(below.path().to_owned()),
            ..Options::default()
        })?;
        Ok(Device {
            image,
            below,
            _disk: disk,
            directory,
        })
    }

    fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn words(&self, name: &str, more: &[&str]) -> Vec<String> {
        let device = self.image.device().to_string_lossy().into_owned();
        let place = self.place(name).to_string_lossy().into_owned();
        let words = ["trace".into(), device, "-o".into(), place];
        let more = more.iter().map(|word| (*word).to_owned());
        words.into_iter().chain(more).collect()
    }

    /// Traces while threads that wait for a tag since before go on; each writes so many blocks.
    fn trace(&self, name: &str, blocks: u64, flags: i32, more: &[&str]) -> anyhow::Result<Check> {
        // What a tracer reads is in the page cache from then on: it would need a tag, too.
        let first = self.words(&format!("{name}-first"), &["--duration", "0.1"]);
        iostep::run(first)?.success()?;
        let frozen = Frozen::new(self.below.path())?;
        let writers = self.start_writers(blocks, flags)?;
        wait_until("threads without a tag", || {
            waiting_threads() >= WRITERS - 2 * TAGS
        })?;
        let words = self.words(name, &[&["--duration", "3", "--allow-loss"], more].concat());
        let running = Running::start(words)?;
        let begun = wait_until("the recording", || running.says("iostep: recording"));
        drop(frozen);
        begun?;
        for writer in writers {
            let joined = writer.join();
            joined.ok().context("a writer panicked")??;
        }
        running.finish()?.success()?;
        Ok(store::read(&self.place(name))?.manifest.check)
    }

    fn start_writers(
        &self,
        blocks: u64,
        flags: i32,
    ) -> anyhow::Result<Vec<JoinHandle<std::io::Result<()>>>> {
        let start = |number: u64| -> anyhow::Result<_> {
            let mut options = OpenOptions::new();
            let options = options.write(true).custom_flags(libc::O_DIRECT | flags);
            let file = options.open(self.image.device())?;
            Ok(std::thread::spawn(move || {
                write_blocks(&file, number, blocks)
            }))
        };
        (0..WRITERS as u64).map(start).collect()
    }
}

fn write_blocks(file: &File, number: u64, blocks: u64) -> std::io::Result<()> {
    let space = vec![1; 2 * BLOCK];
    let aligned = space.as_ptr().align_offset(BLOCK);
    // Apart from each other, so that none merges with another's, and from what a tracer has to read:
    // direct writes throw that out of the page cache.
    let first = (1 + 3 * number) * MIB;
    for block in 0..blocks {
        let block = first + 2 * block * BLOCK as u64;
        file.write_all_at(&space[aligned..aligned + BLOCK], block)?;
    }
    Ok(())
}

/// How many threads of this process wait for a tag, as the kernel says.
fn waiting_threads() -> usize {
    let threads = fs::read_dir("/proc/self/task");
    let stacks = threads.into_iter().flatten().flatten().map(|thread| {
        let stack = fs::read_to_string(thread.path().join("stack"));
        stack.unwrap_or_default()
    });
    stacks
        .filter(|stack| stack.contains("blk_mq_get_tag"))
        .count()
}

fn no_difference() -> anyhow::Result<()> {
    let device = Device::new()?;
    for scheduler in schedulers_of(device.image.device())? {
        let _scheduler = QueueProperty::set(device.image.device(), "scheduler", &scheduler)?;
        let _tags = QueueProperty::set(device.image.device(), "nr_requests", &TAGS.to_string())?;
        for (kind, flags) in [("plain", 0), ("syncing", libc::O_DSYNC)] {
            let check = device.trace(&format!("{scheduler}-{kind}"), 1, flags, &[])?;
            let [queued, issued, completed] =
                [check.queued, check.issued, check.completed].map(|sums| sums.write);
            println!(
                "    {scheduler}, {kind}: {} queued, {} issued, {} completed",
                queued.ios, issued.ios, completed.ios
            );
            anyhow::ensure!(check.passed(), "{scheduler}, {kind}: {check:#?}");
            let all = (WRITERS * BLOCK) as u64;
            anyhow::ensure!(
                (queued.bytes, completed.bytes) == (0, all),
                "not all of before: {check:#?}"
            );
            anyhow::ensure!(issued.bytes >= all / 2, "none waited for a tag: {check:#?}");
        }
    }
    Ok(())
}

/// Each thread has a bio from before, and then some of the trace.
fn fault_is_found() -> anyhow::Result<()> {
    let device = Device::new()?;
    let _tags = QueueProperty::set(device.image.device(), "nr_requests", &TAGS.to_string())?;
    for number in [1, 2, 20] {
        let fault = format!("queue:skip:{number}");
        let check = device.trace(&format!("skip-{number}"), 4, 0, &["--fault", &fault])?;
        println!("    {fault}: {:?}", check.differences);
        let expected = format!("1 requests were issued with {BLOCK} bytes");
        anyhow::ensure!(
            check.differences.len() == 1 && check.differences[0].starts_with(&expected),
            "{fault}: {check:#?}"
        );
    }
    Ok(())
}
