use super::*;
use crate::fixture;

fn device(name: &str) -> Device {
    Device {
        name: name.into(),
        ..fixture::manifest().device
    }
}

fn traced(name: &str, holds: Holds, made_of: &[u8], kind: &str) -> TracedDevice {
    TracedDevice {
        device: device(name),
        holds,
        made_of: made_of.to_vec(),
        kind: kind.into(),
        title: None,
    }
}

fn manifest(devices: Vec<TracedDevice>) -> Manifest {
    let first = devices.first().map(|first| first.device.clone());
    Manifest {
        device: first.unwrap_or_else(|| device("sda1")),
        devices,
        ..fixture::manifest()
    }
}

#[test]
fn a_label_says_the_way_down() {
    use Holds::{Devices, Filesystem, Journal};
    assert_eq!(manifest(Vec::new()).device_label(), "sda1");
    let crypt = vec![
        traced("nvme0n1p3", Devices, &[], ""),
        traced("dm-0", Filesystem, &[0], "LUKS"),
    ];
    let label = manifest(crypt).device_label();
    assert_eq!(label, "dm-0 (LUKS on nvme0n1p3)");
    let mut volume = vec![
        traced("nvme0n1p3", Devices, &[], ""),
        traced("dm-1", Filesystem, &[2], "LVM"),
        traced("dm-0", Devices, &[0], "LUKS"),
    ];
    volume[1].title = Some("vg-root".into());
    let label = manifest(volume).device_label();
    assert_eq!(label, "vg-root (LVM on LUKS on nvme0n1p3)");
    let mirror = vec![
        traced("sda", Devices, &[], ""),
        traced("sdb", Devices, &[], ""),
        traced("md0", Filesystem, &[0, 1], "RAID1"),
    ];
    assert_eq!(
        manifest(mirror).device_label(),
        "md0 (RAID1 on sda and sdb)"
    );
    let apart = vec![
        traced("sda", Filesystem, &[], ""),
        traced("sdb", Journal, &[], ""),
    ];
    assert_eq!(manifest(apart).device_label(), "sda, journal on sdb");
}

#[test]
fn a_device_made_of_itself_has_a_label_too() {
    let devices = vec![traced("dm-0", Holds::Filesystem, &[0], "LVM")];
    assert!(manifest(devices).device_label().starts_with("dm-0 (LVM on"));
}

#[test]
fn an_old_manifest_has_one_device() {
    let one = manifest(Vec::new());
    let text = serde_json::to_string(&one).expect("encoded");
    assert!(!text.contains("devices"), "{text}");
    let read: Manifest = serde_json::from_str(&text).expect("decoded");
    assert_eq!(read, one);
    assert_eq!(read.device_count(), 1);
    assert!(!read.is_layered());
}

#[test]
fn paths_are_those_of_the_mount() {
    let place = |(root, point): (&str, &str)| MountPlace {
        root: root.into(),
        point: point.into(),
    };
    for (mounts, path, expected) in [
        (&[("/", "/mnt")][..], "/a/b", "/mnt/a/b"),
        (&[("/", "/mnt")], "/", "/mnt"),
        (&[("/", "/")], "/a", "/a"),
        // btrfs: subvol=@data, and a snapshot that nobody mounted.
        (&[("/@data", "/srv")], "/@data/me/x", "/srv/me/x"),
        (&[("/@data", "/srv")], "/@data", "/srv"),
        (&[("/@data", "/srv")], "/@data2/x", "/@data2/x"),
        // A bind mount was traced; elsewhere is all of it.
        (&[("/sub", "/bind"), ("/", "/mnt")], "/sub/x", "/bind/x"),
        (&[("/sub", "/bind"), ("/", "/mnt")], "/y", "/mnt/y"),
        (&[], "/a", "/a"),
    ] {
        let filesystem = Filesystem {
            mounts: mounts.iter().copied().map(place).collect(),
            ..fixture::manifest().filesystem.expect("there is one")
        };
        assert_eq!(filesystem.user_path(path), expected, "{mounts:?}");
    }
}
