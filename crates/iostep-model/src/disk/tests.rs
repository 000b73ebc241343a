//! Disks in trees that are laid out as kernels do.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use super::loop_device::Status;
use super::*;

/// A root with a sysfs.
struct Root(tempfile::TempDir);

impl Root {
    fn new() -> Root {
        Root(tempfile::tempdir().expect("a directory"))
    }

    fn sys(&self) -> PathBuf {
        self.0.path().join("sys")
    }

    /// Files of a directory of sysfs, with their text.
    fn put(self, directory: &str, files: &[(&str, &str)]) -> Root {
        let directory = self.sys().join(directory);
        fs::create_dir_all(&directory).expect("made");
        for (name, text) in files {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, format!("{text}\n")).expect("written");
        }
        self
    }

    fn link(self, from: &str, to: &str) -> Root {
        let (from, to) = (self.sys().join(from), self.sys().join(to));
        fs::create_dir_all(from.parent().expect("a parent")).expect("made");
        fs::create_dir_all(&to).expect("made");
        symlink(to, from).expect("linked");
        self
    }

    /// A block device at `path`, of `device`, which belongs to a subsystem.
    fn block(self, path: &str, device: &str, subsystem: &str, sectors: &str) -> Root {
        let name = Path::new(path)
            .file_name()
            .expect("a name")
            .to_str()
            .expect("of ASCII");
        self.put(path, &[("size", sectors), ("queue/rotational", "0")])
            .link(&format!("{path}/device"), device)
            .link(&format!("{device}/subsystem"), subsystem)
            .link(&format!("class/block/{name}"), path)
    }

    fn disks(&self, name: &str) -> Vec<Disk> {
        disks(&self.below(name))
    }

    /// What is below a device with that name. No loop device can be asked here.
    fn below(&self, name: &str) -> Vec<Below> {
        below(self.0.path(), &self.sys().join("class/block").join(name))
    }

    fn disk(&self, name: &str) -> Disk {
        let mut found = self.disks(name);
        assert_eq!(found.len(), 1, "{found:?}");
        let mut disk = found.remove(0);
        disk.health_before = None;
        disk
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn an_nvme_names_its_controllers_vendor_model_and_firmware() {
    let controller = "devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0";
    let root = Root::new()
        .block(
            &format!("{controller}/nvme0n1"),
            controller,
            "class/nvme",
            "2000409264",
        )
        .put(
            controller,
            &[
                ("model", "ACME SSD 980 PRO 1TB                   "),
                ("firmware_rev", "5B2QGXA7"),
            ],
        )
        .link(
            &format!("{controller}/device"),
            "devices/pci0000:00/0000:00:1d.0/0000:03:00.0",
        )
        .put(
            "devices/pci0000:00/0000:00:1d.0/0000:03:00.0",
            &[("vendor", "0x144d")],
        )
        .put(
            &format!("{controller}/nvme0n1"),
            &[("queue/write_cache", "write back"), ("queue/fua", "1")],
        )
        .put(
            &format!("{controller}/nvme0n1/nvme0n1p2"),
            &[("partition", "2"), ("size", "8")],
        )
        .link(
            "class/block/nvme0n1p2",
            &format!("{controller}/nvme0n1/nvme0n1p2"),
        );
    let expected = Disk {
        name: "nvme0n1".into(),
        bus: Some(Bus::Nvme),
        vendor: some("0x144d"),
        model: some("ACME SSD 980 PRO 1TB"),
        firmware: some("5B2QGXA7"),
        capacity_bytes: Some(1_024_209_543_168),
        write_cache: Some(WriteCache::Back),
        fua: Some(true),
        rotational: Some(false),
        ..Disk::default()
    };
    assert_eq!(root.disk("nvme0n1"), expected);
    assert_eq!(root.disk("nvme0n1p2"), expected);
}

#[test]
fn an_nvme_with_several_ways_to_it_names_its_subsystem() {
    let subsystem = "devices/virtual/nvme-subsystem/nvme-subsys0";
    let controller = "devices/pci0000:00/0000:00:04.0/nvme/nvme0";
    let root = Root::new()
        .block(
            &format!("{subsystem}/nvme0n1"),
            subsystem,
            "class/nvme-subsystem",
            "131072",
        )
        .put(subsystem, &[("model", "A Model"), ("firmware_rev", "1.0")])
        .link(&format!("{subsystem}/nvme0"), controller)
        .link(
            &format!("{controller}/device"),
            "devices/pci0000:00/0000:00:04.0",
        )
        .put("devices/pci0000:00/0000:00:04.0", &[("vendor", "0x1b36")]);
    let disk = root.disk("nvme0n1");
    assert_eq!((disk.bus, disk.vendor), (Some(Bus::Nvme), some("0x1b36")));
    assert_eq!((disk.model, disk.firmware), (some("A Model"), some("1.0")));
}

/// A logical unit of SCSI on a host at `above`.
fn unit(root: Root, above: &str, name: &str) -> Root {
    let device = format!("{above}/host0/target0:0:0/0:0:0:0");
    root.block(
        &format!("{device}/block/{name}"),
        &device,
        "bus/scsi",
        "250069680",
    )
    .put(
        &device,
        &[
            ("vendor", "ACME    "),
            ("model", "KM8V8001JM-B813 "),
            ("rev", "0800"),
        ],
    )
}

#[test]
fn a_unit_of_scsi_is_told_by_what_it_is_on() {
    for (above, bus) in [
        ("devices/pci0000:00/0000:00:17.0/ata3", Bus::Ata),
        ("devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0", Bus::Usb),
        ("devices/pci0000:00/0000:00:05.0/virtio1", Bus::Scsi),
        // No number behind it.
        ("devices/platform/atake/usbank", Bus::Scsi),
    ] {
        let disk = unit(Root::new(), above, "sda").disk("sda");
        assert_eq!(disk.bus, Some(bus), "{above}");
        assert_eq!(
            (disk.vendor, disk.model, disk.firmware),
            (some("ACME"), some("KM8V8001JM-B813"), some("0800"))
        );
        assert_eq!(disk.capacity_bytes, Some(128_035_676_160));
        // Nobody told.
        assert_eq!((disk.write_cache, disk.fua), (None, None));
    }
}

/// A disk of ATA with a page of vital product data.
fn ata(page: &[u8]) -> Disk {
    let above = "devices/pci0000:00/0000:00:17.0/ata3";
    let root = unit(Root::new(), above, "sda");
    let device = format!("{above}/host0/target0:0:0/0:0:0:0");
    fs::write(root.sys().join(device).join("vpd_pg89"), page).expect("written");
    root.disk("sda")
}

/// The page "ATA Information" as libata makes it (`ata_scsiop_inq_89`).
fn page(model: &str, firmware: &str) -> Vec<u8> {
    let mut page = vec![0; 572];
    page[..4].copy_from_slice(&[0, 0x89, 0x02, 0x38]);
    page[8..36].copy_from_slice(b"linux   libata          3.00");
    page[56] = 0xec;
    let mut put = |at: usize, text: String| {
        for (word, two) in text.as_bytes().chunks(2).enumerate() {
            page[at + 2 * word] = two[1];
            page[at + 2 * word + 1] = two[0];
        }
    };
    put(80, format!("{:>20}", "S5Y1NX0R123456"));
    put(106, format!("{firmware:<8}"));
    put(114, format!("{model:<40}"));
    page
}

#[test]
fn an_ata_disk_is_told_by_all_characters_of_its_name() {
    let [evo, qvo] =
        ["EVO", "QVO"].map(|kind| page(&format!("ACME SSD 870 {kind} 1TB"), "SVT02B6Q"));
    let [evo, qvo] = [ata(&evo), ata(&qvo)];
    let names = (evo.model.clone(), evo.firmware.clone());
    assert_eq!(names, (some("ACME SSD 870 EVO 1TB"), some("SVT02B6Q")));
    assert_eq!(evo.vendor, some("ACME"));
    assert!(!evo.is_like(&qvo));
    let json = serde_json::to_string(&evo).expect("JSON");
    assert!(!json.contains("S5Y1") && !json.contains("5SY1"), "{json}");
}

#[test]
fn without_a_whole_page_an_ata_disk_has_scsis_fields() {
    let whole = page("ACME SSD 870 EVO 1TB", "SVT02B6Q");
    let with = |at: usize, byte: u8| {
        let mut page = whole.clone();
        page[at] = byte;
        page
    };
    // Cut short, of another number or length, of another command.
    let pages = [&whole[..0], &whole[..3], &whole[..57], &whole[..110]];
    let pages = pages.into_iter().map(<[u8]>::to_vec);
    let others = [with(1, 0x80), with(2, 0), with(56, 0xa1)];
    for page in pages.chain(others) {
        let disk = ata(&page);
        let names = (disk.model, disk.firmware);
        assert_eq!(
            names,
            (some("KM8V8001JM-B813"), some("0800")),
            "{}",
            page.len()
        );
    }
    // Only as much of it as there is.
    let disk = ata(&whole[..120]);
    assert_eq!(
        (disk.model, disk.firmware),
        (some("KM8V8001JM-B813"), some("SVT02B6Q"))
    );
    let blank = page(" ", "\0\0");
    assert_eq!(ata(&blank).model, some("KM8V8001JM-B813"));
}

#[test]
fn a_ufs_is_told_by_its_driver_and_says_how_worn_it_is() {
    let above = "devices/platform/soc/1d84000.ufshc";
    let host = format!("{above}/host0/scsi_host/host0");
    let root = unit(Root::new(), above, "sda")
        .put(&host, &[("proc_name", "ufshcd")])
        .put(
            &format!("{above}/health_descriptor"),
            &[
                ("eol_info", "0x01"),
                ("life_time_estimation_a", "0x03"),
                ("life_time_estimation_b", "0x0b"),
            ],
        );
    let mut found = [root.disk("sda")];
    assert_eq!(found[0].bus, Some(Bus::Ufs));
    read_before(root.0.path(), &mut found);
    let worn = Health {
        used_percent: None,
        life_time_a: Some(3),
        life_time_b: Some(11),
        pre_eol: Some(1),
    };
    assert_eq!(found[0].health_before, Some(worn.clone()));
    let root = root.put(
        &format!("{above}/health_descriptor"),
        &[("life_time_estimation_a", "0x04")],
    );
    read_after(root.0.path(), &mut found);
    let later = Health {
        life_time_a: Some(4),
        ..worn
    };
    assert_eq!(found[0].health_after, Some(later));
}

#[test]
fn cards_are_told_apart_and_the_soldered_one_says_how_worn_it_is() {
    let card = "devices/platform/soc/4744000.sdhci/mmc_host/mmc0/mmc0:0001";
    let with = |kind: &str| {
        Root::new()
            .block(
                &format!("{card}/block/mmcblk0"),
                card,
                "bus/mmc",
                "122142720",
            )
            .put(
                card,
                &[
                    ("type", kind),
                    ("manfid", "0x000015"),
                    ("name", "DUTA42"),
                    ("fwrev", "0x0200000000000000"),
                    ("life_time", "0x02 0x01"),
                    ("pre_eol_info", "0x01"),
                    ("serial", "0x01234567"),
                    ("cid", "150100445554413432020123456789ab"),
                ],
            )
    };
    let root = with("MMC");
    let mut found = [root.disk("mmcblk0")];
    read_before(root.0.path(), &mut found);
    let expected = Disk {
        name: "mmcblk0".into(),
        bus: Some(Bus::Emmc),
        vendor: some("0x000015"),
        model: some("DUTA42"),
        firmware: some("0x0200000000000000"),
        capacity_bytes: Some(62_537_072_640),
        rotational: Some(false),
        health_before: Some(Health {
            used_percent: None,
            life_time_a: Some(2),
            life_time_b: Some(1),
            pre_eol: Some(1),
        }),
        ..Disk::default()
    };
    assert_eq!(found, [expected]);
    // Neither the serial number nor the CID that holds it.
    let json = serde_json::to_string(&found).expect("JSON");
    assert!(!json.contains("1234567"), "{json}");
    let root = with("SD");
    let mut found = [root.disk("mmcblk0")];
    read_before(root.0.path(), &mut found);
    assert_eq!(
        (found[0].bus, &found[0].health_before),
        (Some(Bus::Sd), &None)
    );
}

#[test]
fn a_boot_partition_of_a_card_is_the_cards() {
    let card = "devices/platform/soc/4744000.sdhci/mmc_host/mmc0/mmc0:0001";
    let disk = format!("{card}/block/mmcblk0");
    let root = Root::new()
        .block(&disk, card, "bus/mmc", "122142720")
        .block(
            &format!("{disk}/mmcblk0boot0"),
            &disk,
            "class/block",
            "8192",
        )
        .put(
            card,
            &[
                ("type", "MMC"),
                ("name", "DUTA42"),
                ("life_time", "0x02 0x01"),
            ],
        );
    let mut found = root.disks("mmcblk0boot0");
    read_before(root.0.path(), &mut found);
    let [boot] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(boot.name, "mmcblk0boot0");
    assert_eq!((boot.bus, &boot.model), (Some(Bus::Emmc), &some("DUTA42")));
    assert_eq!(boot.capacity_bytes, Some(8192 * 512));
    let health = boot.health_before.as_ref();
    assert_eq!(health.and_then(|health| health.life_time_a), Some(2));
    // A tree that no kernel makes ends as well.
    let root = Root::new().block("devices/a", "devices/a", "class/block", "8");
    assert_eq!(root.disk("a").bus, None);
}

#[test]
fn a_virtio_disk_has_only_a_number() {
    let device = "devices/pci0000:00/0000:00:02.0/virtio1";
    let root = Root::new()
        .block(
            &format!("{device}/block/vda"),
            device,
            "bus/virtio",
            "536870912",
        )
        .put(device, &[("vendor", "0x1af4")]);
    let disk = root.disk("vda");
    assert_eq!(
        (disk.bus, disk.vendor, disk.model),
        (Some(Bus::Virtio), some("0x1af4"), None)
    );
}

#[test]
fn what_lies_on_several_disks_names_all_and_each_once() {
    let mut root = Root::new();
    for (name, rotational) in [("sda", "0"), ("sdb", "1")] {
        root = root
            .put(
                &format!("devices/{name}"),
                &[("size", "8"), ("queue/rotational", rotational)],
            )
            .put(&format!("devices/{name}/{name}1"), &[("partition", "1")])
            .link(
                &format!("devices/virtual/block/md0/slaves/{name}1"),
                &format!("devices/{name}/{name}1"),
            );
    }
    let root = root
        .put("devices/virtual/block/md0", &[("size", "8")])
        .put("devices/virtual/block/dm-0", &[("size", "8")])
        .link(
            "devices/virtual/block/dm-0/slaves/md0",
            "devices/virtual/block/md0",
        )
        .link("devices/virtual/block/dm-0/slaves/sda", "devices/sda")
        .link("class/block/dm-0", "devices/virtual/block/dm-0");
    let found = root.disks("dm-0");
    let names: Vec<&str> = found.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(names, ["sda", "sdb"]);
    assert_eq!(found[0].bus, None);
    let below = root.below("dm-0");
    assert_eq!(rotational(&below), Some(true));
    let sda = below.iter().position(|below| below.name == "sda");
    let sda = sda.expect("it is there");
    assert_eq!(rotational(&below[sda..=sda]), Some(false));
    assert_eq!(rotational(&[]), None);
}

/// A loop device over a file, whose filesystem's device is made up.
fn looped(file: &Path, shown: &str) -> Root {
    let number = fs::metadata(file).expect("it is there").dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    Root::new()
        .put("devices/zram7", &[("size", "8"), ("queue/rotational", "1")])
        .link(&format!("dev/block/{major}:{minor}"), "devices/zram7")
        .put(
            "devices/loop3",
            &[("loop/backing_file", shown), ("queue/rotational", "0")],
        )
        .put("devices/loop3/loop3p1", &[("partition", "1")])
        .link("class/block/loop3p1", "devices/loop3/loop3p1")
}

#[test]
fn below_a_loop_device_lies_what_its_file_lies_on_even_if_that_was_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("img");
    fs::write(&file, "").expect("written");
    let deleted = directory.path().join("#77 (deleted)");
    for shown in [&file, &deleted] {
        let root = looped(&file, shown.to_str().expect("of ASCII"));
        let found = root.below("loop3p1");
        assert_eq!(names(&found), ["loop3p1", "loop3", "zram7"]);
        assert_eq!(found[1].backing_file.as_ref(), Some(shown));
        assert_eq!(rotational(&found), Some(true));
    }
    // In memory, wherever its name pretends to be; and gone.
    for shown in ["/memfd:img (deleted)", "/no/such/image"] {
        let root = looped(&file, shown);
        assert_eq!(root.disks("loop3p1"), []);
        // The loop device's own is not its disk's.
        assert_eq!(rotational(&root.below("loop3p1")), None);
    }
}

