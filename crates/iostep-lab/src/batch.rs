//! Cells that run in a guest: one guest for many, since a boot costs more than a cell.
//!
//! The guest runs the same binary as `iostep lab run` on its own device, and leaves each result in
//! a directory that it shares with the host as soon as it is there. So a guest that dies costs the
//! cell that was under way; the others go on in a new one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iostep_model::lab::{Cell, CellResult, Lab, State};

use crate::error::{Error, Result};
use crate::guest::{self, Backing, Device, Options, Output};
use crate::results;
use crate::storage::JOURNAL_BYTES;

/// What a guest's cells take beside the workload: mkfs, and the attribution of a trace.
const SLACK: Duration = Duration::from_secs(120);
/// A boot, where everything is emulated.
const BOOT: Duration = Duration::from_secs(240);
const TICK: Duration = Duration::from_millis(100);
/// The kernel, the trace of a cell, and the page cache of what it wrote.
const MEMORY_BYTES: u64 = 2 << 30;
/// Memory as a filesystem.
const MEMORY: &str = "/dev/shm";
const MAX_STDERR_BYTES: usize = 16 << 10;
/// The administrators' tools, which `sudo` may not have on its path.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What runs cells in guests.
#[derive(Debug)]
pub struct Guests<'a> {
    /// The iostep that the guest runs; it sees it at the same path.
    pub program: PathBuf,
    /// The device, if the user chose one.
    pub device: Option<Device>,
    /// Blocks whose cells need a device that can be polled.
    pub polled: BTreeSet<String>,
    /// What a cell may take.
    pub time_limit: Duration,
    /// Becomes true when a signal came.
    pub interrupted: &'a AtomicBool,
}

/// How a guest that did not do all of its cells ended.
struct Fault {
    reason: String,
    /// False if the next guest would not do better.
    is_the_cells: bool,
}

