//! sysfs as kernels show it, made of files and links.

use super::*;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A tree of devices.
struct Tree {
    root: TempDir,
}

impl Tree {
    fn new() -> Tree {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(root.path().join("sys/dev/block")).expect("made");
        Tree { root }
    }

    /// A device with its number and files: `path=content`, or a directory if it ends with `/`.
    fn device(self, path: &str, number: &str, files: &[&str]) -> Tree {
        let directory = self.root.path().join("sys/devices").join(path);
        fs::create_dir_all(&directory).expect("made");
        fs::write(directory.join("dev"), format!("{number}\n")).expect("written");
        for file in files {
            let (name, content) = file.split_once('=').unwrap_or((file, ""));
            let place = directory.join(name);
            fs::create_dir_all(place.parent().expect("a parent")).expect("made");
            match name.ends_with('/') {
                true => fs::create_dir_all(&place).expect("made"),
                false => fs::write(&place, content).expect("written"),
            }
        }
        symlink(
            &directory,
            self.root.path().join("sys/dev/block").join(number),
        )
        .expect("linked");
        self
    }

    /// `upper` is made of `lower`.
    fn on(self, upper: &str, lower: &str) -> Tree {
        for (of, list, other) in [(upper, "slaves", lower), (lower, "holders", upper)] {
            let devices = self.root.path().join("sys/devices");
            let list = devices.join(of).join(list);
            fs::create_dir_all(&list).expect("made");
            let other = devices.join(other);
            symlink(&other, list.join(other.file_name().expect("a name"))).expect("linked");
        }
        self
    }

    fn stack(&self, above: &[(&str, Holds)]) -> Result<Vec<Layer>> {
        let number = |text: &str| DeviceNumber::parse(text).expect("a number");
        let above: Vec<_> = above.iter().map(|(n, holds)| (number(n), *holds)).collect();
        self.sysfs().stack(&above)
    }

    fn sysfs(&self) -> Sysfs<'_> {
        Sysfs {
            root: self.root.path(),
            target_types: |number| {
                Ok(vec![match number.minor {
                    0 => "crypt".into(),
                    9 => "thin".into(),
                    _ => "linear".into(),
                }])
            },
        }
    }
}

/// LVM on LUKS on a partition, and another volume beside.
fn laptop() -> Tree {
    Tree::new()
        .device("nvme0n1", "259:0", &["mq/", "size=4000", "queue/fua=1"])
        .device("nvme0n1/nvme0n1p1", "259:1", &["partition=1", "start=34"])
        .device("nvme0n1/nvme0n1p3", "259:3", &["partition=3", "start=2048"])
        .device(
            "dm-0",
            "253:0",
            &["dm/uuid=CRYPT-LUKS2-00-luks", "dm/name=luks"],
        )
        .device("dm-1", "253:1", &["dm/uuid=LVM-abc", "dm/name=vg-root"])
        .device("dm-2", "253:2", &["dm/uuid=LVM-def", "dm/name=vg-home"])
        .on("dm-0", "nvme0n1/nvme0n1p3")
        .on("dm-1", "dm-0")
        .on("dm-2", "dm-0")
}

fn names(stack: &[Layer]) -> Vec<&str> {
    let devices = stack.iter().map(|layer| layer.traced.device.name.as_str());
    devices.collect()
}

#[test]
fn a_disk_is_its_own_bottom() {
    let stack = laptop()
        .stack(&[("259:1", Holds::Filesystem)])
        .expect("found");
    assert_eq!(names(&stack), ["nvme0n1p1"]);
    assert!(stack[0].is_partition());
    assert_eq!(
        stack[0].disk,
        DeviceNumber {
            major: 259,
            minor: 0
        }
    );
    assert_eq!(stack[0].traced.device.start_sector, 34);
    assert_eq!(stack[0].traced.device.fua, Some(true));
    // Nobody told.
    assert_eq!(stack[0].traced.device.volatile_write_cache, None);
    assert_eq!(stack[0].traced.device.scheduler, None);
}

#[test]
fn a_volume_on_luks_goes_down_to_the_partition() {
    let stack = laptop()
        .stack(&[("253:1", Holds::Filesystem)])
        .expect("found");
    assert_eq!(names(&stack), ["nvme0n1p3", "dm-1", "dm-0"]);
    let of = |at: usize| {
        let traced = &stack[at].traced;
        (
            traced.holds,
            &traced.made_of[..],
            traced.kind.as_str(),
            traced.title(),
        )
    };
    assert_eq!(of(0), (Holds::Devices, &[][..], "", "nvme0n1p3"));
    assert_eq!(of(1), (Holds::Filesystem, &[2][..], "LVM", "vg-root"));
    assert_eq!(of(2), (Holds::Devices, &[0][..], "LUKS", "dm-0"));
}

#[test]
fn what_lies_on_a_disk_is_found_from_below() {
    let tree = laptop();
    let above = |number: &str| {
        let number = DeviceNumber::parse(number).expect("a number");
        let found = tree.sysfs().above(number).expect("found");
        let text = found.iter().map(|n| format!("{}:{}", n.major, n.minor));
        text.collect::<Vec<_>>()
    };
    assert_eq!(above("253:1"), ["253:1"]);
    assert_eq!(above("259:1"), ["259:1"]);
    assert_eq!(above("259:3"), ["253:1", "253:2"]);
    assert_eq!(above("259:0"), ["259:0", "253:1", "253:2"]);
}

