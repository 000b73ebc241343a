//! Arguments in strace's notation.

use std::borrow::Cow;

use iostep_model::syscall::raw::{Action, CURRENT_DIRECTORY, Descriptor, Path, Returned};
use iostep_model::syscall::{Arguments, LockKind, OpenFlags, Reason, Target};

use super::NOT_FILES;
use crate::strace::flags::{self, Names};
use crate::strace::split::{CUT_OFF, Call};
use crate::strace::value;

/// The argument is a pointer: strace could not read it, or was told not to (-e raw).
const POINTER: &str = "path not in the text";
/// A name or form that is not known here.
const NOT_UNDERSTOOD: &str = "arguments not understood";
/// What a page was where mmap2 counts in pages of 4096 bytes (mmap2(2)).
const MMAP2_PAGE_BYTES: i64 = 4096;

/// A call's arguments.
#[derive(Clone, Copy)]
pub(super) struct Text<'c, 'a>(pub(super) &'c Call<'a>);

impl Text<'_, '_> {
    /// True for a null pointer.
    fn is_null(&self, at: usize) -> bool {
        let argument = self.0.argument(at).unwrap_or_default();
        matches!(argument, b"NULL" | b"0" | b"0x0") || argument.starts_with(b"NULL")
    }

    pub(super) fn unreadable(&self) -> Reason {
        self.cut_off_or(NOT_UNDERSTOOD)
    }

    /// What is wrong with the last argument of a call that never ended may be the end.
    fn cut_off_or(&self, reason: Reason) -> Reason {
        match self.0.returned {
            Returned::Unfinished => CUT_OFF,
            _ => reason,
        }
    }

    /// A field of `{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=1}`, whose names have no
    /// `l_` before strace 4.11.
    fn of_lock(&self, name: &[u8]) -> Result<&[u8], Reason> {
        let argument = self.0.argument(2)?;
        value::field(argument, name)
            .or_else(|| value::field(argument, &name[2..]))
            .ok_or(self.unreadable())
    }
}

impl<'a> Arguments<'a> for Text<'_, 'a> {
    const NONSENSE: Reason = NOT_UNDERSTOOD;

    fn number(&self, at: usize) -> Result<i64, Reason> {
        value::number(self.0.argument(at)?).ok_or(self.unreadable())
    }

