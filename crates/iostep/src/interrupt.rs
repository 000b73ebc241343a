//! Signals that ask for the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use iostep_model::publish;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Signals that ask for the end, as a flag: whoever sees it returns, and so cleans up. Another
/// signal changes nothing, so it cannot come between and leave things behind.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches SIGINT, SIGTERM and SIGHUP from now on; a SIGHUP that is ignored, as nohup(1) has
    /// it, stays so.
    pub fn install() -> anyhow::Result<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        publish::end_when(Arc::clone(&flag));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && is_ignored(signal) {
                continue;
            }
            signal_hook::flag::register(signal, Arc::clone(&flag))
                .context("cannot catch signals")?;
        }
        Ok(Interrupt(flag))
    }

    /// The flag.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// True once a signal came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// True if this process came with a signal ignored: proc_pid_status(5), `SigIgn`.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
