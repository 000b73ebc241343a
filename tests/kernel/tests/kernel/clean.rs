//! `iostep clean` of what strace writes here: against `iostep record`, against texts written by
//! hand, and by replays.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::syscall::{Outcome, Recording, Syscall, text};
use serde_json::Value;
use tempfile::TempDir;

use crate::case::Case;
use crate::record::{Fixture, counted, unnumbered};
use crate::replay;
use crate::stage::{self, Stage};

/// How strace is asked to write.
struct Form {
    options: &'static [&'static str],
    /// To standard error, as to a terminal, and not to a file.
    is_shown: bool,
}

const fn form(options: &'static [&'static str]) -> Form {
    Form {
        options,
        is_shown: false,
    }
}

const FORMS: &[Form] = &[
    form(&["-f"]),
    form(&["-f", "-t"]),
    form(&["-f", "-tt", "-T"]),
    form(&["-f", "-ttt", "-T", "-y"]),
    form(&["-f", "-r"]),
    form(&["-f", "-r", "-tt", "-T"]),
    form(&["-f", "-yy", "-v", "-s", "2"]),
    form(&["-f", "-x", "-i"]),
    form(&["-f", "-xx", "-y"]),
    form(&["-f", "-X", "raw"]),
    form(&["-f", "-X", "verbose"]),
    form(&["-ff", "-ttt", "-T"]),
    form(&["-ff", "-tt", "-y"]),
    Form {
        options: &["-f"],
        is_shown: true,
    },
    Form {
        options: &["-f", "-tt", "-T"],
        is_shown: true,
    },
];

const PLAIN: &Form = &form(&["-f"]);
const FULL: &Form = &form(&["-f", "-ttt", "-T", "-y"]);
const FILES: &Form = &form(&["-ff", "-ttt", "-T", "-y"]);

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let strace = Requirement::Program("strace");
    let cc = [strace, Requirement::Program("cc")];
    let recorded = [&cc[..], &[Requirement::Root, Requirement::Btf]].concat();
    let mut cases = vec![
        Case::new("every form has every call", recorded.clone(), every_form),
        Case::new("a call that its thread died in is unfinished", cc, killed),
        Case::new("a call that was made again is one", cc, restarted),
        Case::new(
            "calls of 32 bits are those of 64",
            [&cc[..], &[Requirement::Ia32]].concat(),
            of_32_bits,
        ),
    ];
    let sqlite = format!("sqlite3 app.db <<'END'\n{}END\n", replay::SQLITE);
    for (program, script) in [("sqlite3", sqlite), ("git", replay::GIT.to_owned())] {
        let mut needs = vec![strace, Requirement::Program(program)];
        needs.extend([Requirement::Root, Requirement::Btf]);
        let at_once = script.clone();
        cases.push(Case::new(
            format!("{program} is the same to strace and to record at once"),
            needs,
            move || seen_twice(&at_once),
        ));
        for (name, form) in [("-f", PLAIN), ("-f -ttt -T -y", FULL), ("-ff", FILES)] {
            let script = script.clone();
            let mut needs = stage::requirements(Kind::Ext4);
            needs.extend([strace, Requirement::Program(program)]);
            cases.push(Case::new(
                format!("{program} under strace {name} is replayed"),
                needs,
                move || replayed(form, &script),
            ));
        }
    }
    cases.into_iter().map(|case| case.about("clean")).collect()
}

/// Runs a command under strace. Gives the texts.
fn traced(form: &Form, command: &[PathBuf], into: &TempDir) -> anyhow::Result<Vec<PathBuf>> {
    let mut strace = Command::new("strace");
    strace.args(form.options);
    let name = into.path().join("t");
    if form.is_shown {
        strace.stderr(File::create(&name)?);
    } else {
        strace.arg("-o").arg(&name).stderr(Stdio::null());
    }
    strace
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let status = strace.status()?;
    ensure!(status.success(), "strace: {status}");
    let files = std::fs::read_dir(into)?.map(|entry| Ok(entry?.path()));
    files.collect()
}

