//! The arguments of a call.

use std::fmt::Write;

use super::super::recording::{HandleId, PathId, Paths};
use super::super::{Direction, LockKind, OpenFlags, Operation, Syscall, Target, Whence};
use super::escape::quote;
use super::fields::{Fault, Fields, handle, thread};

type Op = Operation<HandleId, PathId>;

/// Appends the arguments, each after a blank.
pub(super) fn write(operation: &Op, syscall: Syscall, paths: &Paths, out: &mut String) {
    Arguments { paths, out }.operation(operation, syscall);
}

struct Arguments<'a> {
    paths: &'a Paths,
    out: &'a mut String,
}

impl Arguments<'_> {
    // Writing to a string cannot fail.
    fn handle(&mut self, handle: HandleId) -> &mut Self {
        let _ = write!(self.out, " h{}", handle.0);
        self
    }

    fn handles(&mut self, handles: &[HandleId]) -> &mut Self {
        for handle in handles {
            self.handle(*handle);
        }
        self
    }

    fn number(&mut self, name: &str, value: impl std::fmt::Display) -> &mut Self {
        let _ = write!(self.out, " {name}={value}");
        self
    }

    fn flags(&mut self, name: &str, flags: u32) -> &mut Self {
        let _ = write!(self.out, " {name}=0x{flags:x}");
        self
    }

    fn mode(&mut self, mode: u32) -> &mut Self {
        // The 0 in front is what says that it is octal, however long it is.
        let _ = write!(self.out, " mode=0{mode:03o}");
        self
    }

    fn path(&mut self, name: &str, path: PathId) -> &mut Self {
        let _ = write!(self.out, " {name}=");
        quote(self.paths.get(path), self.out);
        self
    }

    fn target(&mut self, target: Target<HandleId, PathId>) -> &mut Self {
        match target {
            Target::Handle(handle) => self.handle(handle),
            Target::Path(path) => self.path("path", path),
        }
    }

    fn word(&mut self, word: &str, present: bool) {
        if present {
            let _ = write!(self.out, " {word}");
        }
    }

    fn operation(&mut self, operation: &Op, syscall: Syscall) {
        match *operation {
            Operation::Transfer { .. } => self.transfer(operation),
            Operation::Duplicate { handle, replaces } => {
                self.handle(handle);
                if let Some(replaced) = replaces {
                    self.number("replaces", format_args!("h{}", replaced.0));
                }
            }
            Operation::CloseMany { ref handles } => {
                self.handles(handles);
            }
            Operation::Inherit { child, ref handles } => {
                self.number("child", format_args!("t{}", child.0))
                    .handles(handles);
            }
            Operation::Close { handle } | Operation::Sync { handle } => {
                self.handle(handle);
            }
            Operation::SyncAll => {}
            Operation::Lock { .. } | Operation::StatusFlags { .. } => self.control(operation),
            Operation::Control { .. } | Operation::Other { .. } => self.control(operation),
            Operation::Seek { .. } | Operation::Allocate { .. } => self.range(operation),
            Operation::SyncRange { .. } => self.range(operation),
            Operation::Map { .. } => self.mapping(operation),
            Operation::Unmap { .. } | Operation::SyncMap { .. } | Operation::Remap { .. } => {
                self.mapping(operation);
            }
            Operation::Advise { .. } | Operation::Copy { .. } => self.range(operation),
            Operation::ReadDirectory { handle, size } => {
                self.handle(handle).number("size", size);
            }
            Operation::Truncate { target, size } => {
                self.target(target).number("size", size);
            }
            _ => self.names(operation, syscall),
        }
    }

    fn transfer(&mut self, operation: &Op) {
        let Operation::Transfer {
            handle,
            size,
            buffers,
            offset,
            flags,
            ..
        } = *operation
        else {
            return;
        };
        self.handle(handle).number("size", size);
        if let Some(offset) = offset {
            self.number("offset", offset);
        }
        if buffers != 1 {
            self.number("buffers", buffers);
        }
        if flags != 0 {
            self.flags("flags", flags);
        }
    }

    /// Operations on a part of an open file.
    fn range(&mut self, operation: &Op) {
        match *operation {
            Operation::Seek {
                handle,
                offset,
                whence,
            } => {
                self.handle(handle)
                    .number("offset", offset)
                    .number("whence", whence);
            }
            Operation::Allocate {
                handle,
                mode,
                offset,
                size,
            } => {
                self.handle(handle).flags("flags", mode);
                self.number("offset", offset).number("size", size);
            }
            Operation::SyncRange {
                handle,
                offset,
                size,
                flags,
            } => {
                self.handle(handle).number("offset", offset);
                self.number("size", size).flags("flags", flags);
            }
            Operation::Advise {
                handle,
                offset,
                size,
                advice,
            } => {
                self.handle(handle).number("offset", offset);
                self.number("size", size).number("advice", advice);
            }
            Operation::Copy {
                from,
                from_offset,
                to,
                to_offset,
                size,
            } => {
                self.handle(from).handle(to).number("size", size);
                if let Some(offset) = from_offset {
                    self.number("from_offset", offset);
                }
                if let Some(offset) = to_offset {
                    self.number("to_offset", offset);
                }
            }
            _ => {}
        }
    }

    /// Operations on a mapping, which name the part of the file that is mapped.
    fn mapping(&mut self, operation: &Op) {
        match *operation {
            Operation::Map {
                handle,
                offset,
                size,
                protection,
                flags,
            } => {
                self.handle(handle)
                    .number("offset", offset)
                    .number("size", size);
                self.flags("protection", protection).flags("flags", flags);
            }
            Operation::Unmap {
                handle,
                offset,
                size,
            } => {
                self.handle(handle)
                    .number("offset", offset)
                    .number("size", size);
            }
            Operation::Remap {
                handle,
                offset,
                size,
                new_size,
            } => {
                self.handle(handle).number("offset", offset);
                self.number("size", size).number("new_size", new_size);
            }
            Operation::SyncMap {
                handle,
                offset,
                size,
                flags,
            } => {
                self.handle(handle).number("offset", offset);
                self.number("size", size).flags("flags", flags);
            }
            _ => {}
        }
    }

    /// fcntl, flock, ioctl and what io_uring has besides.
    fn control(&mut self, operation: &Op) {
        match *operation {
            Operation::Lock {
                handle,
                kind,
                lock,
                wait,
                offset,
                size,
            } => {
                self.handle(handle)
                    .number("lock", lock)
                    .number("of", lock_name(kind));
                if kind != LockKind::Whole {
                    self.number("offset", offset).number("size", size);
                }
                self.word("wait", wait);
            }
            Operation::StatusFlags { handle, set } => {
                self.handle(handle);
                match set {
                    Some(flags) => _ = self.number("set", flags),
                    None => self.word("get", true),
                }
            }
            Operation::Control { handle, request } => {
                self.handle(handle).flags("request", request);
            }
            Operation::Other { handle, code } => {
                self.handle(handle).number("code", code);
            }
            _ => {}
        }
    }

    /// Operations on names.
    fn names(&mut self, operation: &Op, syscall: Syscall) {
        match *operation {
            Operation::Open { path, flags, mode } => {
                self.path("path", path).number("flags", flags).mode(mode);
            }
            Operation::Rename { from, to, flags } | Operation::Link { from, to, flags } => {
                self.path("from", from).path("to", to);
                if flags != 0 {
                    self.flags("flags", flags);
                }
            }
            Operation::Symlink { content, path } => {
                self.path("content", content).path("path", path);
            }
            Operation::Unlink { path } => {
                self.path("path", path);
            }
            Operation::RemoveDirectory { path } => {
                let either = matches!(syscall, Syscall::Unlinkat | Syscall::UringUnlinkat);
                self.path("path", path).word("directory", either);
            }
            Operation::MakeDirectory { path, mode } => {
                self.path("path", path).mode(mode);
            }
            Operation::Stat { target, follow } => {
                self.target(target).word("nofollow", !follow);
            }
            Operation::StatFilesystem { target } | Operation::SetTimes { target } => {
                self.target(target);
            }
            Operation::Access { path, mode } => {
                self.path("path", path).number("mode", mode);
            }
            Operation::ReadLink { path, size } => {
                self.path("path", path).number("size", size);
            }
            Operation::SetMode { target, mode } => {
                self.target(target).mode(mode);
            }
            Operation::SetOwner {
                target,
                user,
                group,
            } => {
                self.target(target)
                    .number("user", user)
                    .number("group", group);
            }
            _ => {}
        }
    }
}

