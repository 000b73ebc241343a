//! `iostep fleet` as a user runs it.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use iostep_model::{fixture, store};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;

use crate::{OLD, json, name, names, text};

fn fleet(arguments: &[&str]) -> Output {
    crate::iostep()
        .arg("fleet")
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn trace(dir: &TempDir, requests: usize) -> PathBuf {
    let path = dir.path().join(format!("{requests}.iostep"));
    fs::create_dir(&path).expect("a directory");
    store::write(&path, &fixture::sqlite_on_ext4(requests)).expect("written");
    path
}

#[test]
fn traces_and_results_old_ones_too_are_added_once_and_counted() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    let trace = trace(&dir, 60);
    let (ext4, sqlite, file) = (
        format!("{OLD}/ext4"),
        format!("{OLD}/sqlite.json"),
        format!("{OLD}/file.json"),
    );
    let arguments = [
        "add",
        name(&trace),
        &ext4,
        &sqlite,
        &file,
        name(&lake),
        "--json",
    ];
    for new in [true, false] {
        let added = json(&fleet(&arguments));
        let added = added.as_array().expect("a list");
        assert_eq!(added.len(), 4);
        assert!(
            added.iter().all(|one| one["added"]["new"] == new),
            "{added:?}"
        );
    }
    let mode = fs::metadata(&lake).expect("a directory").permissions();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode);
    assert_eq!(mode & 0o777, 0o700);
    let output = fleet(&["add", &ext4, name(&lake)]);
    assert!(text(&output.stdout).contains("was there already"));
    json(&fleet(&["compact", name(&lake), "--json"]));
    let info = json(&fleet(&["info", name(&lake), "--json"]));
    assert_eq!(info["traces"]["rows"], 2);
    assert!(info["results"]["rows"].as_u64() >= Some(2));
    let added = json(&fleet(&arguments));
    let added = added.as_array().expect("a list");
    assert!(
        added.iter().all(|one| one["added"]["new"] == false),
        "{added:?}"
    );
}

#[test]
fn what_cannot_be_added_is_refused_by_name_and_changes_nothing() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    let broken = trace(&dir, 60);
    let segments = broken.join("segments.parquet");
    let bytes = fs::read(&segments).expect("read");
    fs::write(&segments, &bytes[..bytes.len() / 2]).expect("written");
    let letter = dir.path().join("letter.txt");
    fs::write(&letter, "dear").expect("written");
    for input in [
        name(&broken),
        name(&letter),
        "/nowhere",
        &format!("{OLD}/calls.trace"),
    ] {
        let output = fleet(&["add", input, name(&lake)]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{input}: {}",
            text(&output.stderr)
        );
        assert!(
            text(&output.stderr).contains(input),
            "{}",
            text(&output.stderr)
        );
    }
    if lake.exists() {
        let info = json(&fleet(&["info", name(&lake), "--json"]));
        assert_eq!(info["traces"]["rows"], 0);
        assert_eq!(info["segments"]["files"], 0);
    }
    let whole = trace(&dir, 61);
    let output = fleet(&["add", name(&whole), name(dir.path())]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "a directory of something else"
    );
    let output = fleet(&["compact", name(&lake), "--date", "2026-02-30"]);
    assert_eq!(output.status.code(), Some(2));
}

/// A lake with a trace, and beside it what stands for the engine: a script.
struct Asked {
    dir: TempDir,
    lake: PathBuf,
}

impl Asked {
    fn new() -> Asked {
        let dir = TempDir::new().expect("a directory");
        let lake = dir.path().join("lake");
        json(&fleet(&[
            "add",
            &format!("{OLD}/ext4"),
            name(&lake),
            "--json",
        ]));
        Asked { dir, lake }
    }

    /// `LAKE` among the arguments is the lake; the engine is a script of sh that keeps the request.
    fn run(&self, engine: &str, arguments: &[&str]) -> Output {
        self.command(engine, arguments)
            .output()
            .expect("the binary runs")
    }

    fn command(&self, engine: &str, arguments: &[&str]) -> Command {
        let program = self.dir.path().join("engine");
        let script = format!(
            "#!/bin/sh\ncat >{}/request\n{engine}\n",
            self.dir.path().display()
        );
        fs::write(&program, script).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&program, mode).expect("a mode");
        let is_lake = |argument: &&str| match *argument {
            "LAKE" => name(&self.lake).to_owned(),
            other => other.to_owned(),
        };
        let mut command = crate::iostep();
        command
            .arg("fleet")
            .args(arguments.iter().map(is_lake))
            .env("IOSTEP_FLEET_ENGINE", &program)
            .env("TMPDIR", self.dir.path())
            .current_dir(&self.dir);
        command
    }

    fn request(&self) -> serde_json::Value {
        let request = fs::read(self.dir.path().join("request")).expect("a request");
        serde_json::from_slice(&request).expect("JSON")
    }
}

const TWO_ROWS: &str = r#"echo '{"columns":["app","bytes","mean","joj_percent","p99_ns"]}'
    echo '["=cmd|x",4096,1.5,50.0,1500000]'
    printf '%s\n' '["\u001b[31mred",null,2.5,null,null]'
    echo '{"rows":2}'"#;

