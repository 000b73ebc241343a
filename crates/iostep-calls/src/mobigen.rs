//! Replay scripts of MobiGen: the text that Mobibench's `-g` takes.
//!
//! A line is a thread's number from 0, microseconds since the script's start, a call's name, its
//! arguments, and what it returned, with blanks between. The script is sorted by thread. MobiGen
//! (Mobibench's MobiGen/mobigen.rb) makes it of strace's text and drops much on the way:
//!
//! | call | arguments | returned |
//! |---|---|---|
//! | `open` read-only | path in quotes, flags | descriptor |
//! | `open` for writing | the first two directories, without quotes; flags | descriptor |
//! | `open` with `/data/data`, without quotes | made up by MobiGen for a descriptor without an open | descriptor |
//! | `openat` | `/`; the path in quotes where the flags belong | descriptor |
//! | `access`, `stat`, `lstat`, `unlink` and others | path in quotes | 0, -1 |
//! | `read`, `write`, `readv`, `writev` | descriptor | bytes, -1 |
//! | `pread`, `pwrite` | descriptor, offset | bytes, -1 |
//! | `close`, `fsync`, `fdatasync`, `fstat` | descriptor | 0, -1 |
//!
//! So sizes are what was done, not what was asked for; error numbers, modes, processes and what
//! descriptors are (pipe, socket) are gone. All threads are taken for one process, as MobiGen does.

mod line;
mod sort;

use std::borrow::Cow;
use std::io::{BufRead, Read};

use iostep_model::syscall::raw::{Action, Descriptor, Event, Path, Returned};
use iostep_model::syscall::{Clock, Direction, Header, OpenFlags, Operation, Syscall, Target};

use crate::error::{Error, Result};
use crate::input::Input;
use line::{Call, Line};
use sort::{PART_BYTES, Sorted, Sorter};

/// The longest line that is read, bytes; MobiGen's are below 200. Longer ones are counted.
pub const MAX_LINE_BYTES: u64 = 64 << 10;
/// The name that a file gets whose own the script does not have, with a number behind it.
const UNNAMED: &str = "iostep.name-lost";

/// A script, which is sorted by thread and has to be told by time.
#[derive(Debug)]
pub struct Import {
    lines: Sorted,
}

/// True if the first lines of a text are lines of a script.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    let cut = start.len() >= crate::input::GUESS_BYTES;
    let mut lines = start.split(|byte| *byte == b'\n').collect::<Vec<_>>();
    if cut {
        lines.pop();
    }
    let mut lines = lines.iter().filter(|line| !line.trim_ascii().is_empty());
    let first = lines.next();
    first.is_some_and(|line| line::has_form(line)) && lines.all(|line| line::has_form(line))
}

impl Import {
    /// Reads scripts, one after the other.
    ///
    /// Memory: 16 MiB at most; what is more lies in a temporary file. Errors: `Io`; `Foreign` if no
    /// line of an input can be read.
    pub fn open(inputs: Vec<Input<'_>>) -> Result<Import> {
        let mut sorter = Sorter::new(PART_BYTES);
        for input in inputs {
            read(input, &mut sorter)?;
        }
        let lines = sorter.finish()?;
        Ok(Import { lines })
    }

    /// What made the script.
    pub fn header(&self) -> Header {
        Header {
            recorder: "mobigen".into(),
            clock: Clock {
                start_wall_ns: None,
                resolution_ns: 1000,
            },
            ..Header::default()
        }
    }

    /// Tells the events.
    ///
    /// Errors: `each`'s, and `Io`.
    pub fn events(mut self, each: &mut dyn FnMut(Event<'_>) -> Result<()>) -> Result<()> {
        let mut threads = std::collections::HashSet::new();
        let mut first = None;
        let mut lost_names = 0;
        while let Some(text) = self.lines.next()? {
            let Line {
                start_ns,
                thread,
                call,
            } = text.map_or_else(|| Line::unreadable("line too long"), line::parse);
            let call = match call {
                Ok(call) => call,
                Err(reason) => {
                    each(event(thread, start_ns, left_out(reason), Returned::Unknown))?;
                    continue;
                }
            };
            let parent = *first.get_or_insert(thread);
            if thread != parent && threads.insert(thread) {
                let note = Action::Clone {
                    name: "".into(),
                    child: thread,
                    thread: true,
                    shares_descriptors: true,
                    shares_directory: true,
                };
                each(event(parent, start_ns, note, Returned::Unknown))?;
            }
            let (action, returned) = action(&call, &mut lost_names);
            each(event(thread, start_ns, action, returned))?;
        }
        Ok(())
    }
}

/// Reads one script.
fn read(mut input: Input<'_>, sorter: &mut Sorter) -> Result<()> {
    let mut text = Vec::new();
    let mut readable = false;
    loop {
        text.clear();
        let mut limited = input.text.by_ref().take(MAX_LINE_BYTES + 1);
        let read = limited.read_until(b'\n', &mut text);
        let bytes = read.map_err(|source| Error::Io {
            path: input.path.clone(),
            what: "read",
            source,
        })?;
        if bytes == 0 {
            break;
        }
        if bytes as u64 > MAX_LINE_BYTES {
            skip_line(&mut input, &text)?;
            sorter.push(0, None)?;
            continue;
        }
        let text = text.trim_ascii();
        let line = line::parse(text);
        readable |= line.call.is_ok();
        // What happened in the same microsecond stays in the order of the text.
        sorter.push(line.start_ns, Some(text))?;
    }
    if readable {
        return Ok(());
    }
    Err(Error::Foreign {
        path: input.path,
        what: "no line is one of a MobiGen script".into(),
        hint: "--format says what it is",
    })
}

/// Goes to the end of a line whose beginning was read.
fn skip_line(input: &mut Input<'_>, begun: &[u8]) -> Result<()> {
    if begun.ends_with(b"\n") {
        return Ok(());
    }
    let skipped = input.text.skip_until(b'\n');
    skipped.map(drop).map_err(|source| Error::Io {
        path: input.path.clone(),
        what: "read",
        source,
    })
}

fn event<'a>(tid: u32, start_ns: u64, action: Action<'a>, returned: Returned) -> Event<'a> {
    Event {
        tid,
        start_ns,
        duration_ns: None,
        action,
        returned,
        seen: None,
    }
}

