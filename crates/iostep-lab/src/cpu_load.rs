//! Threads that spin beside a workload.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Turns between two looks at whether to go on: less than a microsecond.
const TURNS: u32 = 1000;

/// Threads that do nothing but use a processor. The drop ends them.
#[derive(Debug)]
pub struct CpuLoad {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl CpuLoad {
    /// Starts `count` threads.
    ///
    /// Errors: the system has no room for one; those before are ended.
    pub fn start(count: u32) -> std::io::Result<CpuLoad> {
        let mut load = CpuLoad {
            over: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
        };
        for number in 0..count {
            let over = Arc::clone(&load.over);
            let name = format!("cpu-load-{number}");
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(move || spin(&over))?;
            load.threads.push(thread);
        }
        Ok(load)
    }
}

fn spin(over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        for _ in 0..TURNS {
            std::hint::black_box(0);
        }
    }
}

impl Drop for CpuLoad {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn spinning() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").expect("proc is mounted");
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
        };
        tasks
            .filter_map(name)
            .filter(|name| name.starts_with("cpu-load-"))
            .count()
    }

    /// A thread has its name, and is gone from /proc, a moment later than its starter knows.
    fn wait_for(count: usize) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while spinning() != count {
            assert!(Instant::now() < deadline, "{} threads spin", spinning());
            std::thread::yield_now();
        }
    }

    #[test]
    fn as_many_threads_spin_as_were_asked_for_and_none_afterwards() {
        let load = CpuLoad::start(3).expect("there is room");
        wait_for(3);
        drop(load);
        wait_for(0);
    }
}
