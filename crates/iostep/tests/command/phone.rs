//! `iostep phone`, with adb's own client and a server of adb that the test is: the phone is a directory
//! of this machine.

mod server;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use iostep_model::bench::Document;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use server::Phone;
use tempfile::TempDir;

use crate::{OLD, PATIENCE, said};

const IOSTEP: &str = env!("CARGO_BIN_EXE_iostep");

/// A desk with a phone.
struct Desk {
    place: TempDir,
    phone: Arc<Phone>,
    port: u16,
}

impl Desk {
    /// With a phone that is like this machine, but for what it says of itself.
    fn new() -> Desk {
        Desk::with(true)
    }

    fn with(is_there: bool) -> Desk {
        let place = tempfile::tempdir().expect("a directory");
        let programs = place.path().join("programs");
        fs::create_dir(&programs).expect("a directory");
        fs::create_dir(place.path().join("phone")).expect("a directory");
        let phone = Arc::new(Phone {
            programs,
            is_there,
            pushed: Mutex::new(Vec::new()),
        });
        let port = server::start(Arc::clone(&phone));
        let desk = Desk { place, phone, port };
        desk.program("id", "echo 2000");
        desk.program("su", "exit 1");
        desk.program(
            "getprop",
            "case $1 in
             ro.product.manufacturer) echo Maker ;;
             ro.product.model) echo 'Model 7' ;;
             ro.build.version.release) echo 16 ;;
             esac",
        );
        desk
    }

    /// A program of the phone's.
    fn program(&self, name: &str, script: &str) {
        script_at(&self.phone.programs.join(name), script);
    }

    /// An iostep that lies on the phone.
    fn iostep_there(&self, script: &str) {
        fs::create_dir(self.there()).expect("a directory");
        let script = format!("[ $1 = --version ] && echo iostep 9.8 && exit\n{script}");
        script_at(&self.there().join("iostep"), &script);
    }

    /// A way to be root, as Magisk has it.
    fn allow_root(&self) {
        self.program("id", "echo ${ROOT:-2000}");
        self.program("su", "[ \"$1\" = -c ] && ROOT=0 exec sh -c \"$2\"");
        self.program("chown", "exit 0");
    }

    fn there(&self) -> PathBuf {
        self.place.path().join("phone/iostep")
    }

    fn here(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(IOSTEP);
        command
            .arg("phone")
            .args(["--directory", self.there().to_str().expect("UTF-8")])
            .args(arguments)
            .current_dir(&self.place)
            .env("ANDROID_ADB_SERVER_PORT", self.port.to_string())
            .env("HOME", self.place.path())
            .env("NO_COLOR", "1")
            .env_remove("ANDROID_SERIAL")
            .env_remove("ADB_SERVER_SOCKET")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output();
        output.expect("the program runs")
    }

    /// What is left on the phone beside the program.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.there()).into_iter().flatten();
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into()).collect();
        names.retain(|name| name != "iostep");
        names
    }
}

