//! Waldio's log, beside what the device counts, strace sees and stock SQLite reads.

use std::path::PathBuf;

use anyhow::Context;
use iostep_kernel_tests::counters;
use iostep_lab::Kind;
use iostep_model::bench::{Document, Step, WaldioRun, Warning};
use iostep_model::manifest::Counters;

use super::database::sqlite3;
use super::system_calls::{Call, calls_of};
use super::{
    Fixture, TMPFS, attempt, count, ensure_removed, ground_needs, measure, only_run, work_files,
};
use crate::bad_input::TempMount;
use crate::case::Case;

/// A page, and room for the frames of the pages that a table grows by.
const COMMIT_BYTES: u64 = 4608;
const COMMITS: u64 = 400;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let tmpfs = |name: &str, body: fn() -> anyhow::Result<()>| Case::new(name, TMPFS, body);
    let mut cases = vec![
        Case::new(
            "a commit of waldio is one durable write with O_DIRECT",
            ground_needs(Kind::Ext4, &["strace"]),
            system_calls,
        ),
        Case::new(
            "stock SQLite reads what waldio wrote, in every sync mode and layout",
            ground_needs(Kind::Ext4, &["sqlite3"]),
            content,
        ),
        Case::new(
            "on btrfs waldio leaves the log to SQLite and says so",
            ground_needs(Kind::Btrfs, &[]),
            || stock(Kind::Btrfs),
        ),
        tmpfs(
            "in memory waldio leaves the log to SQLite and says so",
            memory,
        ),
        tmpfs("another SQLite needs a waldio of its own", other_library),
    ];
    cases.extend([Kind::Ext4, Kind::Xfs].map(|kind| {
        let kind_name = kind.name();
        let name = format!("a commit of waldio on {kind_name} is a page and a flush to the device");
        Case::new(name, ground_needs(kind, &[]), move || counted(kind))
    }));
    cases
}

fn said(document: &Document) -> anyhow::Result<&WaldioRun> {
    let waldio = only_run(document)?.waldio.as_ref();
    waldio.context("nothing of waldio in the result")
}

fn counter(document: &Document, name: &str) -> anyhow::Result<i64> {
    let counters = &said(document)?.counters;
    let found = counters.iter().find(|(known, _)| known == name);
    Ok(found.with_context(|| format!("{name}: {counters:?}"))?.1)
}

/// What a whole command costs the device, preparations and the checkpoint at the end included.
fn cost(ground: &Fixture, transactions: u64, layout: &str) -> anyhow::Result<Counters> {
    let settle =
        || -> anyhow::Result<()> { Ok(rustix::fs::syncfs(std::fs::File::open(ground.root())?)?) };
    settle()?;
    let before = counters::read(ground.disk.path())?;
    let flags = format!(
        "--journal waldio --waldio-layout {layout} --wal-file steady --checkpoint 3000 \
         --transactions {transactions}"
    );
    let document = measure("sqlite", ground.root(), &flags)?;
    let layouts = &said(&document)?.layouts;
    anyhow::ensure!(*layouts == [layout], "{layouts:?}");
    settle()?;
    let after = counters::read(ground.disk.path())?;
    Ok(counters::difference(before, after))
}

/// Twice as many commits cost as much more as these commits do: what else a command does is in
/// both.
fn counted(kind: Kind) -> anyhow::Result<()> {
    // What a filesystem does by itself meanwhile, as committing its log every few seconds.
    const OTHER_FLUSHES: u64 = 8;
    for (layout, bytes) in [("W", COMMIT_BYTES), ("T", COMMIT_BYTES), ("P", 5120)] {
        let ground = Fixture::with(
            kind,
            iostep_lab::tool(kind).smallest_bytes.max(256 << 20),
            "",
        )?;
        let once = cost(&ground, COMMITS, layout)?;
        let twice = cost(&ground, 2 * COMMITS, layout)?;
        let more = counters::difference(once, twice);
        println!(
            "    {layout}: {} B and {} flushes for {COMMITS} commits",
            more.write.bytes, more.flush.ios
        );
        let written = more.write.bytes / COMMITS;
        anyhow::ensure!(written <= bytes, "{layout}: {written} B a commit");
        let off_by = more.flush.ios.abs_diff(COMMITS);
        anyhow::ensure!(
            off_by <= OTHER_FLUSHES,
            "{layout}: {} flushes",
            more.flush.ios
        );
    }
    Ok(())
}

