//! Real programs, recorded. No rights are needed: a program may trace its own children.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iostep_model::syscall::Syscall as S;

use super::*;
use crate::syscalls::record::{self, Record};
use crate::syscalls::table::{self, Shape};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Clone, Debug)]
struct Seen {
    tid: u32,
    number: u16,
    result: i64,
    flags: u8,
    word: [u64; 10],
    text: String,
}

impl Seen {
    fn of(record: &Record<'_>) -> Seen {
        Seen {
            tid: record.tid,
            number: record.number,
            result: record.result,
            flags: record.flags,
            word: record.word,
            text: String::from_utf8_lossy(record.text[0]).into_owned(),
        }
    }

    fn name(&self) -> &'static str {
        table::by_number(self.number).map_or("", |entry| entry.name)
    }

    fn is_open(&self) -> bool {
        let shape = table::by_number(self.number).map(|entry| entry.shape);
        matches!(
            shape,
            Some(Shape::Call(S::Open | S::Openat | S::Openat2 | S::Creat))
        )
    }
}

fn all(recorded: Recorded) -> Vec<Seen> {
    let (mut spool, mut bytes, mut all) = (recorded.spool, Vec::new(), Vec::new());
    while spool.next(&mut bytes).expect("readable") {
        all.push(Seen::of(&Record::parse(&bytes).expect("a record")));
    }
    all
}

fn words(command: &[&str]) -> Vec<OsString> {
    command.iter().map(OsString::from).collect()
}

/// Where a recording goes.
fn output(directory: &Path) -> (spool::Writer, Header) {
    let spool = spool::Writer::create(&directory.join("trace")).expect("a spool");
    (spool, Header::default())
}

fn of(words: Vec<OsString>) -> super::Command {
    super::Command { words, user: None }
}

fn record(words_of: &[&str]) -> (Vec<Seen>, ExitStatus) {
    let directory = tempfile::tempdir().expect("a directory");
    let stop = AtomicBool::new(false);
    let recorded = command(&of(words(words_of)), output(directory.path()), None, &stop);
    let (recorded, status) = recorded.expect("a recording");
    (all(recorded), status)
}

fn shell(script: &str, directory: &Path) -> (Vec<Seen>, ExitStatus) {
    let directory = directory.to_str().expect("UTF-8");
    record(&["sh", "-c", &format!("cd {directory}; {script}")])
}

/// This program, which runs one of the programs below instead of tests.
fn own(program: &str, directory: &Path) -> Vec<OsString> {
    let own = std::env::current_exe().expect("a path");
    let name = format!("syscalls::ptrace::tests::{program}");
    let directory = format!("IOSTEP_TEST_DIRECTORY={}", directory.display());
    let mut command = words(&["env", &directory]);
    command.push(own.into());
    command.extend(words(&["--exact", &name, "--ignored"]));
    command
}

fn program_directory() -> std::path::PathBuf {
    std::env::var_os("IOSTEP_TEST_DIRECTORY").map_or_else(|| "/nowhere".into(), Into::into)
}

fn count(seen: &[Seen], number: u16) -> usize {
    seen.iter().filter(|seen| seen.number == number).count()
}

/// What strace prints of calls that a recording has too, name and result, sorted.
fn by_strace(script: &str, directory: &Path) -> Vec<(String, i64)> {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let status = Command::new("strace")
        .args(["-f", "-o"])
        .arg(log.path())
        .args(["sh", "-c"])
        .arg(format!("cd {}; {script}", directory.display()))
        .status();
    assert!(status.expect("strace").success());
    let text = fs::read_to_string(log.path()).expect("text");
    let known: BTreeSet<&str> = compared().map(|entry| entry.name).collect();
    let mut calls = Vec::new();
    for line in text.lines() {
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let call = line.strip_prefix("<... ").unwrap_or(line);
        let end = call.find(['(', ' ']).unwrap_or(0);
        let Some((_, result)) = call.rsplit_once(" = ") else {
            continue;
        };
        if known.contains(&call[..end]) {
            let mut words = result.split(' ');
            let number = words.next().unwrap_or_default();
            let number = match number.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16).expect(line),
                None => number.parse().expect(line),
            };
            let result = match words.next() {
                Some(name) if number == -1 => {
                    -i64::from(iostep_model::syscall::Errno::from_name(name).expect(line).0)
                }
                _ => number,
            };
            calls.push((call[..end].to_owned(), result));
        }
    }
    calls.sort();
    calls
}

