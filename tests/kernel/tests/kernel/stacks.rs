//! Filesystems on devices that are made of others: LUKS, LVM, md. The same promises as on a disk,
//! and what a trace says of the way down.

use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::stack::Below;
use iostep_kernel_tests::{counters, iostep};
use iostep_lab::Kind;
use iostep_model::operation::Counter;
use iostep_model::store;

use crate::attribution::{self, Judge};
use crate::case::Case;
use crate::recording::{Recording, Scenario};
use crate::stage::{self, Stage};
use crate::{guest_filesystems, variants};

/// A log that a small device can hold.
const EXT4: &[&str] = &["-J", "size=16"];

/// Ways down that split a discard, and one of two levels.
const DISCARDED: [(&str, Below); 4] = [
    ("LVM on LUKS", Below::LvmOnLuks),
    ("striped LVM", Below::Striped),
    ("RAID 0", Below::Raid0),
    ("RAID 1", Below::Raid1),
];

/// Every test of this file. One of each kind of way down, unless `IOSTEP_VARIANTS=all` asks for
/// the others, too, and for every variant of every filesystem on LVM on LUKS.
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
        scenarios.extend([btrfs, xfs].map(deep));
        scenarios.extend(guest_filesystems::OTHERS.map(deep));
        scenarios.extend(variants::all().into_iter().map(deep));
    }
    let cases = scenarios.into_iter().flat_map(attribution::cases_of);
    cases.chain(DISCARDED.map(discard_case)).collect()
}

fn discard_case((name, below): (&str, Below)) -> Case {
    let mut needs = stage::requirements(Kind::Ext4);
    let programs = below.programs().iter().chain(&["fstrim"]);
    needs.extend(programs.map(|program| Requirement::Program(program)));
    needs.push(Requirement::Btf);
    let name = format!("discards on {name} are those that the disks counted");
    Case::new(name, needs, move || discarded(below))
}

fn discarded(below: Below) -> anyhow::Result<()> {
    let stage = Stage::on(below, Kind::Ext4, EXT4, "")?;
    let file = stage.root().join("gone");
    std::fs::write(&file, vec![1; 24 << 20])?;
    stage.settle()?;
    std::fs::remove_file(&file)?;
    stage.settle()?;
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let trim = ["fstrim".into(), stage.root().display().to_string()];
    let before = counters::of_all(stage.disks())?;
    iostep::run(stage.trace(&output, &[], &trim))?.success()?;
    let counted = counters::difference(before, counters::of_all(stage.disks())?).discard;
    let trace = store::read(&output)?;
    anyhow::ensure!(trace.manifest.check.passed(), "{:?}", trace.manifest.check);
    let requests = trace.requests.iter();
    let discards = requests.filter(|r| r.operation.counter() == Counter::Discard);
    let (ios, bytes) = discards.fold((0, 0), |(ios, bytes), request| {
        (ios + 1, bytes + u64::from(request.bytes))
    });
    println!("    {ios} discards of {bytes} bytes, counted: {counted:?}");
    anyhow::ensure!((ios, bytes) == (counted.ios, counted.bytes) && ios > 0);
    Ok(())
}

/// The same on LVM on LUKS.
fn deep(scenario: Scenario) -> Scenario {
    let name = format!("{} on LVM on LUKS", scenario.name);
    let modes = match scenario.modes {
        [] => guest_filesystems::MODES,
        some => some,
    };
    Scenario {
        // As long as the tests, a few words each.
        name: name.leak(),
        below: Below::LvmOnLuks,
        modes,
        ..scenario
    }
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
