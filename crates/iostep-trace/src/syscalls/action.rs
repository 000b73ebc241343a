//! From a recorded call's arguments to what the call asked for.

use std::borrow::Cow;

use iostep_model::syscall::raw::{Action, Descriptor, Path, Returned, Seen};
use iostep_model::syscall::{Direction, LockKind, OpenFlags, Operation, Syscall, Target, Whence};

use super::record::{EXTRA_LOST, FOREIGN, REQUEST, Record, UNFINISHED};
use super::table::{self, Entry, Shape};
use super::{files, plain_path, requests};

/// include/uapi/linux/fcntl.h.
pub(super) const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
pub(super) const AT_REMOVEDIR: u64 = 0x200;
pub(super) const AT_EMPTY_PATH: u64 = 0x1000;
/// `POSIX_FADV_WILLNEED`, which is what readahead is.
const WILL_NEED: u32 = 3;
const LOCK_NB: u32 = 4;
/// Close-on-exec goes by this bit in every call that makes a descriptor: `O_CLOEXEC`,
/// `SOCK_CLOEXEC`, `EFD_CLOEXEC` and others.
const CLOSE_ON_EXEC: u64 = libc::O_CLOEXEC as u64;
pub(super) const UNREADABLE: &str = "arguments could not be read";

pub(super) type Made<'a> = Operation<Descriptor<'a>, Path<'a>>;

/// What a symbolic link said that a call read, if the recorder saw the whole of it.
pub(super) fn link_says<'a>(record: &Record<'a>) -> Option<Action<'a>> {
    let (entry, _) = table::by_number(record.number)?;
    let Shape::ReadLink { at } = entry.shape else {
        return None;
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
    if record.number == REQUEST {
        return with_seen(record, requests::action(record));
    }
    let Some((entry, syscall)) = table::by_number(record.number) else {
        return (left_out("?", "unknown system call"), None);
    };
    if record.is_restarted() && !record.has(UNFINISHED) {
        return (left_out(entry.name, "interrupted by a signal"), None);
    }
    if let Some(opened) = files::opened(record, entry) {
        return (opened, None);
    }
    let action = match syscall {
        Some(syscall) => call(record, entry, syscall),
        None => followed(record, entry, returned),
    };
    with_seen(record, action)
}

fn with_seen<'a>(record: &Record<'a>, action: Action<'a>) -> (Action<'a>, Option<Seen>) {
    let seen = match action {
        Action::Operation(_, Operation::Open { flags, .. }) => files::seen(record, flags),
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
        Shape::ChangeDirectoryOpen => Action::ChangeDirectory(Path {
            directory: Some(descriptor(record, 0)),
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
        // One that worked is told by a note.
        Shape::Fork => left_out(entry.name, "failed fork"),
        _ => left_out(entry.name, "unknown system call"),
    }
}

fn call<'a>(record: &Record<'a>, entry: &Entry, syscall: Syscall) -> Action<'a> {
    let word = &record.word;
    match entry.shape {
        Shape::Duplicate => Action::Duplicate {
            syscall,
            from: descriptor(record, 0),
            close_on_exec: syscall == Syscall::Dup3 && word[2] & CLOSE_ON_EXEC != 0,
        },
        Shape::CloseRange => Action::CloseRange {
            first: word[0] as u32,
            last: word[1] as u32,
            // include/uapi/linux/close_range.h.
            on_exec_only: word[2] & 4 != 0,
        },
        Shape::Unmap => Action::Unmap {
            address: word[0],
            size: word[1],
        },
        Shape::Remap => Action::Remap {
            address: word[0],
            size: word[1],
            new_size: word[2],
        },
        Shape::SyncMap => Action::SyncMap {
            address: word[0],
            size: word[1],
            flags: word[2] as u32,
        },
        Shape::Fcntl => fcntl(record, syscall),
        Shape::Control if matches!(word[1], libc::FIOCLEX | libc::FIONCLEX) => {
            Action::CloseOnExec {
                of: descriptor(record, 0),
                on: word[1] == libc::FIOCLEX,
            }
        }
        shape => {
            let operation = by_path(record, shape, syscall);
            let operation = operation
                .or_else(|| attributes_by_path(record, shape))
                .or_else(|| by_descriptor(record, shape, syscall))
                .or_else(|| attributes_by_descriptor(record, shape));
            match operation {
                Some(_) if record.has(EXTRA_LOST) => left_out(entry.name, UNREADABLE),
                Some(operation) => Action::Operation(syscall, operation),
                None => left_out(entry.name, "arguments that make no sense"),
            }
        }
    }
}

