//! Writes a trace as strace would have.

use std::fmt::Write as _;
use std::io::Write;

use iostep_model::syscall::text::{Reader, write_call};
use iostep_model::syscall::{
    Call, HandleId, LockKind, OpenFlags, Operation, Outcome, PathId, Paths, Syscall, Target, Whence,
};

use super::restore::Restorer;
use super::{CALL, DECLARATION, EXPORTED_MAGIC, FIRST_DESCRIPTOR};
use crate::error::{Error, Result};
use crate::strace::flags::{self, Names};
use crate::strace::prefix::SECOND_NS;

/// Vectors with more buffers are not spelled out.
const MAX_BUFFERS: u32 = 1024;

/// Writes what `reader` reads to `out`, which is called `name` in errors.
///
/// Memory: the paths that were read. Errors: the reader's, and `Io`.
pub fn export(mut reader: Reader, name: &std::path::Path, out: &mut dyn Write) -> Result<()> {
    let failed = |source| Error::Io {
        path: name.to_owned(),
        what: "write",
        source,
    };
    let mut restorer = Restorer::default();
    let mut text = format!("{EXPORTED_MAGIC}\n");
    for line in reader.declarations().lines() {
        restorer.declare(line);
        let _ = writeln!(text, "#{line}");
    }
    let mut calls = 0_u64;
    while let Some(call) = reader.next_call()? {
        calls += 1;
        line(&call, reader.paths(), &mut restorer, &mut text);
        text.push('\n');
        out.write_all(text.as_bytes()).map_err(failed)?;
        text.clear();
    }
    if reader.cut_at_line().is_none() {
        let _ = writeln!(text, "{DECLARATION}end calls={calls}");
    }
    out.write_all(text.as_bytes()).map_err(failed)
}

/// A call's line: strace's, if it says all of the call when it is read again.
fn line(call: &Call, paths: &Paths, restorer: &mut Restorer, out: &mut String) {
    let begin = out.len();
    let written = strace_line(call, paths, restorer, out).is_some();
    let mut own = String::new();
    write_call(call, paths, &mut own);
    if !written || restorer.call(&out.as_bytes()[begin..]).as_deref() != Some(own.as_str()) {
        out.truncate(begin);
        out.push_str(CALL);
        out.push_str(&own);
    }
}

/// None if strace has no words for it.
fn strace_line(call: &Call, paths: &Paths, restorer: &Restorer, out: &mut String) -> Option<()> {
    let tid = restorer.tid(call.thread)?;
    let at = call.start_ns.checked_add(restorer.base_ns())?;
    // Writing to a string cannot fail, here and below.
    let _ = write!(out, "{tid} {}.{:09} ", at / SECOND_NS, at % SECOND_NS);
    out.push_str(call.syscall.name());
    out.push('(');
    Arguments { paths, out }.operation(call)?;
    let _ = match call.outcome {
        Outcome::Value(value) => write!(out, ") = {value}"),
        Outcome::Handle(handle) => write!(out, ") = {}", descriptor(handle)),
        Outcome::Failed(errno) => write!(out, ") = -1 {}", errno.name()?),
        Outcome::Unfinished => write!(out, ") = ?"),
        Outcome::Unknown => return None,
    };
    if let Some(ns) = call.duration_ns {
        let _ = write!(out, " <{}.{:09}>", ns / SECOND_NS, ns % SECOND_NS);
    }
    Some(())
}

fn descriptor(handle: HandleId) -> i64 {
    i64::from(handle.0) + FIRST_DESCRIPTOR
}

struct Arguments<'a> {
    paths: &'a Paths,
    out: &'a mut String,
}

type Op = Operation<HandleId, PathId>;

