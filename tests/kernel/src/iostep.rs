//! The command under test, as a user runs it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

/// How long a run of the command may take before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(90);

/// What a run of the command left.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Exit status; `None` if a signal killed it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// The binary: `IOSTEP_BIN`, or `iostep` of the same build as this test.
///
/// Errors: it was not built.
pub fn binary() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("IOSTEP_BIN") {
        return Ok(path.into());
    }
    let test = std::env::current_exe()?;
    let profile = test
        .parent()
        .and_then(Path::parent)
        .context("a test lies in target/PROFILE/deps")?;
    let path = profile.join("iostep");
    anyhow::ensure!(
        path.is_file(),
        "{}: not built; run cargo build -p iostep first",
        path.display()
    );
    Ok(path)
}

/// A command line of the binary, without colours, its output kept.
pub fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> anyhow::Result<Command> {
    let mut command = Command::new(binary()?);
    command
        .args(arguments)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(command)
}

/// Runs the command to its end.
pub fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> anyhow::Result<Outcome> {
    finish(command(arguments)?.spawn()?)
}

/// Waits for the command.
///
/// Errors: it takes longer than 90 s; it is then killed.
pub fn finish(child: Child) -> anyhow::Result<Outcome> {
    let pid = rustix::process::Pid::from_child(&child);
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        let began = Instant::now();
        let hung = waiting.recv_timeout(PATIENCE).is_err() && began.elapsed() >= PATIENCE;
        if hung {
            // It may have ended at this very moment, which is as good.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        hung
    });
    let output = child.wait_with_output()?;
    drop(done);
    let hung = watchdog.join().expect("the watchdog does not panic");
    let outcome = Outcome::from(output);
    anyhow::ensure!(
        !hung,
        "hung, and was killed after {PATIENCE:?}: {outcome:?}"
    );
    Ok(outcome)
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Outcome {
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Outcome {
    /// Fails unless the command succeeded.
    pub fn success(self) -> anyhow::Result<Outcome> {
        self.status(0)
    }

    /// Fails unless the command ended with this status, and never passes a panic.
    pub fn status(self, code: i32) -> anyhow::Result<Outcome> {
        anyhow::ensure!(
            !self.stderr.contains("panicked at"),
            "a panic: {}",
            self.stderr
        );
        anyhow::ensure!(
            self.code == Some(code),
            "exit status {:?}, expected {code}\nstdout: {}\nstderr: {}",
            self.code,
            tail(&self.stdout),
            tail(&self.stderr)
        );
        Ok(self)
    }

    /// Fails unless this was refused with this status and an error on one line, which names
    /// `object`; a line of advice may follow.
    pub fn refusal(self, code: i32, object: &str) -> anyhow::Result<Outcome> {
        let outcome = self.status(code)?;
        println!("    {}", outcome.stderr.trim_end());
        anyhow::ensure!(
            outcome.stderr.contains(object),
            "the error does not name {object}: {}",
            outcome.stderr
        );
        anyhow::ensure!(
            outcome.stderr.lines().count() <= 3,
            "an error of more than three lines: {}",
            outcome.stderr
        );
        Ok(outcome)
    }
}

/// The last lines of a text.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
