//! What one thread measured.

use iostep_model::bench::{Latency, LatencyHistogram, LatencyRecorder, Second, Step};

const SECOND_NS: u64 = 1_000_000_000;

/// One operation, where every single one was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// `CLOCK_MONOTONIC` at its end, its sync included.
    pub end_ns: u64,
    /// How long it took, its sync included.
    pub latency_ns: u64,
    /// How long the sync took; 0 without one.
    pub sync_ns: u64,
}

/// Histograms and seconds from the start of the measured part on.
#[derive(Debug, Default)]
pub(super) struct Record {
    start_ns: u64,
    recorders: [Option<Box<LatencyRecorder>>; Step::ALL.len()],
    seconds: Vec<Second>,
    /// The second under way, and when it ends.
    second: Second,
    second_end_ns: u64,
    log: Option<Vec<Operation>>,
    /// The sync of the operation under way.
    sync_ns: u64,
    pub operations: u64,
    pub bytes: u64,
    pub idle_ns: u64,
}

impl Record {
    /// Begins at `start_ns`; with a log of every operation if `logs`.
    pub fn new(start_ns: u64, logs: bool) -> Record {
        Record {
            log: logs.then(Vec::new),
            start_ns,
            second_end_ns: start_ns + SECOND_NS,
            ..Record::default()
        }
    }

    /// When the measured part began.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The operations, if they are logged.
    pub fn log(&self) -> Option<&[Operation]> {
        self.log.as_deref()
    }

    #[inline]
    pub fn step(&mut self, step: Step, latency_ns: u64) {
        if step == Step::Sync {
            self.sync_ns += latency_ns;
        }
        self.recorders[step as usize]
            .get_or_insert_with(Box::default)
            .record(latency_ns);
    }

    /// One operation that ended at `end_ns`, its sync included.
    #[inline]
    pub fn operation(&mut self, end_ns: u64, latency_ns: u64, bytes: u64) {
        if end_ns >= self.second_end_ns {
            self.turn_to(end_ns);
        }
        self.operations += 1;
        self.bytes += bytes;
        self.second.operations += 1;
        self.second.bytes += bytes;
        self.second.latency_sum_ns += latency_ns;
        self.second.latency_max_ns = self.second.latency_max_ns.max(latency_ns);
        if let Some(log) = &mut self.log {
            log.push(Operation {
                end_ns,
                latency_ns,
                sync_ns: self.sync_ns,
            });
        }
        self.sync_ns = 0;
    }

    #[cold]
    fn turn_to(&mut self, now_ns: u64) {
        while now_ns >= self.second_end_ns {
            let mut full = std::mem::take(&mut self.second);
            full.length_ns = SECOND_NS;
            self.seconds.push(full);
            self.second_end_ns += SECOND_NS;
        }
    }

    /// Adds a thread's seconds to those of all threads.
    pub fn add_seconds_to(&mut self, all: &mut Vec<Second>) {
        self.seconds.push(self.second);
        if all.len() < self.seconds.len() {
            all.resize(self.seconds.len(), Second::default());
        }
        for (sum, part) in all.iter_mut().zip(&self.seconds) {
            sum.operations += part.operations;
            sum.bytes += part.bytes;
            sum.latency_sum_ns += part.latency_sum_ns;
            sum.latency_max_ns = sum.latency_max_ns.max(part.latency_max_ns);
        }
    }

    /// Adds a thread's latencies to those of all threads.
    pub fn add_latencies_to(self, all: &mut Vec<Latency>) {
        for (step, recorder) in Step::ALL.into_iter().zip(self.recorders) {
            let Some(recorder) = recorder else { continue };
            let histogram = LatencyHistogram::from(*recorder);
            match all.iter_mut().find(|latency| latency.step == step) {
                Some(latency) => latency.histogram.merge(&histogram),
                None => all.push(Latency { step, histogram }),
            }
        }
        all.sort_by_key(|latency| latency.step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_its_own_number() {
        for (number, step) in Step::ALL.into_iter().enumerate() {
            assert_eq!(step as usize, number, "{}", step.name());
        }
    }

    #[test]
    fn an_operation_belongs_to_the_second_in_which_it_ends() {
        let mut record = Record::new(500, true);
        record.operation(500 + SECOND_NS - 1, 10, 4096);
        record.operation(500 + SECOND_NS, 30, 4096);
        record.operation(500 + 3 * SECOND_NS, 20, 1);
        let mut all = Vec::new();
        record.add_seconds_to(&mut all);
        let operations: Vec<u64> = all.iter().map(|second| second.operations).collect();
        assert_eq!(operations, [1, 1, 0, 1]);
        assert_eq!(all[1].latency_max_ns, 30);
        assert_eq!(record.log().map(<[_]>::len), Some(3));
    }

    #[test]
    fn a_logged_operation_has_its_own_sync_and_not_the_one_before() {
        let mut record = Record::new(0, true);
        record.step(Step::Sync, 7);
        record.operation(10, 10, 1);
        record.operation(20, 10, 1);
        let syncs: Vec<_> = record
            .log()
            .expect("a log")
            .iter()
            .map(|o| o.sync_ns)
            .collect();
        assert_eq!(syncs, [7, 0]);
    }
}