/// Cleans texts. Every line must be accounted for and understood.
fn clean(texts: &[PathBuf], trace: &Path) -> anyhow::Result<Recording> {
    let mut words = vec![OsStr::new("clean"), "--json".as_ref(), "-o".as_ref()];
    words.push(trace.as_os_str());
    words.extend(texts.iter().map(|path| path.as_os_str()));
    let outcome = iostep::run(words)?.success()?;
    let table: Value = serde_json::from_str(&outcome.stdout)?;
    let mut lines = 0;
    for path in texts {
        lines += std::fs::read(path)?.iter().filter(|b| **b == b'\n').count();
    }
    let left_out = &table["left_out"];
    ensure!(table["lines"]["read"] == lines, "{lines} lines: {table}");
    for reason in [
        "cannot be read",
        "arguments not understood",
        "line too long",
    ] {
        ensure!(left_out[reason].is_null(), "{table:#}");
    }
    Ok(text::read(trace)?)
}

/// The calls of programs: not what was open before, which strace does not say, and what becomes
/// of that.
fn of_programs(recording: &Recording) -> impl Iterator<Item = (u32, String)> {
    use Syscall as S;
    let calls = recording.calls.iter();
    let calls = calls.filter(|call| {
        !matches!(
            call.syscall,
            S::Present | S::Clone | S::Execve | S::Exit | S::CloseRange
        )
    });
    calls.map(|call| {
        let thread = &recording.threads[call.thread.0 as usize - 1];
        (thread.tid, unnumbered(call, &recording.paths))
    })
}

/// Records a command whose standard streams are no files, as they are under strace here.
fn record(command: &[PathBuf], trace: &Path) -> anyhow::Result<Recording> {
    let mut record = Command::new(iostep::binary()?);
    record
        .args(["record", "-o"])
        .arg(trace)
        .arg("--")
        .args(command);
    record.stdin(Stdio::null()).stdout(Stdio::null());
    let status = record.stderr(Stdio::null()).status()?;
    ensure!(status.success(), "iostep record: {status}");
    Ok(text::read(trace)?)
}

fn every_form() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let recorded = record(&place.command("all"), &place.trace())?;
    let mut recorded = counted(of_programs(&recorded).map(|(_, call)| call));
    // It is counted from the file's end, and strace does not say where that was.
    let lock = "fcntl h lock=2 of=description offset=299990 size=0 = 0";
    ensure!(recorded.remove(lock) == Some(1), "no lock from the end");
    ensure!(
        recorded.len() > 80,
        "only {} different calls",
        recorded.len()
    );
    for form in FORMS {
        std::fs::remove_dir_all(place.files())?;
        std::fs::create_dir(place.files())?;
        let into = tempfile::tempdir()?;
        let texts = traced(form, &place.command("all"), &into)?;
        let cleaned = clean(&texts, &place.trace())?;
        let cleaned = counted(of_programs(&cleaned).map(|(_, call)| call));
        let differs = |call: &&String| recorded.get(*call) != cleaned.get(*call);
        let all = recorded.keys().chain(cleaned.keys());
        let differences: Vec<&String> = all.filter(differs).collect();
        println!("    {:?}: {} texts", form.options, texts.len());
        ensure!(
            differences.is_empty(),
            "{:?}: {differences:#?}",
            form.options
        );
    }
    Ok(())
}

fn killed() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let into = tempfile::tempdir()?;
    let cleaned = clean(
        &traced(FULL, &place.command("killed"), &into)?,
        &place.trace(),
    )?;
    let locks = cleaned.calls.iter().filter(|c| c.syscall == Syscall::Flock);
    let locks: Vec<_> = locks.map(|call| (call.outcome, call.duration_ns)).collect();
    ensure!(locks.len() == 2, "{locks:?}");
    ensure!(locks.contains(&(Outcome::Unfinished, None)), "{locks:?}");
    Ok(())
}

fn restarted() -> anyhow::Result<()> {
    let place = Fixture::new()?;
    let into = tempfile::tempdir()?;
    let texts = traced(FULL, &place.command("restarted"), &into)?;
    let text = std::fs::read_to_string(&texts[0])?;
    ensure!(text.matches("ERESTARTSYS").count() == 1, "{text}");
    let cleaned = clean(&texts, &place.trace())?;
    let locks = cleaned.calls.iter().filter(|c| c.syscall == Syscall::Fcntl);
    let locks: Vec<_> = locks.map(|call| call.outcome).collect();
    ensure!(locks == [Outcome::Value(0); 3], "{locks:?}");
    let ledger = cleaned.ledger.lines.iter();
    let again = ledger.filter(|l| l.reason == "interrupted by a signal");
    ensure!(again.map(|line| line.count).sum::<u64>() == 1);
    Ok(())
}

