//! Kernel, processor, memory, clock; governor and battery.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use iostep_model::bench::Warning;

use super::text::{entries, read, value};

/// Keys of /proc/cpuinfo that hold a name, by architecture: x86 and some arm64, POWER, MIPS,
/// s390, RISC-V, 32-bit ARM of old.
const NAME_KEYS: [&str; 6] = [
    "model name",
    "cpu",
    "cpu model",
    "processor 0",
    "uarch",
    "Hardware",
];

/// The processor's name; `unknown` where nothing names it.
pub fn processor(root: &Path) -> String {
    let cpuinfo = read(&root.join("proc/cpuinfo")).unwrap_or_default();
    let name = NAME_KEYS.iter().find_map(|key| value(&cpuinfo, key, ':'));
    let board = || {
        let model = read(&root.join("sys/firmware/devicetree/base/model"))?;
        Some(model.trim_end_matches('\0').to_owned())
    };
    let known = match name {
        Some(name) => Some(name.to_owned()),
        // arm64 gives only the numbers of its cores; the board's name says more to people.
        None => match (board(), arm_cores(&cpuinfo)) {
            (Some(board), Some(cores)) => Some(format!("{board} ({cores})")),
            (board, cores) => board.or(cores),
        },
    };
    known
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".into())
}

/// `4 x ARM 0x41/0xd05, 4 x ARM 0x41/0xd0d`: implementer and part of the kinds of cores that
/// there are (MIDR_EL1).
fn arm_cores(cpuinfo: &str) -> Option<String> {
    let mut kinds = BTreeMap::<(&str, &str), u32>::new();
    let mut implementer = "";
    for line in cpuinfo.lines() {
        match line.split_once(':').map(|(key, v)| (key.trim(), v.trim())) {
            Some(("CPU implementer", found)) => implementer = found,
            Some(("CPU part", part)) => *kinds.entry((implementer, part)).or_default() += 1,
            _ => {}
        }
    }
    let words: Vec<_> = kinds
        .into_iter()
        .map(|((implementer, part), count)| format!("{count} x ARM {implementer}/{part}"))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// CPUs that this process may use.
pub fn cpus() -> u32 {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => set.count(),
        // The kernel has more CPUs than the set has bits.
        Err(_) => std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
    }
}

/// `MemTotal`, bytes; 0 where it is not told.
pub fn memory_bytes(root: &Path) -> u64 {
    let meminfo = read(&root.join("proc/meminfo")).unwrap_or_default();
    value(&meminfo, "MemTotal", ':')
        .and_then(|text| text.strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib.saturating_mul(1024))
}

/// The clock below `CLOCK_MONOTONIC`; `unknown` where it is not told.
pub fn clock_source(root: &Path) -> String {
    let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    read(&root.join(clock)).unwrap_or_else(|| "unknown".into())
}

/// True in an Android app, or in what one started: Android, and a filter of system calls. A shell of
/// adb has no such filter.
///
/// Source: proc_pid_status(5), `Seccomp`; every app is a fork of Android's app_process.
pub fn is_android_app(root: &Path) -> bool {
    let status = read(&root.join("proc/self/status")).unwrap_or_default();
    let is_filtered = value(&status, "Seccomp", ':') == Some("2");
    let programs = ["system/bin/app_process64", "system/bin/app_process32"];
    is_filtered && programs.iter().any(|path| root.join(path).exists())
}

/// What cannot be read, so that what is made of it is missing in the result: an Android app is not
/// shown it.
pub fn unreadable(root: &Path) -> Option<Warning> {
    let files = ["proc/stat", "proc/vmstat"];
    let files = files.into_iter().filter(|path| {
        let text = read(&root.join(path));
        text.is_none_or(|text| text.is_empty())
    });
    let directories = ["sys/block"].into_iter();
    let directories = directories.filter(|path| std::fs::read_dir(root.join(path)).is_err());
    let paths: Vec<PathBuf> = files
        .chain(directories)
        .map(|path| Path::new("/").join(path))
        .collect();
    (!paths.is_empty()).then_some(Warning::Unreadable { paths })
}

/// What of the machine itself makes times vary.
pub fn warnings(root: &Path) -> Vec<Warning> {
    let governors = governors(root).into_iter();
    let mut warnings: Vec<_> = governors
        .map(|(governor, cpus)| Warning::CpuGovernor { governor, cpus })
        .collect();
    warnings.extend(is_on_battery(root).then_some(Warning::OnBattery));
    warnings
}

/// Governors that let the frequency vary, and of how many CPUs.
fn governors(root: &Path) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    for policy in entries(&root.join("sys/devices/system/cpu/cpufreq")) {
        let Some(governor) = read(&policy.join("scaling_governor")) else {
            continue;
        };
        let limit = |name: &str| read(&policy.join(name));
        let is_fixed = limit("scaling_min_freq")
            .zip(limit("scaling_max_freq"))
            .is_some_and(|(least, most)| least == most);
        if is_fixed || matches!(governor.as_str(), "performance" | "userspace" | "") {
            continue;
        }
        let cpus = read(&policy.join("affected_cpus")).unwrap_or_default();
        *found.entry(governor).or_default() += cpus.split_ascii_whitespace().count().max(1) as u32;
    }
    found
}

/// True if a battery of the machine (not of a mouse) discharges and nothing else feeds it.
fn is_on_battery(root: &Path) -> bool {
    let supplies = entries(&root.join("sys/class/power_supply"));
    let is = |supply: &Path, name: &str, wanted: &str| {
        read(&supply.join(name)).is_some_and(|text| text == wanted)
    };
    let own = |supply: &&std::path::PathBuf| !is(supply, "scope", "Device");
    let mut own_supplies = supplies.iter().filter(own);
    let mut discharges = false;
    let is_fed = own_supplies.any(|supply| {
        if is(supply, "type", "Battery") {
            discharges |= is(supply, "status", "Discharging");
            return false;
        }
        is(supply, "online", "1")
    });
    discharges && !is_fed
}