impl Guests<'_> {
    /// Runs cells in guests that share a directory below `directory` with the host. `done` is told
    /// of each result as soon as it is there. What a signal leaves undone has no result.
    ///
    /// Errors: those of `done`, and of the shared directory.
    pub fn run(
        &self,
        name: &str,
        cells: &[&Cell],
        directory: &Path,
        done: &mut dyn FnMut(CellResult) -> Result<()>,
    ) -> Result<()> {
        for device in [Device::Virtio, Device::Nvme, Device::Sd] {
            let own: Vec<&Cell> = cells
                .iter()
                .copied()
                .filter(|cell| self.device_of(cell) == device)
                .collect();
            self.on(device, name, own, directory, done)?;
        }
        Ok(())
    }

    /// Of QEMU's devices only NVMe has queues to poll.
    fn device_of(&self, cell: &Cell) -> Device {
        let own = match self.polled.contains(&cell.block) {
            true => Device::Nvme,
            false => Device::Virtio,
        };
        self.device.unwrap_or(own)
    }

    fn on(
        &self,
        device: Device,
        name: &str,
        mut cells: Vec<&Cell>,
        directory: &Path,
        done: &mut dyn FnMut(CellResult) -> Result<()>,
    ) -> Result<()> {
        while !cells.is_empty() && !self.interrupted.load(Ordering::Relaxed) {
            let mut finished = Vec::new();
            let mut keep = |result: CellResult| {
                finished.push(result.cell.key.clone());
                done(result)
            };
            let fault = self.boot(device, name, &cells, directory, &mut keep)?;
            cells.retain(|cell| !finished.contains(&cell.key));
            let Some(fault) = fault else {
                return Ok(());
            };
            // They run in their order, so the first without a result is the one that it died of.
            let blamed = match fault.is_the_cells {
                true => cells.len().min(1),
                false => cells.len(),
            };
            for cell in cells.drain(..blamed) {
                done(failed(cell, &fault.reason))?;
            }
        }
        Ok(())
    }

    /// One guest. The answer is why it did not do all of its cells.
    fn boot(
        &self,
        device: Device,
        name: &str,
        cells: &[&Cell],
        directory: &Path,
        done: &mut dyn FnMut(CellResult) -> Result<()>,
    ) -> Result<Option<Fault>> {
        let share = tempfile::Builder::new()
            .prefix(".guest-")
            .tempdir_in(directory)
            .map_err(Error::io(directory, "create a directory in"))?;
        let lab = Lab {
            name: name.to_owned(),
            title: name.to_owned(),
            cells: cells.iter().copied().cloned().collect(),
        };
        lab.write(&results::lab_path(share.path()))?;
        let watch = Watch::new(self.interrupted, self.time_limit + SLACK);
        let disks = disks(cells)?;
        let mut inbox = Inbox {
            share: share.path(),
            cells,
            watch: &watch,
            line: Vec::new(),
            taken: Vec::new(),
            done,
            error: None,
        };
        let mut complaints = Tail::default();
        let ended = std::thread::scope(|scope| {
            let watching = scope.spawn(|| watch.look());
            let ended = guest::run(
                &self.options(device, &disks, share.path()),
                &self.command(device, &lab, share.path()),
                &mut Output {
                    stdout: &mut inbox,
                    stderr: &mut complaints,
                },
                &watch.stop,
            );
            watch.end();
            // It only sleeps and looks.
            let _ = watching.join();
            ended
        });
        inbox.take_all()?;
        let is_whole = inbox.taken.len() == cells.len();
        if is_whole || self.interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        Ok(Some(fault(ended, &watch, &complaints)))
    }

    fn options(&self, device: Device, disks: &[Disk], share: &Path) -> Options {
        Options {
            agent: Some(self.program.clone()),
            memory_bytes: MEMORY_BYTES,
            device,
            backings: disks.iter().map(Disk::backing).collect(),
            shares: vec![share.to_owned()],
            ..Options::default()
        }
    }

    fn command(&self, device: Device, lab: &Lab, share: &Path) -> guest::Command {
        let mut words: Vec<OsString> = vec![self.program.clone().into()];
        words.extend(["lab", "run"].map(OsString::from));
        words.push(results::lab_path(share).into());
        words.extend(["--results".into(), share.into()]);
        words.extend(["--on".into(), device.path(0).into()]);
        words.extend(["--destroy-data".into(), "--announce".into()]);
        if lab.cells.iter().any(|cell| cell.storage.external_journal) {
            words.extend(["--journal-device".into(), device.path(1).into()]);
        }
        let limit = format!("{}s", self.time_limit.as_secs().max(1));
        words.extend(["--time-limit".into(), limit.into()]);
        guest::Command {
            words,
            environment: vec![
                ("PATH".into(), PATH.into()),
                ("HOME".into(), "/root".into()),
                ("LANG".into(), "C.UTF-8".into()),
            ],
            directory: "/".into(),
        }
    }
}

/// What lies behind a guest's device.
enum Disk {
    /// A nameless file in memory.
    Memory(File),
    /// A sparse file of this many bytes in the directory for temporary files.
    Elsewhere(u64),
}

impl Disk {
    fn backing(&self) -> Backing {
        match self {
            Disk::Memory(file) => {
                let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
                Backing::Image(path.into())
            }
            Disk::Elsewhere(bytes) => Backing::New(*bytes),
        }
    }
}

/// The devices that these cells need: the filesystem's, and the journal's if one has its own. In
/// memory if there is room for all: each flush of the guest would wait for the host's disk.
fn disks(cells: &[&Cell]) -> Result<Vec<Disk>> {
    let largest = cells.iter().map(|cell| cell.storage.device_bytes).max();
    let journal = cells.iter().any(|cell| cell.storage.external_journal);
    let sizes = largest.into_iter().chain(journal.then_some(JOURNAL_BYTES));
    let sizes: Vec<u64> = sizes.collect();
    let memory = Path::new(MEMORY);
    let free = rustix::fs::statvfs(memory).map_or(0, |room| room.f_bavail * room.f_frsize);
    let needed = sizes.iter().copied().fold(0, u64::saturating_add);
    // The guest's own memory has to fit, too.
    if needed.saturating_add(MEMORY_BYTES) > free {
        return Ok(sizes.into_iter().map(Disk::Elsewhere).collect());
    }
    let file = |bytes| {
        let file = tempfile::tempfile_in(memory).map_err(Error::io(memory, "create a file in"))?;
        file.set_len(bytes)
            .map_err(Error::io(memory, "make a sparse file in"))?;
        Ok(Disk::Memory(file))
    };
    sizes.into_iter().map(file).collect()
}

