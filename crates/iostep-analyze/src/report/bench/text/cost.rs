//! What an operation cost the processors and the device.

use super::title_of;
use crate::bench::{RunSummary, Summary};
use crate::report::quantity::{bytes, count, decimal, duration, percent};
use crate::report::text::Style;
use crate::report::text::grid::grid;
use iostep_model::bench::WaldioRun;
use iostep_model::printable;

fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".into(), show)
}

fn time(ns: f64) -> String {
    duration(ns.round() as u64)
}

fn size(amount: f64) -> String {
    bytes(amount.round() as u64)
}

pub(super) fn table(summary: &Summary, style: Style) -> String {
    let names = [
        "run",
        ">user",
        ">system",
        ">of a CPU",
        ">switches",
        ">forced",
        ">written",
        ">read",
        ">writes",
        ">reads",
        ">flushes",
        ">amplification",
    ];
    let mut table = grid(style, &names);
    for run in &summary.runs {
        let (cpu, device) = (&run.cpu, run.device.as_ref());
        let cpus = cpu.user_cpus.zip(cpu.system_cpus);
        table.row([
            run.run.to_string(),
            or_dash(cpu.user_ns_per_operation, time),
            or_dash(cpu.system_ns_per_operation, time),
            percent(cpus.map(|(user, system)| user + system)),
            or_dash(cpu.voluntary_switches_per_operation, decimal),
            or_dash(cpu.involuntary_switches_per_operation, decimal),
            or_dash(device.and_then(|d| d.written_bytes_per_operation), size),
            or_dash(device.and_then(|d| d.read_bytes_per_operation), size),
            or_dash(device.and_then(|d| d.writes_per_operation), decimal),
            or_dash(device.and_then(|d| d.reads_per_operation), decimal),
            or_dash(device.and_then(|d| d.flushes_per_operation), decimal),
            or_dash(device.and_then(|d| d.write_amplification), |times| {
                format!("{times:.2}x")
            }),
        ]);
    }
    let title = format!(
        "Cost of {} {}: processor, context switches, device",
        match summary.work {
            "operation" => "an",
            _ => "a",
        },
        summary.work
    );
    table.titled(&title)
}

/// What waldio counted, as far as it counted anything.
fn waldio(said: &WaldioRun) -> String {
    let counters = said.counters.iter().filter(|(_, count)| *count != 0);
    let counters: Vec<String> = counters
        .map(|(name, number)| {
            let number = count(u64::try_from(*number).unwrap_or(0));
            format!("{number} {}", name.replace('_', " "))
        })
        .collect();
    let text = format!(
        "waldio: layout {}, sync {}: {}",
        said.layouts.join(" and "),
        said.sync,
        counters.join(", ")
    );
    printable(&text).into_owned()
}

/// What is said of the shown run alone: the machine, the threads, the totals, the page cache.
pub(super) fn lines(summary: &Summary, run: &RunSummary, style: Style) -> String {
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
            "device: {} in {} writes, {} in {} reads, {} flushes",
            bytes(counters.write.bytes),
            count(counters.write.ios),
            bytes(counters.read.bytes),
            count(counters.read.ios),
            count(counters.flush.ios)
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
    let lines = lines.into_iter().map(|line| format!(" {line}\n"));
    let title = title_of(summary, run, "Totals");
    format!("\n{}\n{}", style.bold(&title), lines.collect::<String>())
}
