//! Warnings in words: what spoils a measurement, and what to do about it.

use std::path::PathBuf;

use iostep_model::bench::{ReadWritten, Warning};
use iostep_report::quantity;

/// A warning as a fact and an advice, without a full stop: `the machine runs on its battery`,
/// `plug it in`. Names in it come from the measured machine as they are.
pub fn of(warning: &Warning) -> (String, &'static str) {
    (fact(warning), advice(warning))
}

fn fact(warning: &Warning) -> String {
    let percent = |share: f64| quantity::percent(Some(share));
    match warning {
        Warning::CpuGovernor { governor, cpus } => {
            format!("the governor {governor} may change the frequency of {cpus} CPUs")
        }
        Warning::OnBattery => "the machine runs on its battery".into(),
        Warning::BatterySaver => "Android's battery saver was on".into(),
        Warning::Hot { status } => format!("the phone was hot: thermal status {status} of 6"),
        Warning::Unreadable { paths } => unreadable(paths),
        Warning::CallsRefused { calls, last } => {
            let calls = quantity::count(*calls);
            format!("{calls} system calls were refused by a filter, number {last} the last")
        }
        Warning::FilesystemNearlyFull { mount_point, used } => {
            let mount_point = mount_point.display();
            format!("{mount_point} is {} full", percent(*used))
        }
        Warning::Compression { by } => format!("{by} compresses what is written"),
        Warning::InMemory { filesystem } => format!("{filesystem} has no device below"),
        Warning::Swapping { pages } => {
            format!("{} pages were swapped meanwhile", quantity::count(*pages))
        }
        Warning::BusyMachine { others } => {
            let others = percent(*others);
            format!("others used {others} of the machine's CPU time")
        }
        Warning::Steal { share } => {
            let share = percent(*share);
            format!("the hypervisor took {share} of the machine's CPU time away")
        }
        Warning::MoreThreadsThanCpus { threads, cpus } => {
            format!("{threads} threads share {cpus} CPUs, so latencies hold the wait for one")
        }
        Warning::TooShort { elapsed_ns } => {
            let elapsed = quantity::duration(*elapsed_ns);
            format!("{elapsed} of measuring are too short to say much")
        }
        Warning::RateNotReached { asked, reached } => {
            format!("{reached:.0} operations/s were reached of {asked:.0} asked for")
        }
        Warning::NotSteady { run, reason } => format!("run {run} was not steady: {reason}"),
        Warning::SpreadTooWide { spread, bound } => {
            let [spread, bound] = [*spread, *bound].map(percent);
            format!("the runs are known to {spread} only, not to {bound}")
        }
        Warning::StockLog { reason } => format!("waldio left the log to SQLite: {reason}"),
        of_device => device_fact(of_device),
    }
}

/// What is said of the device, and of what it got.
fn device_fact(warning: &Warning) -> String {
    match warning {
        Warning::BusyDevice {
            others,
            device,
            processes,
        } => busy_device(others, device, processes),
        Warning::WithoutCheckpoint => {
            "the log was not checkpointed within a run, so what a transaction wrote is without that"
                .into()
        }
        Warning::StayedInMemory {
            payload_bytes,
            written_bytes,
        } => {
            let [payload, written] = [*payload_bytes, *written_bytes].map(quantity::bytes);
            format!(
                "this stayed in memory: {payload} were written, and the device got {written}, so the \
                 figures are those of the page cache"
            )
        }
        Warning::FitsInPageCache {
            file_bytes,
            memory_bytes,
        } => {
            let [files, memory] = [*file_bytes, *memory_bytes].map(quantity::bytes);
            format!("{files} of files fit into {memory} of memory and are read from the page cache")
        }
        Warning::LoopDevice {
            device,
            backing_file,
        } => {
            let file = backing_file.display();
            format!("{device} is a loop device: its figures are those of {file} below")
        }
        other => format!("{other:?}"),
    }
}

fn busy_device(others: &ReadWritten, device: &ReadWritten, processes: &[String]) -> String {
    let of = |others: u64, all: u64, did: &str| {
        let [others, all] = [others, all].map(quantity::bytes);
        format!("{others} of {all} {did}")
    };
    let written = of(others.written_bytes, device.written_bytes, "written");
    let read = of(others.read_bytes, device.read_bytes, "read");
    let what = match (others.written_bytes, others.read_bytes) {
        (_, 0) => written,
        (0, _) => read,
        _ => format!("{written}, {read}"),
    };
    let whose = match processes.is_empty() {
        true => String::new(),
        false => format!(" (by {})", processes.join(", ")),
    };
    format!("others used the device too: up to {what}{whose}, so that is not known of an operation")
}

fn unreadable(paths: &[PathBuf]) -> String {
    let are = if paths.len() > 1 { "are" } else { "is" };
    let paths: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
    let paths = paths.join(", ");
    format!("{paths} {are} not shown to this process, so what is made of it is missing")
}

fn advice(warning: &Warning) -> &'static str {
    match warning {
        Warning::CpuGovernor { .. } => "choose the governor performance",
        Warning::OnBattery => "plug it in",
        Warning::BatterySaver => "switch it off",
        Warning::Hot { .. } => "let it cool down, and repeat",
        Warning::Unreadable { .. } => "measure where they can be read, if these figures matter",
        Warning::CallsRefused { .. } => "look whether the job did what it should, with --verify",
        Warning::FilesystemNearlyFull { .. } => "make room, or take an empty filesystem",
        Warning::Compression { .. } => {
            "keep the incompressible payload, or compare only with what writes the same bytes"
        }
        Warning::InMemory { .. } => "take a filesystem on a device, unless memory is what you want",
        Warning::Swapping { .. } => "close what needs the memory, or make files and threads fewer",
        Warning::BusyMachine { .. } => {
            "stop whatever else runs, or repeat until the spread is small"
        }
        Warning::BusyDevice { .. } => "stop them, or take storage of your own with --on loop",
        Warning::WithoutCheckpoint => "take more --transactions, or a smaller --checkpoint",
        Warning::StayedInMemory { .. } => {
            "take --sync fdatasync, --transfer direct or --end-sync to measure the device"
        }
        Warning::Steal { .. } => "take a machine of your own, or repeat until the spread is small",
        Warning::MoreThreadsThanCpus { .. } => "take no more threads than CPUs to measure a device",
        Warning::FitsInPageCache { .. } => "take --transfer direct, --cache drop or larger files",
        Warning::TooShort { .. } => "take --time, or more operations",
        Warning::RateNotReached { .. } => "take a lower rate or more threads",
        Warning::NotSteady { .. } => "take a longer --ramp and a longer --time",
        Warning::SpreadTooWide { .. } => "allow more runs, longer ones, or quieten the machine",
        Warning::StockLog { .. } => "take ext4, XFS or F2FS on a device, or --journal wal",
        Warning::LoopDevice { .. } => {
            "measure the device below itself, unless this is what you want"
        }
    }
}
