//! Every number of a replay's report.

use std::collections::{BTreeMap, HashSet};

use iostep_model::replay::{Performed, Prepared, Replay, Settings, Skip, State};
use iostep_model::syscall::{
    Call, Direction, HandleId, Operation, Outcome, PathId, Recording, Syscall, Whence,
};
use serde::{Deserialize, Serialize};

use super::difference::{Compared, Known, compare, recorded_text, replayed_text};
use super::{Difference, Lateness, Quantiles, Reason};

/// Points of the progress of a replay.
const PROGRESS_POINTS: usize = 200;

/// A replay in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Events that the recorder lost: the recording is not what happened.
    pub lost: u64,
    /// The line at which the recording was cut off.
    pub cut_at_line: Option<u64>,
    /// It was ended early.
    pub interrupted: bool,
    /// How it was run.
    pub settings: Settings,
    /// What was made before.
    pub prepared: Prepared,
    /// From the first call's start to the last one's end.
    pub recorded_ns: u64,
    /// The same in the replay.
    pub replayed_ns: u64,
    /// Calls that were issued too early for their order.
    pub order_violations: u64,
    /// Calls and bytes.
    pub totals: Totals,
    /// Calls that were not issued, by reason.
    pub skipped: Vec<SkipCount>,
    /// Results that differ, the most frequent first.
    pub differences: Vec<Difference>,
    /// By system call, the longest sum of time first.
    pub calls: Vec<CallSummary>,
    pub threads: Vec<ThreadSummary>,
    /// How exactly calls were issued.
    pub lateness: Lateness,
    /// How far the calls were at which time, recorded and replayed.
    pub progress: Vec<Progress>,
    /// CPU time of the replay's threads, system calls included.
    pub cpu_ns: u64,
    /// CPU time of the replay's threads outside of system calls: its own cost.
    pub own_cpu_ns: u64,
    /// Share of the machine's CPU time that others used, 0 to 1.
    pub others_cpu: f64,
}

/// Calls and bytes of all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// In the recording.
    pub calls: u64,
    /// Issued.
    pub done: u64,
    /// With the result of the recording.
    pub same: u64,
    /// With another one.
    pub differing: u64,
    /// The recording does not say what they returned.
    pub unknown: u64,
    /// Calls that a replay has to issue: all but bookkeeping, which is no call, and those that the
    /// recorded filesystems refused.
    pub expected: u64,
    /// Transferred by all calls of the recording, whether they were issued here or not.
    pub recorded: Amounts,
    /// Of these, by calls that were not issued here: bytes that the replay lost.
    #[serde(default)]
    pub not_issued: Amounts,
    /// Transferred here.
    pub replayed: Amounts,
    /// Time in calls that were issued, as recorded; calls of unknown length count for nothing.
    pub recorded_io_ns: u64,
    /// Time in them here.
    pub replayed_io_ns: u64,
}

/// Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amounts {
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// Calls that were not issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkipCount {
    pub reason: Skip,
    pub count: u64,
}

/// One system call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallSummary {
    pub syscall: String,
    /// In the recording.
    pub calls: u64,
    /// Issued.
    pub done: u64,
    /// Time in those that were issued.
    pub sum_ns: u64,
    /// How long they took in the recording; none if it does not say.
    pub recorded: Option<Quantiles>,
    /// How long they took here.
    pub replayed: Option<Quantiles>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadSummary {
    /// Its number in the recording.
    pub thread: u32,
    pub name: String,
    pub calls: u64,
    /// Those that were issued.
    pub done: u64,
    /// Those with another result.
    pub differing: u64,
    /// Time in calls, as recorded.
    pub recorded_io_ns: u64,
    /// Time in calls here.
    pub replayed_io_ns: u64,
    /// The latest that a call was issued after it was due.
    pub most_behind_ns: u64,
}

/// How far the calls were.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Calls that had been issued.
    pub calls: u64,
    /// When, in the recording.
    pub recorded_ns: u64,
    /// When, in the replay.
    pub replayed_ns: u64,
}

impl Summary {
    /// Of a replay without calls.
    #[cfg(test)]
    pub(crate) fn empty(settings: Settings) -> Summary {
        Summary::of(
            &Recording::default(),
            &Replay {
                settings,
                calls: Vec::new(),
                prepared: Prepared::default(),
                order_violations: 0,
                cpu_ns: 0,
                user_ns: 0,
                others_cpu: 0.0,
                interrupted: false,
            },
        )
    }

