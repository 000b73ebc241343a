//! One call.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iostep_model::replay::{Skip, State};
use iostep_model::syscall::Errno as RecordedErrno;
use iostep_model::syscall::{
    Call, Direction, HandleId, InitialKind, LockKind, OpenFlags, Operation, Outcome, PathId,
    Recording, Syscall, Target, Whence,
};
use rustix::fs::{AtFlags, FileType, OFlags};
use rustix::io::Errno;

use super::handles::{Handles, last_error};
use super::reflink::reflink;
use super::root::{RecordedPath, Root, magic_link, native_open, permissions};
use super::transfer::{Buffer, MOST_BYTES, Transfer};

/// How long a call waits for a lock that the recorded one waited for. Longer means that nobody
/// gives it back: a recording may be made to stop a replay.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Requests of ioctl that are safe on any file: `FIGETBSZ`, `FS_IOC_GETFLAGS`,
/// `FS_IOC_GETVERSION` (include/uapi/linux/fs.h), F2FS's atomic writes, `F2FS_IOC_*` 1 to 5 and 25
/// (include/uapi/linux/f2fs.h), and the question whether a file is a terminal, `TCGETS` and
/// `TIOCGWINSZ` (include/uapi/asm-generic/ioctls.h).
const SAFE_REQUESTS: &[u32] = &[
    0x0000_0002,
    0x8008_6601,
    0x8008_7601,
    0xf501,
    0xf502,
    0xf503,
    0xf504,
    0xf505,
    0xf519,
    0x5401,
    0x5413,
];

/// What calls are performed with, shared by all threads.
pub(super) struct Performer<'a> {
    root: &'a Root,
    handles: Handles,
    /// By [`PathId`]; none for what cannot be a path.
    places: Vec<Option<RecordedPath>>,
    /// The words of symbolic links, by [`PathId`].
    contents: Vec<Option<std::ffi::CString>>,
    /// All calls are one thread's: it must not wait for a lock that only itself can give back.
    alone: bool,
    /// There are FIFOs in the initial state, or calls make some.
    has_fifos: bool,
    /// Nobody waits any more.
    interrupted: &'a AtomicBool,
}

/// A call that returns nothing but success.
type Done = Result<i64, Errno>;

/// Why a call was not issued, or what it returned.
type Tried = Result<Done, Skip>;