/// A file of a filesystem without a device's number, on every Linux.
const ON_NO_DEVICE: &str = "/proc/version";

/// Two disks of a btrfs, if `kind` says so, which what is mounted at /proc is taken for; and a loop
/// device over a file of it.
fn on_two_disks(kind: &str) -> Root {
    let id = crate::mountinfo::id_of(ON_NO_DEVICE.as_ref()).expect("Linux 5.8");
    let mut root = Root::new()
        .put(
            "../proc/self",
            &[(
                "mountinfo",
                &format!("{id} 1 0:77 / / rw - {kind} /dev/sdb rw"),
            )],
        )
        .put(
            "devices/loop3",
            &[
                ("loop/backing_file", ON_NO_DEVICE),
                ("queue/rotational", "0"),
            ],
        )
        .link("class/block/loop3", "devices/loop3");
    for (name, number, turns) in [("sdb", "8:16", "1"), ("sda", "8:0", "0")] {
        let device = format!("devices/{name}");
        root = root
            .put(&device, &[("dev", number), ("queue/rotational", turns)])
            .link(&format!("dev/block/{number}"), &device)
            .link(&format!("class/block/{name}"), &device)
            .link(&format!("fs/btrfs/some-uuid/devices/{name}"), &device);
    }
    root
}

fn names(found: &[Below]) -> Vec<&str> {
    found.iter().map(|below| below.name.as_str()).collect()
}

