//! Records the system calls of a program and of what it starts.
//!
//! A recorder writes [`record`]s into a [`spool`] while the program runs, which must not wait for
//! more; [`Recorded::events`] makes [`iostep_model::syscall::raw::Event`]s of them afterwards.
//! [`bpf`] is the recorder that costs least. What to record of each call is `table`'s, what it
//! means `action`'s: every recorder shares them.

mod action;
pub mod bpf;
mod files;
pub mod keeper;
mod notes;
pub mod present;
pub mod ptrace;
mod received;
pub mod record;
mod requests;
pub mod spool;
pub mod table;

use std::borrow::Cow;
use std::collections::HashMap;

use iostep_model::syscall::raw::{Action, Event, Path, Returned};

use crate::error::Error;
use keeper::Keeper;
use present::Present;
use record::Record;

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The next process that the calling thread starts, from its first exec on.
    NextChild,
    /// A process that runs already, by its number, and what it starts from now on.
    Process(u32),
}

/// A recording that ended, not yet told.
#[derive(Debug)]
pub struct Recorded {
    /// The records, in the order in which the calls ended.
    pub spool: spool::Reader,
    /// What was open before.
    pub present: Present,
    /// `CLOCK_MONOTONIC` at the recording's time 0, nanoseconds.
    pub start_mono_ns: u64,
    /// The wall clock at the same moment, nanoseconds since 1970.
    pub start_wall_ns: i128,
    /// `CLOCK_MONOTONIC` when `present` was complete: what calls that ended before did is in it.
    pub present_since_ns: u64,
    /// Records that were lost, for whatever reason.
    pub lost: u64,
    /// What files held before, if that was kept.
    pub kept: Option<Keeper>,
}

impl Recorded {
    /// Tells the events, first those that say what was open already. They can be told once.
    ///
    /// Errors: `each`'s, and `Io` if the spool cannot be read.
    pub fn events<E: From<Error>>(
        &mut self,
        each: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let kept = self.kept.as_ref();
        let each: &mut dyn FnMut(Event<'_>) -> Result<(), E> = &mut |mut event| {
            if let (Some(kept), Some(seen)) = (kept, &mut event.seen) {
                kept.tell(seen);
            }
            each(event)
        };
        let mut present = Some(std::mem::take(&mut self.present));
        if let Some(attached) = present.take_if(|present| present.process.is_some()) {
            attached.events(0, 0, each)?;
        }
        let mut bytes = Vec::new();
        let mut interrupted = Interrupted::default();
        let mut names = requests::Names::default();
        while self.spool.next(&mut bytes)? {
            let Some(record) = Record::parse(&bytes) else {
                continue;
            };
            if record.number == record::REQUEST_NAMES {
                names.add(&record, &bytes);
                continue;
            }
            let told = names.take(&record);
            let record = requests::named(record, told.as_deref());
            if record.start_ns.saturating_add(record.duration_ns) < self.present_since_ns {
                continue;
            }
            // A thread that polls a ring goes on while another is in a call.
            let before = match record.number {
                record::REQUEST => None,
                _ => interrupted.take(record.tid),
            };
            if let Some(mut before) = before {
                before.end(&record);
                before.tell(self.start_mono_ns, each)?;
            }
            if record.is_restarted() && record.number != record::REQUEST {
                interrupted.0.insert(record.tid, bytes.clone());
                continue;
            }
            let start_ns = record.start_ns.saturating_sub(self.start_mono_ns);
            each_of(&record, start_ns, each)?;
            if record.number == record::EXEC
                && let Some(inherited) = present.take()
            {
                inherited.events(record.tid, start_ns, each)?;
            }
        }
        for (_, bytes) in interrupted.0 {
            Held { bytes, died: false }.tell(self.start_mono_ns, each)?;
        }
        Ok(())
    }
}

/// Calls that a signal ended, by thread, until it is known whether the signal was the thread's end.
#[derive(Debug, Default)]
struct Interrupted(HashMap<u32, Vec<u8>>);

impl Interrupted {
    fn take(&mut self, tid: u32) -> Option<Held> {
        // Nearly always there is none.
        if self.0.is_empty() {
            return None;
        }
        let bytes = self.0.remove(&tid)?;
        Some(Held { bytes, died: false })
    }
}

/// A call that a signal ended.
#[derive(Debug)]
struct Held {
    bytes: Vec<u8>,
    died: bool,
}

impl Held {
    /// What its thread did next says what the signal did.
    fn end(&mut self, next: &Record<'_>) {
        self.died = next.number == record::EXIT;
    }

    fn tell<E>(
        &self,
        start_mono_ns: u64,
        each: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(mut record) = Record::parse(&self.bytes) else {
            return Ok(());
        };
        if self.died {
            record.flags |= record::UNFINISHED;
        }
        each_of(&record, record.start_ns.saturating_sub(start_mono_ns), each)
    }
}

/// The events of one record: one, but for an exec that changes the thread's number.
fn each_of<E>(
    record: &Record<'_>,
    start_ns: u64,
    each: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let event = |tid, action, returned, seen| Event {
        tid,
        start_ns,
        duration_ns: matches!(returned, Returned::Value(_) | Returned::Failed(_))
            .then_some(record.duration_ns),
        action,
        returned,
        seen,
    };
    if let Some(note) = notes::action(record) {
        if let Some((before, renumbered)) = notes::renumbering(record) {
            each(event(before, renumbered, Returned::Value(0), None))?;
        }
        return each(event(record.tid, note, Returned::Value(0), None));
    }
    if record.number == record::RECEIVED {
        let (action, seen) = received::told(record);
        return each(event(record.tid, action, Returned::Value(0), seen));
    }
    if let Some(told) = action::link_says(record) {
        each(event(record.tid, told, Returned::Value(0), None))?;
    }
    let returned = record.returned();
    let (action, seen) = action::of(record, returned);
    each(event(record.tid, action, returned, seen))
}

/// A path that starts at the current directory.
fn plain_path(text: &[u8]) -> Path<'_> {
    Path {
        directory: None,
        text: Cow::Borrowed(text),
        truncated: false,
    }
}

/// A change of the current directory, as it was found.
fn at_directory(text: &[u8]) -> Action<'_> {
    Action::ChangeDirectory(plain_path(text))
}