fn system_calls() -> anyhow::Result<()> {
    let ground = Fixture::with(Kind::Ext4, 256 << 20, "")?;
    let flags = "--journal waldio --wal-file steady --transactions 64";
    let (main, calls) = calls_of("sqlite", ground.root(), flags)?;
    let on_log = |call: &&Call| call.line.contains("sqlite-0-0.db-wal");
    let direct = calls.iter().filter(on_log).any(|call| {
        call.name == "openat" && call.line.contains("O_DIRECT") && call.line.contains("O_RDWR")
    });
    anyhow::ensure!(direct, "the log was never opened with O_DIRECT");
    // Preparations are the first thread's.
    let of_threads = || calls.iter().filter(|c| c.thread != main).filter(on_log);
    let (durable, other): (Vec<&Call>, Vec<&Call>) =
        of_threads().partition(|c| c.name == "pwritev2" && c.line.contains("RWF_DSYNC"));
    println!("    {} durable writes", durable.len());
    anyhow::ensure!(durable.len() == 64, "{} durable writes", durable.len());
    let other: Vec<&String> = other.iter().map(|call| &call.line).collect();
    anyhow::ensure!(other.is_empty(), "{other:?}");
    Ok(())
}

fn content() -> anyhow::Result<()> {
    for flags in [
        "",
        "--waldio-sync persistent",
        "--waldio-sync normal",
        "--waldio-sync group",
        "--waldio-layout T",
        "--waldio-layout P --page-size 1KiB",
        "--waldio-padding 8KiB --checkpoint every:7",
        "--threads 4 --shared --wal-file steady",
    ] {
        let ground = Fixture::with(Kind::Ext4, 256 << 20, "")?;
        let flags = format!("--journal waldio --transactions 60 --verify --keep {flags}");
        let document = measure("sqlite", ground.root(), &flags)?;
        let commits = counter(&document, "commits")?;
        let operations = only_run(&document)?.operations;
        anyhow::ensure!(
            commits == i64::try_from(operations)?,
            "{flags}: {commits} commits"
        );
        anyhow::ensure!(
            document.warnings.iter().all(|w| !is_stock(w)),
            "{flags}: stock"
        );
        let database = ground.root().join("iostep-bench/sqlite-0-0.db");
        let header = std::fs::read(&database)?;
        anyhow::ensure!(header[18..20] == [2, 2], "{flags}: {:?}", &header[18..20]);
        let answer = sqlite3(
            &database,
            "PRAGMA integrity_check; SELECT count(*) FROM t0;",
        )?;
        anyhow::ensure!(answer == format!("ok\n{operations}\n"), "{flags}: {answer}");
    }
    Ok(())
}

fn is_stock(warning: &Warning) -> bool {
    matches!(warning, Warning::StockLog { .. })
}

/// Fails unless the log of a run is SQLite's, with a reason in the result, and syncs as ever.
fn ensure_stock(target: &std::path::Path) -> anyhow::Result<()> {
    let flags = "--journal waldio --transactions 20 --verify";
    let document = measure("sqlite", target, flags)?;
    let waldio = said(&document)?;
    println!("    {:?}", waldio.reasons);
    anyhow::ensure!(waldio.layouts == ["stock"], "{:?}", waldio.layouts);
    anyhow::ensure!(waldio.reasons.len() == 1, "{:?}", waldio.reasons);
    let told = document.warnings.iter().filter(|w| is_stock(w)).count();
    anyhow::ensure!(told == 1, "{:?}", document.warnings);
    let syncs = count(only_run(&document)?, Step::Sync);
    anyhow::ensure!(syncs >= 20, "{syncs} syncs");
    let text = attempt("sqlite", target, flags)?.success()?;
    let reason = &waldio.reasons[0];
    anyhow::ensure!(text.stdout.contains(reason.as_str()), "{}", text.stdout);
    ensure_removed(target)
}

fn stock(kind: Kind) -> anyhow::Result<()> {
    let ground = Fixture::with(
        kind,
        iostep_lab::tool(kind).smallest_bytes.max(256 << 20),
        "",
    )?;
    ensure_stock(ground.root())
}

fn memory() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    ensure_stock(place.path())
}

fn other_library() -> anyhow::Result<()> {
    let place = TempMount::new("tmpfs", "")?;
    let flags = "--journal waldio --sqlite-lib libsqlite3.so.0";
    attempt("sqlite", place.path(), flags)?.refused(&[2], "--waldio-lib")?;
    let left: Vec<PathBuf> = work_files(place.path());
    anyhow::ensure!(left.is_empty(), "{left:?}");
    Ok(())
}
