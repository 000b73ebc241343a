//! Where cells run: devices and directories that are given, and those that must not be.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

use iostep_lab::image::Options;
use iostep_lab::{Kind, LoopImage, Mount, mkfs};
use iostep_model::lab::{Medium, State};
use rustix::fs::OFlags;

use super::{Bench, LOOP, QUICK, at, ensure_complete};
use crate::case::Case;

pub fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "a device that is mounted, in use, too small or not given up is not written",
            LOOP,
            refused_devices,
        ),
        Case::new("a device that was given is used", LOOP, given_device),
        Case::new("a directory is used as it is", LOOP, directory),
    ]
}

fn path(image: &LoopImage) -> String {
    image.device().to_string_lossy().into_owned()
}

fn image(bytes: u64) -> anyhow::Result<LoopImage> {
    Ok(LoopImage::create(&Options {
        bytes,
        ..Options::default()
    })?)
}

/// The device holds `content`, and zeros behind it.
fn ensure_holds(image: &LoopImage, content: &[u8]) -> anyhow::Result<()> {
    let device = image.device().display();
    let found = std::fs::read(image.device())?;
    let expected = content.iter().chain(std::iter::repeat(&0));
    let other = found
        .iter()
        .zip(expected)
        .position(|(found, expected)| found != expected);
    anyhow::ensure!(other.is_none(), "{device} was written, at byte {other:?}");
    Ok(())
}

fn refused_devices() -> anyhow::Result<()> {
    let bench = Bench::new(QUICK)?;
    let mounted = image(128 << 20)?;
    mkfs::<&str>(Kind::Ext4, &mounted, &[])?;
    // What ext4 itself writes in its own time (inode tables, its journal, the superblock) would
    // change the content meanwhile.
    let _mount = Mount::new(Kind::Ext4, &mounted, "ro")?;
    let before = std::fs::read(mounted.device())?;
    let (small, good, used) = (image(32 << 20)?, image(160 << 20)?, image(160 << 20)?);
    let _user = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::EXCL.bits() as i32)
        .open(used.device())?;
    let [mounted_at, small_at, good_at, used_at] = [&mounted, &small, &good, &used].map(path);
    let given = "--destroy-data";
    let journal = "--journal-device";
    for (flags, word) in [
        (vec!["--on", &mounted_at, given], "mounted at"),
        (vec!["--on", &used_at, given], "in use"),
        (
            vec!["--on", &small_at, given],
            "32 MiB, and a cell needs 64",
        ),
        (vec!["--on", &good_at], given),
        (
            vec!["--on", "/dev/null", given],
            "neither a directory nor a block device",
        ),
        (
            vec!["--on", &good_at, given, journal, &mounted_at],
            "mounted",
        ),
        (
            vec!["--on", &good_at, given, journal, &good_at],
            "same device",
        ),
        (
            vec!["--on", &good_at, given, journal, &small_at],
            "32 MiB, and a cell needs 128",
        ),
        (vec!["--on", "loop", journal, &good_at], "no --on device"),
    ] {
        bench.run("out", &flags)?.refused(&[2], word)?;
    }
    anyhow::ensure!(!bench.path("out").exists(), "results were begun");
    ensure_holds(&mounted, &before)?;
    for image in [&small, &good, &used] {
        ensure_holds(image, &[])?;
    }
    Ok(())
}

fn given_device() -> anyhow::Result<()> {
    let bench = Bench::new(
        "[[cells]]\nworkload='file'\nfilesystem='ext4'\nsize='16KiB'\nswitches=['', 'E']\n\
         device-size='64MiB'\n",
    )?;
    let (device, journal) = (image(128 << 20)?, image(128 << 20)?);
    let (device_path, journal_path) = (path(&device), path(&journal));
    let flags = ["--on", &device_path, "--destroy-data"];
    bench.run("one", &flags)?.status(0)?;
    let all = bench.read("one")?;
    ensure_complete(at(&all, "switches", "")?)?;
    let without = &at(&all, "switches", "E")?.state;
    let told =
        matches!(without, State::NotApplicable { reason } if reason.contains("--journal-device"));
    anyhow::ensure!(told, "{without:?}");
    let flags = [&flags[..], &["--journal-device", &journal_path]].concat();
    bench.run("two", &flags)?.status(0)?;
    let all = bench.read("two")?;
    all.iter().try_for_each(ensure_complete)?;
    let place = all[0].environment.as_ref().map(|found| found.place);
    anyhow::ensure!(place == Some(Medium::Device), "{place:?}");
    Ok(())
}

fn directory() -> anyhow::Result<()> {
    let bench = Bench::new(
        "[[cells]]\nworkload='file'\nsize='16KiB'\ndevice-size='64MiB'\n\
         filesystem=['ext4', 'ext4-data-journal', 'xfs']\nswitches=['', 'E']\n",
    )?;
    let disk = image(64 << 20)?;
    mkfs::<&str>(Kind::Ext4, &disk, &[])?;
    let mount = Mount::new(Kind::Ext4, &disk, "data=journal")?;
    let root = mount.path().to_string_lossy().into_owned();
    bench.run("out", &["--on", &root])?.status(0)?;
    let all = bench.read("out")?;
    let complete: Vec<String> = all
        .iter()
        .filter(|result| result.state == State::Complete)
        .map(|result| iostep_lab::plan::label(&result.cell))
        .collect();
    anyhow::ensure!(
        complete == ["cells-1 filesystem=ext4-data-journal"],
        "{complete:?}"
    );
    anyhow::ensure!(all.len() == 6, "{} results", all.len());
    let left = std::fs::read_dir(mount.path())?.count();
    anyhow::ensure!(left == 1, "{left} entries beside lost+found");
    Ok(())
}