#[test]
fn below_a_file_on_btrfs_lie_all_its_devices() {
    let root = on_two_disks("btrfs");
    let found = root.below("loop3");
    assert_eq!(names(&found), ["loop3", "sda", "sdb"]);
    assert_eq!((disks(&found).len(), rotational(&found)), (2, Some(true)));
    // Not in sysfs, as of a kernel without that directory: the one that was mounted.
    fs::remove_dir_all(root.sys().join("fs")).expect("removed");
    assert_eq!(names(&root.below("loop3")), ["loop3", "sdb"]);
}

#[test]
fn below_a_file_on_what_does_not_tell_its_devices_nothing_is_known() {
    for kind in ["overlay", "zfs", "tmpfs"] {
        let root = on_two_disks(kind);
        let found = root.below("loop3");
        assert_eq!(names(&found), ["loop3"], "{kind}");
        assert_eq!((disks(&found), rotational(&found)), (Vec::new(), None));
    }
}

#[test]
fn one_device_of_a_btrfs_stands_for_all() {
    let root = on_two_disks("btrfs");
    let [sda, sdb] = [0, 16].map(|minor| rustix::fs::makedev(8, minor));
    assert_eq!(btrfs_devices(&root.sys(), sdb), [sda, sdb]);
    assert!(btrfs_devices(&root.sys(), rustix::fs::makedev(8, 32)).is_empty());
}

