//! Texts of strace, of any version since 4.5.
//!
//! A line is who (`[pid N]`, `N`, or the file's name with -ff), when (-t, -tt, -ttt, -r), the
//! call with its arguments, ` = ` and the result, and how long it took (-T). A call during which
//! another thread did something is two lines: `name(... <unfinished ...>` and `<... name
//! resumed>...`. The forms are those of strace's src/strace.c (`printleader`, `print_syscall_resume`)
//! and src/syscall.c; older ones are named where they are read.
//!
//! What a line is not given for: a data buffer's bytes, structures that calls fill in.

mod clock;
mod decode;
mod exported;
mod flags;
mod follow;
mod line;
mod lines;
mod prefix;
mod split;
mod value;

pub use exported::{EXPORTED_MAGIC, export, is_exported, restore};

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use iostep_model::syscall::raw::Returned;
use iostep_model::syscall::{Clock as TraceClock, Header};

use crate::error::{Error, Result};
use crate::import::Input;
use clock::Clock;
use follow::{Each, Follow, Place};
use line::Body;
#[cfg(test)]
use lines::MAX_LINE_BYTES;
use lines::{Line, Lines};
use prefix::{Prefix, SECOND_NS, Since, Time};

/// Texts that were opened. Memory: a window over each, the threads that live, and calls that have
/// not ended.
pub struct Import<'a> {
    sources: Vec<Source<'a>>,
    header: Header,
    /// The time of the first line, on the texts' scale.
    base_ns: u64,
}

/// A text.
struct Source<'a> {
    lines: Lines<'a>,
    /// The thread that strace -ff named the file by.
    tid: Option<u32>,
    clock: Clock,
    current: Option<Line>,
}

/// What a text's first lines say.
#[derive(Default)]
struct Start {
    readable: bool,
    time: Option<Time>,
    command: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Import<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import")
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

/// True if a text begins with lines of strace.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    look(start).readable
}

/// Reads the first lines without keeping them.
fn look(start: &[u8]) -> Start {
    let mut found = Start::default();
    for text in start.split(|byte| *byte == b'\n').take(64) {
        let Some((Prefix { time, .. }, rest)) = prefix::split(text.trim_ascii_end()) else {
            continue;
        };
        let body = line::body(rest);
        let readable = match body {
            Body::Call(text) => split::call(text).is_some(),
            Body::Resumed(..) | Body::Ended | Body::Superseded(_) => true,
            _ => false,
        };
        if !readable {
            continue;
        }
        found.readable = true;
        found.time = found.time.or(time);
        if let Body::Call(text) = body
            && found.command.is_empty()
            && let Some(call) = split::call(text)
            && call.name == b"execve"
            && matches!(call.returned, Returned::Value(_))
        {
            found.command = command(call.argument(1).unwrap_or_default());
        }
    }
    found
}

/// The words of an array of texts.
fn command(array: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(begin) = memchr::memchr(b'"', &array[at..]) {
        let begin = at + begin;
        let Some(end) = value::skip_string(array, begin) else {
            break;
        };
        words.push(value::unescape(&array[begin + 1..end - 1]).into_owned());
        at = end;
    }
    words
}

/// The number in the name that strace -ff gives a file: `NAME.PID`.
fn tid_of_name(path: &Path) -> Option<u32> {
    path.extension()?.to_str()?.parse().ok()
}

