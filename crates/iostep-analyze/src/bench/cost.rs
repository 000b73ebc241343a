//! What operations cost the processors and the device.

use iostep_model::bench::{
    Job, MachineTime, ReadWritten, Run, SqliteOperation, Sync, Transfer, figures,
};
use iostep_model::manifest::Counters;
use iostep_model::pragma::Synchronous;
use serde::Serialize;

use crate::stats::amount::ratio as per;

/// Processor time and context switches of the load's own threads, and the machine's time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpuCost {
    /// User time of one operation, nanoseconds.
    pub user_ns_per_operation: Option<f64>,
    /// System time of one operation, nanoseconds.
    pub system_ns_per_operation: Option<f64>,
    /// User time over elapsed time: 1 is one CPU.
    pub user_cpus: Option<f64>,
    /// System time over elapsed time.
    pub system_cpus: Option<f64>,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub voluntary_switches_per_operation: Option<f64>,
    pub involuntary_switches_per_operation: Option<f64>,
    /// Where the time of all CPUs went; `None` where /proc/stat does not tell.
    pub machine: Option<MachineShares>,
}

/// Shares of the time of all CPUs, each 0 to 1. Active, idle, I/O wait and steal make up the
/// whole; interrupts are part of what is active.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MachineShares {
    /// Neither idle nor taken away.
    pub active: f64,
    /// Nothing to do.
    pub idle: f64,
    /// Nothing to do but I/O under way.
    pub iowait: f64,
    /// Interrupts.
    pub irq: f64,
    /// Soft interrupts.
    pub softirq: f64,
    /// Taken by the hypervisor for others.
    pub steal: f64,
    /// Active, but not for the load's own threads. The kernel's threads that work for the load
    /// are in it: writeback, the journal, a loop device.
    pub others: f64,
}

impl CpuCost {
    pub(super) fn of(run: &Run) -> CpuCost {
        let cpu = &run.cpu;
        let per_operation = |amount| per(amount, run.operations);
        let cpus = |time_ns| per(time_ns, run.elapsed_ns);
        let own_ns = cpu.user_ns.saturating_add(cpu.system_ns);
        CpuCost {
            user_ns_per_operation: per_operation(cpu.user_ns),
            system_ns_per_operation: per_operation(cpu.system_ns),
            user_cpus: cpus(cpu.user_ns),
            system_cpus: cpus(cpu.system_ns),
            voluntary_switches: cpu.voluntary_switches,
            involuntary_switches: cpu.involuntary_switches,
            voluntary_switches_per_operation: per_operation(cpu.voluntary_switches),
            involuntary_switches_per_operation: per_operation(cpu.involuntary_switches),
            machine: cpu
                .machine
                .and_then(|time| MachineShares::of(&time, own_ns)),
        }
    }

    /// User and system time of one operation together, nanoseconds.
    pub fn ns_per_operation(&self) -> Option<f64> {
        Some(self.user_ns_per_operation? + self.system_ns_per_operation?)
    }
}