impl<'a> Performer<'a> {
    pub(super) fn new(
        recording: &Recording,
        root: &'a Root,
        alone: bool,
        interrupted: &'a AtomicBool,
    ) -> Performer<'a> {
        let ids = (0..recording.paths.len() as u32).map(PathId);
        let paths: Vec<&[u8]> = ids.map(|id| recording.paths.get(id)).collect();
        let opened = recording
            .calls
            .iter()
            .filter_map(|call| match call.outcome {
                Outcome::Handle(handle) => Some(handle.0),
                _ => None,
            });
        Performer {
            root,
            handles: Handles::up_to(opened.max().unwrap_or(0)),
            places: paths.iter().map(|path| RecordedPath::new(path)).collect(),
            contents: paths
                .iter()
                .map(|path| std::ffi::CString::new(*path).ok())
                .collect(),
            alone,
            has_fifos: recording
                .initial
                .iter()
                .any(|file| file.kind == InitialKind::Fifo)
                || recording.calls.iter().any(makes_fifo),
            interrupted,
        }
    }

    pub(super) fn perform(&self, call: &Call, buffer: &mut Buffer) -> State {
        let tried = match call.outcome {
            Outcome::Unfinished => Err(Skip::Unfinished),
            Outcome::Failed(errno) if refused_there(call, errno) => Err(Skip::Refused),
            _ => self.attempt(call, buffer),
        };
        match tried {
            Ok(Ok(value)) => State::Done(value),
            Ok(Err(errno)) => State::Done(-i64::from(errno.raw_os_error())),
            Err(skip) => State::Skipped(skip),
        }
    }

    fn attempt(&self, call: &Call, buffer: &mut Buffer) -> Tried {
        match &call.operation {
            Operation::Open { path, flags, mode } => self.open(call, *path, *flags, *mode),
            Operation::Reopen {
                handle,
                flags,
                mode,
            } => {
                let file = self.file(*handle)?;
                Ok(self.opened(call, reopen(&file, *flags, *mode)))
            }
            Operation::Close { handle } => self
                .handles
                .close(*handle)
                .map(|done| done.map(|()| 0))
                .ok_or(Skip::NotOpen),
            Operation::CloseMany { handles } => self.close_many(call, handles),
            Operation::Duplicate { handle, replaces } => {
                let made = self.handles.duplicate(*handle).ok_or(Skip::NotOpen)?;
                if let (Ok(()), Some(replaced)) = (made, *replaces) {
                    let _ = self.handles.close(replaced);
                }
                Ok(made.map(|()| 0))
            }
            Operation::Inherit { handles, .. } => {
                for handle in handles {
                    let _ = self.handles.duplicate(*handle);
                }
                Err(Skip::Bookkeeping)
            }
            Operation::Transfer {
                direction,
                handle,
                size,
                buffers,
                offset,
                flags,
            } => {
                let what = Transfer {
                    direction: *direction,
                    size: *size,
                    buffers: *buffers,
                    offset: *offset,
                    flags: *flags,
                };
                self.transfer(*handle, what, buffer)
            }
            Operation::Map { .. }
            | Operation::Unmap { .. }
            | Operation::Remap { .. }
            | Operation::SyncMap { .. } => self.memory(&call.operation),
            Operation::Rename { .. }
            | Operation::Link { .. }
            | Operation::Symlink { .. }
            | Operation::Unlink { .. }
            | Operation::MakeDirectory { .. }
            | Operation::MakeNode { .. }
            | Operation::RemoveDirectory { .. } => self.names(&call.operation),
            Operation::Stat { .. }
            | Operation::StatFilesystem { .. }
            | Operation::Access { .. }
            | Operation::ReadLink { .. }
            | Operation::SetMode { .. }
            | Operation::SetOwner { .. }
            | Operation::SetTimes { .. } => self.attributes(&call.operation),
            _ => self.on_open_file(call),
        }
    }

    fn open(&self, call: &Call, path: PathId, flags: OpenFlags, mode: u32) -> Tried {
        let place = self.place(path)?;
        let flags = self.without_waiting(call, place, flags);
        Ok(self.opened(call, self.root.open_file(&place.whole, flags, mode)))
    }

    fn opened(&self, call: &Call, opened: Result<OwnedFd, Errno>) -> Done {
        opened.map(|descriptor| {
            // Where the recorded call failed there is no number to keep it under.
            if let Outcome::Handle(handle) = call.outcome {
                self.handles.add(handle, descriptor);
            }
            0
        })
    }

    /// An open of a FIFO waits for the process that opens its other end, which may not come in a replay.
    /// One that failed, as without a reader (ENXIO), fails again.
    fn without_waiting(&self, call: &Call, place: &RecordedPath, flags: OpenFlags) -> OpenFlags {
        if !self.has_fifos {
            return flags;
        }
        let found = self.root.open_path(&place.whole, OFlags::empty());
        let kind = found.and_then(|file| rustix::fs::fstat(&file));
        let is_fifo = kind.is_ok_and(|file| FileType::from_raw_mode(file.st_mode).is_fifo());
        match (is_fifo, call.outcome) {
            (true, Outcome::Failed(_)) => flags.with(OpenFlags::O_NONBLOCK),
            (true, _) => OpenFlags::O_RDWR.with(OpenFlags::O_NONBLOCK),
            (false, _) => flags,
        }
    }

    fn close_many(&self, call: &Call, handles: &[HandleId]) -> Tried {
        let mut done = Ok(0);
        for handle in handles {
            if let Some(Err(errno)) = self.handles.close(*handle) {
                done = Err(errno);
            }
        }
        if call.syscall == Syscall::CloseRange {
            Ok(done)
        } else {
            Err(Skip::Bookkeeping)
        }
    }

    fn transfer(&self, handle: HandleId, what: Transfer, buffer: &mut Buffer) -> Tried {
        if what.size > MOST_BYTES {
            return Err(Skip::Bounds);
        }
        let file = self.file(handle)?;
        Ok(buffer.transfer(file.as_fd(), what))
    }

    fn memory(&self, operation: &Operation<HandleId, PathId>) -> Tried {
        let done = match *operation {
            Operation::Map {
                handle,
                offset,
                size,
                protection,
                flags,
            } => self.handles.map(handle, offset, size, protection, flags),
            Operation::Unmap {
                handle,
                offset,
                size,
            } => self.handles.unmap(handle, offset, size).map(Ok),
            Operation::Remap {
                handle,
                offset,
                size,
                new_size,
            } => self.handles.remap(handle, offset, size, new_size),
            Operation::SyncMap {
                handle,
                offset,
                size,
                flags,
            } => self.handles.sync_map(handle, offset, size, flags),
            _ => None,
        };
        done.map(|done| done.map(|()| 0)).ok_or(Skip::NotOpen)
    }

    /// Calls that change names. They look up the directory and never follow the name itself.
    fn names(&self, operation: &Operation<HandleId, PathId>) -> Tried {
        let done = match *operation {
            Operation::Rename { from, to, flags } => {
                let (from, to) = (self.place(from)?, self.place(to)?);
                self.two(from, to, |from, old, to, new| {
                    let flags = rustix::fs::RenameFlags::from_bits_retain(flags);
                    rustix::fs::renameat_with(from, old, to, new, flags)
                })
            }
            Operation::Link {
                from: Target::Handle(from),
                to,
                ..
            } => link_open(&*self.file(from)?, self.root, self.place(to)?),
            Operation::Link {
                from: Target::Path(from),
                to,
                flags,
            } => {
                let (from, to) = (self.place(from)?, self.place(to)?);
                if flags as i32 & libc::AT_SYMLINK_FOLLOW != 0 {
                    self.link_followed(from, to)
                } else {
                    self.two(from, to, |from, old, to, new| {
                        rustix::fs::linkat(from, old, to, new, AtFlags::empty())
                    })
                }
            }
            Operation::Symlink { content, path } => {
                let content = self.contents[content.0 as usize]
                    .as_ref()
                    .ok_or(Skip::Bounds)?;
                self.one(path, |at, name| rustix::fs::symlinkat(content, at, name))?
            }
            Operation::Unlink { path } => self.one(path, |at, name| {
                rustix::fs::unlinkat(at, name, AtFlags::empty())
            })?,
            Operation::RemoveDirectory { path } => self.one(path, |at, name| {
                rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR)
            })?,
            Operation::MakeDirectory { path, mode } => {
                let mode = permissions(mode);
                self.one(path, |at, name| rustix::fs::mkdirat(at, name, mode))?
            }
            Operation::MakeNode { path, mode } => {
                let kind = node_kind(mode);
                let mode = permissions(mode);
                self.one(path, |at, name| {
                    rustix::fs::mknodat(at, name, kind, mode, 0)
                })?
            }
            _ => return Err(Skip::Bookkeeping),
        };
        Ok(done.map(|()| 0))
    }

    fn one(
        &self,
        path: PathId,
        call: impl FnOnce(&OwnedFd, &std::ffi::CStr) -> Result<(), Errno>,
    ) -> Result<Result<(), Errno>, Skip> {
        let place = self.place(path)?;
        Ok(self
            .root
            .parent(place)
            .and_then(|(at, name)| call(&at, name)))
    }

    fn two(
        &self,
        from: &RecordedPath,
        to: &RecordedPath,
        call: impl FnOnce(&OwnedFd, &std::ffi::CStr, &OwnedFd, &std::ffi::CStr) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let (from, old) = self.root.parent(from)?;
        let (to, new) = self.root.parent(to)?;
        call(&from, old, &to, new)
    }

    /// The link's end is found within the root and linked by its descriptor.
    fn link_followed(&self, from: &RecordedPath, to: &RecordedPath) -> Result<(), Errno> {
        let found = self.root.open_path(&from.whole, OFlags::empty())?;
        link_open(&found, self.root, to)
    }

    /// Calls that look at or change what an inode says.
    fn attributes(&self, operation: &Operation<HandleId, PathId>) -> Tried {
        Ok(match *operation {
            Operation::Stat { target, follow } => self
                .found(target, follow)?
                .and_then(|file| rustix::fs::fstat(&*file).map(|_| 0)),
            Operation::StatFilesystem { target } => self
                .found(target, true)?
                .and_then(|file| rustix::fs::fstatfs(&*file).map(|_| 0)),
            Operation::Access { target, mode } => self
                .found(target, true)?
                .and_then(|file| access(&file, mode)),
            Operation::ReadLink { path, size } => {
                let place = self.place(path)?;
                let mut text = vec![0u8; size.min(4096) as usize];
                let found = self.root.open_path(&place.whole, OFlags::NOFOLLOW);
                found.and_then(|link| {
                    let read = rustix::fs::readlinkat_raw(&link, c"", &mut text[..]);
                    // Of a file that is no link readlinkat says so only by its name (fs/stat.c).
                    read.map(|length| length as i64)
                        .map_err(|errno| match errno {
                            Errno::NOENT => Errno::INVAL,
                            other => other,
                        })
                })
            }
            Operation::SetMode { target, mode } => self.found(target, true)?.and_then(|file| {
                rustix::fs::chmod(magic_link(&file), permissions(mode)).map(|()| 0)
            }),
            Operation::SetOwner {
                target,
                user,
                group,
            } => self
                .found(target, true)?
                .and_then(|file| own(&file, user, group)),
            Operation::SetTimes { target } => self.found(target, true)?.and_then(|file| {
                let now = rustix::fs::Timespec {
                    tv_sec: 0,
                    tv_nsec: rustix::fs::UTIME_NOW,
                };
                let now = rustix::fs::Timestamps {
                    last_access: now,
                    last_modification: now,
                };
                let link = magic_link(&file);
                rustix::fs::utimensat(rustix::fs::CWD, link, &now, AtFlags::empty()).map(|()| 0)
            }),
            _ => return Err(Skip::Bookkeeping),
        })
    }

    /// The file of a target; without opening it, if it is named by a path.
    fn found(
        &self,
        target: Target<HandleId, PathId>,
        follow: bool,
    ) -> Result<Result<Arc<OwnedFd>, Errno>, Skip> {
        match target {
            Target::Handle(handle) => self.file(handle).map(Ok),
            Target::Path(path) => {
                let flags = if follow {
                    OFlags::empty()
                } else {
                    OFlags::NOFOLLOW
                };
                let place = self.place(path)?;
                Ok(self.root.open_path(&place.whole, flags).map(Arc::new))
            }
        }
    }

    /// Calls on an open file that move or keep no data of the caller's.
    fn on_open_file(&self, call: &Call) -> Tried {
        let first = match call.operation {
            Operation::SyncAll => return Ok(self.root.sync().map(|()| 0)),
            Operation::Truncate {
                target: Target::Path(path),
                size,
            } => {
                let place = self.place(path)?;
                let file = self.root.open_file(&place.whole, OpenFlags::O_WRONLY, 0);
                return Ok(file.and_then(|file| truncate(&file, size)));
            }
            Operation::Other { .. } => return Err(Skip::Uring),
            _ => call
                .operation
                .handles()
                .first()
                .copied()
                .ok_or(Skip::Bookkeeping)?,
        };
        let file = self.file(first)?;
        match call.operation {
            Operation::Control { request, .. } if !SAFE_REQUESTS.contains(&request) => {
                Err(Skip::Control)
            }
            Operation::Reflink {
                to,
                size,
                from_offset,
                to_offset,
                ..
            } => {
                let to = self.file(to)?;
                Ok(reflink(&file, &to, (from_offset, to_offset), size))
            }
            // No size is too much: the kernel takes no memory for it, and copies what there is.
            Operation::Copy { to, .. } => {
                let to = self.file(to)?;
                Ok(copy(call, &file, &to))
            }
            Operation::Lock {
                kind,
                lock,
                wait,
                offset,
                size,
                ..
            } => self.lock(&file, kind, lock, wait, offset, size),
            _ => Ok(simple(call, &file)),
        }
    }

    /// Locks, waiting in steps so that no recording can stop a replay for ever.
    fn lock(
        &self,
        file: &OwnedFd,
        kind: LockKind,
        lock: u32,
        wait: bool,
        offset: i64,
        size: i64,
    ) -> Tried {
        let patience = if self.alone {
            Duration::ZERO
        } else {
            LOCK_PATIENCE
        };
        let since = Instant::now();
        let mut pause = Duration::from_micros(20);
        loop {
            let done = try_lock(file, kind, lock, offset, size);
            let held = matches!(done, Err(Errno::AGAIN | Errno::ACCESS));
            if !(wait && held && since.elapsed() < patience) {
                return Ok(done);
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Skip::Interrupted);
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(Duration::from_millis(5));
        }
    }

    fn place(&self, path: PathId) -> Result<&RecordedPath, Skip> {
        let place = self.places.get(path.0 as usize);
        place.and_then(Option::as_ref).ok_or(Skip::Bounds)
    }

    fn file(&self, handle: HandleId) -> Result<Arc<OwnedFd>, Skip> {
        self.handles.get(handle).ok_or(Skip::NotOpen)
    }
}

