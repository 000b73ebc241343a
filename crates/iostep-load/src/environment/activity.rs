//! What happened while a job ran.

use std::path::Path;

use iostep_model::bench::figures::is_too_short;
use iostep_model::bench::off_device::fits_in_page_cache;
use iostep_model::bench::{Engine, Environment, Job, Pace, Run, RunState, Warning};

use super::text::{entries, read, value};

/// Shares of the machine's time above which others, or the hypervisor, are felt.
const OTHERS: f64 = 0.05;
const STEAL: f64 = 0.01;
/// A rate is missed by more than what a last operation on its way explains.
const RATE: f64 = 0.95;

/// Counters of the machine that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Pages swapped in and out.
    swapped_pages: u64,
    /// Time of the kernel's own threads, nanoseconds.
    kernel_threads_ns: u64,
    /// Time of all threads of this process, nanoseconds.
    process_ns: u64,
}

impl Activity {
    /// Since the machine started.
    pub fn now(root: &Path) -> Activity {
        let proc = root.join("proc");
        let vmstat = read(&proc.join("vmstat")).unwrap_or_default();
        let pages = |key| value(&vmstat, key, ' ').and_then(|text| text.parse().ok());
        let swapped = [pages("pswpin"), pages("pswpout")];
        Activity {
            swapped_pages: swapped
                .iter()
                .flatten()
                .fold(0, |sum: u64, &n| sum.saturating_add(n)),
            kernel_threads_ns: kernel_threads_ns(&proc),
            process_ns: CpuTime::read(&proc.join("self")).map_or(0, |time| time.ns),
        }
    }

    /// What was added since `earlier`; 0 where a counter went back, as when a thread ended.
    pub fn since(self, earlier: Activity) -> Activity {
        Activity {
            swapped_pages: self.swapped_pages.saturating_sub(earlier.swapped_pages),
            kernel_threads_ns: self
                .kernel_threads_ns
                .saturating_sub(earlier.kernel_threads_ns),
            process_ns: self.process_ns.saturating_sub(earlier.process_ns),
        }
    }
}

/// Writeback, journals and loop devices work in threads of the kernel.
fn kernel_threads_ns(proc: &Path) -> u64 {
    let is_process = |directory: &std::path::PathBuf| {
        let name = directory.file_name().map(|name| name.as_encoded_bytes());
        name.is_some_and(|name| name.iter().all(u8::is_ascii_digit))
    };
    entries(proc)
        .into_iter()
        .filter(is_process)
        // A process may have ended meanwhile.
        .filter_map(|directory| CpuTime::read(&directory))
        .filter(|time| time.is_kernel_thread)
        .fold(0, |sum, time| sum.saturating_add(time.ns))
}

/// CPU time of a process, from its start on.
struct CpuTime {
    is_kernel_thread: bool,
    ns: u64,
}

impl CpuTime {
    fn read(directory: &Path) -> Option<CpuTime> {
        CpuTime::parse(&read(&directory.join("stat"))?)
    }

    /// Of a line of /proc/PID/stat. The name in parentheses may hold anything
    /// (proc_pid_stat(5)).
    fn parse(stat: &str) -> Option<CpuTime> {
        // include/linux/sched.h
        const PF_KTHREAD: u32 = 0x0020_0000;
        let (_, after_name) = stat.rsplit_once(')')?;
        let mut fields = after_name.split_ascii_whitespace();
        let flags: u32 = fields.nth(6)?.parse().ok()?;
        let user: u64 = fields.nth(4)?.parse().ok()?;
        let system: u64 = fields.next()?.parse().ok()?;
        let tick_ns = 1_000_000_000 / procfs::ticks_per_second().max(1);
        Some(CpuTime {
            is_kernel_thread: flags & PF_KTHREAD != 0,
            ns: user.saturating_add(system).saturating_mul(tick_ns),
        })
    }
}

