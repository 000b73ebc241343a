//! Calls that name their file by a descriptor.

use iostep_model::syscall::raw::{Action, DescriptorKind, Returned};
use iostep_model::syscall::{Direction, LockKind, Operation, Syscall, Target, Whence};

use super::{Decoded, NOT_FILES, NOT_UNDERSTOOD, Named};
use crate::strace::{flags, split, value};

type Call<'c, 'a> = Named<'c, 'a>;

/// `F_SETFD`'s only flag.
const FD_CLOEXEC: flags::Names = &[("FD_CLOEXEC", 1)];
/// What a page was where mmap2 counts in pages of 4096 bytes (mmap2(2)).
const MMAP2_PAGE_BYTES: i64 = 4096;

pub(super) fn close<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let handle = call.descriptor(0)?;
    call.is(Operation::Close { handle })
}

pub(super) fn close_range<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let bound = |index| value::number32(call.call.argument(index)?).ok_or(NOT_UNDERSTOOD);
    let flags = call.flags(2, flags::CLOSE_RANGE)?;
    Ok(Action::CloseRange {
        first: bound(0)?,
        last: bound(1)?,
        on_exec_only: flags & flags::CLOSE_RANGE_CLOEXEC != 0,
    })
}

pub(super) fn duplicate<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let close_on_exec = call.syscall == Syscall::Dup3
        && flags::open(call.call.argument(2)?).is_some_and(|flags| flags.0 != 0);
    Ok(Action::Duplicate {
        syscall: call.syscall,
        from: call.descriptor(0)?,
        close_on_exec,
    })
}

pub(super) fn fcntl<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let handle = call.descriptor(0)?;
    let command = call.call.argument(1)?;
    // F_NOTIFY, F_GETOWN and others change no descriptor and no file.
    let Some(command) = flags::flags(command, flags::FCNTL) else {
        return Err(NOT_FILES);
    };
    match command {
        0 | 1030 => Ok(Action::Duplicate {
            syscall: Syscall::Fcntl,
            from: handle,
            close_on_exec: command == 1030,
        }),
        2 => Ok(Action::CloseOnExec {
            of: handle,
            on: call.flags(2, FD_CLOEXEC)? & 1 != 0,
        }),
        3 => call.is(Operation::StatusFlags { handle, set: None }),
        4 => {
            let set = flags::open(call.call.argument(2)?).ok_or(call.unreadable())?;
            let set = Some(set);
            call.is(Operation::StatusFlags { handle, set })
        }
        5 | 12 | 36 => lock(call, LockKind::Query, false),
        6 | 13 => lock(call, LockKind::Process, false),
        7 | 14 => lock(call, LockKind::Process, true),
        37 => lock(call, LockKind::Description, false),
        38 => lock(call, LockKind::Description, true),
        _ => Err(NOT_FILES),
    }
}

/// `{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=1}`, without `l_` before strace 4.11.
fn lock<'a>(call: &Call<'_, 'a>, kind: LockKind, wait: bool) -> Decoded<'a> {
    let argument = call.call.argument(2)?;
    let field = |new: &[u8]| {
        let old = &new[2..];
        value::field(argument, new)
            .or_else(|| value::field(argument, old))
            .ok_or(call.unreadable())
    };
    let number = |new| value::number(field(new)?).ok_or(call.unreadable());
    let mut lock = flags::flags(field(b"l_type")?, flags::LOCK).ok_or(call.unreadable())?;
    if kind == LockKind::Query {
        // strace shows the answer. What finds a lock of any kind finds the one that was asked for.
        lock = flags::F_WRLCK;
    }
    let whence = flags::flags(field(b"l_whence")?, flags::WHENCE);
    if whence != Some(0) {
        return Err("lock counted from another place");
    }
    call.is(Operation::Lock {
        handle: call.descriptor(0)?,
        kind,
        lock,
        wait,
        offset: number(b"l_start")?,
        size: number(b"l_len")?,
    })
}

