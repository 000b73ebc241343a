//! The names of files as they are made, removed and renamed, from fanotify.
//!
//! ext4's tracepoints name inodes only, and a rollback journal lives for a few milliseconds:
//! too short to be asked for its path. fanotify queues the inode, its generation, the directory
//! and the name of every such change. It needs Linux 5.17 (`FAN_REPORT_TARGET_FID`) and root.
//! Source: fanotify(7), include/uapi/linux/fanotify.h.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use iostep_model::printable::name_text;

const FAN_CLOEXEC: u32 = 0x1;
const FAN_NONBLOCK: u32 = 0x2;
const FAN_UNLIMITED_QUEUE: u32 = 0x10;
const FAN_REPORT_TID: u32 = 0x100;
/// `FAN_REPORT_DFID_NAME_TARGET`: the directory, the name and the file itself.
const FAN_REPORT_ALL: u32 = 0x200 | 0x400 | 0x800 | 0x1000;
const FAN_MARK_ADD: u32 = 0x1;
const FAN_MARK_FILESYSTEM: u32 = 0x100;
const FAN_CREATE: u64 = 0x100;
const FAN_DELETE: u64 = 0x200;
const FAN_RENAME: u64 = 0x1000_0000;
const FAN_ONDIR: u64 = 0x4000_0000;

const METADATA_VERSION: u8 = 3;
const INFO_FID: u8 = 1;
const INFO_DFID_NAME: u8 = 2;
const INFO_NEW_DFID_NAME: u8 = 12;
/// `FILEID_INO32_GEN` and the same with the parent behind it.
const HANDLE_KINDS: [u32; 2] = [1, 2];

/// Inode number and generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub inode: u32,
    pub generation: u32,
}

/// A name that came, went or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Naming {
    pub file: Identity,
    pub parent: Identity,
    /// The new name for a rename.
    pub name: String,
    /// The thread that did it.
    pub pid: u32,
    pub change: Change,
    pub directory: bool,
}

/// What happened to the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Made,
    Removed,
    /// Made and removed, told as one.
    MadeAndRemoved,
    Renamed,
}

/// A fanotify group on one filesystem.
#[derive(Debug)]
pub(crate) struct Watch {
    group: OwnedFd,
    buffer: Vec<u8>,
}

