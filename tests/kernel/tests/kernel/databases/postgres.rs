//! PostgreSQL under pgbench.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, ensure};
use iostep_lab::Kind;
use iostep_model::FileType;

use super::server::{Server, as_nobody, ask, make_directory};
use super::{Told, requirements};
use crate::case::Case;
use crate::stage::Stage;

const TRANSACTIONS: u64 = 200;
/// `BLCKSZ`.
const PAGE_BYTES: u64 = 8192;
/// A checkpoint comes only when it is asked for, and writes each page once. Segments of the log are
/// made anew.
const SETTINGS: [&str; 7] = [
    "listen_addresses=",
    "log_checkpoints=on",
    "autovacuum=off",
    "bgwriter_lru_maxpages=0",
    "checkpoint_timeout=1h",
    "max_wal_size=1GB",
    "wal_recycle=off",
];

pub(super) fn case() -> Case {
    Case::new(
        "what PostgreSQL writes under pgbench is its log and its tables",
        requirements(&["initdb", "postgres", "pgbench", "psql"]),
        under_pgbench,
    )
}

/// A server that listens on a socket in its own directory.
struct Postgres {
    server: Server,
    data: PathBuf,
}

impl Postgres {
    fn start(data: &Path) -> anyhow::Result<Postgres> {
        make_directory(data)?;
        // Small segments of the log, so that some are made.
        let made = as_nobody("initdb", data)?
            .args(["-A", "trust", "-U", "postgres", "--no-locale"])
            .args(["--wal-segsize=1", "-D"])
            .arg(data)
            .stdout(Stdio::null())
            .status()?;
        ensure!(made.success(), "initdb: {made}");
        let mut postgres = as_nobody("postgres", data)?;
        postgres.arg("-D").arg(data);
        for setting in SETTINGS {
            postgres.args(["-c", setting]);
        }
        let socket = format!("unix_socket_directories={}", data.display());
        postgres.args(["-c", &socket]);
        Ok(Postgres {
            server: Server::start(&mut postgres, || ask(&client(data, &query("select 1"))))?,
            data: data.to_owned(),
        })
    }

    fn ask(&self, sql: &str) -> anyhow::Result<String> {
        ask(&client(&self.data, &query(sql)))
    }

    /// Bytes that the log has had so far.
    fn logged(&self) -> anyhow::Result<u64> {
        let bytes = self.ask("select pg_current_wal_insert_lsn() - '0/0'")?;
        bytes.parse().with_context(|| bytes.clone())
    }

    /// Pages that checkpoints have written so far.
    fn checkpointed(&self) -> anyhow::Result<u64> {
        let said = self.server.said()?;
        let counts = said.lines().filter_map(|line| {
            let (_, rest) = line.split_once("checkpoint complete: wrote ")?;
            rest.split(' ').next()?.parse::<u64>().ok()
        });
        Ok(counts.sum())
    }
}

fn query(sql: &str) -> String {
    format!("psql -XAtc \"{sql}\"")
}

/// Words that run commands of a client.
fn client(data: &Path, script: &str) -> Vec<String> {
    let host = format!("PGHOST={}", data.display());
    let words = ["env", &host, "PGUSER=postgres", "PGDATABASE=postgres"];
    let words = words.into_iter().chain(["sh", "-ec", script]);
    words.map(str::to_owned).collect()
}

fn under_pgbench() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let postgres = Postgres::start(&stage.root().join("pg"))?;
    // Maps of free space are made without a checkpoint: at first.
    let script = format!("pgbench -qi 2>&1; pgbench -nt {TRANSACTIONS}");
    ask(&client(&postgres.data, &script))?;
    postgres.ask("checkpoint")?;
    stage.settle()?;
    let (pages, logged) = (postgres.checkpointed()?, postgres.logged()?);
    let script = format!("pgbench -nt {TRANSACTIONS}; psql -Xqc checkpoint");
    let told = Told::of(&stage, &client(&postgres.data, &script))?;
    let logged = postgres.logged()? - logged;
    let pages = postgres.checkpointed()? - pages;
    told.types(stage.root(), type_of)?.require("types", 99.9)?;

    let (syncs, _) = told.synced(FileType::PostgresWal)?;
    let log = told.written(FileType::PostgresWal)?;
    let tables = told.written(FileType::PostgresDatabase)?;
    let states = told.written_below(&["/pg/pg_xact/", "/pg/pg_subtrans/", "/pg/pg_multixact/"])?;
    println!("    log: {logged} bytes, {log} written, {syncs} syncs");
    println!("    {pages} pages: {tables} bytes of tables, {states} of transactions' states");
    ensure!(tables + states == pages * PAGE_BYTES && tables > states);
    ensure!(syncs >= TRANSACTIONS, "{syncs} syncs");
    ensure!(log >= logged, "{log} of {logged} bytes");
    ensure!(told.tells_journaling_of_journal(&[FileType::PostgresWal])? > 0);
    Ok(())
}

/// By the manual's chapter on the layout of the database's files.
fn type_of(path: &str) -> FileType {
    let path = path.strip_prefix("/pg/").unwrap_or(path);
    let (top, rest) = path.split_once('/').unwrap_or(("", path));
    let name = rest.rsplit('/').next().unwrap_or(rest);
    let is_number = name.starts_with(|digit: char| digit.is_ascii_digit());
    match top {
        "pg_wal" if is_number => FileType::PostgresWal,
        "base" | "global" if is_number => FileType::PostgresDatabase,
        "" if name == "postmaster.pid" => FileType::PostgresShm,
        _ => FileType::PostgresMetadata,
    }
}
