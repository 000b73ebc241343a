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
mod flags;
mod follow;
mod line;
mod lines;
mod prefix;
mod split;
mod value;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use iostep_model::syscall::raw::Returned;
use iostep_model::syscall::{Clock as TraceClock, Header};

use crate::error::{Error, Result};
use crate::input::Input;
use clock::Clock;
use follow::{Each, Follow, SourceLine};
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

struct Source<'a> {
    lines: Lines<'a>,
    start: Start,
    /// The thread that strace -ff named the file by.
    tid: Option<u32>,
    clock: Clock,
    current: Option<Line>,
}

/// What a text's first lines say.
#[derive(Default)]
struct Start {
    empty: bool,
    readable: bool,
    /// The first line has its thread's number.
    numbered: bool,
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
    let mut found = Start {
        empty: start.is_empty(),
        ..Start::default()
    };
    for text in start.split(|byte| *byte == b'\n').take(64) {
        let Some((Prefix { tid, time }, rest)) = prefix::split(text.trim_ascii_end()) else {
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
        found.numbered |= !found.readable && tid.is_some();
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

/// The number in the name that strace -ff gives a file: `NAME.PID`, whatever was put behind it.
fn tid_of_name(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_string_lossy();
    name.rsplit('.').find_map(|part| part.parse().ok())
}

impl<'a> Import<'a> {
    /// Opens texts; several are those of one run of strace -ff and are put together by time.
    ///
    /// Errors: `Io`; `Foreign` if no line at the beginning of a text is one of strace, or if
    /// there are several and nothing says when a line was written, or by which thread.
    pub fn open(inputs: Vec<Input<'a>>) -> Result<Import<'a>> {
        let texts = inputs.len();
        let opened = inputs.into_iter().map(|input| Source::open(input, texts));
        let mut sources = opened.collect::<Result<Vec<_>>>()?;
        let mut header = Header {
            recorder: "strace".into(),
            clock: TraceClock {
                start_wall_ns: None,
                resolution_ns: SECOND_NS,
            },
            ..Header::default()
        };
        let latest_ns = sources.iter().filter_map(Source::begins_ns).max();
        for source in &mut sources {
            if let Some(Time { ns, since, .. }) = source.start.time
                && since == Since::Midnight
            {
                source.clock.begin_at(ns, latest_ns.unwrap_or(0));
            }
        }
        // One without a time is alone.
        let first = sources
            .iter()
            .filter(|source| !source.start.empty)
            .min_by_key(|source| source.begins_ns());
        let mut base_ns = 0;
        if let Some(first) = first {
            header.command.clone_from(&first.start.command);
            base_ns = first.begins_ns().unwrap_or(0);
            if let Some(time) = first.start.time {
                header.clock.resolution_ns = time.resolution_ns;
                if time.since == Since::Year1970 {
                    header.clock.start_wall_ns = Some(time.ns.into());
                }
            }
        }
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

impl<'a> Source<'a> {
    /// Opens one of `texts`.
    fn open(input: Input<'a>, texts: usize) -> Result<Source<'a>> {
        let mut lines = Lines::new(input, texts);
        let start = look(lines.start()?);
        let source = Source {
            tid: tid_of_name(&lines.path),
            lines,
            start,
            clock: Clock::default(),
            current: None,
        };
        let Some((what, hint)) = source.refusal(texts > 1) else {
            return Ok(source);
        };
        Err(Error::Foreign {
            path: source.lines.path,
            what: what.into(),
            hint,
        })
    }

    /// Why a text cannot be read, and what to do.
    fn refusal(&self, several: bool) -> Option<(&'static str, &'static str)> {
        let Start {
            empty,
            readable,
            numbered,
            time,
            ..
        } = self.start;
        // A thread that made no call.
        if several && empty {
            return None;
        }
        if !readable {
            let what = "no line at its beginning is one of strace";
            return Some((what, "--format says what it is"));
        }
        if several && time.is_none_or(|time| time.since == Since::LineBefore) {
            let what = "its lines have no times, so several texts cannot be put in order";
            return Some((what, "record with strace -ff -ttt"));
        }
        if several && !numbered && self.tid.is_none() {
            let what = "nothing says which thread it is of";
            return Some((what, "name it NAME.PID, as strace -ff does"));
        }
        None
    }

    /// When its first line was written, on the scale of all.
    fn begins_ns(&self) -> Option<u64> {
        let time = self.start.time?;
        Some(self.clock.clone().at(Some(time)))
    }

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
        let mut place = SourceLine {
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
