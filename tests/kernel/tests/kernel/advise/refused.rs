//! What advise refuses, with nothing left behind.

use std::path::Path;

use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::image::{LoopImage, Options};
use iostep_lab::{Kind, Mount};

use super::{CONTENT, attempt, ensure_same, files, needs, sqlite3};
use crate::bad_input::TempMount;
use crate::case::Case;

const TMPFS: [Requirement; 3] = [
    Requirement::Root,
    Requirement::Filesystem("tmpfs"),
    Requirement::Program("sqlite3"),
];

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("a filesystem without room is refused", needs(), no_room),
        Case::new("a filesystem that is full is refused", TMPFS, full),
        Case::new("a read-only filesystem is refused", TMPFS, read_only),
        Case::new("what is no database is refused", TMPFS, no_database),
        Case::new(
            "in memory waldio means nothing, and says why",
            TMPFS,
            in_memory,
        ),
    ]
}

/// Fails unless it was refused with this status and words, and nothing was changed.
fn refused(target: &Path, flags: &str, code: i32, words: &str) -> anyhow::Result<()> {
    let directory = match target.is_dir() {
        true => target,
        false => target.parent().unwrap_or(Path::new("/")),
    };
    let before = files(directory)?;
    attempt(target, flags)?.refused(&[code], words)?;
    ensure_same(directory, &before)
}

fn no_room() -> anyhow::Result<()> {
    let image = LoopImage::create(&Options {
        bytes: 40 << 20,
        ..Options::default()
    })?;
    iostep_lab::mkfs::<&str>(Kind::Ext4, &image, &[])?;
    let mount = Mount::new(Kind::Ext4, &image, "")?;
    let database = mount.path().join("app.db");
    sqlite3(mount.path(), &database, CONTENT)?;
    refused(&database, "", 1, "MiB are free")?;
    refused(mount.path(), "", 1, "MiB are free")
}

fn full() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "size=1m")?;
    std::fs::write(place.path().join("app.db"), b"")?;
    // It fails when there is no room for more.
    let _ = std::fs::write(place.path().join("filler"), vec![1; 2 << 20]);
    refused(&place.path().join("app.db"), "", 1, "0 MiB are free")
}

fn read_only() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let database = place.path().join("app.db");
    sqlite3(place.path(), &database, CONTENT)?;
    let flags = rustix::mount::MountFlags::RDONLY;
    rustix::mount::mount_remount(place.path(), flags, c"")?;
    refused(&database, "", 1, "nothing can be written there")?;
    refused(place.path(), "", 1, "nothing can be written there")
}

fn no_database() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let file = place.path().join("file");
    std::fs::write(&file, vec![b'x'; 10_000])?;
    refused(&file, "", 2, "not a SQLite database")?;
    refused(&place.path().join("missing"), "", 2, "missing")?;
    std::fs::write(&file, b"SQLite format 3\0")?;
    refused(&file, "", 2, "ends after 16 bytes")?;
    refused(place.path(), "--time 10ms", 2, "--time")?;
    refused(place.path(), "--candidates walrus", 2, "walrus")?;
    refused(
        place.path(),
        &format!("--trace {}", file.display()),
        2,
        "file",
    )?;
    // A pipe would never end.
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )?;
    refused(&place.path().join("pipe"), "", 2, "not a regular file")
}

fn in_memory() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let found = super::advice(place.path(), "--candidates waldio-full,truncate-full")?;
    let state = &super::row(&found, "waldio-full")?["state"];
    anyhow::ensure!(state["kind"] == "not_applicable", "{state}");
    let reason = state["reason"].as_str().unwrap_or_default();
    anyhow::ensure!(reason.contains("tmpfs has no disk"), "{reason}");
    let row = super::row(&found, "truncate-full")?;
    anyhow::ensure!(row["device"]["written_bytes"].is_null(), "{row}");
    Ok(())
}
