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
mod merge;
mod mixed;
mod namespaces;
mod prefix;
mod split;
mod summary;
mod value;

use std::path::Path;

use iostep_model::printable::BYTE_ORDER_MARK;
use iostep_model::syscall::raw::Returned;
use iostep_model::syscall::{Clock as TraceClock, Header};

use rustc_hash::FxHashSet;

use crate::error::{Error, Result};
use crate::input::Input;
use clock::{Clock, Written};
use follow::{Each, Follow, SourceLine};
use line::Body;
#[cfg(test)]
use lines::MAX_LINE_BYTES;
use lines::{Line, Lines};
use merge::{About, Merge};
use prefix::{Prefix, SECOND_NS, Since, Time};
use summary::Summary;

/// Remarks on the times of a text; more say nothing new.
const MOST_REMARKS: usize = 10;

/// Texts that were opened. Memory: a window over each, the threads that live, and calls that have
/// not ended.
pub struct Import<'a> {
    sources: Vec<Source<'a>>,
    header: Header,
    /// The time of the first line, on the texts' scale.
    base_ns: u64,
    /// The text of the thread that all others were made by, if that is known.
    root: Option<usize>,
}

struct Source<'a> {
    lines: Lines<'a>,
    start: Start,
    /// The thread that strace -ff named the file by.
    tid: Option<u32>,
    clock: Clock,
    current: Option<Line>,
    /// When the line was written, on the scale of all; none if it does not say.
    at_ns: Option<u64>,
    /// What is to be said of its time.
    remarks: Vec<String>,
    summary: Summary,
}

/// Tells when the lines of a text were written.
struct Times<'s> {
    clock: &'s mut Clock,
    remarks: &'s mut Vec<String>,
    /// The text and the line.
    place: (&'s Path, u64),
    /// Where the recording begins, on the scale of all texts.
    base_ns: u64,
}

impl Times<'_> {
    /// When a line was written, on the scale of all; none if it does not say, or is none of strace's: a
    /// program's output may have times of its own. `back_ns` is how far the clock was set back at least.
    fn of(&mut self, prefix: Prefix, rest: &[u8], back_ns: u64) -> Option<u64> {
        let time = prefix.time?;
        if matches!(line::body(rest), Body::Unreadable(_)) {
            return None;
        }
        let half = rest.starts_with(b"<... ") || rest.ends_with(b"<unfinished ...>");
        let duration_ns = match half {
            true => None,
            false => split::duration(rest),
        };
        let written = Written {
            time,
            tid: prefix.tid,
            duration_ns,
            half,
        };
        let (at_ns, step) = self.clock.next(written, back_ns, self.base_ns);
        if let Some(step) = step
            && self.remarks.len() < MOST_REMARKS
        {
            let (path, line) = self.place;
            self.remarks
                .push(format!("{}:{line}: {step}", path.display()));
        }
        Some(at_ns)
    }
}

/// What a text's first lines say.
#[derive(Default)]
struct Start {
    empty: bool,
    readable: bool,
    /// The first line has its thread's number.
    numbered: bool,
    time: Option<Time>,
    /// What stands before its first call.
    prefix: Prefix,
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
    look(start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start)).readable
}

