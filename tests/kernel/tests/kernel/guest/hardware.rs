//! Which disk a result names, beside what QEMU was told and its devices say, and beside lsblk.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::image::{LoopImage, Options};
use iostep_lab::{Kind, Mount};
use iostep_model::bench::{Document, Environment};
use iostep_model::disk::{Bus, Disk};
use iostep_model::manifest::Manifest;

use super::json;
use crate::case::Case;

/// The length of every disk here, as QEMU is told.
const SIZE: &str = "64MiB";
const BYTES: u64 = 64 << 20;

/// A bench and a trace by `$3` on ext4 on a loop device, whose file is on ext4 on device mapper on
/// the partition `$2` of the disk `$1`: 65,536 sectors from sector 2048 on, in an MBR.
const DEEP: &str = r#"
set -e
entry='\000\000\000\000\203\000\000\000\000\010\000\000\000\000\001\000'
printf "$entry" | dd of=$1 bs=1 seek=446 conv=notrunc 2> /dev/null
printf '\125\252' | dd of=$1 bs=1 seek=510 conv=notrunc 2> /dev/null
blockdev --rereadpt $1
modprobe dm_mod
echo "0 65536 linear $2 0" | dmsetup create --noudevsync deep
dmsetup mknodes
mkfs.ext4 -q /dev/mapper/deep
mount /dev/mapper/deep /mnt
truncate -s 16M /mnt/image
mkfs.ext4 -q -F /mnt/image
mkdir /tmp/inner
mount -o loop /mnt/image /tmp/inner
mkdir /tmp/inner/d
$3 bench file /tmp/inner/d --size 64KiB --sync fdatasync -q -o /tmp/bench.json
$3 trace /tmp/inner -o /tmp/trace -- dd if=/dev/zero of=/tmp/inner/f bs=4k count=4 conv=fsync >&2
cat /tmp/bench.json
echo
echo MANIFEST
cat /tmp/trace/manifest.json
umount /tmp/inner /mnt
dmsetup remove --noudevsync deep
"#;

/// A kind of disk, and what QEMU's calls itself (hw/nvme/ctrl.c, hw/scsi/scsi-disk.c, hw/sd/sd.c).
struct Told {
    kind: &'static str,
    disk: &'static str,
    partition: &'static str,
    bus: Bus,
    vendor: &'static str,
    model: Option<&'static str>,
    firmware: Firmware,
}