fn failed(cell: &Cell, reason: &str) -> CellResult {
    CellResult {
        cell: cell.clone(),
        state: State::Failed {
            reason: reason.to_owned(),
        },
        environment: None,
        runs: Vec::new(),
    }
}

fn fault(ended: Result<guest::Exit>, watch: &Watch<'_>, complaints: &Tail) -> Fault {
    if watch.hangs.load(Ordering::Relaxed) {
        let seconds = watch.patience.as_secs();
        return Fault {
            reason: format!("the guest said nothing for {seconds} seconds and was ended"),
            is_the_cells: true,
        };
    }
    match ended {
        Ok(exit) => Fault {
            reason: complaints
                .last_line()
                .unwrap_or_else(|| format!("the guest's iostep ended early: {:?}", exit.status)),
            is_the_cells: true,
        },
        Err(error) => Fault {
            reason: first_and_last_line(&error.to_string()),
            is_the_cells: matches!(error, Error::Guest { came_up: true, .. }),
        },
    }
}

/// What happened, and the end of the console if there is one.
fn first_and_last_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().to_owned();
    match lines.next_back() {
        Some(last) => format!("{first} {last}"),
        None => first,
    }
}

/// Ends a guest when a signal came, or when it has not told of a cell for too long.
struct Watch<'a> {
    interrupted: &'a AtomicBool,
    patience: Duration,
    /// What the guest looks at.
    stop: AtomicBool,
    over: AtomicBool,
    hangs: AtomicBool,
    deadline: Mutex<Instant>,
}

impl<'a> Watch<'a> {
    fn new(interrupted: &'a AtomicBool, patience: Duration) -> Watch<'a> {
        Watch {
            interrupted,
            patience,
            stop: AtomicBool::new(false),
            over: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            deadline: Mutex::new(Instant::now() + BOOT + patience),
        }
    }

    fn look(&self) {
        while !self.over.load(Ordering::Relaxed) {
            let late = self.deadline.lock().is_ok_and(|end| Instant::now() >= *end);
            if late {
                self.hangs.store(true, Ordering::Relaxed);
            }
            if late || self.interrupted.load(Ordering::Relaxed) {
                self.stop.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(TICK);
        }
    }

    /// A sign of life came.
    fn heard(&self) {
        if let Ok(mut deadline) = self.deadline.lock() {
            *deadline = Instant::now() + self.patience;
        }
    }

    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Takes the results that the guest announces: it writes a cell's key as a line when its result is
/// there.
struct Inbox<'a> {
    share: &'a Path,
    cells: &'a [&'a Cell],
    watch: &'a Watch<'a>,
    line: Vec<u8>,
    taken: Vec<&'a str>,
    done: &'a mut dyn FnMut(CellResult) -> Result<()>,
    error: Option<Error>,
}

impl Inbox<'_> {
    /// Takes every result that is there.
    fn take_all(&mut self) -> Result<()> {
        for cell in self.cells {
            self.take(&cell.key);
        }
        self.error.take().map_or(Ok(()), Err)
    }

    /// Takes a result once. What cannot be read is as good as not there: the guest may have died
    /// of it.
    fn take(&mut self, key: &str) {
        let found = self.cells.iter().find(|cell| cell.key == key);
        let Some(cell) = found.filter(|cell| !self.taken.contains(&cell.key.as_str())) else {
            return;
        };
        let Ok(Some(result)) = results::read_cell(self.share, cell) else {
            return;
        };
        self.taken.push(&cell.key);
        if let Err(error) = (self.done)(result) {
            self.error.get_or_insert(error);
        }
    }
}

impl Write for Inbox<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.watch.heard();
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                // No key is longer.
                self.line.truncate(64);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            self.take(&String::from_utf8_lossy(&line));
        }
        match &self.error {
            Some(error) => Err(io::Error::other(error.to_string())),
            None => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The end of what a guest complained about.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn last_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0);
        let line = text.lines().rfind(|line| !line.trim().is_empty())?;
        let line = line.strip_prefix("iostep: ").unwrap_or(line);
        Some(line.chars().filter(|c| !c.is_control()).collect())
    }
}

impl Write for Tail {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        let excess = self.0.len().saturating_sub(MAX_STDERR_BYTES);
        self.0.drain(..excess);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
