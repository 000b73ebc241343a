//! Reads a trace out of the text that it was exported as.

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::Path;

use iostep_model::syscall::raw::{self, Action, Descriptor, Returned};
use iostep_model::syscall::text::{MAGIC, MAX_LINE_BYTES, Reader, write_call};
use iostep_model::syscall::{
    Call, HandleId, Operation, Outcome, PathId, Paths, ThreadId, Translate,
};

use super::{CALL, DECLARATION, EXPORTED_MAGIC, FIRST_DESCRIPTOR};
use crate::error::Result;
use crate::strace::decode::{self, Table};
use crate::strace::{line::Body, line::body, prefix, split};

/// Wall clocks in this range stand before calls; others, and none, are left out of the lines.
const WALL_NS: std::ops::Range<i128> = 100_000_000_000_000_000..9_000_000_000_000_000_000;
/// Larger numbers before a call are times.
const MAX_TID: u32 = 99_999_999;

/// True if a text is a trace that was exported.
pub fn is_exported(start: &[u8]) -> bool {
    let rest = start.strip_prefix(EXPORTED_MAGIC.as_bytes());
    rest.is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'\n'))
}

/// The trace that was exported as `text`, which is called `path` in errors. Each line of it is one
/// of the trace's, so that a line's number in an error is that of both.
///
/// Errors: those of [`Reader::new`]; a line that is none of an export's is an error of the reader's
/// later.
pub fn restore(path: &Path, text: impl BufRead + Send + 'static) -> Result<Reader> {
    let lines = Restored {
        text,
        restorer: Restorer::default(),
        line: Vec::new(),
        out: String::new(),
        told: 0,
    };
    Ok(Reader::new(path, Box::new(lines))?)
}

/// The trace's text, made of the exported one as it is read.
struct Restored<R> {
    text: R,
    restorer: Restorer,
    line: Vec<u8>,
    /// A line of the trace, and how much of it was told.
    out: String,
    told: usize,
}

impl<R: BufRead> Read for Restored<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.told == self.out.len() && !self.next_line()? {
            return Ok(0);
        }
        let mut rest = &self.out.as_bytes()[self.told..];
        let bytes = rest.read(into)?;
        self.told += bytes;
        Ok(bytes)
    }
}

impl<R: BufRead> Restored<R> {
    fn next_line(&mut self) -> std::io::Result<bool> {
        self.line.clear();
        let mut limited = (&mut self.text).take(MAX_LINE_BYTES as u64 + 2);
        if limited.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        let ended = self.line.pop_if(|last| *last == b'\n').is_some();
        self.told = 0;
        self.out = self.restorer.line(&self.line);
        if ended {
            self.out.push('\n');
        }
        Ok(true)
    }
}

/// Knows what the declarations say of threads and times.
pub(super) struct Restorer {
    table: Table,
    /// Threads by their number on the recorded machine, if no other had the same.
    threads: HashMap<u32, Option<ThreadId>>,
    tids: HashMap<ThreadId, u32>,
    base_ns: u64,
}

impl Default for Restorer {
    fn default() -> Restorer {
        Restorer {
            table: Table::new(),
            threads: HashMap::new(),
            tids: HashMap::new(),
            base_ns: 0,
        }
    }
}

impl Restorer {
    /// The trace's line that a line was exported from. One that is none stays as it is, so that
    /// the trace's reader can say where it is.
    fn line(&mut self, line: &[u8]) -> String {
        let text = String::from_utf8_lossy(line);
        if text == EXPORTED_MAGIC {
            return MAGIC.to_owned();
        }
        if text.starts_with(DECLARATION) {
            self.declare(&text[1..]);
            return text[1..].to_owned();
        }
        if let Some(own) = text.strip_prefix(CALL) {
            return own.to_owned();
        }
        match text.is_empty() || text.starts_with('#') {
            true => text.into_owned(),
            false => self.call(line).unwrap_or_else(|| text.into_owned()),
        }
    }

