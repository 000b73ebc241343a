//! `iostep serve` and `iostep submit`, with results that the generator measured.

mod matrix;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use iostep_model::bench::Document;
use iostep_model::hex;
use iostep_serve::client::{Client, Fault};
use iostep_serve::upload::Upload;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{OLD, json, said};

#[allow(
    dead_code,
    reason = "of the server's own tests; some of it is asked for here"
)]
#[path = "../../../iostep-serve/src/fixture.rs"]
mod fixture;

/// A server as a process, which ends with the test.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(place: &Path) -> Server {
        Server::start_with(place, &[])
    }

    fn start_with(place: &Path, more: &[&str]) -> Server {
        let mut process = crate::iostep()
            .args([
                "serve",
                "--data",
                "data",
                "--listen",
                "127.0.0.1:0",
                "--json",
            ])
            .args(["--per-address", "1000000", "--per-installation", "1000000"])
            .args(more)
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        output.read_line(&mut line).expect("a line");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        let url = answer["url"].as_str().expect("a URL").to_owned();
        Server { process, url }
    }

    fn signal(&mut self, signal: Signal) -> std::process::ExitStatus {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, signal).expect("it is there");
        self.process.wait().expect("its end")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Most have ended by then.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn iostep(place: &TempDir, arguments: &[&str]) -> Output {
    crate::iostep()
        .args(arguments)
        .current_dir(place)
        .env("NO_COLOR", "1")
        .env("HOME", place.path())
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
}

/// Results of both generators, measured here.
fn measure(place: &TempDir) {
    let here = place.path().to_str().expect("UTF-8");
    let jobs: [&[&str]; 2] = [
        &[
            "bench",
            "file",
            here,
            "--size=1MiB",
            "--sync=fdatasync",
            "-o",
            "file.json",
        ],
        &[
            "bench",
            "sqlite",
            here,
            "--transactions=50",
            "--journal=wal",
            "-o",
            "sqlite.json",
        ],
    ];
    for job in jobs {
        let output = iostep(place, job);
        assert!(output.status.success(), "{}", said(&output));
    }
}

#[test]
fn bench_brings_its_result_and_keeps_it_where_the_server_is_away() {
    let place = tempfile::tempdir().expect("a directory");
    let bench = |more: &[&str]| {
        let job = ["bench", "file", ".", "--size=64KiB", "--json"];
        iostep(&place, &[&job[..], more].concat())
    };
    let mut server = Server::start(place.path());
    let output = bench(&["-o", "sent.json", "--submit", &server.url]);
    assert!(json(&output)["result"].is_object());
    let told = said(&output);
    assert!(told.starts_with("sent.json: kept as "), "{told}");
    assert!(told.contains("token that takes it back: "), "{told}");
    let again = iostep(&place, &["submit", "sent.json", "--to", &server.url]);
    let again = String::from_utf8_lossy(&again.stdout).into_owned();
    assert_eq!(again.replace("was there already", "kept"), told);

    // What makes no sense is said before anything is measured.
    for (more, word) in [
        (&["--submit", &server.url][..], "--output"),
        (&["-o", "no.json", "--submit", "ftp://x"], "ftp://x"),
    ] {
        let output = bench(more);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(word), "{}", said(&output));
        assert!(!place.path().join("no.json").exists());
    }

    assert!(server.signal(Signal::TERM).success());
    let output = bench(&["-o", "kept.json", "--submit", &server.url]);
    assert_eq!(output.status.code(), Some(1));
    let told = said(&output);
    assert!(told.contains("iostep submit kept.json --to "), "{told}");
    Document::read(&place.path().join("kept.json")).expect("a result");
    let output = bench(&["-o", "/dev/null", "--submit", &server.url]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("/dev/null keeps nothing"),
        "{}",
        said(&output)
    );
}

