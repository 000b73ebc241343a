//! `iostep report` as a user runs it, on traces made by the fixture.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use iostep_model::event::{Event, Marker};
use iostep_model::fixture;
use iostep_model::manifest::{Manifest, State};
use iostep_model::table::Trace;
use iostep_model::{spool, store};
use tempfile::TempDir;

use crate::{name, text};

fn iostep(arguments: &[&str]) -> Output {
    crate::iostep()
        .arg("report")
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn stored(trace: &Trace) -> TempDir {
    let dir = TempDir::new().expect("a directory");
    store::write(dir.path(), trace).expect("write");
    dir
}

fn lossy() -> Trace {
    let mut trace = fixture::sqlite_on_ext4(60);
    trace.manifest.check.lost_events = 312;
    trace
}

/// Runs with the directory of `trace` in place of `DIR`.
fn on(trace: &Trace, arguments: &[&str]) -> Output {
    let dir = stored(trace);
    let replace = |argument: &&str| argument.replace("DIR", name(dir.path()));
    let arguments: Vec<String> = arguments.iter().map(replace).collect();
    iostep(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn the_summary_of_a_whole_trace_succeeds_and_is_not_coloured() {
    let output = on(&fixture::sqlite_on_ext4(60), &["DIR"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("loop0 1 GiB, ext4"));
    assert!(!text(&output.stdout).contains('\u{1b}'));
}

#[test]
fn a_failed_check_comes_first_and_fails_unless_loss_is_allowed() {
    for arguments in [vec!["DIR"], vec!["DIR", "--events"], vec!["DIR", "DIR"]] {
        let output = on(&lossy(), &arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let first = text(&output.stdout).lines().next().expect("a line");
        assert!(first.starts_with("CHECK FAILED: "), "{first}");
        assert!(first.contains("lost 312 events"), "{first}");
        let allowed = [&arguments[..], &["--allow-loss"]].concat();
        let output = on(&lossy(), &allowed);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(
            text(&output.stdout).starts_with("CHECK FAILED: "),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_failed_check_is_on_standard_error_where_the_output_has_a_format_of_its_own() {
    for arguments in [
        vec!["DIR", "--json"],
        vec!["DIR", "--format", "csv"],
        vec!["DIR", "--format", "blkparse"],
    ] {
        let output = on(&lossy(), &arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert_eq!(
            text(&output.stderr),
            "CHECK FAILED: lost 312 events\n",
            "{arguments:?}"
        );
        assert!(!text(&output.stdout).contains("CHECK"), "{arguments:?}");
    }
}

#[test]
fn json_holds_the_same_numbers_as_the_tables() {
    let trace = fixture::sqlite_on_ext4(60);
    let output = on(&trace, &["DIR", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["overview"]["requests"], 60);
    assert_eq!(
        value["sync_calls"].as_array().expect("calls").len(),
        trace.syncs.len()
    );
    let bytes = |rows: &str, side: &str| -> u64 {
        let rows = value[rows].as_array().expect("rows");
        rows.iter()
            .map(|row| row[side]["bytes"].as_u64().expect("bytes"))
            .sum()
    };
    assert_eq!(bytes("classes", "write"), bytes("layers", "write"));
    assert_eq!(bytes("classes", "write"), bytes("sizes", "write"));
}

#[test]
fn two_traces_as_json_have_ratios() {
    let (first, second) = (fixture::sqlite_on_ext4(40), fixture::sqlite_on_ext4(80));
    let (first, second) = (stored(&first), stored(&second));
    let output = iostep(&[name(first.path()), name(second.path()), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = value["rows"].as_array().expect("rows");
    let calls = rows
        .iter()
        .find(|row| row["group"] == "all" && row["name"] == "sync calls");
    let calls = calls.expect("the number of sync calls");
    let ratio = calls["second"].as_f64().expect("a number") / calls["first"].as_f64().expect("one");
    assert_eq!(calls["ratio"].as_f64(), Some(ratio));
}

#[test]
fn every_format_goes_to_a_file_or_to_standard_output() {
    let dir = stored(&fixture::sqlite_on_ext4(60));
    for format in ["blkparse", "most", "csv", "perfetto"] {
        let path = dir.path().join(format);
        let printed = iostep(&[name(dir.path()), "--format", format]);
        let written = iostep(&[name(dir.path()), "--format", format, "-o", name(&path)]);
        assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
        assert!(written.stdout.is_empty());
        assert_eq!(
            std::fs::read(&path).expect("the file"),
            printed.stdout,
            "{format}"
        );
    }
}

#[test]
fn blkparse_text_reads_back_as_the_same_requests() {
    let trace = fixture::sqlite_on_ext4(200);
    let output = on(&trace, &["DIR", "--format", "blkparse"]);
    let read = iostep_trace::blkparse::parse(&output.stdout[..], Path::new("text"), None);
    let events = read.expect("blkparse text").events;
    let issued: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Issue(transfer) => Some((transfer.sector, transfer.bytes, transfer.operation)),
            _ => None,
        })
        .collect();
    let expected = trace
        .requests
        .iter()
        .map(|r| (r.sector, r.bytes, r.operation));
    assert_eq!(issued, expected.collect::<Vec<_>>());
    let complete = events
        .iter()
        .filter(|e| matches!(e, Event::Complete(_)))
        .count();
    assert_eq!(complete, trace.requests.len());
}

#[test]
fn the_page_is_written_whole() {
    let dir = stored(&fixture::sqlite_on_ext4(60));
    let path = dir.path().join("page.html");
    let output = iostep(&[name(dir.path()), "--html", name(&path)]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(&path).expect("the page");
    assert!(page.trim_end().ends_with("</html>"));
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let dir = stored(&fixture::sqlite_on_ext4(10));
    let output = iostep(&[
        name(dir.path()),
        "--format",
        "csv",
        "-o",
        "/nowhere/at/all.csv",
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("/nowhere/at"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let dir = stored(&fixture::sqlite_on_ext4(20_000));
    let mut child = crate::iostep()
        .args(["report", name(dir.path()), "--events"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn bad_usage_exits_with_2() {
    for arguments in [
        &["a", "b", "--events"][..],
        &["a", "--format", "pdf"],
        &["a", "--events", "--json"],
        &[],
    ] {
        assert_eq!(iostep(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

/// Runs on `dir` and returns the error.
fn refused(dir: &Path) -> String {
    let output = iostep(&[name(dir)]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
    assert!(output.stdout.is_empty());
    text(&output.stderr).replace(name(dir), "DIR")
}

#[test]
fn what_is_no_trace_directory_is_said_so() {
    let empty = TempDir::new().expect("a directory");
    let missing = empty.path().join("missing");
    assert!(refused(&missing).contains("cannot open: No such file or directory"));
    assert!(refused(empty.path()).contains("no trace directory: it has no manifest.json"));
}

#[test]
fn a_damaged_or_newer_trace_is_refused_with_the_place() {
    let dir = stored(&fixture::sqlite_on_ext4(60));
    let manifest = dir.path().join("manifest.json");
    let table = dir.path().join("segments.parquet");
    let (whole_manifest, whole_table) = (
        std::fs::read_to_string(&manifest).expect("read"),
        std::fs::read(&table).expect("read"),
    );

    std::fs::write(&table, &whole_table[..whole_table.len() / 2]).expect("cut");
    assert!(refused(dir.path()).contains("DIR/segments.parquet: damaged at length"));
    let mut edited = whole_table.clone();
    edited[100] ^= 1;
    std::fs::write(&table, edited).expect("edit");
    assert!(refused(dir.path()).contains("DIR/segments.parquet: damaged at checksum"));
    std::fs::remove_file(&table).expect("remove");
    assert!(refused(dir.path()).contains("DIR/segments.parquet: damaged at file: missing"));

    std::fs::write(&manifest, &whole_manifest[..200]).expect("cut");
    assert!(refused(dir.path()).contains("DIR/manifest.json: damaged at JSON"));
    let newer = whole_manifest.replace("\"schema_version\": 1", "\"schema_version\": 99");
    std::fs::write(&manifest, newer).expect("edit");
    let error = refused(dir.path());
    assert!(
        error.contains("trace schema 99; expected at most 1"),
        "{error}"
    );
    std::fs::write(
        &manifest,
        whole_manifest.replace("\"kernel\"", "\"colonel\""),
    )
    .expect("edit");
    assert!(refused(dir.path()).contains("DIR/manifest.json: damaged at "));
    std::fs::remove_file(&manifest).expect("remove");
    assert!(refused(dir.path()).contains("it has no manifest.json"));
}

/// A directory as a recorder leaves it while it runs.
fn recording(tracer_tgid: u32) -> TempDir {
    let dir = TempDir::new().expect("a directory");
    let mut manifest: Manifest = fixture::empty().manifest;
    manifest.state = State::Recording;
    manifest.tracer_tgid = tracer_tgid;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    manifest.clocks.wall_ns = now.as_nanos() as u64;
    manifest.write(dir.path()).expect("write");
    let mut writer = spool::Writer::create(&dir.path().join(spool::FILE_NAME)).expect("create");
    let marker = Marker::CommandStart;
    let mono_ns = manifest.clocks.mono_ns;
    writer
        .push(&Event::Marker { mono_ns, marker })
        .expect("push");
    writer.flush().expect("flush");
    dir
}

#[test]
fn a_killed_recording_is_finished_once_and_says_so() {
    let dir = recording(u32::MAX);
    let output = iostep(&[name(dir.path())]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("its recorder was killed; making the tables"));
    assert!(text(&output.stdout).starts_with("CHECK FAILED: the recorder was killed"));
    assert!(!dir.path().join(spool::FILE_NAME).exists());
    let trace = store::read(dir.path()).expect("a whole trace now");
    assert_eq!(trace.manifest.state, State::Recovered);
    assert_eq!(trace.markers.len(), 1);
    let again = iostep(&[name(dir.path()), "--allow-loss"]);
    assert_eq!(again.status.code(), Some(0));
    assert_eq!(text(&again.stderr), "");
    assert_eq!(again.stdout, output.stdout);
}

#[test]
fn a_recording_that_goes_on_is_left_alone() {
    let dir = recording(std::process::id());
    let output = iostep(&[name(dir.path())]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let error = text(&output.stderr);
    assert!(error.contains(&format!(
        "still being recorded by process {}",
        std::process::id()
    )));
    assert!(dir.path().join(spool::FILE_NAME).exists());
}

#[test]
fn full_has_every_table_and_the_default_begins_with_what_matters() {
    let trace = fixture::sqlite_on_ext4(60);
    let short = on(&trace, &["DIR"]);
    let full = on(&trace, &["DIR", "--full"]);
    let (short, full) = (text(&short.stdout), text(&full.stdout));
    for title in ["What the blocks are", "Sizes of requests", "Interrupts"] {
        assert!(full.contains(title), "{full}");
        assert!(!short.contains(title), "{short}");
    }
    for shown in [
        "check passed",
        " written ",
        "Processes: ",
        "ournaling of journal ",
        "--full",
    ] {
        assert!(short.contains(shown), "{shown}: {short}");
    }
    assert!(short.lines().count() <= 40, "{short}");
}

#[test]
fn a_part_of_a_trace_says_what_it_leaves_out() {
    let trace = fixture::sqlite_on_ext4(120);
    let part = ["DIR", "--file", "*-wal", "--comm", "app"];
    let output = on(&trace, &part);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        shown.contains("note: only name app, file *-wal: "),
        "{shown}"
    );
    assert!(
        shown.contains("app.db-wal") && !shown.contains("app.db-journal"),
        "{shown}"
    );
    let output = on(&trace, &[&part[..], &["--json"]].concat());
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["files"].as_array().expect("files").len(), 1);
    let whole = on(&trace, &["DIR", "--json"]);
    assert!(!text(&whole.stdout).contains("left out"));
    let output = on(&trace, &["DIR", "--pid", "1", "--format", "csv"]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "an export has whole requests"
    );
}

#[test]
fn a_filter_that_nothing_fits_is_refused_by_name() {
    let trace = fixture::sqlite_on_ext4(120);
    for (part, expected) in [
        (
            ["--pid", "999999"],
            "--pid 999999: no process or thread has this number",
        ),
        (
            ["--comm", "nobody*"],
            "--comm nobody*: no program or thread",
        ),
        (
            ["--cgroup", "nonexist"],
            "--cgroup nonexist: no thread is in such",
        ),
        (
            ["--file", "*.nothing"],
            "--file *.nothing: no file is called so",
        ),
    ] {
        for more in [
            &["DIR"][..],
            &["DIR", "--json"],
            &["DIR", "DIR"],
            &["DIR", "--events"],
        ] {
            let output = on(&trace, &[more, &part[..]].concat());
            assert_eq!(output.status.code(), Some(2), "{more:?} {part:?}");
            let error = text(&output.stderr);
            assert!(error.contains(expected), "{error}");
            assert!(error.contains("; the trace has "), "{error}");
            assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
        }
    }
}

/// Runs a command of iostep with the files of `dir` in place of `DIR`.
fn command(dir: &Path, words: &str) -> Output {
    let words = words.replace("DIR", name(dir));
    crate::iostep()
        .args(words.split(' '))
        .output()
        .expect("the binary runs")
}

#[test]
fn what_a_command_does_not_take_is_shown_all_the_same() {
    let dir = one_of_each();
    for (words, shown) in [
        ("report DIR/app.trace.zst", "recorder   strace"),
        ("report DIR/bench.json", " IOPS, "),
        ("report DIR/bench.json --json", "\"summary\""),
        ("compare DIR/trace DIR/trace", "ratio"),
    ] {
        let output = command(dir.path(), words);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{words}: {}",
            text(&output.stderr)
        );
        assert!(
            text(&output.stdout).contains(shown),
            "{words}: {}",
            text(&output.stdout)
        );
    }
}

/// A file of each kind that a command may be given.
fn one_of_each() -> TempDir {
    let dir = TempDir::new().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    std::fs::create_dir(path("trace")).expect("a directory");
    store::write(&path("trace"), &fixture::sqlite_on_ext4(60)).expect("write");
    let bench = iostep_analyze::bench::fixture::write_fdatasync(2);
    bench.write(&path("bench.json")).expect("write");
    let strace = "1 1700000000.000100 openat(AT_FDCWD, \"/tmp/a\", O_RDONLY) = 3 <0.000010>\n\
                  1 1700000000.000200 close(3) = 0 <0.000010>\n";
    std::fs::write(path("strace"), strace).expect("write");
    let blkparse = "8,0 1 1 0.000000001 7 Q W 8 + 8 [a]\n";
    std::fs::write(path("blkparse"), blkparse).expect("write");
    std::fs::write(path("junk"), "hi\n").expect("write");
    std::fs::write(path("other.json"), "{\"runs\": []}\n").expect("write");
    std::fs::write(path("cut.json"), "{\"schema_version\": 1, ").expect("write");
    std::fs::write(path("app.db"), b"SQLite format 3\0").expect("write");
    let clean = command(dir.path(), "clean DIR/strace -o DIR/app.trace.zst");
    assert_eq!(clean.status.code(), Some(0), "{}", text(&clean.stderr));
    dir
}

#[test]
fn what_a_command_does_not_take_has_its_command_named() {
    let dir = one_of_each();
    for (words, named) in [
        ("report DIR/strace", "iostep clean"),
        ("report DIR/blkparse", "iostep import"),
        ("report DIR/app.db", "iostep explain"),
        ("report DIR/app.trace.zst --events", "iostep trace-info"),
        ("report DIR/junk", "no trace directory"),
        (
            "compare DIR/app.trace.zst DIR/bench.json",
            "iostep trace-info",
        ),
        ("compare DIR/bench.json DIR/trace", "iostep report"),
        ("trace-info DIR/trace", "iostep report"),
        ("trace-info DIR/bench.json", "iostep compare"),
        ("trace-info DIR/nothing", "cannot open"),
        (
            "import DIR/strace --image DIR/junk -o DIR/new",
            "iostep clean",
        ),
        (
            "import DIR/trace --image DIR/junk -o DIR/new",
            "iostep report",
        ),
        (
            "import DIR/nothing --image DIR/junk -o DIR/new",
            "cannot open",
        ),
        (
            "import DIR/blkparse --image DIR/nothing -o DIR/new",
            "cannot open",
        ),
        ("clean DIR/app.trace.zst -o DIR/new", "iostep trace-info"),
        ("clean DIR/blkparse -o DIR/new", "iostep import"),
        ("clean DIR/trace -o DIR/new", "iostep report"),
        ("replay DIR/strace --to DIR", "iostep clean"),
        ("replay DIR/nothing --to DIR", "cannot open"),
        ("trace DIR/nothing --duration 1ms", "cannot look at"),
        ("bench sqlite DIR/nothing", "no such directory"),
        ("bench file DIR/nothing", "No such file"),
        ("compare DIR/nothing DIR/bench.json", "cannot open"),
        (
            "compare DIR/bench.json DIR/junk",
            "junk: no result of iostep bench and no trace; name two files",
        ),
        ("compare DIR DIR/bench.json", "no result of iostep bench"),
        (
            "compare DIR/other.json DIR/bench.json",
            "no result of iostep bench",
        ),
        (
            "compare DIR/cut.json DIR/bench.json",
            "cut.json: damaged at JSON",
        ),
        ("report DIR/cut.json", "no trace directory"),
        ("lab report DIR/nothing", "no directory of a lab's results"),
        ("explain DIR/nothing SELECT", "no such file"),
    ] {
        refuses(&dir, words, named);
    }
    assert!(!dir.path().join("new").exists());
}

/// A wrong path is bad usage, and told in one line.
fn refuses(dir: &TempDir, words: &str, why: &str) {
    let output = command(dir.path(), words);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}: {said}");
    assert!(said.contains(why), "{words}: {said}");
    assert_eq!(said.lines().count(), 1, "{words}: {said}");
}

#[test]
fn what_cannot_be_written_or_run_is_known_before_anything_is_done() {
    let dir = one_of_each();
    for (words, why) in [
        (
            "record -o DIR -- touch DIR/new",
            "is a directory; name a file",
        ),
        ("explain DIR/app.db SELECT --html DIR", "is a directory"),
        ("clean DIR/strace -o DIR", "is a directory"),
        ("record --via ptrace -o DIR/new -- DIR/junk", "cannot run"),
    ] {
        refuses(&dir, words, why);
    }
    assert!(!dir.path().join("new").exists());
}

#[test]
fn durations_and_sizes_are_written_alike() {
    let missing = "/nowhere";
    let wrong = |words: &[&str]| {
        let output = crate::iostep().args(words).output();
        text(&output.expect("the binary runs").stderr).to_owned()
    };
    for duration in ["1", "1s", "5m", "250ms", "1.5"] {
        let said = wrong(&["trace", missing, "--duration", duration]);
        assert!(said.contains("cannot look at"), "{duration}: {said}");
    }
    for duration in ["0", "soon", "5x"] {
        let said = wrong(&["trace", missing, "--duration", duration]);
        assert!(said.contains("--duration"), "{duration}: {said}");
    }
    for size in ["4096", "64KiB", "1MB"] {
        let flags = [
            "--offset",
            size,
            "--image-offset",
            size,
            "--image",
            missing,
            "-o",
            "x",
        ];
        let said = wrong(&[&["import", missing], &flags[..]].concat());
        assert!(said.contains("cannot open"), "{size}: {said}");
    }
}

#[test]
fn where_descriptors_run_out_the_error_says_how_to_allow_more() {
    let dir = stored(&fixture::sqlite_on_ext4(60));
    let mut refused = 0;
    for limit in 4..64 {
        let output = Command::new("sh")
            .args(["-c", "ulimit -n \"$0\" && exec \"$@\""])
            .args([&limit.to_string(), env!("CARGO_BIN_EXE_iostep"), "report"])
            .arg(dir.path())
            .output()
            .expect("a shell");
        if output.status.success() {
            break;
        }
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{limit}: {error}");
        let hint = "allow this process more of them, as with ulimit -n 4096\n";
        assert!(error.ends_with(hint), "{limit}: {error}");
        refused += 1;
    }
    assert!(refused > 0, "there were always enough");
}