/// True for a call that failed because of the filesystems that it was made on: one to another, or
/// one that does not know it. Here it may work, and then what the program did instead, as copying
/// the bytes, would be done a second time.
fn refused_there(call: &Call, errno: RecordedErrno) -> bool {
    use RecordedErrno as E;
    let copies = matches!(call.operation, Operation::Copy { .. });
    let flagged = matches!(call.operation, Operation::Rename { flags, .. } if flags != 0);
    let changes = copies
        || matches!(
            call.operation,
            Operation::Rename { .. }
                | Operation::Link { .. }
                | Operation::Allocate { .. }
                | Operation::Reflink { .. }
        );
    let shares = matches!(call.operation, Operation::Reflink { .. });
    match errno {
        E::EXDEV => true,
        E::ENOSYS | E::EOPNOTSUPP => changes,
        E::ENOTTY => shares,
        E::EINVAL => copies || flagged || shares,
        _ => false,
    }
}

/// Opens what is open once more.
fn reopen(file: &OwnedFd, flags: OpenFlags, mode: u32) -> Result<OwnedFd, Errno> {
    let (flags, mode) = native_open(flags, mode);
    rustix::fs::open(magic_link(file), flags - OFlags::NOFOLLOW, mode)
}

/// Gives what is open a further name.
fn link_open(file: &OwnedFd, root: &Root, to: &RecordedPath) -> Result<(), Errno> {
    let (to, new) = root.parent(to)?;
    let link = magic_link(file);
    rustix::fs::linkat(rustix::fs::CWD, link, &to, new, AtFlags::SYMLINK_FOLLOW)
}