fn of_32_bits() -> anyhow::Result<()> {
    const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/calls32.c");
    let place = tempfile::tempdir()?;
    let into = tempfile::tempdir()?;
    let program = place.path().join("calls32");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-o"]).arg(&program).arg(PROGRAM);
    ensure!(compile.status()?.success(), "cc failed");
    let command = [program, place.path().to_owned()];
    let cleaned = clean(&traced(FULL, &command, &into)?, &place.path().join("trace"))?;
    let path = place.path().join("file");
    let path = path.to_str().context("a path")?;
    let calls: Vec<String> = of_programs(&cleaned).map(|(_, call)| call).collect();
    let begin = calls.iter().position(|call| call.starts_with("open "));
    let calls = &calls[begin.context("no open")?..];
    let expected = format!(
        "open path=\"{path}\" flags=O_RDWR|O_CREAT|O_LARGEFILE mode=0644 = h\n\
         write h size=100 = 100\n\
         pwrite64 h size=10 offset=5368709120 = 10\n\
         pread64 h size=20 offset=5368709120 = 10\n\
         lseek h offset=5368709120 whence=set = 5368709120\n\
         ftruncate h size=50 = 0\n\
         fstat h = 0\n\
         stat path=\"{path}\" = 0\n\
         fcntl h get = 32770\n\
         fsync h = 0\n\
         close h = 0\n\
         unlink path=\"{path}\" = 0"
    );
    ensure!(calls.join("\n") == expected, "{calls:#?}");
    Ok(())
}

fn shell(script: &str, directory: &Path) -> [PathBuf; 3] {
    let body = format!("cd '{}'\n{script}", directory.display());
    ["sh", "-c", &body].map(PathBuf::from)
}

/// One run, recorded by the kernel's tracepoints while strace writes down the same.
fn seen_twice(script: &str) -> anyhow::Result<()> {
    let source = tempfile::tempdir()?;
    let results = tempfile::tempdir()?;
    let [trace, other, text] = ["trace", "other", "text"].map(|name| results.path().join(name));
    let mut command = vec![PathBuf::from("strace")];
    command.extend(FULL.options.iter().map(PathBuf::from));
    command.extend(["-o".into(), text.clone()]);
    command.extend(shell(script, source.path()));
    let recorded = by_thread(&record(&command, &trace)?);
    let cleaned = by_thread(&clean(&[text], &other)?);
    let mut calls = 0;
    let mut longer = 0;
    for (tid, cleaned) in &cleaned {
        let recorded = recorded.get(tid).map_or(&[][..], Vec::as_slice);
        calls += cleaned.len();
        // The first one was made by strace, which sees nothing before its exec.
        longer += usize::from(recorded.len() > cleaned.len());
        let behind = recorded.len().saturating_sub(cleaned.len());
        let pairs = recorded[behind..].iter().zip(cleaned);
        for (recorded, cleaned) in pairs {
            ensure!(recorded == cleaned, "{tid}: {recorded}\nstrace: {cleaned}");
        }
        ensure!(recorded.len() >= cleaned.len(), "{tid}: {cleaned:#?}");
    }
    println!("    {calls} calls of {} threads", cleaned.len());
    ensure!(
        calls > 100 && longer <= 1,
        "{calls} calls, {longer} threads differ"
    );
    Ok(())
}

fn by_thread(recording: &Recording) -> BTreeMap<u32, Vec<String>> {
    let mut threads: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (tid, call) in of_programs(recording) {
        threads.entry(tid).or_default().push(call);
    }
    threads
}

fn replayed(form: &Form, script: &str) -> anyhow::Result<()> {
    let source = tempfile::tempdir()?;
    let into = tempfile::tempdir()?;
    let results = tempfile::tempdir()?;
    let trace = results.path().join("app.trace");
    let texts = traced(form, &shell(script, source.path()), &into)?;
    let recording = clean(&texts, &trace)?;
    println!("    {} texts, {} calls", texts.len(), recording.calls.len());
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let summary = replay::replay(&trace, stage.root(), &["--timing", "fast"], 0)?;
    replay::ensure_same(&summary)
}