enum Firmware {
    None,
    Is(&'static str),
    /// QEMU's own version.
    OfQemu,
}

const TOLD: [Told; 4] = [
    Told {
        kind: "nvme",
        disk: "nvme0n1",
        partition: "nvme0n1p1",
        bus: Bus::Nvme,
        vendor: "0x1b36",
        model: Some("QEMU NVMe Ctrl"),
        firmware: Firmware::OfQemu,
    },
    Told {
        kind: "scsi",
        disk: "sda",
        partition: "sda1",
        bus: Bus::Scsi,
        vendor: "QEMU",
        model: Some("QEMU HARDDISK"),
        firmware: Firmware::Is("2.5+"),
    },
    Told {
        kind: "sd",
        disk: "mmcblk0",
        partition: "mmcblk0p1",
        bus: Bus::Sd,
        vendor: "0x0000aa",
        model: Some("QEMU!"),
        firmware: Firmware::Is("0x1"),
    },
    Told {
        kind: "virtio",
        disk: "vda",
        partition: "vda1",
        bus: Bus::Virtio,
        vendor: "0x1af4",
        model: None,
        firmware: Firmware::None,
    },
];

pub fn cases(needs: impl Fn(&[&'static str]) -> Vec<Requirement>) -> Vec<Case> {
    let of_guests = TOLD.map(|told| {
        let kind = told.kind;
        let name = format!(
            "{kind}: the disk below a loop device on device mapper on a partition is named"
        );
        let needs = needs(&["mkfs.ext4", "dmsetup"]);
        Case::new(name, needs, move || deep(&told))
    });
    let on_this = |name: &str, programs: &[&'static str], run: fn() -> anyhow::Result<()>| {
        let machine = [Requirement::Root, Requirement::Loop];
        let programs = ["mkfs.ext4", "findmnt", "lsblk", "unshare"]
            .iter()
            .chain(programs);
        let programs = programs.map(|program| Requirement::Program(program));
        let filesystems = match name.contains("btrfs") {
            true => vec![Requirement::Filesystem("btrfs")],
            false => Vec::new(),
        };
        let needs = machine.into_iter().chain(programs).chain(filesystems);
        Case::new(name, needs.collect::<Vec<Requirement>>(), run)
    };
    let on_this = [
        on_this(
            "the disk below a loop device of this machine is named",
            &[],
            below_a_loop_device,
        ),
        on_this(
            "the disk below a loop device on btrfs on another is named",
            &["mkfs.btrfs"],
            below_a_btrfs,
        ),
        on_this(
            "the disk below a loop device is not that of its file's name",
            &[],
            below_a_hidden_file,
        ),
    ];
    of_guests.into_iter().chain(on_this).collect()
}

fn deep(told: &Told) -> anyhow::Result<()> {
    let binary = iostep::binary()?;
    let binary = binary.to_string_lossy();
    let [disk, partition] = [told.disk, told.partition].map(|name| format!("/dev/{name}"));
    let flags = ["--device", told.kind, "--size", SIZE, "--"];
    let run = ["sh", "-c", DEEP, "sh", &disk, &partition, &binary];
    let value = json(&[&flags[..], &run].concat(), 0)?;
    let stdout = value["stdout"].as_str().unwrap_or_default();
    let (result, manifest) = stdout.split_once("\nMANIFEST\n").context("two documents")?;
    let result = Document::parse("bench.json".as_ref(), result.as_bytes())?.environment;
    let manifest: Manifest = serde_json::from_str(manifest)?;
    let ([bench], [trace]) = (&result.disks[..], &manifest.disks[..]) else {
        anyhow::bail!("{:#?} {:#?}", result.disks, manifest.disks);
    };
    println!("    {bench:?}");
    same(told, bench)?;
    same(told, trace)?;
    let is_told = |disk: &Disk| [&disk.health_before, &disk.health_after].map(Option::is_some);
    // Of these only NVMe tells.
    let is_nvme = told.bus == Bus::Nvme;
    let health = (is_told(bench), is_told(trace));
    anyhow::ensure!(health == ([is_nvme; 2], [is_nvme; 2]), "{health:?}");
    for device in [&manifest.device, &result.device.context("a device")?] {
        let is_its = device.name.starts_with("loop") && device.rotational == bench.rotational;
        anyhow::ensure!(is_its && device.rotational.is_some(), "{device:?}");
    }
    Ok(())
}

fn same(told: &Told, found: &Disk) -> anyhow::Result<()> {
    let expected = Disk {
        name: told.disk.into(),
        bus: Some(told.bus),
        vendor: Some(told.vendor.into()),
        model: told.model.map(str::to_owned),
        firmware: match told.firmware {
            Firmware::None => None,
            Firmware::Is(text) => Some(text.into()),
            Firmware::OfQemu => Some(qemu_version()?),
        },
        capacity_bytes: Some(BYTES),
        ..found.clone()
    };
    anyhow::ensure!(*found == expected, "{found:#?}, QEMU: {expected:#?}");
    let known = found.write_cache.is_some() && found.fua.is_some() && found.rotational.is_some();
    anyhow::ensure!(known, "{found:#?}");
    Ok(())
}

/// The number in `QEMU emulator version 7.2.22 (Debian ...)`, as much of it as the field of eight
/// bytes has.
fn qemu_version() -> anyhow::Result<String> {
    let text = said("qemu-system-x86_64", &["--version"])?;
    let word = text.split_whitespace().nth(3).context("a version")?;
    Ok(word.chars().take(8).collect())
}

fn below_a_loop_device() -> anyhow::Result<()> {
    is_temporarys(&measured(&image(None)?, "true")?)
}

fn below_a_btrfs() -> anyhow::Result<()> {
    let below = image(None)?;
    iostep_lab::mkfs(Kind::Btrfs, &below, iostep_lab::tool(Kind::Btrfs).at_once)?;
    let mount = Mount::new(Kind::Btrfs, &below, "")?;
    let upper = image(Some(mount.path()))?;
    let found = measured(&upper, "true")?;
    drop(upper);
    mount.unmount()?;
    is_temporarys(&found)
}

/// The file's directory lies in memory where the bench looks.
fn below_a_hidden_file() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let image = image(Some(directory.path()))?;
    let hide = format!("mount -t tmpfs none '{}'", directory.path().display());
    is_temporarys(&measured(&image, &hide)?)
}

/// One in the directory, or in that for temporary files.
fn image(directory: Option<&Path>) -> anyhow::Result<LoopImage> {
    Ok(LoopImage::create(&Options {
        directory: directory.map(Path::to_owned),
        ..Options::default()
    })?)
}

/// What a bench on ext4 on an image says of its place, which sees the mounts that `hide` makes.
fn measured(image: &LoopImage, hide: &str) -> anyhow::Result<Environment> {
    iostep_lab::mkfs(Kind::Ext4, image, iostep_lab::tool(Kind::Ext4).at_once)?;
    let mount = Mount::new(Kind::Ext4, image, "")?;
    let script = format!(r#"{hide} && exec "$0" bench file "$1" --size 64KiB --json"#);
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .arg(iostep::binary()?)
        .arg(mount.path())
        .output()?;
    anyhow::ensure!(output.status.success(), "{output:?}");
    mount.unmount()?;
    Ok(Document::parse("output".as_ref(), &output.stdout)?.environment)
}

/// The disks are those of temporary files, as lsblk says, and the device turns if they do.
fn is_temporarys(environment: &Environment) -> anyhow::Result<()> {
    let found = &environment.disks;
    println!("    {found:?}");
    let turns = environment
        .device
        .as_ref()
        .and_then(|device| device.rotational);
    let temporary = std::env::temp_dir();
    let temporary = temporary.to_string_lossy();
    let source = said(
        "findmnt",
        &["-n", "-v", "-o", "SOURCE", "--target", &temporary],
    )?;
    // As overlay or tmpfs, which lie on no device of their own.
    if !source.starts_with("/dev/") {
        let is_unknown = found.is_empty() && turns.is_none();
        anyhow::ensure!(is_unknown, "on {source}: {environment:#?}");
        return Ok(());
    }
    let columns = ["-s", "-b", "-r", "-n", "-o", "TYPE,NAME,SIZE,ROTA", &source];
    let tree = said("lsblk", &columns)?;
    let disks = tree.lines().filter_map(|line| line.strip_prefix("disk "));
    let mut expected: Vec<String> = disks.map(str::to_owned).collect();
    expected.sort();
    expected.dedup();
    let words = found.iter().map(|disk| {
        let bytes = disk.capacity_bytes.unwrap_or_default();
        let turns = u8::from(disk.rotational.unwrap_or_default());
        format!("{} {bytes} {turns}", disk.name)
    });
    let mut words: Vec<String> = words.collect();
    words.sort();
    let is_same = words == expected && !words.is_empty();
    anyhow::ensure!(is_same, "{words:?}, lsblk: {expected:?}");
    let expected = found.iter().any(|disk| disk.rotational == Some(true));
    anyhow::ensure!(turns == Some(expected), "{environment:#?}");
    Ok(())
}

fn said(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
