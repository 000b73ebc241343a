//! A database server in a directory of its own, run by a user who is not root.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use iostep_kernel_tests::requirement::program;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::NamedTempFile;

/// The user: servers refuse to be root.
const NOBODY: u32 = 65_534;
/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server. It ends with this.
pub struct Server {
    process: Child,
    messages: NamedTempFile,
}

/// Makes a directory that is the user's.
pub fn make_directory(path: &Path) -> anyhow::Result<()> {
    std::fs::create_dir(path)?;
    Ok(chown(path, Some(NOBODY), Some(NOBODY))?)
}

/// A program as that user runs it, in a directory.
pub fn as_nobody(name: &str, directory: &Path) -> anyhow::Result<Command> {
    let path = program(name).with_context(|| format!("no {name}"))?;
    let mut command = Command::new(path);
    command.uid(NOBODY).gid(NOBODY).current_dir(directory);
    // That of the tests is root's.
    command.env("TMPDIR", directory);
    Ok(command)
}

impl Server {
    /// Starts it, and waits until it answers.
    pub fn start(
        command: &mut Command,
        answers: impl Fn() -> anyhow::Result<String>,
    ) -> anyhow::Result<Server> {
        let messages = NamedTempFile::new()?;
        let output = || messages.reopen();
        let server = Server {
            process: command.stdout(output()?).stderr(output()?).spawn()?,
            messages,
        };
        let began = Instant::now();
        while let Err(error) = answers() {
            let said = || server.said().unwrap_or_default();
            ensure!(began.elapsed() < PATIENCE, "{error:#}: {}", said());
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// What it has said so far.
    pub fn said(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.messages.path())?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The one that makes PostgreSQL end at once, and MariaDB too.
        let _ = kill_process(Pid::from_child(&self.process), Signal::QUIT);
        let _ = self.process.wait();
    }
}

/// Runs a client to its end; the answer is what it prints.
pub fn ask(words: &[String]) -> anyhow::Result<String> {
    let output = Command::new(&words[0]).args(&words[1..]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{words:?}: {said}");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