pub(super) fn flock<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let flags = call.flags(1, flags::FLOCK)?;
    call.is(Operation::Lock {
        handle: call.descriptor(0)?,
        kind: LockKind::Whole,
        lock: flags & !flags::LOCK_NB,
        wait: flags & flags::LOCK_NB == 0,
        offset: 0,
        size: 0,
    })
}

fn direction(syscall: Syscall) -> Direction {
    use Syscall as S;
    match syscall {
        S::Write | S::Pwrite64 | S::Writev | S::Pwritev | S::Pwritev2 => Direction::Write,
        _ => Direction::Read,
    }
}

pub(super) fn transfer<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    transfer_with(call, None)
}

pub(super) fn transfer_at<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let offset = call.number(3)?;
    transfer_with(call, Some(offset))
}

fn transfer_with<'a>(call: &Call<'_, 'a>, offset: Option<i64>) -> Decoded<'a> {
    call.is(Operation::Transfer {
        direction: direction(call.syscall),
        handle: call.descriptor(0)?,
        size: call.size(2)?,
        buffers: 1,
        offset,
        flags: 0,
    })
}

/// readv and its relatives: `[{iov_base="...", iov_len=3}, ...], 2`, or `[{"...", 3}]` in strace
/// before 4.11. What -s cut off of a long vector is not known: then it is what was done, at least.
pub(super) fn vector<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let buffers = call.number(2)?;
    let (length, whole) = vector_bytes(call.call.argument(1)?);
    let done = match call.call.returned {
        Returned::Value(bytes) => bytes,
        _ => 0,
    };
    if !whole && done == 0 {
        return Err(call.cut_off_or("vector cut off"));
    }
    let offset = match call.syscall {
        Syscall::Readv | Syscall::Writev => None,
        Syscall::Preadv2 | Syscall::Pwritev2 => Some(call.number(3)?).filter(|at| *at != -1),
        _ => Some(call.number(3)?),
    };
    call.is(Operation::Transfer {
        direction: direction(call.syscall),
        handle: call.descriptor(0)?,
        size: length.max(if whole { 0 } else { done }),
        buffers: u32::try_from(buffers).map_err(|_| NOT_UNDERSTOOD)?,
        offset,
        flags: call.late_flags(4, flags::RWF)?,
    })
}

/// How many bytes a vector has, and whether all of it is there.
fn vector_bytes(text: &[u8]) -> (u64, bool) {
    if !text.starts_with(b"[") {
        return (0, false);
    }
    let (mut bytes, mut whole, mut at) = (0_u64, true, 1);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => match value::skip_string(text, at) {
                Some(end) => at = end,
                None => return (bytes, false),
            },
            // The length is the last of an element.
            b'}' => {
                let element = &text[..at];
                let begin = memchr::memrchr2(b' ', b'=', element).map_or(0, |at| at + 1);
                match value::number(&element[begin..]) {
                    Some(length) => bytes = bytes.saturating_add(length as u64),
                    None => whole = false,
                }
                at += 1;
            }
            // Not the `...` behind a text.
            b'.' if text[..at].ends_with(b", ") && text[at..].starts_with(b"...") => {
                whole = whole && text[..at].ends_with(b"{, ");
                at += 3;
            }
            _ => at += 1,
        }
    }
    (bytes, whole)
}

fn whence(call: &Call<'_, '_>, index: usize) -> Result<Whence, &'static str> {
    let whence = call.flags(index, flags::WHENCE)? as usize;
    Whence::ALL.get(whence).copied().ok_or(NOT_UNDERSTOOD)
}

pub(super) fn seek<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Seek {
        handle: call.descriptor(0)?,
        offset: call.number(1)?,
        whence: whence(call, 2)?,
    })
}