#[test]
fn a_disk_has_the_parts_of_its_partitions() {
    let tree = laptop();
    let above = [("259:0", Holds::Filesystem), ("253:1", Holds::Filesystem)];
    let stack = tree.stack(&above).expect("found");
    assert_eq!(names(&stack), ["nvme0n1", "dm-1", "dm-0"]);
    assert_eq!(stack[2].traced.made_of, [0]);
    assert_eq!(stack[0].traced.holds, Holds::Filesystem);
}

#[test]
fn a_mirror_has_two_disks() {
    let tree = Tree::new()
        .device("sda", "8:0", &["mq/"])
        .device("sdb", "8:16", &["mq/"])
        .device("md0", "9:0", &["md/level=raid1\n"])
        .on("md0", "sda")
        .on("md0", "sdb");
    let stack = tree.stack(&[("9:0", Holds::Filesystem)]).expect("found");
    assert_eq!(names(&stack), ["sda", "sdb", "md0"]);
    assert_eq!(stack[2].traced.made_of, [0, 1]);
    assert_eq!(stack[2].traced.kind, "RAID1");
}

#[test]
fn a_filesystem_with_a_journal_elsewhere_has_two_devices() {
    let tree = Tree::new()
        .device("sda", "8:0", &["mq/"])
        .device("sdb", "8:16", &["mq/"]);
    let above = [("8:0", Holds::Filesystem), ("8:16", Holds::Journal)];
    let stack = tree.stack(&above).expect("found");
    assert_eq!(names(&stack), ["sda", "sdb"]);
    assert_eq!(stack[1].traced.holds, Holds::Journal);
}

#[test]
fn what_cannot_be_followed_is_refused_by_name() {
    let tree = Tree::new()
        .device("sda", "8:0", &["mq/"])
        .device("zram0", "251:0", &[])
        .device("md5", "9:5", &["md/level=raid5\n"])
        .device("md10", "9:10", &["md/level=raid10\n"])
        .device("md0", "9:0", &["md/level=raid1\n"])
        .device("md0/md0p1", "259:9", &["partition=1"])
        .device("dm-9", "253:9", &["dm/uuid=LVM-abc", "dm/name=vg-thin"])
        .on("md5", "sda")
        .on("md10", "sda")
        .on("md0", "sda")
        .on("dm-9", "sda");
    for (number, words) in [
        ("251:0", "zram0: it has no requests"),
        ("9:5", "md5: md's raid5"),
        ("9:10", "md10: md's raid10"),
        ("253:9", "dm-9: device mapper's thin"),
        ("259:9", "md0p1: it is a partition of"),
    ] {
        let stack = tree.stack(&[(number, Holds::Filesystem)]).expect("found");
        let mut checks = stack.iter().map(Layer::check_followed);
        let error = checks.find_map(Result::err).expect(words);
        assert!(error.to_string().starts_with(words), "{error}");
    }
}

#[test]
fn a_filesystem_that_begins_above_a_disk_and_goes_on_on_one_is_refused() {
    let tree = laptop().device("sda", "8:0", &["mq/"]);
    let [volume, disk] = ["253:1", "8:0"].map(|number| (number, Holds::Filesystem));
    let refused = |above: [(&str, Holds); 2]| {
        let mut stack = tree.stack(&above).expect("found");
        let above = above.map(|(n, holds)| (DeviceNumber::parse(n).expect("a number"), holds));
        refuse_another_order(&mut stack, &above);
        let mut checks = stack.iter().map(Layer::check_followed);
        checks.find_map(Result::err).map(|error| error.to_string())
    };
    let error = refused([volume, disk]).expect("refused");
    assert!(
        error.starts_with("dm-1: ") && error.contains("on sda"),
        "{error}"
    );
    assert_eq!(refused([disk, volume]), None);
    assert_eq!(refused([volume, ("253:2", Holds::Filesystem)]), None);
    assert_eq!(refused([volume, ("8:0", Holds::Journal)]), None);
}

#[test]
fn the_chosen_scheduler_is_the_one_in_brackets() {
    assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
    assert_eq!(chosen("none"), "none");
}

#[test]
fn whether_a_loop_device_turns_is_its_disks_or_not_known() {
    let own = ["mq/", "queue/rotational=0", "loop/backing_file=/no/such"];
    let tree = Tree::new()
        .device("loop0", "7:0", &own)
        .device("dm-0", "253:0", &["dm/uuid=", "queue/rotational=0"])
        .device("sda", "8:0", &["mq/", "queue/rotational=0"])
        .on("dm-0", "loop0");
    let turns = |number| {
        let stack = tree.stack(&[(number, Holds::Filesystem)]).expect("found");
        stack.last().map(|layer| layer.traced.device.rotational)
    };
    assert_eq!(turns("7:0"), Some(None));
    assert_eq!(turns("253:0"), Some(None));
    assert_eq!(turns("8:0"), Some(Some(false)));
}
