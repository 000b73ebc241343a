//! The arguments of a call, in the words that the table of operations gives them.

use std::fmt::{Display, Write};
use std::str::FromStr;

use super::super::identity::{HandleId, PathId, ThreadId};
use super::super::operation::{OperationKind, operations};
use super::super::recording::Paths;
use super::super::{Direction, LockKind, OpenFlags, Operation, Syscall, Target, Whence};
use super::escape::quote;
use super::fields::{Fault, Fields, handle, thread};
use crate::names::UnknownName;

type Op = Operation<HandleId, PathId>;

macro_rules! word {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $word:literal) => {
        $word
    };
}

macro_rules! codec {
    ($($(#[$about:meta])* $variant:ident $({
        $($(#[$is:meta])* $field:ident: $type:ty as $kind:ident $($word:literal)?,)+
    })?;)+) => {
        fn write_fields(operation: &Op, out: &mut Written<'_>) {
            match operation {
                $(Operation::$variant $({ $($field,)+ })? => {
                    $($(out.$kind(word!($field $($word)?), $field);)+)?
                })+
            }
        }

        fn read_fields(kind: OperationKind, from: &mut Read<'_, '_>) -> Result<Op, Fault> {
            Ok(match kind {
                $(OperationKind::$variant => Operation::$variant $({
                    $($field: from.$kind(word!($field $($word)?))?,)+
                })?,)+
            })
        }
    };
}
operations!(codec);

/// unlinkat with `AT_REMOVEDIR` has this word behind its path.
const DIRECTORY: &str = "directory";

/// Appends the arguments, each after a blank.
pub(super) fn write(operation: &Op, syscall: Syscall, paths: &Paths, out: &mut String) {
    let whole = false;
    write_fields(operation, &mut Written { paths, out, whole });
    let either = matches!(syscall, Syscall::Unlinkat | Syscall::UringUnlinkat);
    if either && matches!(operation, Operation::RemoveDirectory { .. }) {
        out.extend([" ", DIRECTORY]);
    }
}

/// Reads what [`write`] wrote for this call.
pub(super) fn read(
    syscall: Syscall,
    fields: &mut Fields<'_>,
    paths: &mut Paths,
) -> Result<Op, Fault> {
    use OperationKind as K;
    use Syscall as S;
    let kind = match syscall {
        S::Present if fields.has("path") => K::Open,
        S::Present if fields.has("whence") => K::Seek,
        _ if syscall.operation() == K::Open && !fields.has("path") => K::Reopen,
        // An exec may leave a shared table of descriptors for one of its own.
        S::Execve if fields.has("child") => K::Inherit,
        S::Fcntl if fields.has("of") => K::Lock,
        S::Fcntl if fields.has("set") || fields.flag("get") => K::StatusFlags,
        S::Ioctl if fields.has("from_offset") => K::Reflink,
        S::Unlinkat | S::UringUnlinkat if fields.flag(DIRECTORY) => K::RemoveDirectory,
        other => other.operation(),
    };
    let mut from = Read {
        syscall,
        fields,
        paths,
    };
    read_fields(kind, &mut from)
}

/// Writes fields by their kinds.
struct Written<'a> {
    paths: &'a Paths,
    out: &'a mut String,
    /// A lock of a whole file, which has no range.
    whole: bool,
}

// Writing to a string cannot fail. `_name`: a field that has no word before its value.
impl Written<'_> {
    fn number(&mut self, name: &str, value: &impl Display) {
        let _ = write!(self.out, " {name}={value}");
    }

    fn word(&mut self, word: &str, present: bool) {
        if present {
            let _ = write!(self.out, " {word}");
        }
    }

    fn handle(&mut self, _name: &str, handle: &HandleId) {
        let _ = write!(self.out, " h{}", handle.0);
    }

    fn handles(&mut self, name: &str, handles: &[HandleId]) {
        handles.iter().for_each(|handle| self.handle(name, handle));
    }

    fn replaced(&mut self, name: &str, handle: &Option<HandleId>) {
        if let Some(handle) = handle {
            self.number(name, &format_args!("h{}", handle.0));
        }
    }

    fn thread(&mut self, name: &str, thread: &ThreadId) {
        self.number(name, &format_args!("t{}", thread.0));
    }

    fn path(&mut self, name: &str, path: &PathId) {
        let _ = write!(self.out, " {name}=");
        quote(self.paths.get(*path), self.out);
    }

    fn content(&mut self, name: &str, content: &PathId) {
        self.path(name, content);
    }

    fn target(&mut self, _name: &str, target: &Target<HandleId, PathId>) {
        self.source("path", target);
    }

    /// Like a target, but its path has the field's own word.
    fn source(&mut self, name: &str, target: &Target<HandleId, PathId>) {
        match target {
            Target::Handle(handle) => self.handle(name, handle),
            Target::Path(path) => self.path(name, path),
        }
    }

    /// The call's name says it.
    fn direction(&mut self, _name: &str, _direction: &Direction) {}

    fn open_flags(&mut self, name: &str, flags: &OpenFlags) {
        self.number(name, flags);
    }

    fn status_flags(&mut self, name: &str, flags: &Option<OpenFlags>) {
        match flags {
            Some(flags) => self.number(name, flags),
            None => self.word("get", true),
        }
    }

    fn mode(&mut self, name: &str, mode: &u32) {
        // The 0 in front is what says that it is octal, however long it is.
        self.number(name, &format_args!("0{mode:03o}"));
    }

    fn hex(&mut self, name: &str, flags: &u32) {
        self.number(name, &format_args!("0x{flags:x}"));
    }

    fn some_hex(&mut self, name: &str, flags: &u32) {
        if *flags != 0 {
            self.hex(name, flags);
        }
    }

    fn buffers(&mut self, name: &str, buffers: &u32) {
        if *buffers != 1 {
            self.number(name, buffers);
        }
    }

    fn offset(&mut self, name: &str, offset: &Option<i64>) {
        if let Some(offset) = offset {
            self.number(name, offset);
        }
    }

    fn whence(&mut self, name: &str, whence: &Whence) {
        self.number(name, whence);
    }

    fn follow(&mut self, _name: &str, follow: &bool) {
        self.word("nofollow", !follow);
    }

    fn wait(&mut self, name: &str, wait: &bool) {
        self.word(name, *wait);
    }

    fn lock_kind(&mut self, name: &str, kind: &LockKind) {
        self.whole = *kind == LockKind::Whole;
        self.number(name, kind);
    }

    fn lock_range(&mut self, name: &str, value: &i64) {
        if !self.whole {
            self.number(name, value);
        }
    }
}

