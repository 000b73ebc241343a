//! Puts the halves of calls together and follows threads through strace's lines.

use std::collections::hash_map::Entry;

use iostep_model::syscall::raw::{Action, Event, Returned};
use rustc_hash::{FxHashMap, FxHashSet};

use super::clock::Clock;
use super::decode::{self, Table};
use super::line::{self, Body};
use super::mixed;
use super::namespaces::Namespaces;
use super::prefix::skip_blanks;
use super::split::{self, CANNOT_BE_READ, Call};
use super::value;
use crate::error::Result;

/// Takes the events.
pub(super) type Each<'e> = &'e mut dyn FnMut(Event<'_>) -> Result<()>;

/// A line that was used and is no call.
const HALF: &str = "half of a call";
const FOLLOWED: &str = "followed";
/// What the program itself wrote, where strace wrote too.
const OUTPUT: &str = "output of the program";
/// Lines that cannot be read and are told with their text; the others are only counted.
const SHOWN: u64 = 10;
/// Of such a line, bytes that are told.
const SHOWN_BYTES: usize = 80;
/// What the times of several texts are exact to, at least: -t writes seconds.
const COARSE_NS: u64 = 1_000_000_000;
/// The thread of lines without a number before any with one.
const NO_NUMBER: u32 = 0;

/// Where a line is from.
#[derive(Clone, Copy)]
pub(super) struct SourceLine<'p> {
    pub(super) file: &'p std::path::Path,
    pub(super) line: u64,
    /// When it was written, since the recording's start.
    pub(super) at_ns: u64,
    pub(super) resolution_ns: u64,
    /// True if the line has a time of its own.
    pub(super) timed: bool,
}

/// A call of which the second half is missing.
struct Pending {
    text: Vec<u8>,
    start_ns: u64,
    begun: Moment,
    /// The child that this clone made, as its first line shows.
    born: Option<u32>,
    /// No other clone can have made that.
    surely: bool,
}

/// Where in the texts something is.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// Of all lines, in their order.
    line: u64,
    at_ns: u64,
}

/// A thread that was told or made a line.
#[derive(Clone, Copy, Debug)]
struct Known {
    since: Moment,
    /// A clone returned its number.
    cloned: bool,
}

/// A write of which only its own output is left to read.
struct Mixed {
    tid: u32,
    text: Vec<u8>,
    start_ns: u64,
    begun: Moment,
}

/// A call of exit or exit_group.
#[derive(Clone, Copy)]
struct Leaving {
    at_ns: u64,
    /// All threads of the process end.
    process: bool,
}

/// What is known of the threads.
pub(super) struct Follow {
    table: Table,
    pending: FxHashMap<u32, Pending>,
    known: FxHashMap<u32, Known>,
    namespaces: Namespaces,
    /// There is one text, whose order is that of what happened.
    one_text: bool,
    /// strace says when a thread ends.
    says_ends: bool,
    now: Moment,
    /// Threads that called exit and of which strace has not said the end.
    leaving: FxHashMap<u32, Leaving>,
    /// The number of the thread whose first lines have none.
    unnumbered: Option<u32>,
    /// Whose line a message tore in two; the next line is its rest.
    torn: Option<u32>,
    /// Whose line before this one was half of a call.
    halved: Option<u32>,
    mixed: Option<Mixed>,
    /// Threads that live, to tell whose line has no number.
    alive: FxHashSet<u32>,
    unreadable: u64,
}

impl Follow {
    /// `one_text`: there are no others to be put in order. `whole`: it begins with the command.
    pub(super) fn new(one_text: bool, whole: bool) -> Follow {
        Follow {
            namespaces: Namespaces::new(whole),
            one_text,
            says_ends: false,
            now: Moment { line: 0, at_ns: 0 },
            table: Table::new(),
            pending: FxHashMap::default(),
            known: FxHashMap::default(),
            leaving: FxHashMap::default(),
            unnumbered: None,
            torn: None,
            halved: None,
            mixed: None,
            alive: FxHashSet::default(),
            unreadable: 0,
        }
    }

