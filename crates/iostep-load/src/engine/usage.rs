//! Processor time and context switches.

use iostep_model::bench::{Cpu, MachineTime};
use procfs::CurrentSI;
use rustix::time::{ClockId, clock_gettime};

/// What a thread has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    user_ns: u64,
    system_ns: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl Usage {
    /// Of the calling thread, since it began.
    pub fn of_this_thread() -> Usage {
        // getrusage(2) answers with what was accounted at the last tick or switch. This clock does
        // the accounting of the time since then (kernel/sched/core.c, task_sched_runtime).
        let _ = clock_gettime(ClockId::ThreadCPUTime);
        // SAFETY: all zeros is a valid `rusage`.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a `rusage` that lives through the call.
        let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
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

    /// Adds what was used between `earlier` and this.
    pub fn add_since(&self, earlier: &Usage, cpu: &mut Cpu) {
        let used = |of: fn(&Usage) -> u64| of(self).saturating_sub(of(earlier));
        cpu.user_ns += used(|u| u.user_ns);
        cpu.system_ns += used(|u| u.system_ns);
        cpu.voluntary_switches += used(|u| u.voluntary_switches);
        cpu.involuntary_switches += used(|u| u.involuntary_switches);
    }
}

/// The machine's time since it started; `None` where /proc/stat does not tell.
pub(super) fn machine_time() -> Option<MachineTime> {
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
pub(super) fn between(earlier: MachineTime, later: MachineTime) -> MachineTime {
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
        let mut counted = Cpu::default();
        let before = Usage::of_this_thread();
        let began = clock();
        // Far less than a tick.
        while (clock() - began).tv_nsec < 200_000 {}
        Usage::of_this_thread().add_since(&before, &mut counted);
        let counted_ns = counted.user_ns + counted.system_ns;
        // Both are cut to microseconds.
        assert!(counted_ns >= 197_000, "{counted_ns} ns");
    }
}
