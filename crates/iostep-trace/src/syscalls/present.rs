//! What a process has open when its recording begins.

use std::borrow::Cow;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iostep_model::syscall::raw::{Action, DescriptorKind, Event, Known, Returned, Seen, SeenKind};
use iostep_model::syscall::{Content, OpenFlags};
use serde::{Deserialize, Serialize};

use super::file_data::FileData;
use super::files::kind_of;
use super::{at_directory, plain_path};
use crate::error::{Error, Result};

/// What a process has open, and where it is.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Present {
    /// The process; none if it is what a command inherits.
    pub process: Option<u32>,
    directory: Vec<u8>,
    /// Where absolute paths begin, if that was changed (chroot(2)).
    #[serde(default)]
    root: Vec<u8>,
    descriptors: Vec<Open>,
    /// Threads with their names, the process's first one first.
    threads: Vec<(u32, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Open {
    number: i32,
    kind: DescriptorKind,
    path: Option<Vec<u8>>,
    flags: OpenFlags,
    position: i64,
    /// The same for descriptors of one open file, from 1.
    same_as: u64,
    seen: Option<Seen>,
}

impl Present {
    /// What a command that this process starts inherits.
    ///
    /// Errors: `Io` without /proc.
    pub fn inherited() -> Result<Present> {
        let mut present = Present::of(std::process::id())?;
        present.process = None;
        present.threads.clear();
        let inherited = |open: &Open| !open.flags.has(OpenFlags::O_CLOEXEC);
        present.descriptors.retain(inherited);
        Ok(present)
    }

    /// What a process has open.
    ///
    /// Errors: `Io`, as when there is no such process.
    pub fn of(process: u32) -> Result<Present> {
        let root = PathBuf::from(format!("/proc/{process}"));
        let directory = root.join("cwd");
        let directory = fs::read_link(&directory).map_err(Error::io(&directory, "read"))?;
        let changed_root = fs::read_link(root.join("root")).unwrap_or_default();
        let mut descriptors = Vec::new();
        for number in numbers(&root.join("fd"))? {
            // One that is closed meanwhile is not there.
            if let Some(open) = i32::try_from(number).ok().and_then(|n| open(&root, n)) {
                descriptors.push(open);
            }
        }
        number_open_files(process, &mut descriptors);
        let mut threads = Vec::new();
        for tid in numbers(&root.join("task"))? {
            let name = fs::read_to_string(root.join(format!("task/{tid}/comm")));
            threads.push((tid, name.unwrap_or_default().trim_end().to_owned()));
        }
        threads.sort_by_key(|(tid, _)| (*tid != process, *tid));
        Ok(Present {
            process: Some(process),
            directory: directory.into_os_string().into_vec(),
            root: match changed_root == Path::new("/") {
                true => Vec::new(),
                false => changed_root.into_os_string().into_vec(),
            },
            descriptors,
            threads,
        })
    }

    /// Keeps the data of the files that are open and have a name.
    pub(super) fn keep(&self, data: &mut FileData) {
        let process = self
            .process
            .map_or("self".to_owned(), |pid| pid.to_string());
        for open in self.descriptors.iter().filter(|open| open.seen.is_some()) {
            let link = PathBuf::from(format!("/proc/{process}/fd/{}", open.number));
            // One that was closed meanwhile is not opened by the program either.
            if let Ok(found) = fs::metadata(&link) {
                data.keep(&link, &found);
            }
        }
    }

    /// Tells it as events of a thread: the process's first, or `tid` where a command inherits.
    ///
    /// Errors: `each`'s.
    pub(super) fn events<E>(
        self,
        tid: u32,
        start_ns: u64,
        each: &mut dyn FnMut(Event<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let first = self.process.unwrap_or(tid);
        let event = |tid, action, seen| Event {
            tid,
            start_ns,
            duration_ns: Some(0),
            action,
            returned: Returned::Value(0),
            seen,
        };
        for (thread, name) in &self.threads {
            if *thread != first {
                let note = Action::Clone {
                    name: "".into(),
                    child: *thread,
                    thread: true,
                    shares_descriptors: true,
                    shares_directory: true,
                };
                each(event(first, note, None))?;
            }
            each(event(*thread, Action::Name(name.into()), None))?;
        }
        each(event(first, at_directory(&self.directory), None))?;
        if !self.root.is_empty() {
            let root = Action::ChangeRoot(plain_path(&self.root));
            each(event(first, root, None))?;
        }
        for open in self.descriptors {
            let action = Action::Present {
                number: open.number,
                is: Known {
                    kind: open.kind,
                    path: open.path.map(Cow::Owned),
                },
                flags: open.flags,
                position: open.position,
                same_as: open.same_as,
                received: false,
            };
            each(event(first, action, open.seen))?;
        }
        Ok(())
    }
}

/// The names of a directory that are numbers, in order.
fn numbers(directory: &Path) -> Result<Vec<u32>> {
    let entries = fs::read_dir(directory).map_err(Error::io(directory, "list"))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut numbers: Vec<u32> = names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn open(root: &Path, number: i32) -> Option<Open> {
    let link = root.join(format!("fd/{number}"));
    let name = fs::read_link(&link).ok()?.into_os_string().into_vec();
    let metadata = fs::metadata(&link).ok()?;
    let info = fs::read_to_string(root.join(format!("fdinfo/{number}"))).ok()?;
    let field = |name: &str| {
        let mut lines = info.lines();
        lines
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let native = i32::from_str_radix(field("flags:")?, 8).ok()?;
    let kind = if name.starts_with(b"anon_inode:") {
        match name.as_slice() {
            b"anon_inode:[io_uring]" => DescriptorKind::Uring,
            _ => DescriptorKind::Event,
        }
    } else if name.starts_with(b"/memfd:") {
        DescriptorKind::Memory
    } else {
        let filesystem = rustix::fs::statfs(&link).map_or(0, |answer| answer.f_type as u32);
        kind_of(metadata.mode(), filesystem)?
    };
    let deleted = name.ends_with(b" (deleted)") && metadata.nlink() == 0;
    let is_named = kind.is_kept() && name.starts_with(b"/") && !deleted;
    let seen = is_named.then(|| Seen {
        identity: Some((metadata.dev(), metadata.ino())),
        names: Some(metadata.nlink()),
        kind: match kind {
            DescriptorKind::Directory => SeenKind::Directory,
            _ => SeenKind::File {
                size: Some(metadata.size()),
                content: Content::Data,
            },
        },
        mode: None,
        open_file: 0,
    });
    Some(Open {
        number,
        kind,
        path: is_named.then_some(name),
        flags: OpenFlags::from_native(native).0,
        position: field("pos:")?.parse().ok()?,
        same_as: 0,
        seen,
    })
}

/// Finds out which descriptors are one open file, by kcmp(2). Without the right to ask, each is one
/// of its own.
fn number_open_files(process: u32, descriptors: &mut [Open]) {
    let mut last = 0;
    for index in 0..descriptors.len() {
        let (before, rest) = descriptors.split_at_mut(index);
        let this = &mut rest[0];
        if !this.kind.is_kept() {
            continue;
        }
        let mut alike = before.iter().filter(|other| {
            other.path == this.path && other.position == this.position && other.same_as != 0
        });
        let same = alike.find(|other| is_same_file(process, other.number, this.number));
        this.same_as = match same {
            Some(other) => other.same_as,
            None => {
                last += 1;
                last
            }
        };
    }
}

/// `KCMP_FILE` (include/uapi/linux/kcmp.h).
fn is_same_file(process: u32, first: i32, second: i32) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    // SAFETY: kcmp takes five numbers and touches no memory.
    let answer =
        unsafe { libc::syscall(libc::SYS_kcmp, process, process, KCMP_FILE, first, second) };
    answer == 0
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn descriptors_of_one_open_file_are_found_with_position_and_path() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(100).expect("room");
        let twin = file.as_file().try_clone().expect("a descriptor");
        let other = fs::File::open(file.path()).expect("a second open file");
        rustix::fs::seek(&twin, rustix::fs::SeekFrom::Start(7)).expect("a position");
        let present = Present::of(std::process::id()).expect("/proc");
        let of = |number| {
            let mut all = present.descriptors.iter();
            all.find(|open| open.number == number).expect("it is open")
        };
        let [first, second, third] =
            [file.as_raw_fd(), twin.as_raw_fd(), other.as_raw_fd()].map(of);
        assert_eq!(first.position, 7);
        assert_eq!(
            first.path.as_deref(),
            Some(file.path().as_os_str().as_bytes())
        );
        assert_eq!(first.same_as, second.same_as);
        assert_ne!(first.same_as, third.same_as);
        assert!(first.flags.has(OpenFlags::O_RDWR));
        let size = SeenKind::File {
            size: Some(100),
            content: Content::Data,
        };
        assert_eq!(first.seen.as_ref().map(|seen| &seen.kind), Some(&size));
    }
}