/// Reads fields by their kinds, as [`Written`] writes them.
struct Read<'a, 'w> {
    syscall: Syscall,
    fields: &'a mut Fields<'w>,
    paths: &'a mut Paths,
}

impl Read<'_, '_> {
    fn named(&mut self, name: &str) -> Result<&str, Fault> {
        let value = self.fields.named(name);
        value.ok_or_else(|| format!("{name}= is missing"))
    }

    fn number<T: TryFrom<i128>>(&mut self, name: &str) -> Result<T, Fault> {
        self.fields.number(name)
    }

    fn handle(&mut self, _name: &str) -> Result<HandleId, Fault> {
        self.fields.handle()
    }

    fn handles(&mut self, _name: &str) -> Result<Box<[HandleId]>, Fault> {
        std::iter::from_fn(|| self.fields.next().map(handle)).collect()
    }

    fn replaced(&mut self, name: &str) -> Result<Option<HandleId>, Fault> {
        self.fields.named(name).map(handle).transpose()
    }

    fn thread(&mut self, name: &str) -> Result<ThreadId, Fault> {
        thread(self.named(name)?)
    }

    fn path(&mut self, name: &str) -> Result<PathId, Fault> {
        Ok(self.paths.intern(&self.fields.bytes(name)?))
    }

    fn content(&mut self, name: &str) -> Result<PathId, Fault> {
        self.path(name)
    }

    fn target(&mut self, _name: &str) -> Result<Target<HandleId, PathId>, Fault> {
        self.source("path")
    }

    fn source(&mut self, name: &str) -> Result<Target<HandleId, PathId>, Fault> {
        match self.fields.has(name) {
            true => self.path(name).map(Target::Path),
            false => self.handle(name).map(Target::Handle),
        }
    }

    fn direction(&mut self, _name: &str) -> Result<Direction, Fault> {
        Ok(self.syscall.direction())
    }

    fn open_flags(&mut self, name: &str) -> Result<OpenFlags, Fault> {
        let flags = self.named(name)?.parse();
        flags.map_err(|unknown| format!("{unknown}: no flag of open(2)"))
    }

    fn status_flags(&mut self, name: &str) -> Result<Option<OpenFlags>, Fault> {
        let set = self.fields.has(name);
        set.then(|| self.open_flags(name)).transpose()
    }

    fn mode(&mut self, name: &str) -> Result<u32, Fault> {
        self.number(name)
    }

    fn hex(&mut self, name: &str) -> Result<u32, Fault> {
        self.number(name)
    }

    fn some_hex(&mut self, name: &str) -> Result<u32, Fault> {
        Ok(self.fields.optional(name)?.unwrap_or(0))
    }

    fn buffers(&mut self, name: &str) -> Result<u32, Fault> {
        Ok(self.fields.optional(name)?.unwrap_or(1))
    }

    fn offset(&mut self, name: &str) -> Result<Option<i64>, Fault> {
        self.fields.optional(name)
    }

    fn parsed<T: FromStr<Err = UnknownName>>(&mut self, name: &str) -> Result<T, Fault> {
        let value = self.named(name)?.parse();
        value.map_err(|unknown: UnknownName| unknown.to_string())
    }

    fn whence(&mut self, name: &str) -> Result<Whence, Fault> {
        self.parsed(name)
    }

    fn follow(&mut self, _name: &str) -> Result<bool, Fault> {
        Ok(!self.fields.flag("nofollow"))
    }

    fn wait(&mut self, name: &str) -> Result<bool, Fault> {
        Ok(self.fields.flag(name))
    }

    fn lock_kind(&mut self, name: &str) -> Result<LockKind, Fault> {
        self.parsed(name)
    }

    fn lock_range(&mut self, name: &str) -> Result<i64, Fault> {
        Ok(self.fields.optional(name)?.unwrap_or(0))
    }
}
