//! New names of files that have no more I/O: `renames.bpf.h` finds them, and is called for what it
//! could not find at once.

use std::time::{Duration, Instant};

use libbpf_rs::{MapCore, MapFlags, ProgramInput};

use super::programs::types::sweep_want as SweepWant;
use super::{Probe, word};
use crate::error::{Error, Result};

/// System calls that change names, and a bit for each argument that is a path of one.
#[cfg(target_arch = "x86_64")]
pub(super) const NAMING_CALLS: [(libc::c_long, u8); 5] = [
    (libc::SYS_rename, 0b11),
    (libc::SYS_renameat, 0b1010),
    (libc::SYS_renameat2, 0b1010),
    (libc::SYS_unlink, 0b1),
    (libc::SYS_unlinkat, 0b10),
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const NAMING_CALLS: [(libc::c_long, u8); 3] = [
    (libc::SYS_renameat, 0b1010),
    (libc::SYS_renameat2, 0b1010),
    (libc::SYS_unlinkat, 0b10),
];

/// How long after a sweep for new names the next one may come that nobody waits for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// And after how many times what the last one took.
const SWEEP_SHARE: u32 = 50;

/// When new names were looked for, by a sweep over all files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Swept {
    ended: Instant,
    took: Duration,
}

impl Swept {
    /// It ended now.
    pub fn now(took: Duration) -> Swept {
        let ended = Instant::now();
        Swept { ended, took }
    }
}

impl Probe<'_> {
    /// Lets the programs look for new names of files, if some may have changed untold and it does not
    /// cost too much.
    ///
    /// Errors: `Kernel`.
    pub fn sweep_if_wanted(&self) -> Result<()> {
        let Swept { ended, took } = self.swept.get();
        let is_due = match self.sweep_wanted()? {
            SweepWant::SWEEP_NOW => ended.elapsed() > took * SWEEP_SHARE,
            SweepWant::SWEEP_LATER => ended.elapsed() > SWEEP_INTERVAL.max(took * SWEEP_SHARE),
            _ => false,
        };
        if is_due {
            self.sweep()?;
        }
        Ok(())
    }

    /// Lets the programs look for new names of all files; true if they are all told, or will not be.
    ///
    /// Errors: `Kernel`.
    pub fn sweep(&self) -> Result<bool> {
        if !self.skel.progs.sweep.autoload() {
            return Ok(true);
        }
        let start = Instant::now();
        let run = self.skel.progs.sweep.test_run(ProgramInput::default());
        run.map_err(Error::kernel("look for new names of files"))?;
        self.swept.set(Swept::now(start.elapsed()));
        Ok(self.sweep_wanted()? != SweepWant::SWEEP_NOW)
    }

    fn sweep_wanted(&self) -> Result<SweepWant> {
        let map = &self.skel.maps.data_sweep;
        let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(Error::kernel("read a BPF map"))?;
        Ok(SweepWant(value.map_or(0, |value| word(&value, 0)) as u32))
    }
}
