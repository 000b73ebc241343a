//! LMDB and RocksDB in a program.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::FileType;

use super::{Told, files_below, requirements};
use crate::case::Case;
use crate::stage::Stage;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/stores.c");
const COMMITS: u64 = 300;
const BLOCK_BYTES: u64 = 4096;

pub(super) fn cases() -> Vec<Case> {
    let mut needs = requirements(&["cc"]);
    needs.extend(["lmdb.h", "rocksdb/c.h"].map(Requirement::Header));
    vec![
        Case::new(
            "what LMDB writes is its database, and nothing is journaling of journal",
            needs.clone(),
            lmdb,
        ),
        Case::new(
            "what RocksDB writes is its log, its tables and its manifest",
            needs,
            rocksdb,
        ),
    ]
}

/// What a store counted itself, and what was traced of it in `/store`.
fn traced(stage: &Stage, store: &str) -> anyhow::Result<(BTreeMap<String, u64>, Told)> {
    let program = tempfile::tempdir()?;
    let path = program.path().join("stores");
    let mut compile = Command::new("cc");
    compile.args([
        SOURCE,
        "-O1",
        "-Wall",
        "-Werror",
        "-llmdb",
        "-lrocksdb",
        "-o",
    ]);
    ensure!(compile.arg(&path).status()?.success(), "cc failed");
    let directory = stage.root().join("store");
    std::fs::create_dir(&directory)?;
    stage.settle()?;
    let commits = COMMITS.to_string();
    let words = [path.as_path(), store.as_ref(), &directory, commits.as_ref()];
    let told = Told::of(stage, &words.map(|word| word.display().to_string()))?;
    let counts = told.text.lines().filter_map(|line| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    });
    Ok((counts.collect(), told))
}

fn lmdb() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let (counts, told) = traced(&stage, "lmdb")?;
    let score = told.types(stage.root(), |path| match path {
        "/store/data.mdb" => FileType::LmdbDatabase,
        _ => FileType::LmdbLock,
    });
    score?.require("types", 99.9)?;
    ensure!(counts.get("commits") == Some(&COMMITS), "{counts:?}");
    // A commit syncs its pages, and then its meta page by a write that is a sync.
    let (syncs, _) = told.synced(FileType::LmdbDatabase)?;
    ensure!(syncs == 2 * COMMITS, "{syncs} syncs");
    ensure!(told.tells_journaling_of_journal(&[])? == 0);
    Ok(())
}

fn rocksdb() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let (counts, told) = traced(&stage, "rocksdb")?;
    let type_of = |path: &str| match Path::new(path).extension().and_then(|e| e.to_str()) {
        Some("sst") => FileType::RocksdbDatabase,
        Some("log") => FileType::RocksdbWal,
        _ if path.ends_with("/LOCK") => FileType::RocksdbLock,
        _ => FileType::RocksdbMetadata,
    };
    told.types(stage.root(), type_of)?.require("types", 99.9)?;
    // A table is written once.
    let mut tables = 0;
    for path in files_below(stage.root())? {
        if path.extension().is_some_and(|extension| extension == "sst") {
            tables += path.metadata()?.len().next_multiple_of(BLOCK_BYTES);
        }
    }
    let written = told.written(FileType::RocksdbDatabase)?;
    ensure!(
        tables > 0 && written == tables,
        "{written} of {tables} bytes"
    );
    // The log is gone since its rows are in a table.
    let count = |name: &str| counts.get(name).copied().context("not counted");
    let (syncs, _) = told.synced(FileType::RocksdbWal)?;
    let (synced, logged) = (count("rocksdb.wal.synced")?, count("rocksdb.wal.bytes")?);
    let log = told.written(FileType::RocksdbWal)?;
    println!("    log: {logged} bytes, {log} written; {synced} syncs, {syncs} seen");
    // RocksDB does not count those of a log that it closes.
    ensure!(
        synced == COMMITS && syncs >= synced,
        "{syncs} of {synced} syncs"
    );
    ensure!(log >= logged, "{log} of {logged} bytes");
    ensure!(told.tells_journaling_of_journal(&[FileType::RocksdbWal])? > 0);
    Ok(())
}