fn lock_name(kind: LockKind) -> &'static str {
    match kind {
        LockKind::Whole => "file",
        LockKind::Process => "process",
        LockKind::Description => "description",
        LockKind::Query => "query",
    }
}

/// Reads what [`write`] wrote for this call.
pub(super) fn read(
    syscall: Syscall,
    fields: &mut Fields<'_>,
    paths: &mut Paths,
) -> Result<Op, Fault> {
    use Syscall as S;
    match syscall {
        S::Open | S::Openat | S::Openat2 | S::Creat | S::UringOpenat => open(fields, paths),
        S::Present if fields.has("path") => open(fields, paths),
        S::Present if !fields.has("whence") => duplicate(fields),
        S::Close | S::UringClose => Ok(Operation::Close {
            handle: fields.handle()?,
        }),
        // An exec may leave a shared table of descriptors for one of its own.
        S::Clone | S::Execve if fields.has("child") => inherit(fields),
        S::Clone => Err("child= is missing".into()),
        S::CloseRange | S::Execve | S::Exit => Ok(Operation::CloseMany {
            handles: all_handles(fields)?,
        }),
        S::Dup | S::Dup2 | S::Dup3 => duplicate(fields),
        S::Read | S::Pread64 | S::Readv | S::Preadv | S::Preadv2 => {
            transfer(Direction::Read, fields)
        }
        S::UringRead | S::UringReadv => transfer(Direction::Read, fields),
        S::Write | S::Pwrite64 | S::Writev | S::Pwritev | S::Pwritev2 => {
            transfer(Direction::Write, fields)
        }
        S::UringWrite | S::UringWritev => transfer(Direction::Write, fields),
        S::Fsync | S::Fdatasync | S::Syncfs | S::UringFsync | S::UringFdatasync => {
            Ok(Operation::Sync {
                handle: fields.handle()?,
            })
        }
        S::Sync => Ok(Operation::SyncAll),
        S::Fcntl | S::Flock | S::Ioctl | S::UringOther => control(syscall, fields),
        S::Lseek | S::Present | S::Fallocate | S::UringFallocate | S::SyncFileRange => {
            range(syscall, fields)
        }
        S::UringSyncFileRange => range(syscall, fields),
        S::Mmap | S::Munmap | S::Mremap | S::Msync => range(syscall, fields),
        S::Fadvise64 | S::UringFadvise | S::Readahead => range(syscall, fields),
        S::Sendfile | S::CopyFileRange => range(syscall, fields),
        S::Getdents | S::Getdents64 => Ok(Operation::ReadDirectory {
            handle: fields.handle()?,
            size: fields.number("size")?,
        }),
        _ => names(syscall, fields, paths),
    }
}

