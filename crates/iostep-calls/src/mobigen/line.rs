//! One line of a script.

use iostep_model::syscall::text::unquote;
use iostep_model::syscall::{OpenFlags, Syscall};

/// A line, and why its call is left out if it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) start_ns: u64,
    pub(super) thread: u32,
    pub(super) call: Result<Call, &'static str>,
}

/// A call. `result` is what it returned: -1 for every failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Open {
        syscall: Syscall,
        /// With a `/` at the end if only the directory is known.
        path: Box<[u8]>,
        flags: OpenFlags,
        result: i64,
    },
    Path {
        syscall: Syscall,
        path: Box<[u8]>,
        result: i64,
    },
    Descriptor {
        syscall: Syscall,
        number: i32,
        result: i64,
    },
    Transfer {
        syscall: Syscall,
        number: i32,
        offset: Option<i64>,
        /// Bytes that were read or written.
        size: u64,
    },
}

const CANNOT_BE_READ: &str = "cannot be read";
const OUT_OF_RANGE: &str = "number out of range";
/// The call failed, and the size that was asked for is nowhere.
const FAILED: &str = "failed, size unknown";
const MADE_UP: &str = "open made up by MobiGen";
const PATH_LOST: &str = "path not in the script";
const OTHER_CALL: &str = "other call";

impl Line {
    /// A line of which nothing is known.
    pub(super) fn unreadable(reason: &'static str) -> Line {
        Line {
            start_ns: 0,
            thread: 0,
            call: Err(reason),
        }
    }
}

/// True for two numbers, a name and something more.
pub(super) fn has_form(line: &[u8]) -> bool {
    let mut words = words(line);
    let digits = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let name = |word: &[u8]| word.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    words.next().is_some_and(digits)
        && words.next().is_some_and(digits)
        && words.next().is_some_and(name)
        && words.next().is_some()
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = line.split(u8::is_ascii_whitespace);
    words.filter(|word| !word.is_empty())
}

/// Reads a line without the blanks at its ends.
pub(super) fn parse(line: &[u8]) -> Line {
    if line.is_empty() {
        return Line::unreadable("empty line");
    }
    let mut fields = line.splitn(4, u8::is_ascii_whitespace);
    let mut field = || fields.next().unwrap_or_default();
    let (thread, time, name, rest) = (field(), field(), field(), field());
    if !has_form(line) {
        return Line::unreadable(CANNOT_BE_READ);
    }
    let thread = number::<u32>(thread);
    let time = number::<u64>(time).and_then(|us| us.checked_mul(1000).ok_or(OUT_OF_RANGE));
    match (thread, time) {
        (Ok(thread), Ok(start_ns)) => Line {
            start_ns,
            thread,
            call: call(name, rest),
        },
        (Err(reason), _) | (_, Err(reason)) => Line::unreadable(reason),
    }
}

/// A number in decimal. Too many digits are another matter than no digits.
fn number<T: std::str::FromStr>(word: &[u8]) -> Result<T, &'static str> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(CANNOT_BE_READ);
    }
    let text = std::str::from_utf8(word).map_err(|_| CANNOT_BE_READ)?;
    text.parse().map_err(|_| OUT_OF_RANGE)
}

