//! What cargo checks: lints, documentation, tests.

use std::fs::File;
use std::io::Seek;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::step::{cargo, has_sudo, in_ci, is_root, output_of, root, run, run_tests};
use crate::{metadata, watch};

/// What root's tests are told by the environment.
const PASSED: &str =
    "CI,IOSTEP_ARM64,IOSTEP_KERNELS,IOSTEP_LANE,IOSTEP_REQUIRE,IOSTEP_VARIANTS,PATH";
/// Which of the kernel tests run, those in guests or the others.
const LANE: &str = "IOSTEP_LANE";
/// The harness whose tests can be skipped with a reason.
const HARNESS: &str = "libtest-mimic";

/// Clippy over every target; over what there is without BPF: `iostep-bench`, for machines for which
/// no libbpf is built; and over what `make demo` builds. Features of other packages stay the same, so
/// that only ours are checked again.
pub fn lint() -> Result<()> {
    let less = ["--lib", "--bins", "--no-default-features"];
    clippy(&["--all-targets"])?;
    clippy(&less)?;
    clippy(&[&less[..], &["--features=iostep/trace"]].concat())
}

fn clippy(what: &[&str]) -> Result<()> {
    run(cargo()
        .args(["clippy", "--workspace", "--locked"])
        .args(what)
        .args(["--", "-D", "warnings"]))
}