    /// Of a replay of this recording.
    pub fn of(recording: &Recording, replay: &Replay) -> Summary {
        let mut adder = Adder::new(recording);
        for (index, (call, performed)) in recording.calls.iter().zip(&replay.calls).enumerate() {
            adder.add(index as u64 + 1, call, performed);
        }
        let first_ns = recording.calls.first().map_or(0, |call| call.start_ns);
        let ends = recording.calls.iter().map(recorded_end_ns);
        let started = replay.calls.iter().filter(|p| is_done(p));
        let begin_ns = started.clone().map(|p| p.issued_ns).min().unwrap_or(0);
        let end_ns = started.map(|p| p.ended_ns).max().unwrap_or(0);
        Summary {
            lost: recording.ledger.lost,
            cut_at_line: recording.cut_at_line,
            interrupted: replay.interrupted,
            settings: replay.settings,
            prepared: replay.prepared,
            recorded_ns: ends.max().unwrap_or(0).saturating_sub(first_ns),
            replayed_ns: end_ns.saturating_sub(begin_ns),
            order_violations: replay.order_violations,
            lateness: Lateness::of(recording, replay),
            progress: progress(recording, replay),
            cpu_ns: replay.cpu_ns,
            own_cpu_ns: replay.user_ns,
            others_cpu: replay.others_cpu,
            totals: adder.totals,
            skipped: adder.skipped(),
            calls: adder.calls(),
            threads: std::mem::take(&mut adder.threads),
            differences: adder.differences(),
        }
    }

    /// Bytes that the recording moved in calls which could not be issued here.
    pub fn lost_bytes(&self) -> u64 {
        let lost = self.totals.not_issued;
        lost.read_bytes + lost.written_bytes
    }

    /// Results that differ and are not explained.
    pub fn unexplained(&self) -> u64 {
        let unexplained = |d: &&Difference| d.reason == Reason::Unexplained;
        let found = self.differences.iter().filter(unexplained);
        found.map(|difference| difference.count).sum()
    }
}

fn is_done(performed: &Performed) -> bool {
    matches!(performed.state, State::Done(_))
}

fn recorded_end_ns(call: &Call) -> u64 {
    call.start_ns.saturating_add(call.duration_ns.unwrap_or(0))
}

/// Latencies of one system call.
#[derive(Default)]
struct Times {
    calls: u64,
    recorded_ns: Vec<u64>,
    replayed_ns: Vec<u64>,
}

struct Adder {
    concluded: bool,
    /// Paths of which was seen what was there first.
    seen: HashSet<PathId>,
    /// The recorder saw the positions of files that were open before.
    sees_positions: bool,
    /// Open files whose position is not known.
    unplaced: HashSet<HandleId>,
    /// A call was skipped that may have made what later ones use.
    broken: bool,
    totals: Totals,
    skips: BTreeMap<Skip, u64>,
    by_call: BTreeMap<Syscall, Times>,
    threads: Vec<ThreadSummary>,
    differing: BTreeMap<(Syscall, String, String, Reason), (u64, u64)>,
}

impl Adder {
    fn new(recording: &Recording) -> Adder {
        let threads = recording.threads.iter().map(|thread| ThreadSummary {
            thread: thread.id.0,
            name: thread.name.clone(),
            ..ThreadSummary::default()
        });
        Adder {
            concluded: recording.initial.iter().any(|file| !file.seen),
            seen: recording
                .initial
                .iter()
                .filter(|file| file.seen)
                .map(|file| file.path)
                .collect(),
            sees_positions: recording.header.sees_positions(),
            unplaced: HashSet::new(),
            broken: recording.ledger.lost > 0,
            totals: Totals::default(),
            skips: BTreeMap::new(),
            by_call: BTreeMap::new(),
            threads: threads.collect(),
            differing: BTreeMap::new(),
        }
    }

    fn is_unplaced(&self, call: &Call) -> bool {
        let handles = call.operation.handles();
        handles.iter().any(|handle| self.unplaced.contains(handle))
    }

    /// Follows which open files have a position that is not known.
    fn place(&mut self, call: &Call) {
        match (call.syscall, &call.operation, call.outcome) {
            (Syscall::Present, Operation::Open { .. }, Outcome::Handle(handle))
                if !self.sees_positions =>
            {
                self.unplaced.insert(handle);
            }
            // From here on it is known.
            (Syscall::Present, Operation::Seek { handle, .. }, _)
            | (
                _,
                Operation::Seek {
                    handle,
                    whence: Whence::Start | Whence::End,
                    ..
                },
                Outcome::Value(_),
            ) => drop(self.unplaced.remove(handle)),
            _ => {}
        }
    }

    fn add(&mut self, number: u64, call: &Call, performed: &Performed) {
        self.totals.calls += 1;
        self.place(call);
        let times = self.by_call.entry(call.syscall).or_default();
        times.calls += 1;
        let recorded = i64::try_from(call.moved_bytes()).unwrap_or(i64::MAX);
        let returned = match performed.state {
            State::Skipped(skip) => {
                *self.skips.entry(skip).or_default() += 1;
                let due = !matches!(skip, Skip::Bookkeeping | Skip::Refused);
                self.totals.expected += u64::from(due);
                // The ioctls that are left out are mostly questions to terminals.
                let harmless = matches!(skip, Skip::Bookkeeping | Skip::Control | Skip::Refused);
                self.broken |= !harmless;
                self.totals.recorded.add(call, recorded);
                self.totals.not_issued.add(call, recorded);
                self.thread(call, |thread| thread.calls += 1);
                return;
            }
            State::Done(returned) => returned,
        };
        let took_ns = performed.ended_ns.saturating_sub(performed.issued_ns);
        times.recorded_ns.extend(call.duration_ns);
        times.replayed_ns.push(took_ns);
        let recorded_ns = call.duration_ns.unwrap_or(0);
        let differs = self.compare(number, call, performed, returned);
        let totals = &mut self.totals;
        totals.expected += 1;
        totals.done += 1;
        totals.recorded_io_ns += recorded_ns;
        totals.replayed_io_ns += took_ns;
        totals.recorded.add(call, recorded);
        totals.replayed.add(call, returned);
        let behind_ns = performed.issued_ns.saturating_sub(performed.due_ns);
        self.thread(call, |thread| {
            thread.calls += 1;
            thread.done += 1;
            thread.differing += u64::from(differs);
            thread.recorded_io_ns += recorded_ns;
            thread.replayed_io_ns += took_ns;
            thread.most_behind_ns = thread.most_behind_ns.max(behind_ns);
        });
    }