#[test]
fn what_was_measured_is_taken_read_back_and_decided_about() {
    let place = tempfile::tempdir().expect("a directory");
    measure(&place);
    let mut server = Server::start(place.path());
    let to = ["--to", &server.url];
    let submit = |more: &[&str]| iostep(&place, &[&["submit"], more, &to].concat());
    let kept = json(&submit(&["file.json", "sqlite.json", "--json"]));
    let kept = kept.as_array().expect("a list");
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|one| one["created"] == true), "{kept:?}");
    let again = json(&submit(&["file.json", "--json"]));
    assert_eq!(again[0]["created"], false);
    for field in ["id", "delete_token"] {
        assert_eq!(again[0][field], kept[0][field]);
    }

    let id = kept[1]["id"].as_str().expect("a name");
    let at_data = |command: &str, more: &[&str]| {
        let command = ["serve", command, "--data", "data", "--json"];
        json(&iostep(&place, &[&command, more].concat()))
    };
    let listed = at_data("list", &[]);
    assert_eq!(listed["results"][0]["id"], id);
    assert_eq!(
        listed["results"][0]["test"],
        "sqlite,journal=wal,transactions=50"
    );
    let newest = listed["results"][0]["number"].to_string();
    let before = at_data("list", &["--before", &newest]);
    assert_eq!(before["results"].as_array().map(Vec::len), Some(1));
    assert_eq!(before["results"][0]["id"], kept[0]["id"]);
    let shown = at_data("show", &[id]);
    let text = shown.to_string();
    assert!(
        !text.contains(place.path().to_str().expect("UTF-8")),
        "{text}"
    );
    let document = Document::parse(Path::new("shown"), text.as_bytes()).expect("a result");
    let own = Document::read(&place.path().join("sqlite.json")).expect("a result");
    assert_eq!(document.runs[0].latencies, own.runs[0].latencies);
    assert_eq!(document.runs[0].seconds, own.runs[0].seconds);

    at_data("quarantine", &[id, "--reason", "too good"]);
    assert_eq!(at_data("show", &[id])["submission"]["state"], "quarantined");
    at_data("delist", &[id, "--reason", "made by hand"]);
    let delisted = at_data("list", &["--state", "delisted"]);
    assert_eq!(delisted["results"].as_array().map(Vec::len), Some(1));
    let restored = at_data("restore", &[id]);
    assert_eq!(restored["state"], kept[1]["state"]);
    let exported = at_data("export", &["-o", "all.jsonl"]);
    assert_eq!(exported["results"], 2);
    let lines = std::fs::read_to_string(place.path().join("all.jsonl")).expect("a file");
    assert_eq!(lines.lines().count(), 2);
    at_data("backup", &["copy.db"]);
    let again = iostep(&place, &["serve", "backup", "--data", "data", "copy.db"]);
    assert_eq!(again.status.code(), Some(2));

    let token = kept[1]["delete_token"].as_str().expect("a token");
    json(&submit(&["--take-back", id, "--token", token, "--json"]));
    assert_eq!(
        at_data("list", &[])["results"].as_array().map(Vec::len),
        Some(1)
    );
    assert!(server.signal(Signal::TERM).success());
}

#[test]
fn what_cannot_be_taken_says_so_by_its_status() {
    let place = tempfile::tempdir().expect("a directory");
    measure(&place);
    let server = Server::start(place.path());
    let submit = |file: &str, to: &str| iostep(&place, &["submit", file, "--to", to]);
    let text = std::fs::read_to_string(place.path().join("file.json")).expect("a file");
    let mut forged: Value = serde_json::from_str(&text).expect("JSON");
    forged["result"]["runs"][0]["elapsed_ns"] = 1.into();
    std::fs::write(place.path().join("forged.json"), forged.to_string()).expect("a file");
    let output = submit("forged.json", &server.url);
    let error = said(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("elapsed_ns of its seconds are"), "{error}");
    assert_eq!(submit("missing.json", &server.url).status.code(), Some(2));
    assert_eq!(
        submit("file.json", "https://localhost").status.code(),
        Some(2)
    );
    assert_eq!(
        submit("file.json", "http://127.0.0.1:1").status.code(),
        Some(1)
    );
    let second = iostep(
        &place,
        &["serve", "--data", "data", "--listen", "127.0.0.1:0"],
    );
    let error = said(&second);
    assert_eq!(second.status.code(), Some(1), "{error}");
    assert!(error.contains("another server uses this store"), "{error}");
}