/// Calls that make, move, remove or cut what a path names.
fn by_path<'a>(record: &Record<'a>, shape: Shape, syscall: Syscall) -> Option<Made<'a>> {
    use Operation as O;
    let word = &record.word;
    let first = |at: bool| path(record, 0, at.then_some(0));
    let flags = |index: usize, bits: u64| word[index] & bits != 0;
    Some(match shape {
        Shape::Open { at } => open(
            first(at),
            word[1 + usize::from(at)],
            word[2 + usize::from(at)],
        ),
        Shape::OpenHow => open(first(true), word[2], word[3]),
        Shape::Creat => {
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
            open(first(false), flags as u64, word[1])
        }
        Shape::Truncate => O::Truncate {
            target: Target::Path(first(false)),
            size: word[1] as i64,
        },
        Shape::Rename { at } => O::Rename {
            from: first(at),
            to: path(record, 1, at.then_some(2)),
            flags: if syscall == Syscall::Renameat2 {
                word[4] as u32
            } else {
                0
            },
        },
        Shape::Link { at } => O::Link {
            from: or_directory(record, first(at), at && flags(4, AT_EMPTY_PATH)),
            to: path(record, 1, at.then_some(2)),
            flags: if at { word[4] as u32 } else { 0 },
        },
        Shape::Symlink { at } => O::Symlink {
            content: path(record, 0, None),
            path: path(record, 1, at.then_some(1)),
        },
        Shape::Unlink { at: true } if flags(2, AT_REMOVEDIR) => {
            O::RemoveDirectory { path: first(true) }
        }
        Shape::Unlink { at } => O::Unlink { path: first(at) },
        Shape::RemoveDirectory => O::RemoveDirectory { path: first(false) },
        Shape::MakeDirectory { at } => O::MakeDirectory {
            path: first(at),
            mode: word[1 + usize::from(at)] as u32,
        },
        _ => return None,
    })
}

/// Calls that look at a file, or change what stat(2) says of it, by its path.
fn attributes_by_path<'a>(record: &Record<'a>, shape: Shape) -> Option<Made<'a>> {
    use Operation as O;
    let word = &record.word;
    let first = |at: bool| path(record, 0, at.then_some(0));
    let flags = |index: usize, bits: u64| word[index] & bits != 0;
    Some(match shape {
        Shape::Stat { follow } => O::Stat {
            target: Target::Path(first(false)),
            follow,
        },
        Shape::StatAt | Shape::Statx => {
            let at = if shape == Shape::StatAt { 3 } else { 2 };
            O::Stat {
                target: target(record, flags(at, AT_EMPTY_PATH)),
                follow: !flags(at, AT_SYMLINK_NOFOLLOW),
            }
        }
        Shape::StatFilesystem => O::StatFilesystem {
            target: Target::Path(first(false)),
        },
        Shape::Access { at } => O::Access {
            path: first(at),
            mode: word[1 + usize::from(at)] as u32,
        },
        Shape::ReadLink { at } => O::ReadLink {
            path: or_directory(record, first(at), at),
            size: word[2 + usize::from(at)],
        },
        Shape::SetMode { at } => O::SetMode {
            target: Target::Path(first(at)),
            mode: word[1 + usize::from(at)] as u32,
        },
        Shape::SetOwner { at } => {
            let index = 1 + usize::from(at);
            O::SetOwner {
                target: target_at(record, at, at && flags(4, AT_EMPTY_PATH)),
                user: word[index] as i32,
                group: word[index + 1] as i32,
            }
        }
        // No path and a directory: the directory's own file (utimensat(2)).
        Shape::SetTimes { at } => O::SetTimes {
            target: target_at(record, at, at && word[1] == 0),
        },
        _ => return None,
    })
}

