//! When calls began, of what strace wrote about it.

use super::prefix::{SECOND_NS, Since, Time};

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
        match since {
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
        }
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
