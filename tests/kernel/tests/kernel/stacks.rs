//! Filesystems on devices that are made of others: LUKS, LVM, md. The same promises as on a disk,
//! and what a trace says of the way down.

use iostep_kernel_tests::stack::Below;

use crate::attribution::{self, Judge};
use crate::case::Case;
use crate::guest_filesystems;
use crate::recording::{Recording, Scenario};
use crate::variants;

/// The blocks that the workload writes have 4 KiB, also on a small device; and a log that it can
/// hold.
const EXT4: &[&str] = &["-b", "4096", "-J", "size=16"];

/// Every test of this file. One of each kind of way down, unless `IOSTEP_VARIANTS=all` asks for
/// the others, too.
pub fn cases() -> Vec<Case> {
    let [ext4, btrfs, xfs] = attribution::WHOLE;
    let ext4 = Scenario { mkfs: EXT4, ..ext4 };
    let mut scenarios = vec![
        on("ext4 on LVM on LUKS", ext4, Below::LvmOnLuks),
        on("ext4 on RAID 1", ext4, Below::Raid1),
    ];
    if variants::are_all_wanted() {
        scenarios.extend([
            on("btrfs on LUKS", btrfs, Below::Luks),
            on("xfs on LVM", xfs, Below::Lvm),
            on("ext4 on striped LVM", ext4, Below::Striped),
            on("ext4 on RAID 0", ext4, Below::Raid0),
        ]);
    }
    let mut all = Vec::new();
    for scenario in scenarios {
        all.extend(attribution::cases_of(scenario));
    }
    all
}

/// One of the whole filesystems on a stack.
fn on(name: &'static str, whole: Scenario, below: Below) -> Scenario {
    Scenario {
        name,
        below,
        modes: guest_filesystems::MODES,
        ..whole
    }
}

/// What a trace on a stack has to say besides.
pub fn promises(below: Below) -> Vec<(&'static str, Judge)> {
    match below {
        Below::Nothing => Vec::new(),
        _ => vec![("the device's name says the way down", label as Judge)],
    }
}

fn label(recording: &Recording) -> anyhow::Result<()> {
    let label = recording.trace.manifest.device_label();
    println!("    {label}");
    let expected = recording.below.label();
    anyhow::ensure!(label.contains(expected), "{label}: no {expected}");
    let device = &recording.outcome.stdout;
    anyhow::ensure!(device.contains(&label), "{label} is not in: {device}");
    Ok(())
}
