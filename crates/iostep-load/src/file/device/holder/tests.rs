use super::*;

use std::os::unix::fs::symlink;

/// A machine with the disk sdz (8:0), its partitions sdz1 and
/// sdz2, and nothing that uses them.
struct Machine(tempfile::TempDir);

const DISK: u64 = 0;
const FIRST: u64 = 1;

fn number(minor: u64) -> u64 {
    rustix::fs::makedev(8, minor as u32)
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine(tempfile::tempdir().expect("a directory"));
        machine.put("sys/devices/sdz/dev", "8:0\n");
        for (name, minor) in [("sdz1", 1), ("sdz2", 2)] {
            machine.put(
                &format!("sys/devices/sdz/{name}/dev"),
                &format!("8:{minor}\n"),
            );
            machine.put(&format!("sys/devices/sdz/{name}/partition"), "1\n");
            machine.link(&format!("sys/dev/block/8:{minor}"), &format!("sdz/{name}"));
        }
        machine.link("sys/dev/block/8:0", "sdz");
        machine
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, text).expect("a file");
    }

    fn link(&self, path: &str, device: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        symlink(self.0.path().join("sys/devices").join(device), path).expect("a link");
    }

    fn holder_of(&self, minor: u64) -> Option<String> {
        find(self.0.path(), number(minor)).map(|holder| holder.fact)
    }
}

#[test]
fn nobody_holds_an_unused_device() {
    let machine = Machine::new();
    machine.put(
        "proc/self/mountinfo",
        "22 1 9:1 / / rw - ext4 /dev/sda1 rw\n",
    );
    machine.put(
        "proc/swaps",
        "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n",
    );
    assert_eq!(machine.holder_of(DISK), None);
    assert_eq!(machine.holder_of(77), None);
}

#[test]
fn a_mounted_partition_holds_its_disk_but_not_its_neighbour() {
    let machine = Machine::new();
    let line = "36 35 8:2 / /mnt/data rw,noatime shared:1 master:7 - ext4 /dev/sdz2 rw\n";
    machine.put("proc/self/mountinfo", line);
    let fact = "/dev/sdz2 is mounted at /mnt/data".to_owned();
    assert_eq!(machine.holder_of(DISK), Some(fact.clone()));
    assert_eq!(machine.holder_of(2), Some(fact));
    assert_eq!(machine.holder_of(FIRST), None);
}

#[test]
fn a_mounted_disk_holds_its_partitions() {
    let machine = Machine::new();
    machine.put(
        "proc/self/mountinfo",
        "36 35 8:0 / /mnt rw - ext4 /dev/sdz rw\n",
    );
    assert!(machine.holder_of(FIRST).is_some());
}

#[test]
fn a_btrfs_is_found_by_its_source_and_by_each_of_its_devices() {
    let machine = Machine::new();
    let line = "36 35 0:40 / /mnt rw - btrfs /dev/sdz1 rw,subvol=/\n";
    machine.put("proc/self/mountinfo", line);
    machine.put("sys/fs/btrfs/1234/devices/sdz2/size", "1");
    assert_eq!(
        machine.holder_of(FIRST).as_deref(),
        Some("/dev/sdz1 is mounted at /mnt")
    );
    let second = machine.holder_of(2);
    assert_eq!(second.as_deref(), Some("sdz2 belongs to a mounted btrfs"));
}

#[test]
fn swap_device_mapper_and_loop_devices_are_holders() {
    let machine = Machine::new();
    machine.put("proc/swaps", "Filename Type\n/dev/sdz1  partition 8 0 -2\n");
    assert_eq!(
        machine.holder_of(FIRST).as_deref(),
        Some("sdz1 is used as swap")
    );

    let machine = Machine::new();
    machine.put("sys/devices/sdz/sdz2/holders/dm-3/dev", "252:3");
    assert_eq!(
        machine.holder_of(DISK).as_deref(),
        Some("sdz2 is a part of dm-3")
    );

    let machine = Machine::new();
    machine.put("sys/block/loop7/loop/backing_file", "/dev/sdz\n");
    assert_eq!(
        machine.holder_of(DISK).as_deref(),
        Some("sdz is below loop7")
    );
}

proptest::proptest! {
    #[test]
    fn text_without_meaning_holds_nothing(mounts in ".*", swaps in ".*", backing in ".*") {
        let machine = Machine::new();
        machine.put("proc/self/mountinfo", &mounts);
        machine.put("proc/swaps", &swaps);
        machine.put("sys/block/loop7/loop/backing_file", &backing);
        proptest::prop_assert_eq!(machine.holder_of(DISK), None);
    }
}