fn call(name: &[u8], rest: &[u8]) -> Result<Call, &'static str> {
    let (arguments, result) = last_word(rest);
    let result = number::<i64>(result)?;
    let name = std::str::from_utf8(name).map_err(|_| CANNOT_BE_READ)?;
    match name {
        "open" | "open64" => open(arguments, result),
        "openat" => openat(arguments, result),
        "access" => on_path(Syscall::Access, arguments, result),
        "stat" | "stat64" => on_path(Syscall::Stat, arguments, result),
        "lstat" | "lstat64" => on_path(Syscall::Lstat, arguments, result),
        "statfs" | "statfs64" => on_path(Syscall::Statfs, arguments, result),
        "unlink" => on_path(Syscall::Unlink, arguments, result),
        "fstat" | "fstat64" => on_descriptor(Syscall::Fstat, arguments, result),
        "fstatfs" | "fstatfs64" => on_descriptor(Syscall::Fstatfs, arguments, result),
        "close" => on_descriptor(Syscall::Close, arguments, result),
        "fsync" => on_descriptor(Syscall::Fsync, arguments, result),
        "fdatasync" => on_descriptor(Syscall::Fdatasync, arguments, result),
        "read" => transfer(Syscall::Read, arguments, result),
        "readv" => transfer(Syscall::Readv, arguments, result),
        "write" => transfer(Syscall::Write, arguments, result),
        "writev" => transfer(Syscall::Writev, arguments, result),
        "pread" | "pread64" => transfer_at(Syscall::Pread64, arguments, result),
        "preadv" => transfer_at(Syscall::Preadv, arguments, result),
        "pwrite" | "pwrite64" => transfer_at(Syscall::Pwrite64, arguments, result),
        "pwritev" => transfer_at(Syscall::Pwritev, arguments, result),
        // Their first argument is a directory's descriptor, and MobiGen takes no more than that.
        "faccessat" | "faccessat2" | "fstatat64" | "newfstatat" | "unlinkat" | "statx" => {
            Err(PATH_LOST)
        }
        _ => Err(OTHER_CALL),
    }
}

/// What is before the last word, and the last word.
fn last_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii();
    match text.iter().rposition(u8::is_ascii_whitespace) {
        Some(at) => (text[..at].trim_ascii(), &text[at + 1..]),
        None => (&[], text),
    }
}

/// A path in quotes. MobiGen takes a `...` away, so what strace cut off cannot be told.
fn quoted(text: &[u8]) -> Result<Box<[u8]>, &'static str> {
    let path = unquote(text).ok_or(CANNOT_BE_READ)?;
    Ok(path.into())
}

fn open(arguments: &[u8], result: i64) -> Result<Call, &'static str> {
    let (path, flags) = last_word(arguments);
    let flags = std::str::from_utf8(flags).map_err(|_| CANNOT_BE_READ)?;
    let flags: OpenFlags = flags.parse().map_err(|_| CANNOT_BE_READ)?;
    let path = if path.starts_with(b"\"") {
        quoted(path)?
    } else if path.is_empty() {
        return Err(CANNOT_BE_READ);
    } else if path.starts_with(b"/") {
        // Only those that MobiGen makes up are absolute without quotes.
        return Err(MADE_UP);
    } else if path.starts_with(b"dev/") {
        // Devices lie no deeper than what is left of the path.
        [b"/", path].concat().into()
    } else {
        [b"/", path, b"/"].concat().into()
    };
    let syscall = Syscall::Open;
    Ok(Call::Open {
        syscall,
        path,
        flags,
        result,
    })
}

fn openat(arguments: &[u8], result: i64) -> Result<Call, &'static str> {
    let path = arguments.strip_prefix(b"/").ok_or(CANNOT_BE_READ)?;
    Ok(Call::Open {
        syscall: Syscall::Openat,
        path: quoted(path.trim_ascii())?,
        flags: super::LOST_FLAGS,
        result,
    })
}

fn on_path(syscall: Syscall, arguments: &[u8], result: i64) -> Result<Call, &'static str> {
    let path = quoted(arguments)?;
    Ok(Call::Path {
        syscall,
        path,
        result,
    })
}

fn on_descriptor(syscall: Syscall, arguments: &[u8], result: i64) -> Result<Call, &'static str> {
    let number = number(arguments)?;
    Ok(Call::Descriptor {
        syscall,
        number,
        result,
    })
}

fn transfer(syscall: Syscall, arguments: &[u8], result: i64) -> Result<Call, &'static str> {
    let number = number(arguments)?;
    Ok(Call::Transfer {
        syscall,
        number,
        offset: None,
        size: u64::try_from(result).map_err(|_| FAILED)?,
    })
}

fn transfer_at(syscall: Syscall, arguments: &[u8], result: i64) -> Result<Call, &'static str> {
    let (descriptor, offset) = last_word(arguments);
    let (descriptor, offset) = (number(descriptor)?, number(offset)?);
    Ok(Call::Transfer {
        syscall,
        number: descriptor,
        offset: Some(offset),
        size: u64::try_from(result).map_err(|_| FAILED)?,
    })
}
