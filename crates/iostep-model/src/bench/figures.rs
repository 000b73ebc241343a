//! Which figures a run can give. Tables, rankings, plots, advice and gates all ask here.

use super::{OthersIo, ReadWritten, Run, Second};

/// Below a second the ticks of the machine's times and single stalls matter, and a device's cache
/// hides its first second.
pub const SHORT_NS: u64 = 1_000_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// True if a run of this length is too short to say much of rates and times.
pub fn is_too_short(elapsed_ns: u64) -> bool {
    elapsed_ns < SHORT_NS
}

/// The whole seconds of a run, from which its rate and steadiness are told.
pub fn whole_seconds(run: &Run) -> impl Iterator<Item = &Second> {
    run.seconds.iter().filter(|second| is_whole(second))
}

fn is_whole(second: &Second) -> bool {
    second.length_ns >= SECOND_NS
}

/// The rate of an amount in one second of a series; `None` for the rest of a second after whole
/// ones, where the few operations that happen to end in it would be multiplied, and without a
/// length. A run that is shorter than a second has one part, whose rate is the run's.
pub fn rate(amount: u64, second: &Second, series: &[Second]) -> Option<f64> {
    let is_told = second.length_ns > 0 && (is_whole(second) || !series.iter().any(is_whole));
    is_told.then(|| amount as f64 * SECOND_NS as f64 / second.length_ns as f64)
}

/// True if a log with so many checkpoints, the one after the end among them, was checkpointed
/// within the run, so that its figures hold a checkpoint of as many commits as come between two.
/// With a single one they hold one of fewer commits, which is more for each.
pub fn saw_a_cycle(checkpoints: u64) -> bool {
    checkpoints > 1
}

/// From this share of the device's bytes on, counts are of others too.
const OTHERS: f64 = 0.01;

/// What of the device's counters can be others': bytes read and written. No more than what their
/// accounts say, and no more than is beyond the generator's own account. What is not known to have
/// been on this disk is left out where that is too little for it.
pub fn others(run: &Run) -> ReadWritten {
    let (Some(device), Some(found)) = (run.device, &run.others) else {
        return ReadWritten::default();
    };
    let part = |counted: u64, of: fn(&ReadWritten) -> u64| {
        let OthersIo {
            own,
            here,
            unplaced,
            ..
        } = found;
        let beyond = counted.saturating_sub(of(own));
        let all = of(here).saturating_add(of(unplaced));
        match all <= beyond {
            true => all,
            false => of(here).min(beyond),
        }
    };
    ReadWritten {
        read_bytes: part(device.read.bytes, |bytes| bytes.read_bytes),
        written_bytes: part(device.write.bytes, |bytes| bytes.written_bytes),
    }
}

/// True if the device's writes and flushes are those of the run: others did less than a hundredth.
pub fn writes_are_own(run: &Run) -> bool {
    let written = run.device.map_or(0, |device| device.write.bytes);
    is_small(others(run).written_bytes, written)
}

/// True if the device's flushes are counted, and are those of the run: what others wrote, there or on
/// another partition of the disk, is too little for more than a hundredth of them.
pub fn flushes_are_own(run: &Run) -> bool {
    let flushes = run.device.map_or(0, |device| device.flush.ios);
    let beside = run.others.as_ref().map_or(0, |it| it.beside.write.ios);
    flushes_are_counted(run) && (flushes == 0 || writes_are_own(run) && is_small(beside, flushes))
}

/// True if the kernel counts the flushes of every disk of the run.
pub fn flushes_are_counted(run: &Run) -> bool {
    let others = run.others.as_ref();
    others.is_none_or(|others| others.flushes_not_counted.is_empty())
}

/// True if the device's reads are those of the run: others did less than a hundredth.
pub fn reads_are_own(run: &Run) -> bool {
    let read = run.device.map_or(0, |device| device.read.bytes);
    is_small(others(run).read_bytes, read)
}

fn is_small(others: u64, all: u64) -> bool {
    others == 0 || (others as f64) < OTHERS * all as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::RunState;
    use crate::manifest::Counters;

    /// What the device wrote, and by whose accounts.
    fn written(device: u64, own: u64, here: u64, unplaced: u64) -> Run {
        let bytes = |written_bytes| ReadWritten {
            written_bytes,
            ..ReadWritten::default()
        };
        let mut counters = Counters::default();
        counters.write.bytes = device;
        Run {
            device: Some(counters),
            others: Some(OthersIo {
                own: bytes(own),
                here: bytes(here),
                unplaced: bytes(unplaced),
                ..OthersIo::default()
            }),
            ..Run::empty(RunState::Complete, 0)
        }
    }

    #[test]
    fn what_others_write_here_makes_the_counts_theirs_too() {
        let run = written(20_700_000, 36_500, 20_000_000, 0);
        assert_eq!(others(&run).written_bytes, 20_000_000);
        assert!(!writes_are_own(&run) && reads_are_own(&run));
        assert!(writes_are_own(&written(36_500, 20_000, 0, 0)));
        assert!(writes_are_own(&written(36_500, 20_000, 300, 0)));
    }

    #[test]
    fn what_is_not_in_the_counters_is_no_matter() {
        // Others made pages dirty that are still in memory.
        let run = written(36_500, 36_500, 20_000_000, 0);
        assert!(writes_are_own(&run));
        // Or they wrote to another disk: here there was no room for it.
        assert!(writes_are_own(&written(36_500, 20_000, 0, 20_000_000)));
        // There was, so it may have been here.
        assert!(!writes_are_own(&written(20_700_000, 36_500, 0, 20_000_000)));
        let unknown = Run::empty(RunState::Complete, 0);
        assert!(writes_are_own(&unknown) && reads_are_own(&unknown));
    }

    #[test]
    fn the_rest_of_a_second_tells_no_rate() {
        let second = |length_ns, operations| Second {
            length_ns,
            operations,
            ..Second::default()
        };
        let series = [
            second(SECOND_NS, 641),
            second(SECOND_NS, 640),
            second(181_818, 1),
        ];
        let rates = series
            .each_ref()
            .map(|second| rate(second.operations, second, &series));
        assert_eq!(rates, [Some(641.0), Some(640.0), None]);
        let short = [second(SECOND_NS / 4, 100)];
        assert_eq!(rate(100, &short[0], &short), Some(400.0));
        let empty = [second(0, 1)];
        assert_eq!(rate(1, &empty[0], &empty), None);
    }

    #[test]
    fn a_second_checkpoint_ends_a_cycle() {
        assert_eq!([0, 1, 2].map(saw_a_cycle), [false, false, true]);
    }
}