/// Calls whose results are no addresses and no numbers of processes, and that are recorded
/// themselves. strace shows every mmap.
fn compared() -> impl Iterator<Item = &'static table::Entry> {
    let other = |shape| {
        matches!(
            shape,
            Shape::Call(S::Mmap) | Shape::Fork | Shape::Receive | Shape::Take
        )
    };
    table::entries().filter(move |entry| !other(entry.shape))
}

#[test]
fn a_script_gives_the_calls_and_results_that_strace_prints() {
    let script = "exec >/dev/null 2>&1; echo hello > a; cat a a >> b; mv a c; ln c d; ln -s c e; \
                  cat missing; mkdir f; (cat b | wc -c); ls; stat -c %s e; chmod 600 c; \
                  truncate -s 9999 c; dd if=c of=g bs=1000 conv=fsync status=none; rm -r f; cat g g g; true";
    let here = tempfile::tempdir().expect("a directory");
    let (seen, status) = shell(script, here.path());
    assert!(status.success());
    let there = tempfile::tempdir().expect("a directory");
    let expected = by_strace(script, there.path());
    let known: BTreeSet<&str> = compared().map(|entry| entry.name).collect();
    let ours = seen.iter().filter(|seen| known.contains(seen.name()));
    let mut ours: Vec<_> = ours
        .map(|seen| (seen.name().to_owned(), seen.result))
        .collect();
    ours.sort();
    let counted = |calls: &[(String, i64)]| {
        let mut counts = BTreeMap::<String, usize>::new();
        for (name, _) in calls {
            *counts.entry(name.clone()).or_default() += 1;
        }
        counts
    };
    assert_eq!(counted(&ours), counted(&expected));
    let differ: Vec<_> = ours.iter().zip(&expected).filter(|(a, b)| a != b).collect();
    assert!(differ.is_empty(), "{differ:?}");
    assert!(ours.len() > 500, "{} calls", ours.len());
    assert_eq!(count(&seen, record::EXIT), count(&seen, record::FORK) + 1);
}

#[test]
fn what_an_open_made_or_cut_is_seen_as_it_was_before() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("old"), [7; 1234]).expect("a file");
    let script = "cat old > new; echo > old; cat new > /dev/null";
    let (seen, _) = shell(script, directory.path());
    let of = |name: &str| -> Vec<(u64, bool)> {
        let opens = seen
            .iter()
            .filter(|seen| seen.is_open() && seen.text == name);
        let opens = opens.filter(|seen| seen.flags & record::SEEN != 0);
        opens
            .map(|seen| (seen.word[8], seen.word[9] >> 52 & 1 == 1))
            .collect()
    };
    assert_eq!(of("old"), [(1234, false), (1234, false)], "read, then cut");
    assert_eq!(of("new"), [(0, true), (1234, false)], "made, then read");
}

#[test]
fn the_exit_status_and_signals_are_the_programs() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_, status) = shell("exit 42", directory.path());
    assert_eq!(status.code(), Some(42));
    let (_, status) = shell("kill -KILL $$", directory.path());
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    let trapped = "trap 'echo got > f; exit 7' USR1; kill -USR1 $$; exit 1";
    let (_, status) = shell(trapped, directory.path());
    assert_eq!(status.code(), Some(7));
    assert_eq!(
        fs::read_to_string(directory.path().join("f")).expect("f"),
        "got\n"
    );
}

#[test]
fn a_command_that_is_not_there_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let stop = AtomicBool::new(false);
    let failed = command(
        &of(words(&["/nowhere/at-all"])),
        output(directory.path()),
        None,
        &stop,
    );
    let error = failed.expect_err("no such command").to_string();
    assert!(
        error.starts_with("/nowhere/at-all: cannot run: No such file"),
        "{error}"
    );
}

