//! A server of results whose disk is full.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use iostep_kernel_tests::iostep::{self, Outcome, Running, binary};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::case::Case;
use crate::stage::{self, Stage};

/// A result that every server takes.
const RESULT: &str = include_str!("../../../../crates/iostep/tests/old-0.1/file.json");
/// Results that are sent at once.
const TOGETHER: usize = 20;
/// So many more than there is room for once the disk is full.
const MOST: usize = 4000;
/// How long a server may take to begin.
const PATIENCE: Duration = Duration::from_secs(120);

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let kinds: [(Kind, &'static [&'static str]); 3] = [
        // Nothing is kept for root.
        (Kind::Ext4, &["-m", "0"]),
        (Kind::Xfs, &[]),
        (Kind::Btrfs, &[]),
    ];
    let case = |(kind, mkfs): (Kind, &'static [&'static str])| {
        let mut needs = stage::requirements(kind);
        needs.push(Requirement::Program("sqlite3"));
        let name = "a server without room keeps what it has, is read, and goes on";
        Case::new(name, needs, move || without_room(kind, mkfs)).about(kind.name())
    };
    kinds.into_iter().map(case).collect()
}

/// A server that ends with this.
struct Server {
    running: Running,
    address: String,
}

impl Server {
    fn spawn(data: &Path) -> anyhow::Result<Running> {
        let mut command = Command::new(binary()?);
        command.arg("serve").arg("--data").arg(data);
        command.args(["--listen", "127.0.0.1:0", "--bytes-per-day", "1TiB"]);
        for limit in [
            "--per-address",
            "--per-installation",
            "--questions-per-address",
        ] {
            command.args([limit, "4000000000"]);
        }
        Running::spawn(command)
    }

    fn start(data: &Path) -> anyhow::Result<Server> {
        let running = Server::spawn(data)?;
        let began = Instant::now();
        loop {
            let said = running.said()?;
            let address = said
                .lines()
                .find_map(|it| it.split_once(" listening at http://"));
            if let Some((_, address)) = address {
                let address = address.to_owned();
                return Ok(Server { running, address });
            }
            ensure!(began.elapsed() < PATIENCE, "it does not begin: {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Status and text of a page.
    fn get(&self, path: &str) -> anyhow::Result<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address)?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no head")?;
        let status = head.split(' ').nth(1).context("no status")?;
        Ok((status.parse()?, body.to_owned()))
    }

    /// Fails unless all of these are there, and pages of them.
    fn has(&self, kept: &BTreeSet<String>) -> anyhow::Result<()> {
        for id in kept {
            let (status, _) = self.get(&format!("/api/v1/results/{id}"))?;
            ensure!(status == 200, "{id}: {status}: {}", self.last_words()?);
        }
        for path in [
            "/healthz",
            "/",
            "/search?q=file",
            "/api/v1/results",
            "/metrics",
        ] {
            let (status, text) = self.get(path)?;
            ensure!(
                status == 200,
                "{path}: {status}: {text}: {}",
                self.last_words()?
            );
        }
        Ok(())
    }

    /// What its log ends with.
    fn last_words(&self) -> anyhow::Result<String> {
        Ok(self
            .running
            .said()?
            .lines()
            .last()
            .unwrap_or_default()
            .into())
    }
}

/// Results, of which no two are the same.
struct Results {
    place: TempDir,
    made: usize,
}

impl Results {
    fn next(&mut self) -> anyhow::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for _ in 0..TOGETHER {
            self.made += 1;
            let mut result: Value = serde_json::from_str(RESULT)?;
            result["result"]["environment"]["memory_bytes"] = (8_000_000_000 + self.made).into();
            let path = self.place.path().join(format!("{}.json", self.made));
            std::fs::write(&path, result.to_string())?;
            files.push(path);
        }
        Ok(files)
    }

