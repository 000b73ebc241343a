//! `iostep bench` and `iostep compare` as a user runs them, on a temporary directory.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use iostep_model::bench::{Document, Job, RunState};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{PATIENCE, name, names, text};

/// A command line with a directory in place of `DIR`.
fn command(line: &str, directory: &Path) -> Command {
    let mut command = crate::iostep();
    command.args(
        line.split(' ')
            .map(|word| word.replace("DIR", name(directory))),
    );
    command
}

fn iostep(line: &str, directory: &Path) -> Output {
    let output = command(line, directory).output();
    output.expect("the binary runs")
}

/// Runs `iostep bench`, which must succeed, and takes its JSON.
fn measured(line: &str, directory: &Path) -> (Document, Value) {
    let output = iostep(&format!("bench {line} --json"), directory);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let document = Document::parse(Path::new("output"), &output.stdout);
    (document.expect("a document"), value["summary"].clone())
}

fn directory() -> TempDir {
    TempDir::new().expect("a directory")
}

/// Waits until something is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The one line of an error, with the status.
fn refused(line: &str, directory: &Path, status: i32) -> String {
    let output = iostep(line, directory);
    let error = text(&output.stderr).to_owned();
    assert_eq!(output.status.code(), Some(status), "{line}: {error}");
    assert!(output.stdout.is_empty(), "{line}");
    error
}

/// What `bench file` refuses, with what the error has to say. Rules that are not here need more than
/// flags: a device, or all combinations of two options.
#[rustfmt::skip]
const OF_FILES: &[(&str, &str)] = &[
    ("--access sideways", "choose write, random-write"),
    ("--sync fbarrier", "choose none, osync"),
    ("--transfer directly", "choose buffered, direct"),
    ("--engine libaio", "choose psync, uring"),
    ("--record 0", "choose --record from 1 byte to 1GiB"),
    ("--record 4q", "expected a size"),
    ("--size 0", "choose a --size"),
    ("--size -1", "-1"),
    ("--size 99999999999999999999", "--size"),
    ("--size 1000KiB --record 300KiB", "choose --size 921600 or 1228800"),
    ("--size 1 --record 300KiB", "choose --size 307200"),
    ("--size 32KiB --threads 3 --shared", "no multiple of 3 threads' records of 4096 bytes; choose --size 24576 or 36864"),
    ("--size 8192TiB --threads 1024", "choose a smaller --size"),
    ("--threads 0", "0 is not in 1..=1024"),
    ("--threads 1025", "1025 is not in 1..=1024"),
    ("--sync-every 0", "0 is not in 1.."),
    ("--depth 0 --engine uring", "choose --depth from 1 to 4096"),
    ("--depth 2", "choose --engine uring or --depth 1"),
    ("--access random-write --overlap 101", "from 0 to 100"),
    ("--access random-read --overlap nan", "from 0 to 100"),
    ("--overlap 50", "access write does not overlap"),
    ("--access read --sync fsync", "access read has nothing to sync"),
    ("--access random-read --end-sync", "access random-read has nothing to sync"),
    ("--transfer mmap --access append", "a mapping cannot append"),
    ("--transfer mmap --engine uring", "engine uring has no mappings"),
    ("--sync msync", "sync mode msync is for mappings"),
    ("--transfer mmap --sync osync", "choose --sync msync"),
    ("--transfer direct --sync sync-file-range", "choose --sync fdatasync"),
    ("--access append --shared --threads 2 --time 1", "cannot start over"),
    ("--access append --initial allocated", "leave out --initial"),
    ("--initial sparse --reuse", "files of an earlier run are not sparse"),
    ("--verify --payload constant", "choose --payload incompressible"),
    ("--verify --record 32", "no room for a stamp"),
    ("--verify --reuse", "leave out --reuse or --verify"),
    ("--verify --access random-write --transfer mmap --shared --threads 2", "mix their bytes"),
    ("--payload constant:256", "256: no byte"),
    ("--polled", "add --transfer direct"),
    ("--atomic", "add --transfer direct"),
    ("--rate 0", "0: not more than 0"),
    ("--time 0", "--time 0: nothing would be measured"),
    ("--time 5000000h --ramp 5000000h", "choose a shorter --time"),
    ("--cpus 8000", "CPU 8000"),
    ("--cpus 9-1", "expected CPUs as 0-3,6"),
    ("--repeat 0", "0 is not in 1..=10000"),
    ("--until-spread=0", "a percentage of more than 0"),
    ("--until-spread 1 --repeat 2", "allow 3 or more"),
    ("--json --csv", "cannot be used with"),
    ("--json --quiet", "cannot be used with"),
    ("-o /nowhere/at/all.json", "its directory is not there"),
];