/// Reads the first lines without keeping them.
fn look(start: &[u8]) -> Start {
    let mut found = Start {
        empty: start.is_empty(),
        ..Start::default()
    };
    for text in start.split(|byte| *byte == b'\n').take(64) {
        let Some((prefix, rest)) = prefix::split(text.trim_ascii_end()) else {
            continue;
        };
        let Prefix { tid, time } = prefix;
        let body = line::body(rest);
        let readable = match body {
            Body::Call(text) => split::call(text).is_some(),
            Body::Resumed(..) | Body::Ended | Body::Superseded(_) => true,
            _ => false,
        };
        if !readable {
            continue;
        }
        if !found.readable {
            found.prefix = prefix;
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

/// The text of the thread that begins with the command, if there are several, each of one thread, and
/// clones are in them: the earliest of those that none of these made. The clock may have been set back
/// before others began.
fn root(sources: &mut [Source<'_>]) -> Result<Option<usize>> {
    if sources.len() < 2 {
        return Ok(None);
    }
    let mut made = FxHashSet::default();
    for source in &mut *sources {
        if source.start.numbered || source.tid.is_none() {
            return Ok(None);
        }
        source.clock.is_of_one_thread();
        made.extend(merge::made(source.lines.start()?));
    }
    if made.is_empty() {
        return Ok(None);
    }
    let sources = sources.iter().enumerate();
    let others = sources.filter(|(_, source)| {
        !source.start.empty && source.tid.is_some_and(|tid| !made.contains(&tid))
    });
    let first = others.min_by_key(|(_, source)| source.begins_ns());
    let root = first.filter(|(_, source)| !source.start.command.is_empty());
    Ok(root.map(|(index, _)| index))
}

/// True for a line that cannot be read as it is.
fn is_none_of_straces(rest: &[u8], follow: &Follow) -> bool {
    match line::body(rest) {
        Body::Call(text) => match split::call(text) {
            Some(call) => follow.is_mixed() && !follow.knows(call.name),
            None => mixed::torn(text).is_none() && line::torn(text).is_none(),
        },
        Body::Unreadable(_) => true,
        _ => false,
    }
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
        let root = root(&mut sources)?;
        // One without a time is alone.
        let earliest = sources
            .iter()
            .filter(|source| !source.start.empty)
            .min_by_key(|source| source.begins_ns());
        let first = root.map(|root| &sources[root]).or(earliest);
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
            root,
        })
    }

    /// What made the text.
    pub fn header(&self) -> Header {
        self.header.clone()
    }

    /// Tells the events.
    ///
    /// A line that cannot be read is left out as `cannot be read`, the first ten with where and
    /// what they are as their name. Gives what is to be said of the text's times. Errors: `each`'s, and
    /// `Io`.
    pub fn events(mut self, each: Each<'_>) -> Result<Vec<String>> {
        let mut follow = Follow::new(self.sources.len() == 1, !self.header.command.is_empty());
        let resolution_ns = self.header.clock.resolution_ns;
        let base_ns = self.base_ns;
        if let [source] = &mut self.sources[..] {
            while source.advance()? {
                source.tell(&mut follow, base_ns, resolution_ns, each)?;
            }
            follow.finish(each)?;
            return Ok(std::mem::take(&mut source.remarks));
        }
        let numbers = self.sources.iter().map(|source| source.tid);
        let mut merge = Merge::new(numbers, self.root.is_some());
        // How far the clock was set back, as the text says that says most.
        let mut back_ns = 0;
        for (index, source) in self.sources.iter_mut().enumerate() {
            if source.advance_beside_others(back_ns, base_ns)? {
                merge.begins(index, source.order(), self.root == Some(index));
            }
        }
        while let Some(index) = merge.next() {
            let source = &mut self.sources[index];
            let about = match self.root {
                Some(_) => source.about(),
                None => About::Nobody,
            };
            if let About::Ended(number) = about
                && merge.waits_for(index, number)
            {
                continue;
            }
            let before = matches!(about, About::Made(_)).then(|| source.clock.clone());
            source.tell(&mut follow, base_ns, resolution_ns, each)?;
            if let (About::Made(number), Some(before)) = (about, before)
                && let Some(child) = merge.born(number)
            {
                let child_source = &mut self.sources[child];
                child_source.begin_after(before, back_ns, base_ns);
                merge.goes_on(child, child_source.order());
            }
            if let About::Ended(number) = about
                && let Some(ended) = merge.ended(number)
            {
                let clock = self.sources[ended].clock.clone();
                self.sources[index].clock.goes_on_after(&clock);
            }
            let source = &mut self.sources[index];
            let goes_on = source.advance_beside_others(back_ns, base_ns)?;
            back_ns = back_ns.max(source.clock.back_ns());
            if goes_on {
                merge.goes_on(index, source.order());
                continue;
            }
            for waited in merge.ends(index) {
                merge.goes_on(waited, self.sources[waited].order());
            }
        }
        follow.finish(each)?;
        let remarks = self.sources.into_iter();
        Ok(remarks.flat_map(|source| source.remarks).collect())
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
            at_ns: None,
            remarks: Vec::new(),
            summary: Summary::default(),
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
        self.at_ns = None;
        Ok(self.current.is_some())
    }

    /// The same of one of several texts, with its time. `back_ns` is how far the clock was set back at
    /// least.
    fn advance_beside_others(&mut self, back_ns: u64, base_ns: u64) -> Result<bool> {
        self.advance()?;
        self.time(back_ns, base_ns);
        Ok(self.current.is_some())
    }

    /// Finds the line's time.
    fn time(&mut self, back_ns: u64, base_ns: u64) {
        if let Some(Line::Whole(range)) = &self.current {
            let text = self.lines.bytes(range).trim_ascii_end();
            let place = (self.lines.path.as_path(), self.lines.number);
            let mut times = Times {
                clock: &mut self.clock,
                remarks: &mut self.remarks,
                place,
                base_ns,
            };
            let split = prefix::split(text);
            self.at_ns = split.and_then(|(prefix, rest)| times.of(prefix, rest, back_ns));
        }
    }

    /// What the line says of other threads.
    fn about(&self) -> About {
        match &self.current {
            Some(Line::Whole(range)) => merge::about(self.lines.bytes(range).trim_ascii_end()),
            _ => About::Nobody,
        }
    }

    /// The thread was made when the clock of another was so: its first line is behind that.
    fn begin_after(&mut self, clock: Clock, back_ns: u64, base_ns: u64) {
        self.clock = clock;
        self.clock.begins_thread();
        self.remarks.clear();
        self.time(back_ns, base_ns);
    }

    /// Where the line belongs among those of other texts: when its call ended, or began if it made
    /// a thread, whose own lines may come before the end.
    fn order(&self) -> u64 {
        let Some(Line::Whole(range)) = &self.current else {
            return 0;
        };
        let text = self.lines.bytes(range);
        let (Some((_, rest)), Some(begin)) = (prefix::split(text), self.at_ns) else {
            return 0;
        };
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
        if self.summary.has(text) {
            return follow.summary(place, each);
        }
        let Some((mut prefix, mut rest)) = prefix::split(text) else {
            return follow.unreadable(text, place, each);
        };
        if !follow.waits() && is_none_of_straces(rest, follow) {
            let known = |name: &[u8]| follow.knows(name);
            if let Some(behind) = mixed::behind_output(text, self.start.prefix, &known) {
                (prefix, rest) = behind;
            }
        }
        let mut times = Times {
            clock: &mut self.clock,
            remarks: &mut self.remarks,
            place: (&self.lines.path, self.lines.number),
            base_ns,
        };
        let at_ns = self.at_ns.or_else(|| times.of(prefix, rest, 0));
        place.timed = at_ns.is_some();
        place.at_ns = match at_ns {
            Some(at_ns) => at_ns.saturating_sub(base_ns),
            None => self.clock.at(None),
        };
        let body = line::body(rest);
        let tid = prefix.tid.or(self.tid);
        follow.line((tid, body), place, &mut self.clock, each)
    }
}

#[cfg(test)]
mod tests;