impl Watch {
    /// Watches the filesystem that `mount_point` lies in. It does not keep it mounted.
    ///
    /// Errors: what `fanotify_init` and `fanotify_mark` give; `EINVAL` before Linux 5.17.
    pub fn start(mount_point: &Path) -> io::Result<Watch> {
        let flags = FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE;
        let flags = flags | FAN_REPORT_TID | FAN_REPORT_ALL;
        // SAFETY: takes no pointer.
        let fd = unsafe { libc::fanotify_init(flags, libc::O_RDONLY as u32) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just made this descriptor for us, and nobody else knows it.
        let group = unsafe { OwnedFd::from_raw_fd(fd) };
        let path = CString::new(mount_point.as_os_str().as_bytes())?;
        let marked = FAN_CREATE | FAN_DELETE | FAN_RENAME | FAN_ONDIR;
        // SAFETY: `path` ends with NUL and outlives the call.
        let result = unsafe {
            libc::fanotify_mark(
                group.as_raw_fd(),
                FAN_MARK_ADD | FAN_MARK_FILESYSTEM,
                marked,
                libc::AT_FDCWD,
                path.as_ptr(),
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Watch {
            group,
            buffer: vec![0; 64 << 10],
        })
    }

    /// What was queued since the last call, in the order of happening.
    pub fn read(&mut self) -> Vec<Naming> {
        let mut namings = Vec::new();
        while let Ok(length) = rustix::io::read(&self.group, &mut self.buffer) {
            if length == 0 {
                break;
            }
            parse(&self.buffer[..length], &mut namings);
        }
        namings
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Parses the events of one read; stops at the first that does not fit.
fn parse(mut bytes: &[u8], namings: &mut Vec<Naming>) {
    // struct fanotify_event_metadata: event_len u32, vers u8, reserved u8, metadata_len u16,
    // mask u64, fd i32, pid i32.
    while let Some(length) = u32_at(bytes, 0) {
        let Some((event, rest)) = bytes.split_at_checked(length as usize) else {
            return;
        };
        if event.len() < 24 || event[4] != METADATA_VERSION {
            return;
        }
        namings.extend(parse_event(event));
        bytes = rest;
    }
}

fn parse_event(event: &[u8]) -> Option<Naming> {
    let infos = usize::from(u16::from_ne_bytes(*event.get(6..)?.first_chunk()?));
    let mask = u64::from_ne_bytes(*event.get(8..)?.first_chunk()?);
    let pid = u32_at(event, 20)?;
    let change = match (mask & FAN_CREATE != 0, mask & FAN_DELETE != 0) {
        (true, true) => Change::MadeAndRemoved,
        (true, false) => Change::Made,
        (false, true) => Change::Removed,
        (false, false) if mask & FAN_RENAME != 0 => Change::Renamed,
        (false, false) => return None,
    };
    let (mut file, mut parent) = (None, None);
    let mut rest = event.get(infos..)?;
    while rest.len() >= 4 {
        // struct fanotify_event_info_header: info_type u8, pad u8, len u16.
        let length = usize::from(u16::from_ne_bytes([rest[2], rest[3]]));
        let (info, after) = rest.split_at_checked(length.max(4))?;
        match info[0] {
            INFO_FID => file = parse_handle(info).map(|(identity, _)| identity),
            INFO_DFID_NAME | INFO_NEW_DFID_NAME => parent = parse_handle(info),
            _ => {}
        }
        rest = after;
    }
    let (parent, name) = parent?;
    Some(Naming {
        file: file?,
        parent,
        name,
        pid,
        change,
        directory: mask & FAN_ONDIR != 0,
    })
}

/// The handle in an info record (header 4 bytes, fsid 8, handle_bytes 4, handle_type 4, handle),
/// and the name behind it.
fn parse_handle(info: &[u8]) -> Option<(Identity, String)> {
    let (bytes, kind) = (u32_at(info, 12)? as usize, u32_at(info, 16)?);
    if !HANDLE_KINDS.contains(&kind) || bytes < 8 {
        return None;
    }
    let identity = Identity {
        inode: u32_at(info, 20)?,
        generation: u32_at(info, 24)?,
    };
    let name = info.get(20usize.checked_add(bytes)?..)?;
    let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
    Some((identity, name_text(&name[..end])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn info(kind: u8, inode: u32, generation: u32, name: &str) -> Vec<u8> {
        let name_bytes = (name.len() + 1).next_multiple_of(4);
        let mut bytes = vec![kind, 0];
        bytes.extend((28 + name_bytes as u16).to_ne_bytes());
        bytes.extend([0; 8]);
        for word in [8, 1, inode, generation] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(name.as_bytes());
        bytes.resize(28 + name_bytes, 0);
        bytes
    }

    fn event(mask: u64, pid: u32, infos: &[Vec<u8>]) -> Vec<u8> {
        let infos = infos.concat();
        let mut bytes = (24 + infos.len() as u32).to_ne_bytes().to_vec();
        bytes.extend([METADATA_VERSION, 0]);
        bytes.extend(24u16.to_ne_bytes());
        bytes.extend(mask.to_ne_bytes());
        bytes.extend((-1i32).to_ne_bytes());
        bytes.extend(pid.to_ne_bytes());
        bytes.extend(infos);
        bytes
    }

    fn journal() -> Vec<u8> {
        let infos = [
            info(INFO_DFID_NAME, 2, 20, "app.db-journal"),
            info(INFO_FID, 12, 99, ""),
        ];
        event(FAN_CREATE | FAN_DELETE, 812, &infos)
    }

    fn parsed(bytes: &[u8]) -> Vec<Naming> {
        let mut namings = Vec::new();
        parse(bytes, &mut namings);
        namings
    }

    #[test]
    fn a_short_lived_file_has_its_name_directory_and_generation() {
        let naming = parsed(&journal()).remove(0);
        assert_eq!(naming.name, "app.db-journal");
        assert_eq!((naming.file.inode, naming.file.generation), (12, 99));
        assert_eq!((naming.parent.inode, naming.pid), (2, 812));
        assert_eq!(naming.change, Change::MadeAndRemoved);
    }

    #[test]
    fn a_rename_gives_the_new_name() {
        let infos = [
            info(10, 2, 20, "old"),
            info(INFO_NEW_DFID_NAME, 2, 20, "new"),
            info(INFO_FID, 12, 99, ""),
        ];
        let naming = parsed(&event(FAN_RENAME, 1, &infos)).remove(0);
        assert_eq!(
            (naming.name.as_str(), naming.change),
            ("new", Change::Renamed)
        );
    }

    #[test]
    fn a_cut_read_gives_the_whole_events_before_the_cut() {
        let two = [journal(), journal()].concat();
        for length in 0..two.len() {
            assert_eq!(parsed(&two[..length]).len(), length / journal().len());
        }
    }

    proptest! {
        #[test]
        fn garbage_is_parsed_without_a_panic(
            changes in prop::collection::vec((0..journal().len(), any::<u8>()), 1..8),
        ) {
            let mut bytes = journal();
            for (at, value) in changes {
                bytes[at] = value;
            }
            prop_assert!(parsed(&bytes).len() <= 1 + bytes.len() / 24);
        }
    }
}