#[test]
fn a_source_names_a_device_by_its_node_or_by_its_name() {
    let root = on_two_disks("btrfs");
    let of = |source: &str| number_of(root.0.path(), source.as_ref());
    assert_eq!(of("/dev/sdb"), Some(rustix::fs::makedev(8, 16)));
    for source in ["none", "", "sdb", "/dev/sdq", "/sdb", "/dev/../devices/sdb"] {
        assert_eq!(of(source), None, "{source:?}");
    }
    // No device's node.
    fs::create_dir_all(root.0.path().join("dev/sdb")).expect("made");
    assert_eq!(of("/dev/sdb"), None);
}

fn says(device: (u32, u32), own_device: (u32, u32)) -> Option<Status> {
    let number = |(major, minor)| rustix::fs::makedev(major, minor);
    Some(Status {
        device: number(device),
        own_device: number(own_device),
        inode: 1,
        direct_io: false,
    })
}

#[test]
fn what_a_loop_device_says_of_its_file_outweighs_the_files_name() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let below = |root: &Root, ask| {
        let found = sysfs::below_as(root.0.path(), &root.sys().join("devices/loop3"), ask);
        let names = found.into_iter().skip(1).map(|below| below.name);
        names.collect::<Vec<_>>()
    };
    let shown = file.path().to_str().expect("of ASCII");
    for shown in [shown, "/no/such/image"] {
        let root = looped(file.path(), shown)
            .put("devices/sda", &[("size", "8")])
            .put("devices/sda/sda1", &[("partition", "1")])
            .link("dev/block/8:0", "devices/sda")
            .link("dev/block/8:1", "devices/sda/sda1");
        // A file on a filesystem on it.
        assert_eq!(below(&root, |_| says((8, 0), (0, 0))), ["sda"]);
        // A device, whose node is on another filesystem.
        assert_eq!(below(&root, |_| says((0, 6), (8, 1))), ["sda1", "sda"]);
        // On btrfs, and the name leads to another filesystem here.
        assert_eq!(below(&root, |_| says((0, 77), (0, 0))), [""; 0]);
    }
    let of_proc = |_: &Path| {
        let device = fs::metadata(ON_NO_DEVICE).expect("it is there").dev();
        let all = (rustix::fs::major(device), rustix::fs::minor(device));
        says(all, all)
    };
    assert_eq!(below(&on_two_disks("btrfs"), of_proc), ["sda", "sdb"]);
}

