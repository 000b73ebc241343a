//! A private trace instance: its own ring buffers, its own events, gone when dropped.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use iostep_model::printable;
use rustix::fs::{FlockOperation, OFlags, flock};

use crate::error::{Error, Result};
use crate::tracefs::format::Format;
use crate::tracefs::mount::Mount;
use crate::tracefs::ring::PageShape;

const PREFIX: &str = "iostep-";
/// How long somebody else may have an instance's files, and how often that is looked at.
const BUSY_ATTEMPTS: u32 = 100;
const BUSY_INTERVAL: Duration = Duration::from_millis(20);

/// An instance directory and what is open in it.
#[derive(Debug)]
pub(crate) struct Instance {
    path: PathBuf,
    buffers: Vec<File>,
    page: PageShape,
    /// Locked while we live: how a later start tells a stale instance from one in use.
    lock: Option<File>,
    mount: Mount,
}

impl Instance {
    /// Makes `instances/iostep-PID-N` with `buffer_bytes` of ring buffer shared out over the
    /// CPUs, after removing instances that killed processes left behind. Nothing is recorded
    /// before [`Instance::record`].
    ///
    /// Errors: `Io`; `Unsupported` where the kernel's pages are of an unknown shape or it has no
    /// monotonic trace clock.
    pub fn create(buffer_bytes: u64) -> Result<Instance> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mount = Mount::find()?;
        let instances = mount.path().join("instances");
        remove_stale(&instances);
        let header = read(&mount.path().join("events/header_page"))?;
        let page = PageShape::parse(&header).ok_or_else(|| {
            Error::unsupported("tracefs", "an unknown page header in events/header_page")
        })?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = instances.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path).map_err(Error::io(&path, "create"))?;
        let mut instance = Instance {
            path,
            buffers: Vec::new(),
            page,
            lock: None,
            mount,
        };
        instance.prepare(buffer_bytes)?;
        Ok(instance)
    }

    fn prepare(&mut self, buffer_bytes: u64) -> Result<()> {
        let lock = self.path.join("tracing_on");
        let lock = File::open(&lock).map_err(Error::io(&lock, "open"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(Error::io(&self.path, "lock"))?;
        self.lock = Some(lock);
        self.set("tracing_on", "0")?;
        self.set("trace_clock", "mono").map_err(|_| {
            Error::unsupported("tracefs", "no `mono` trace clock (it came with Linux 3.17)")
        })?;
        // What was seen first explains what comes later, so a full buffer refuses the new.
        self.set("options/overwrite", "0")?;
        let cpus = self.cpus()?;
        let kib = buffer_bytes / 1024 / cpus.len().max(1) as u64;
        self.set("buffer_size_kb", &kib.max(64).to_string())?;
        for cpu in cpus {
            let path = cpu.join("trace_pipe_raw");
            let file = File::options()
                .read(true)
                .custom_flags(OFlags::NONBLOCK.bits() as i32)
                .open(&path);
            self.buffers.push(file.map_err(Error::io(&path, "open"))?);
        }
        Ok(())
    }

    fn cpus(&self) -> Result<Vec<PathBuf>> {
        let dir = self.path.join("per_cpu");
        let entries = fs::read_dir(&dir).map_err(Error::io(&dir, "list"))?;
        let mut cpus: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        cpus.sort();
        Ok(cpus)
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.path.join(file);
        write(&path, value).map_err(Error::io(&path, "write"))
    }

    /// Starts or stops recording.
    ///
    /// Errors: `Io`.
    pub fn record(&self, on: bool) -> Result<()> {
        self.set("tracing_on", if on { "1" } else { "0" })
    }

    /// The format of `system/name`; `None` if this kernel does not have the event.
    pub fn format(&self, system: &str, name: &str) -> Option<Format> {
        let path = self.path.join("events").join(system).join(name);
        let format = Format::parse(&read(&path.join("format")).ok()?);
        (format.id != 0).then_some(format)
    }

    /// Records `system/name` where `filter` holds (empty: always).
    ///
    /// Errors: `Io`, also for a filter that the kernel does not take.
    pub fn enable(&self, system: &str, name: &str, filter: &str) -> Result<()> {
        let event = format!("events/{system}/{name}");
        if !filter.is_empty() {
            self.set(&format!("{event}/filter"), filter)?;
        }
        self.set(&format!("{event}/enable"), "1")
    }

    /// Hands every page that is in the buffers now to `take`, CPU by CPU: the CPU's number, the
    /// page's shape and its bytes.
    ///
    /// Errors: `Io`.
    pub fn read_pages(&mut self, take: &mut dyn FnMut(usize, PageShape, &[u8])) -> Result<()> {
        let mut page = vec![0; self.page.page_bytes];
        for (cpu, buffer) in self.buffers.iter_mut().enumerate() {
            // A busy writer must not hold the reader at one CPU for ever.
            for _ in 0..1 << 16 {
                match buffer.read(&mut page) {
                    Ok(0) => break,
                    Ok(length) => take(cpu, self.page, &page[..length]),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(Error::io(&self.path, "read the buffers of")(e)),
                }
            }
        }
        Ok(())
    }

    /// How many events found no room so far.
    ///
    /// Errors: `Io`.
    pub fn lost(&self) -> Result<u64> {
        let mut lost = 0;
        for cpu in self.cpus()? {
            lost += lost_in(&read(&cpu.join("stats"))?);
        }
        Ok(lost)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The directory is busy while any of its files is open.
        self.buffers.clear();
        self.lock = None;
        if let Err(error) = remove_busy(&self.path) {
            let root = self.mount.path().display();
            let path = self.path.display();
            printable::say(&format!(
                "iostep: {path}: cannot remove: {error}; remove it below {root} by hand"
            ));
        }
    }
}

/// Removes an instance whose files are closed here. A child of another thread has them for a moment
/// still, between its fork and its exec; so has a process that looks whether this one is stale.
fn remove_busy(instance: &Path) -> std::io::Result<()> {
    for _ in 0..BUSY_ATTEMPTS {
        match fs::remove_dir(instance) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => sleep(BUSY_INTERVAL),
            result => return result,
        }
    }
    fs::remove_dir(instance)
}

