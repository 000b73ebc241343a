//! What reads a system call's arguments, as the kernel has them or in a text.

use super::constants::*;
use super::raw::{Action, Descriptor, Path};
use super::{LockKind, OpenFlags, Operation, Syscall, Target, Whence};

/// Why a call is left out, as it will stand in the ledger.
pub type Reason = &'static str;

/// `FD_CLOEXEC` (include/uapi/linux/fcntl.h), `F_SETFD`'s only flag.
const FD_CLOEXEC: Names = &[("FD_CLOEXEC", 1)];

type FileTarget<'a> = Target<Descriptor<'a>, Path<'a>>;

/// The arguments of a call, which are counted from 0. The table in `syscall/calls.rs` says what each
/// is. Errors: why an argument cannot be read.
#[allow(clippy::missing_errors_doc, reason = "said above")]
pub trait Arguments<'a> {
    /// What a value that no program passes is left out for.
    const NONSENSE: Reason;

    fn number(&self, at: usize) -> Result<i64, Reason>;
    fn descriptor(&self, at: usize) -> Result<Descriptor<'a>, Reason>;
    fn flags(&self, at: usize, names: Names) -> Result<u32, Reason>;
    fn open_flags(&self, at: usize) -> Result<OpenFlags, Reason>;
    /// Permissions behind flags of open, which only some of them have.
    fn open_mode(&self, at: usize) -> Result<u32, Reason>;
    /// A path from the current directory.
    fn path(&self, at: usize) -> Result<Path<'a>, Reason>;
    /// A path behind the directory that it starts at.
    fn path_at(&self, at: usize) -> Result<Path<'a>, Reason>;
    /// The same; an empty one is the directory if the call allows that, with `AT_EMPTY_PATH` in the
    /// argument `flags` where it has such.
    fn path_or_directory(&self, at: usize, flags: Option<usize>) -> Result<Path<'a>, Reason>;
    /// The file of the first two arguments, under these `AT_` flags.
    fn target_at(&self, flags: u32) -> Result<FileTarget<'a>, Reason>;
    /// The file of the first two arguments of a call that sets times, with flags at `flags`.
    fn timed(&self, flags: usize) -> Result<FileTarget<'a>, Reason>;
    /// Bytes of a vector's buffers.
    fn vector(&self, at: usize) -> Result<u64, Reason>;
    /// An offset in memory, as it was before the call.
    fn offset_at(&self, at: usize) -> Result<Option<i64>, Reason>;
    /// A request of ioctl.
    fn request(&self, at: usize) -> Result<u32, Reason>;
    /// The other file, its offset, the size and the offset of a `struct file_clone_range`.
    fn clone_range(&self, at: usize) -> Result<(Descriptor<'a>, [i64; 3]), Reason>;
    /// A command of fcntl.
    fn command(&self, at: usize) -> Result<u32, Reason>;
    /// Kind, offset and size of the lock in the third argument of fcntl.
    fn record_lock(&self, kind: LockKind) -> Result<(u32, i64, i64), Reason>;
    /// Why a command of fcntl that says nothing of files is left out.
    fn other_command(&self, command: u32) -> Reason;

    /// Not an argument.
    fn is<T>(&self, value: T) -> Result<T, Reason> {
        Ok(value)
    }

    /// A size, which as -1 is the largest.
    fn size(&self, at: usize) -> Result<u64, Reason> {
        self.number(at).map(|number| number as u64)
    }

    /// The size of a buffer in the argument before, which the call fills with text.
    fn answer(&self, at: usize) -> Result<u64, Reason> {
        self.size(at)
    }

    /// A user or a group.
    fn id(&self, at: usize) -> Result<i32, Reason> {
        self.number(at).map(|number| number as i32)
    }

    /// Where data is moved.
    fn offset(&self, at: usize) -> Result<Option<i64>, Reason> {
        self.number(at).map(Some)
    }

    /// The same, where -1 is the file's own position.
    fn own_or_offset(&self, at: usize) -> Result<Option<i64>, Reason> {
        Ok(self.offset(at)?.filter(|offset| *offset != -1))
    }

    /// How many buffers.
    fn buffers(&self, at: usize) -> Result<u32, Reason> {
        u32::try_from(self.number(at)?).map_err(|_| Self::NONSENSE)
    }

    /// Flags of preadv2 and pwritev2 behind an offset.
    fn transfer_flags(&self, at: usize) -> Result<u32, Reason> {
        self.late_flags(at, RWF)
    }

    /// Flags that older versions of the call do not have.
    fn late_flags(&self, at: usize, names: Names) -> Result<u32, Reason> {
        self.flags(at, names)
    }

    /// Flags of open in a `struct open_how`.
    fn how_flags(&self, at: usize) -> Result<OpenFlags, Reason> {
        self.open_flags(at)
    }

    /// Permissions in a `struct open_how`.
    fn how_mode(&self, at: usize) -> Result<u32, Reason> {
        self.open_mode(at + 1)
    }

    /// Permissions of creat.
    fn creat_mode(&self, at: usize) -> Result<u32, Reason> {
        self.flags(at, MODE)
    }

    /// The file that is mapped.
    fn mapped(&self, at: usize) -> Result<Descriptor<'a>, Reason> {
        self.descriptor(at)
    }

    /// Where in a file a mapping begins.
    fn map_offset(&self, at: usize) -> Result<i64, Reason> {
        self.number(at)
    }

    /// What lseek counts from.
    fn whence(&self, at: usize) -> Result<Whence, Reason> {
        let whence = self.flags(at, WHENCE)? as usize;
        Whence::ALL.get(whence).copied().ok_or(Self::NONSENSE)
    }

    /// A file by its descriptor.
    fn opened(&self, at: usize) -> Result<FileTarget<'a>, Reason> {
        self.descriptor(at).map(Target::Handle)
    }

    /// A file by its path.
    fn named(&self, at: usize) -> Result<FileTarget<'a>, Reason> {
        self.path(at).map(Target::Path)
    }

    /// A file by directory and path.
    fn named_at(&self, at: usize) -> Result<FileTarget<'a>, Reason> {
        self.path_at(at).map(Target::Path)
    }

    /// A file that gets a further name: by directory and path, or the directory's own with
    /// `AT_EMPTY_PATH` in the argument `flags`.
    fn linked(&self, at: usize, flags: usize) -> Result<FileTarget<'a>, Reason> {
        self.path_or_directory(at, Some(flags)).map(Target::Path)
    }

    /// The file of the first two arguments, with `AT_` flags at `flags`.
    fn target_with(&self, flags: usize) -> Result<FileTarget<'a>, Reason> {
        self.target_at(self.flags(flags, AT)?)
    }

    /// True without `AT_SYMLINK_NOFOLLOW`.
    fn follows(&self, at: usize) -> Result<bool, Reason> {
        Ok(self.flags(at, AT)? & AT_SYMLINK_NOFOLLOW == 0)
    }

    /// A lock of flock.
    fn lock(&self, at: usize) -> Result<u32, Reason> {
        Ok(self.flags(at, FLOCK)? & !LOCK_NB)
    }

    /// True if flock waits.
    fn waits(&self, at: usize) -> Result<bool, Reason> {
        Ok(self.flags(at, FLOCK)? & LOCK_NB == 0)
    }

    /// dup and its relatives.
    fn duplicate(&self, syscall: Syscall) -> Result<Action<'a>, Reason> {
        let close_on_exec =
            syscall == Syscall::Dup3 && self.open_flags(2)?.has(OpenFlags::O_CLOEXEC);
        Ok(Action::Duplicate {
            syscall,
            from: self.descriptor(0)?,
            close_on_exec,
        })
    }

    fn close_range(&self) -> Result<Action<'a>, Reason> {
        let on_exec_only = self.flags(2, CLOSE_RANGE)? & CLOSE_RANGE_CLOEXEC != 0;
        Ok(Action::CloseRange {
            first: self.number(0)? as u32,
            last: self.number(1)? as u32,
            on_exec_only,
        })
    }

    /// munmap.
    fn unmap(&self) -> Result<Action<'a>, Reason> {
        Ok(Action::Unmap {
            address: self.size(0)?,
            size: self.size(1)?,
        })
    }

    /// mremap.
    fn remap(&self) -> Result<Action<'a>, Reason> {
        Ok(Action::Remap {
            address: self.size(0)?,
            size: self.size(1)?,
            new_size: self.size(2)?,
        })
    }

    /// msync.
    fn sync_map(&self) -> Result<Action<'a>, Reason> {
        Ok(Action::SyncMap {
            address: self.size(0)?,
            size: self.size(1)?,
            flags: self.flags(2, MSYNC)?,
        })
    }

    /// unlinkat, which removes directories too.
    fn unlink_at(&self) -> Result<Action<'a>, Reason> {
        let path = self.path_at(0)?;
        let operation = match self.flags(2, AT)? & AT_REMOVEDIR {
            0 => Operation::Unlink { path },
            _ => Operation::RemoveDirectory { path },
        };
        Ok(Action::Operation(Syscall::Unlinkat, operation))
    }

    /// ioctl.
    fn control(&self) -> Result<Action<'a>, Reason> {
        let handle = self.descriptor(0)?;
        Ok(match self.request(1)? {
            FICLONE => Action::Operation(
                Syscall::Ioctl,
                Operation::Reflink {
                    from: self.descriptor(2)?,
                    to: handle,
                    size: 0,
                    from_offset: 0,
                    to_offset: 0,
                },
            ),
            FICLONERANGE => {
                let (from, [from_offset, size, to_offset]) = self.clone_range(2)?;
                let operation = Operation::Reflink {
                    from,
                    to: handle,
                    size: size as u64,
                    from_offset,
                    to_offset,
                };
                Action::Operation(Syscall::Ioctl, operation)
            }
            request @ (FIOCLEX | FIONCLEX) => Action::CloseOnExec {
                of: handle,
                on: request == FIOCLEX,
            },
            request => Action::Operation(Syscall::Ioctl, Operation::Control { handle, request }),
        })
    }

    /// fcntl. Its commands are those of [`FCNTL`].
    fn fcntl(&self) -> Result<Action<'a>, Reason> {
        let handle = self.descriptor(0)?;
        let command = self.command(1)?;
        let (kind, wait) = match command {
            0 | 1030 => {
                return Ok(Action::Duplicate {
                    syscall: Syscall::Fcntl,
                    from: handle,
                    close_on_exec: command == 1030,
                });
            }
            2 => {
                return Ok(Action::CloseOnExec {
                    of: handle,
                    on: self.flags(2, FD_CLOEXEC)? & 1 != 0,
                });
            }
            3 | 4 => {
                let set = (command == 4).then(|| self.open_flags(2)).transpose()?;
                let operation = Operation::StatusFlags { handle, set };
                return Ok(Action::Operation(Syscall::Fcntl, operation));
            }
            5 | 12 | 36 => (LockKind::Query, false),
            6 | 13 => (LockKind::Process, false),
            7 | 14 => (LockKind::Process, true),
            37 => (LockKind::Description, false),
            38 => (LockKind::Description, true),
            other => return Err(self.other_command(other)),
        };
        let (lock, offset, size) = self.record_lock(kind)?;
        let operation = Operation::Lock {
            handle,
            kind,
            lock,
            wait,
            offset,
            size,
        };
        Ok(Action::Operation(Syscall::Fcntl, operation))
    }
}
