//! I/O of other processes while a job runs (`/proc/PID/io`, proc_pid_io(5)).
//!
//! The kernel counts what a process makes dirty or writes directly, and what it reads, on whatever
//! disk; a process that was waited for is added to its parent. So which disk it was is told by the
//! files that the process, or a child of it, has open for writing. A process of which that is not
//! seen may have used this one.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use iostep_model::bench::{OtherProcess, OthersIo, ReadWritten};

use super::text::{entries, read, value};

/// So many processes are named.
const NAMED: usize = 5;

/// Where a process writes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Nothing that is open for writing was seen.
    #[default]
    Unknown,
    /// Another disk.
    Elsewhere,
    /// The disk that is measured.
    Here,
}

/// What one process has done since it began.
#[derive(Clone, Debug, Default)]
struct Done {
    name: String,
    parent: u32,
    bytes: ReadWritten,
}

/// Looks at other processes from the start of a run on.
#[derive(Debug)]
pub struct Watch {
    root: PathBuf,
    /// The disks that are measured.
    disks: BTreeSet<String>,
    own: u32,
    start: BTreeMap<u32, Done>,
    places: BTreeMap<u32, Place>,
    /// The kernel's own threads.
    kernel: BTreeSet<u32>,
    unseen: u64,
}

impl Watch {
    /// Begins now. `devices` are those that are measured: major and minor numbers.
    pub fn begin(root: &Path, devices: &[(u32, u32)]) -> Watch {
        let disks = devices
            .iter()
            .flat_map(|device| disks_of(root, *device))
            .collect();
        let mut watch = Watch {
            root: root.to_owned(),
            disks,
            own: std::process::id(),
            start: BTreeMap::new(),
            places: BTreeMap::new(),
            kernel: BTreeSet::new(),
            unseen: 0,
        };
        (watch.start, watch.unseen) = watch.processes();
        watch
    }

    /// Sees who has done something, and where they write to. To be called now and then: what ends in
    /// between is not seen.
    pub fn look(&mut self) {
        for directory in numbered(&self.root.join("proc")) {
            let is_new = |pid: &u32| {
                let place = self.places.get(pid).copied().unwrap_or_default();
                *pid != self.own && place == Place::Unknown && !self.kernel.contains(pid)
            };
            let Some(pid) = pid_of(&directory).filter(is_new) else {
                continue;
            };
            let Some(mut done) = Done::read(&directory) else {
                continue;
            };
            if done.parent == KTHREADD {
                self.kernel.insert(pid);
                continue;
            }
            let start = self.start.get(&pid);
            if done.count(&directory).is_none() || start.is_some_and(|it| it.bytes == done.bytes) {
                continue;
            }
            let place = self.place(&directory);
            // What a child does counts with its parent once it has ended.
            for pid in [pid, done.parent] {
                let known = self.places.entry(pid).or_default();
                *known = place.max(*known);
            }
        }
    }

    /// What was done since the beginning.
    pub fn end(mut self) -> OthersIo {
        // Whoever was on another disk may have come here since.
        self.places.retain(|_, place| *place == Place::Here);
        self.look();
        let (now, unseen) = self.processes();
        // What ended in between is in its parent's account, with what it did before the beginning.
        let mut before: BTreeMap<u32, ReadWritten> = BTreeMap::new();
        for (pid, done) in &self.start {
            let account = match now.contains_key(pid) {
                true => *pid,
                false => done.parent,
            };
            let sum = before.entry(account).or_default();
            sum.read_bytes += done.bytes.read_bytes;
            sum.written_bytes += done.bytes.written_bytes;
        }
        let mut all = OthersIo {
            unseen_processes: unseen.max(self.unseen),
            ..OthersIo::default()
        };
        for (pid, done) in now {
            let before = before.get(&pid).copied().unwrap_or_default();
            let done_since = ReadWritten {
                read_bytes: done.bytes.read_bytes.saturating_sub(before.read_bytes),
                written_bytes: done
                    .bytes
                    .written_bytes
                    .saturating_sub(before.written_bytes),
            };
            if pid == self.own {
                all.own = done_since;
                continue;
            }
            let sum = match self.places.get(&pid).copied().unwrap_or_default() {
                Place::Elsewhere => continue,
                Place::Here => &mut all.here,
                Place::Unknown => &mut all.unplaced,
            };
            sum.read_bytes += done_since.read_bytes;
            sum.written_bytes += done_since.written_bytes;
            if done_since != ReadWritten::default() {
                all.processes.push(OtherProcess {
                    pid,
                    name: done.name,
                    done: done_since,
                });
            }
        }
        let bytes = |process: &OtherProcess| process.done.read_bytes + process.done.written_bytes;
        all.processes
            .sort_by_key(|process| std::cmp::Reverse(bytes(process)));
        all.processes.truncate(NAMED);
        all
    }

