//! Files whose names come late, and threads that have names of their own.
//!
//! ```text
//! names DIRECTORY files      files of O_TMPFILE, with and without a name later
//! names DIRECTORY threads    files written by threads, and by a worker of io_uring
//! names DIRECTORY renames    files that get other names after they were written
//! ```
//!
//! Prints as JSON what the kernel says of itself of each.

use std::ffi::{CString, OsStr};
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use anyhow::Context;
use io_uring::{IoUring, opcode, squeue, types};
use iostep_kernel_tests::stamp::BLOCK_BYTES;
use rustix::fs::{AtFlags, CWD, RenameFlags};
use serde_json::{Value, json};

const FS_IOC_GETVERSION: libc::c_ulong = 0x8008_7601;
const THREADS: usize = 3;
const BLOCKS: usize = 8;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let [_, directory, what] = &words[..] else {
        anyhow::bail!("usage: names DIRECTORY files|threads|renames");
    };
    std::env::set_current_dir(Path::new(directory))?;
    let facts = match what.as_str() {
        "files" => files()?,
        "threads" => threads()?,
        "renames" => renames()?,
        other => anyhow::bail!("{other}: not known"),
    };
    println!("{facts}");
    Ok(())
}

/// Everything is on the device before a name is given: no write tells of it.
fn nameless() -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).mode(0o600);
    let file = options.custom_flags(libc::O_TMPFILE).open(".")?;
    file.write_all_at(&[7; BLOCK_BYTES * BLOCKS], 0)?;
    file.sync_all()?;
    Ok(file)
}

fn fact(file: &File, path: Option<&str>) -> anyhow::Result<Value> {
    let metadata = file.metadata()?;
    Ok(json!({
        "path": path,
        "inode": metadata.ino(),
        "generation": generation(file)?,
        "links": metadata.nlink(),
    }))
}

/// The inode's generation.
fn generation(file: &File) -> anyhow::Result<u32> {
    let mut version: libc::c_long = 0;
    // SAFETY: the filesystems write an int or a long at the pointer, which has room for either.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETVERSION as _, &mut version) };
    anyhow::ensure!(result == 0, "{}", std::io::Error::last_os_error());
    Ok(version as u32)
}

fn files() -> anyhow::Result<Value> {
    let mut facts = Vec::new();
    // By the two ways of open(2), and by io_uring.
    for (path, link) in [
        ("by-proc", link_by_proc as fn(&File, &str) -> _),
        ("by-fd", link_by_fd),
        ("by-ring", link_by_ring),
    ] {
        let file = nameless()?;
        link(&file, path)?;
        facts.push(fact(&file, Some(path))?);
    }
    // One after the other, with the same inode number where the filesystem gives it again.
    for _ in 0..2 {
        facts.push(fact(&nameless()?, None)?);
    }
    Ok(facts.into())
}

fn link_by_proc(file: &File, path: &str) -> anyhow::Result<()> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(
        CWD,
        own,
        CWD,
        path,
        AtFlags::SYMLINK_FOLLOW,
    )?)
}

fn link_by_fd(file: &File, path: &str) -> anyhow::Result<()> {
    Ok(rustix::fs::linkat(
        file,
        "",
        CWD,
        path,
        AtFlags::EMPTY_PATH,
    )?)
}

fn link_by_ring(file: &File, path: &str) -> anyhow::Result<()> {
    let own = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let path = CString::new(path)?;
    let here = types::Fd(libc::AT_FDCWD);
    let entry =
        opcode::LinkAt::new(here, own.as_ptr(), here, path.as_ptr()).flags(libc::AT_SYMLINK_FOLLOW);
    ask(&entry.build())
}

/// Hands a request in and waits for its result.
fn ask(entry: &squeue::Entry) -> anyhow::Result<()> {
    let mut ring = IoUring::new(8)?;
    // SAFETY: all that an entry points to outlives this call, which ends with its completion.
    unsafe { ring.submission().push(entry) }.context("the queue is full")?;
    ring.submit_and_wait(1)?;
    let result = ring.completion().next().context("a completion")?.result();
    anyhow::ensure!(
        result >= 0,
        "{}",
        std::io::Error::from_raw_os_error(-result)
    );
    Ok(())
}

/// The first thread writes nothing.
fn threads() -> anyhow::Result<Value> {
    let writers = (0..THREADS).map(|n| {
        let name = format!("writer-{n}");
        let builder = std::thread::Builder::new().name(name.clone());
        builder.spawn(move || -> anyhow::Result<Value> {
            let file = File::create(&name)?;
            file.write_all_at(&[7; BLOCK_BYTES * BLOCKS], 0)?;
            file.sync_all()?;
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            Ok(json!({ "file": name, "thread": tid, "comm": name }))
        })
    });
    let writers = writers.collect::<Result<Vec<_>, _>>()?;
    let mut facts = Vec::new();
    for writer in writers {
        facts.push(writer.join().expect("a writer does not panic")?);
    }
    let file = File::create("worker")?;
    let fd = types::Fd(file.as_raw_fd());
    let bytes = [7; BLOCK_BYTES * BLOCKS];
    let write = opcode::Write::new(fd, bytes.as_ptr(), bytes.len() as u32);
    for entry in [write.build(), opcode::Fsync::new(fd).build()] {
        ask(&entry.flags(squeue::Flags::ASYNC))?;
    }
    facts.push(json!({ "file": "worker" }));
    // The tracer reads the command line of who is still there.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let comm = std::fs::read_to_string("/proc/self/comm")?;
    let process = json!({ "pid": std::process::id(), "comm": comm.trim_end() });
    Ok(json!({ "process": process, "files": facts, "bytes_each": bytes.len() }))
}

