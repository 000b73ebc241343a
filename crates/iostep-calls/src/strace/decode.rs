//! What a call's text asks for, by the call's name.

mod descriptors;
mod files;
mod names;
mod processes;

use iostep_model::syscall::raw::{Action, CURRENT_DIRECTORY, Descriptor, Path, Returned};
use iostep_model::syscall::{Operation, Syscall};

use super::flags::{self, Names};
use super::split::{CUT_OFF, Call};
use super::value;

pub(super) use files::link_says;
pub(super) use names::Table;
pub(super) use processes::child_of;

/// The argument is a pointer: strace could not read it, or was told not to (-e raw).
const POINTER: &str = "path not in the text";
/// A name or form that is not known here.
const NOT_UNDERSTOOD: &str = "arguments not understood";
/// It is about files, and a trace has no operation for it.
pub(super) const OTHER_FILE_CALL: &str = "other call on files";
/// The call says nothing of files.
pub(super) const NOT_FILES: &str = "not about files";
/// strace was older than the call, and wrote its number.
const NAMELESS: &str = "call without a name";
/// No program sees these results: the kernel makes the call again, which is a line of its own, or
/// gives `EINTR` (`ERESTARTSYS` to `ERESTART_RESTARTBLOCK`, include/linux/errno.h).
const RESTARTED: &str = "interrupted by a signal";
const RESTARTS: std::ops::RangeInclusive<i32> = 512..=516;

/// What a call was, or the ledger's reason to leave it out.
type Decoded<'a> = Result<Action<'a>, &'static str>;
type FileOperation<'a> = Operation<Descriptor<'a>, Path<'a>>;

/// A call under its name of today.
struct Named<'c, 'a> {
    syscall: Syscall,
    call: &'c mut Call<'a>,
}

impl<'a> Named<'_, 'a> {
    fn is(&self, operation: FileOperation<'a>) -> Decoded<'a> {
        Ok(Action::Operation(self.syscall, operation))
    }

    fn descriptor(&self, index: usize) -> Result<Descriptor<'a>, &'static str> {
        let argument = self.call.argument(index)?;
        value::descriptor(argument).ok_or(self.unreadable())
    }

    fn number(&self, index: usize) -> Result<i64, &'static str> {
        value::number(self.call.argument(index)?).ok_or(self.unreadable())
    }

    fn size(&self, index: usize) -> Result<u64, &'static str> {
        self.number(index).map(|number| number as u64)
    }

    fn flags(&self, index: usize, names: Names) -> Result<u32, &'static str> {
        let argument = self.call.argument(index)?;
        flags::flags(argument, names).ok_or(self.unreadable())
    }

    /// Flags that older versions of the call do not have.
    fn late_flags(&self, index: usize, names: Names) -> Result<u32, &'static str> {
        match self.call.count() > index {
            true => self.flags(index, names),
            false => Ok(0),
        }
    }

    /// A path that starts at the current directory.
    fn path(&self, index: usize) -> Result<Path<'a>, &'static str> {
        let argument = self.call.argument(index)?;
        let text = value::text(argument).ok_or(self.pointer())?;
        Ok(Path {
            directory: None,
            text: text.bytes,
            truncated: text.truncated,
        })
    }

    /// A path that starts at the directory in the argument before it.
    fn path_at(&self, index: usize) -> Result<Path<'a>, &'static str> {
        let directory = self.descriptor(index)?;
        let mut path = self.path(index + 1)?;
        // With -y the current directory has a name.
        if directory.number != CURRENT_DIRECTORY || directory.known.is_some() {
            path.directory = Some(directory);
        }
        Ok(path)
    }

    /// True for a null pointer.
    fn is_null(&self, index: usize) -> bool {
        let argument = self.call.argument(index).unwrap_or_default();
        matches!(argument, b"NULL" | b"0" | b"0x0") || argument.starts_with(b"NULL")
    }

    fn pointer(&self) -> &'static str {
        self.cut_off_or(POINTER)
    }

    fn unreadable(&self) -> &'static str {
        self.cut_off_or(NOT_UNDERSTOOD)
    }

    /// What is wrong with the last argument of a call that never ended may be the end.
    fn cut_off_or(&self, reason: &'static str) -> &'static str {
        match self.call.returned {
            Returned::Unfinished => CUT_OFF,
            _ => reason,
        }
    }
}

/// The call's action, and what it returned in the trace's terms, which is set in `call`.
pub(super) fn action<'a>(table: &Table, call: &mut Call<'a>) -> Action<'a> {
    let name = call.name;
    let decoded = match (table.get(name), call.returned) {
        (Some(_), Returned::Failed(errno)) if RESTARTS.contains(&errno.0) => Err(RESTARTED),
        (Some(decoder), _) => decoder.decode(call),
        (None, _) if name.starts_with(b"SYS_") || name.starts_with(b"syscall_") => Err(NAMELESS),
        (None, _) => Err(NOT_FILES),
    };
    decoded.unwrap_or_else(|reason| left_out(name, reason))
}

/// A line of which no call comes.
pub(super) fn left_out<'a>(name: &'a [u8], reason: &'static str) -> Action<'a> {
    Action::LeftOut {
        name: String::from_utf8_lossy(name),
        reason,
    }
}
