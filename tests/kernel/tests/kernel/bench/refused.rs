//! What makes no sense is refused before anything is made.

use std::path::Path;

use super::{attempt, measure, work_files};
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = BAD
        .iter()
        .map(|(workload, flags, object)| {
            let name = format!("{workload} {flags} is refused");
            Case::new(name, [], || bad_flags(workload, flags, object))
        })
        .collect();
    cases.push(Case::new(
        "a target that is no place is refused",
        [],
        bad_targets,
    ));
    cases.push(Case::new(
        "fewer transactions than threads are done by each thread",
        [],
        fewer_transactions_than_threads,
    ));
    cases
}

/// Workload, flags, and what the error must name.
const BAD: &[(&str, &str, &str)] = &[
    ("file", "--access 5", "5"),
    ("file", "--access rewrite", "random-write"),
    ("file", "--sync 9", "9"),
    ("file", "--sync 11", "fdatasync"),
    ("file", "--sync fbarrier", "fbarrier"),
    ("file", "--transfer directly", "direct"),
    ("file", "--engine libaio", "uring"),
    ("file", "--record 0", "record"),
    ("file", "--size 0", "size"),
    ("file", "--size -1", "-1"),
    ("file", "--size 99999999999999999999", "--size"),
    (
        "file",
        "--size 1000KiB --record 300KiB",
        "921600 or 1228800",
    ),
    ("file", "--size 1MiB --threads 3 --shared", "--size"),
    ("file", "--threads 0", "0"),
    ("file", "--threads 1025", "1025"),
    ("file", "--size 8192TiB --threads 1024", "--size"),
    ("file", "--sync-every 0", "0"),
    ("file", "--depth 0 --engine uring", "depth"),
    ("file", "--depth 2", "uring"),
    ("file", "--access random-write --overlap 101", "101"),
    ("file", "--access write --overlap 50", "overlap"),
    ("file", "--access random-read --overlap nan", "nan"),
    ("file", "--access read --sync fsync", "sync"),
    ("file", "--sync msync", "mmap"),
    ("file", "--transfer mmap --sync osync", "msync"),
    ("file", "--transfer mmap --access append", "append"),
    ("file", "--transfer mmap --engine uring", "psync"),
    (
        "file",
        "--transfer direct --sync sync-file-range",
        "fdatasync",
    ),
    ("file", "--payload constant --verify", "--verify"),
    ("file", "--payload constant:256", "256"),
    ("file", "--polled", "--transfer direct"),
    ("file", "--atomic", "--transfer direct"),
    ("file", "--rate 0", "0"),
    ("file", "--time 0", "--time"),
    ("file", "--cpus 8000", "CPU 8000"),
    ("file", "--cpus 9-1", "9-1"),
    ("file", "--repeat 0", "0"),
    ("file", "--until-spread -3", "-3"),
    ("file", "--json --csv", "--csv"),
    ("sqlite", "--journal walrus", "wal"),
    ("sqlite", "--synchronous 7", "full"),
    ("sqlite", "--operation upsert", "update"),
    ("sqlite", "--transactions 0", "0"),
    ("sqlite", "--tables 0", "tables"),
    ("sqlite", "--databases 0", "databases"),
    ("sqlite", "--databases 4000000000", "databases"),
    ("sqlite", "--tables 4000000000", "tables"),
    ("sqlite", "--statements 0", "statements"),
    (
        "sqlite",
        "--operation delete --rows 2 --statements 3 --time 1",
        "--rows",
    ),
    ("sqlite", "--record 4000000000", "record"),
    ("sqlite", "--page-size 1000", "page"),
    ("sqlite", "--mix insert=0 --operation mix", "0"),
    ("sqlite", "--threads 2000", "2000"),
    ("sqlite", "--sqlite-lib /no/such/lib.so", "/no/such/lib.so"),
    ("sqlite", "--sqlite-lib /bin/sh", "/bin/sh"),
];

fn bad_flags(workload: &str, flags: &str, object: &str) -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let outcome = attempt(workload, place.path(), flags)?;
    println!("    {:?}: {}", outcome.code, outcome.stderr.trim_end());
    // A library that is none is the machine's lack, too.
    let known = matches!(outcome.code, Some(2 | 4));
    anyhow::ensure!(known, "status {:?}: {}", outcome.code, outcome.stderr);
    let error = &outcome.stderr;
    anyhow::ensure!(!error.contains("panicked"), "{error}");
    anyhow::ensure!(error.contains(object), "{object} is not named: {error}");
    anyhow::ensure!(outcome.stdout.is_empty(), "printed: {}", outcome.stdout);
    let left = std::fs::read_dir(place.path())?.count();
    anyhow::ensure!(left == 0, "{:?} are left", work_files(place.path()));
    Ok(())
}

fn bad_targets() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let file = place.path().join("file");
    std::fs::write(&file, "x")?;
    for workload in ["file", "sqlite"] {
        for target in [
            file.as_path(),
            Path::new("/no/such/path"),
            Path::new("/dev/null"),
        ] {
            let name = target.to_string_lossy();
            attempt(workload, target, "--destroy-data")
                .and_then(|outcome| match workload {
                    "sqlite" => attempt(workload, target, ""),
                    _ => Ok(outcome),
                })?
                .refused(&[1, 2], &name)?;
        }
    }
    anyhow::ensure!(std::fs::read(&file)? == b"x", "the file changed");
    Ok(())
}

fn fewer_transactions_than_threads() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let flags = "--transactions 1 --threads 4 --journal memory --synchronous off";
    let document = measure("sqlite", place.path(), flags)?;
    let run = &document.runs[0];
    anyhow::ensure!(run.operations == 4, "{} transactions", run.operations);
    let each: Vec<u64> = run.threads.iter().map(|thread| thread.operations).collect();
    anyhow::ensure!(each == [1; 4], "{each:?}");
    Ok(())
}