    fn descriptor(&self, at: usize) -> Result<Descriptor<'a>, Reason> {
        value::descriptor(self.0.argument(at)?).ok_or(self.unreadable())
    }

    fn flags(&self, at: usize, names: Names) -> Result<u32, Reason> {
        flags::flags(self.0.argument(at)?, names).ok_or(self.unreadable())
    }

    fn late_flags(&self, at: usize, names: Names) -> Result<u32, Reason> {
        match self.0.count() > at {
            true => self.flags(at, names),
            false => Ok(0),
        }
    }

    fn open_flags(&self, at: usize) -> Result<OpenFlags, Reason> {
        flags::open(self.0.argument(at)?).ok_or(self.unreadable())
    }

    fn open_mode(&self, at: usize) -> Result<u32, Reason> {
        self.late_flags(at, flags::MODE)
    }

    /// `openat2(AT_FDCWD, "x", {flags=O_RDONLY, resolve=RESOLVE_BENEATH}, 24)`.
    fn how_flags(&self, at: usize) -> Result<OpenFlags, Reason> {
        let flags = value::field(self.0.argument(at)?, b"flags").and_then(flags::open);
        flags.ok_or(self.unreadable())
    }

    fn how_mode(&self, at: usize) -> Result<u32, Reason> {
        let mode = value::field(self.0.argument(at)?, b"mode");
        let mode = mode.and_then(|mode| flags::flags(mode, flags::MODE));
        Ok(mode.unwrap_or(0))
    }

    fn path(&self, at: usize) -> Result<Path<'a>, Reason> {
        let text = value::text(self.0.argument(at)?).ok_or(self.cut_off_or(POINTER))?;
        Ok(Path {
            directory: None,
            text: text.bytes,
            truncated: text.truncated,
        })
    }

    fn path_at(&self, at: usize) -> Result<Path<'a>, Reason> {
        let directory = self.descriptor(at)?;
        let mut path = self.path(at + 1)?;
        // With -y the current directory has a name.
        if directory.number != CURRENT_DIRECTORY || directory.known.is_some() {
            path.directory = Some(directory);
        }
        Ok(path)
    }

    fn path_or_directory(&self, at: usize, _flags: Option<usize>) -> Result<Path<'a>, Reason> {
        self.path_at(at)
    }

    /// That of a directory itself with `AT_EMPTY_PATH`, or without a path at all, which is how the C
    /// library's futimens calls utimensat.
    fn target_at(&self, flags: u32) -> Result<Target<Descriptor<'a>, Path<'a>>, Reason> {
        let directory = self.descriptor(0)?;
        let itself = self.is_null(1)
            || flags & flags::AT_EMPTY_PATH != 0 && self.0.argument(1)?.starts_with(b"\"\"");
        if itself && directory.number != CURRENT_DIRECTORY {
            return Ok(Target::Handle(directory));
        }
        let mut path = self.path_at(0)?;
        if itself && path.text.is_empty() {
            path.text = Cow::Borrowed(b".");
        }
        Ok(Target::Path(path))
    }

    fn timed(&self, flags: usize) -> Result<Target<Descriptor<'a>, Path<'a>>, Reason> {
        self.target_at(self.late_flags(flags, flags::AT)?)
    }

    /// `[{iov_base="...", iov_len=3}, ...]`, or `[{"...", 3}]` in strace before 4.11. What -s cut
    /// off of a long vector is not known: then it is what was done, at least.
    fn vector(&self, at: usize) -> Result<u64, Reason> {
        let (length, whole) = vector_bytes(self.0.argument(at)?);
        let done = match self.0.returned {
            Returned::Value(bytes) => bytes,
            _ => 0,
        };
        match whole {
            true => Ok(length),
            false if done == 0 => Err(self.cut_off_or("vector cut off")),
            false => Ok(length.max(done)),
        }
    }

    /// `[0]`, `[0] => [5]`, or none.
    fn offset_at(&self, at: usize) -> Result<Option<i64>, Reason> {
        match self.is_null(at) {
            true => Ok(None),
            false => self.number(at).map(Some),
        }
    }

    fn mapped(&self, at: usize) -> Result<Descriptor<'a>, Reason> {
        let file = self.descriptor(at)?;
        match file.number < 0 {
            true => Err("memory without a file"),
            false => Ok(file),
        }
    }

    fn map_offset(&self, at: usize) -> Result<i64, Reason> {
        let offset = self.number(at)?;
        // Before strace 4.7 it counted in pages.
        let in_pages = self.0.name == b"mmap2" && offset % MMAP2_PAGE_BYTES != 0;
        Ok(offset.saturating_mul(if in_pages { MMAP2_PAGE_BYTES } else { 1 }))
    }

    fn request(&self, at: usize) -> Result<u32, Reason> {
        let text = self.0.argument(at)?;
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
            _ => Ok(request),
        }
    }

    /// `{src_fd=3, src_offset=0, src_length=4096, dest_offset=0}`.
    fn clone_range(&self, at: usize) -> Result<(Descriptor<'a>, [i64; 3]), Reason> {
        let argument = self.0.argument(at)?;
        let field = |name| value::field(argument, name).ok_or(self.unreadable());
        let from = value::descriptor(field(b"src_fd")?).ok_or(self.unreadable())?;
        let number = |name| value::number(field(name)?).ok_or(self.unreadable());
        let numbers = [
            number(b"src_offset")?,
            number(b"src_length")?,
            number(b"dest_offset")?,
        ];
        Ok((from, numbers))
    }

    /// F_NOTIFY, F_GETOWN and others change no descriptor and no file.
    fn command(&self, at: usize) -> Result<u32, Reason> {
        flags::flags(self.0.argument(at)?, flags::FCNTL).ok_or(NOT_FILES)
    }

    fn other_command(&self, _command: u32) -> Reason {
        NOT_FILES
    }

    fn record_lock(&self, kind: LockKind) -> Result<(u32, i64, i64), Reason> {
        let number = |name| value::number(self.of_lock(name)?).ok_or(self.unreadable());
        let lock = flags::flags(self.of_lock(b"l_type")?, flags::LOCK);
        let lock = lock.ok_or(self.unreadable())?;
        if flags::flags(self.of_lock(b"l_whence")?, flags::WHENCE) != Some(0) {
            return Err("lock counted from another place");
        }
        let (offset, size) = (number(b"l_start")?, number(b"l_len")?);
        // strace shows the answer. What finds a lock of any kind finds the one that was asked for.
        match kind {
            LockKind::Query => Ok((flags::F_WRLCK, offset, size)),
            _ => Ok((lock, offset, size)),
        }
    }
}

/// How many bytes a vector has, and whether all of it is there.
pub(super) fn vector_bytes(text: &[u8]) -> (u64, bool) {
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

/// What the link said that a readlink read, if the text and the program's buffer have all of it.
pub(in crate::strace) fn link_says<'a>(call: &Call<'a>) -> Option<Action<'a>> {
    let text = Text(call);
    let (path, next) = match call.name {
        b"readlink" => (text.path(0), 1),
        b"readlinkat" => (text.path_at(0), 2),
        _ => return None,
    };
    let Returned::Value(length) = call.returned else {
        return None;
    };
    let content = value::text(call.argument(next).ok()?)?;
    let whole = !content.truncated && content.bytes.len() as u64 == length;
    let room = text.size(next + 1).ok()? > length;
    (whole && room && length > 0).then_some(Action::LinkSays {
        path: path.ok()?,
        content: content.bytes,
    })
}
