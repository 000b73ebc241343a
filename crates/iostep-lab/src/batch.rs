//! Cells that run in a guest: one guest for many, since a boot costs more than a cell.
//!
//! The guest runs the same binary as `iostep lab run` on its own device, and leaves each result in
//! a directory that it shares with the host as soon as it is there. So a guest that dies costs the
//! cell that was under way; the others go on in a new one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostep_model::directory::Temporary;
use iostep_model::lab::{Cell, CellResult, Lab, State};

use crate::error::{Error, Result};
use crate::guest::{self, Device, Options, Output};
use crate::measured::Measured;
use crate::plan::in_turns;
use crate::results;

mod disks;
mod inbox;
#[cfg(test)]
mod tests;
mod watch;

use disks::{GuestDisk, disks};
use inbox::{Inbox, Tail};
use watch::Watch;

/// What a guest's cells take beside the workload: mkfs, and the attribution of a trace.
const SLACK: Duration = Duration::from_secs(120);
/// The kernel, the trace of a cell, and the page cache of what it wrote.
const MEMORY_BYTES: u64 = 2 << 30;
/// The administrators' tools, which `sudo` may not have on its path.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What runs cells in guests.
#[derive(Debug)]
pub struct Guests<'a> {
    /// The iostep that the guest runs; it sees it at the same path.
    pub program: PathBuf,
    /// The guest's kernel, if the user chose one (see [`Options::kernel`]).
    pub kernel: Option<PathBuf>,
    /// The device, if the user chose one.
    pub device: Option<Device>,
    /// Blocks whose cells need a device that can be polled.
    pub polled: BTreeSet<String>,
    /// What a cell may take.
    pub time_limit: Duration,
    /// Becomes true when a signal came.
    pub interrupted: &'a AtomicBool,
}

/// Who is told what happens in the guests.
pub trait Listener {
    /// A cell has a result, while the guest goes on. An error ends everything.
    fn result(&mut self, measured: Measured) -> Result<()>;

    /// A guest failed: what happened, and the last lines of its console.
    fn fault(&mut self, story: &str);
}

/// How a guest that did not do all of its cells ended.
struct Fault {
    /// In one line.
    reason: String,
    /// With the console, if it said anything.
    story: Option<String>,
    /// False if the next guest would not do better.
    is_the_cells: bool,
}