    /// All processes but the kernel's threads, and how many of them are not shown.
    fn processes(&self) -> (BTreeMap<u32, Done>, u64) {
        let mut unseen = 0;
        let mut found = BTreeMap::new();
        for directory in numbered(&self.root.join("proc")) {
            let Some(pid) = pid_of(&directory) else {
                continue;
            };
            match Done::read(&directory) {
                Some(done) if done.parent == KTHREADD || pid == KTHREADD => {}
                Some(mut done) => match done.count(&directory) {
                    Some(()) => {
                        found.insert(pid, done);
                    }
                    None => unseen += u64::from(directory.join("stat").exists()),
                },
                None => {}
            }
        }
        (found, unseen)
    }

    fn place(&self, directory: &Path) -> Place {
        let open = entries(&directory.join("fd"))
            .into_iter()
            .filter_map(|link| {
                let found = std::fs::metadata(&link).ok()?;
                let device = match found.file_type() {
                    kind if kind.is_block_device() => found.rdev(),
                    kind if kind.is_file() => found.dev(),
                    _ => return None,
                };
                let name = link.file_name()?;
                is_written(&directory.join("fdinfo").join(name)).then_some(numbers(device))
            });
        let place = |device| {
            let mut disks = disks_of(&self.root, device);
            // What is written to a loop device is written to the disk of its file.
            let files = disks
                .iter()
                .filter_map(|disk| backing_device(&self.root, disk));
            let below: Vec<(u32, u32)> = files.collect();
            disks.extend(
                below
                    .into_iter()
                    .flat_map(|device| disks_of(&self.root, device)),
            );
            match disks.is_disjoint(&self.disks) {
                _ if disks.is_empty() => Place::Unknown,
                true => Place::Elsewhere,
                false => Place::Here,
            }
        };
        open.map(place).max().unwrap_or_default()
    }
}

/// The parent of the kernel's threads (kernel/kthread.c).
const KTHREADD: u32 = 2;

impl Done {
    /// Of /proc/PID: its name and its parent.
    fn read(directory: &Path) -> Option<Done> {
        let stat = read(&directory.join("stat"))?;
        let (before, after) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        Some(Done {
            name: name.to_owned(),
            parent: after.split_ascii_whitespace().nth(1)?.parse().ok()?,
            ..Done::default()
        })
    }

    /// Adds what it did; `None` where that is not shown.
    fn count(&mut self, directory: &Path) -> Option<()> {
        let io = read(&directory.join("io"))?;
        let number = |key| value(&io, key, ':')?.parse::<u64>().ok();
        // What was thrown away before it was written was no write.
        let cancelled = number("cancelled_write_bytes").unwrap_or(0);
        self.bytes = ReadWritten {
            read_bytes: number("read_bytes")?,
            written_bytes: number("write_bytes")?.saturating_sub(cancelled),
        };
        Some(())
    }
}

/// True if a descriptor is open for writing: O_WRONLY or O_RDWR in the octal flags.
fn is_written(fdinfo: &Path) -> bool {
    let text = read(fdinfo).unwrap_or_default();
    let flags = value(&text, "flags", ':').and_then(|flags| u32::from_str_radix(flags, 8).ok());
    flags.is_some_and(|flags| flags & 0o3 != 0)
}

fn numbered(directory: &Path) -> Vec<PathBuf> {
    let all = entries(directory).into_iter();
    all.filter(|path| pid_of(path).is_some()).collect()
}

fn pid_of(directory: &Path) -> Option<u32> {
    directory.file_name()?.to_str()?.parse().ok()
}

