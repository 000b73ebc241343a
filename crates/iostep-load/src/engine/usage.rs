//! Processor time and context switches.

use iostep_model::bench::{Cpu, MachineTime};
use procfs::CurrentSI;
use rustix::time::{ClockId, clock_gettime};

/// What the load has used since the process began: all of its threads, io_uring's workers among
/// them, but for the one that watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    user_ns: u64,
    system_ns: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl Usage {
    /// Called by the thread that watches.
    pub fn of_the_load() -> Usage {
        let watcher = Usage::of(libc::RUSAGE_THREAD);
        Usage::of(libc::RUSAGE_SELF).since(&watcher)
    }

    fn of(whom: libc::c_int) -> Usage {
        account_this_thread();
        // SAFETY: all zeros is a valid `rusage`.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a `rusage` that lives through the call.
        let result = unsafe { libc::getrusage(whom, &mut usage) };
        assert_eq!(result, 0, "getrusage fails only for a wrong argument");
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Usage {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }

    /// What came on top of `earlier`. The kernel divides time between user and system anew each
    /// time, so that one of them can go back a little.
    pub fn since(&self, earlier: &Usage) -> Usage {
        let used = |of: fn(&Usage) -> u64| of(self).saturating_sub(of(earlier));
        Usage {
            user_ns: used(|u| u.user_ns),
            system_ns: used(|u| u.system_ns),
            voluntary_switches: used(|u| u.voluntary_switches),
            involuntary_switches: used(|u| u.involuntary_switches),
        }
    }

    /// As a result holds it.
    pub fn into_cpu(self, machine: Option<MachineTime>) -> Cpu {
        Cpu {
            user_ns: self.user_ns,
            system_ns: self.system_ns,
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
            machine,
        }
    }
}

/// getrusage(2) answers with what was accounted at the last tick or switch. This clock does the
/// accounting of the calling thread's time since then (kernel/sched/core.c, task_sched_runtime).
pub(super) fn account_this_thread() {
    let _ = clock_gettime(ClockId::ThreadCPUTime);
}

/// The machine's time since it started; `None` where /proc/stat does not tell.
pub(crate) fn machine_time() -> Option<MachineTime> {
    let total = procfs::KernelStats::current().ok()?.total;
    let ns = |ticks: u64| ticks * (1_000_000_000 / procfs::ticks_per_second().max(1));
    Some(MachineTime {
        // The kernel counts guests' time in user and nice already.
        user_ns: ns(total.user + total.nice),
        system_ns: ns(total.system),
        idle_ns: ns(total.idle),
        iowait_ns: ns(total.iowait.unwrap_or(0)),
        irq_ns: ns(total.irq.unwrap_or(0)),
        softirq_ns: ns(total.softirq.unwrap_or(0)),
        steal_ns: ns(total.steal.unwrap_or(0)),
    })
}

/// What passed between two readings; the kernel may take some idle or iowait back.
pub(crate) fn between(earlier: MachineTime, later: MachineTime) -> MachineTime {
    let passed = |of: fn(&MachineTime) -> u64| of(&later).saturating_sub(of(&earlier));
    MachineTime {
        user_ns: passed(|t| t.user_ns),
        system_ns: passed(|t| t.system_ns),
        idle_ns: passed(|t| t.idle_ns),
        iowait_ns: passed(|t| t.iowait_ns),
        irq_ns: passed(|t| t.irq_ns),
        softirq_ns: passed(|t| t.softirq_ns),
        steal_ns: passed(|t| t.steal_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_within_a_tick_is_counted() {
        let clock = || clock_gettime(ClockId::ThreadCPUTime);
        let before = Usage::of(libc::RUSAGE_THREAD);
        let began = clock();
        // Far less than a tick.
        while (clock() - began).tv_nsec < 200_000 {}
        let counted = Usage::of(libc::RUSAGE_THREAD).since(&before);
        let counted_ns = counted.user_ns + counted.system_ns;
        // Both are cut to microseconds.
        assert!(counted_ns >= 197_000, "{counted_ns} ns");
    }

    #[test]
    fn a_thread_that_has_ended_is_part_of_the_load() {
        let spin = |milliseconds: i64| {
            let began = clock_gettime(ClockId::ThreadCPUTime);
            let spent = || clock_gettime(ClockId::ThreadCPUTime) - began;
            while spent().tv_nsec < milliseconds * 1_000_000 {}
            account_this_thread();
        };
        let before = Usage::of_the_load();
        std::thread::spawn(move || spin(20))
            .join()
            .expect("it spins");
        let worker = Usage::of_the_load().since(&before);
        assert!(
            worker.user_ns + worker.system_ns >= 19_000_000,
            "{worker:?}"
        );
    }
}
