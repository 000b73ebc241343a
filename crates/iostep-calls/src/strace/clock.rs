//! When calls began, of what strace wrote about it.

use rustc_hash::FxHashMap;

use super::prefix::{SECOND_NS, Since, Time};

/// Nobody waits so long for a call. A clock that is further ahead was set: a machine that had no time
/// got it from a network.
const LONGEST_GAP_NS: u64 = 30 * 24 * 3600 * SECOND_NS;
/// A gap that somebody is told of: it may be one, or the beginning of summer time.
const TOLD_GAP_NS: u64 = 600 * SECOND_NS;
/// `-t` and `-tt` begin again at midnight; a step back of less than half of it is none.
const HALF_DAY_NS: u64 = 12 * 3600 * SECOND_NS;

/// Makes times that only grow of one text's.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// Time of day of the line before, and the days that passed.
    of_day: u64,
    days_ns: u64,
    /// The sum of what -r wrote.
    relative_ns: u64,
    /// When the call ended that ended last, as far as is known.
    latest_ns: u64,
    /// How far the clock was set back in all, and ahead.
    back_ns: u64,
    ahead_ns: u64,
    /// When the line was written that is the last so far, on the text's own scale.
    line_ns: u64,
    order: Order,
    /// When each thread's last call ended, where its line says so.
    own_ends: FxHashMap<Option<u32>, u64>,
}

/// What tells a line that was written late from a clock that was set back: with `-z` and its like
/// strace writes a call when it has ended, with the time when it began.
#[derive(Clone, Debug, Default)]
struct Order {
    /// A call was seen in two lines, so lines are written when calls begin.
    in_halves: bool,
    /// When each thread wrote last, as long as that is not known.
    by_thread: FxHashMap<u32, u64>,
}

/// A line, as far as its time goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) time: Time,
    pub(super) tid: Option<u32>,
    /// How long its call took, if it is a whole call and says so.
    pub(super) duration_ns: Option<u64>,
    /// It is half of a call.
    pub(super) half: bool,
}

/// What a time is that does not go on from the line before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The clock was set back by so much, at least.
    Back(u64),
    /// It was set ahead by so much.
    Ahead(u64),
    /// Nothing was written for so long, or the clock was set ahead.
    Gap(u64),
}

/// Nanoseconds in words.
fn length(ns: u64) -> String {
    let seconds = ns / SECOND_NS;
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    let parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    match parts.is_empty() {
        true => format!("{} ms", (ns as f64 / 1e6).max(0.001)),
        false => parts.join(" "),
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Step::Back(ns) => write!(
                f,
                "the clock was set back by {} here: the order of the lines is kept, and the calls \
                 after it are taken to begin where those before it ended",
                length(ns)
            ),
            Step::Ahead(ns) => write!(
                f,
                "the clock was set ahead by {} here: the calls after it are taken to begin where \
                 those before it ended",
                length(ns)
            ),
            Step::Gap(ns) => write!(
                f,
                "no line was written for {} before this one, or the clock was set ahead, as when \
                 summer time begins: a replay at the recorded times waits as long",
                length(ns)
            ),
        }
    }
}

impl Clock {
    /// A text's first time of day is `of_day_ns`, and that of another text of the same run
    /// `latest_ns`: if it is far behind, midnight is between them.
    pub(super) fn begin_at(&mut self, of_day_ns: u64, latest_ns: u64) {
        if of_day_ns.saturating_add(HALF_DAY_NS) < latest_ns {
            self.days_ns = 2 * HALF_DAY_NS;
        }
    }

    /// What a line's time is on the text's own scale. Without a time it is 1 ns after the line
    /// before, so that the order stays.
    pub(super) fn at(&mut self, time: Option<Time>) -> u64 {
        let Some(Time { ns, since, .. }) = time else {
            return self.latest_ns.saturating_add(1);
        };
        let told = match since {
            Since::Year1970 => ns,
            Since::LineBefore => {
                self.relative_ns = self.relative_ns.saturating_add(ns);
                self.relative_ns
            }
            Since::Midnight => {
                if ns.saturating_add(HALF_DAY_NS) < self.of_day {
                    self.days_ns = self.days_ns.saturating_add(2 * HALF_DAY_NS);
                }
                self.of_day = ns;
                self.days_ns.saturating_add(ns)
            }
        };
        told.saturating_add(self.back_ns)
            .saturating_sub(self.ahead_ns)
    }

    /// The same of a line in the order of the text, whose time does not go back: lines are written one
    /// behind the other. `least_ns` is how far the clock was set back at least, as other texts of the
    /// run say; `base_ns` where the recording begins on the text's own scale.
    pub(super) fn next(
        &mut self,
        line: Written,
        least_ns: u64,
        base_ns: u64,
    ) -> (u64, Option<Step>) {
        let (at_ns, step) = self.place(line, least_ns, base_ns);
        if let Some(duration_ns) = line.duration_ns {
            self.own_ends
                .insert(line.tid, at_ns.saturating_add(duration_ns));
        }
        (at_ns, step)
    }