#[test]
fn a_killed_server_has_every_result_that_it_acknowledged() {
    let place = tempfile::tempdir().expect("a directory");
    measure(&place);
    let text = std::fs::read_to_string(place.path().join("sqlite.json")).expect("a file");
    let measured: Value = serde_json::from_str(&text).expect("JSON");
    let acknowledged = Mutex::new(Vec::new());
    // Another machine each time: nobody can tell how much memory one has.
    let upload = |client: &Client, number: u64| {
        let mut another = measured["result"].clone();
        another["environment"]["memory_bytes"] = (1_000_000 + number).into();
        match client.submit(another.to_string().as_bytes()) {
            Ok(accepted) => {
                let mut all = acknowledged.lock().expect("nobody died");
                all.push(accepted.id);
                true
            }
            Err(Fault::Unreachable { .. }) => false,
            Err(fault) => panic!("{fault}"),
        }
    };
    let upload = &upload;
    // So many kills, if the environment says so.
    let kills = std::env::var("IOSTEP_KILLS").map_or(5, |it| it.parse().expect("a number"));
    for round in 0..kills {
        let mut server = Server::start(place.path());
        let before = acknowledged.lock().expect("nobody died").len();
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let client = Client::new(&server.url, [thread + 1; 32]).expect("a URL");
                let first = round * 1_000_000 + u64::from(thread) * 100_000;
                scope.spawn(move || (first..).find(|&number| !upload(&client, number)));
            }
            // Somewhere within the uploads, in each round elsewhere.
            let enough = before + 5 + (7 * round as usize) % 50;
            while acknowledged.lock().expect("nobody died").len() < enough {
                std::thread::yield_now();
            }
            server.signal(Signal::KILL);
        });
    }
    let all = acknowledged.into_inner().expect("nobody died");
    assert!(all.len() as u64 >= 5 * kills);
    let listed = iostep(
        &place,
        &[
            "serve", "list", "--data", "data", "--json", "--limit", "1000000",
        ],
    );
    let listed = json(&listed);
    let kept: std::collections::BTreeSet<&str> = listed["results"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["id"].as_str())
        .collect();
    for id in &all {
        assert!(kept.contains(&id[..]), "{id} of {} is lost", all.len());
    }
    // And each is whole: its name is the hash of what is kept.
    let exported = ["serve", "export", "--data", "data", "-o", "all.jsonl"];
    assert!(iostep(&place, &exported).status.success());
    let text = std::fs::read_to_string(place.path().join("all.jsonl")).expect("lines");
    assert_eq!(text.lines().count(), kept.len());
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let upload = Upload::read(line["result"].to_string().as_bytes()).expect("a result");
        assert_eq!(line["submission"]["id"], hex::encode(&upload.id)[..]);
    }
}

/// Runs of a result that is sent to a server with a lake.
const RUNS: u64 = 2;

/// Rows of the lake's results.
fn rows_in_lake(place: &TempDir) -> u64 {
    let info = json(&iostep(place, &["fleet", "info", "lake", "--json"]));
    info["results"]["rows"].as_u64().expect("a number")
}

/// Sends a result that is valid, and each time another one. Gives its name.
fn submit_valid(client: &Client, number: u32) -> String {
    let share = 1.0 - f64::from(number) / 1e4;
    submit_document(client, &fixture::scaled(fixture::file(RUNS as u32), share))
}

fn submit_document(client: &Client, document: &Document) -> String {
    let text = serde_json::to_vec(document).expect("JSON");
    client.submit(&text).expect("it is accepted").id
}

/// Does something with a result, as the operator.
fn decide(place: &TempDir, arguments: &[&str]) {
    let (status, said) = operate(place, &[arguments, &["--data", "data"]].concat());
    assert_eq!(status, Some(0), "{said}");
}

/// What `iostep serve lake` says that it added, as JSON, by its exit status.
fn put(place: &TempDir, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let command = ["serve", "lake", "--json", "--data", "data"];
    let output = iostep(place, &[&command, arguments].concat());
    let added = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), added, said(&output))
}