/// `_llseek(3, 0, [100], SEEK_END) = 0`: where it went is in the brackets.
pub(super) fn long_seek<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let operation = Operation::Seek {
        handle: call.descriptor(0)?,
        offset: call.number(1)?,
        whence: whence(call, call.call.count().saturating_sub(1).max(3))?,
    };
    if let Returned::Value(0) = call.call.returned {
        call.call.returned = Returned::Value(call.size(2)?);
    }
    call.is(operation)
}

pub(super) fn truncate<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Truncate {
        target: Target::Handle(call.descriptor(0)?),
        size: call.number(1)?,
    })
}

pub(super) fn allocate<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Allocate {
        handle: call.descriptor(0)?,
        mode: call.flags(1, flags::FALLOCATE)?,
        offset: call.number(2)?,
        size: call.number(3)?,
    })
}

pub(super) fn sync<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let handle = call.descriptor(0)?;
    call.is(Operation::Sync { handle })
}

pub(super) fn sync_all<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::SyncAll)
}

pub(super) fn sync_range<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    sync_range_with(call, [1, 2, 3])
}

pub(super) fn sync_range_flags_first<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    sync_range_with(call, [2, 3, 1])
}

fn sync_range_with<'a>(call: &Call<'_, 'a>, [offset, size, flags]: [usize; 3]) -> Decoded<'a> {
    call.is(Operation::SyncRange {
        handle: call.descriptor(0)?,
        offset: call.number(offset)?,
        size: call.number(size)?,
        flags: call.flags(flags, flags::SYNC_FILE_RANGE)?,
    })
}

pub(super) fn map<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let handle = call.descriptor(4)?;
    if handle.number < 0 {
        return Err("memory without a file");
    }
    let mut offset = call.number(5)?;
    // Before strace 4.7 it counted in pages.
    if call.call.name == b"mmap2" && offset % MMAP2_PAGE_BYTES != 0 {
        offset = offset.saturating_mul(MMAP2_PAGE_BYTES);
    }
    call.is(Operation::Map {
        handle,
        offset,
        size: call.size(1)?,
        protection: call.flags(2, flags::PROTECTION)?,
        flags: call.flags(3, flags::MAP)?,
    })
}

pub(super) fn unmap<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    Ok(Action::Unmap {
        address: call.size(0)?,
        size: call.size(1)?,
    })
}

pub(super) fn remap<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    Ok(Action::Remap {
        address: call.size(0)?,
        size: call.size(1)?,
        new_size: call.size(2)?,
    })
}

pub(super) fn sync_map<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    Ok(Action::SyncMap {
        address: call.size(0)?,
        size: call.size(1)?,
        flags: call.flags(2, flags::MSYNC)?,
    })
}

pub(super) fn stat<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Stat {
        target: Target::Handle(call.descriptor(0)?),
        follow: true,
    })
}

pub(super) fn stat_filesystem<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let target = Target::Handle(call.descriptor(0)?);
    call.is(Operation::StatFilesystem { target })
}

/// The last argument is the size: `getdents(3, /* 5 entries */, 32768)`.
pub(super) fn read_directory<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::ReadDirectory {
        handle: call.descriptor(0)?,
        size: call.size(2)?,
    })
}

pub(super) fn set_mode<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::SetMode {
        target: Target::Handle(call.descriptor(0)?),
        mode: call.flags(1, flags::MODE)?,
    })
}

pub(super) fn set_owner<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::SetOwner {
        target: Target::Handle(call.descriptor(0)?),
        user: call.number(1)? as i32,
        group: call.number(2)? as i32,
    })
}

pub(super) fn advise<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    advise_with(call, [1, 2, 3])
}

pub(super) fn advise_advice_first<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    advise_with(call, [2, 3, 1])
}

fn advise_with<'a>(call: &Call<'_, 'a>, [offset, size, advice]: [usize; 3]) -> Decoded<'a> {
    call.is(Operation::Advise {
        handle: call.descriptor(0)?,
        offset: call.number(offset)?,
        size: call.number(size)?,
        advice: call.flags(advice, flags::ADVICE)?,
    })
}

