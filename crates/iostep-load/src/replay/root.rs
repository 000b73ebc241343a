//! The directory that stands for `/` of the recorded machine.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use iostep_model::syscall::OpenFlags;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::work_directory::WorkDirectory;

/// A path as a call of the recording has it, made safe to be looked up beneath a root.
pub(super) type Looked<T> = std::result::Result<T, Errno>;

/// How often a lookup that raced with a rename is tried again (openat2(2), `EAGAIN`).
const ATTEMPTS: usize = 32;

/// A directory beneath which every path is looked up, as if it were `/`: `..` stops there, and
/// symbolic links, absolute ones too, stay within (`RESOLVE_IN_ROOT` of openat2(2)).
#[derive(Debug)]
pub(super) struct Root {
    directory: OwnedFd,
    name: std::path::PathBuf,
}

impl Root {
    /// The root is the work directory itself.
    pub(super) fn open(directory: &WorkDirectory) -> Result<Root> {
        let name = directory.path().to_owned();
        let own = directory.as_fd().try_clone_to_owned();
        let root = Root {
            directory: own.map_err(Error::io(&name, "open"))?,
            name,
        };
        match root.open_path(c".", OFlags::DIRECTORY) {
            Ok(_) => Ok(root),
            Err(Errno::NOSYS) => Err(Error::Unsupported {
                what: "the kernel has no openat2, which keeps a replay inside its directory".into(),
                hint: "use Linux 5.6 or newer".into(),
            }),
            Err(errno) => Err(Error::io(&root.name, "open")(errno.into())),
        }
    }

    pub(super) fn name(&self) -> &std::path::Path {
        &self.name
    }

    /// The directory itself.
    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Opens a path for real, with the recording's flags and mode. No set-user-id file is made.
    pub(super) fn open_file(&self, path: &CStr, flags: OpenFlags, mode: u32) -> Looked<OwnedFd> {
        let (native, mode) = native_open(flags, mode);
        self.lookup(path, native, mode)
    }

    /// Finds a file without opening it.
    pub(super) fn open_path(&self, path: &CStr, flags: OFlags) -> Looked<OwnedFd> {
        self.lookup(path, flags | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    }

    fn lookup(&self, path: &CStr, flags: OFlags, mode: Mode) -> Looked<OwnedFd> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..ATTEMPTS {
            match rustix::fs::openat2(&self.directory, path, flags, mode, resolve) {
                Err(Errno::AGAIN) => {}
                done => return done,
            }
        }
        Err(Errno::AGAIN)
    }

    /// The directory of a name and the name in it, for calls that change names. These never
    /// follow the last component, which therefore may be anything but a way out: `.` and `..`
    /// are refused as the kernel does.
    pub(super) fn parent<'a>(&self, path: &'a RecordedPath) -> Looked<(OwnedFd, &'a CStr)> {
        let directory = self.open_path(&path.parent, OFlags::DIRECTORY)?;
        Ok((directory, &path.base))
    }

    /// Removes everything inside. Symbolic links are removed, not followed.
    pub(super) fn clear(&self) -> Result<()> {
        iostep_model::directory::remove_all(self.directory.as_fd())
            .map_err(|errno| Error::io(&self.name, "empty")(errno.into()))
    }

    /// Writes everything of the filesystem out.
    pub(super) fn sync(&self) -> Looked<()> {
        rustix::fs::syncfs(&self.directory)
    }

    /// Bytes that files may still take.
    pub(super) fn free_bytes(&self) -> Looked<u64> {
        let found = rustix::fs::fstatvfs(&self.directory)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

/// A recording's flags and mode of an open, as this machine's kernel takes them. No terminal becomes
/// the replay's, and no set-user-id file is made.
pub(super) fn native_open(flags: OpenFlags, mode: u32) -> (OFlags, Mode) {
    let mut native = OFlags::from_bits_retain(flags.to_native() as u32);
    native |= OFlags::CLOEXEC | OFlags::NOCTTY;
    native -= OFlags::from_bits_retain(libc::O_ASYNC as u32);
    if native.contains(OFlags::PATH) {
        // openat2 refuses what open ignores.
        native &= OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    }
    let makes = native.contains(OFlags::CREATE) || native.contains(OFlags::TMPFILE);
    let mode = if makes {
        permissions(mode)
    } else {
        Mode::empty()
    };
    (native, mode)
}

/// Permissions without set-user-id, set-group-id and what lies above.
pub(super) fn permissions(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode & 0o1777)
}

/// A path of the recording: the whole of it, its directory, and its last name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedPath {
    /// Relative to the root.
    pub(super) whole: CString,
    parent: CString,
    base: CString,
}

impl RecordedPath {
    /// None for a path with a zero byte, which no call can have had.
    pub(super) fn new(path: &[u8]) -> Option<RecordedPath> {
        let whole = relative(path);
        let named = whole.trim_ascii_end_of(b'/');
        let (parent, base) = match named.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&named[..at.max(1)], &named[at + 1..]),
            None => (&b"."[..], named),
        };
        Some(RecordedPath {
            whole: CString::new(whole).ok()?,
            parent: CString::new(if parent == b"/" { b"." } else { parent }).ok()?,
            base: CString::new(base).ok()?,
        })
    }
}

/// A path without its leading slashes; `.` for the root itself. Empty stays empty, for that fails.
fn relative(path: &[u8]) -> &[u8] {
    let start = path.iter().take_while(|byte| **byte == b'/').count();
    match &path[start..] {
        [] if start > 0 => b".",
        rest => rest,
    }
}

trait TrimEnd {
    fn trim_ascii_end_of(&self, byte: u8) -> &[u8];
}

impl TrimEnd for [u8] {
    /// Without the trailing slashes: with one, a symbolic link as last component is followed.
    fn trim_ascii_end_of(&self, byte: u8) -> &[u8] {
        let end = self.iter().rposition(|other| *other != byte);
        &self[..end.map_or(0, |at| at + 1)]
    }
}

/// `/proc/self/fd/N`, for calls that have no form for a file that is only found.
pub(super) fn magic_link(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> (String, String, String) {
        let place = RecordedPath::new(path.as_bytes()).expect("a path");
        let text = |part: CString| part.into_string().expect("UTF-8");
        (text(place.whole), text(place.parent), text(place.base))
    }

    #[test]
    fn every_path_becomes_relative() {
        let split = |whole: &str, parent: &str, base: &str| {
            (whole.to_owned(), parent.to_owned(), base.to_owned())
        };
        assert_eq!(parts("/a/b/c"), split("a/b/c", "a/b", "c"));
        assert_eq!(parts("//a"), split("a", ".", "a"));
        assert_eq!(parts("/a/b//"), split("a/b//", "a", "b"));
        assert_eq!(parts("/"), split(".", ".", "."));
        assert_eq!(parts("/../x"), split("../x", "..", "x"));
        assert_eq!(parts(""), split("", ".", ""));
        assert_eq!(RecordedPath::new(b"/a\0b"), None);
    }
}
