//! What the threads of bench really ask the kernel for, as strace sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;
use iostep_kernel_tests::iostep;
use iostep_lab::Kind;

use super::{Fixture, ground_needs, words};
use crate::case::Case;

const CALLS: &str = "openat,pread64,preadv2,pwrite64,pwritev2,fsync,fdatasync,sync_file_range,\
                     msync,mmap,io_uring_setup";
/// Records of each run.
const RECORDS: usize = 64;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let needs = || ground_needs(Kind::Ext4, &["strace"]);
    let mut cases: Vec<Case> = MODES
        .iter()
        .map(|mode| {
            let name = format!("the calls are those of \"{}\"", mode.flags);
            Case::new(name, needs(), || mode_is_exact(mode))
        })
        .collect();
    cases.push(Case::new(
        "RWF_DONTCACHE is used where the kernel has it, else refused",
        needs(),
        dont_cache,
    ));
    cases.push(Case::new(
        "bench sqlite --fsync makes every sync an fsync",
        needs(),
        sqlite_fsync,
    ));
    cases.push(Case::new(
        "synchronous reaches every attached database",
        needs(),
        sqlite_attached,
    ));
    cases
}

/// Flags and what must come of them.
struct Mode {
    flags: &'static str,
    /// Of O_DIRECT, O_SYNC and O_DSYNC, those of the work file.
    opened: &'static [&'static str],
    /// How often the threads make which call; no other of [`CALLS`].
    calls: &'static [(&'static str, usize)],
    /// What each of the first of these calls must hold.
    holds: &'static str,
}

#[rustfmt::skip]
const MODES: &[Mode] = &[
    mode("--sync none", &[], &[("pwrite64", RECORDS)], "4096"),
    mode("--sync osync", &["O_SYNC"], &[("pwrite64", RECORDS)], "4096"),
    mode("--sync odsync", &["O_DSYNC"], &[("pwrite64", RECORDS)], "4096"),
    mode("--sync rwf-dsync", &[], &[("pwritev2", RECORDS)], "RWF_DSYNC"),
    mode("--sync fsync", &[], &[("pwrite64", RECORDS), ("fsync", RECORDS)], "4096"),
    // Six groups of ten, and the rest.
    mode("--sync fsync --sync-every 10", &[], &[("pwrite64", RECORDS), ("fsync", 7)], "4096"),
    mode("--sync fdatasync --sync-every 16", &[], &[("pwrite64", RECORDS), ("fdatasync", 4)], "4096"),
    mode("--sync fdatasync", &[], &[("pwrite64", RECORDS), ("fdatasync", RECORDS)], "4096"),
    mode("--end-sync", &[], &[("pwrite64", RECORDS), ("fsync", 1)], "4096"),
    mode("--sync sync-file-range", &[], &[("sync_file_range", RECORDS), ("pwrite64", RECORDS)], "SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE|SYNC_FILE_RANGE_WAIT_AFTER"),
    mode("--transfer direct", &["O_DIRECT"], &[("pwrite64", RECORDS)], "4096"),
    mode("--transfer direct --sync osync", &["O_DIRECT", "O_SYNC"], &[("pwrite64", RECORDS)], "4096"),
    mode("--transfer direct --sync odsync", &["O_DIRECT", "O_DSYNC"], &[("pwrite64", RECORDS)], "4096"),
    mode("--transfer mmap --sync msync", &[], &[("msync", RECORDS)], "MS_SYNC"),
    mode("--transfer mmap --sync msync --sync-every 10", &[], &[("msync", 7)], "MS_SYNC"),
    mode("--transfer mmap --sync msync-async", &[], &[("msync", RECORDS)], "MS_ASYNC"),
    mode("--transfer mmap --sync none", &[], &[], ""),
    mode("--access read", &[], &[("pread64", RECORDS)], "4096"),
    mode("--access random-read --transfer direct", &["O_DIRECT"], &[("pread64", RECORDS)], "4096"),
    mode("--access append --sync fdatasync", &[], &[("pwrite64", RECORDS), ("fdatasync", RECORDS)], "4096"),
    mode("--engine uring --depth 8", &[], &[], ""),
];