fn open(fields: &mut Fields<'_>, paths: &mut Paths) -> Result<Op, Fault> {
    Ok(Operation::Open {
        path: paths.intern(&fields.bytes("path")?),
        flags: open_flags(fields, "flags")?,
        mode: fields.number("mode")?,
    })
}

fn open_flags(fields: &mut Fields<'_>, name: &str) -> Result<OpenFlags, Fault> {
    let text = fields
        .named(name)
        .ok_or_else(|| format!("{name}= is missing"))?;
    text.parse()
        .map_err(|unknown| format!("{unknown}: no flag of open(2)"))
}

fn inherit(fields: &mut Fields<'_>) -> Result<Op, Fault> {
    let child = thread(fields.named("child").ok_or("child= is missing")?)?;
    Ok(Operation::Inherit {
        child,
        handles: all_handles(fields)?,
    })
}

fn all_handles(fields: &mut Fields<'_>) -> Result<Box<[HandleId]>, Fault> {
    std::iter::from_fn(|| fields.next().map(handle)).collect()
}

fn duplicate(fields: &mut Fields<'_>) -> Result<Op, Fault> {
    let replaces = fields.named("replaces").map(handle).transpose()?;
    Ok(Operation::Duplicate {
        handle: fields.handle()?,
        replaces,
    })
}