impl Guests<'_> {
    /// Whether guests for these cells could be started here.
    ///
    /// Errors: those of [`guest::check_prerequisites`].
    pub fn check_prerequisites(&self, cells: &[&Cell]) -> Result<()> {
        let devices = Device::ALL.into_iter().filter(|device| {
            let mut cells = cells.iter();
            cells.any(|cell| self.device_of(cell) == *device)
        });
        for device in devices {
            guest::check_prerequisites(&Options {
                kernel: self.kernel.clone(),
                filesystems: filesystems(cells),
                device,
                backings: vec![guest::Backing::New(0)],
                ..Options::default()
            })?;
        }
        Ok(())
    }

    /// Runs cells in guests that share a directory below `directory` with the host. The listener is
    /// told of each result as soon as it is there. What a signal leaves undone has no result.
    ///
    /// Errors: those of the listener, and of the shared directory.
    pub fn run(
        &self,
        name: &str,
        cells: &[&Cell],
        directory: &Path,
        listener: &mut dyn Listener,
    ) -> Result<()> {
        for device in Device::ALL {
            let own: Vec<&Cell> = cells
                .iter()
                .copied()
                .filter(|cell| self.device_of(cell) == device)
                .collect();
            self.on(device, name, own, directory, listener)?;
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
        listener: &mut dyn Listener,
    ) -> Result<()> {
        while !cells.is_empty() && !self.interrupted.load(Ordering::Relaxed) {
            let Some(fault) = self.boot(device, name, &mut cells, directory, listener)? else {
                return Ok(());
            };
            if let Some(story) = &fault.story {
                listener.fault(story);
            }
            // They run in their order, so the first without a result is the one that it died of.
            let blamed = match fault.is_the_cells {
                true => cells.len().min(1),
                false => cells.len(),
            };
            for cell in cells.drain(..blamed) {
                listener.result(failed(cell, &fault.reason).into())?;
            }
        }
        Ok(())
    }

    /// One guest, which takes the cells that it has done out of `cells`. The answer is why it did
    /// not do all of them.
    fn boot(
        &self,
        device: Device,
        name: &str,
        cells: &mut Vec<&Cell>,
        directory: &Path,
        listener: &mut dyn Listener,
    ) -> Result<Option<Fault>> {
        let directory = std::path::absolute(directory).map_err(Error::io(directory, "find"))?;
        let share = Temporary::new(&directory, ".guest-")?;
        let share = share.directory().name();
        let lab = Lab {
            name: name.to_owned(),
            title: name.to_owned(),
            cells: cells.iter().copied().cloned().collect(),
            analysis: Default::default(),
        };
        lab.write(&results::lab_path(share))?;
        // Those that take turns have their results together.
        let together = in_turns(cells).iter().map(Vec::len).max().unwrap_or(1);
        let limit = self.time_limit * u32::try_from(together).unwrap_or(u32::MAX);
        let watch = Watch::new(self.interrupted, limit + SLACK);
        let disks = disks(cells, MEMORY_BYTES)?;
        let qemu = guest::qemu_version();
        let mut keep = |mut measured: Measured| {
            if let Some(environment) = &mut measured.result.environment {
                environment.tools.extend(qemu.clone());
            }
            if let (Some(document), Some(disk)) = (&mut measured.bench, disks.first()) {
                document.warnings.push(disk.warning(document));
            }
            listener.result(measured)
        };
        let mut inbox = Inbox::new(share, &lab.cells, &watch, &mut keep);
        let mut complaints = Tail::default();
        let ended = std::thread::scope(|scope| {
            let watching = scope.spawn(|| watch.look());
            let ended = guest::run(
                &Options {
                    filesystems: filesystems(cells),
                    ..self.options(device, &disks, share)
                },
                &self.command(device, &lab, share),
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
        let taken = inbox.finish()?;
        cells.retain(|cell| !taken.contains(&cell.key));
        if cells.is_empty() || self.interrupted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        Ok(Some(fault(ended, &watch, &complaints)))
    }

    fn options(&self, device: Device, disks: &[GuestDisk], share: &Path) -> Options {
        Options {
            kernel: self.kernel.clone(),
            agent: Some(self.program.clone()),
            memory_bytes: MEMORY_BYTES,
            device,
            backings: disks.iter().map(GuestDisk::backing).collect(),
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
        words.extend(["--destroy-data", "--allow-commands", "--announce"].map(Into::into));
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

/// What the kernel has to mount for these cells.
fn filesystems(cells: &[&Cell]) -> Vec<&'static str> {
    let names = cells
        .iter()
        .map(|cell| cell.storage.filesystem.kind().name());
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

fn failed(cell: &Cell, reason: &str) -> CellResult {
    let reason = reason.to_owned();
    CellResult::without_runs(cell, State::Failed { reason })
}

fn fault(ended: Result<guest::Exit>, watch: &Watch<'_>, complaints: &Tail) -> Fault {
    if watch.hangs.load(Ordering::Relaxed) {
        let seconds = watch.patience.as_secs();
        return Fault {
            reason: format!("the guest said nothing for {seconds} seconds and was ended"),
            story: None,
            is_the_cells: true,
        };
    }
    match ended {
        Ok(exit) => Fault {
            reason: complaints
                .last_line()
                .unwrap_or_else(|| format!("the guest's iostep ended early: {:?}", exit.status)),
            story: None,
            is_the_cells: true,
        },
        Err(Error::Guest {
            what,
            came_up,
            console,
            ..
        }) => Fault {
            reason: match console.cause() {
                Some(cause) => format!("{what}; its console said: {}", cause.trim()),
                None => what.clone(),
            },
            story: Some(format!("{what}{console}")),
            is_the_cells: came_up,
        },
        Err(error) => Fault {
            reason: error.to_string(),
            story: None,
            is_the_cells: false,
        },
    }
}