/// The same of `bench sqlite`.
#[rustfmt::skip]
const OF_SQLITE: &[(&str, &str)] = &[
    ("--journal walrus", "choose delete, truncate"),
    ("--synchronous 7", "choose off, normal, full"),
    ("--operation upsert", "possible values: insert"),
    ("--waldio-layout Q", "or auto"),
    ("--checkpoint often", "transactions as every:100"),
    ("--cache-size big", "--cache-size"),
    ("--transactions 0", "0 is not in 1.."),
    ("--transactions 18446744073709551615", "choose 1 to"),
    ("--threads 2000", "1..=1024"),
    ("--tables 0", "0 tables"),
    ("--tables 4000000000", "4000000000 tables"),
    ("--statements 0", "0 statements"),
    ("--databases 0", "0 databases"),
    ("--databases 4000000000", "this SQLite takes at most"),
    ("--record 0", "0 record bytes"),
    ("--record 1000000000", "this SQLite takes at most"),
    ("--record 4000000000", "choose 1 to 2147483647"),
    ("--record 8GiB", "SQLite takes nothing so large"),
    ("--page-size 1000", "choose a power of two from 512 to 65536"),
    ("--page-size 4GiB", "SQLite takes nothing so large"),
    ("--rows 18446744073709551615", "choose at most"),
    ("--transactions 1099511627776 --verify", "with --rows and --transactions"),
    ("--mix insert=0 --operation mix", "must be more than 0"),
    ("--mix insert=1", "pass --operation mix"),
    ("--rate 1MiB/s", "name transactions a second"),
    ("--time 0", "--time 0: nothing would be measured"),
    ("--operation update --rows 0", "at least a row for each thread"),
    ("--operation delete --rows 19 --transactions 20", "choose --rows 20"),
    ("--operation delete --rows 39 --transactions 20 --threads 2 --shared", "choose --rows 40"),
    ("--operation delete --rows 2 --statements 3 --time 1", "choose more --rows"),
    ("--operation mix --mix update=1,delete=1 --rows 5", "no rows are left"),
    ("--operation mix --mix update=1,delete=1 --rows 1099511627776 --keys random", "a random mix, or a verification"),
    ("--wal-file steady", "a steady log in journal mode delete"),
    ("--journal wal --wal-file steady --checkpoint never --time 1", "or checkpoint"),
    ("--waldio-sync full", "options of waldio in journal mode delete"),
    ("--journal waldio --fsync", "leave --fsync out"),
    ("--journal waldio --waldio-group-ms 5", "choose --waldio-sync group"),
    ("--journal waldio --waldio-layout T --waldio-padding 4096", "only layout P has a padding"),
    ("--batch-atomic --journal wal", "batch atomic writes"),
    ("--batch-atomic --synchronous off", "batch atomic writes"),
    ("--batch-atomic --databases 2", "batch atomic writes"),
    ("--journal waldio --sqlite-lib libsqlite3.so.0", "--waldio-lib"),
    ("--sqlite-lib /no/such/lib.so", "/no/such/lib.so"),
    ("--sqlite-lib /bin/sh", "/bin/sh"),
];

#[test]
fn what_makes_no_sense_is_bad_usage_and_names_the_choice() {
    let target = directory();
    for (workload, table) in [("file", OF_FILES), ("sqlite", OF_SQLITE)] {
        for (flags, expected) in table {
            let error = refused(&format!("bench {workload} DIR {flags}"), target.path(), 2);
            assert!(error.contains(expected), "{flags}: {error}");
            assert_eq!(names(target.path()), [""; 0], "{flags}");
        }
    }
}

#[test]
fn a_target_that_is_no_place_is_refused() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let file = name(file.path());
    for target in ["/nowhere/at/all", "/dev/null", file] {
        let error = refused("bench file DIR --destroy-data", Path::new(target), 2);
        assert!(error.starts_with(&format!("iostep: {target}: ")), "{error}");
        let output = iostep("bench sqlite DIR", Path::new(target));
        assert!(matches!(output.status.code(), Some(1 | 2)), "{output:?}");
        assert!(text(&output.stderr).contains(target), "{output:?}");
    }
}

