//! When a guest has to end before its cells do.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A boot, where everything is emulated.
const BOOT: Duration = Duration::from_secs(240);
const TICK: Duration = Duration::from_millis(100);

/// Ends a guest when a signal came, or when it has not told of a cell for too long.
pub(super) struct Watch<'a> {
    interrupted: &'a AtomicBool,
    pub patience: Duration,
    /// What the guest looks at.
    pub stop: AtomicBool,
    over: AtomicBool,
    pub hangs: AtomicBool,
    deadline: Mutex<Instant>,
}

impl<'a> Watch<'a> {
    pub fn new(interrupted: &'a AtomicBool, patience: Duration) -> Watch<'a> {
        Watch {
            interrupted,
            patience,
            stop: AtomicBool::new(false),
            over: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            deadline: Mutex::new(Instant::now() + BOOT + patience),
        }
    }

    /// Looks until [`Watch::end`].
    pub fn look(&self) {
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
    pub fn heard(&self) {
        if let Ok(mut deadline) = self.deadline.lock() {
            *deadline = Instant::now() + self.patience;
        }
    }

    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