pub(super) fn read_ahead<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Advise {
        handle: call.descriptor(0)?,
        offset: call.number(1)?,
        size: call.number(2)?,
        advice: flags::WILL_NEED,
    })
}

/// An offset behind a pointer: `[0]`, `[0] => [5]`, or none.
fn offset_at(call: &Call<'_, '_>, index: usize) -> Result<Option<i64>, &'static str> {
    match call.is_null(index) {
        true => Ok(None),
        false => call.number(index).map(Some),
    }
}

pub(super) fn send_file<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Copy {
        from: call.descriptor(1)?,
        from_offset: offset_at(call, 2)?,
        to: call.descriptor(0)?,
        to_offset: None,
        size: call.size(3)?,
    })
}

pub(super) fn copy_range<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Copy {
        from: call.descriptor(0)?,
        from_offset: offset_at(call, 1)?,
        to: call.descriptor(2)?,
        to_offset: offset_at(call, 3)?,
        size: call.size(4)?,
    })
}

pub(super) fn control<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let handle = call.descriptor(0)?;
    let text = call.call.argument(1)?;
    if text.starts_with(b"BINDER_") {
        return Err("binder");
    }
    if text.starts_with(b"ASHMEM_") {
        return Err("ashmem");
    }
    let request = request(text).ok_or("other ioctl")?;
    match (request >> 8) as u8 {
        // drivers/android/binder.c and ashmem's header of Android.
        b'b' if request > 0xffff => Err("binder"),
        0x77 if request > 0xffff => Err("ashmem"),
        _ => match request {
            flags::FIOCLEX | flags::FIONCLEX => Ok(Action::CloseOnExec {
                of: handle,
                on: request == flags::FIOCLEX,
            }),
            _ => call.is(Operation::Control { handle, request }),
        },
    }
}

/// A request by number, by name, by one of several (`SNDCTL_TMR_TIMEBASE or TCGETS`), or in parts
/// (`_IOC(_IOC_READ, 0x62, 0x1, 0x30)`).
fn request(text: &[u8]) -> Option<u32> {
    if let Some(inside) = text.strip_prefix(b"_IOC(") {
        let inside = inside.strip_suffix(b")")?;
        let mut parts = inside.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        let direction = flags::flags(parts.next()?, flags::IOC)?;
        let mut part = || value::number32(parts.next()?);
        let (kind, number, size) = (part()?, part()?, part()?);
        return Some(direction << 30 | (size & 0x3fff) << 16 | (kind & 0xff) << 8 | number & 0xff);
    }
    let words = text
        .split(|byte| *byte == b' ')
        .filter(|word| *word != b"or");
    words
        .filter_map(|word| flags::flags(word, flags::IOCTL))
        .next()
}

/// pipe, socket, eventfd and so on: the new descriptors are in brackets or are the result.
pub(super) fn make_other<'a>(call: &mut split::Call<'a>, kind: DescriptorKind) -> Decoded<'a> {
    let mut descriptors = Vec::new();
    let mut close_on_exec = false;
    let in_brackets = matches!(call.name, b"pipe" | b"pipe2" | b"socketpair");
    for index in 0..call.count() {
        let argument = call.argument(index)?;
        close_on_exec |= memchr::memmem::find(argument, b"CLOEXEC").is_some();
        if let Some(list) = argument.strip_prefix(b"[").filter(|_| in_brackets) {
            let list = list.strip_suffix(b"]").unwrap_or(list);
            let numbers = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            descriptors.extend(numbers.filter_map(value::descriptor).map(|d| d.number));
        }
    }
    if let Returned::Value(number) = call.returned {
        if !in_brackets {
            descriptors.push(number as i32);
        }
    } else {
        descriptors.clear();
    }
    Ok(Action::MakeOther {
        name: String::from_utf8_lossy(call.name),
        kind,
        descriptors,
        close_on_exec,
    })
}