/// Calls on an open file's data.
fn by_descriptor<'a>(record: &Record<'a>, shape: Shape, syscall: Syscall) -> Option<Made<'a>> {
    use Operation as O;
    let word = &record.word;
    let handle = descriptor(record, 0);
    Some(match shape {
        Shape::Close => O::Close { handle },
        Shape::Flock => O::Lock {
            handle,
            kind: LockKind::Whole,
            lock: word[1] as u32 & !LOCK_NB,
            wait: word[1] as u32 & LOCK_NB == 0,
            offset: 0,
            size: 0,
        },
        Shape::Transfer { .. } => transfer(record, shape, syscall)?,
        Shape::Seek => O::Seek {
            handle,
            offset: word[1] as i64,
            whence: [
                Whence::Start,
                Whence::Current,
                Whence::End,
                Whence::Data,
                Whence::Hole,
            ]
            .get(word[2] as u32 as usize)
            .copied()?,
        },
        Shape::TruncateOpen => O::Truncate {
            target: Target::Handle(handle),
            size: word[1] as i64,
        },
        Shape::Allocate => O::Allocate {
            handle,
            mode: word[1] as u32,
            offset: word[2] as i64,
            size: word[3] as i64,
        },
        Shape::Sync => O::Sync { handle },
        Shape::SyncAll => O::SyncAll,
        Shape::SyncRange => O::SyncRange {
            handle,
            offset: word[1] as i64,
            size: word[2] as i64,
            flags: word[3] as u32,
        },
        Shape::Map => O::Map {
            handle: descriptor(record, 4),
            offset: word[5] as i64,
            size: word[1],
            protection: word[2] as u32,
            flags: word[3] as u32,
        },
        _ => return None,
    })
}

/// Calls on an open file that move no data, and those that move it between two.
fn attributes_by_descriptor<'a>(record: &Record<'a>, shape: Shape) -> Option<Made<'a>> {
    use Operation as O;
    let word = &record.word;
    let handle = descriptor(record, 0);
    Some(match shape {
        Shape::StatOpen => O::Stat {
            target: Target::Handle(handle),
            follow: true,
        },
        Shape::StatFilesystemOpen => O::StatFilesystem {
            target: Target::Handle(handle),
        },
        Shape::ReadDirectory => O::ReadDirectory {
            handle,
            size: word[2],
        },
        Shape::SetModeOpen => O::SetMode {
            target: Target::Handle(handle),
            mode: word[1] as u32,
        },
        Shape::SetOwnerOpen => O::SetOwner {
            target: Target::Handle(handle),
            user: word[1] as i32,
            group: word[2] as i32,
        },
        Shape::Control => O::Control {
            handle,
            request: word[1] as u32,
        },
        Shape::Advise | Shape::ReadAhead => O::Advise {
            handle,
            offset: word[1] as i64,
            size: word[2] as i64,
            advice: match shape {
                Shape::Advise => word[3] as u32,
                _ => WILL_NEED,
            },
        },
        Shape::SendFile => O::Copy {
            from: descriptor(record, 1),
            from_offset: before(record, word[2], word[6]),
            to: handle,
            to_offset: None,
            size: word[3],
        },
        Shape::CopyRange => O::Copy {
            from: handle,
            from_offset: before(record, word[1], word[6]),
            to: descriptor(record, 2),
            to_offset: before(record, word[3], word[7]),
            size: word[4],
        },
        _ => return None,
    })
}

fn transfer<'a>(record: &Record<'a>, shape: Shape, syscall: Syscall) -> Option<Made<'a>> {
    let Shape::Transfer {
        direction,
        vectors,
        offset,
    } = shape
    else {
        return None;
    };
    let word = &record.word;
    let with_flags = matches!(syscall, Syscall::Preadv2 | Syscall::Pwritev2);
    // preadv2 takes -1 for the file's own position.
    let here = with_flags && word[3] as i64 == -1;
    debug_assert!(matches!(direction, Direction::Read | Direction::Write));
    Some(Operation::Transfer {
        direction,
        handle: descriptor(record, 0),
        size: if vectors { word[6] } else { word[2] },
        buffers: if vectors { word[2] as u32 } else { 1 },
        offset: (offset && !here).then_some(word[3] as i64),
        flags: if with_flags { word[5] as u32 } else { 0 },
    })
}