fn read(path: &Path) -> Result<String> {
    // `header_page` answers one read and no second (`show_header`), so that one must be large.
    let mut text = vec![0; 64 << 10];
    let mut length = 0;
    let mut file = File::open(path).map_err(Error::io(path, "open"))?;
    loop {
        match file
            .read(&mut text[length..])
            .map_err(Error::io(path, "read"))?
        {
            0 => break,
            read => length += read,
        }
    }
    text.truncate(length);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn write(path: &Path, value: &str) -> std::io::Result<()> {
    // No O_CREAT: tracefs has no files but its own.
    File::options()
        .write(true)
        .open(path)?
        .write_all(value.as_bytes())
}

/// The lost events in the text of `per_cpu/cpuN/stats`. Sources: `tracing_stats_read` in
/// kernel/trace/trace.c; the three counters are disjoint.
fn lost_in(stats: &str) -> u64 {
    let counts = stats.lines().filter_map(|line| {
        let (name, count) = line.split_once(": ")?;
        let lost = matches!(name, "overrun" | "commit overrun" | "dropped events");
        lost.then(|| count.trim().parse::<u64>().ok())?
    });
    counts.sum()
}

/// Removes the instances of processes that are gone. Best effort: whoever made one that cannot
/// be removed will be asked again at the next start.
fn remove_stale(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(owner_of);
        if owner.is_some_and(|pid| is_stale(&entry.path(), pid)) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn owner_of(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(PREFIX)?;
    rest.split('-').next()?.parse().ok()
}

/// True if process `pid` is gone, or lives but does not hold the lock: then it is another one
/// under a reused number.
fn is_stale(instance: &Path, pid: u32) -> bool {
    if pid == std::process::id() {
        return false;
    }
    if !Path::new(&format!("/proc/{pid}")).exists() {
        return true;
    }
    // Between making the directory and locking it lie microseconds; ask again after them.
    let unlocked = || {
        let Ok(file) = File::open(instance.join("tracing_on")) else {
            return false;
        };
        flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
    };
    unlocked() && {
        sleep(BUSY_INTERVAL);
        unlocked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_losing_an_event_counts() {
        let stats = "entries: 12\noverrun: 3\ncommit overrun: 4\nbytes: 900\n\
                     oldest event ts:     1.000000\nnow ts:     2.000000\n\
                     dropped events: 5\nread events: 7\n";
        assert_eq!(lost_in(stats), 12);
        assert_eq!(lost_in("garbage"), 0);
    }

    #[test]
    fn an_instance_names_its_owner() {
        assert_eq!(owner_of("iostep-812-0"), Some(812));
        assert_eq!(owner_of("iostep-812"), Some(812));
        assert_eq!(owner_of("iostep-x"), None);
        assert_eq!(owner_of("perf-812"), None);
    }

    #[test]
    fn an_instance_of_a_dead_process_is_stale_and_ours_is_not() {
        let dir = Path::new("/nonexistent");
        assert!(is_stale(dir, u32::MAX));
        assert!(!is_stale(dir, std::process::id()));
        assert!(!is_stale(dir, 1));
    }
}
