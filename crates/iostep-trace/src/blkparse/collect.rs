//! Lines to events, whatever text or file the lines were in.

use std::collections::{HashMap, HashSet};

use iostep_model::event::{Completion, Content, Event, Process, Queue, Segment, Transfer};
use iostep_model::printable::name_text;
use iostep_model::{Flags, Operation};

use super::LeftOut;
use super::actions::{self, Actions};
use super::line::{Action, Line, UNNAMED};

/// The events of one device.
#[derive(Debug, Default)]
pub(super) struct Collector {
    events: Vec<Event>,
    /// The last name of every thread.
    threads: HashMap<u32, Vec<u8>>,
    /// The threads whose name was told apart from what they did.
    named: HashSet<u32>,
    flushes: Flushes,
    actions: Actions,
}

impl Collector {
    /// Takes a line; the reason if it is none to keep.
    pub(super) fn take(&mut self, line: &Line<'_>) -> Option<LeftOut> {
        let transfer = match line.action {
            Action::LeftOut(reason) => {
                self.actions.of_requests += u64::from(reason.is_of_requests());
                return Some(reason);
            }
            Action::Split { sector } => {
                let mono_ns = line.mono_ns;
                self.events.push(Event::Split { mono_ns, sector });
                return None;
            }
            _ => Transfer {
                mono_ns: line.mono_ns,
                sector: line.sector,
                bytes: line.bytes,
                operation: line.operation,
                flags: line.flags,
            },
        };
        match line.action {
            Action::Queue => {
                self.process(line);
                self.flushes.queued(&transfer);
                self.push(Event::Queue(queue(line, &transfer)));
            }
            Action::Issue => {
                self.flushes.issued(&transfer);
                self.push(Event::Issue(transfer));
            }
            Action::Requeue => self.events.push(Event::Requeue(transfer)),
            Action::Complete { status } => self.complete(transfer, status),
            Action::Split { .. } | Action::LeftOut(_) => {}
        }
        None
    }

    fn complete(&mut self, transfer: Transfer, status: u8) {
        let held = match transfer.operation {
            Operation::Flush => None,
            _ => self.flushes.completed(&transfer, self.events.len()),
        };
        if let Some(Event::Complete(first)) = held.and_then(|at| self.events.get_mut(at)) {
            first.in_flush_sequence = true;
        }
        self.push(Event::Complete(Completion {
            // The flush machinery's own request is counted apart.
            in_flush_sequence: transfer.operation == Operation::Flush,
            transfer,
            status,
        }));
    }

    /// blkparse names the thread on every line, so only changes are worth an event.
    fn process(&mut self, line: &Line<'_>) {
        let known = self.threads.get(&line.pid);
        // A name that is not told does not take one back.
        if known.is_some_and(|known| known == line.command || line.command == UNNAMED) {
            return;
        }
        self.threads.insert(line.pid, line.command.to_vec());
        let event = process(line.mono_ns, line.pid, line.command);
        self.events.push(event);
    }

    /// A thread has a name, at no known time: before all that it did.
    pub(super) fn name_thread(&mut self, pid: u32, name: &[u8]) {
        self.named.insert(pid);
        if self.threads.get(&pid).is_none_or(|known| known != name) {
            self.threads.insert(pid, name.to_vec());
            self.events.push(process(0, pid, name));
        }
    }

    fn push(&mut self, event: Event) {
        self.actions.count(&event);
        self.events.push(event);
    }

    /// Which actions there were.
    pub(super) fn actions(&self) -> Actions {
        self.actions
    }

    /// The events in the order of time, and what the lines do not tell, in words.
    pub(super) fn finish(mut self) -> (Vec<Event>, Vec<String>) {
        let named = &self.named;
        let is_unnamed =
            |process: &Process| process.comm.as_bytes() == UNNAMED && named.contains(&process.pid);
        let events = &mut self.events;
        events.retain(|event| !matches!(event, Event::Process(process) if is_unnamed(process)));
        actions::fill(self.actions, self.events)
    }
}

fn process(mono_ns: u64, pid: u32, name: &[u8]) -> Event {
    let comm = name_text(name);
    Event::Process(Process {
        mono_ns,
        pid,
        // The text has no process id: every thread stands for itself.
        tgid: pid,
        parent_tgid: 0,
        kernel: is_kernel_thread(&comm),
        comm,
        command_line: None,
    })
}

fn queue(line: &Line<'_>, transfer: &Transfer) -> Queue {
    let segment = Segment {
        bytes: transfer.bytes,
        content: Content::Unknown,
        dirtier: None,
    };
    Queue {
        mono_ns: transfer.mono_ns,
        sector: transfer.sector,
        bytes: transfer.bytes,
        operation: transfer.operation,
        flags: transfer.flags,
        pid: line.pid,
        tgid: line.pid,
        sync: None,
        segments: Vec::from_iter((transfer.bytes > 0).then_some(segment)),
    }
}

/// The names of the threads that submit most of a filesystem's I/O.
fn is_kernel_thread(comm: &str) -> bool {
    ["kworker/", "jbd2/", "kswapd", "ksoftirqd/", "kcompactd"]
        .iter()
        .any(|start| comm.starts_with(start))
}

/// Finds the completions that the kernel's counters ignore.
///
/// A write that the flush machinery takes apart (fs/blk-flush.c) completes twice: when its data is
/// written, and, with no bytes left, when the flush behind it is done. The text has no mark for
/// the first, so it is known by the second.
#[derive(Debug, Default)]
struct Flushes {
    /// The writes with data that were queued with a flush, by first sector.
    queued: HashMap<u64, Flags>,
    /// Where in the events their first completion is.
    data_done: HashMap<u64, usize>,
}

impl Flushes {
    fn queued(&mut self, bio: &Transfer) {
        let flush = bio.flags.has(Flags::PREFLUSH) || bio.flags.has(Flags::FUA);
        if flush && bio.bytes > 0 {
            self.queued.insert(bio.sector, bio.flags);
        }
    }

    /// A device that does FUA itself needs no flush behind the data, and so no second completion.
    fn issued(&mut self, request: &Transfer) {
        let bio = self.queued.get(&request.sector);
        let preflush = bio.is_some_and(|flags| flags.has(Flags::PREFLUSH));
        if request.flags.has(Flags::FUA) && !preflush {
            self.queued.remove(&request.sector);
        }
    }

    /// Where the first completion is, if this is the second.
    fn completed(&mut self, request: &Transfer, at: usize) -> Option<usize> {
        if request.bytes == 0 {
            let first = self.data_done.remove(&request.sector)?;
            self.queued.remove(&request.sector);
            return Some(first);
        }
        if self.queued.contains_key(&request.sector) {
            self.data_done.insert(request.sector, at);
        }
        None
    }
}