    fn place(&mut self, line: Written, least_ns: u64, base_ns: u64) -> (u64, Option<Step>) {
        let Time {
            since,
            resolution_ns,
            ..
        } = line.time;
        let at_ns = self.at(Some(line.time));
        self.order.in_halves |= line.half;
        let first = self.line_ns == 0;
        let ahead_ns = at_ns.saturating_sub(self.line_ns);
        if first || since == Since::LineBefore {
            self.line_ns = at_ns.max(1);
            self.wrote(line.tid, at_ns);
            return (at_ns, None);
        }
        // A thread makes one call after the other: the clock was set back during a long one.
        let own_ns = self.own_ends.get(&line.tid).copied().unwrap_or(0);
        let in_own_call = at_ns.saturating_add(2 * resolution_ns) < own_ns;
        if at_ns >= self.line_ns && !in_own_call {
            let step = match ahead_ns {
                LONGEST_GAP_NS.. => Some(Step::Ahead(ahead_ns)),
                TOLD_GAP_NS.. => Some(Step::Gap(ahead_ns)),
                _ => None,
            };
            if let Some(Step::Ahead(_)) = step {
                self.ahead_ns = self.ahead_ns.saturating_add(ahead_ns);
                return (self.line_ns, step);
            }
            self.line_ns = at_ns;
            self.wrote(line.tid, at_ns);
            return (at_ns, step);
        }
        if !in_own_call && self.was_written_late(line, at_ns) {
            return (at_ns, None);
        }
        // What ended before this line was written ended before its call began.
        let ended_ns = self.latest_ns.saturating_add(base_ns);
        let behind_ns = self.line_ns.max(ended_ns).max(own_ns) - at_ns;
        let back_ns = behind_ns.max(least_ns.saturating_sub(self.back_ns));
        self.back_ns = self.back_ns.saturating_add(back_ns);
        self.line_ns = at_ns.saturating_add(back_ns);
        self.order.by_thread.clear();
        // The clock's own unsteadiness is nobody's business.
        let step = (back_ns > resolution_ns.max(SECOND_NS / 1000)).then_some(Step::Back(back_ns));
        (self.line_ns, step)
    }

    /// All lines are of one thread, so each is behind the one above it.
    pub(super) fn is_of_one_thread(&mut self) {
        self.order.in_halves = true;
    }

    /// The next line was written after the last of another text, which this is the clock of.
    pub(super) fn goes_on_after(&mut self, other: &Clock) {
        self.back_ns = self.back_ns.max(other.back_ns);
        self.line_ns = self.line_ns.max(other.line_ns);
    }

    /// The next line is the first of another thread.
    pub(super) fn begins_thread(&mut self) {
        self.own_ends.clear();
    }

    /// How far the clock was set back so far.
    pub(super) fn back_ns(&self) -> u64 {
        self.back_ns
    }

    /// Lines are written when calls have ended, after all.
    pub(super) fn is_in_whole_calls(&mut self) {
        self.order.in_halves = false;
    }

    fn wrote(&mut self, tid: Option<u32>, at_ns: u64) {
        match (tid, self.order.in_halves) {
            (Some(tid), false) => drop(self.order.by_thread.insert(tid, at_ns)),
            _ => self.order.by_thread.clear(),
        }
    }

    /// True for a line that may have been written when its call ended, and not when it began.
    fn was_written_late(&self, line: Written, at_ns: u64) -> bool {
        if line.half || self.order.in_halves {
            return false;
        }
        let slack_ns = 2 * line.time.resolution_ns;
        if let Some(duration_ns) = line.duration_ns {
            let end_ns = at_ns.saturating_add(duration_ns).saturating_add(slack_ns);
            return end_ns >= self.line_ns;
        }
        // Alone, or behind the thread's own last line, it cannot be late.
        let threads = &self.order.by_thread;
        let own = line.tid.and_then(|tid| threads.get(&tid));
        threads.len() > 1 && own.is_none_or(|own| at_ns >= *own)
    }

    /// When the call of a line began that was written at `at_ns`. strace writes a line's beginning
    /// when the call begins, after all that is above it; a coarse clock makes it seem earlier.
    pub(super) fn begin(&mut self, at_ns: u64, resolution_ns: u64) -> u64 {
        let behind = self.latest_ns.saturating_sub(at_ns);
        let start_ns = match behind <= 2 * resolution_ns {
            true => at_ns.max(self.latest_ns),
            false => at_ns,
        };
        self.latest_ns = self.latest_ns.max(start_ns);
        start_ns
    }

    /// A call ended.
    pub(super) fn end(&mut self, end_ns: u64) {
        self.latest_ns = self.latest_ns.max(end_ns);
    }
}