#[test]
fn fewer_transactions_than_threads_are_done_by_each_thread() {
    let target = directory();
    let line = "sqlite DIR --transactions 1 --threads 4 --journal memory --synchronous off";
    let (document, _) = measured(line, target.path());
    let each = document.runs[0].threads.iter();
    let each: Vec<u64> = each.map(|thread| thread.operations).collect();
    assert_eq!(each, [1; 4]);
}

#[test]
fn a_file_run_counts_what_it_did_and_leaves_nothing() {
    let target = directory();
    let line = "file DIR --size 256KiB --threads 2 --sync fsync --sync-every 4 --repeat 2 \
                --verify --think 1ms";
    let (document, summary) = measured(line, target.path());
    assert_eq!(document.runs.len(), 2);
    for run in &document.runs {
        assert_eq!(run.state, RunState::Complete);
        assert_eq!((run.operations, run.bytes), (128, 512 << 10));
        // Pauses are no part of an operation, but of the time.
        assert!(run.elapsed_ns >= 63_000_000);
        let verification = run.verification.as_ref().expect("verified");
        assert_eq!(verification.wrong, 0);
        let syncs = run.latencies.iter().find(|l| l.step.name() == "sync");
        assert_eq!(syncs.map(|latency| latency.histogram.count()), Some(32));
    }
    assert_eq!(summary["runs"][1]["operations"], 128);
    assert_eq!(document.arguments[..2], ["bench", "file"]);
    assert_eq!(names(target.path()), [""; 0]);
}

#[test]
fn a_sqlite_run_counts_what_it_did_and_names_its_library() {
    let target = directory();
    let line = "sqlite DIR --transactions 20 --journal wal --verify";
    let (document, _) = measured(line, target.path());
    assert_eq!(document.runs[0].operations, 20);
    let library = document.environment.sqlite.expect("a library");
    assert!(library.version.starts_with("3."));
    let journal = library
        .settings
        .iter()
        .find(|(name, _)| name == "journal_mode");
    assert_eq!(journal.map(|(_, value)| value.as_str()), Some("wal"));
    assert_eq!(names(target.path()), [""; 0]);
}

#[test]
fn every_output_holds_the_same_result() {
    let target = directory();
    let out = directory();
    let line = format!(
        "bench file {} --size 64KiB --repeat 2 --json -o DIR/r.json --html DIR/r.html \
         --log DIR/r.csv --seconds DIR/s.csv",
        name(target.path())
    );
    std::fs::write(out.path().join("r.json"), "what was there before").expect("write");
    let output = iostep(&line, out.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = std::fs::read(out.path().join("r.json")).expect("the result");
    assert_eq!(text(&written), text(&output.stdout).trim_end());
    let page = std::fs::read_to_string(out.path().join("r.html")).expect("the page");
    assert!(page.trim_end().ends_with("</html>"));
    for foreign in ["src=\"http", "href=\"http", "@import", "fetch("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let log = std::fs::read_to_string(out.path().join("r.csv")).expect("the log");
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("run,thread,end_ns,latency_ns,sync_ns"));
    let document = Document::parse(Path::new("r.json"), &written).expect("a document");
    let mut latency_ns = [0, 0];
    for line in lines {
        let fields: Vec<u64> = line
            .split(',')
            .map(|f| f.parse().expect("a number"))
            .collect();
        latency_ns[fields[0] as usize - 1] += fields[3];
    }
    let total = document
        .runs
        .iter()
        .map(|run| run.latencies[0].histogram.sum_ns());
    assert_eq!(latency_ns.to_vec(), total.collect::<Vec<_>>());
    let seconds = std::fs::read_to_string(out.path().join("s.csv")).expect("the seconds");
    let operations = seconds.lines().skip(1).map(|line| {
        let field = line.split(',').nth(3).expect("its operations");
        field.parse::<u64>().expect("a number")
    });
    let done = document.runs.iter().map(|run| run.operations);
    assert_eq!(operations.sum::<u64>(), done.sum::<u64>());
    assert_eq!(names(out.path()), ["r.csv", "r.html", "r.json", "s.csv"]);
}

#[test]
fn csv_has_a_line_for_each_run_and_quiet_says_nothing() {
    let target = directory();
    for workload in ["file DIR --size 64KiB", "sqlite DIR --transactions 20"] {
        let three = |flag: &str| {
            let line = format!("bench {workload} --repeat 3 {flag}");
            iostep(&line, target.path())
        };
        let csv = three("--csv");
        assert_eq!((csv.status.code(), text(&csv.stderr)), (Some(0), ""));
        let lines = text(&csv.stdout).lines();
        let fields: Vec<usize> = lines.map(|line| line.split(',').count()).collect();
        assert!(fields[0] > 1);
        assert_eq!(fields, [fields[0]; 4], "{}", text(&csv.stdout));
        let quiet = three("--quiet");
        assert_eq!((quiet.status.code(), text(&quiet.stdout)), (Some(0), ""));
    }
}

/// True once the threads of a run have begun.
fn is_running(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    tasks.into_iter().flatten().flatten().any(|task| {
        let name = std::fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.starts_with("load-"))
    })
}

