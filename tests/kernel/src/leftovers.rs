//! What a run must not leave behind.
//!
//! Other people may use the machine, so only what can be told to be ours counts: every temporary
//! file of a test and of its children lies below one directory, which `TMPDIR` names.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The kernel ends a killed process's links and loop devices a little after the process.
const PATIENCE: Duration = Duration::from_secs(30);

/// Mounts, loop devices, processes, BPF objects and trace instances that remain, in words.
///
/// Waits a while for them to go.
pub fn of_runs_below(scratch: &Path) -> Vec<String> {
    let began = Instant::now();
    loop {
        let found = look(scratch);
        if found.is_empty() || began.elapsed() > PATIENCE {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn look(scratch: &Path) -> Vec<String> {
    let scratch = scratch.to_string_lossy();
    let mut found = Vec::new();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    found.extend(mounts_below(&mounts, &scratch));
    found.extend(loops_below(&scratch));
    found.extend(processes_of(&scratch));
    found.extend(pinned_programs());
    found.extend(orphaned_instances());
    found
}

fn mounts_below(mountinfo: &str, scratch: &str) -> Vec<String> {
    mountinfo
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|point| point.starts_with(scratch))
        .map(|point| format!("mount {point}"))
        .collect()
}

fn loops_below(scratch: &str) -> Vec<String> {
    names_in("/sys/block")
        .into_iter()
        .filter_map(|name| {
            let path = format!("/sys/block/{name}/loop/backing_file");
            let backing = fs::read_to_string(path).ok()?;
            backing
                .starts_with(scratch)
                .then(|| format!("loop device {name}"))
        })
        .collect()
}

fn processes_of(scratch: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let ours = format!("TMPDIR={scratch}");
    names_in("/proc")
        .into_iter()
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()) && *name != own)
        .filter_map(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let ours = environment.split(|b| *b == 0).any(|v| v == ours.as_bytes());
            let comm = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            ours.then(|| format!("process {pid} ({})", comm.trim_end()))
        })
        .collect()
}

/// BPF objects live as long as a descriptor or a pin; a dead process leaves only pins.
fn pinned_programs() -> Vec<String> {
    names_in("/sys/fs/bpf")
        .into_iter()
        .filter(|name| name.contains("iostep"))
        .map(|name| format!("pinned BPF object {name}"))
        .collect()
}

/// Instances of tracefs, `iostep-PID-N`, whose process is no more.
fn orphaned_instances() -> Vec<String> {
    names_in("/sys/kernel/tracing/instances")
        .into_iter()
        .filter(|name| name.starts_with("iostep"))
        .filter(|name| owner(name).is_none_or(|pid| !Path::new("/proc").join(pid).exists()))
        .map(|name| format!("tracefs instance {name}"))
        .collect()
}

fn owner(instance: &str) -> Option<&str> {
    instance.split('-').nth(1)
}

fn names_in(directory: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_names_its_owner() {
        assert_eq!(owner("iostep-16974-0"), Some("16974"));
    }

    #[test]
    fn only_mounts_below_the_directory_count() {
        let text = "29 1 254:0 / / rw - ext4 /dev/vda rw
40 29 7:0 / /tmp/ours/mnt rw - ext4 /dev/loop0 rw
41 29 7:1 / /tmp/theirs/mnt rw - ext4 /dev/loop1 rw";
        assert_eq!(mounts_below(text, "/tmp/ours"), ["mount /tmp/ours/mnt"]);
    }
}