/// Calls on one open file with plain arguments.
fn simple(call: &Call, file: &OwnedFd) -> Done {
    let fd = file.as_raw_fd();
    // SAFETY of the calls below: they take numbers and an open descriptor, no memory of ours.
    match call.operation {
        Operation::Seek { offset, whence, .. } => {
            let whence = match whence {
                Whence::Start => libc::SEEK_SET,
                Whence::Current => libc::SEEK_CUR,
                Whence::End => libc::SEEK_END,
                Whence::Data => libc::SEEK_DATA,
                Whence::Hole => libc::SEEK_HOLE,
            };
            // SAFETY: see above.
            from_libc(unsafe { libc::lseek64(fd, offset, whence) })
        }
        Operation::Truncate { size, .. } => truncate(file, size),
        Operation::Allocate {
            mode, offset, size, ..
        } => {
            // SAFETY: see above.
            from_libc(unsafe { libc::fallocate64(fd, mode as i32, offset, size) }.into())
        }
        Operation::Sync { .. } => match call.syscall {
            Syscall::Fdatasync | Syscall::UringFdatasync | Syscall::AioFdsync => {
                rustix::fs::fdatasync(file).map(|()| 0)
            }
            Syscall::Syncfs => rustix::fs::syncfs(file).map(|()| 0),
            _ => rustix::fs::fsync(file).map(|()| 0),
        },
        Operation::SyncRange {
            offset,
            size,
            flags,
            ..
        } => {
            // SAFETY: see above.
            from_libc(unsafe { libc::sync_file_range(fd, offset, size, flags) }.into())
        }
        Operation::ReadDirectory { size, .. } => read_directory(file, size),
        Operation::Advise {
            offset,
            size,
            advice,
            ..
        } => {
            // SAFETY: see above.
            match unsafe { libc::posix_fadvise64(fd, offset, size, advice as i32) } {
                0 => Ok(0),
                errno => Err(Errno::from_raw_os_error(errno)),
            }
        }
        Operation::StatusFlags { set: None, .. } => rustix::fs::fcntl_getfl(file).map(|_| 0),
        Operation::StatusFlags {
            set: Some(flags), ..
        } => {
            let flags = flags.without(OpenFlags::O_ASYNC);
            let native = OFlags::from_bits_retain(flags.to_native() as u32);
            rustix::fs::fcntl_setfl(file, native).map(|()| 0)
        }
        Operation::Control { request, .. } => control(file, request),
        _ => Err(Errno::NOSYS),
    }
}