/// Starts a command that runs for long.
fn started(line: &str, directory: &Path) -> Child {
    command(line, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

/// The cell that a matrix runs now.
fn cell_of(matrix: &Child) -> Option<u32> {
    let id = matrix.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_signal_ends_the_run_and_keeps_what_was_measured() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let target = directory();
        let child = started(
            "bench file DIR --size 64KiB --time 1h --json",
            target.path(),
        );
        until("a run", || is_running(child.id()));
        // A second and a third one must not come between it and the removal of its files.
        for _ in 0..3 {
            kill_process(Pid::from_child(&child), signal).expect("a signal");
        }
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let document = Document::parse(Path::new("output"), &output.stdout).expect("a document");
        assert_eq!(document.runs[0].state, RunState::Interrupted);
        assert!(text(&output.stderr).contains("interrupted"));
        assert_eq!(names(target.path()), [""; 0]);
    }
}

#[test]
fn a_signal_is_heard_while_rows_are_made() {
    for signal in [Signal::INT, Signal::TERM] {
        let target = directory();
        // Enough of them that making them takes seconds.
        let line = "bench sqlite DIR --operation read --rows 2000000";
        let child = started(line, target.path());
        let database = target.path().join("iostep-bench/sqlite-0-0.db");
        until("the database", || database.exists());
        kill_process(Pid::from_child(&child), signal).expect("a signal");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert_eq!(names(target.path()), [""; 0]);
    }
}

/// The matrix of a directory, whose results come beside it.
const MATRIX: &str = "bench run DIR/jobs.toml --results DIR --json";

/// A matrix of quick cells, then one that takes an hour, then a quick one.
fn matrix(target: &Path) -> String {
    format!(
        "[defaults]\nworkload = 'file'\ntarget = '{}'\nsize = '64KiB'\n\
         [[job]]\nname = 'quick'\naccess = ['write', 'random-write']\nsync = ['none', 'fsync']\n\
         [[job]]\nname = 'slow'\ntime = '1h'\n\
         [[job]]\nname = 'last'\naccess = 'append'\n",
        target.display()
    )
}

fn times(results: &Path) -> Vec<(String, SystemTime)> {
    let ends = |name: &String| name.ends_with(".json");
    let names = names(results).into_iter().filter(ends);
    names
        .map(|name| {
            let metadata = std::fs::metadata(results.join(&name)).expect("a result");
            (name, metadata.modified().expect("a time"))
        })
        .collect()
}

#[test]
fn a_killed_matrix_goes_on_where_it_was() {
    let (target, results) = (directory(), directory());
    let jobs = results.path().join("jobs.toml");
    std::fs::write(&jobs, matrix(target.path())).expect("write");
    let mut child = command(MATRIX, results.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    until("four results", || times(results.path()).len() == 4);
    until("the slow cell's file", || {
        target.path().join("iostep-bench").exists()
    });
    let taken = refused(MATRIX, results.path(), 1);
    assert!(taken.contains("another iostep bench run"), "{taken}");
    child.kill().expect("a kill");
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(9));
    // The kernel ends the cell, which cleans up behind itself.
    until("a clean target", || names(target.path()).is_empty());

    let before = times(results.path());
    let quick = matrix(target.path()).replace("time = '1h'", "access = 'read'");
    std::fs::write(&jobs, quick).expect("write");
    let output = iostep(MATRIX, results.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let after = times(results.path());
    assert!(
        before.iter().all(|result| after.contains(result)),
        "{before:?} {after:?}"
    );
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let named: Vec<_> = rows
        .iter()
        .map(|row| row["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(named, ["quick", "quick", "quick", "quick", "slow", "last"]);
    assert!(rows.iter().all(|row| row["complete"] == true));

    // A result that somebody has damaged is none.
    let damaged = results.path().join(&after[0].0);
    std::fs::write(&damaged, "{").expect("write");
    assert_eq!(iostep(MATRIX, results.path()).status.code(), Some(0));
    Document::read(&damaged).expect("a new result");
    let again = times(results.path());
    assert_eq!(again[1..], after[1..]);
}

#[test]
fn an_interrupted_matrix_ends_its_cell_and_marks_what_is_partial() {
    let (target, results) = (directory(), directory());
    let jobs = results.path().join("jobs.toml");
    std::fs::write(&jobs, matrix(target.path())).expect("write");
    let child = started(MATRIX, results.path());
    until("four results", || times(results.path()).len() == 4);
    until("the slow cell", || cell_of(&child).is_some_and(is_running));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a signal");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let slow = &rows[4];
    assert_eq!(slow["complete"], false);
    assert_eq!(slow["summary"]["runs"][0]["state"], "interrupted");
    assert_eq!(rows[5]["file"], Value::Null);
    assert_eq!(names(target.path()), [""; 0]);
}

/// A file of jobs that all have this target, in the directory of [`MATRIX`].
fn write_jobs(jobs: &str, target: &Path, results: &Path) {
    let defaults = format!("[defaults]\ntarget = '{}'\n", target.display());
    std::fs::write(results.join("jobs.toml"), defaults + jobs).expect("write");
}

/// Every complete result, in the order of their names, which begin with their job's.
fn documents(results: &Path) -> Vec<(String, Document)> {
    let all = times(results).into_iter();
    all.map(|(name, _)| {
        let document = Document::read(&results.join(&name)).expect("a result");
        (
            name.split('-').next().unwrap_or_default().to_owned(),
            document,
        )
    })
    .collect()
}

/// Four cells of one job and two of the other.
const CROSSED: &str = "
[[job]]
name = 'files'
workload = 'file'
size = '64KiB'
access = ['write', 'random-write']
threads = [1, 2]
verify = true

[[job]]
name = 'rows'
workload = 'sqlite'
journal = ['wal', 'delete']
transactions = 7
";

#[test]
fn a_matrix_does_every_cell_of_its_job_file_once() {
    let (target, results) = (directory(), directory());
    write_jobs(CROSSED, target.path(), results.path());
    let output = iostep(MATRIX, results.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut done: Vec<String> = documents(results.path())
        .iter()
        .map(|(_, document)| {
            let cell = match &document.job {
                Job::File(job) => format!("{} {}", job.access, job.threads),
                Job::Sqlite(job) => format!("{:?}", job.journal),
            };
            let operations = document.runs.iter().map(|run| run.operations);
            format!("{cell}: {:?}", operations.collect::<Vec<_>>())
        })
        .collect();
    done.sort();
    let expected = [
        "Delete: [7]",
        "Wal: [7]",
        "random-write 1: [16]",
        "random-write 2: [32]",
        "write 1: [16]",
        "write 2: [32]",
    ];
    assert_eq!(done, expected);
    // Nothing is left to be done.
    let before = times(results.path());
    let again = iostep(MATRIX, results.path());
    let rows: Vec<Value> = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!((again.status.code(), rows.len()), (Some(0), 6));
    assert_eq!(times(results.path()), before);
    assert_eq!(names(target.path()), [""; 0]);
}

/// Cells of a moment, of which the second is slow.
const SLOW_MIDDLE: &str = "
workload = 'file'
size = '64KiB'
[[job]]
name = 'first'
[[job]]
name = 'middle'
think = '20ms'
repeat = 5
[[job]]
name = 'last'
";

#[test]
fn a_cell_that_was_cut_short_is_done_again_whole() {
    let named = |results: &Path| -> Vec<(String, usize)> {
        let all = documents(results).into_iter();
        all.map(|(name, document)| (name, document.runs.len()))
            .collect()
    };
    for signal_to_all in [None, Some(Signal::INT), Some(Signal::TERM)] {
        let (target, results) = (directory(), directory());
        write_jobs(SLOW_MIDDLE, target.path(), results.path());
        let matrix = started(MATRIX, results.path());
        until("the first result", || !times(results.path()).is_empty());
        until("the slow cell", || cell_of(&matrix).is_some_and(is_running));
        let cell = cell_of(&matrix).expect("a cell");
        let (signal, process) = match signal_to_all {
            None => (Signal::KILL, Pid::from_raw(cell as i32).expect("a process")),
            Some(signal) => (signal, Pid::from_child(&matrix)),
        };
        kill_process(process, signal).expect("a signal");
        let output = matrix.wait_with_output().expect("it ends");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        let process = Path::new("/proc").join(cell.to_string());
        until("the cell's end", || !process.exists());
        let first = ("first".to_owned(), 1);
        let last = ("last".to_owned(), 1);
        if signal_to_all.is_none() {
            assert!(error.contains("middle"), "{error}");
            assert_eq!(named(results.path()), [first.clone(), last.clone()]);
        } else {
            assert_eq!(named(results.path()), std::slice::from_ref(&first));
            assert_eq!(names(target.path()), [""; 0]);
        }
        let before = times(results.path());
        let output = iostep(MATRIX, results.path());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let after = times(results.path());
        assert!(before.iter().all(|result| after.contains(result)));
        assert_eq!(
            named(results.path()),
            [first, last, ("middle".to_owned(), 5)]
        );
        assert_eq!(names(target.path()), [""; 0]);
    }
}

#[test]
fn a_cell_that_fails_does_not_end_the_matrix() {
    let (target, results) = (directory(), directory());
    let jobs = results.path().join("jobs.toml");
    let jobs_text = format!(
        "[[job]]\nworkload = 'file'\ntarget = '{}'\nsize = [5000, '64KiB']\n",
        target.path().display()
    );
    std::fs::write(&jobs, jobs_text).expect("write");
    let output = iostep(&format!("{MATRIX} --html DIR/all.html"), results.path());
    assert_eq!(output.status.code(), Some(1));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let complete: Vec<_> = rows.iter().map(|row| &row["complete"]).collect();
    assert_eq!(complete, [false, true]);
    let error = text(&output.stderr);
    assert!(error.contains("file-1 size=5000: 5000 bytes"), "{error}");
    let page = std::fs::read_to_string(results.path().join("all.html"));
    let page = page.expect("a page of what there is");
    assert!(page.contains("write of 4 KiB by 1 thread"), "{page}");
    assert_eq!(times(results.path()).len(), 1);
}

#[test]
fn a_job_file_is_checked_before_anything_runs() {
    let (target, results) = (directory(), directory());
    let jobs = results.path().join("jobs.toml");
    let broken = matrix(target.path()).replace("append", "upend");
    std::fs::write(&jobs, broken).expect("write");
    let line = "bench run DIR/jobs.toml --results DIR/made";
    let error = refused(line, results.path(), 2);
    let expected = format!(
        "iostep: {}: job 3 (last): invalid value 'upend'",
        jobs.display()
    );
    assert!(error.starts_with(&expected), "{error}");
    assert!(!results.path().join("made").exists());
}

#[test]
fn two_results_are_compared_and_a_worse_one_fails_if_asked() {
    let out = directory();
    let write = |name: &str, slower: u64| {
        let mut document = iostep_analyze::bench::fixture::write_fdatasync(5);
        for run in &mut document.runs {
            run.elapsed_ns *= slower;
        }
        document.write(&out.path().join(name)).expect("write");
    };
    write("fast.json", 1);
    write("slow.json", 2);
    for (line, status) in [
        ("DIR/fast.json DIR/slow.json", 0),
        ("DIR/fast.json DIR/slow.json --fail-above 40", 1),
        ("DIR/fast.json DIR/slow.json --fail-above 60", 0),
        ("DIR/slow.json DIR/fast.json --fail-above 5", 0),
        ("DIR/fast.json DIR/fast.json --fail-above 0.001", 0),
        // Both wrote the same, and five runs tell of the rest.
        (
            "DIR/fast.json DIR/slow.json --fail-on written,flushes,p99",
            0,
        ),
        (
            "DIR/fast.json DIR/slow.json --fail-on written,throughput",
            1,
        ),
        (
            "DIR/fast.json DIR/slow.json --fail-on throughput --fail-above 60",
            0,
        ),
    ] {
        let output = iostep(&format!("compare {line}"), out.path());
        assert_eq!(output.status.code(), Some(status), "{line}");
        assert!(!output.stdout.is_empty(), "{line}");
    }
    let output = iostep("compare DIR/fast.json DIR/slow.json --json", out.path());
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = value["rows"].as_array().expect("rows");
    let ratio = rows[0]["ratio"].as_f64().expect("a ratio");
    assert!((ratio - 0.5).abs() < 0.05, "{ratio}");
}

#[test]
fn results_that_cannot_be_compared_are_refused() {
    use iostep_analyze::bench::fixture;
    let out = directory();
    for (name, document) in [
        ("file.json", fixture::write_fdatasync(1)),
        ("sqlite.json", fixture::sqlite_wal(1)),
    ] {
        document.write(&out.path().join(name)).expect("write");
    }
    for more in ["", " --fail-above 5", " --json"] {
        let line = format!("compare DIR/file.json DIR/sqlite.json{more}");
        let error = refused(&line, out.path(), 2);
        let expected = "one is of files, the other of SQLite";
        assert!(error.contains(expected), "{error}");
    }
    // What cannot be told is no success.
    for (more, measure) in [
        ("--fail-on flushes,p99", "total p99"),
        ("--fail-above 5", "operations/s"),
    ] {
        let output = iostep(
            &format!("compare DIR/file.json DIR/file.json {more}"),
            out.path(),
        );
        assert_eq!(output.status.code(), Some(2), "{more}");
        let error = text(&output.stderr);
        let expected = format!("{measure}: too few runs to tell");
        assert!(error.contains(&expected), "{error}");
    }
    let line = "compare DIR/file.json DIR/file.json --fail-on flushes";
    assert_eq!(iostep(line, out.path()).status.code(), Some(0));
}

#[test]
fn a_result_that_is_none_is_an_error_of_one_line() {
    let out = directory();
    let path = out.path().join("r.json");
    let document = iostep_analyze::bench::fixture::write_fdatasync(1);
    document
        .write(&out.path().join("good.json"))
        .expect("write");
    let whole = serde_json::to_vec(&document).expect("JSON");
    assert!(matches!(document.job, Job::File(_)));
    for content in [
        &whole[..whole.len() / 2],
        b"",
        b"[]",
        b"{}",
        b"{\"schema_version\": 99}",
        b"\xff",
    ] {
        std::fs::write(&path, content).expect("write");
        for files in [
            "DIR/r.json DIR/good.json --json",
            "DIR/good.json DIR/r.json",
        ] {
            let error = refused(&format!("compare {files}"), out.path(), 2);
            let begins = error.starts_with(&format!("iostep: {}: ", path.display()));
            assert!(begins && error.lines().count() == 1, "{error}");
        }
    }
    let missing = refused("compare DIR/a DIR/b", Path::new("/nowhere"), 2);
    assert!(missing.starts_with("iostep: /nowhere/a: "), "{missing}");
}

#[test]
fn the_profile_prints_the_table_of_mobibench() {
    // Its reads are O_DIRECT, which a tmpfs has not.
    let target = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let line =
        "bench --profile mobibench DIR --write-size 64KiB --read-size 64KiB --transactions 5";
    let output = iostep(line, target.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let titles: Vec<_> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().next())
        .collect();
    let expected = [
        "Seq.Write",
        "Seq.Read",
        "Rand.Write",
        "Rand.Read",
        "SQLite.Insert",
        "SQLite.Update",
        "SQLite.Delete",
    ];
    assert_eq!(titles, expected.map(Some));
    for (unit, count) in [(" KB/s", 2), (" IOPS(4KB)", 2), (" TPS", 3)] {
        assert_eq!(table.matches(unit).count(), count, "{table}");
    }
    assert_eq!(names(target.path()), [""; 0]);
}

#[test]
fn help_fits_a_narrow_terminal() {
    for command in [
        "bench",
        "bench file",
        "bench sqlite",
        "bench run",
        "compare",
    ] {
        let output = iostep(&format!("{command} --help"), Path::new(""));
        assert_eq!(output.status.code(), Some(0));
        let help = text(&output.stdout);
        assert!(help.contains("Example"), "{command}");
        let long = help.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{command}");
    }
}