#[test]
fn without_the_right_to_ask_a_name_is_believed_unless_the_length_differs() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("img");
    fs::write(&file, [0; 8 * 512 + 100]).expect("written");
    let shown = file.to_str().expect("of ASCII");
    let below = |attributes: &[(&str, &str)]| {
        let root = looped(&file, shown).put("devices/loop3", attributes);
        names(&root.below("loop3p1")).contains(&"zram7")
    };
    assert!(below(&[("size", "8")]));
    assert!(!below(&[("size", "9")]) && !below(&[("size", "0")]));
    assert!(below(&[("size", "6"), ("loop/offset", "1024")]));
    assert!(below(&[
        ("size", "5"),
        ("loop/offset", "1024"),
        ("loop/sizelimit", "2560")
    ]));
    assert!(!below(&[
        ("size", "8"),
        ("loop/offset", "1024"),
        ("loop/sizelimit", "0")
    ]));
}

#[test]
fn the_name_of_a_loop_devices_file_is_taken_byte_for_byte() {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory
        .path()
        .join(std::ffi::OsStr::from_bytes(b"\xff img \n"));
    fs::write(&file, "").expect("written");
    let root = looped(&file, "");
    let shown = [file.as_os_str().as_bytes(), b"\n"].concat();
    fs::write(root.sys().join("devices/loop3/loop/backing_file"), shown).expect("written");
    let found = root.below("loop3p1");
    assert_eq!(names(&found), ["loop3p1", "loop3", "zram7"]);
    let kept = found[1].backing_file.clone().expect("a file");
    assert_eq!(
        kept.into_os_string().into_vec(),
        file.into_os_string().into_vec()
    );
}

