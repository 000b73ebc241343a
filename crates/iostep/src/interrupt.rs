//! Signals that ask for the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Signals that ask for the end, as a flag: whoever sees it returns, and so cleans up. Another
/// signal changes nothing, so it cannot come between and leave things behind.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches SIGINT, SIGTERM and SIGHUP from now on.
    pub fn install() -> anyhow::Result<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
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