#[test]
fn a_child_killed_in_a_call_leaves_it_unfinished() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = "mkfifo p; cat p & until grep -q cat /proc/$!/comm && \
                  grep -q '^State:.S' /proc/$!/status; do :; done; kill -9 $!; wait $!; exit 3";
    let (seen, status) = shell(script, directory.path());
    assert_eq!(status.code(), Some(3));
    let unfinished = |seen: &&Seen| seen.flags & record::UNFINISHED != 0;
    let cut: Vec<&Seen> = seen.iter().filter(unfinished).collect();
    assert_eq!(cut.len(), 1, "{cut:?}");
    assert_eq!((cut[0].is_open(), cut[0].text.as_str()), (true, "p"));
    assert_eq!(count(&seen, record::EXIT), count(&seen, record::FORK) + 1);
}

#[test]
fn a_program_that_stops_itself_stays_stopped_until_it_is_continued() {
    let directory = tempfile::tempdir().expect("a directory");
    let of = |name: &str| directory.path().join(name);
    let script = "echo $$ > before; kill -STOP $$; echo > after; exit 5";
    let status = std::thread::scope(|scope| {
        let run = scope.spawn(|| shell(script, directory.path()).1);
        let read = || fs::read_to_string(of("before")).unwrap_or_default();
        wait_for(|| read().ends_with('\n'));
        // Long enough for a program that goes on by mistake.
        std::thread::sleep(Duration::from_millis(300));
        assert!(!of("after").exists(), "it went on by itself");
        wait_for(|| {
            let continued = Command::new("kill").args(["-CONT", read().trim()]).output();
            continued.is_ok() && of("after").exists()
        });
        run.join().expect("a recording")
    });
    assert_eq!(status.code(), Some(5));
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < PATIENCE, "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
#[ignore = "a program for the tests below"]
fn threads_that_write() {
    let directory = program_directory();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = directory.join(format!("of-{thread}"));
            scope.spawn(move || {
                use std::io::Write;
                let mut file = fs::File::create(path).expect("a file");
                for _ in 0..500 {
                    file.write_all(&[b'x'; 333]).expect("room");
                }
            });
        }
    });
    assert!(Command::new("true").status().expect("true").success());
}

#[test]
fn every_call_of_every_thread_is_recorded() {
    let directory = tempfile::tempdir().expect("a directory");
    let spool = tempfile::tempdir().expect("a directory");
    let stop = AtomicBool::new(false);
    let program = own("threads_that_write", directory.path());
    let (recorded, status) =
        command(&of(program), output(spool.path()), None, &stop).expect("a recording");
    assert!(status.success());
    let seen = all(recorded);
    let mut writers = BTreeMap::<u32, usize>::new();
    for write in seen
        .iter()
        .filter(|seen| seen.name() == "write" && seen.result == 333)
    {
        *writers.entry(write.tid).or_default() += 1;
    }
    assert_eq!(writers.into_values().collect::<Vec<_>>(), [500; 4]);
    let forks = |shares: u64| {
        let forks = seen.iter().filter(|seen| seen.number == record::FORK);
        forks.filter(|seen| seen.word[1] == shares).count()
    };
    assert!(
        forks(7) >= 5,
        "the test's thread and four of its own share everything"
    );
    assert_eq!(forks(0), 1, "true");
    assert_eq!(forks(7) + forks(0), count(&seen, record::FORK));
    assert_eq!(count(&seen, record::EXIT), count(&seen, record::FORK) + 1);
}

#[test]
#[ignore = "a program for the test below"]
fn a_thread_that_executes() {
    use std::os::unix::process::CommandExt;
    let thread = std::thread::spawn(|| Command::new("sh").args(["-c", "exit 9"]).exec());
    panic!("{:?}", thread.join());
}