#[test]
fn what_is_made_up_by_device_mapper_or_md_is_no_disk() {
    for kind in ["dm", "md"] {
        // As dm-zero and dm-error, and one whose parts cannot be read.
        let root = Root::new()
            .put(
                "devices/it",
                &[(&format!("{kind}/name"), "zero"), ("queue/rotational", "0")],
            )
            .link("class/block/it", "devices/it");
        assert_eq!(root.disks("it"), []);
        assert_eq!(rotational(&root.below("it")), Some(false));
    }
}

#[test]
fn devices_that_are_built_upon_each_other_in_a_circle_end() {
    let root = Root::new()
        .link("devices/dm-0/slaves/dm-1", "devices/dm-1")
        .link("devices/dm-1/slaves/dm-0", "devices/dm-0")
        .link("class/block/dm-0", "devices/dm-0");
    assert_eq!(root.below("dm-0").len(), 2);
    assert_eq!(root.disks("dm-0"), []);
    assert_eq!(root.disks("sdq"), []);
}

#[test]
fn a_field_may_hold_anything() {
    let root = unit(Root::new(), "devices/pci/ata1", "sda");
    let device = "devices/pci/ata1/host0/target0:0:0/0:0:0:0";
    fs::write(
        root.sys().join(device).join("model"),
        b"\0\0evil\x1b[2J\xff\0",
    )
    .expect("written");
    fs::write(root.sys().join(device).join("rev"), "x".repeat(1 << 20)).expect("written");
    fs::write(root.sys().join(device).join("vendor"), " \n").expect("written");
    let root = root.put(
        &format!("{device}/block/sda"),
        &[
            ("size", "99999999999999999999"),
            ("queue/fua", "yes"),
            ("queue/write_cache", "?"),
        ],
    );
    let disk = root.disk("sda");
    assert_eq!(disk.model, some("evil\u{1b}[2J\u{fffd}"));
    assert_eq!(disk.firmware.map(|text| text.len()), Some(4096));
    assert_eq!(
        (disk.vendor, disk.capacity_bytes, disk.fua, disk.write_cache),
        (None, None, None, None)
    );
}

