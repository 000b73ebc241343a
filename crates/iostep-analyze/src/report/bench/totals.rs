//! What is said of a single run: the machine, the threads, the totals, the page cache.

use iostep_model::bench::{Environment, WaldioRun};
use iostep_report::quantity::{bytes, count, decimal, percent};

use crate::bench::{DeviceCost, RunSummary, Summary};

/// What waldio counted, as far as it counted anything.
fn waldio(said: &WaldioRun) -> String {
    let counters = said.counters.iter().filter(|(_, count)| *count != 0);
    let counters: Vec<String> = counters
        .map(|(name, number)| {
            let number = count(u64::try_from(*number).unwrap_or(0));
            format!("{number} {}", name.replace('_', " "))
        })
        .collect();
    format!(
        "waldio: layout {}, sync {}: {}",
        said.layouts.join(" and "),
        said.sync,
        counters.join(", ")
    )
}

/// Whose flushes a count has, if it is not that of the devices alone.
pub(super) fn whose_flushes(environment: &Environment) -> String {
    let disks = &environment.flushes_of;
    match disks.len() {
        0 => String::new(),
        1 => format!(" of the whole disk {}", disks[0]),
        _ => format!(" of the whole disks {}", disks.join(" and ")),
    }
}

/// The flushes of one run, and who may have asked for them.
fn flushes(environment: &Environment, device: &DeviceCost) -> String {
    if !device.flushes_not_counted.is_empty() {
        let disks = device.flushes_not_counted.join(" and ");
        return format!("flushes unknown, as the kernel does not count those of {disks}");
    }
    let whose = whose_flushes(environment);
    let flushes = format!("{} flushes{whose}", count(device.counters.flush.ios));
    match (device.flushes_per_operation, device.writes_beside) {
        (None, writes) if writes > 0 => format!(
            "{flushes}, of which some may be among {} writes and flushes of its other partitions",
            count(writes)
        ),
        _ => flushes,
    }
}

/// What is said of one run.
pub(super) fn lines(environment: &Environment, summary: &Summary, run: &RunSummary) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(machine) = run.cpu.machine {
        let [active, idle, iowait, irq, softirq, steal, others] = [
            machine.active,
            machine.idle,
            machine.iowait,
            machine.irq,
            machine.softirq,
            machine.steal,
            machine.others,
        ]
        .map(|share| percent(Some(share)));
        lines.push(format!(
            "machine: active {active} (others {others}, irq {irq}, softirq {softirq}), \
             I/O wait {iowait}, idle {idle}, steal {steal}"
        ));
    }
    lines.push(format!(
        "context switches: {} voluntary, {} involuntary",
        count(run.cpu.voluntary_switches),
        count(run.cpu.involuntary_switches)
    ));
    if let Some(device) = &run.device {
        let counters = device.counters;
        lines.push(format!(
            "device: {} in {} writes, {} in {} reads, {}",
            bytes(counters.write.bytes),
            count(counters.write.ios),
            bytes(counters.read.bytes),
            count(counters.read.ios),
            flushes(environment, device)
        ));
    }
    lines.extend(run.threads.map(|threads| {
        format!(
            "threads: slowest {}, fastest {} {}s/s",
            decimal(threads.slowest_per_second),
            decimal(threads.fastest_per_second),
            summary.work
        )
    }));
    lines.extend(run.page_cache.map(|cache| {
        let dirty = cache.dirty_pages;
        let dirty = dirty.map_or_else(String::new, |pages| format!(", {} dirty", count(pages)));
        format!(
            "page cache at the start: {} of {} pages{dirty}",
            count(cache.resident_pages),
            count(cache.pages)
        )
    }));
    lines.extend(run.waldio.as_ref().map(waldio));
    let atomic = run.atomic_commits;
    lines.extend(atomic.map(|commits| format!("batch atomic writes: {} commits", count(commits))));
    lines.extend(run.verification.as_ref().map(|found| {
        format!(
            "read back: {} compared, {} wrong",
            count(found.compared),
            count(found.wrong)
        )
    }));
    lines
}
