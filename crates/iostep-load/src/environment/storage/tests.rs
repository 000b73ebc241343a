use super::*;

use std::os::unix::fs::MetadataExt;

use crate::environment::fake::Root;
use iostep_model::manifest::Device;

fn filesystem(kind: &str, options: &str) -> Filesystem {
    Filesystem {
        kind: kind.into(),
        mount_point: "/no/such/mount".into(),
        options: options.into(),
        ..Filesystem::default()
    }
}

fn device(name: &str) -> Device {
    Device {
        name: name.into(),
        ..Device::default()
    }
}

fn warnings(root: &Root, filesystem: Option<Filesystem>, name: &str) -> Vec<Warning> {
    let mut environment = crate::environment::here(root.path());
    environment.filesystem = filesystem;
    environment.device = Some(device(name));
    let mut warnings = Vec::new();
    warn(root.path(), &environment, &mut warnings);
    warnings
}

fn compression(by: &str) -> Warning {
    Warning::Compression { by: by.into() }
}

#[test]
fn fullness_leaves_out_what_is_reserved() {
    assert_eq!(used_share(100, 50, 50), Some(0.5));
    assert_eq!(used_share(100, 10, 5), Some(90.0 / 95.0));
    assert_eq!(used_share(0, 0, 0), None);
    assert_eq!(used_share(5, 10, 0), None);
}

#[test]
fn what_has_no_room_by_nature_or_is_not_there_is_not_full() {
    let proc = Filesystem {
        mount_point: "/proc".into(),
        ..filesystem("proc", "rw")
    };
    assert_eq!(nearly_full(&proc), None);
    assert_eq!(nearly_full(&filesystem("ext4", "rw")), None);
}

#[test]
fn a_mount_option_that_compresses_is_told() {
    let by = |kind: &str, options: &str| compressing_option(&filesystem(kind, options));
    let zstd = "relatime,rw;compress=zstd:3,space_cache=v2";
    assert_eq!(by("btrfs", zstd), Some(compression("compress=zstd:3")));
    assert_eq!(
        by("btrfs", "rw;compress-force=lzo"),
        Some(compression("compress-force=lzo"))
    );
    assert_eq!(by("btrfs", "rw;compress=none"), None);
    assert_eq!(by("btrfs", "rw;ssd"), None);
    assert_eq!(by("ext4", zstd), None);
    let able = "rw;compress_algorithm=lz4,compress_mode=fs";
    assert_eq!(by("f2fs", able), None);
    assert_eq!(by("f2fs", &format!("{able},compress_extension=so")), None);
    let all = format!("{able},compress_extension=*");
    assert_eq!(by("f2fs", &all), Some(compression("compress_extension=*")));
}

#[test]
fn a_filesystem_without_a_device_is_told() {
    for kind in ["tmpfs", "ramfs"] {
        let expected = Warning::InMemory {
            filesystem: kind.into(),
        };
        assert_eq!(in_memory(&filesystem(kind, "rw")), Some(expected));
    }
    assert_eq!(in_memory(&filesystem("xfs", "rw")), None);
}

#[test]
fn a_compressing_device_is_found_below_others() {
    let root = Root::new();
    root.put("sys/devices/zram0/size", "1");
    root.link("sys/devices/dm-0/slaves/zram0", "sys/devices/zram0");
    root.link("sys/class/block/dm-0", "sys/devices/dm-0");
    root.link("sys/class/block/zram0", "sys/devices/zram0");
    assert_eq!(warnings(&root, None, "zram0"), [compression("zram0")]);
    assert_eq!(warnings(&root, None, "dm-0"), [compression("zram0")]);
    assert_eq!(warnings(&root, None, "sdq"), []);
}

#[test]
fn a_loop_device_is_told_with_its_file_and_what_is_below_that() {
    let root = Root::new();
    let image = root.put("images/disk.img", "");
    let number = std::fs::metadata(&image).expect("it is there").dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    root.put("sys/devices/zram7/size", "1");
    root.link(
        &format!("sys/dev/block/{major}:{minor}"),
        "sys/devices/zram7",
    );
    root.link("sys/class/block/zram7", "sys/devices/zram7");
    let text = image.to_str().expect("a path of ASCII");
    root.put("sys/devices/loop3/loop/backing_file", format!("{text}\n"));
    root.put("sys/devices/loop3/loop3p1/partition", "1");
    root.link("sys/class/block/loop3", "sys/devices/loop3");
    root.link("sys/class/block/loop3p1", "sys/devices/loop3/loop3p1");
    let expected = Warning::LoopDevice {
        device: "loop3".into(),
        backing_file: image,
    };
    for name in ["loop3", "loop3p1"] {
        assert_eq!(
            warnings(&root, None, name),
            [expected.clone(), compression("zram7")]
        );
    }
}

#[test]
fn a_name_that_is_no_utf8_is_told_all_the_same() {
    let root = Root::new();
    root.put("sys/devices/loop3/loop/backing_file", b"/images/\xff \n");
    root.link("sys/class/block/loop3", "sys/devices/loop3");
    let found = warnings(&root, None, "loop3");
    let json = serde_json::to_string(&found).expect("JSON");
    assert!(json.contains("/images/\u{fffd} "), "{json}");
}
