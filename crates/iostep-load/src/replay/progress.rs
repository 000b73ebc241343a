//! How far each thread of a replay is.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::thread::futex;
use rustix::time::Timespec;

use super::plan::Wait;

/// Looks before a waiting thread sleeps: a call that another thread is about to end is waited for
/// without the cost of a wake-up.
const LOOKS: usize = 100;
/// About how long they take.
pub(super) const AWAKE_NS: u64 = 2_000;
/// A sleeping thread looks for an interruption.
const NAP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// One thread, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Thread {
    /// Steps that are done.
    done: AtomicU32,
    /// Threads that sleep until there are more.
    sleepers: AtomicU32,
}

/// The steps that all threads have done.
#[derive(Debug)]
pub(super) struct Progress {
    threads: Vec<Thread>,
}

impl Progress {
    pub(super) fn of(threads: usize) -> Progress {
        Progress {
            threads: (0..threads).map(|_| Thread::default()).collect(),
        }
    }

    /// A thread has done this many of its steps.
    pub(super) fn done(&self, thread: usize, steps: u32) {
        let thread = &self.threads[thread];
        // Both sides first write, then look at what the other wrote.
        thread.done.store(steps, Ordering::SeqCst);
        if thread.sleepers.load(Ordering::SeqCst) > 0 {
            let _ = futex::wake(&thread.done, futex::Flags::PRIVATE, i32::MAX as u32);
        }
    }

    /// Waits until another thread is far enough. False if it was interrupted before.
    pub(super) fn wait(&self, wait: Wait, interrupted: &AtomicBool) -> bool {
        let thread = &self.threads[wait.thread as usize];
        for _ in 0..LOOKS {
            if thread.done.load(Ordering::Acquire) >= wait.steps {
                return true;
            }
            std::hint::spin_loop();
        }
        thread.sleepers.fetch_add(1, Ordering::SeqCst);
        let far_enough = loop {
            let done = thread.done.load(Ordering::SeqCst);
            if done >= wait.steps {
                break true;
            }
            if interrupted.load(Ordering::Relaxed) {
                break false;
            }
            let _ = futex::wait(&thread.done, futex::Flags::PRIVATE, done, Some(&NAP));
        };
        thread.sleepers.fetch_sub(1, Ordering::SeqCst);
        far_enough
    }
}