fn transfer(direction: Direction, fields: &mut Fields<'_>) -> Result<Op, Fault> {
    Ok(Operation::Transfer {
        direction,
        handle: fields.handle()?,
        size: fields.number("size")?,
        buffers: fields.optional("buffers")?.unwrap_or(1),
        offset: fields.optional("offset")?,
        flags: fields.optional("flags")?.unwrap_or(0),
    })
}

fn control(syscall: Syscall, fields: &mut Fields<'_>) -> Result<Op, Fault> {
    if let Some(of) = fields.named("of") {
        let kind = match of {
            "file" => LockKind::Whole,
            "process" => LockKind::Process,
            "description" => LockKind::Description,
            "query" => LockKind::Query,
            other => return Err(format!("of={other}: no kind of lock")),
        };
        let handle = fields.handle()?;
        return Ok(Operation::Lock {
            handle,
            kind,
            lock: fields.number("lock")?,
            wait: fields.flag("wait"),
            offset: fields.optional("offset")?.unwrap_or(0),
            size: fields.optional("size")?.unwrap_or(0),
        });
    }
    match syscall {
        Syscall::Ioctl => Ok(Operation::Control {
            handle: fields.handle()?,
            request: fields.number("request")?,
        }),
        Syscall::UringOther => Ok(Operation::Other {
            handle: fields.handle()?,
            code: fields.number("code")?,
        }),
        _ if fields.has("set") => Ok(Operation::StatusFlags {
            set: Some(open_flags(fields, "set")?),
            handle: fields.handle()?,
        }),
        _ => {
            let get = fields.flag("get");
            if get {
                Ok(Operation::StatusFlags {
                    handle: fields.handle()?,
                    set: None,
                })
            } else {
                duplicate(fields)
            }
        }
    }
}

fn mapping(
    syscall: Syscall,
    handle: HandleId,
    offset: i64,
    fields: &mut Fields<'_>,
) -> Result<Op, Fault> {
    let size = fields.number("size")?;
    Ok(match syscall {
        Syscall::Munmap => Operation::Unmap {
            handle,
            offset,
            size,
        },
        Syscall::Mremap => Operation::Remap {
            handle,
            offset,
            size,
            new_size: fields.number("new_size")?,
        },
        Syscall::Msync => Operation::SyncMap {
            handle,
            offset,
            size,
            flags: fields.number("flags")?,
        },
        _ => Operation::Map {
            handle,
            offset,
            size,
            protection: fields.number("protection")?,
            flags: fields.number("flags")?,
        },
    })
}

fn range(syscall: Syscall, fields: &mut Fields<'_>) -> Result<Op, Fault> {
    use Syscall as S;
    let handle = fields.handle()?;
    match syscall {
        S::Sendfile | S::CopyFileRange => {
            return Ok(Operation::Copy {
                from: handle,
                from_offset: fields.optional("from_offset")?,
                to: fields.handle()?,
                to_offset: fields.optional("to_offset")?,
                size: fields.number("size")?,
            });
        }
        S::Lseek | S::Present => {
            let whence = fields.named("whence").ok_or("whence= is missing")?;
            let whence: Whence = whence.parse().map_err(|e| format!("{e}"))?;
            return Ok(Operation::Seek {
                handle,
                offset: fields.number("offset")?,
                whence,
            });
        }
        _ => {}
    }
    let offset: i64 = fields.number("offset")?;
    if matches!(syscall, S::Mmap | S::Munmap | S::Mremap | S::Msync) {
        return mapping(syscall, handle, offset, fields);
    }
    let size = fields.number("size")?;
    Ok(match syscall {
        S::Fallocate | S::UringFallocate => Operation::Allocate {
            handle,
            mode: fields.number("flags")?,
            offset,
            size,
        },
        S::SyncFileRange | S::UringSyncFileRange => Operation::SyncRange {
            handle,
            offset,
            size,
            flags: fields.number("flags")?,
        },
        _ => Operation::Advise {
            handle,
            offset,
            size,
            advice: fields.number("advice")?,
        },
    })
}

