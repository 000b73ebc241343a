//! Records the system calls of a program and of what it starts.
//!
//! A recorder writes [`record`]s into a [`spool`] while the program runs, which must not wait for
//! more; [`Recorded::events`] makes [`iostep_model::syscall::raw::Event`]s of them afterwards.
//! [`bpf`] is the recorder that costs least. What to record of each call is `table`'s, what it
//! means `action`'s: every recorder shares them.

mod action;
mod aio;
pub mod bpf;
pub mod file_data;
mod files;
mod notes;
pub mod present;
pub mod ptrace;
mod received;
pub mod record;
mod requests;
pub mod spool;
pub mod table;

/// The BPF programs, and the types and constants of bpf/wire.h.
#[allow(
    clippy::all,
    clippy::too_many_lines,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used
)]
mod programs {
    include!(concat!(env!("OUT_DIR"), "/calls.skel.rs"));
}

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use iostep_model::syscall::raw::{Action, Event, Path, Returned, Seen};
use iostep_model::syscall::{Clock, Header};

use crate::error::Error;
use file_data::FileData;
use iostep_model::clock::mono_ns;
use present::Present;
use record::Record;
use spool::Beginning;

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The next process that the calling thread starts, from its first exec on.
    NextChild,
    /// A process that runs already, by its number, and what it starts from now on.
    Process(u32),
}

/// Time 0 of a recording.
#[derive(Clone, Copy, Debug)]
struct Start {
    mono_ns: u64,
    wall_ns: i128,
}

impl Start {
    fn now() -> Start {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Start {
            mono_ns: mono_ns(),
            wall_ns: wall.map_or(0, |wall| wall.as_nanos() as i128),
        }
    }

    fn beginning(self, mut header: Header, present: Present, since_ns: u64) -> Beginning {
        header.clock = Clock {
            start_wall_ns: Some(self.wall_ns),
            resolution_ns: 1,
        };
        Beginning {
            header,
            start_mono_ns: self.mono_ns,
            present_since_ns: since_ns,
            present,
        }
    }
}

/// A recording that ended, not yet told.
#[derive(Debug)]
pub struct Recorded {
    /// How it began, and the records, in the order in which the calls ended.
    pub spool: spool::Reader,
    /// Records that were lost, for whatever reason.
    pub lost: u64,
    /// What files held before, if that was kept.
    pub kept: Option<FileData>,
}

impl Recorded {
    /// What a recorder left that did not come to its end, as on a full disk. How many records it
    /// lost nobody knows, nor what files held.
    ///
    /// Errors: those of [`spool::Reader::open`].
    pub fn left(path: &std::path::Path) -> crate::error::Result<Recorded> {
        Ok(Recorded {
            spool: spool::Reader::open(path)?,
            lost: 0,
            kept: None,
        })
    }

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
        let beginning = &mut self.spool.beginning;
        let start_mono_ns = beginning.start_mono_ns;
        let present_since_ns = beginning.present_since_ns;
        let mut present = Some(std::mem::take(&mut beginning.present));
        if let Some(attached) = present.take_if(|present| present.process.is_some()) {
            attached.events(0, 0, each)?;
        }
        let mut bytes = Vec::new();
        let mut interrupted = Interrupted::default();
        let mut names = requests::Names::default();
        let mut submissions = aio::Submissions::default();
        while self.spool.next(&mut bytes)? {
            let Some(record) = Record::parse(&bytes) else {
                continue;
            };
            if record.number == record::REQUEST_NAMES {
                names.add(&record, &bytes);
                continue;
            }
            if record.number == record::SUBMITTED {
                submissions.add(&record);
                continue;
            }
            let told = names.take(&record);
            let record = requests::named(record, told.as_deref());
            if record.start_ns.saturating_add(record.duration_ns) < present_since_ns {
                continue;
            }
            // A thread that polls a ring goes on while another is in a call.
            let before = match record.number {
                record::REQUEST => None,
                _ => interrupted.take(record.tid),
            };
            if let Some(mut before) = before {
                before.end(&record);
                before.tell(start_mono_ns, each)?;
            }
            if record.is_restarted() && record.number != record::REQUEST {
                interrupted.0.insert(record.tid, bytes.clone());
                continue;
            }
            let start_ns = record.start_ns.saturating_sub(start_mono_ns);
            match is_io_submit(&record) {
                true => {
                    let submitted = submissions.take(&record);
                    let returned = record.returned();
                    each(event_of(
                        &record, start_ns, record.tid, submitted, returned, None,
                    ))?;
                }
                false => each_of(&record, start_ns, each)?,
            }
            if record.number == record::EXEC
                && let Some(inherited) = present.take()
            {
                inherited.events(record.tid, start_ns, each)?;
            }
        }
        for (_, bytes) in interrupted.0 {
            Held { bytes, died: false }.tell(start_mono_ns, each)?;
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

/// True for the record that ends the requests of a thread's io_submit.
fn is_io_submit(record: &Record<'_>) -> bool {
    table::by_number(record.number).is_some_and(|entry| entry.shape == table::Shape::Submit)
}

fn event_of<'a>(
    record: &Record<'_>,
    start_ns: u64,
    tid: u32,
    action: Action<'a>,
    returned: Returned,
    seen: Option<Seen>,
) -> Event<'a> {
    let ended = matches!(returned, Returned::Value(_) | Returned::Failed(_));
    Event {
        tid,
        start_ns,
        duration_ns: ended.then_some(record.duration_ns),
        action,
        returned,
        seen,
    }
}

/// The events of one record: one, but for an exec that changes the thread's number.
fn each_of<E>(
    record: &Record<'_>,
    start_ns: u64,
    each: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let event =
        |tid, action, returned, seen| event_of(record, start_ns, tid, action, returned, seen);
    if let Some(note) = notes::action(record) {
        if let Some((child, number)) = notes::own_number(record) {
            each(event(record.tid, note, Returned::Value(0), None))?;
            return each(event(child, number, Returned::Value(0), None));
        }
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
    let (action, seen) = match record.number {
        record::REQUEST => action::with_seen(record, requests::asked(record)),
        _ => action::of(record, returned),
    };
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// System calls, most of which a recorder knows, and its own notes.
    fn number() -> impl Strategy<Value = u16> {
        prop_oneof![0u16..500, record::FORK..=record::COMPLETED + 1]
    }

    proptest! {
        #[test]
        fn whatever_a_record_says_is_told_or_left_out(
            (number, flags, result) in (number(), any::<u8>(), any::<i64>()),
            word in any::<[u64; 10]>(),
            (start_ns, duration_ns, tid) in any::<(u64, u64, u32)>(),
            text in any::<[Vec<u8>; 2]>(),
        ) {
            let text = [&text[0][..], &text[1][..]];
            let record = Record { start_ns, duration_ns, result, tid, number, flags, word, text };
            let mut events = 0;
            let told = each_of::<Error>(&record, start_ns, &mut |_| {
                events += 1;
                Ok(())
            });
            prop_assert!(told.is_ok() && events > 0);
        }
    }
}