#[test]
fn an_answer_is_shown_in_every_form() {
    let asked = Asked::new();
    let sql = [
        "sql",
        "LAKE",
        "SELECT 1",
        "--memory",
        "64MiB",
        "--threads",
        "3",
    ];
    let output = asked.run(TWO_ROWS, &sql);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for part in ["app", "=cmd|x", "4 KiB", "1.5", "50", "1.50 ms", "[31mred"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "{shown}");
    let request = asked.request();
    assert_eq!(request["sql"], "SELECT 1");
    assert_eq!(request["memory_bytes"], 64 << 20);
    assert_eq!(request["threads"], 3);
    assert_eq!(
        request["lake"],
        name(&asked.lake.canonicalize().expect("a lake"))
    );
    let tables = request["tables"].as_object().expect("tables");
    assert_eq!(tables.len(), 5);
    let column = serde_json::json!({ "name": "trace_id", "type": "text" });
    assert_eq!(tables["segments"][0], column);

    let csv = asked.run(TWO_ROWS, &[&sql[..], &["--csv"]].concat());
    let expected = "app,bytes,mean,joj_percent,p99_ns\r\n'=cmd|x,4096,1.5,50.0,1500000\r\n";
    assert!(
        text(&csv.stdout).starts_with(expected),
        "{}",
        text(&csv.stdout)
    );
    let all = json(&asked.run(TWO_ROWS, &[&sql[..], &["--json"]].concat()));
    assert_eq!(all["rows"][0][1], 4096);
    assert_eq!(all["rows"][1][1], serde_json::Value::Null);
}

#[test]
fn a_query_may_begin_with_a_comment() {
    let asked = Asked::new();
    let query = "-- one\nSELECT 1";
    for sql in [["LAKE", query, "--json"], ["--json", "LAKE", query]] {
        json(&asked.run(TWO_ROWS, &[&["sql"], &sql[..]].concat()));
        assert_eq!(asked.request()["sql"], query);
    }
}

#[test]
fn questions_are_listed_and_asked_by_name() {
    let asked = Asked::new();
    let list = json(&asked.run("exit 1", &["ask", "--json"]));
    assert_eq!(list.as_array().expect("a list").len(), 10);
    let output = asked.run("exit 1", &["ask"]);
    assert!(
        text(&output.stdout).contains("fsync-by-part"),
        "{}",
        text(&output.stdout)
    );

    let output = asked.run(TWO_ROWS, &["ask", "3", "LAKE", "--html", "page.html"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = fs::read_to_string(asked.dir.path().join("page.html")).expect("a page");
    for part in [
        "How long fsync and fdatasync take",
        "=cmd|x",
        "--share:100%",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(asked.request()["sql"], list[2]["sql"]);
    let answer = json(&asked.run(TWO_ROWS, &["ask", "fsync-by-part", "LAKE", "--json"]));
    assert_eq!(answer["question"], "03-fsync-by-part");
    let none = r#"echo '{"columns":["app"]}'; echo '{"rows":0}'"#;
    let output = asked.run(none, &["ask", "1", "LAKE"]);
    assert!(text(&output.stdout).contains("nothing in the lake answers it"));

    for wrong in [
        &["ask", "joj", "LAKE"][..],
        &["ask", "1"],
        &["ask", "1", "/nowhere"],
    ] {
        let output = asked.run(TWO_ROWS, wrong);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{wrong:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn an_engine_ends_with_who_asked_it() {
    let asked = Asked::new();
    let mut command = asked.command("echo $$ >pid; exec sleep 600", &["sql", "LAKE", "SELECT 1"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let pid = asked.dir.path().join("pid");
    let engine = loop {
        match fs::read_to_string(&pid)
            .unwrap_or_default()
            .trim()
            .parse::<i32>()
        {
            Ok(engine) => break engine,
            Err(_) => std::thread::yield_now(),
        }
        assert!(child.try_wait().expect("a child").is_none(), "it ended");
    };
    // To this process alone, as kill(1) and systemd send it.
    kill_process(Pid::from_child(&child), Signal::TERM).expect("sent");
    let mut said = String::new();
    let mut stderr = child.stderr.take().expect("piped");
    stderr.read_to_string(&mut said).expect("UTF-8");
    let status = child.wait().expect("its end");
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    let engine = Pid::from_raw(engine).expect("a number");
    assert!(test_kill_process(engine).is_err(), "the engine lives");
    assert_eq!(
        names(asked.dir.path()),
        ["engine", "lake", "pid", "request"]
    );
}

#[test]
fn what_the_engine_says_and_what_it_leaves_out_is_told() {
    let asked = Asked::new();
    let columns = r#"echo '{"columns":["a"]}'"#;
    for (engine, status, expected) in [
        ("echo 'no table x' >&2; exit 2", 2, "no table x"),
        ("echo 'no memory' >&2; exit 1", 1, "no memory"),
        // More than a pipe holds.
        (
            "head -c 200000 /dev/zero | tr '\\0' x >&2; exit 2",
            2,
            "xxxx",
        ),
        ("exit 1", 1, "exit status: 1"),
        ("kill -KILL $$", 1, "signal: 9"),
        ("exit 0", 1, "not whole"),
        (columns, 1, "not whole"),
        (
            &format!("{columns}; echo '[1]'; echo '{{\"rows\":2}}'"),
            1,
            "not whole",
        ),
        (
            &format!("{columns}; echo '[1,2]'; echo '{{\"rows\":1}}'"),
            1,
            "not whole",
        ),
        (&format!("{columns}; echo '[1'"), 1, "not whole"),
        ("echo '[1]'; sleep 60", 1, "not whole"),
    ] {
        let output = asked.run(engine, &["sql", "LAKE", "SELECT 1"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{engine}: {said}");
        assert!(said.contains(expected), "{engine}: {said}");
        assert!(output.stdout.is_empty(), "{engine}");
    }
    assert_eq!(names(asked.dir.path()), ["engine", "lake", "request"]);

    let output = crate::iostep()
        .args(["fleet", "sql", name(&asked.lake), "SELECT 1"])
        .env("IOSTEP_FLEET_ENGINE", "/nowhere/engine")
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}