const fn mode(
    flags: &'static str,
    opened: &'static [&'static str],
    calls: &'static [(&'static str, usize)],
    holds: &'static str,
) -> Mode {
    Mode {
        flags,
        opened,
        calls,
        holds,
    }
}

/// One line of strace.
pub(super) struct Call {
    pub thread: String,
    pub name: String,
    pub line: String,
}

/// Runs bench under strace: every call that names a file of the work directory, but for its rings.
pub(super) fn calls_of(
    workload: &str,
    target: &Path,
    flags: &str,
) -> anyhow::Result<(String, Vec<Call>)> {
    let log = tempfile::NamedTempFile::new()?;
    let status = Command::new("strace")
        .args(["-f", "-y", "-s", "0", "-e", &format!("trace={CALLS}"), "-o"])
        .args([log.path(), &iostep::binary()?])
        .args(words(workload, target, flags))
        .stdout(Stdio::null())
        .status()?;
    anyhow::ensure!(status.success(), "{flags}: {status}");
    let text = std::fs::read_to_string(log.path())?;
    // With -f each line begins with its thread; the first is the process's.
    let calls: Vec<Call> = text.lines().filter_map(parse).collect();
    let main = calls.first().context("strace saw nothing")?.thread.clone();
    // An address says nothing about the file.
    let own = |call: &Call| {
        let nameless = ["msync", "io_uring_setup"].contains(&call.name.as_str());
        nameless || call.line.contains("iostep-bench")
    };
    Ok((main, calls.into_iter().filter(own).collect()))
}

/// `1234  fdatasync(5</mnt/x> <unfinished ...>`; the second half of such a call is no call.
fn parse(line: &str) -> Option<Call> {
    let (thread, rest) = line.split_once(' ')?;
    let rest = rest.trim_start();
    let (name, _) = rest.split_once('(')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_name).then(|| Call {
        thread: thread.to_owned(),
        name: name.to_owned(),
        line: line.to_owned(),
    })
}

/// How often the threads, but not the process's first, make each call on work files.
fn counts<'a>(calls: impl Iterator<Item = &'a Call>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for call in calls {
        *counts.entry(call.name.as_str()).or_default() += 1;
    }
    counts
}

fn mode_is_exact(mode: &Mode) -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    let flags = format!("--size {} {}", RECORDS * 4096, mode.flags);
    let (main, calls) = calls_of("file", ground.root(), &flags)?;
    let of_threads = || {
        calls
            .iter()
            .filter(|c| c.thread != main && c.name != "openat")
    };
    let mut found = counts(of_threads());
    let (maps, rings) = (found.remove("mmap"), found.remove("io_uring_setup"));
    println!("    {found:?}, {maps:?} mappings, {rings:?} rings");
    let expected: BTreeMap<&str, usize> = mode.calls.iter().copied().collect();
    anyhow::ensure!(found == expected, "{found:?}, expected {expected:?}");
    if let Some((name, _)) = mode.calls.first() {
        let other = of_threads().find(|c| c.name == *name && !c.line.contains(mode.holds));
        let other = other.map(|c| &c.line);
        anyhow::ensure!(other.is_none(), "without {}: {other:?}", mode.holds);
    }
    let all = counts(calls.iter());
    let has = |name: &str| all.contains_key(name);
    let wanted = |word: &str| mode.flags.contains(word);
    anyhow::ensure!(has("mmap") == wanted("mmap"), "mapped: {all:?}");
    anyhow::ensure!(has("io_uring_setup") == wanted("uring"), "rings: {all:?}");
    let opened = flags_of_last_open(&calls)?;
    anyhow::ensure!(
        opened == mode.opened.iter().copied().collect(),
        "opened with {opened:?}, expected {:?}",
        mode.opened
    );
    Ok(())
}