/// Rustdoc, which finds links that lead nowhere.
pub fn doc() -> Result<()> {
    let flags = ["doc", "--workspace", "--no-deps", "--locked", "--quiet"];
    run(cargo().args(flags).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Builds all tests and, since there are tests of it, the command. Every other selection of
/// packages would select other features of what they depend on, and build that once more.
pub fn build() -> Result<()> {
    run(cargo().args(["test", "--workspace", "--no-run", "--locked"]))
}

/// All tests, those in guests beside the others.
pub fn test(guests: Guests) -> Result<()> {
    let results = [test_here(), guests.finish()];
    let failed: Vec<String> = results
        .into_iter()
        .filter_map(|result| Some(format!("{:#}", result.err()?)))
        .collect();
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("{}", failed.join("\n")),
    }
}

/// As root everything runs at once. As a user, the tests that need root say so and are skipped; then
/// root runs the finished binaries of these tests, and compiles nothing.
fn test_here() -> Result<()> {
    let mut all = cargo();
    all.args(["test", "--workspace", "--no-fail-fast", "--locked"]);
    all.env(LANE, "machine");
    if is_root()? {
        require(&mut all);
        return run_tests(&mut all);
    }
    // What the caller requires is required of the run as root.
    run_tests(all.env_remove("IOSTEP_REQUIRE"))?;
    run_as_root(&suites_for_root()?)
}

/// The kernel tests that run in guests, in a process beside other steps.
pub struct Guests {
    /// It, and where its output goes; `None` where nobody can be root.
    started: Option<(Child, File)>,
}

impl Guests {
    /// Starts them, and builds them before.
    ///
    /// Errors: they cannot be built or started.
    pub fn start() -> Result<Guests> {
        build()?;
        if !is_root()? && !has_sudo()? {
            return Ok(Guests { started: None });
        }
        let output = tempfile::tempfile().context("a temporary file")?;
        let mut command = kernel_suite()?.as_root()?;
        let child = command
            .env(LANE, "guests")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()
            .with_context(|| format!("{command:?}"))?;
        println!("== the tests in guests run beside what follows");
        Ok(Guests {
            started: Some((child, output)),
        })
    }

    /// Waits for them and prints what they printed.
    ///
    /// Errors: they fail or hang.
    pub fn finish(mut self) -> Result<()> {
        let Some((mut child, mut output)) = self.started.take() else {
            return Ok(());
        };
        let status = watch::wait(&mut child);
        println!("\nin guests, meanwhile:");
        output.rewind()?;
        std::io::copy(&mut output, &mut std::io::stdout())?;
        match status? {
            status if status.success() => Ok(()),
            status => bail!("the tests in guests: {status}"),
        }
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.started {
            watch::kill(child);
        }
    }
}

/// The tests that run in guests, on every kernel that iostep is tested on. They have limits of
/// their own.
pub fn kernels() -> Result<()> {
    build()?;
    kernel_tests("every kernel", &[("IOSTEP_KERNELS", "1")])
}

/// Root runs the kernel tests with this in their names, which are built, with these variables of
/// [`PASSED`].
pub fn kernel_tests(filter: &str, variables: &[(&str, &str)]) -> Result<()> {
    let mut command = kernel_suite()?.as_root()?;
    run(command.arg(filter).envs(variables.iter().copied()))
}

fn kernel_suite() -> Result<Suite> {
    let is_it = |suite: &Suite| suite.manifest.ends_with("tests/kernel/Cargo.toml");
    let mut suites = suites_for_root()?.into_iter();
    suites.find(is_it).context("no kernel tests")
}

/// A skip is a failure where CI runs, unless the caller already said what is.
fn require(command: &mut Command) {
    if in_ci() && std::env::var_os("IOSTEP_REQUIRE").is_none() {
        command.env("IOSTEP_REQUIRE", "all");
    }
}

/// A finished test binary and the `Cargo.toml` of its package.
struct Suite {
    binary: PathBuf,
    manifest: PathBuf,
}

/// Where there is no sudo, the skips that the tests just printed stand, except in CI.
fn run_as_root(suites: &[Suite]) -> Result<()> {
    if !has_sudo()? {
        println!("no sudo: what needs root was skipped; run cargo xtask test as root for it");
        return Ok(());
    }
    let failed: Vec<String> = suites
        .iter()
        .filter_map(|suite| run_tests(suite.with_sudo().env(LANE, "machine")).err())
        .map(|error| error.to_string())
        .collect();
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    Ok(())
}

impl Suite {
    /// As root runs it, who this is or who sudo makes.
    fn as_root(&self) -> Result<Command> {
        Ok(match is_root()? {
            true => self.command(Command::new(&self.binary)),
            false => self.with_sudo(),
        })
    }

    fn with_sudo(&self) -> Command {
        let mut command = Command::new("sudo");
        command
            .arg(format!("--preserve-env={PASSED}"))
            .arg("--")
            .arg(&self.binary);
        self.command(command)
    }

    /// Where its package lies, as cargo would run it.
    fn command(&self, mut command: Command) -> Command {
        require(&mut command);
        command.current_dir(self.manifest.parent().unwrap_or(root()));
        command
    }
}

/// A line of cargo's JSON messages, as far as it is of use here.
#[derive(Deserialize)]
struct Message {
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// A program that cargo built.
pub struct Executable {
    pub name: String,
    pub path: PathBuf,
    /// The `Cargo.toml` of its package.
    pub manifest: PathBuf,
    is_test: bool,
}

/// What this command of cargo's builds.
pub fn executables(cargo: &mut Command) -> Result<Vec<Executable>> {
    let messages = output_of(cargo.args(["--quiet", "--message-format=json"]))?;
    let mut all = Vec::new();
    for line in messages.lines() {
        let message: Message =
            serde_json::from_str(line).with_context(|| format!("cargo printed {line:?}"))?;
        let (Some(manifest), Some(target), Some(path)) =
            (message.manifest_path, message.target, message.executable)
        else {
            continue;
        };
        all.push(Executable {
            name: target.name,
            path,
            manifest,
            is_test: target.kind == ["test"],
        });
    }
    Ok(all)
}

/// The integration tests that can say of themselves that they need root. Everything is built by
/// now, so that this only asks where.
fn suites_for_root() -> Result<Vec<Suite>> {
    let packages = metadata::read()?.packages;
    let has_reasons = |executable: &Executable| {
        let mut all = packages.iter();
        let package = all.find(|package| package.manifest_path == executable.manifest);
        executable.is_test && package.is_some_and(|package| package.uses(HARNESS))
    };
    let all = executables(cargo().args(["test", "--workspace", "--no-run", "--locked"]))?;
    let suites = all.into_iter().filter(has_reasons).map(|found| Suite {
        binary: found.path,
        manifest: found.manifest,
    });
    Ok(suites.collect())
}
