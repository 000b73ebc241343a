//! From a recorded call's arguments to what the call asked for.

use std::borrow::Cow;

use iostep_model::syscall::constants::{AT_EMPTY_PATH, Names};
use iostep_model::syscall::raw::{Action, Descriptor, Path, Returned, Seen};
use iostep_model::syscall::{Arguments, LockKind, OpenFlags, Operation, Reason, Syscall, Target};

use super::record::{EXTRA_LOST, FOREIGN, Record, UNFINISHED};
use super::table::{self, Entry, Shape};
use super::{files, plain_path};

/// Close-on-exec goes by this bit in every call that makes a descriptor: `O_CLOEXEC`,
/// `SOCK_CLOEXEC`, `EFD_CLOEXEC` and others.
const CLOSE_ON_EXEC: u64 = libc::O_CLOEXEC as u64;
pub(super) const UNREADABLE: &str = "arguments could not be read";

/// What a symbolic link said that a call read, if the recorder saw the whole of it.
pub(super) fn link_says<'a>(record: &Record<'a>) -> Option<Action<'a>> {
    let at = match table::by_number(record.number)?.shape {
        Shape::Call(Syscall::Readlink) => false,
        Shape::Call(Syscall::Readlinkat) => true,
        _ => return None,
    };
    let length = usize::try_from(record.result).ok()?;
    let content = record.text[1]
        .get(..length)
        .filter(|text| !text.is_empty())?;
    // A buffer that is full may be too short.
    let room = record.word[2 + usize::from(at)];
    (record.result < room as i64).then(|| Action::LinkSays {
        path: path(record, 0, at.then_some(0)),
        content: Cow::Borrowed(content),
    })
}

/// What a record that is no note asked for, and which file it opened.
pub(super) fn of<'a>(record: &Record<'a>, returned: Returned) -> (Action<'a>, Option<Seen>) {
    if record.number == FOREIGN {
        return (left_out("?", "call of a 32-bit program"), None);
    }
    let Some(entry) = table::by_number(record.number) else {
        return (left_out("?", "unknown system call"), None);
    };
    if record.is_restarted() && !record.has(UNFINISHED) {
        return (left_out(entry.name, "interrupted by a signal"), None);
    }
    if entry.layout.extra != table::STAT
        && let Some(opened) = files::opened(record, entry)
    {
        return (opened, None);
    }
    let action = match entry.shape {
        Shape::Call(syscall) => match call(record, syscall) {
            Ok(action) => action,
            Err(reason) => left_out(entry.name, reason),
        },
        _ => followed(record, entry, returned),
    };
    with_seen(record, action)
}

/// The file that an action opened or asked about, too.
pub(super) fn with_seen<'a>(record: &Record<'a>, action: Action<'a>) -> (Action<'a>, Option<Seen>) {
    let seen = match action {
        Action::Operation(_, Operation::Open { flags, .. }) => files::seen(record, flags),
        Action::Operation(_, Operation::Stat { .. }) => files::asked(record),
        _ => None,
    };
    (action, seen)
}

fn left_out(name: &'static str, reason: &'static str) -> Action<'static> {
    Action::LeftOut {
        name: name.into(),
        reason,
    }
}

/// Calls that only say what descriptors, directories and threads are.
fn followed<'a>(record: &Record<'a>, entry: &Entry, returned: Returned) -> Action<'a> {
    let made = |descriptors, kind, close_on_exec| Action::MakeOther {
        name: entry.name.into(),
        kind,
        descriptors,
        close_on_exec,
    };
    let worked = matches!(returned, Returned::Value(_));
    match entry.shape {
        Shape::ChangeDirectory => Action::ChangeDirectory(path(record, 0, None)),
        Shape::ChangeRoot => Action::ChangeRoot(path(record, 0, None)),
        Shape::ChangeDirectoryOpen => Action::ChangeDirectory(Path {
            directory: Some(Descriptor::number(record.word[0] as i32)),
            ..plain_path(b"")
        }),
        Shape::Pair { at, kind } => {
            let both = [record.word[6] as u32 as i32, (record.word[6] >> 32) as i32];
            let read = worked && !record.has(EXTRA_LOST);
            let flags = record.word[1] * u64::from(entry.name != "pipe");
            let descriptors = if read { both.to_vec() } else { Vec::new() };
            debug_assert!(at == 0 || at == 3);
            made(descriptors, kind, flags & CLOSE_ON_EXEC != 0)
        }
        Shape::Make(kind) => {
            let number = i32::try_from(record.result).ok().filter(|_| worked);
            let flags = record.word[1] | record.word[0];
            made(
                number.into_iter().collect(),
                kind,
                flags & CLOSE_ON_EXEC != 0,
            )
        }
        Shape::LeftOut(reason) => left_out(entry.name, reason),
        Shape::Destroy => destroyed(record),
        // The requests are known to whoever has all records of the thread.
        Shape::Submit => left_out(entry.name, "request of io_submit"),
        // One that worked is told by a note.
        Shape::Fork => left_out(entry.name, "failed fork"),
        _ => left_out(entry.name, "unknown system call"),
    }
}

/// io_destroy has waited for all of a context.
fn destroyed(record: &Record<'_>) -> Action<'static> {
    Action::Complete {
        name: "io_destroy".into(),
        context: record.word[0],
        ends: Vec::new(),
        all: record.result == 0,
    }
}

/// What a call asked for, or why it is left out.
pub(super) fn call<'a>(record: &Record<'a>, syscall: Syscall) -> Result<Action<'a>, Reason> {
    match syscall.action(record)? {
        Action::Operation(..) if record.has(EXTRA_LOST) => Err(UNREADABLE),
        action => Ok(action),
    }
}