impl<'a> Import<'a> {
    /// Opens texts; several are those of one run of strace -ff and are put together by time.
    ///
    /// Errors: `Io`; `Foreign` if no line at the beginning of a text is one of strace, or if
    /// there are several without times.
    pub fn open(inputs: Vec<Input<'a>>) -> Result<Import<'a>> {
        let several = inputs.len() > 1;
        let mut sources = Vec::new();
        let mut header = Header {
            recorder: "strace".into(),
            clock: TraceClock {
                start_wall_ns: None,
                resolution_ns: SECOND_NS,
            },
            ..Header::default()
        };
        let mut first: Option<Time> = None;
        for input in inputs {
            let mut lines = Lines::new(input);
            let bytes = lines.start()?;
            let (start, is_empty) = (look(bytes), bytes.is_empty());
            let time = start.time;
            let foreign = |what: &str, hint| Error::Foreign {
                path: lines.path.clone(),
                what: what.into(),
                hint,
            };
            let may_be_empty = is_empty && several;
            if !start.readable && !may_be_empty {
                return Err(foreign(
                    "no line at its beginning is one of strace",
                    "--format says what it is",
                ));
            }
            let mergeable = time.is_some_and(|time| time.since != Since::LineBefore);
            if several && !mergeable && !is_empty {
                return Err(foreign(
                    "its lines have no times, so several texts cannot be put in order",
                    "record with strace -ff -ttt",
                ));
            }
            if let Some(time) = time
                && first.is_none_or(|first| time.ns < first.ns)
            {
                first = Some(time);
                header.command = start.command;
            } else if first.is_none() {
                header.command = start.command;
            }
            sources.push(Source {
                tid: tid_of_name(&lines.path),
                lines,
                clock: Clock::default(),
                current: None,
            });
        }
        if let Some(time) = first {
            header.clock.resolution_ns = time.resolution_ns;
            if time.since == Since::Year1970 {
                header.clock.start_wall_ns = Some(time.ns.into());
            }
        }
        let base_ns = first.map_or(0, |time| time.ns);
        Ok(Import {
            sources,
            header,
            base_ns,
        })
    }

    /// What made the text.
    pub fn header(&self) -> Header {
        self.header.clone()
    }

    /// Tells the events.
    ///
    /// A line that cannot be read is left out as `cannot be read`, the first ten with where and
    /// what they are as their name. Errors: `each`'s, and `Io`.
    pub fn events(mut self, each: Each<'_>) -> Result<()> {
        let mut follow = Follow::new();
        let resolution_ns = self.header.clock.resolution_ns;
        if let [source] = &mut self.sources[..] {
            while source.advance()? {
                source.tell(&mut follow, self.base_ns, resolution_ns, each)?;
            }
            return follow.finish(each);
        }
        let mut ahead = BinaryHeap::new();
        for (index, source) in self.sources.iter_mut().enumerate() {
            if source.advance()? {
                ahead.push(Reverse((source.order(), index)));
            }
        }
        while let Some(Reverse((_, index))) = ahead.pop() {
            let source = &mut self.sources[index];
            source.tell(&mut follow, self.base_ns, resolution_ns, each)?;
            if source.advance()? {
                ahead.push(Reverse((source.order(), index)));
            }
        }
        follow.finish(each)
    }
}

impl Source<'_> {
    /// Goes to the next line; false at the end.
    fn advance(&mut self) -> Result<bool> {
        self.current = self.lines.next()?;
        Ok(self.current.is_some())
    }

    /// Where the line belongs among those of other texts: when its call ended, or began if it made
    /// a thread, whose own lines may come before the end.
    fn order(&self) -> u64 {
        let Some(Line::Whole(range)) = &self.current else {
            return 0;
        };
        let text = self.lines.bytes(range);
        let Some((prefix, rest)) = prefix::split(text) else {
            return 0;
        };
        let begin = self.clock.clone().at(prefix.time);
        let Body::Call(call) = line::body(rest) else {
            return begin;
        };
        let duration = split::call(call).filter(|_| !follow::is_clone(call));
        begin.saturating_add(duration.and_then(|call| call.duration_ns).unwrap_or(0))
    }

    /// Tells the line.
    fn tell(
        &mut self,
        follow: &mut Follow,
        base_ns: u64,
        resolution_ns: u64,
        each: Each<'_>,
    ) -> Result<()> {
        let mut place = Place {
            file: &self.lines.path,
            line: self.lines.number,
            at_ns: 0,
            resolution_ns,
            timed: false,
        };
        let range = match &self.current {
            Some(Line::Whole(range)) => range,
            Some(Line::TooLong) => return follow.too_long(place, each),
            None => return Ok(()),
        };
        let text = self.lines.bytes(range).trim_ascii_end();
        let Some((prefix, rest)) = prefix::split(text) else {
            return follow.unreadable(text, place, each);
        };
        place.timed = prefix.time.is_some();
        place.at_ns = self.clock.at(prefix.time);
        if place.timed {
            place.at_ns = place.at_ns.saturating_sub(base_ns);
        }
        let body = line::body(rest);
        let tid = prefix.tid.or(self.tid);
        follow.line((tid, body), place, &mut self.clock, each)
    }
}

#[cfg(test)]
mod tests;