fn script_at(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_phone_says_what_it_can() {
    let desk = Desk::new();
    let json: Value =
        serde_json::from_str(&succeeded(&desk.run(&["status", "--json"]))).expect("JSON");
    assert_eq!(json["manufacturer"], "Maker");
    assert_eq!(json["model"], "Model 7");
    assert_eq!(json["android"], "16");
    assert_eq!(json["machine"], std::env::consts::ARCH);
    assert_eq!(json["root"], Value::Null);
    assert_eq!(json["program"], Value::Null);
    assert_eq!(json["shell_uid"], 2000);
    let has_btf = Path::new("/sys/kernel/btf/vmlinux").exists();
    assert_eq!(json["has_btf"], has_btf);
    let release = rustix::system::uname();
    assert_eq!(json["kernel"], release.release().to_str().expect("ASCII"));

    desk.allow_root();
    desk.iostep_there("");
    let text = succeeded(&desk.run(&["-s", "FAKE", "status"]));
    for line in ["Maker Model 7", "by su -c", "iostep 9.8"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let json: Value =
        serde_json::from_str(&succeeded(&desk.run(&["status", "--json"]))).expect("JSON");
    assert!(
        json["free_bytes"].as_u64().is_some_and(|free| free > 0),
        "{json}"
    );
    assert_eq!(json["root"], "su_c");
}

#[test]
fn bench_runs_there_and_its_result_is_fetched() {
    let desk = Desk::new();
    let data = desk.here("data");
    fs::create_dir(&data).expect("a directory");
    let data = data.to_str().expect("UTF-8");
    let bench = [
        "bench",
        "-o",
        "r.json",
        "--",
        "sqlite",
        data,
        "--transactions",
        "20",
    ];
    let none = desk.run(&bench);
    assert_eq!(none.status.code(), Some(2), "{}", said(&none));
    assert!(
        said(&none).contains("name one with --program"),
        "{}",
        said(&none)
    );

    let program = ["--program", IOSTEP];
    let output = desk.run(&[&program[..], &bench, &["--repeat", "2"]].concat());
    let text = succeeded(&output);
    assert!(text.contains("transaction"), "{text}");
    assert!(
        said(&output).contains("r.json was fetched from Maker Model 7"),
        "{}",
        said(&output)
    );
    let result = fs::read(desk.here("r.json")).expect("a result");
    let document = Document::parse(Path::new("r.json"), &result).expect("a result of bench");
    assert_eq!(document.runs.len(), 2);
    assert_eq!(desk.left(), [""; 0]);
    let pushed = desk.phone.pushed.lock().expect("no panic").clone();
    let part = desk.there().join("iostep.part");
    assert_eq!(pushed, [part.to_str().expect("UTF-8")]);
    let there = fs::read(desk.there().join("iostep")).expect("the program");
    assert!(there == fs::read(IOSTEP).expect("the program"));

    // It is there: nothing is pushed again, and a page is written.
    let page = ["--html", "r.html", "--json"];
    let output = desk.run(&[&program[..], &bench[..3], &page, &bench[3..]].concat());
    let json: Value = serde_json::from_str(&succeeded(&output)).expect("JSON alone");
    assert!(
        json["result"].is_object() || json["job"].is_object(),
        "{json}"
    );
    assert!(
        fs::read_to_string(desk.here("r.html"))
            .expect("a page")
            .contains("<html")
    );
    assert_eq!(desk.phone.pushed.lock().expect("no panic").len(), 1);
}

#[test]
fn a_signal_is_handed_on_and_what_was_measured_is_kept() {
    let desk = Desk::new();
    let data = desk.here("data");
    fs::create_dir(&data).expect("a directory");
    let mut child = desk
        .command(&["--program", IOSTEP, "bench", "-o", "r.json", "--", "sqlite"])
        .args([data.to_str().expect("UTF-8"), "--time", "1000"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let began = Instant::now();
    // The database is there once it measures.
    while fs::read_dir(&data).expect("a directory").next().is_none() {
        assert!(began.elapsed() < PATIENCE, "nothing is measured");
        assert!(child.try_wait().expect("a child").is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("its end");
    let result = fs::read(desk.here("r.json")).unwrap_or_else(|_| panic!("{}", said(&output)));
    Document::parse(Path::new("r.json"), &result).expect("a result of bench");
    assert!(began.elapsed() < PATIENCE, "{}", said(&output));
    assert_eq!(desk.left(), [""; 0]);
}

#[test]
fn a_trace_needs_root_there() {
    let desk = Desk::new();
    desk.iostep_there("exit 0");
    let output = desk.run(&["trace", "-o", "t.iostep", "--", "/data"]);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(
        said(&output).contains("Maker Model 7: iostep trace needs root"),
        "{}",
        said(&output)
    );
    assert_eq!(desk.left(), [""; 0]);
}

/// A desk with a phone whose root makes what iostep 0.1 made elsewhere, and notes what it was asked.
fn desk_with_root() -> Desk {
    let desk = Desk::new();
    desk.allow_root();
    desk.iostep_there(&format!(
        "echo \"$@\" >>{log}
         [ $(id -u) = 0 ] || exit 9
         case $1 in
         trace) cp -r {OLD}/ext4 $3 ;;
         record) cp {OLD}/calls.trace.zst $3; cp -r {OLD}/calls.trace.data $3.data ;;
         esac",
        log = desk.here("log").display()
    ));
    desk
}

#[test]
fn a_trace_is_made_by_root_and_fetched() {
    let desk = desk_with_root();
    let words = [
        "trace",
        "-o",
        "t.iostep",
        "--",
        "/data",
        "--",
        "app",
        "it's $HOME",
    ];
    let text = succeeded(&desk.run(&words));
    let mut here = Command::new(IOSTEP);
    here.args(["report", "t.iostep"]).current_dir(&desk.place);
    let here = here.output().expect("the program runs");
    assert_eq!(text, String::from_utf8_lossy(&here.stdout));
    for file in fs::read_dir(format!("{OLD}/ext4")).expect("a trace") {
        let name = file.expect("a file").file_name();
        let old = fs::read(Path::new(OLD).join("ext4").join(&name)).expect("a file");
        assert!(old == fs::read(desk.here("t.iostep").join(&name)).expect("the same"));
    }
    let mode = fs::metadata(desk.here("t.iostep"))
        .expect("a trace")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    let log = fs::read_to_string(desk.here("log")).expect("what was run");
    assert!(log.ends_with("/result /data -- app it's $HOME\n"), "{log}");
    assert_eq!(desk.left(), [""; 0]);

    let again = desk.run(&["trace", "-o", "t.iostep", "--", "/data"]);
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));

    let programs = desk.here("desk");
    fs::create_dir(&programs).expect("a directory");
    script_at(&programs.join("xdg-open"), "cp $1 shown.html");
    let path = std::env::var("PATH").expect("a PATH");
    let mut command = desk.command(&["trace", "-o", "u.iostep", "--html", "u.html", "--open"]);
    let output = command
        .args(["--", "/data"])
        .env("PATH", format!("{}:{path}", programs.display()))
        .output();
    succeeded(&output.expect("the program runs"));
    let page = fs::read_to_string(desk.here("shown.html")).expect("a page");
    assert!(page.contains("<html") && page == fs::read_to_string(desk.here("u.html")).expect("it"));
}

#[test]
fn a_recording_is_made_by_root_and_fetched_with_the_data_it_kept() {
    let desk = desk_with_root();
    let text = succeeded(&desk.run(&["record", "-o", "c.trace.zst", "--", "-p", "1"]));
    assert!(text.contains("calls"), "{text}");
    for (old, here) in [
        ("calls.trace.zst", "c.trace.zst"),
        ("calls.trace.data/1.zst", "c.trace.zst.data/1.zst"),
    ] {
        let old = fs::read(Path::new(OLD).join(old)).expect("a file");
        assert!(old == fs::read(desk.here(here)).expect("the same"));
    }
    for private in ["c.trace.zst", "c.trace.zst.data"] {
        let mode = fs::metadata(desk.here(private))
            .expect("it is there")
            .permissions();
        assert_eq!(mode.mode() & 0o077, 0, "{private}");
    }
    let log = fs::read_to_string(desk.here("log")).expect("what was run");
    assert!(
        log.starts_with("record -o ") && log.ends_with("/result.zst -p 1\n"),
        "{log}"
    );
    assert_eq!(desk.left(), [""; 0]);
}

#[test]
fn what_the_command_there_says_and_its_status_are_ours() {
    let desk = Desk::new();
    desk.iostep_there("printf 'no \\033[31mroom\\n' >&2; exit 3");
    let output = desk.run(&["bench", "-o", "r.json", "--", "file", "/nowhere"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(!said(&output).contains('\u{1b}'), "{}", said(&output));
    assert!(said(&output).contains("room"), "{}", said(&output));
    assert!(!desk.here("r.json").exists());
    assert_eq!(desk.left(), [""; 0]);

    // It says that all is well, and nothing is there.
    desk.program(
        "uname",
        "[ $1 = -m ] && echo aarch64; [ $1 = -r ] && printf '6.1\\033c\\n'",
    );
    let output = desk.run(&["status"]);
    assert!(!succeeded(&output).contains('\u{1b}'));
    fs::remove_dir_all(desk.there()).expect("it is there");
    desk.iostep_there("exit 0");
    let output = desk.run(&["bench", "-o", "r.json", "--", "file", "/nowhere"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("it made no result"),
        "{}",
        said(&output)
    );
    assert_eq!(desk.left(), [""; 0]);
}

#[test]
fn a_phone_that_is_full_gets_no_program() {
    let desk = Desk::new();
    desk.program("full", "");
    let bench = ["bench", "-o", "r.json", "--", "file", "/nowhere"];
    let output = desk.run(&[&["--program", IOSTEP][..], &bench].concat());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("No space left"), "{}", said(&output));
    assert_eq!(desk.left(), [""; 0]);
    assert!(!desk.there().join("iostep").exists() && !desk.here("r.json").exists());
}

#[test]
fn a_phone_that_answers_nonsense_is_told() {
    let desk = Desk::new();
    desk.program("garbled", "");
    for arguments in [&["status"][..], &["trace", "-o", "t.iostep", "--", "/data"]] {
        let output = desk.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).starts_with("iostep: "), "{}", said(&output));
        assert!(!desk.here("t.iostep").exists());
    }
}

#[test]
fn what_does_not_come_whole_is_not_removed_there() {
    let bench = ["bench", "-o", "r.json", "--", "file", "/nowhere"];
    for (result, cat, why) in [
        ("{}", "printf {", "has 3 bytes, and 1 came"),
        ("{}", "exec yes", "has no end"),
        ("{}", "exit 1", "result on the phone: "),
        // The cable is pulled between two packets.
        (
            "{}",
            "printf {; sleep 1; touch ${0%/*}/unplugged; echo }",
            "result on the phone: the connection to it was lost",
        ),
        // All of it comes, and is no result.
        (
            "{",
            "exec /bin/cat \"$@\"",
            "adb pull can fetch it: r.json: ",
        ),
    ] {
        let desk = Desk::new();
        desk.iostep_there(&format!("echo '{result}' >$4"));
        desk.program("cat", cat);
        let output = desk.run(&bench);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        for part in [why, "the result is left on the phone, in "] {
            assert!(said(&output).contains(part), "{cat}: {}", said(&output));
        }
        assert_eq!(desk.left().len(), 1, "{cat}");
        assert_eq!(desk.here("r.json").exists(), result == "{", "{cat}");
    }
}

#[test]
fn a_phone_cannot_write_elsewhere_nor_have_else_removed() {
    let desk = Desk::new();
    desk.allow_root();
    desk.iostep_there(&format!("cp -r {OLD}/ext4 $3"));
    for name in ["../evil", "/evil", "-evil", ".evil", "a b", "évil"] {
        desk.program("ls", &format!("echo manifest.json; echo '{name}'"));
        let output = desk.run(&["trace", "-o", "t.iostep", "--", "/data"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(
            said(&output).contains("is no file of iostep's"),
            "{}",
            said(&output)
        );
        assert!(!desk.here("t.iostep").exists() && !desk.here("evil").exists());
    }
    // A file that is said to be there and is not: what was fetched before it is gone here, and all is
    // there still.
    let left = desk.left().len();
    desk.program("ls", "echo manifest.json; echo other.parquet");
    let output = desk.run(&["trace", "-o", "t.iostep", "--", "/data"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("the result is left on the phone, in"),
        "{}",
        said(&output)
    );
    assert!(!desk.here("t.iostep").exists());
    assert_eq!(desk.left().len(), left + 1);

    let kept = desk.here("kept");
    fs::create_dir(&kept).expect("a directory");
    for answer in [
        "kept",
        "phone/iostep",
        "phone/iostep/../../kept",
        "phone/iostep/run.$(id)",
    ] {
        desk.program("mktemp", &format!("echo '{}'", desk.here(answer).display()));
        let output = desk.run(&["trace", "-o", "t.iostep", "--", "/data"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("cannot make a directory on the phone"));
        assert!(kept.exists() && desk.there().join("iostep").exists());
    }
}

#[test]
fn what_a_phone_has_that_is_lost_is_left_there() {
    let desk = Desk::new();
    let unplugged = desk.phone.programs.join("unplugged");
    desk.iostep_there(&format!(
        "cp {OLD}/file.json $4; touch {}; echo said",
        unplugged.display()
    ));
    let output = desk.run(&["bench", "-o", "r.json", "--", "file", "/data"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let expected = "the connection to the phone was lost; the result is left on the phone, in";
    assert!(said(&output).contains(expected), "{}", said(&output));
    assert!(!desk.here("r.json").exists());
    let [left] = &desk.left()[..] else {
        panic!("{:?}", desk.left());
    };
    assert!(desk.there().join(left).join("result").exists());
}

#[test]
fn a_signal_is_handed_on_to_a_program_that_is_slow_to_begin() {
    let desk = Desk::new();
    desk.allow_root();
    let asked = desk.here("asked");
    let hears = desk.here("hears");
    // A signal before the program has said what it does with it would only kill it.
    let slow = format!(
        "case $2 in *exec*) touch {}; sleep 2 ;; *kill*) [ -e {} ] || exit 1 ;; esac",
        asked.display(),
        hears.display()
    );
    let su = format!("[ \"$1\" = -c ] && {{ {slow}; ROOT=0 exec sh -c \"$2\"; }}");
    desk.program("su", &su);
    desk.iostep_there(&format!(
        "trap 'cp -r {OLD}/ext4 '$3'; exit 0' INT; touch {}; while :; do sleep 0.1; done",
        hears.display()
    ));
    let mut child = desk
        .command(&["trace", "-o", "t.iostep", "--", "/data"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let began = Instant::now();
    while !asked.exists() {
        assert!(began.elapsed() < PATIENCE, "su is not asked");
        std::thread::sleep(Duration::from_millis(5));
    }
    // su takes its time now, and no program is there to hear it.
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let status = child.wait().expect("its end");
    assert_eq!(status.code(), Some(128 + 15));
    assert!(desk.here("t.iostep/manifest.json").exists());
    assert_eq!(desk.left(), [""; 0]);
}

#[test]
fn a_phone_that_never_answers_is_given_up() {
    let desk = Desk::new();
    for (program, script) in [
        ("uname", "sleep 60"),
        ("mktemp", "yes"),
        ("mktemp", "sleep 60"),
    ] {
        desk.program("uname", "echo x86_64");
        desk.program(program, script);
        let _ = fs::create_dir(desk.there());
        script_at(&desk.there().join("iostep"), "echo iostep 9.8");
        let child = desk
            .command(&["bench", "-o", "r.json", "--", "file", "/data"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        std::thread::sleep(Duration::from_millis(500));
        // It may have ended by then: an answer without end is none.
        let _ = kill_process(Pid::from_child(&child), Signal::INT);
        let output = child.wait_with_output().expect("its end");
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let expected = ["interrupted", "has no end"];
        assert!(
            expected.iter().any(|part| said(&output).contains(part)),
            "{}",
            said(&output)
        );
    }
}

#[test]
fn a_trace_that_is_none_leaves_nothing_here() {
    let desk = Desk::new();
    desk.allow_root();
    desk.iostep_there(&format!(
        "cp -r {OLD}/ext4 $3; mkdir -p $3/a/b; mkfifo $3/zz"
    ));
    let output = desk.run(&["trace", "-o", "t.iostep", "--", "/data"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("the result is left on the phone"),
        "{}",
        said(&output)
    );
    assert!(!desk.here("t.iostep").exists());
}

#[test]
fn bad_usage_is_told_before_the_phone_is_asked() {
    let desk = Desk::with(false);
    for (arguments, expected) in [
        (
            &["bench", "-o", "r", "--", "run", "jobs"][..],
            "name file or sqlite first",
        ),
        (&["bench", "-o", "-", "--", "file", "/x"], "name a file"),
        (
            &["bench", "-o", "r", "--open", "--", "file", "/x"],
            "--html",
        ),
        (
            &["record", "-o", "r", "--html", "h", "--", "x"],
            "a recording has no page",
        ),
        (&["trace", "-o", ".", "--", "/data"], "is there already"),
        (&["bench", "-o", "r/", "--", "file", "/x"], "name a file"),
        (
            &["bench", "-o", "/dev/null", "--", "file", "/x"],
            "name a file",
        ),
        (
            &["record", "-o", "/nowhere/r", "--", "x"],
            "no directory for it",
        ),
        (
            &["bench", "-o", "r", "--html", "./r", "--", "file", "/x"],
            "name another file for the page",
        ),
        (&["--directory", "/", "status"], "below another one"),
        (&["--directory", "/data/a b", "status"], "of letters"),
    ] {
        let output = match arguments[0] {
            "--directory" => Command::new(IOSTEP).arg("phone").args(arguments).output(),
            _ => desk.command(arguments).output(),
        };
        let output = output.expect("the program runs");
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains(expected),
            "{arguments:?}: {}",
            said(&output)
        );
    }
}

#[test]
fn a_phone_that_is_away_and_a_program_for_another_one_are_told() {
    let away = Desk::with(false);
    let output = away.run(&["status"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let expected = "no phone answers: error: no devices/emulators found";
    assert!(said(&output).contains(expected), "{}", said(&output));

    let output = { away.command(&["status"]) }
        .env("PATH", "/nowhere")
        .output();
    let output = output.expect("the program runs");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("there is no adb; install it"),
        "{}",
        said(&output)
    );

    let desk = Desk::new();
    desk.program("uname", "echo riscv64");
    let bench = ["bench", "-o", "r.json", "--", "file", "/data"];
    for (program, expected) in [
        (IOSTEP, "and the phone is riscv64"),
        ("/etc/passwd", "no program for Linux"),
        ("/nowhere", "cannot open"),
    ] {
        let output = desk.run(&[&["--program", program][..], &bench].concat());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
    assert!(desk.phone.pushed.lock().expect("no panic").is_empty());
}
