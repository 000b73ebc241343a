//! What advise reads in the recording of a real program.

use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use std::path::{Path, PathBuf};

use super::{advice, ext4, needs, sqlite3};
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut needs = needs();
    needs.push(Requirement::Btf);
    vec![Case::new(
        "a recording of sqlite3 tells its journal mode, synchronous setting and transactions",
        needs,
        recorded,
    )]
}

/// Transactions of two tables, as many as this.
const TRANSACTIONS: usize = 9;

fn recorded() -> anyhow::Result<()> {
    for journal in ["delete", "truncate", "persist", "wal"] {
        for synchronous in ["full", "normal"] {
            let stage = ext4()?;
            let database = stage.root().join("app.db");
            let setup =
                format!("PRAGMA journal_mode={journal}; CREATE TABLE a(x); CREATE TABLE b(x);");
            sqlite3(stage.root(), &database, &setup)?;
            let settings =
                format!("PRAGMA journal_mode={journal}; PRAGMA synchronous={synchronous};");
            let each = "BEGIN; INSERT INTO a VALUES (1); INSERT INTO b VALUES (2); COMMIT;";
            let script = settings + &each.repeat(TRANSACTIONS);
            let trace = stage.facts_dir().join("app.trace");
            record(&trace, &database, &script)?;
            let flags = format!("--candidates waldio-full --trace {}", trace.display());
            let found = advice(&database, &flags)?;
            let habit = &found["place"]["recording"];
            println!("    {journal}, {synchronous}: {habit}");
            anyhow::ensure!(habit["transactions"] == TRANSACTIONS, "{habit}");
            anyhow::ensure!(habit["journal"] == journal, "{habit}");
            anyhow::ensure!(habit["synchronous"] == synchronous, "{habit}");
            // Two leaves; and page 1, whose change counter a journal's transaction raises.
            let pages = if journal == "wal" { 2 } else { 3 };
            anyhow::ensure!(habit["pages_per_transaction"] == pages, "{habit}");
            anyhow::ensure!(found["place"]["workload"]["tables"] == 2, "{found}");
            anyhow::ensure!(found["place"]["present"]["journal"] == journal);
            anyhow::ensure!(found["place"]["present"]["synchronous"] == synchronous);
        }
    }
    Ok(())
}

fn record(trace: &Path, database: &Path, script: &str) -> anyhow::Result<()> {
    let words = ["record", "-o"].map(PathBuf::from);
    let command = ["--", "sqlite3", "-batch"].map(PathBuf::from);
    let words = words
        .iter()
        .cloned()
        .chain([trace.to_owned()])
        .chain(command);
    let words = words.chain([database.to_owned(), script.into()]);
    iostep::run(words)?.success()?;
    Ok(())
}