/// Those flags that matter of how the work file was opened last: before that it was only made.
fn flags_of_last_open(calls: &[Call]) -> anyhow::Result<BTreeSet<&'static str>> {
    let is_file = |call: &&Call| call.name == "openat" && call.line.contains("\"file-0\"");
    let mut opens: Vec<BTreeSet<&'static str>> = Vec::new();
    for call in calls.iter().filter(is_file) {
        let all = call.line.split([',', '|', ' ', ')']);
        let known = |flag: &str| {
            let known = ["O_DIRECT", "O_SYNC", "O_DSYNC"];
            known.into_iter().find(|k| *k == flag)
        };
        opens.push(all.filter_map(known).collect());
    }
    // The worker's is the one that asks for most.
    opens
        .into_iter()
        .max_by_key(BTreeSet::len)
        .context("never opened")
}

fn dont_cache() -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    let probe = tempfile::tempfile_in(ground.root())?;
    let flag = rustix::io::ReadWriteFlags::from_bits_retain(libc::RWF_DONTCACHE as u32);
    let vectors = [std::io::IoSlice::new(b"x")];
    let has = rustix::io::pwritev2(&probe, &vectors, 0, flag).is_ok();
    println!("    the kernel has it: {has}");
    if !has {
        let outcome = super::attempt("file", ground.root(), "--transfer dontcache")?;
        return outcome.refused(&[4], "RWF_DONTCACHE").map(drop);
    }
    let flags = format!("--size {} --transfer dontcache", RECORDS * 4096);
    let (main, calls) = calls_of("file", ground.root(), &flags)?;
    let of_threads: Vec<&Call> = calls.iter().filter(|c| c.thread != main).collect();
    let found = of_threads.iter().filter(|c| c.name == "pwritev2").count();
    anyhow::ensure!(found == RECORDS, "{found} calls of pwritev2");
    // 0x80, which strace has a name for since 6.14.
    let marked = |c: &&&Call| c.line.contains("RWF_DONTCACHE") || c.line.contains("0x80");
    let marked = of_threads.iter().filter(marked).count();
    anyhow::ensure!(marked == RECORDS, "{marked} calls have the flag");
    Ok(())
}

fn sqlite_fsync() -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    for journal in ["delete", "truncate", "persist", "wal", "memory", "off"] {
        // Whether a checkpoint can restart a shared WAL depends on the other thread.
        let shared = if journal == "wal" { "" } else { "--shared" };
        let syncs = |flags: &str| -> anyhow::Result<(usize, usize)> {
            let flags = format!(
                "--journal {journal} --transactions 20 --databases 2 --threads 2 {shared} \
                 --checkpoint every:7 --synchronous extra {flags}"
            );
            let (main, calls) = calls_of("sqlite", ground.root(), &flags)?;
            let found = counts(calls.iter().filter(|call| call.thread != main));
            let of = |name| found.get(name).copied().unwrap_or(0);
            Ok((of("fsync"), of("fdatasync")))
        };
        let (without, with) = (syncs("")?, syncs("--fsync")?);
        println!("    {journal}: (fsync, fdatasync) {without:?}, with --fsync {with:?}");
        anyhow::ensure!(without.1 >= 40, "{journal}: {without:?}");
        anyhow::ensure!(with.1 == 0, "{journal}: {} of fdatasync", with.1);
        anyhow::ensure!(with.0 == without.0 + without.1, "{journal}: another number");
    }
    Ok(())
}

fn sqlite_attached() -> anyhow::Result<()> {
    let ground = Fixture::new(Kind::Ext4)?;
    let synced = |synchronous: &str| -> anyhow::Result<BTreeSet<String>> {
        let flags = format!("--databases 3 --transactions 10 --synchronous {synchronous}");
        let (main, calls) = calls_of("sqlite", ground.root(), &flags)?;
        let sync = |call: &&Call| call.thread != main && call.name == "fdatasync";
        let file = |call: &Call| Some(call.line.split_once('<')?.1.split_once('>')?.0.to_owned());
        let files = calls.iter().filter(sync).filter_map(file);
        Ok(files.filter(|file| file.ends_with(".db")).collect())
    };
    let (full, off) = (synced("full")?, synced("off")?);
    println!("    full: {full:?}, off: {off:?}");
    anyhow::ensure!(full.len() == 3, "with full, {full:?} are synced");
    anyhow::ensure!(off.is_empty(), "with off, {off:?} are synced");
    Ok(())
}