#[test]
fn valid_results_are_once_in_the_lake_whatever_is_killed() {
    let place = tempfile::tempdir().expect("a directory");
    let server = Server::start(place.path());
    let client = Client::new(&server.url, [7; 32]).expect("a URL");
    let kills: u32 = std::env::var("IOSTEP_KILLS").map_or(5, |it| it.parse().expect("a number"));
    for round in 0..kills {
        for number in 0..3 {
            submit_valid(&client, 3 * round + number + 1);
        }
        let mut other = crate::iostep();
        let mut other = other
            .args(["serve", "lake", "--data", "data", "lake"])
            .current_dir(place.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        // From before it opens the store to after it has merged the files.
        std::thread::sleep(Duration::from_millis(u64::from(round * 7 % 120)));
        other.kill().expect("it can be");
        other.wait().expect("its end");
    }
    let doubted = submit_valid(&client, 0);
    decide(&place, &["quarantine", &doubted, "--reason", "x"]);
    drop(server);
    // Another server has a lake, and begins with it.
    let rows = 3 * u64::from(kills) * RUNS;
    let mut server = Server::start_with(place.path(), &["--lake", "lake"]);
    let began = Instant::now();
    while rows_in_lake(&place) < rows {
        let found = rows_in_lake(&place);
        assert!(began.elapsed() < crate::PATIENCE, "{found} of {rows}");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(server.signal(Signal::TERM).success());
    assert_eq!(rows_in_lake(&place), rows);
    let (status, added, said) = put(&place, &["lake"]);
    assert_eq!((status, &added["results"]), (Some(0), &0.into()), "{said}");
    decide(&place, &["restore", &doubted]);
    assert_eq!(put(&place, &["lake"]).1["results"], 1);
    assert_eq!(rows_in_lake(&place), rows + RUNS);
}

#[test]
fn a_store_fills_the_lake_that_it_knows_with_results_of_its_time() {
    let place = tempfile::tempdir().expect("a directory");
    let server = Server::start(place.path());
    let client = Client::new(&server.url, [7; 32]).expect("a URL");
    let first = submit_valid(&client, 0);
    submit_valid(&client, 1);
    // Two whose clocks were wrong.
    for start_wall_ns in [0, u64::MAX] {
        let mut result = fixture::file(RUNS as u32);
        result.environment.memory_bytes += start_wall_ns % 1000 + 1;
        result.runs[0].start_wall_ns = start_wall_ns;
        submit_document(&client, &result);
    }
    // They are told, and told again where another lake is filled.
    for (lake, anew) in [("lake", &[][..]), ("other", &["--anew"])] {
        let (status, added, said) = put(&place, &[&[lake][..], anew].concat());
        assert_eq!((status, &added["left"]), (Some(1), &2.into()), "{said}");
        assert_eq!(added["results"], 2);
        assert!(
            said.contains("its clock was wrong: it began on 1970-01-01"),
            "{said}"
        );
    }
    let (status, _, said) = put(&place, &["lake"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("the store fills another lake"), "{said}");
    assert_eq!(put(&place, &["lake", "--anew"]).1["results"], 0);
    let (status, _, said) = put(&place, &["mistyped"]);
    assert_ne!(status, Some(0));
    assert!(said.contains("mistyped: no lake"), "{said}");
    assert!(!place.path().join("mistyped").exists());
    // What is delisted afterwards stays there.
    decide(&place, &["delist", &first, "--reason", "x"]);
    assert_eq!(put(&place, &["lake"]).0, Some(0));
    assert_eq!(rows_in_lake(&place), 2 * RUNS);
}

/// What a command of the operator's comes to, and what it says of that.
fn operate(place: &TempDir, arguments: &[&str]) -> (Option<i32>, String) {
    let output = iostep(place, &[&["serve"], arguments].concat());
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn a_store_that_is_not_there_is_bad_usage_and_is_not_made() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(place.path().join("empty")).expect("a directory");
    let own = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(place.path().join("empty"), own).expect("changed");
    let id = "0".repeat(64);
    for data in ["missing", "empty", "missing/below"] {
        for command in [
            &["list"][..],
            &["show", &id],
            &["delist", &id, "--reason", "x"],
            &["restore", &id],
            &["export", "-o", "out.jsonl"],
            &["backup", "copy.db"],
            &["lake", "lake"],
        ] {
            let (status, said) = operate(&place, &[command, &["--data", data]].concat());
            assert_eq!(status, Some(2), "{command:?}: {said}");
            assert!(said.contains("there is no store of results"), "{said}");
        }
    }
    let there = std::fs::read_dir(place.path())
        .expect("a directory")
        .count();
    assert_eq!(there, 1);
}

#[test]
fn copies_go_where_nothing_is_and_not_among_the_stores_files() {
    let place = tempfile::tempdir().expect("a directory");
    measure(&place);
    let server = Server::start(place.path());
    let submitted = iostep(&place, &["submit", "file.json", "--to", &server.url]);
    assert!(submitted.status.success());
    let file = |name: &str| place.path().join(name);
    std::os::unix::fs::symlink("nowhere", file("link")).expect("a link");
    rustix::fs::mkfifoat(rustix::fs::CWD, file("fifo"), 0o600.into()).expect("a FIFO");
    std::fs::write(file("there"), "mine").expect("a file");
    for to in [
        "/dev/null",
        "link",
        "fifo",
        "there",
        "data",
        "data/store.db",
        "data/copy.db",
    ] {
        let (status, said) = operate(&place, &["backup", "--data", "data", to]);
        assert_eq!(status, Some(2), "{to}: {said}");
    }
    let (status, said) = operate(&place, &["backup", "--data", "data", "none/copy.db"]);
    assert_eq!(status, Some(2), "{said}");
    for to in ["data/store.db", "data/out.jsonl"] {
        let (status, said) = operate(&place, &["export", "--data", "data", "-o", to]);
        assert_eq!(status, Some(2), "{to}: {said}");
    }
    for to in ["data", "data/lake", "there", "fifo", "link/lake"] {
        let (status, said) = operate(&place, &["lake", "--data", "data", to]);
        assert!(matches!(status, Some(1 | 2)), "{to}: {said}");
    }
    let (status, said) = operate(&place, &["export", "--data", "data", "-o", "/dev/null"]);
    assert_eq!(status, Some(0), "{said}");
    let null = std::fs::metadata("/dev/null").expect("metadata");
    assert!(std::os::unix::fs::FileTypeExt::is_char_device(
        &null.file_type()
    ));
    let (status, said) = operate(&place, &["export", "--data", "data", "-o", "/dev/full"]);
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(std::fs::read(file("there")).expect("a file"), b"mine");
    assert!(!file("nowhere").exists());
    let listed = iostep(&place, &["serve", "list", "--data", "data", "--json"]);
    assert_eq!(json(&listed)["results"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_others_named_steers_no_terminal() {
    let place = tempfile::tempdir().expect("a directory");
    measure(&place);
    let server = Server::start(place.path());
    let text = std::fs::read_to_string(place.path().join("file.json")).expect("a file");
    let mut named: Value = serde_json::from_str(&text).expect("JSON");
    let name = "\u{1b}]0;owned\u{7}\u{202e}\r\nkept \u{9b}2J";
    named["result"]["environment"]["disks"] =
        serde_json::json!([{ "name": "vda", "vendor": name, "model": name, "firmware": name }]);
    named["result"]["environment"]["host"]["kernel"] = name.into();
    let client = Client::new(&server.url, [9; 32]).expect("a URL");
    let kept = client
        .submit(named.to_string().as_bytes())
        .expect("it is taken");
    for arguments in [
        &["list"][..],
        &["show", &kept.id],
        &["quarantine", &kept.id, "--reason", name],
        &["list", "--json"],
        &["show", &kept.id, "--json"],
        &["export", "-o", "-"],
    ] {
        let (status, said) = operate(&place, &[arguments, &["--data", "data"]].concat());
        assert_eq!(status, Some(0), "{said}");
        let steers = said
            .chars()
            .find(|&it| it != '\n' && !iostep_model::printable::is_printable(it));
        assert_eq!(steers, None, "{arguments:?}: {said:?}");
    }
    for reason in ["", "  ", &"x".repeat(501)] {
        let arguments = ["delist", &kept.id, "--data", "data", "--reason", reason];
        assert_eq!(operate(&place, &arguments).0, Some(2));
    }
}

#[test]
fn results_of_earlier_programs_are_taken_and_those_of_later_ones_are_refused_by_version() {
    let place = tempfile::tempdir().expect("a directory");
    let server = Server::start(place.path());
    let client = Client::new(&server.url, [9; 32]).expect("a URL");
    for name in ["file.json", "sqlite.json", "waldio.json"] {
        let path = Path::new(OLD).join(name);
        let to = ["submit", path.to_str().expect("UTF-8"), "--to", &server.url];
        let output = iostep(&place, &to);
        assert!(output.status.success(), "{name}: {}", said(&output));
        let mut later: Value =
            serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
        later["result"]["schema_version"] = 99.into();
        let Err(Fault::Refused { status, message }) = client.submit(later.to_string().as_bytes())
        else {
            panic!("it is refused");
        };
        assert_eq!(status, 422);
        assert!(message.contains("result schema 99"), "{message}");
    }
}