impl Arguments<'_> {
    fn raw(&mut self, argument: impl std::fmt::Display) {
        if !self.out.ends_with('(') {
            self.out.push_str(", ");
        }
        let _ = write!(self.out, "{argument}");
    }

    fn handle(&mut self, handle: HandleId) {
        self.raw(descriptor(handle));
    }

    /// As strace's `string_quote`, with all three octal digits.
    fn path(&mut self, path: PathId) {
        self.raw('"');
        for byte in self.paths.get(path) {
            match byte {
                b'"' | b'\\' => {
                    self.out.push('\\');
                    self.out.push(char::from(*byte));
                }
                b'\n' => self.out.push_str("\\n"),
                b'\t' => self.out.push_str("\\t"),
                b' '..=b'~' => self.out.push(char::from(*byte)),
                _ => {
                    let _ = write!(self.out, "\\{byte:03o}");
                }
            }
        }
        self.out.push('"');
    }

    fn path_at(&mut self, path: PathId) {
        self.raw("AT_FDCWD");
        self.path(path);
    }

    fn mode(&mut self, mode: u32) {
        self.raw(format_args!("0{mode:03o}"));
    }

    fn flags(&mut self, value: u32, names: Names) {
        self.raw(flags::display(value, names));
    }

    /// Flags of a call with a directory. Only statx has a name for none.
    fn flags_at(&mut self, value: u32) {
        match value {
            0 => self.raw(0),
            _ => self.flags(value, flags::AT),
        }
    }

    fn constant(&mut self, value: u32, names: Names) {
        match names.iter().find(|(_, known)| *known == value) {
            Some((name, _)) => self.raw(name),
            None => self.raw(value),
        }
    }

    fn offset_at(&mut self, offset: Option<i64>) {
        match offset {
            Some(offset) => self.raw(format_args!("[{offset}]")),
            None => self.raw("NULL"),
        }
    }

    fn operation(&mut self, call: &Call) -> Option<()> {
        use Operation as O;
        match &call.operation {
            O::Open { path, flags, mode } => self.open(call.syscall, *path, *flags, *mode),
            O::Transfer { .. } => self.transfer(call),
            O::Lock { .. } => self.lock(call),
            O::Copy { .. } => self.copy(call),
            O::Rename { .. }
            | O::Link { .. }
            | O::Symlink { .. }
            | O::Unlink { .. }
            | O::MakeDirectory { .. }
            | O::RemoveDirectory { .. }
            | O::Access { .. }
            | O::ReadLink { .. } => self.by_path(call),
            O::Truncate { .. }
            | O::Stat { .. }
            | O::StatFilesystem { .. }
            | O::SetMode { .. }
            | O::SetOwner { .. }
            | O::SetTimes { .. } => self.by_target(call),
            other => self.by_handle(call.syscall, other),
        }
    }

    fn open(&mut self, syscall: Syscall, path: PathId, flags: OpenFlags, mode: u32) -> Option<()> {
        match syscall {
            Syscall::Creat => {
                self.path(path);
                self.mode(mode);
                return Some(());
            }
            Syscall::Openat2 => {
                self.path_at(path);
                self.raw(format_args!(
                    "{{flags={flags}, mode=0{mode:03o}, resolve=0}}"
                ));
                self.raw(24);
                return Some(());
            }
            Syscall::Open => self.path(path),
            Syscall::Openat => self.path_at(path),
            _ => return None,
        }
        self.raw(flags);
        if mode != 0 || flags.has(OpenFlags::O_CREAT) {
            self.mode(mode);
        }
        Some(())
    }

    fn transfer(&mut self, call: &Call) -> Option<()> {
        let Operation::Transfer {
            handle,
            size,
            buffers,
            offset,
            flags,
            ..
        } = call.operation
        else {
            return None;
        };
        use Syscall as S;
        self.handle(handle);
        match call.syscall {
            S::Read | S::Write | S::Pread64 | S::Pwrite64 => {
                self.raw("\"\"...");
                self.raw(size);
            }
            S::Readv | S::Writev | S::Preadv | S::Pwritev | S::Preadv2 | S::Pwritev2 => {
                let others = buffers.checked_sub(1).filter(|_| buffers <= MAX_BUFFERS)?;
                self.raw(format_args!("[{{iov_base=\"\"..., iov_len={size}}}"));
                for _ in 0..others {
                    self.raw("{iov_base=\"\", iov_len=0}");
                }
                self.out.push(']');
                self.raw(buffers);
            }
            _ => return None,
        }
        if matches!(call.syscall, S::Preadv2 | S::Pwritev2) {
            self.raw(offset.unwrap_or(-1));
            self.flags(flags, flags::RWF);
        } else if let Some(offset) = offset {
            self.raw(offset);
        }
        Some(())
    }

    fn lock(&mut self, call: &Call) -> Option<()> {
        let Operation::Lock {
            handle,
            kind,
            lock,
            wait,
            offset,
            size,
        } = call.operation
        else {
            return None;
        };
        self.handle(handle);
        let command = match (kind, wait) {
            (LockKind::Whole, _) => {
                let unless = if wait { 0 } else { flags::LOCK_NB };
                self.flags(lock | unless, flags::FLOCK);
                return Some(());
            }
            (LockKind::Process, false) => "F_SETLK",
            (LockKind::Process, true) => "F_SETLKW",
            (LockKind::Description, false) => "F_OFD_SETLK",
            (LockKind::Description, true) => "F_OFD_SETLKW",
            (LockKind::Query, _) => "F_GETLK",
        };
        self.raw(command);
        self.raw("{l_type=");
        let (name, _) = flags::LOCK.iter().find(|(_, value)| *value == lock)?;
        self.out.push_str(name);
        let rest = format_args!("l_whence=SEEK_SET, l_start={offset}, l_len={size}}}").to_string();
        self.raw(rest);
        Some(())
    }

    fn copy(&mut self, call: &Call) -> Option<()> {
        let Operation::Copy {
            from,
            from_offset,
            to,
            to_offset,
            size,
        } = call.operation
        else {
            return None;
        };
        if call.syscall == Syscall::Sendfile {
            self.handle(to);
            self.handle(from);
            self.offset_at(from_offset);
            self.raw(size);
            return Some(());
        }
        self.handle(from);
        self.offset_at(from_offset);
        self.handle(to);
        self.offset_at(to_offset);
        self.raw(size);
        self.raw(0);
        Some(())
    }

    /// A path, behind the current directory where the call has one.
    fn path_of(&mut self, syscall: Syscall, path: PathId) {
        use Syscall as S;
        match syscall {
            S::Renameat
            | S::Renameat2
            | S::Linkat
            | S::Symlinkat
            | S::Unlinkat
            | S::Mkdirat
            | S::Newfstatat
            | S::Statx
            | S::Faccessat
            | S::Faccessat2
            | S::Readlinkat
            | S::Fchmodat
            | S::Fchownat
            | S::Futimesat
            | S::Utimensat => self.path_at(path),
            _ => self.path(path),
        }
    }

    fn by_path(&mut self, call: &Call) -> Option<()> {
        use Operation as O;
        let syscall = call.syscall;
        match call.operation {
            O::Rename { from, to, flags } => {
                self.path_of(syscall, from);
                self.path_of(syscall, to);
                if syscall == Syscall::Renameat2 {
                    self.flags(flags, flags::RENAME);
                }
            }
            O::Link { from, to, flags } => {
                self.path_of(syscall, from);
                self.path_of(syscall, to);
                if syscall == Syscall::Linkat {
                    self.flags_at(flags);
                }
            }
            O::Symlink { content, path } => {
                self.path(content);
                self.path_of(syscall, path);
            }
            O::Unlink { path } | O::RemoveDirectory { path } => {
                self.path_of(syscall, path);
                let directory = matches!(call.operation, O::RemoveDirectory { .. });
                if syscall == Syscall::Unlinkat {
                    self.raw(if directory { "AT_REMOVEDIR" } else { "0" });
                }
            }
            O::MakeDirectory { path, mode } => {
                self.path_of(syscall, path);
                self.mode(mode);
            }
            O::Access { path, mode } => {
                self.path_of(syscall, path);
                self.flags(mode, flags::ACCESS);
                if syscall == Syscall::Faccessat2 {
                    self.raw(0);
                }
            }
            O::ReadLink { path, size } => {
                self.path_of(syscall, path);
                self.raw("\"\"...");
                self.raw(size);
            }
            _ => return None,
        }
        Some(())
    }

    /// The file of a call that takes both; true if it is a descriptor behind which a path is empty.
    fn target(&mut self, syscall: Syscall, target: Target<HandleId, PathId>) -> bool {
        use Syscall as S;
        match target {
            Target::Path(path) => self.path_of(syscall, path),
            Target::Handle(handle) => {
                self.handle(handle);
                match syscall {
                    S::Newfstatat | S::Statx | S::Fchownat => {
                        self.raw("\"\"");
                        return true;
                    }
                    S::Utimensat | S::Futimesat => self.raw("NULL"),
                    _ => {}
                }
            }
        }
        false
    }

    fn by_target(&mut self, call: &Call) -> Option<()> {
        use Operation as O;
        let syscall = call.syscall;
        match call.operation {
            O::Truncate { target, size } => {
                self.target(syscall, target);
                self.raw(size);
            }
            O::Stat { target, follow } => {
                let empty = self.target(syscall, target);
                let flags = if empty { flags::AT_EMPTY_PATH } else { 0 }
                    | if follow {
                        0
                    } else {
                        flags::AT_SYMLINK_NOFOLLOW
                    };
                match syscall {
                    Syscall::Newfstatat => {
                        self.raw("{...}");
                        self.flags_at(flags);
                    }
                    Syscall::Statx => {
                        self.flags(flags, flags::AT);
                        self.raw("STATX_BASIC_STATS, {...}");
                    }
                    _ => self.raw("{...}"),
                }
            }
            O::StatFilesystem { target } => {
                self.target(syscall, target);
                self.raw("{...}");
            }
            O::SetMode { target, mode } => {
                self.target(syscall, target);
                self.mode(mode);
            }
            O::SetOwner {
                target,
                user,
                group,
            } => {
                let empty = self.target(syscall, target);
                self.raw(user);
                self.raw(group);
                if syscall == Syscall::Fchownat {
                    self.flags_at(if empty { flags::AT_EMPTY_PATH } else { 0 });
                }
            }
            O::SetTimes { target } => {
                self.target(syscall, target);
                self.raw("NULL");
                if syscall == Syscall::Utimensat {
                    self.raw(0);
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn by_handle(&mut self, syscall: Syscall, operation: &Op) -> Option<()> {
        use Operation as O;
        if let Some(handle) = operation.handles().first() {
            self.handle(*handle);
        }
        match *operation {
            O::Close { .. } | O::Sync { .. } | O::SyncAll => {}
            O::Duplicate { replaces: None, .. } => match syscall {
                Syscall::Dup => {}
                Syscall::Fcntl => self.raw("F_DUPFD, 0"),
                _ => return None,
            },
            O::Seek { offset, whence, .. } => {
                self.raw(offset);
                let index = Whence::ALL.iter().position(|known| *known == whence)?;
                self.constant(index as u32, flags::WHENCE);
            }
            O::Allocate {
                mode, offset, size, ..
            } => {
                self.flags(mode, flags::FALLOCATE);
                self.raw(offset);
                self.raw(size);
            }
            O::SyncRange {
                offset,
                size,
                flags,
                ..
            } => {
                self.raw(offset);
                self.raw(size);
                self.flags(flags, flags::SYNC_FILE_RANGE);
            }
            O::Map {
                handle,
                offset,
                size,
                protection,
                flags,
            } => return self.map(handle, (offset, size), (protection, flags)),
            O::ReadDirectory { size, .. } => {
                self.raw("{...}");
                self.raw(size);
            }
            O::Advise {
                offset,
                size,
                advice,
                ..
            } => {
                self.raw(offset);
                self.raw(size);
                if syscall != Syscall::Readahead {
                    self.constant(advice, flags::ADVICE);
                }
            }
            O::StatusFlags { set: None, .. } => self.raw("F_GETFL"),
            O::StatusFlags { set: Some(set), .. } => {
                self.raw("F_SETFL");
                self.raw(set);
            }
            O::Control { request, .. } => {
                self.constant(request, flags::IOCTL);
                self.raw("{...}");
            }
            _ => return None,
        }
        Some(())
    }

    /// The descriptor is not the first argument.
    fn map(
        &mut self,
        handle: HandleId,
        (offset, size): (i64, u64),
        (protection, flags): (u32, u32),
    ) -> Option<()> {
        let open = self.out.rfind('(')?;
        self.out.truncate(open + 1);
        self.raw("NULL");
        self.raw(size);
        self.flags(protection, flags::PROTECTION);
        self.flags(flags, flags::MAP);
        self.handle(handle);
        self.raw(format_args!("0x{offset:x}"));
        Some(())
    }
}