/// Adds what others did to the machine.
pub fn warn(passed: &Activity, job: &Job, runs: &[Run], warnings: &mut Vec<Warning>) {
    if passed.swapped_pages > 0 {
        warnings.push(Warning::Swapping {
            pages: passed.swapped_pages,
        });
    }
    // A ring's workers are threads of this process that the runs do not know of. That preparing
    // the runs counts as well makes others look better than they are.
    let workers_ns = match job {
        Job::File(job) if job.engine == Engine::Uring => {
            let cpu_ns = |run: &Run| run.cpu.user_ns + run.cpu.system_ns;
            let known_ns = runs.iter().map(cpu_ns).sum();
            passed.process_ns.saturating_sub(known_ns)
        }
        _ => 0,
    };
    let shares = Shares::of(runs, passed.kernel_threads_ns.saturating_add(workers_ns));
    if shares.others > OTHERS {
        warnings.push(Warning::BusyMachine {
            others: shares.others,
        });
    }
    if shares.steal > STEAL {
        warnings.push(Warning::Steal {
            share: shares.steal,
        });
    }
}

/// Shares of the machine's CPU time, 0 to 1.
#[derive(Debug, PartialEq)]
struct Shares {
    /// Of other processes. What the kernel's threads and interrupts take is not theirs: most of
    /// it is done for the load.
    others: f64,
    steal: f64,
}

impl Shares {
    /// `for_load_ns` of CPU time were spent for the load outside of its own threads.
    fn of(runs: &[Run], for_load_ns: u64) -> Shares {
        let (mut total_ns, mut busy_ns, mut steal_ns) = (0, 0, 0u64);
        let mut ours_ns = for_load_ns;
        for run in runs {
            let Some(machine) = run.cpu.machine else {
                continue;
            };
            total_ns += machine.total_ns();
            busy_ns += machine.user_ns + machine.system_ns;
            steal_ns += machine.steal_ns;
            ours_ns += run.cpu.user_ns + run.cpu.system_ns;
        }
        let share = |ns: u64| ns as f64 / total_ns.max(1) as f64;
        Shares {
            others: share(busy_ns.saturating_sub(ours_ns)),
            steal: share(steal_ns),
        }
    }
}

/// Adds what the job itself makes hard to measure.
pub fn warn_of_job(
    job: &Job,
    environment: &Environment,
    runs: &[Run],
    warnings: &mut Vec<Warning>,
) {
    let (threads, measurement) = (job.threads(), job.measurement());
    let (pinned, pace) = (&measurement.cpus, &measurement.pace);
    warnings.extend(more_threads(threads, pinned, environment.host.cpus));
    if let Job::File(job) = job {
        warnings.extend(fits_in_page_cache(job, environment.memory_bytes, runs));
    }
    let complete = || runs.iter().filter(|run| run.state == RunState::Complete);
    if let Some(elapsed_ns) = complete().map(|run| run.elapsed_ns).min()
        && is_too_short(elapsed_ns)
    {
        warnings.push(Warning::TooShort { elapsed_ns });
    }
    warnings.extend(rate_missed(pace, complete()));
    warnings.extend(stock_log(runs));
}

/// The first reason that a run has for it.
fn stock_log(runs: &[Run]) -> Option<Warning> {
    let mut of_runs = runs.iter().filter_map(|run| run.waldio.as_ref());
    let reason = of_runs.find_map(|waldio| waldio.reasons.first().cloned())?;
    Some(Warning::StockLog { reason })
}

fn more_threads(threads: u32, pinned: &[u32], usable: u32) -> Option<Warning> {
    let mut pinned = pinned.to_vec();
    pinned.sort_unstable();
    pinned.dedup();
    let cpus = if pinned.is_empty() {
        usable
    } else {
        pinned.len() as u32
    };
    (threads > cpus).then_some(Warning::MoreThreadsThanCpus { threads, cpus })
}

fn rate_missed<'a>(pace: &Pace, runs: impl Iterator<Item = &'a Run>) -> Option<Warning> {
    let asked = pace.operations_per_second?;
    let rate = |run: &Run| run.operations as f64 * 1e9 / run.elapsed_ns.max(1) as f64;
    let reached = runs.map(rate).min_by(f64::total_cmp)?;
    (reached < asked * RATE).then_some(Warning::RateNotReached { asked, reached })
}

#[cfg(test)]
mod tests;
