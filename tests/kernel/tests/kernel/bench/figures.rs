//! Processor time and context switches, as the kernel accounts them to the command from outside.

use std::path::Path;

use anyhow::Context;
use iostep_lab::Kind;
use iostep_model::bench::{Cpu, MachineTime, Run};

use super::{Fixture, TMPFS, attempt, brief, document, ground_needs, measure, only_run};
use crate::bad_input::TempMount;
use crate::case::Case;

/// Of /proc/stat, nanoseconds.
const TICK_NS: u64 = 10_000_000;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "the shares of the machine's time add up to its time",
            TMPFS,
            shares_add_up,
        ),
        Case::new(
            "the shortest run has no figure that is none",
            TMPFS,
            shortest_run,
        ),
        Case::new(
            "context switches of all threads are counted",
            ground_needs(Kind::Ext4, &[]),
            context_switches,
        ),
        Case::new("seconds and threads add up to the run", TMPFS, parts_add_up),
        Case::new("a rate is that of all threads together", TMPFS, rate),
    ]
}

fn cpus() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let is_one = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    Ok(text.lines().filter(is_one).count() as u64)
}

fn shares_add_up() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let cpus = cpus()?;
    for flags in ["--time 1 --threads 2", "--time 1 --think 1ms"] {
        let document = measure("file", place.path(), &format!("--size 1MiB {flags}"))?;
        let run = only_run(&document)?;
        let machine = run.cpu.machine.context("no machine time")?;
        let MachineTime {
            user_ns,
            system_ns,
            idle_ns,
            iowait_ns,
            irq_ns,
            softirq_ns,
            steal_ns,
        } = machine;
        let busy_ns = user_ns + system_ns + irq_ns + softirq_ns;
        let sum_ns = busy_ns + idle_ns + iowait_ns + steal_ns;
        let wall_ns = run.elapsed_ns * cpus;
        println!("    {sum_ns} of {wall_ns} ns, {busy_ns} of them busy");
        // Each of the seven is rounded, and each CPU is up to a tick behind; the readings are a
        // moment before and after the threads.
        let precision_ns = (7 + 2 * cpus) * TICK_NS + wall_ns / 20;
        anyhow::ensure!(
            sum_ns.abs_diff(wall_ns) <= precision_ns,
            "{sum_ns} ns of {wall_ns}: {machine:?}"
        );
    }
    Ok(())
}

/// True if a text has a number that is none.
fn has_no_number(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .map(str::to_ascii_lowercase)
        .any(|word| matches!(word.as_str(), "nan" | "inf"))
}

fn shortest_run() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    for flags in [
        "",
        "--csv",
        "--json",
        "--repeat 2",
        "--time 1ns",
        "--access read",
    ] {
        let flags = format!("--size 4KiB {flags}");
        let outcome = attempt("file", place.path(), &flags)?.success()?;
        let text = &outcome.stdout;
        anyhow::ensure!(!has_no_number(text), "{flags}: {text}");
        anyhow::ensure!(!text.is_empty(), "{flags}: nothing is printed");
    }
    Ok(())
}

/// What all ended children of this process have used: context switches and CPU time in ns.
fn children() -> anyhow::Result<Cpu> {
    // SAFETY: all zeros is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a `rusage` that lives through the call.
    let result = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) };
    anyhow::ensure!(
        result == 0,
        "getrusage: {}",
        std::io::Error::last_os_error()
    );
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Ok(Cpu {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        machine: None,
    })
}

/// Runs bench: its run, and what the kernel accounted to the whole process.
fn accounted(target: &Path, flags: &str) -> anyhow::Result<(Run, Cpu)> {
    let before = children()?;
    let document = measure("file", target, flags)?;
    let after = children()?;
    let cpu = Cpu {
        user_ns: after.user_ns - before.user_ns,
        system_ns: after.system_ns - before.system_ns,
        voluntary_switches: after.voluntary_switches - before.voluntary_switches,
        involuntary_switches: after.involuntary_switches - before.involuntary_switches,
        machine: None,
    };
    Ok((only_run(&document)?.clone(), cpu))
}

fn context_switches() -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    for threads in [1, 4] {
        let flags = format!("--size 1MiB --sync fdatasync --threads {threads}");
        let (run, process) = accounted(ground.root(), &flags)?;
        let own = run.cpu;
        println!("    {threads} threads: {own:?}, the process {process:?}");
        anyhow::ensure!(run.operations == threads * 256, "{}", brief(&run));
        // Nearly every sync waits for the device.
        let waits = own.voluntary_switches;
        anyhow::ensure!(waits >= run.operations * 3 / 4, "{waits} switches");
        anyhow::ensure!(waits <= process.voluntary_switches, "more than the process");
        // What the first thread does before and after is little beside it.
        let rest = process.voluntary_switches - waits;
        anyhow::ensure!(rest < 256, "{rest} switches of the process are missing");
        let forced = own.involuntary_switches;
        anyhow::ensure!(
            forced <= process.involuntary_switches,
            "more than the process"
        );
        let (own_ns, all_ns) = (
            own.user_ns + own.system_ns,
            process.user_ns + process.system_ns,
        );
        anyhow::ensure!(own_ns <= all_ns && own_ns > 0, "{own_ns} of {all_ns} ns");
    }
    Ok(())
}

fn parts_add_up() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let document = measure("file", place.path(), "--size 1MiB --time 1.2 --threads 2")?;
    let run = only_run(&document)?;
    let (seconds, threads) = (&run.seconds, &run.threads);
    anyhow::ensure!(seconds.len() >= 2 && threads.len() == 2, "{}", brief(run));
    for (what, operations, bytes) in [
        (
            "seconds",
            seconds.iter().map(|s| s.operations).sum::<u64>(),
            seconds.iter().map(|s| s.bytes).sum::<u64>(),
        ),
        (
            "threads",
            threads.iter().map(|t| t.operations).sum(),
            threads.iter().map(|t| t.bytes).sum(),
        ),
    ] {
        anyhow::ensure!(
            operations == run.operations,
            "{what}: {operations}, {}",
            brief(run)
        );
        anyhow::ensure!(bytes == run.bytes, "{what}: {bytes}, {}", brief(run));
    }
    anyhow::ensure!(run.bytes == run.operations * 4096, "{}", brief(run));
    let length_ns: u64 = seconds.iter().map(|s| s.length_ns).sum();
    anyhow::ensure!(
        length_ns == run.elapsed_ns,
        "{length_ns} ns, {}",
        brief(run)
    );
    Ok(())
}

fn rate() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let flags = "--size 1MiB --threads 2 --rate 500 --time 1 --json";
    let outcome = attempt("file", place.path(), flags)?.success()?;
    let document = document(&outcome)?;
    let operations = only_run(&document)?.operations;
    println!("    {operations} operations");
    // On its schedule there are 500, each thread's last may fall on the end; never more.
    anyhow::ensure!(operations <= 502, "{operations} operations");
    anyhow::ensure!(operations >= 50, "{operations} operations");
    Ok(())
}