#[test]
fn a_name_from_a_file_leads_nowhere_else() {
    let root = Root::new().put("secret", &[("health_descriptor/eol_info", "0x01")]);
    for name in ["../../secret", ".", "/etc"] {
        let mut disks = [Disk {
            name: name.into(),
            bus: Some(Bus::Ufs),
            ..Disk::default()
        }];
        read_before(root.0.path(), &mut disks);
        assert_eq!(disks[0].health_before, None);
    }
}

#[test]
fn only_what_both_tell_makes_disks_different() {
    let disk = Disk {
        bus: Some(Bus::Nvme),
        model: some("A"),
        ..Disk::default()
    };
    let unknown = Disk {
        name: "other".into(),
        ..Disk::default()
    };
    assert!(disk.is_like(&unknown) && disk.is_like(&disk));
    let other = Disk {
        model: some("B"),
        ..disk.clone()
    };
    assert!(!disk.is_like(&other));
    let other = Disk {
        firmware: some("2"),
        ..disk.clone()
    };
    assert!(
        disk.is_like(&other)
            && !other.is_like(&Disk {
                firmware: some("3"),
                ..other.clone()
            })
    );
}

#[test]
fn a_node_is_found_where_android_makes_it_and_nowhere_else() {
    let root = tempfile::tempdir().expect("a directory");
    let [usual, android] =
        ["dev/mapper/a", "dev/block/mapper/a"].map(|path| root.path().join(path));
    let found = || node(root.path(), "mapper!a").expect("a name");
    assert_eq!(found(), usual);
    fs::create_dir_all(android.parent().expect("a parent")).expect("made");
    fs::write(&android, "").expect("written");
    assert_eq!(found(), android);
    for name in ["", "..", "../a", "a!..!b", "!a", "a/b"] {
        assert_eq!(node(root.path(), name), None, "{name:?}");
    }
}