fn numbers(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// The device of the file that a loop device is made of.
fn backing_device(root: &Path, disk: &str) -> Option<(u32, u32)> {
    let path = root.join("sys/block").join(disk).join("loop/backing_file");
    let file = std::fs::metadata(read(&path)?).ok()?;
    Some(numbers(file.dev()))
}

/// The names of the disks below a device: a partition's disk, and what a mapped device is made of.
/// None for a filesystem without a device of its own, or that hides it.
fn disks_of(root: &Path, (major, minor): (u32, u32)) -> BTreeSet<String> {
    let link = root.join(format!("sys/dev/block/{major}:{minor}"));
    let Ok(directory) = link.canonicalize() else {
        return BTreeSet::new();
    };
    let mut found = BTreeSet::new();
    let mut left = vec![directory];
    while let Some(directory) = left.pop() {
        let disk = match directory.join("partition").exists() {
            true => directory.parent().unwrap_or(&directory).to_owned(),
            false => directory,
        };
        let below = entries(&disk.join("slaves")).into_iter();
        let below: Vec<PathBuf> = below
            .filter_map(|slave| slave.canonicalize().ok())
            .collect();
        if below.is_empty() {
            found.extend(
                disk.file_name()
                    .map(|name| name.to_string_lossy().into_owned()),
            );
        }
        // Devices are made of devices that were there before, so this ends.
        left.extend(below);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::fake::Root;
    use super::*;

    /// A process with its account.
    fn put(root: &Root, (pid, name, parent): (u32, &str, u32), read: u64, written: u64) {
        let stat = format!("{pid} ({name}) S {parent} 0 0 0 0 0");
        root.put(&format!("proc/{pid}/stat"), stat);
        let io = format!(
            "rchar: 1\nread_bytes: {read}\nwrite_bytes: {written}\ncancelled_write_bytes: 0"
        );
        root.put(&format!("proc/{pid}/io"), io);
    }

    fn watch(root: &Root) -> Watch {
        Watch::begin(root.path(), &[(8, 1)])
    }

    #[test]
    fn what_a_child_did_before_it_is_its_parents_is_counted_once() {
        let root = Root::new();
        put(&root, (10, "sh", 1), 0, 1000);
        put(&root, (11, "dd", 10), 0, 5000);
        put(&root, (std::process::id(), "iostep", 1), 0, 100);
        let watch = watch(&root);
        // dd writes 3000 more and ends; its parent has all of it, and so have later ones.
        std::fs::remove_dir_all(root.path().join("proc/11")).expect("remove");
        put(&root, (10, "sh", 1), 0, 1000 + 8000 + 4000);
        put(&root, (std::process::id(), "iostep", 1), 0, 900);
        let found = watch.end();
        assert_eq!(found.own.written_bytes, 800);
        assert_eq!(found.unplaced.written_bytes, 7000);
        let [process] = &found.processes[..] else {
            panic!("{found:?}");
        };
        assert_eq!((process.name.as_str(), process.pid), ("sh", 10));
    }

    #[test]
    fn names_in_parentheses_and_threads_of_the_kernel_are_no_trouble() {
        let root = Root::new();
        put(&root, (2, "kthreadd", 0), 0, 0);
        put(&root, (7, "kworker/u8:1 (x) y", 2), 0, 0);
        put(&root, (12, "a (b) c", 1), 0, 0);
        let watch = watch(&root);
        put(&root, (7, "kworker/u8:1 (x) y", 2), 0, 9999);
        put(&root, (12, "a (b) c", 1), 70, 0);
        let found = watch.end();
        assert_eq!(
            found.unplaced,
            ReadWritten {
                read_bytes: 70,
                written_bytes: 0
            }
        );
        assert_eq!(found.processes[0].name, "a (b) c");
    }

    #[test]
    fn an_account_that_is_not_shown_is_told() {
        let root = Root::new();
        put(&root, (12, "secret", 1), 0, 0);
        std::fs::remove_file(root.path().join("proc/12/io")).expect("remove");
        assert_eq!(watch(&root).end().unseen_processes, 1);
    }

    #[test]
    fn a_file_that_is_open_for_writing_tells_the_disk() {
        let root = Root::new();
        for (number, disk) in [("8:0", "sda"), ("8:16", "sdb")] {
            root.put(&format!("sys/devices/{disk}/dev"), number);
            root.link(
                &format!("sys/dev/block/{number}"),
                &format!("sys/devices/{disk}"),
            );
        }
        root.put("sys/devices/sda/sda1/partition", "1");
        root.link("sys/dev/block/8:1", "sys/devices/sda/sda1");
        assert_eq!(
            disks_of(root.path(), (8, 1)),
            BTreeSet::from(["sda".to_owned()])
        );
        assert_eq!(
            disks_of(root.path(), (8, 16)),
            BTreeSet::from(["sdb".to_owned()])
        );
        assert_eq!(disks_of(root.path(), (0, 40)), BTreeSet::new());
        for (flags, written) in [("0100000", false), ("0100001", true), ("02102002", true)] {
            let info = root.put("fdinfo", format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t1"));
            assert_eq!(is_written(&info), written, "{flags}");
        }
    }
}