    fn thread(&mut self, call: &Call, change: impl FnOnce(&mut ThreadSummary)) {
        let place = (call.thread.0 as usize).wrapping_sub(1);
        if let Some(thread) = self.threads.get_mut(place) {
            change(thread);
        }
    }

    /// Counts a result; true if it differs.
    fn compare(&mut self, number: u64, call: &Call, performed: &Performed, returned: i64) -> bool {
        let known = || {
            let paths = call.operation.paths();
            Known {
                concluded: self.concluded,
                seen: !paths.is_empty() && paths.iter().all(|path| self.seen.contains(path)),
                unplaced: self.is_unplaced(call),
            }
        };
        let reason = match compare(call, returned, known) {
            Compared::Same => {
                self.totals.same += 1;
                return false;
            }
            Compared::Unknown => {
                self.totals.unknown += 1;
                return false;
            }
            Compared::Differs(Reason::Unexplained) if self.broken => Reason::Earlier,
            Compared::Differs(reason) => reason,
        };
        self.totals.differing += 1;
        let (recorded, replayed) = (recorded_text(call), replayed_text(call, performed.state));
        let kind = (call.syscall, recorded, replayed, reason);
        let counted = self.differing.entry(kind).or_insert((0, number));
        counted.0 += 1;
        true
    }

    fn skipped(&self) -> Vec<SkipCount> {
        let each = self.skips.iter();
        each.map(|(&reason, &count)| SkipCount { reason, count })
            .collect()
    }

    fn calls(&mut self) -> Vec<CallSummary> {
        let each = std::mem::take(&mut self.by_call).into_iter();
        let mut calls: Vec<CallSummary> = each
            .map(|(syscall, mut times)| CallSummary {
                syscall: syscall.name().to_owned(),
                calls: times.calls,
                done: times.replayed_ns.len() as u64,
                sum_ns: times.replayed_ns.iter().sum(),
                recorded: Quantiles::of(&mut times.recorded_ns),
                replayed: Quantiles::of(&mut times.replayed_ns),
            })
            .collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.sum_ns));
        calls
    }

    fn differences(self) -> Vec<Difference> {
        let each = self.differing.into_iter();
        let mut all: Vec<Difference> = each
            .map(
                |((syscall, recorded, replayed, reason), (count, first_call))| Difference {
                    syscall: syscall.name().to_owned(),
                    recorded,
                    replayed,
                    reason,
                    count,
                    first_call,
                },
            )
            .collect();
        all.sort_by_key(|difference| std::cmp::Reverse(difference.count));
        all
    }
}

impl Amounts {
    fn add(&mut self, call: &Call, returned: i64) {
        let bytes = u64::try_from(returned).unwrap_or(0);
        match call.operation {
            Operation::Transfer {
                direction: Direction::Read,
                ..
            } => self.read_bytes += bytes,
            Operation::Transfer {
                direction: Direction::Write,
                ..
            } => self.written_bytes += bytes,
            Operation::Copy { .. } => {
                self.read_bytes += bytes;
                self.written_bytes += bytes;
            }
            _ => {}
        }
    }
}

/// At evenly spaced calls, when they were issued.
fn progress(recording: &Recording, replay: &Replay) -> Vec<Progress> {
    let first_ns = recording.calls.first().map_or(0, |call| call.start_ns);
    let done = recording
        .calls
        .iter()
        .zip(&replay.calls)
        .filter(|(_, p)| is_done(p));
    let recorded: Vec<u64> = done
        .clone()
        .map(|(call, _)| call.start_ns - first_ns)
        .collect();
    let mut replayed: Vec<u64> = done.map(|(_, performed)| performed.issued_ns).collect();
    replayed.sort_unstable();
    let step = recorded.len().div_ceil(PROGRESS_POINTS).max(1);
    let points = (0..recorded.len())
        .step_by(step)
        .chain(recorded.len().checked_sub(1));
    let point = |at: usize| Progress {
        calls: at as u64 + 1,
        recorded_ns: recorded[at],
        replayed_ns: replayed[at],
    };
    points.map(point).collect()
}