#[test]
fn a_thread_that_executes_becomes_its_process() {
    let spool = tempfile::tempdir().expect("a directory");
    let stop = AtomicBool::new(false);
    let program = own("a_thread_that_executes", spool.path());
    let (recorded, status) =
        command(&of(program), output(spool.path()), None, &stop).expect("a recording");
    assert_eq!(status.code(), Some(9));
    let seen = all(recorded);
    let execs = seen.iter().filter(|seen| seen.number == record::EXEC);
    let moved: Vec<&Seen> = execs
        .filter(|seen| seen.word[0] != u64::from(seen.tid))
        .collect();
    assert_eq!(moved.len(), 1);
    let last = seen.last().expect("records");
    assert_eq!(
        (last.number, last.tid, last.word[0]),
        (record::EXIT, moved[0].tid, 1)
    );
}

#[test]
fn a_process_is_joined_and_left_unharmed() {
    let directory = tempfile::tempdir().expect("a directory");
    let of = |name: &str| directory.path().join(name);
    let script = "exec 5> log; echo > ready; until [ -e go ]; do sleep 0.01; done; \
                  echo more >&5; mv log moved; echo > out; until [ -e end ]; do sleep 0.01; done; \
                  exit 6";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .current_dir(directory.path())
        .spawn()
        .expect("sh");
    wait_for(|| of("ready").exists());
    let stop = AtomicBool::new(false);
    let spool = tempfile::tempdir().expect("a directory");
    let recorded = std::thread::scope(|scope| {
        let run = scope.spawn(|| process(child.id(), output(spool.path()), None, &stop));
        wait_for(|| tracer_of(child.id()) != "0");
        fs::write(of("go"), "").expect("go");
        wait_for(|| of("out").exists());
        stop.store(true, Ordering::Relaxed);
        run.join().expect("no panic").expect("a recording")
    });
    assert_eq!(tracer_of(child.id()), "0");
    assert_eq!(recorded.spool.beginning.present.process, Some(child.id()));
    fs::write(of("end"), "").expect("end");
    assert_eq!(child.wait().expect("a status").code(), Some(6));
    let seen = all(recorded);
    let opened = |name: &str| seen.iter().any(|seen| seen.is_open() && seen.text == name);
    assert!(opened("out") && !opened("log") && !opened("ready"));
    let written = |seen: &&Seen| seen.name() == "write" && seen.result == 5;
    assert_eq!(seen.iter().filter(written).count(), 1);
    assert!(
        seen.iter()
            .any(|seen| seen.text == "log" && seen.name().starts_with("rename"))
    );
}

fn tracer_of(process: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    line.expect("a line").trim().to_owned()
}

#[test]
fn asked_to_end_a_command_ends_with_all_that_it_started() {
    let directory = tempfile::tempdir().expect("a directory");
    let stop = AtomicBool::new(false);
    let (seen, status) = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let line = format!(
                "cd {}; sleep 1000 & echo > ready; wait",
                directory.path().display()
            );
            let spool = tempfile::tempdir().expect("a directory");
            let recorded = command(
                &of(words(&["sh", "-c", &line])),
                output(spool.path()),
                None,
                &stop,
            );
            let (recorded, status) = recorded.expect("a recording");
            (all(recorded), status)
        });
        wait_for(|| directory.path().join("ready").exists());
        stop.store(true, Ordering::Relaxed);
        run.join().expect("no panic")
    });
    assert_eq!(status.signal(), Some(libc::SIGTERM));
    assert_eq!(count(&seen, record::EXIT), 2);
}

/// Makes a child that asks not to be traced, which writes a file; gives how it ended.
fn untraced_child(third: bool, name: &std::ffi::CStr) -> i32 {
    let flags = (libc::CLONE_UNTRACED | libc::SIGCHLD) as libc::c_ulong;
    // `struct clone_args`: flags first, the signal of the end fifth.
    let mut arguments = [0_u64; 11];
    arguments[0] = libc::CLONE_UNTRACED as u64;
    arguments[4] = libc::SIGCHLD as u64;
    // SAFETY: clone without a stack is a fork; the child calls only what may be called then, and
    // ends.
    unsafe {
        let child = match third {
            false => libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0),
            true => libc::syscall(
                libc::SYS_clone3,
                arguments.as_ptr(),
                size_of_val(&arguments),
            ),
        };
        if child == 0 {
            let file = libc::open(name.as_ptr(), libc::O_WRONLY | libc::O_CREAT, 0o644);
            let wrote = libc::write(file, c"hello".as_ptr().cast(), 5);
            libc::_exit(i32::from(wrote != 5));
        }
        let mut status = -1;
        libc::waitpid(child as libc::pid_t, &raw mut status, libc::__WALL);
        // The flags are the program's own again.
        status | i32::from(arguments[0] != libc::CLONE_UNTRACED as u64)
    }
}