/// How often a file is replaced by its next version.
const VERSIONS: usize = 20;

/// What is on the device before anything is renamed.
fn written(path: impl AsRef<Path>) -> anyhow::Result<File> {
    let file = File::create(path)?;
    file.write_all_at(&[7; BLOCK_BYTES * BLOCKS], 0)?;
    file.sync_all()?;
    Ok(file)
}

/// What is known of a file at the end: its last path, its first if that was another, and whether it
/// is gone.
fn fate(file: &File, path: &str, first: Option<&str>, deleted: bool) -> anyhow::Result<Value> {
    let mut fate = fact(file, Some(path))?;
    fate["first"] = json!(first);
    fate["deleted"] = json!(deleted);
    Ok(fate)
}

/// Takes down the [`fate`] of a file.
type Tell<'a> = dyn FnMut(&File, &str, Option<&str>, bool) -> anyhow::Result<()> + 'a;

fn renames() -> anyhow::Result<Value> {
    let mut facts = Vec::new();
    let mut tell = |file: &File, path: &str, first: Option<&str>, deleted: bool| {
        fate(file, path, first, deleted).map(|fate| facts.push(fate))
    };
    rename_again_and_again(&mut tell)?;
    rename_by_every_call(&mut tell)?;
    replace_and_remove(&mut tell)?;
    // As docs/trace.md writes them.
    for (name, path) in [
        (&b"n\xff"[..], "n\\xff"),
        (b"n\xfe", "n\\xfe"),
        (b"n\\xff", "n\\\\xff"),
        (b"n\n\t", "n\n\t"),
    ] {
        let file = written(OsStr::from_bytes(name))?;
        tell(&file, path, None, false)?;
    }
    Ok(facts.into())
}

/// As a careful program, as rotation of logs, and with a directory above.
fn rename_again_and_again(tell: &mut Tell<'_>) -> anyhow::Result<()> {
    for version in 1..=VERSIONS {
        let file = written("save.tmp")?;
        tell(&file, "save", Some("save.tmp"), version < VERSIONS)?;
        drop(file);
        fs::rename("save.tmp", "save")?;
    }

    let log = written("app.log")?;
    fs::rename("app.log", "app.log.1")?;
    log.write_all_at(&[8; BLOCK_BYTES], 0)?;
    fs::rename("app.log.1", "app.log.2")?;
    tell(&log, "app.log.2", Some("app.log"), false)?;

    fs::create_dir_all("stage/a/b")?;
    let deep = written("stage/a/b/deep")?;
    fs::rename("stage", "final")?;
    tell(&deep, "final/a/b/deep", Some("stage/a/b/deep"), false)?;
    fs::create_dir("gone.tmp")?;
    let gone = written("gone.tmp/x")?;
    tell(&gone, "gone/x", Some("gone.tmp/x"), true)?;
    drop(gone);
    fs::rename("gone.tmp/", "gone/")?;
    fs::remove_file("gone/x")?;
    Ok(())
}

fn rename_by_every_call(tell: &mut Tell<'_>) -> anyhow::Result<()> {
    let (one, two) = (written("one")?, written("two")?);
    rustix::fs::renameat_with(CWD, "one", CWD, "two", RenameFlags::EXCHANGE)?;
    tell(&one, "two", Some("one"), false)?;
    tell(&two, "one", Some("two"), false)?;

    let linked = written("linked.tmp")?;
    fs::hard_link("linked.tmp", "linked")?;
    fs::remove_file("linked.tmp")?;
    tell(&linked, "linked", Some("linked.tmp"), false)?;
    let both = written("kept")?;
    fs::hard_link("kept", "other")?;
    tell(&both, "kept", None, false)?;
    let made = nameless()?;
    link_by_fd(&made, "made.tmp")?;
    fs::rename("made.tmp", "made")?;
    tell(&made, "made", Some("made.tmp"), false)?;

    fs::create_dir("below")?;
    let moved = written("moved.tmp")?;
    fs::rename(std::env::current_dir()?.join("moved.tmp"), "below/moved")?;
    tell(&moved, "below/moved", Some("moved.tmp"), false)?;
    let directory = File::open("below")?;
    let at = written("below/at.tmp")?;
    rustix::fs::renameat(&directory, "at.tmp", &directory, "at")?;
    tell(&at, "below/at", Some("below/at.tmp"), false)?;
    let by_ring = written("ring.tmp")?;
    rename_by_ring("ring.tmp", "ring")?;
    tell(&by_ring, "ring", Some("ring.tmp"), false)
}

/// Written back after the name is another, and names that others had.
fn replace_and_remove(tell: &mut Tell<'_>) -> anyhow::Result<()> {
    let late = File::create("late.tmp")?;
    late.write_all_at(&[7; BLOCK_BYTES * BLOCKS], 0)?;
    fs::rename("late.tmp", "late")?;
    tell(&late, "late", Some("late.tmp"), false)?;

    let (held, new) = (written("held")?, written("held.tmp")?);
    fs::rename("held.tmp", "held")?;
    tell(&held, "held", None, true)?;
    tell(&new, "held", Some("held.tmp"), false)?;
    let removed = written("removed.tmp")?;
    tell(&removed, "removed", Some("removed.tmp"), true)?;
    drop(removed);
    fs::rename("removed.tmp", "removed")?;
    fs::remove_file("removed")?;
    Ok(())
}

fn rename_by_ring(from: &str, to: &str) -> anyhow::Result<()> {
    let (from, to) = (CString::new(from)?, CString::new(to)?);
    let here = types::Fd(libc::AT_FDCWD);
    ask(&opcode::RenameAt::new(here, from.as_ptr(), here, to.as_ptr()).build())
}