fn truncate(file: &OwnedFd, size: i64) -> Done {
    let size = u64::try_from(size).map_err(|_| Errno::INVAL)?;
    rustix::fs::ftruncate(file, size).map(|()| 0)
}

fn read_directory(file: &OwnedFd, size: u64) -> Done {
    let size = size.clamp(1024, 1 << 20) as usize / 8 * 8;
    let mut entries = vec![0u64; size / 8];
    // SAFETY: `entries` has `size` bytes, aligned for directory entries, and lives through the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_getdents64,
            file.as_raw_fd(),
            entries.as_mut_ptr(),
            size,
        )
    };
    from_libc(done)
}

/// The answer goes into memory of its own, large enough for every request on the list.
fn control(file: &OwnedFd, request: u32) -> Done {
    let mut answer = [0u64; 8];
    // SAFETY: the requests of `SAFE_REQUESTS` write at most a termios of 44 bytes there.
    let done = unsafe {
        libc::ioctl(
            file.as_raw_fd(),
            request as libc::Ioctl,
            answer.as_mut_ptr(),
        )
    };
    from_libc(done.into())
}

fn access(file: &OwnedFd, mode: u32) -> Done {
    // SAFETY: an open descriptor and a text that ends in zero.
    let done = unsafe {
        libc::syscall(
            libc::SYS_faccessat2,
            file.as_raw_fd(),
            c"".as_ptr(),
            mode & 7,
            libc::AT_EMPTY_PATH,
        )
    };
    from_libc(done)
}