    /// Takes a declaration, with its `@`.
    pub(super) fn declare(&mut self, line: &str) {
        let mut words = line.split(' ');
        let kind = words.next();
        let value = |name: &str| {
            let mut found = words.clone().filter_map(|word| word.strip_prefix(name));
            found.next()
        };
        match kind {
            Some("@clock") => {
                let wall = value("wall=").and_then(|wall| wall.parse::<i128>().ok());
                let wall = wall.filter(|wall| WALL_NS.contains(wall));
                self.base_ns = wall.and_then(|wall| wall.try_into().ok()).unwrap_or(0);
            }
            Some("@thread") => {
                let tid = value("tid=").and_then(|tid| tid.parse::<u32>().ok());
                let thread = value("t").and_then(|thread| thread.parse().ok());
                if let (Some(tid), Some(thread)) = (tid, thread.map(ThreadId)) {
                    let known = self.threads.entry(tid);
                    known
                        .and_modify(|known| *known = None)
                        .or_insert(Some(thread));
                    self.tids.insert(thread, tid);
                }
            }
            _ => {}
        }
    }

    /// What stands for the beginning of the recording before calls.
    pub(super) fn base_ns(&self) -> u64 {
        self.base_ns
    }

    /// The number that stands before a thread's calls, if it is nobody else's.
    pub(super) fn tid(&self, thread: ThreadId) -> Option<u32> {
        let tid = self.tids.get(&thread).copied()?;
        let only = self.threads.get(&tid).copied().flatten() == Some(thread);
        (only && tid <= MAX_TID).then_some(tid)
    }

    /// The trace's line of strace's.
    pub(super) fn call(&self, line: &[u8]) -> Option<String> {
        let (prefix, rest) = prefix::split(line)?;
        let Body::Call(text) = body(rest) else {
            return None;
        };
        let mut call = split::call(text)?;
        let Action::Operation(syscall, operation) = self.action(&mut call)? else {
            return None;
        };
        let mut paths = Paths::default();
        let operation = operation.translate(&mut Names { paths: &mut paths }).ok()?;
        let makes = matches!(
            operation,
            Operation::Open { .. } | Operation::Duplicate { .. }
        );
        let outcome = match call.returned {
            Returned::Value(number) if makes => Outcome::Handle(handle(number.try_into().ok()?)?),
            Returned::Value(number) => Outcome::Value(number.try_into().ok()?),
            Returned::Failed(errno) => Outcome::Failed(errno),
            Returned::Unfinished => Outcome::Unfinished,
            Returned::Unknown => return None,
        };
        let call = Call {
            start_ns: prefix.time?.ns.checked_sub(self.base_ns)?,
            duration_ns: call.duration_ns,
            thread: self.threads.get(&prefix.tid?).copied().flatten()?,
            syscall,
            operation,
            outcome,
        };
        let mut own = String::new();
        write_call(&call, &paths, &mut own);
        Some(own)
    }

    fn action<'a>(&self, call: &mut split::Call<'a>) -> Option<Action<'a>> {
        match decode::action(&self.table, call) {
            Action::Duplicate { syscall, from, .. } => {
                let operation = Operation::Duplicate {
                    handle: from,
                    replaces: None,
                };
                Some(Action::Operation(syscall, operation))
            }
            action @ Action::Operation(..) => Some(action),
            _ => None,
        }
    }
}

fn handle(descriptor: i64) -> Option<HandleId> {
    let number = u32::try_from(descriptor - FIRST_DESCRIPTOR).ok()?;
    (number > 0).then_some(HandleId(number))
}

/// Descriptors are open files, paths are absolute.
struct Names<'p> {
    paths: &'p mut Paths,
}

impl Translate<Descriptor<'_>, raw::Path<'_>, HandleId, PathId> for Names<'_> {
    type Error = ();

    fn handle(&mut self, descriptor: Descriptor<'_>) -> std::result::Result<HandleId, ()> {
        handle(descriptor.number.into()).ok_or(())
    }

    fn path(&mut self, path: raw::Path<'_>) -> std::result::Result<PathId, ()> {
        match path.directory {
            None => Ok(self.paths.intern(&path.text)),
            Some(_) => Err(()),
        }
    }

    fn content(&mut self, content: raw::Path<'_>) -> std::result::Result<PathId, ()> {
        Ok(self.paths.intern(&content.text))
    }
}
