//! Results that go to standard output have it for themselves.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use iostep_model::bench::Document;
use iostep_model::syscall::Recording;
use iostep_model::syscall::text as recording;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{PATIENCE, json, said};

const STRACE: &str = "\
100 1700000000.000000 execve(\"/bin/app\", [\"app\", \"-x\"], 0x1 /* 9 vars */) = 0 <0.000100>
100 1700000000.001000 openat(AT_FDCWD, \"/data/app.db\", O_RDWR|O_CREAT, 0644) = 3 <0.000010>
100 1700000000.002000 pwrite64(3, \"abc\"..., 4096, 0) = 4096 <0.000020>
";

/// The names that standard output has.
const NAMES: [&str; 2] = ["-", "/dev/stdout"];

fn place() -> TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(place.path().join("app.strace"), STRACE).expect("a file");
    place
}

fn command(place: &TempDir, line: &str) -> Command {
    let mut iostep = crate::iostep();
    iostep.args(line.split(' ')).current_dir(place);
    iostep.env("NO_COLOR", "1").stdin(Stdio::null());
    iostep
}

/// Runs a command that must succeed.
fn iostep(place: &TempDir, line: &str) -> Output {
    let output = command(place, line).output().expect("the binary runs");
    assert!(output.status.success(), "{line}: {}", said(&output));
    output
}

/// What is on standard output, as a recording.
fn recorded(place: &TempDir, output: &Output) -> Recording {
    let path = place.path().join("copy.trace");
    std::fs::write(&path, &output.stdout).expect("a file");
    recording::read(&path).expect("nothing but a recording")
}

#[test]
fn clean_writes_nothing_but_the_trace() {
    let place = place();
    iostep(&place, "clean app.strace -o app.trace");
    let file = std::fs::read(place.path().join("app.trace")).expect("a trace");
    for name in NAMES {
        let output = iostep(&place, &format!("clean app.strace -o {name}"));
        assert!(output.stdout == file, "{name}: something is mixed in");
        assert!(said(&output).contains("lines read"), "{}", said(&output));
    }
    // A file of that name is none.
    let output = iostep(&place, "clean app.strace -o ./-");
    assert!(output.stdout.starts_with(b"           3"), "{output:?}");
}

#[test]
fn record_writes_nothing_but_the_recording() {
    let place = place();
    for name in NAMES {
        let line = format!("record --via ptrace -o {name} -- cat app.strace");
        let output = command(&place, &line).output().expect("the binary runs");
        // The command's own output is its own business.
        let own = STRACE.len();
        let output = Output {
            stdout: output.stdout[own..].to_vec(),
            ..output
        };
        assert!(output.status.success(), "{}", said(&output));
        assert!(!recorded(&place, &output).calls.is_empty());
        assert!(said(&output).contains("wrote "), "{}", said(&output));
    }
}

#[test]
fn replay_writes_nothing_but_the_result() {
    let place = place();
    iostep(&place, "clean app.strace -o app.trace");
    let line = "replay app.trace --to . --timing fast -o -";
    let output = command(&place, line).output().expect("the binary runs");
    assert!(json(&output)["targets"].is_array(), "{}", said(&output));
    assert!(said(&output).contains("app.trace"), "{}", said(&output));
}

#[test]
fn bench_writes_nothing_but_the_result() {
    let place = place();
    let bench = "bench file . --size 64KiB";
    for name in NAMES {
        let output = iostep(&place, &format!("{bench} -o {name}"));
        Document::parse(Path::new(name), &output.stdout).expect("nothing but a result");
        assert!(!said(&output).is_empty(), "no summary");
    }
    let output = iostep(&place, &format!("{bench} --html -"));
    let page = String::from_utf8(output.stdout).expect("a page");
    assert!(page.starts_with("<!") && page.trim_end().ends_with("</html>"));
    let jobs = "[[job]]\nworkload = 'file'\ntarget = '.'\nsize = '64KiB'\n";
    std::fs::write(place.path().join("jobs.toml"), jobs).expect("a file");
    let output = iostep(&place, "bench run jobs.toml --results out --html -");
    let page = String::from_utf8(output.stdout).expect("a page");
    assert!(page.starts_with("<!") && page.trim_end().ends_with("</html>"));
}

#[test]
fn advise_writes_nothing_but_the_result() {
    let place = place();
    let advise = "advise . --rounds 2 --time 200ms --candidates wal-full -o -";
    let output = iostep(&place, advise);
    assert!(json(&output)["rows"].is_array(), "{}", said(&output));
    assert!(said(&output).contains("wal, full"), "{}", said(&output));
}

#[test]
fn two_results_on_standard_output_are_refused_before_anything_is_done() {
    let place = place();
    std::fs::write(place.path().join("app.db"), "").expect("a file");
    std::fs::write(place.path().join("jobs.toml"), "").expect("a file");
    for line in [
        "advise . -o - --json",
        "bench file . --size 64KiB -o - --html -",
        "bench file . --size 64KiB --csv --log /dev/stdout",
        "bench run jobs.toml --results out --html - --json",
        "clean app.strace -o - --json",
        "demo --keep - --json",
        "explain app.db VACUUM --html - --json",
        "lab run matrix --results out --html - --json",
        "record --via ptrace -o /dev/stdout --json -- touch done",
        "replay app.strace --to . -o - --html -",
        "report . --html - --json",
    ] {
        let output = command(&place, line).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(2), "{line}: {}", said(&output));
        assert!(
            said(&output).contains("two results would be mixed"),
            "{line}: {}",
            said(&output)
        );
        assert!(output.stdout.is_empty(), "{line}");
    }
    for made in ["done", "out"] {
        assert!(!place.path().join(made).exists(), "{made}");
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_reader() {
    let place = place();
    let fifo = place.path().join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0)
        .expect("a FIFO");
    for signal in [Signal::INT, Signal::TERM] {
        let mut child = command(&place, "clean app.strace -o fifo")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let status = format!("/proc/{}/status", child.id());
        let begin = Instant::now();
        while !catches_signals(&status) {
            assert!(begin.elapsed() < PATIENCE, "it catches no signal");
            std::thread::sleep(Duration::from_millis(1));
        }
        kill_process(Pid::from_child(&child), signal).expect("a signal");
        while child.try_wait().expect("a child").is_none() {
            if begin.elapsed() > PATIENCE {
                child.kill().expect("it runs");
                child.wait().expect("a child");
                panic!("{signal:?} did not end it");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().expect("a child");
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("fifo"), "{}", said(&output));
    }
}

/// proc_pid_status(5), `SigCgt`.
fn catches_signals(status: &str) -> bool {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let has = |mask: u64, signal: Signal| mask >> (signal.as_raw() - 1) & 1 == 1;
    mask.is_some_and(|mask| has(mask, Signal::INT) && has(mask, Signal::TERM))
}

#[test]
fn version_tells_the_features_and_the_version_of_each_format_of_a_file() {
    let text = iostep(&place(), "--version").stdout;
    let text = String::from_utf8(text).expect("UTF-8");
    let line = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
        let line = lines.next().unwrap_or_else(|| panic!("no {name}: {text}"));
        assert_eq!(lines.next(), None, "{text}");
        line.split(", ").collect::<Vec<_>>()
    };
    assert_eq!(line("features: "), ["trace", "many-devices"]);
    let formats = line("formats: ");
    for (what, version) in [
        ("traces", iostep_model::manifest::SCHEMA_VERSION),
        ("event logs", iostep_model::spool::VERSION.into()),
        ("recordings", recording::VERSION),
        ("recordings cut short", 1),
        ("results of bench", iostep_model::bench::SCHEMA_VERSION),
        ("of lab", iostep_model::lab::SCHEMA_VERSION),
        ("lakes", iostep_fleet::VERSION),
        ("stores of serve", iostep_serve::store::SCHEMA_VERSION),
    ] {
        let expected = format!("{what} {version}");
        assert!(formats.contains(&&expected[..]), "{expected}: {formats:?}");
    }
    // Cargo may be told the commit, and then it stands there.
    assert_eq!(line("commit: ").len(), 1);
}
