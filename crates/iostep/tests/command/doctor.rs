//! `iostep doctor` against what the kernel says.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{iostep, text};

fn doctor(arguments: &[&str]) -> String {
    let output = iostep().arg("doctor").args(arguments).output();
    let output = output.expect("iostep runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// Capabilities that whoever runs this has.
fn effective() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    u64::from_str_radix(line.expect("a mask").trim(), 16).expect("hexadecimal")
}

#[test]
fn doctor_says_what_the_kernel_says() {
    let found: Value = serde_json::from_str(&doctor(&["--json"])).expect("JSON");
    let uname = Command::new("uname")
        .arg("-r")
        .output()
        .expect("uname runs");
    assert_eq!(found["host"]["kernel"], text(&uname.stdout).trim());
    let known = std::fs::read_to_string("/proc/filesystems").expect("/proc");
    for filesystem in found["filesystems"].as_array().expect("filesystems") {
        let name = filesystem["name"].as_str().expect("a name");
        let is_known = known
            .lines()
            .any(|line| line.ends_with(&format!("\t{name}")));
        // A module may have been loaded since.
        assert!(filesystem["mounts"] == is_known || is_known, "{filesystem}");
        assert_ne!(
            filesystem["mkfs"].is_null(),
            filesystem["mkfs_missing"].is_null(),
            "{filesystem}"
        );
    }
    for disk in found["disks"].as_array().expect("disks") {
        let name = disk["name"].as_str().expect("a name");
        let size = std::fs::read_to_string(Path::new("/sys/block").join(name).join("size"));
        let sectors: u64 = size.expect("a disk").trim().parse().expect("a number");
        assert_eq!(disk["capacity_bytes"], sectors * 512, "{name}");
    }
}

#[test]
fn what_doctor_denies_has_a_reason_and_a_way_on() {
    let found: Value = serde_json::from_str(&doctor(&["--json"])).expect("JSON");
    let abilities = found["abilities"].as_array().expect("abilities");
    assert_eq!(abilities.len(), 5);
    let printed = doctor(&[]);
    let first = printed.lines().next().expect("a line");
    for ability in abilities {
        let (what, works) = (ability["what"].as_str().expect("words"), &ability["works"]);
        assert_eq!(
            first.contains("everything works") || !first.contains(what),
            *works
        );
        if *works == false {
            let note = ability["note"].as_str().expect("a reason");
            assert!(printed.contains(note), "{note}");
        }
    }
    // CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF (include/uapi/linux/capability.h).
    let may_load = effective() & (1 << 21) != 0 || effective() >> 38 & 3 == 3;
    for ability in &abilities[..2] {
        if !may_load {
            assert_eq!(ability["works"], false, "{ability}");
            let note = ability["note"].as_str().expect("a reason");
            assert!(note.contains("CAP_BPF"), "{note}");
        }
    }
}