/// An offset in memory as it was before the call, which moved it by what it did.
fn before(record: &Record<'_>, address: u64, after: u64) -> Option<i64> {
    (address != 0).then(|| (after as i64).wrapping_sub(record.result.max(0)))
}

pub(super) fn open(path: Path<'_>, flags: u64, mode: u64) -> Made<'_> {
    let (flags, _) = OpenFlags::from_native(flags as i32);
    let creates = flags.has(OpenFlags::O_CREAT) || flags.has(OpenFlags::O_TMPFILE);
    Operation::Open {
        path,
        flags,
        // Without O_CREAT there is no such argument.
        mode: if creates { mode as u32 & 0o7777 } else { 0 },
    }
}

fn descriptor(record: &Record<'_>, argument: usize) -> Descriptor<'static> {
    Descriptor::number(record.word[argument] as i32)
}

/// One of the two texts, relative to the directory whose descriptor is this argument. Nothing is
/// nowhere, whatever the directory.
pub(super) fn path<'a>(record: &Record<'a>, text: usize, directory: Option<usize>) -> Path<'a> {
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

fn target<'a>(record: &Record<'a>, may_be_empty: bool) -> Target<Descriptor<'a>, Path<'a>> {
    target_at(record, true, may_be_empty)
}

fn target_at<'a>(
    record: &Record<'a>,
    at: bool,
    may_be_empty: bool,
) -> Target<Descriptor<'a>, Path<'a>> {
    let path = path(record, 0, at.then_some(0));
    Target::Path(or_directory(record, path, may_be_empty))
}

fn fcntl<'a>(record: &Record<'a>, syscall: Syscall) -> Action<'a> {
    let handle = descriptor(record, 0);
    let argument = record.word[2];
    let command = record.word[1] as i32;
    let operation = match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
            return Action::Duplicate {
                syscall,
                from: handle,
                close_on_exec: command == libc::F_DUPFD_CLOEXEC,
            };
        }
        libc::F_SETFD => {
            return Action::CloseOnExec {
                of: handle,
                on: argument & libc::FD_CLOEXEC as u64 != 0,
            };
        }
        libc::F_GETFL => Operation::StatusFlags { handle, set: None },
        libc::F_SETFL => Operation::StatusFlags {
            handle,
            set: Some(OpenFlags::from_native(argument as i32).0),
        },
        5..=7 | 36..=38 if record.has(EXTRA_LOST) => return left_out("fcntl", UNREADABLE),
        5..=7 | 36..=38 => lock(record, handle, command),
        libc::F_GETFD => return left_out("fcntl", "asks whether exec closes"),
        _ => return left_out("fcntl", "other command of fcntl"),
    };
    Action::Operation(syscall, operation)
}

/// `F_GETLK` 5, `F_SETLK` 6, `F_SETLKW` 7, and from 36 on the same for the open file
/// (include/uapi/asm-generic/fcntl.h).
fn lock<'a>(record: &Record<'a>, handle: Descriptor<'a>, command: i32) -> Made<'a> {
    let [kind_and_whence, start, length, base] = [6, 7, 8, 9].map(|at| record.word[at]);
    let mut offset = (base as i64).saturating_add(start as i64);
    let mut size = length as i64;
    if size < 0 {
        // It ends where it would begin (fcntl(2)).
        offset = offset.saturating_add(size);
        size = size.saturating_neg();
    }
    Operation::Lock {
        handle,
        kind: match command {
            5 | 36 => LockKind::Query,
            6 | 7 => LockKind::Process,
            _ => LockKind::Description,
        },
        lock: (kind_and_whence & 0xffff) as u32,
        wait: matches!(command, 7 | 38),
        offset,
        size,
    }
}
