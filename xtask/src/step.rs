//! Steps with a name and a time, and the commands that they run.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::watch;

/// The steps that are done.
pub struct Plan {
    done: Vec<(&'static str, Duration)>,
}

impl Plan {
    pub fn new() -> Plan {
        Plan { done: Vec::new() }
    }

    /// Runs a step; `name` is also how to run it again.
    pub fn then(mut self, name: &'static str, step: impl FnOnce() -> Result<()>) -> Result<Plan> {
        println!("== {name}");
        let start = Instant::now();
        if let Err(error) = step() {
            bail!("{name} failed: {error:#}\nhint: run it again with: cargo xtask {name}");
        }
        let took = start.elapsed();
        println!("== {name}: ok, {:.1} s", took.as_secs_f64());
        self.done.push((name, took));
        Ok(self)
    }

    /// Prints each step's time.
    pub fn summarise(&self) {
        let total: Duration = self.done.iter().map(|(_, took)| *took).sum();
        println!("\nall checks passed in {:.0} s", total.as_secs_f64());
        for (name, took) in &self.done {
            println!("{:>8.1} s  {name}", took.as_secs_f64());
        }
    }
}

/// The workspace's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
}

/// The cargo that runs this.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// True where what is skipped is a failure.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// True if this is root.
pub fn is_root() -> Result<bool> {
    Ok(output_of(Command::new("id").arg("-u"))?.trim() == "0")
}

/// True if there is a way to be root. Errors: there is none, in CI.
pub fn has_sudo() -> Result<bool> {
    let has_sudo = Command::new("sudo").arg("-V").output().is_ok();
    if !has_sudo && in_ci() {
        bail!("not root, and there is no sudo");
    }
    Ok(has_sudo)
}

/// A command that root runs, with these variables of the environment; `None` if nobody can.
pub fn as_root(program: &str, variables: &[&str]) -> Result<Option<Command>> {
    if is_root()? {
        return Ok(Some(Command::new(root().join(program))));
    }
    if !has_sudo()? {
        return Ok(None);
    }
    let mut command = Command::new("sudo");
    command
        .arg(format!("--preserve-env={}", variables.join(",")))
        .arg("--")
        .arg(root().join(program));
    Ok(Some(command))
}

/// Runs a command, its output going to ours.
///
/// Errors: it cannot be started, or it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| cannot_start(command))?;
    succeeded(command, status)
}

/// Runs tests, which can hang, where a compiler is only slow.
///
/// Errors: they cannot be started, they fail, or they hang, and are killed.
pub fn run_tests(command: &mut Command) -> Result<()> {
    let mut child = command.spawn().with_context(|| cannot_start(command))?;
    let status = watch::wait(&mut child).with_context(|| format!("{command:?}"))?;
    succeeded(command, status)
}

fn succeeded(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}

/// Runs a command for its standard output.
///
/// Errors: it cannot be started, fails, or prints something that is not UTF-8.
pub fn output_of(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| cannot_start(command))?;
    if !output.status.success() {
        bail!("{command:?}: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{command:?}: output is not UTF-8"))
}

fn cannot_start(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    format!("cannot start {program}; scripts/setup installs what is missing")
}
