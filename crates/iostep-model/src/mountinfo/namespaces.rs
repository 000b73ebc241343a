//! Mounts that this process does not see: those of other mount namespaces, and of other roots.
//!
//! A path can lead to them through a link in /proc: `/proc/PID/root`, `/proc/PID/cwd`,
//! `/proc/PID/fd/N`. The kernel's text for what is there is its path in that namespace, which here
//! is another file, or none.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, Stat};

use super::id_of;

const PROC: &str = "/proc";

/// The mounts that a process sees.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its lines of mountinfo.
    pub text: Vec<u8>,
    /// Its root directory as this process reaches it; `/` is this process's own.
    pub root: PathBuf,
}

impl Table {
    /// The mounts that this process sees.
    ///
    /// Errors: no /proc.
    pub fn own() -> io::Result<Table> {
        Ok(Table {
            text: fs::read(Path::new("/").join(super::PATH))?,
            root: "/".into(),
        })
    }

    /// Those that a process sees, by its directory in /proc.
    fn of(process: &Path) -> io::Result<Table> {
        Ok(Table {
            text: fs::read(process.join("mountinfo"))?,
            root: process.join("root"),
        })
    }

    /// True if one has this number, which no other mount has in any namespace.
    pub fn has(&self, mount_id: u64) -> bool {
        let id = mount_id.to_string();
        let mut lines = self.text.split(|byte| *byte == b'\n');
        lines.any(|line| line.split(|byte| *byte == b' ').next() == Some(id.as_bytes()))
    }

    /// A path of the process as this one reaches it.
    pub fn reached(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// The mounts among which is the one with this number: those that this process sees, or else those of
/// the process that `path` names, or of any. `None` if no process sees it, as after `umount -l`.
///
/// Errors: no /proc.
pub fn table_with(mount_id: u64, path: &Path) -> io::Result<Option<Table>> {
    let own = Table::own()?;
    if own.has(mount_id) {
        return Ok(Some(own));
    }
    let named = named_process(path).and_then(|process| Table::of(&process).ok());
    let mut others = named.into_iter().chain(elsewhere());
    Ok(others.find(|table| table.has(mount_id)))
}

/// What processes in other mount namespaces, or with other roots, see: each once.
pub fn elsewhere() -> impl Iterator<Item = Table> {
    let view = |process: &Path| {
        let links = ["ns/mnt", "root"].map(|link| fs::read_link(process.join(link)).ok());
        links[0].is_some().then_some(links)
    };
    let mut seen: HashSet<_> = view(Path::new("/proc/self")).into_iter().collect();
    let entries = fs::read_dir(PROC).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers.into_iter().filter_map(move |number| {
        let process = Path::new(PROC).join(number.to_string());
        let is_new = seen.insert(view(&process)?);
        is_new.then(|| Table::of(&process).ok()).flatten()
    })
}

/// The directory in /proc of the process or thread that a path leads through.
fn named_process(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let below = path.strip_prefix(PROC).ok()?;
    let names: Vec<&OsStr> = below.components().map(Component::as_os_str).collect();
    let is_number = |name: &OsStr| {
        name.to_str()
            .is_some_and(|name| name.parse::<u32>().is_ok())
    };
    match names[..] {
        [process, task, thread, ..]
            if task == "task" && is_number(process) && is_number(thread) =>
        {
            Some(Path::new(PROC).join(process).join(task).join(thread))
        }
        [process, ..] if is_number(process) => Some(Path::new(PROC).join(process)),
        _ => None,
    }
}

/// As [`fs::canonicalize`]: the path, without any symbolic link, of what `path` leads to.
///
/// Errors: nothing is there; no path without a link leads there, as in another mount namespace. Whoever
/// follows links by their text, as SQLite does, would find another file, or none.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    canonical_of(rustix::fs::open(path, flags, Mode::empty())?, path)
}

/// The same of what is open; `path` is how it was named.
pub(crate) fn canonical_of(object: impl AsFd, path: &Path) -> io::Result<PathBuf> {
    let object = object.as_fd();
    let link = PathBuf::from(format!("/proc/self/fd/{}", object.as_raw_fd()));
    let Ok(told) = fs::read_link(&link) else {
        // Without /proc nothing leads into another namespace.
        return fs::canonicalize(path);
    };
    if leads_to(&told, &rustix::fs::fstat(object)?) {
        return Ok(told);
    }
    let table = id_of(&link).map(|mount| table_with(mount, path));
    let process = table.transpose()?.flatten().and_then(|table| {
        let process = table.root.parent()?.file_name()?.to_str()?.to_owned();
        Some(process)
    });
    Err(io::Error::other(match process {
        Some(process) => format!(
            "it lies in the mount namespace of process {process}, and no path of this one leads there; \
             run it there: nsenter -t {process} -m iostep ..."
        ),
        None => {
            "no path leads there: it was removed or unmounted, or something was mounted over it"
                .to_owned()
        }
    }))
}

fn leads_to(path: &Path, wanted: &Stat) -> bool {
    let found = rustix::fs::statat(rustix::fs::CWD, path, AtFlags::empty());
    found.is_ok_and(|found| (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_path_names_a_process_or_a_thread() {
        for (path, expected) in [
            ("/proc/12/root/mnt", Some("/proc/12")),
            ("/proc/12/fd/3", Some("/proc/12")),
            ("/proc/./12//cwd", Some("/proc/12")),
            ("/proc/12/task/13/root", Some("/proc/12/task/13")),
            ("/proc/12/task/x", Some("/proc/12")),
            ("/proc/self/root", None),
            ("/mnt/proc/12/root", None),
        ] {
            let found = named_process(Path::new(path));
            assert_eq!(found, expected.map(PathBuf::from), "{path}");
        }
    }

    #[test]
    fn a_mount_is_found_by_its_whole_number() {
        let table = Table {
            text: b"31 1 7:0 / / rw - ext4 /dev/loop0 rw\n7 1 7:0 / /b rw - ext4 x rw\n".into(),
            root: "/proc/9/root".into(),
        };
        let found: Vec<u64> = (0..40).filter(|id| table.has(*id)).collect();
        assert_eq!(found, [7, 31]);
        let reached = table.reached(Path::new("/mnt/a"));
        assert_eq!(reached, Path::new("/proc/9/root/mnt/a"));
    }

    #[test]
    fn what_this_process_reaches_has_its_own_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let real = fs::canonicalize(directory.path()).expect("it is there");
        let file = File::create(real.join("a b")).expect("made");
        let link = real.join("link");
        std::os::unix::fs::symlink("a b", &link).expect("linked");
        let held = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let pid = std::process::id();
        let through = PathBuf::from(format!("/proc/{pid}/root{}", link.display()));
        for path in [link, held.clone(), through] {
            let found = canonical(&path).expect("it is there");
            assert_eq!(found, real.join("a b"), "{}", path.display());
        }
        fs::remove_file(real.join("a b")).expect("removed");
        let error = canonical(&held).expect_err("it has no path");
        assert!(error.to_string().contains("no path"), "{error}");
        let missing = canonical(&real.join("none")).expect_err("missing");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn every_mount_of_this_process_is_its_own() {
        let root = id_of(Path::new("/")).expect("a number");
        let table = table_with(root, Path::new("/")).expect("/proc");
        assert_eq!(table.expect("a table").root, Path::new("/"));
        assert!(
            table_with(u64::MAX, Path::new("/"))
                .expect("/proc")
                .is_none()
        );
    }
}