    /// Sends some more, and notes those that the server says it has kept.
    fn send(&mut self, server: &Server, kept: &mut BTreeSet<String>) -> anyhow::Result<Outcome> {
        let mut words = vec![PathBuf::from("submit"), "--json".into(), "--to".into()];
        words.push(format!("http://{}", server.address).into());
        words.extend(["--key".into(), self.place.path().join("key")]);
        words.extend(self.next()?);
        let outcome = iostep::run(words)?;
        let accepted: Vec<Value> = serde_json::from_str(&outcome.stdout)?;
        for one in accepted {
            kept.insert(one["id"].as_str().context("no ID")?.to_owned());
        }
        Ok(outcome)
    }
}

/// Takes all room that there is.
fn fill(path: &Path) -> anyhow::Result<()> {
    let file = std::fs::File::create(path)?;
    let (mut at, mut bytes) = (0, 1 << 30);
    while bytes >= 4096 {
        match fallocate(&file, FallocateFlags::empty(), at, bytes) {
            Ok(()) => at += bytes,
            Err(Errno::NOSPC) => bytes /= 2,
            Err(errno) => bail!("{}: {errno}", path.display()),
        }
    }
    Ok(file.sync_all()?)
}

fn without_room(kind: Kind, mkfs: &[&str]) -> anyhow::Result<()> {
    let stage = Stage::new(kind, mkfs, "")?;
    let (data, filler) = (stage.root().join("data"), stage.root().join("filler"));
    let mut results = Results {
        place: tempfile::tempdir()?,
        made: 0,
    };
    let mut kept = BTreeSet::new();
    let server = Server::start(&data)?;
    results.send(&server, &mut kept)?.success()?;
    ensure!(kept.len() == TOGETHER, "{} are kept", kept.len());
    fill(&filler)?;
    let refused = loop {
        let outcome = results.send(&server, &mut kept)?;
        if outcome.code != Some(0) {
            break outcome.status(1)?;
        }
        ensure!(results.made < MOST, "there is always room");
    };
    println!(
        "    {} kept, then: {}",
        kept.len(),
        refused.stderr.trim_end()
    );
    let why = "the server has no room left; nothing was kept, try again later";
    ensure!(refused.stderr.contains(why), "{}", refused.stderr);
    server.has(&kept)?;
    // As after a crash, while there is still no room.
    server.running.signal(Signal::KILL)?;
    drop(server);
    let server = match kind {
        // The index of SQLite's log is made anew, and there is no room for that.
        Kind::Btrfs => {
            let error = "no room is left for the store; make room on its filesystem";
            Server::spawn(&data)?.finish()?.refused(&[1], error)?;
            std::fs::remove_file(&filler)?;
            Server::start(&data)?
        }
        _ => {
            let server = Server::start(&data)?;
            server.has(&kept)?;
            results.send(&server, &mut kept)?;
            server.has(&kept)?;
            std::fs::remove_file(&filler)?;
            server
        }
    };
    let before = kept.len();
    results.send(&server, &mut kept)?.success()?;
    ensure!(
        kept.len() == before + TOGETHER,
        "with room again: {}",
        kept.len()
    );
    server.has(&kept)?;
    server.running.signal(Signal::TERM)?;
    server.running.finish()?.success()?;
    is_whole(&data, &kept)
}

/// The store has these and nothing else, as SQLite itself finds.
fn is_whole(data: &Path, kept: &BTreeSet<String>) -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let copy = place.path().join("copy.db");
    let words = ["serve", "backup", "--data"].map(PathBuf::from).into_iter();
    iostep::run(words.chain([data.to_owned(), copy.clone()]))?.success()?;
    let sql = "PRAGMA integrity_check; SELECT lower(hex(id)) FROM submission ORDER BY 1";
    let found = Command::new("sqlite3").arg(&copy).arg(sql).output()?;
    let found = String::from_utf8(found.stdout)?;
    let (check, ids) = found.split_once('\n').context("no answer")?;
    ensure!(check == "ok", "{found}");
    let ids: BTreeSet<String> = ids.lines().map(str::to_owned).collect();
    ensure!(ids == *kept, "{} of {} are there", ids.len(), kept.len());
    Ok(())
}