    /// Takes a line. `tid` is its thread, if the line or its file's name says so.
    pub(super) fn line(
        &mut self,
        (tid, body): (Option<u32>, Body<'_>),
        place: SourceLine<'_>,
        clock: &mut Clock,
        each: Each<'_>,
    ) -> Result<()> {
        self.now = Moment {
            line: self.now.line + 1,
            at_ns: place.at_ns,
        };
        let halved = self.halved.take();
        if self.is_output(&body, place, clock, each)? {
            return Ok(());
        }
        // With -z and its like strace may write a call with its first half's mark and, in the next line
        // and without anything in front, its end.
        if let (Some(tid), Body::Unreadable(text @ [b')', ..])) = (halved, &body) {
            clock.is_in_whole_calls();
            return self.resumed(tid, (b"", text), place, clock, each);
        }
        if let Body::Unreadable(text) = body {
            return self.rest_of_torn(text, place, clock, each);
        }
        self.torn = None;
        let tid = self.thread(tid, &body, place.at_ns, each)?;
        match body {
            Body::Call(text) => self.call(tid, text, place, clock, each),
            Body::Resumed(name, rest) => self.resumed(tid, (name, rest), place, clock, each),
            Body::Ended => self.ended(tid, place.at_ns, each),
            Body::Superseded(by) => self.superseded(tid, by, place.at_ns, each),
            Body::Attached(child) => {
                if !self.first_line(child, place.at_ns, each)? && self.stranger(child, each)? {
                    self.learn(child, false);
                }
                each(left_out(tid, place.at_ns, b"", "message of strace"))
            }
            Body::Other(reason) => each(left_out(tid, place.at_ns, b"", reason)),
            Body::Unreadable(text) => self.unreadable(text, place, each),
        }
    }

    /// True if the next line may be the rest of another.
    pub(super) fn waits(&self) -> bool {
        self.mixed.is_some() || self.torn.is_some()
    }

    /// True if lines were there that are none of strace's.
    pub(super) fn is_mixed(&self) -> bool {
        self.unreadable > 0
    }

    /// True for the name of a call.
    pub(super) fn knows(&self, name: &[u8]) -> bool {
        self.table.knows(name)
    }

    /// Takes a line of the output of the write under way, or that write's end. False for another.
    fn is_output(
        &mut self,
        body: &Body<'_>,
        place: SourceLine<'_>,
        clock: &mut Clock,
        each: Each<'_>,
    ) -> Result<bool> {
        let Some(mixed) = self.mixed.take() else {
            return Ok(false);
        };
        let text = match body {
            Body::Unreadable(text) => *text,
            Body::Call(text) if split::call(text).is_none() && mixed::torn(text).is_none() => text,
            Body::Other("empty line") => b"",
            _ => {
                each(left_out(mixed.tid, mixed.start_ns, b"", CANNOT_BE_READ))?;
                return Ok(false);
            }
        };
        let torn = mixed::torn(&mixed.text);
        if let (Some(end), Some(torn)) = (mixed::end_of_call(text), &torn) {
            let text = torn.whole(end);
            let Some(mut call) = split::call(&text) else {
                return Ok(false);
            };
            let end_ns = mixed.start_ns.saturating_add(call.duration_ns.unwrap_or(0));
            clock.end(end_ns);
            self.whole(mixed.tid, &mut call, (mixed.start_ns, mixed.begun), each)?;
            return self
                .counted(mixed.tid, place.at_ns, HALF, each)
                .map(|()| true);
        }
        each(left_out(NO_NUMBER, place.at_ns, b"", OUTPUT))?;
        match torn.filter(|_| mixed::goes_on(text)) {
            Some(torn) => {
                let half = torn.half();
                self.begin(mixed.tid, half, mixed.start_ns, each)?;
            }
            None => {
                self.mixed = Some(mixed);
            }
        }
        Ok(true)
    }

    /// A line that is longer than any that is read.
    pub(super) fn too_long(&mut self, place: SourceLine<'_>, each: Each<'_>) -> Result<()> {
        each(left_out(NO_NUMBER, place.at_ns, b"", "line too long"))
    }

    /// A line of the table that counts calls.
    pub(super) fn summary(&mut self, place: SourceLine<'_>, each: Each<'_>) -> Result<()> {
        each(left_out(NO_NUMBER, place.at_ns, b"", "summary of strace"))
    }

    /// A line that is none of strace's, or whose other half is missing.
    pub(super) fn unreadable(
        &mut self,
        text: &[u8],
        place: SourceLine<'_>,
        each: Each<'_>,
    ) -> Result<()> {
        self.unreadable += 1;
        let mut name = String::new();
        if self.unreadable <= SHOWN {
            let shown = &text[..text.len().min(SHOWN_BYTES)];
            let shown = shown.escape_ascii();
            name = format!("{}:{}: {shown}", place.file.display(), place.line);
        }
        each(left_out(
            NO_NUMBER,
            place.at_ns,
            name.as_bytes(),
            CANNOT_BE_READ,
        ))
    }

    /// The rest of a line that a message tore, or a line of nobody's.
    fn rest_of_torn(
        &mut self,
        text: &[u8],
        place: SourceLine<'_>,
        clock: &mut Clock,
        each: Each<'_>,
    ) -> Result<()> {
        match self.torn.take() {
            Some(tid) if text.starts_with(b"<unfinished ...>") => {
                self.counted(tid, place.at_ns, HALF, each)
            }
            Some(tid) => self.resumed(tid, (b"", text), place, clock, each),
            None => self.unreadable(text, place, each),
        }
    }

    /// Whose line it is. strace -f leaves the number out as long as it follows one thread only.
    fn thread(
        &mut self,
        tid: Option<u32>,
        body: &Body<'_>,
        at_ns: u64,
        each: Each<'_>,
    ) -> Result<u32> {
        let Some(tid) = tid else {
            if matches!(body, Body::Call(_)) && self.alive.is_empty() {
                self.alive.insert(NO_NUMBER);
            }
            let only = self.alive.iter().next().filter(|_| self.alive.len() == 1);
            return Ok(only.copied().unwrap_or(NO_NUMBER));
        };
        if self.unnumbered == Some(tid) {
            return Ok(NO_NUMBER);
        }
        if self.known.contains_key(&tid) {
            self.namespaces.seen(tid);
            return Ok(tid);
        }
        let resumes = matches!(body, Body::Resumed(..));
        let had_no_number = self.alive.contains(&NO_NUMBER) && self.unnumbered.is_none();
        if had_no_number && (resumes || !self.first_line(tid, at_ns, each)?) {
            self.unnumbered = Some(tid);
            return Ok(NO_NUMBER);
        }
        if !had_no_number && !resumes && !self.first_line(tid, at_ns, each)? {
            self.stranger(tid, each)?;
        }
        self.learn(tid, false);
        Ok(tid)
    }

    fn learn(&mut self, tid: u32, cloned: bool) {
        let since = self.now;
        self.known.entry(tid).or_insert(Known { since, cloned });
        self.alive.insert(tid);
    }

    /// A thread of which no clone told makes its first line: it is the child of one that returned
    /// the number of another PID namespace. True if there is such.
    fn stranger(&mut self, tid: u32, each: Each<'_>) -> Result<bool> {
        if self.known.contains_key(&tid) {
            return Ok(false);
        }
        let Some(child) = self.namespaces.stranger(tid) else {
            return Ok(false);
        };
        let note = |action| Event {
            action,
            ..exit(tid, self.now.at_ns, false)
        };
        each(note(Action::Renumbered { from: child.told }))?;
        each(note(Action::KnownAs(child.returned)))?;
        self.known.remove(&child.told);
        self.alive.remove(&child.told);
        Ok(true)
    }

    /// A thread shows up. If one clone has not returned yet, it is that one's child, which has to be
    /// known before what the child does. True if it was.
    fn first_line(&mut self, child: u32, at_ns: u64, each: Each<'_>) -> Result<bool> {
        if self.known.contains_key(&child) {
            return Ok(true);
        }
        let surely = self.namespaces.all_seen();
        let mut clones = self
            .pending
            .iter_mut()
            .filter(|(_, pending)| pending.born.is_none() && is_clone(&pending.text));
        let (Some((&parent, pending)), None) = (clones.next(), clones.next()) else {
            return Ok(false);
        };
        let Some(call) = split::call(&pending.text) else {
            return Ok(false);
        };
        let is_fork = matches!(call.name, b"fork" | b"vfork");
        if !is_fork && call.field(b"flags").is_none() {
            // What they share comes with the second half.
            return Ok(false);
        }
        each(Event {
            tid: parent,
            start_ns: pending.start_ns,
            duration_ns: Some(at_ns.saturating_sub(pending.start_ns)),
            action: decode::child_of(&call, child),
            returned: Returned::Value(child.into()),
            seen: None,
        })?;
        pending.born = Some(child);
        pending.surely = surely;
        self.learn(child, false);
        Ok(true)
    }

    fn call(
        &mut self,
        tid: u32,
        text: &[u8],
        place: SourceLine<'_>,
        clock: &mut Clock,
        each: Each<'_>,
    ) -> Result<()> {
        let start_ns = clock.begin(place.at_ns, place.resolution_ns);
        let torn = mixed::torn(text).filter(|_| line::torn(text).is_none());
        let mended = torn.as_ref().and_then(|torn| Some(torn.whole(torn.end?)));
        let text = mended.as_deref().unwrap_or(text);
        let Some(mut call) = split::call(text) else {
            if torn.is_some() {
                self.mixed = Some(Mixed {
                    tid,
                    text: text.to_vec(),
                    start_ns,
                    begun: self.now,
                });
                return Ok(());
            }
            let Some((begin, child)) = line::torn(text) else {
                return self.unreadable(text, place, each);
            };
            let half = [begin, b" <unfinished ...>"].concat();
            self.begin(tid, half, start_ns, each)?;
            self.first_line(child, place.at_ns, each)?;
            self.torn = Some(tid);
            return Ok(());
        };
        if call.goes_on {
            self.halved = Some(tid);
            return self.begin(tid, text.to_vec(), start_ns, each);
        }
        clock.end(start_ns.saturating_add(call.duration_ns.unwrap_or(0)));
        self.whole(tid, &mut call, (start_ns, self.now), each)
    }

    /// The first half of a call. One that was there never came back.
    fn begin(&mut self, tid: u32, text: Vec<u8>, start_ns: u64, each: Each<'_>) -> Result<()> {
        self.give_up(tid, each)?;
        let pending = Pending {
            text,
            start_ns,
            begun: self.now,
            born: None,
            surely: false,
        };
        self.pending.insert(tid, pending);
        Ok(())
    }

    /// Tells a call whose second half will not come.
    fn give_up(&mut self, tid: u32, each: Each<'_>) -> Result<()> {
        let Some(pending) = self.pending.remove(&tid) else {
            return Ok(());
        };
        match split::call(&pending.text) {
            // Its line was told with the child.
            _ if pending.born.is_some() => Ok(()),
            Some(mut call) => self.whole(tid, &mut call, (pending.start_ns, pending.begun), each),
            None => each(left_out(tid, pending.start_ns, b"", CANNOT_BE_READ)),
        }
    }

    fn resumed(
        &mut self,
        tid: u32,
        (name, rest): (&[u8], &[u8]),
        place: SourceLine<'_>,
        clock: &mut Clock,
        each: Each<'_>,
    ) -> Result<()> {
        let known = match self.pending.entry(tid) {
            Entry::Occupied(known) if known.get().text.starts_with(name) => Some(known.remove()),
            _ => None,
        };
        let Some(mut pending) = known else {
            return self.unreadable(rest, place, each);
        };
        let end = memchr::memrchr(b'<', &pending.text).unwrap_or(pending.text.len());
        pending.text.truncate(end);
        pending.text.extend_from_slice(skip_blanks(rest));
        let Some(mut call) = split::call(&pending.text) else {
            if pending.born.is_none() {
                each(left_out(tid, pending.start_ns, b"", CANNOT_BE_READ))?;
            }
            return self.unreadable(rest, place, each);
        };
        if call.goes_on {
            // Half again: `<... read resumed> <unfinished ...>`.
            self.counted(tid, pending.start_ns, HALF, each)?;
            self.pending.insert(tid, pending);
            return Ok(());
        }
        if call.duration_ns.is_none() && place.timed && call.returned != Returned::Unfinished {
            call.duration_ns = Some(place.at_ns.saturating_sub(pending.start_ns));
        }
        clock.end(
            pending
                .start_ns
                .saturating_add(call.duration_ns.unwrap_or(0)),
        );
        self.counted(tid, pending.start_ns, HALF, each)?;
        match pending.born {
            Some(born) => self.born(tid, (&call, &pending), born, each),
            None => self.whole(tid, &mut call, (pending.start_ns, pending.begun), each),
        }
    }

    /// A clone returned whose child was told by its first line.
    fn born(
        &mut self,
        tid: u32,
        (call, pending): (&Call<'_>, &Pending),
        born: u32,
        each: Each<'_>,
    ) -> Result<()> {
        let Returned::Value(returned) = call.returned else {
            return Ok(());
        };
        let returned = returned as u32;
        let child = call.translated.unwrap_or(returned);
        let known = self.known.get(&child);
        let is_other = known.is_none_or(|known| self.is_other_thread(child, known, pending.begun))
            && self.namespaces.is_other(tid, returned);
        if child == born || call.translated.is_none() && pending.surely && is_other {
            if returned != born {
                self.namespaces.translated();
                each(Event {
                    action: Action::KnownAs(returned),
                    ..exit(born, pending.start_ns, false)
                })?;
            }
            return Ok(());
        }
        // The guess was wrong; the line is told with it.
        let mut action = decode::child_of(call, child);
        if let Action::Clone { name, .. } = &mut action {
            *name = "".into();
        }
        each(event(tid, call, pending.start_ns, action))
    }

    /// A call with all that strace says of it.
    fn whole(
        &mut self,
        tid: u32,
        call: &mut Call<'_>,
        (start_ns, begun): (u64, Moment),
        each: Each<'_>,
    ) -> Result<()> {
        match call.name {
            b"exit" | b"exit_group" | b"_exit" => {
                let leaving = Leaving {
                    at_ns: start_ns,
                    process: call.name == b"exit_group",
                };
                if let Some(before) = self.leaving.insert(tid, leaving) {
                    self.counted(tid, before.at_ns, FOLLOWED, each)?;
                }
                return Ok(());
            }
            b"prctl" if call.argument(0) == Ok(b"PR_SET_NAME") => {
                if let Some(name) = call.argument(1).ok().and_then(value::text) {
                    let name = String::from_utf8_lossy(&name.bytes);
                    each(event(tid, call, start_ns, Action::Name(name)))?;
                }
                return self.counted(tid, start_ns, FOLLOWED, each);
            }
            // getpid gives the number of the process's first thread.
            b"gettid" | b"getpid" if call.name == b"gettid" || self.known.len() == 1 => {
                if let Returned::Value(number) = call.returned
                    && number as u32 != tid
                    && tid != NO_NUMBER
                {
                    let known_as = Action::KnownAs(number as u32);
                    each(event(tid, call, start_ns, known_as))?;
                }
            }
            b"readlink" | b"readlinkat" => {
                if let Some(told) = decode::link_says(call) {
                    each(event(tid, call, start_ns, told))?;
                }
            }
            b"getdents" | b"getdents64" => {
                for (path, seen) in decode::entries(call) {
                    each(event(tid, call, start_ns, Action::Tells { path, seen }))?;
                }
            }
            _ => {}
        }
        let mut action = decode::action(&self.table, call);
        let mut known_as = None;
        if let Action::Clone { child, .. } = &mut action {
            known_as = self.cloned(tid, call, child, begun);
            // Its number is used again, so it is gone.
            if let Some(left) = self.leaving.remove(child) {
                each(exit(*child, left.at_ns, left.process))?;
            }
            self.learn(*child, true);
        }
        each(Event {
            seen: decode::seen(call),
            ..event(tid, call, start_ns, action)
        })?;
        match known_as {
            Some((child, number)) => each(Event {
                action: Action::KnownAs(number),
                ..exit(child, start_ns, false)
            }),
            None => Ok(()),
        }
    }

    /// A clone returned: makes `child` the number that the new thread is told by. Gives that, and its
    /// own number if it has another.
    fn cloned(
        &mut self,
        parent: u32,
        call: &Call<'_>,
        child: &mut u32,
        begun: Moment,
    ) -> Option<(u32, u32)> {
        if let (Some(_), Returned::Value(returned)) = (call.translated, call.returned) {
            self.namespaces.translated();
            return Some((*child, returned as u32));
        }
        let returned = *child;
        match self.known.get(child) {
            None => self.namespaces.returned(parent, returned),
            Some(known) if self.is_other_thread(*child, known, begun) => {
                *child = self.namespaces.collided(parent, returned);
                return Some((*child, returned));
            }
            Some(_) => {}
        }
        None
    }

    /// A thread that was there before a clone began cannot be its child, unless it ended.
    fn is_other_thread(&self, tid: u32, known: &Known, begun: Moment) -> bool {
        let before = match self.one_text {
            true => known.since.line < begun.line,
            false => known.since.at_ns.saturating_add(COARSE_NS) < begun.at_ns,
        };
        let ended = self.leaving.contains_key(&tid) || known.cloned && !self.says_ends;
        before && !ended && !self.namespaces.is_unseen(tid)
    }

    fn ended(&mut self, tid: u32, at_ns: u64, each: Each<'_>) -> Result<()> {
        self.says_ends = true;
        self.give_up(tid, each)?;
        if let Some(left) = self.leaving.remove(&tid) {
            self.counted(tid, left.at_ns, FOLLOWED, each)?;
        }
        self.forget(tid);
        each(exit(tid, at_ns, false))
    }

    /// exec by another thread than the first: all others are gone, and it has the first one's
    /// number from now on.
    fn superseded(&mut self, tid: u32, by: u32, at_ns: u64, each: Each<'_>) -> Result<()> {
        self.give_up(tid, each)?;
        if let Some(pending) = self.pending.remove(&by) {
            self.pending.insert(tid, pending);
        }
        self.forget(by);
        self.counted(tid, at_ns, FOLLOWED, each)
    }

    fn forget(&mut self, tid: u32) {
        self.alive.remove(&tid);
        self.known.remove(&tid);
        if tid == NO_NUMBER {
            self.unnumbered = None;
        }
    }

    /// The texts are at their end: tells what was not finished.
    pub(super) fn finish(&mut self, each: Each<'_>) -> Result<()> {
        if let Some(mixed) = self.mixed.take() {
            each(left_out(mixed.tid, mixed.start_ns, b"", CANNOT_BE_READ))?;
        }
        let mut unfinished: Vec<_> = self.pending.iter().map(|(t, p)| (p.start_ns, *t)).collect();
        unfinished.sort_unstable();
        for (_, tid) in unfinished {
            self.give_up(tid, each)?;
        }
        let mut leaving: Vec<_> = self.leaving.drain().collect();
        leaving.sort_unstable_by_key(|(tid, left)| (left.at_ns, *tid));
        for (tid, left) in leaving {
            each(exit(tid, left.at_ns, left.process))?;
        }
        Ok(())
    }

    fn counted(&self, tid: u32, at_ns: u64, reason: &'static str, each: Each<'_>) -> Result<()> {
        each(Event {
            action: Action::Counted { reason },
            ..exit(tid, at_ns, false)
        })
    }
}

pub(super) fn is_clone(text: &[u8]) -> bool {
    let name = &text[..split::name_bytes(text)];
    matches!(
        name,
        b"clone" | b"clone2" | b"__clone2" | b"clone3" | b"fork" | b"vfork"
    )
}

fn event<'a>(tid: u32, call: &Call<'a>, start_ns: u64, action: Action<'a>) -> Event<'a> {
    Event {
        tid,
        start_ns,
        duration_ns: call.duration_ns,
        action,
        returned: call.returned,
        seen: None,
    }
}

fn exit(tid: u32, start_ns: u64, process: bool) -> Event<'static> {
    Event {
        tid,
        start_ns,
        duration_ns: None,
        action: Action::Exit { process },
        returned: Returned::Value(0),
        seen: None,
    }
}

fn left_out<'a>(tid: u32, start_ns: u64, name: &'a [u8], reason: &'static str) -> Event<'a> {
    Event {
        action: decode::left_out(name, reason),
        ..exit(tid, start_ns, false)
    }
}