fn names(syscall: Syscall, fields: &mut Fields<'_>, paths: &mut Paths) -> Result<Op, Fault> {
    use Syscall as S;
    Ok(match syscall {
        S::Rename | S::Renameat | S::Renameat2 | S::UringRenameat => {
            let (from, to, flags) = two_names(fields, paths)?;
            Operation::Rename { from, to, flags }
        }
        S::Link | S::Linkat | S::UringLinkat => {
            let (from, to, flags) = two_names(fields, paths)?;
            Operation::Link { from, to, flags }
        }
        S::Symlink | S::Symlinkat | S::UringSymlinkat => Operation::Symlink {
            content: paths.intern(&fields.bytes("content")?),
            path: paths.intern(&fields.bytes("path")?),
        },
        S::Truncate | S::Ftruncate | S::UringFtruncate => Operation::Truncate {
            target: target(fields, paths)?,
            size: fields.number("size")?,
        },
        S::Stat | S::Lstat | S::Fstat | S::Newfstatat | S::Statx | S::UringStatx => {
            let follow = !fields.flag("nofollow");
            Operation::Stat {
                target: target(fields, paths)?,
                follow,
            }
        }
        S::Statfs | S::Fstatfs => Operation::StatFilesystem {
            target: target(fields, paths)?,
        },
        S::Chmod | S::Fchmod | S::Fchmodat => Operation::SetMode {
            target: target(fields, paths)?,
            mode: fields.number("mode")?,
        },
        S::Chown | S::Fchown | S::Lchown | S::Fchownat => Operation::SetOwner {
            target: target(fields, paths)?,
            user: fields.number("user")?,
            group: fields.number("group")?,
        },
        S::Utime | S::Utimes | S::Futimesat | S::Utimensat => Operation::SetTimes {
            target: target(fields, paths)?,
        },
        _ => return one_name(syscall, fields, paths),
    })
}

/// Two paths and flags, which may be missing.
fn two_names(fields: &mut Fields<'_>, paths: &mut Paths) -> Result<(PathId, PathId, u32), Fault> {
    let from = paths.intern(&fields.bytes("from")?);
    let to = paths.intern(&fields.bytes("to")?);
    Ok((from, to, fields.optional("flags")?.unwrap_or(0)))
}

/// Calls that take one path and nothing else to find a file by.
fn one_name(syscall: Syscall, fields: &mut Fields<'_>, paths: &mut Paths) -> Result<Op, Fault> {
    use Syscall as S;
    let path = paths.intern(&fields.bytes("path")?);
    Ok(match syscall {
        S::Unlinkat | S::UringUnlinkat if fields.flag("directory") => {
            Operation::RemoveDirectory { path }
        }
        S::Rmdir => Operation::RemoveDirectory { path },
        S::Unlink | S::Unlinkat | S::UringUnlinkat => Operation::Unlink { path },
        S::Mkdir | S::Mkdirat | S::UringMkdirat => Operation::MakeDirectory {
            path,
            mode: fields.number("mode")?,
        },
        S::Access | S::Faccessat | S::Faccessat2 => Operation::Access {
            path,
            mode: fields.number("mode")?,
        },
        S::Readlink | S::Readlinkat => Operation::ReadLink {
            path,
            size: fields.number("size")?,
        },
        other => return Err(format!("{other}: has no arguments in a trace file")),
    })
}

fn target(fields: &mut Fields<'_>, paths: &mut Paths) -> Result<Target<HandleId, PathId>, Fault> {
    if fields.has("path") {
        Ok(Target::Path(paths.intern(&fields.bytes("path")?)))
    } else {
        Ok(Target::Handle(fields.handle()?))
    }
}