fn left_out(reason: &'static str) -> Action<'static> {
    Action::LeftOut {
        name: "".into(),
        reason,
    }
}

/// What a line's call was, and how it ended.
fn action<'a>(call: &'a Call, lost_names: &mut u32) -> (Action<'a>, Returned) {
    let returned = |result: i64| match u64::try_from(result) {
        Ok(value) => Returned::Value(value),
        // It failed, but with what is not in the script.
        Err(_) => Returned::Unknown,
    };
    match call {
        Call::Open {
            syscall,
            path,
            flags,
            result,
        } => {
            let operation = Operation::Open {
                path: named(path, lost_names),
                flags: *flags,
                mode: 0o600,
            };
            (Action::Operation(*syscall, operation), returned(*result))
        }
        Call::Path {
            syscall,
            path,
            result,
        } => {
            let operation = on_path(*syscall, plain(path));
            (Action::Operation(*syscall, operation), returned(*result))
        }
        Call::Descriptor {
            syscall,
            number,
            result,
        } => {
            let operation = on_descriptor(*syscall, Descriptor::number(*number));
            (Action::Operation(*syscall, operation), returned(*result))
        }
        Call::Transfer {
            syscall,
            number,
            offset,
            size,
        } => {
            let writes = matches!(
                syscall,
                Syscall::Write | Syscall::Pwrite64 | Syscall::Writev | Syscall::Pwritev
            );
            let operation = Operation::Transfer {
                direction: match writes {
                    true => Direction::Write,
                    false => Direction::Read,
                },
                handle: Descriptor::number(*number),
                size: *size,
                buffers: 1,
                offset: *offset,
                flags: 0,
            };
            (
                Action::Operation(*syscall, operation),
                Returned::Value(*size),
            )
        }
    }
}

fn on_path<'a>(syscall: Syscall, path: Path<'a>) -> Operation<Descriptor<'a>, Path<'a>> {
    match syscall {
        Syscall::Unlink => Operation::Unlink { path },
        Syscall::Access => Operation::Access {
            target: Target::Path(path),
            mode: 0,
        },
        Syscall::Statfs => Operation::StatFilesystem {
            target: Target::Path(path),
        },
        _ => Operation::Stat {
            target: Target::Path(path),
            follow: syscall != Syscall::Lstat,
        },
    }
}

fn on_descriptor<'a>(
    syscall: Syscall,
    handle: Descriptor<'a>,
) -> Operation<Descriptor<'a>, Path<'a>> {
    match syscall {
        Syscall::Close => Operation::Close { handle },
        Syscall::Fstat => Operation::Stat {
            target: Target::Handle(handle),
            follow: true,
        },
        Syscall::Fstatfs => Operation::StatFilesystem {
            target: Target::Handle(handle),
        },
        _ => Operation::Sync { handle },
    }
}

fn plain(text: &[u8]) -> Path<'_> {
    Path {
        directory: None,
        text: Cow::Borrowed(text),
        truncated: false,
    }
}

/// The path of an open. One that ends in `/` lost its last part: the file gets a name of its own,
/// since opening the directory itself for writing cannot have worked.
fn named<'a>(path: &'a [u8], lost_names: &mut u32) -> Path<'a> {
    if !path.ends_with(b"/") || path == b"/" {
        return plain(path);
    }
    *lost_names += 1;
    let name = format!("{UNNAMED}-{lost_names}");
    Path {
        text: Cow::Owned([path, name.as_bytes()].concat()),
        ..plain(path)
    }
}

/// The flags of an open whose flags the script does not have: nothing is destroyed.
const LOST_FLAGS: OpenFlags = OpenFlags::O_RDWR;

#[cfg(test)]
mod tests;