impl<'a> Arguments<'a> for Record<'a> {
    const NONSENSE: Reason = "arguments that make no sense";

    fn number(&self, at: usize) -> Result<i64, Reason> {
        Ok(self.word[at] as i64)
    }

    fn descriptor(&self, at: usize) -> Result<Descriptor<'a>, Reason> {
        Ok(Descriptor::number(self.word[at] as i32))
    }

    fn flags(&self, at: usize, _names: Names) -> Result<u32, Reason> {
        Ok(self.word[at] as u32)
    }

    fn open_flags(&self, at: usize) -> Result<OpenFlags, Reason> {
        Ok(OpenFlags::from_native(self.word[at] as i32).0)
    }

    /// Without `O_CREAT` there is no such argument.
    fn open_mode(&self, at: usize) -> Result<u32, Reason> {
        let flags = self.open_flags(at - 1)?;
        let creates = flags.has(OpenFlags::O_CREAT) || flags.has(OpenFlags::O_TMPFILE);
        if creates { self.creat_mode(at) } else { Ok(0) }
    }

    fn creat_mode(&self, at: usize) -> Result<u32, Reason> {
        Ok(self.word[at] as u32 & 0o7777)
    }

    fn path(&self, at: usize) -> Result<Path<'a>, Reason> {
        Ok(path(self, usize::from(at > 0), None))
    }

    fn path_at(&self, at: usize) -> Result<Path<'a>, Reason> {
        Ok(path(self, usize::from(at > 0), Some(at)))
    }

    fn path_or_directory(&self, at: usize, flags: Option<usize>) -> Result<Path<'a>, Reason> {
        let allowed = flags.is_none_or(|flags| self.word[flags] as u32 & AT_EMPTY_PATH != 0);
        Ok(or_directory(self, self.path_at(at)?, allowed))
    }

    fn target_at(&self, flags: u32) -> Result<Target<Descriptor<'a>, Path<'a>>, Reason> {
        let path = or_directory(self, self.path_at(0)?, flags & AT_EMPTY_PATH != 0);
        Ok(Target::Path(path))
    }

    /// No path and a directory: the directory's own file (utimensat(2)).
    fn timed(&self, _flags: usize) -> Result<Target<Descriptor<'a>, Path<'a>>, Reason> {
        let path = or_directory(self, self.path_at(0)?, self.word[1] == 0);
        Ok(Target::Path(path))
    }

    fn vector(&self, _at: usize) -> Result<u64, Reason> {
        Ok(self.word[6])
    }

    fn buffers(&self, at: usize) -> Result<u32, Reason> {
        Ok(self.word[at] as u32)
    }

    /// The kernel takes an offset in two words.
    fn transfer_flags(&self, at: usize) -> Result<u32, Reason> {
        Ok(self.word[at + 1] as u32)
    }

    fn offset_at(&self, at: usize) -> Result<Option<i64>, Reason> {
        let after = self.word[if at == 3 { 7 } else { 6 }] as i64;
        // The call moved it by what it did.
        Ok((self.word[at] != 0).then(|| after.wrapping_sub(self.result.max(0))))
    }

    fn request(&self, at: usize) -> Result<u32, Reason> {
        Ok(self.word[at] as u32)
    }

    fn clone_range(&self, _at: usize) -> Result<(Descriptor<'a>, [i64; 3]), Reason> {
        let [file, from, size, to] = [6, 7, 8, 9].map(|at| self.word[at]);
        let from = [from, size, to].map(|word| word as i64);
        Ok((Descriptor::number(file as i32), from))
    }

    fn command(&self, at: usize) -> Result<u32, Reason> {
        match self.word[at] as u32 {
            // Those for locks of 64 bits on 32-bit machines.
            other @ 12..=14 => Err(self.other_command(other)),
            command => Ok(command),
        }
    }

    fn other_command(&self, command: u32) -> Reason {
        match command as i32 {
            libc::F_GETFD => "asks whether exec closes",
            _ => "other command of fcntl",
        }
    }

    fn record_lock(&self, _kind: LockKind) -> Result<(u32, i64, i64), Reason> {
        let [kind_and_whence, start, length, base] = [6, 7, 8, 9].map(|at| self.word[at]);
        let mut offset = (base as i64).saturating_add(start as i64);
        let mut size = length as i64;
        if size < 0 {
            // It ends where it would begin (fcntl(2)).
            offset = offset.saturating_add(size);
            size = size.saturating_neg();
        }
        Ok(((kind_and_whence & 0xffff) as u32, offset, size))
    }
}

/// One of the two texts, relative to the directory whose descriptor is this argument. Nothing is
/// nowhere, whatever the directory.
fn path<'a>(record: &Record<'a>, text: usize, directory: Option<usize>) -> Path<'a> {
    let directory = directory.map(|argument| record.word[argument] as i32);
    let bytes = record.text[text];
    let directory = directory.filter(|number| *number != libc::AT_FDCWD && !bytes.is_empty());
    Path {
        directory: directory.map(Descriptor::number),
        text: Cow::Borrowed(bytes),
        truncated: record.is_cut_off(text),
    }
}

/// The same, where no text means the directory itself.
fn or_directory<'a>(record: &Record<'_>, path: Path<'a>, allowed: bool) -> Path<'a> {
    let number = record.word[0] as i32;
    match path.text.is_empty() && allowed && number != libc::AT_FDCWD {
        true => Path {
            directory: Some(Descriptor::number(number)),
            ..path
        },
        false => path,
    }
}
