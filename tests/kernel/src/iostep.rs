//! The command under test, as a user runs it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::NamedTempFile;

/// How long a run of the command may take before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(240);

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

/// A run of the command. Its output goes to files: a pipe would be held open by processes that
/// outlive it.
pub struct Running {
    child: Child,
    stdout: NamedTempFile,
    stderr: NamedTempFile,
}

impl Running {
    /// Starts the command, without colours.
    pub fn start<S: AsRef<OsStr>>(
        arguments: impl IntoIterator<Item = S>,
    ) -> anyhow::Result<Running> {
        let mut command = Command::new(binary()?);
        command.args(arguments);
        Running::spawn(command)
    }

    /// Starts such a command line, with an environment of its own.
    pub fn spawn(mut command: Command) -> anyhow::Result<Running> {
        let (stdout, stderr) = (NamedTempFile::new()?, NamedTempFile::new()?);
        let child = command
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(stdout.reopen()?)
            .stderr(stderr.reopen()?)
            .spawn()?;
        Ok(Running {
            child,
            stdout,
            stderr,
        })
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// True once it said this on standard error.
    pub fn says(&self, words: &str) -> bool {
        read(&self.stderr).is_ok_and(|said| said.contains(words))
    }

    /// What it has said on standard error so far.
    pub fn said(&self) -> anyhow::Result<String> {
        read(&self.stderr)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill_process(self.pid(), signal)?)
    }

    /// Waits for its end.
    ///
    /// Errors: it takes longer than 90 s, or 6 minutes in a guest; it is then killed.
    pub fn finish(self) -> anyhow::Result<Outcome> {
        // Less than the guest itself has.
        let factor = match std::env::var_os("IOSTEP_GUEST") {
            Some(_) => 4,
            None => 1,
        };
        self.finish_within(PATIENCE * factor)
    }

    /// Waits for its end.
    ///
    /// Errors: it takes longer; it is then killed.
    pub fn finish_within(mut self, patience: Duration) -> anyhow::Result<Outcome> {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if began.elapsed() > patience {
                self.child.kill()?;
                self.child.wait()?;
                anyhow::bail!(
                    "hung, and was killed after {patience:?}: {}",
                    read(&self.stderr)?
                );
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Ok(Outcome {
            code: status.code(),
            stdout: read(&self.stdout)?,
            stderr: read(&self.stderr)?,
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing happens to one that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(file: &NamedTempFile) -> anyhow::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(file.path())?).into_owned())
}

/// Runs the command to its end.
pub fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> anyhow::Result<Outcome> {
    Running::start(arguments)?.finish()
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
            head(&self.stdout),
            head(&self.stderr)
        );
        Ok(self)
    }

    /// Fails unless this was refused with one of these statuses and a short error that names
    /// `object`.
    pub fn refused(self, codes: &[i32], object: &str) -> anyhow::Result<Outcome> {
        println!("    {:?}: {}", self.code, self.stderr.trim_end());
        let code = self
            .code
            .filter(|code| codes.contains(code))
            .unwrap_or(codes[0]);
        let outcome = self.status(code)?;
        let (error, lines) = (&outcome.stderr, outcome.stderr.lines().count());
        anyhow::ensure!(
            error.contains(object),
            "the error does not name {object}: {error}"
        );
        anyhow::ensure!(lines <= 3, "an error of {lines} lines: {error}");
        Ok(outcome)
    }
}

/// The first lines of a text.
fn head(text: &str) -> String {
    text.lines().take(6).collect::<Vec<_>>().join("\n")
}
