//! Signals that ask for the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context;
use iostep_model::publish;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Signals that ask for the end, as a flag: whoever sees it returns, and so cleans up. Another
/// signal changes nothing, so it cannot come between and leave things behind.
#[derive(Clone, Debug)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    /// The number of the last one; 0 before any.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Catches SIGINT, SIGTERM and SIGHUP from now on; a SIGHUP that is ignored, as nohup(1) has
    /// it, stays so.
    pub fn install() -> anyhow::Result<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        let number = Arc::new(AtomicUsize::new(0));
        publish::end_when(Arc::clone(&flag));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && is_ignored(signal) {
                continue;
            }
            // The number first: whoever sees the flag asks for it.
            signal_hook::flag::register_usize(signal, Arc::clone(&number), signal as usize)
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
                .context("cannot catch signals")?;
        }
        Ok(Interrupt {
            flag,
            signal: number,
        })
    }

    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// True once a signal came.
    pub fn came(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// The exit status of what a signal ended before its time and which is of use as it is: 0 after
    /// Ctrl-C, with which the user says that it is enough; 128 and the signal's number after another
    /// one, as a shell has it of a process that it killed.
    pub fn status(&self) -> u8 {
        match self.signal.load(Ordering::Relaxed) {
            number if number == SIGINT as usize => 0,
            number => u8::try_from(128 + number).unwrap_or(u8::MAX),
        }
    }
}

/// True if this process came with a signal ignored: proc_pid_status(5), `SigIgn`.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