#[test]
#[ignore = "a program for the test below"]
fn children_that_ask_not_to_be_traced() {
    for (third, name) in [(false, "second"), (true, "third")] {
        let path = program_directory()
            .join(name)
            .into_os_string()
            .into_encoded_bytes();
        let path = std::ffi::CString::new(path).expect("no zero");
        assert_eq!(untraced_child(third, &path), 0, "{name}");
    }
}

#[test]
fn a_child_that_asks_not_to_be_traced_is_recorded_and_unharmed() {
    let directory = tempfile::tempdir().expect("a directory");
    let spool = tempfile::tempdir().expect("a directory");
    let stop = AtomicBool::new(false);
    let program = own("children_that_ask_not_to_be_traced", directory.path());
    let (recorded, status) =
        command(&of(program), output(spool.path()), None, &stop).expect("a recording");
    assert!(status.success(), "{status}");
    let seen = all(recorded);
    for name in ["second", "third"] {
        let opened = seen
            .iter()
            .filter(|seen| seen.is_open() && seen.text.ends_with(name));
        assert_eq!(opened.count(), 1, "{name}");
    }
    assert_eq!(count(&seen, record::UNRECORDED), 0);
}

#[test]
fn a_debugger_in_a_recorded_program_works_and_whom_it_has_is_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = "strace -f -o log sh -c 'echo traced > a; echo more > b' && echo after > c";
    let (seen, status) = shell(script, directory.path());
    assert!(status.success(), "{status}");
    let log = fs::read_to_string(directory.path().join("log")).expect("strace's text");
    assert!(log.contains("\"a\"") && log.contains("\"b\""), "{log}");
    let opened = |name: &str| seen.iter().any(|seen| seen.is_open() && seen.text == name);
    assert!(opened("c") && !opened("a"));
    assert!(count(&seen, record::UNRECORDED) >= 1);
}

#[test]
#[ignore = "a program for the test below"]
fn a_child_that_asks_to_be_traced() {
    // SAFETY: the child calls only what may be called after a fork, and ends.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            let asked = libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::_exit(if asked == 0 { 7 } else { 8 });
        }
        let mut status = -1;
        libc::waitpid(child, &raw mut status, libc::__WALL);
        status
    };
    assert_eq!(libc::WEXITSTATUS(status), 7);
}

#[test]
fn a_child_of_a_recorded_program_may_be_traced_by_its_parent() {
    let spool = tempfile::tempdir().expect("a directory");
    let stop = AtomicBool::new(false);
    let program = own("a_child_that_asks_to_be_traced", spool.path());
    let (recorded, status) =
        command(&of(program), output(spool.path()), None, &stop).expect("a recording");
    assert!(status.success(), "{status}");
    assert_eq!(count(&all(recorded), record::UNRECORDED), 1);
}

#[cfg(target_arch = "x86_64")]
#[test]
#[ignore = "a program for the test below"]
fn a_call_by_another_convention() {
    for _ in 0..3 {
        // SAFETY: getpid of 32-bit programs, which changes nothing but its result.
        unsafe {
            std::arch::asm!("int 0x80", inlateout("rax") 20_u64 => _, out("r8") _, out("r9") _,
                out("r10") _, out("r11") _);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_another_convention_are_counted() {
    let spool = tempfile::tempdir().expect("a directory");
    let stop = AtomicBool::new(false);
    let program = own("a_call_by_another_convention", spool.path());
    let (recorded, status) =
        command(&of(program), output(spool.path()), None, &stop).expect("a recording");
    assert!(status.success(), "this kernel has no 32-bit calls");
    assert_eq!(count(&all(recorded), record::FOREIGN), 3);
}