fn own(file: &OwnedFd, user: i32, group: i32) -> Done {
    // SAFETY: an open descriptor and a text that ends in zero; -1 leaves an owner as it is.
    let done = unsafe {
        libc::fchownat(
            file.as_raw_fd(),
            c"".as_ptr(),
            user as u32,
            group as u32,
            libc::AT_EMPTY_PATH,
        )
    };
    from_libc(done.into())
}

fn copy(call: &Call, from: &OwnedFd, to: &OwnedFd) -> Done {
    let Operation::Copy {
        from_offset,
        to_offset,
        size,
        ..
    } = call.operation
    else {
        return Err(Errno::NOSYS);
    };
    let offset = |at: Option<i64>| at.map(|at| u64::try_from(at).map_err(|_| Errno::INVAL));
    let mut from_offset = offset(from_offset).transpose()?;
    let mut to_offset = offset(to_offset).transpose()?;
    let size = size as usize;
    let done = if call.syscall == Syscall::Sendfile {
        rustix::fs::sendfile(to, from, from_offset.as_mut(), size)
    } else {
        let (from_at, to_at) = (from_offset.as_mut(), to_offset.as_mut());
        rustix::fs::copy_file_range(from, from_at, to, to_at, size)
    };
    done.map(|bytes| bytes as i64)
}

fn try_lock(file: &OwnedFd, kind: LockKind, lock: u32, offset: i64, size: i64) -> Done {
    let fd = file.as_raw_fd();
    if kind == LockKind::Whole {
        let operation = lock as i32 & (libc::LOCK_SH | libc::LOCK_EX | libc::LOCK_UN);
        // SAFETY: an open descriptor and a number.
        return from_libc(unsafe { libc::flock(fd, operation | libc::LOCK_NB) }.into());
    }
    // SAFETY: all zeros is a valid `flock`.
    let mut asked: libc::flock = unsafe { std::mem::zeroed() };
    asked.l_type = lock as _;
    asked.l_whence = libc::SEEK_SET as _;
    asked.l_start = offset;
    asked.l_len = size;
    let command = match kind {
        LockKind::Description => libc::F_OFD_SETLK,
        LockKind::Query => libc::F_GETLK,
        _ => libc::F_SETLK,
    };
    // SAFETY: an open descriptor and a structure that lives through the call.
    from_libc(unsafe { libc::fcntl(fd, command, &mut asked) }.into())
}

/// What a node becomes. An empty file stands for a device, of which a replay makes none.
fn node_kind(mode: u32) -> FileType {
    match FileType::from_raw_mode(mode) {
        kind @ (FileType::Fifo | FileType::Socket) => kind,
        _ => FileType::RegularFile,
    }
}

fn makes_fifo(call: &Call) -> bool {
    matches!(call.operation, Operation::MakeNode { mode, .. } if node_kind(mode).is_fifo())
}

/// What a libc call returned.
fn from_libc(done: i64) -> Done {
    if done >= 0 {
        Ok(done)
    } else {
        Err(last_error())
    }
}

/// The largest transfer of a call, in bytes.
pub(super) fn transfer_bytes(call: &Call) -> u64 {
    match call.operation {
        Operation::Transfer {
            direction: Direction::Read | Direction::Write,
            size,
            ..
        } if size <= MOST_BYTES => size,
        _ => 0,
    }
}
