//! MariaDB and its InnoDB.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, ensure};
use iostep_lab::Kind;
use iostep_model::FileType;

use super::server::{Server, as_nobody, ask, make_directory};
use super::{Told, requirements};
use crate::case::Case;
use crate::stage::Stage;

const TRANSACTIONS: u64 = 200;
/// `innodb_page_size`.
const PAGE_BYTES: u64 = 16_384;
/// Pages are written only when it is asked for.
const SETTINGS: [&str; 7] = [
    "--skip-networking",
    "--log-bin=binlog",
    "--sync-binlog=1",
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-log-file-size=8M",
    "--innodb-buffer-pool-dump-at-shutdown=0",
    "--innodb-stats-auto-recalc=0",
];
const FLUSH: &str = "set global innodb_max_dirty_pages_pct_lwm = 0; \
                     set global innodb_max_dirty_pages_pct = 0;";
const IS_DIRTY: &str = "select variable_value > 0 from information_schema.global_status \
                        where variable_name = 'innodb_buffer_pool_pages_dirty'";

pub(super) fn case() -> Case {
    Case::new(
        "what MariaDB writes is its redo log, its binlog, and its pages twice",
        requirements(&["mariadbd", "mariadb-install-db", "mariadb"]),
        inserts,
    )
}

/// A server that listens on a socket in its own directory.
struct Mariadb {
    _server: Server,
    data: PathBuf,
}

impl Mariadb {
    fn start(data: &Path) -> anyhow::Result<Mariadb> {
        make_directory(data)?;
        let directory = format!("--datadir={}", data.display());
        let made = as_nobody("mariadb-install-db", data)?
            .args(["--no-defaults", &directory, "--skip-test-db"])
            .args([
                "--auth-root-authentication-method=normal",
                "--skip-name-resolve",
            ])
            .arg(SETTINGS[4])
            .stdout(Stdio::null())
            .status()?;
        ensure!(made.success(), "mariadb-install-db: {made}");
        let mut server = as_nobody("mariadbd", data)?;
        let socket = format!("--socket={}/socket", data.display());
        server
            .args(["--no-defaults", &directory, &socket])
            .args(SETTINGS);
        Ok(Mariadb {
            _server: Server::start(&mut server, || ask(&client(data, "select 1")))?,
            data: data.to_owned(),
        })
    }

    /// Runs a statement.
    fn ask(&self, sql: &str) -> anyhow::Result<String> {
        ask(&client(&self.data, sql))
    }

    /// InnoDB's counters.
    fn counters(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        let status = self.ask("show global status like 'innodb%'")?;
        let rows = status.lines().filter_map(|line| line.split_once('\t'));
        Ok(rows
            .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
            .collect())
    }
}

/// Words that run statements.
fn client(data: &Path, sql: &str) -> Vec<String> {
    let socket = format!("--socket={}/socket", data.display());
    let words = ["mariadb", "--no-defaults", &socket, "-uroot", "-NBe", sql];
    words.map(str::to_owned).into()
}

fn inserts() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let mariadb = Mariadb::start(&stage.root().join("my"))?;
    let make = "create database t; create table t.t (id int primary key, v char(100));";
    mariadb.ask(&format!("{make} {FLUSH}"))?;
    while mariadb.ask(IS_DIRTY)? != "0" {
        sleep(Duration::from_millis(50));
    }
    stage.settle()?;
    let before = mariadb.counters()?;
    let mut rows = String::new();
    for row in 0..TRANSACTIONS {
        rows.push_str(&format!(
            "insert into t.t values ({row}, repeat('x', 100));"
        ));
    }
    let mut load = client(&mariadb.data, &rows);
    let again = client(&mariadb.data, IS_DIRTY);
    let until_clean = "\"$0\" \"$1\" \"$2\" \"$3\" \"$4\" \"$5\"; shift 5; \
                       while [ \"$(\"$@\")\" != 0 ]; do sleep 0.1; done";
    load.splice(0..0, ["sh", "-ec", until_clean].map(str::to_owned));
    load.extend(again);
    let told = Told::of(&stage, &load)?;
    let after = mariadb.counters()?;
    let counted = |name: &str| {
        let of =
            |counters: &BTreeMap<String, u64>| counters.get(name).copied().context("no counter");
        anyhow::Ok(of(&after)? - of(&before)?)
    };
    told.types(stage.root(), type_of)?.require("types", 99.9)?;
    let log = told.written(FileType::InnodbRedo)?;
    let tables = told.written(FileType::InnodbDatabase)?;
    let logged = counted("Innodb_os_log_written")?;
    let pages = counted("Innodb_pages_written")?;
    let doubled = counted("Innodb_dblwr_pages_written")?;
    println!("    redo log: {logged} bytes, {log} written");
    println!("    {pages} pages and {doubled} doubled, {tables} bytes written");
    ensure!(tables == (pages + doubled) * PAGE_BYTES, "{tables} bytes");
    ensure!(log >= logged, "{log} of {logged} bytes");
    let logs = [FileType::InnodbRedo, FileType::MysqlBinlog];
    for log in logs {
        let (syncs, _) = told.synced(log)?;
        ensure!(syncs >= TRANSACTIONS, "{syncs} syncs of the {}", log.name());
    }
    ensure!(told.tells_journaling_of_journal(&logs)? > 0);
    Ok(())
}

fn type_of(path: &str) -> FileType {
    let name = path.rsplit('/').next().unwrap_or(path);
    let begins = |with: &str| name.starts_with(with);
    let ends = |with: &str| name.ends_with(with);
    if begins("ib_logfile") {
        FileType::InnodbRedo
    } else if begins("ibdata") || ends(".ibd") {
        FileType::InnodbDatabase
    } else if begins("ibtmp") {
        FileType::InnodbTemporary
    } else if begins("undo") {
        FileType::InnodbUndo
    } else if begins("binlog.0") {
        FileType::MysqlBinlog
    } else if begins("aria_log.") {
        FileType::AriaLog
    } else if [".MAD", ".MAI", ".MYD", ".MYI"]
        .iter()
        .any(|with| ends(with))
    {
        FileType::MysqlDatabase
    } else {
        FileType::MysqlMetadata
    }
}