impl MachineShares {
    fn of(time: &MachineTime, own_ns: u64) -> Option<MachineShares> {
        let total_ns = time.total_ns();
        let share = |ns: u64| ns as f64 / total_ns as f64;
        (total_ns > 0).then(|| MachineShares {
            active: share(time.active_ns()),
            idle: share(time.idle_ns),
            iowait: share(time.iowait_ns),
            irq: share(time.irq_ns),
            softirq: share(time.softirq_ns),
            steal: share(time.steal_ns),
            others: time.others(own_ns),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceCost {
    /// Everything it counted during the run.
    pub counters: Counters,
    /// What of that can be others'.
    #[serde(skip_serializing_if = "is_nothing")]
    pub others: ReadWritten,
    /// False if what others did makes a difference: then what an operation reads or writes is not
    /// known, and is `None` here.
    #[serde(skip_serializing_if = "is_true")]
    pub is_own: bool,
    pub written_bytes_per_operation: Option<f64>,
    pub read_bytes_per_operation: Option<f64>,
    pub writes_per_operation: Option<f64>,
    pub reads_per_operation: Option<f64>,
    /// `None` if the kernel does not count them, or if others may have asked for some.
    pub flushes_per_operation: Option<f64>,
    /// Disks whose flushes the kernel does not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flushes_not_counted: Vec<String>,
    /// Writes and flushes of other partitions of the disk, whose flushes are counted here, too.
    #[serde(skip_serializing_if = "is_zero")]
    pub writes_beside: u64,
    /// Bytes written over payload bytes; `None` for a job that only reads.
    pub write_amplification: Option<f64>,
}

fn is_nothing(bytes: &ReadWritten) -> bool {
    *bytes == ReadWritten::default()
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_true(value: &bool) -> bool {
    *value
}

impl DeviceCost {
    /// Of one run of a job; `None` where no device counted.
    pub(super) fn of(job: &Job, run: &Run) -> Option<DeviceCost> {
        let counters = run.device?;
        let (writes_are_own, reads_are_own) =
            (figures::writes_are_own(run), figures::reads_are_own(run));
        let written = |amount| per(amount, run.operations).filter(|_| writes_are_own);
        let read = |amount| per(amount, run.operations).filter(|_| reads_are_own);
        let amplification = per(counters.write.bytes, run.bytes);
        let others = run.others.as_ref();
        Some(DeviceCost {
            counters,
            others: figures::others(run),
            is_own: writes_are_own && reads_are_own,
            written_bytes_per_operation: written(counters.write.bytes),
            read_bytes_per_operation: read(counters.read.bytes),
            writes_per_operation: written(counters.write.ios),
            reads_per_operation: read(counters.read.ios),
            flushes_per_operation: per(counters.flush.ios, run.operations)
                .filter(|_| figures::flushes_are_own(run)),
            flushes_not_counted: others.map_or(&[][..], |it| &it.flushes_not_counted).into(),
            writes_beside: others.map_or(0, |it| it.beside.write.ios),
            write_amplification: amplification.filter(|_| writes(job) && writes_are_own),
        })
    }
}

/// True if a job writes all of its payload.
pub(super) fn writes(job: &Job) -> bool {
    match job {
        Job::File(job) => job.access.writes(),
        Job::Sqlite(job) => matches!(
            job.operation,
            SqliteOperation::Insert | SqliteOperation::Update
        ),
    }
}

/// True if what a job writes is on the device before the next operation, or at the end.
pub(super) fn syncs(job: &Job) -> bool {
    match job {
        Job::File(job) => {
            job.sync != Sync::None || job.end_sync || job.transfer == Transfer::Direct
        }
        Job::Sqlite(job) => job.synchronous != Synchronous::Off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixture;
    use iostep_model::bench::Access;

    #[test]
    fn shares_of_the_machine_make_up_the_whole() {
        let run = &fixture::write_fdatasync(1).runs[0];
        let cost = CpuCost::of(run);
        let shares = cost.machine.expect("a machine");
        let whole = shares.active + shares.idle + shares.iowait + shares.steal;
        assert!((whole - 1.0).abs() < 1e-9, "{shares:?}");
        assert!(shares.others <= shares.active);
    }

    #[test]
    fn only_written_payload_is_amplified() {
        let mut document = fixture::write_fdatasync(1);
        let cost = |document: &iostep_model::bench::Document| {
            DeviceCost::of(&document.job, &document.runs[0]).expect("a device")
        };
        assert_eq!(cost(&document).write_amplification, Some(3.0));
        let Job::File(job) = &mut document.job else {
            panic!("a file job")
        };
        job.access = Access::Read;
        assert_eq!(cost(&document).write_amplification, None);
    }

    #[test]
    fn what_others_did_is_no_cost_of_an_operation() {
        use iostep_model::bench::OthersIo;
        let document = fixture::write_fdatasync(1);
        let mut run = document.runs[0].clone();
        let written = run.device.expect("a device").write.bytes;
        let own = ReadWritten {
            written_bytes: written / 2,
            ..ReadWritten::default()
        };
        let of = |written_bytes| OthersIo {
            own,
            here: ReadWritten {
                written_bytes,
                ..ReadWritten::default()
            },
            ..OthersIo::default()
        };
        run.others = Some(of(written / 200));
        let cost = DeviceCost::of(&document.job, &run).expect("a device");
        assert!(cost.is_own && cost.written_bytes_per_operation.is_some());
        run.others = Some(of(written / 4));
        let cost = DeviceCost::of(&document.job, &run).expect("a device");
        let unknown = [
            cost.written_bytes_per_operation,
            cost.writes_per_operation,
            cost.flushes_per_operation,
            cost.write_amplification,
        ];
        assert_eq!((cost.is_own, unknown), (false, [None; 4]));
        assert_eq!(cost.others.written_bytes, written / 4);
        // Nobody else reads.
        assert!(cost.read_bytes_per_operation.is_some());
    }

    #[test]
    fn flushes_that_may_be_another_partitions_or_are_not_counted_are_no_cost() {
        use iostep_model::bench::OthersIo;
        let document = fixture::write_fdatasync(1);
        let mut run = document.runs[0].clone();
        let flushes = run.device.expect("a device").flush.ios;
        assert!(flushes > 200);
        let of = |others: OthersIo| {
            let mut run = run.clone();
            run.others = Some(others);
            DeviceCost::of(&document.job, &run).expect("a device")
        };
        let beside = |writes: u64| {
            let mut others = OthersIo::default();
            others.beside.write.ios = writes;
            of(others)
        };
        assert!(beside(flushes / 200).flushes_per_operation.is_some());
        let cost = beside(flushes / 10);
        assert_eq!(cost.flushes_per_operation, None);
        assert_eq!(cost.writes_beside, flushes / 10);
        // Writes are counted for the partition alone.
        assert!(cost.is_own && cost.writes_per_operation.is_some());
        let cost = of(OthersIo {
            flushes_not_counted: vec!["md0".into()],
            ..OthersIo::default()
        });
        assert_eq!(cost.flushes_per_operation, None);
        // None at all are nobody's.
        run.device.as_mut().expect("a device").flush.ios = 0;
        let mut others = OthersIo::default();
        others.beside.write.ios = 9;
        run.others = Some(others);
        let cost = DeviceCost::of(&document.job, &run).expect("a device");
        assert_eq!(cost.flushes_per_operation, Some(0.0));
    }

    #[test]
    fn damaged_times_do_not_overflow() {
        let time = MachineTime {
            user_ns: u64::MAX,
            idle_ns: u64::MAX,
            ..MachineTime::default()
        };
        let shares = MachineShares::of(&time, 0).expect("time passed");
        assert!(shares.active <= 1.0 && shares.idle <= 1.0, "{shares:?}");
    }
}
