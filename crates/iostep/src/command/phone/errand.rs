//! A command of iostep that runs on the phone, and its result's way to the desk.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use iostep_model::publish;
use iostep_model::syscall::kept;

use super::adb::{Adb, Root, directory, is_plain_name, line, said};
use super::device::{self, Device};
use super::{PhoneArgs, fetch, program};
use crate::command::report;
use crate::error::bad_input;
use crate::interrupt::Interrupt;
use crate::terminal::{self, say, working};

const INTERVAL: Duration = Duration::from_millis(50);
/// The result's name on the phone, and that of a recording that is compressed, as its name says.
const RESULT: &str = "result";
const COMPRESSED: &str = "result.zst";
/// The name of the file with the program's process id.
const PID: &str = "pid";
/// What bench has a result in one file of.
const WORKLOADS: [&str; 2] = ["file", "sqlite"];

/// What is run there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bench,
    Trace,
    Record,
}

/// What is run there, and where the result goes here.
#[derive(Debug, clap::Args)]
pub struct ErrandArgs {
    /// Where the result goes on this machine
    #[arg(short, long, value_name = "RESULT")]
    output: PathBuf,

    /// Write one self-contained page of it, as iostep report does
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Show that page with xdg-open
    #[arg(long, requires = "html")]
    open: bool,

    /// Print JSON, as iostep report does
    #[arg(long)]
    json: bool,

    /// The arguments of the command on the phone; all paths are the phone's
    #[arg(last = true, required = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Bench => "bench",
            Kind::Trace => "trace",
            Kind::Record => "record",
        }
    }

    /// What is seen of other processes, and asked of BPF, is root's.
    fn needs_root(self) -> bool {
        self != Kind::Bench
    }

    /// The command's words, of which the last are the user's.
    ///
    /// Errors, of bad usage: a command of bench that makes no result.
    fn words<'a>(self, result: &'a str, arguments: &'a [String]) -> anyhow::Result<Vec<&'a str>> {
        let mut rest = arguments.iter().map(String::as_str);
        let mut words = vec![self.name()];
        if self == Kind::Bench {
            let workload = rest.next().filter(|word| WORKLOADS.contains(word));
            words.push(workload.ok_or_else(|| {
                bad_input(anyhow!(
                    "name file or sqlite first, as in iostep phone bench -o RESULT -- sqlite DIR"
                ))
            })?);
        }
        words.extend(["-o", result]);
        words.extend(rest);
        Ok(words)
    }
}

/// Runs a command there, fetches what it made, and shows it.
///
/// Errors: of bad usage, before anything is done; adb or the phone fails; there is no result.
pub fn run(
    adb: &Adb,
    phone: &PhoneArgs,
    kind: Kind,
    args: &ErrandArgs,
) -> anyhow::Result<ExitCode> {
    check(kind, args)?;
    let interrupt = Interrupt::install()?;
    let device = device::ask(adb, &phone.directory, kind.needs_root())?;
    let root = root(kind, &device)?;
    program::provide(adb, phone, &device)?;
    let place = Place::make(adb, &phone.directory, root)?;
    let is_compressed =
        kind == Kind::Record && args.output.extension().is_some_and(|it| it == "zst");
    let result = place.path(if is_compressed { COMPRESSED } else { RESULT });
    let words = kind.words(&result, &args.arguments)?;
    let status = place.run(
        &words,
        &format!("{} on {}", kind.name(), device.name()),
        &interrupt,
    )?;
    place.give_to(device.shell_uid)?;
    if !place.has(&result)? {
        // The command said why.
        return match status.success() {
            true => Err(anyhow!("{}: it made no result", device.name())),
            false => Ok(exit_code(status)),
        };
    }
    let fetched = match kind {
        Kind::Trace => fetch::directory(adb, &result, &args.output),
        Kind::Bench => fetch::result(adb, &result, &args.output),
        Kind::Record => fetch::recording(adb, &result, &args.output),
    };
    match fetched {
        Ok(()) => drop(place),
        Err(error) => return Err(error.context(place.leave())),
    }
    say!("iostep: {}", fetched_from(&args.output, &device));
    let shown = report::fetched(&args.output, args.html.as_deref(), args.json)?;
    if let Some(page) = args.html.as_deref().filter(|_| args.open) {
        open(page)?;
    }
    Ok(match status.success() {
        true => shown,
        false => exit_code(status),
    })
}

fn check(kind: Kind, args: &ErrandArgs) -> anyhow::Result<()> {
    terminal::check_results(args.json, &args.html)?;
    let output = args.output.display();
    if publish::is_standard_output(&args.output) {
        return Err(bad_input(anyhow!(
            "{output}: name a file, which is then shown"
        )));
    }
    let new = match kind {
        Kind::Bench => None,
        Kind::Trace => Some(args.output.clone()),
        Kind::Record => Some(kept::directory_of(&args.output)),
    };
    if let Some(path) = new.filter(|path| path.symlink_metadata().is_ok()) {
        return Err(fetch::is_there(&path));
    }
    if kind == Kind::Record && args.html.is_some() {
        return Err(bad_input(anyhow!("--html: a recording has no page")));
    }
    // Before the phone is asked for anything.
    kind.words("", &args.arguments).map(drop)
}

fn root(kind: Kind, device: &Device) -> anyhow::Result<Option<Root>> {
    match (kind.needs_root(), device.root) {
        (false, _) => Ok(None),
        (true, Some(root)) => Ok(Some(root)),
        (true, None) => Err(iostep_trace::Error::Unsupported {
            object: device.name(),
            reason: format!(
                "iostep {} needs root there; run adb root, which builds for engineers allow, or \
                 install su",
                kind.name()
            ),
        }
        .into()),
    }
}

fn fetched_from(output: &Path, device: &Device) -> String {
    format!("{} was fetched from {}", output.display(), device.name())
}

/// The status of a command there as that of this one.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

fn open(page: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("xdg-open");
    command.arg(page).stdin(Stdio::null());
    let status = command.status().context("xdg-open: cannot run it")?;
    match status.success() {
        true => Ok(()),
        false => bail!("xdg-open: {status}; {} is written", page.display()),
    }
}

/// A directory on the phone, which is removed with all that is in it.
struct Place<'a> {
    adb: &'a Adb,
    directory: String,
    root: Option<Root>,
    is_left: bool,
}

impl Place<'_> {
    /// Makes one below `parent`.
    ///
    /// Errors: it cannot be made.
    fn make<'a>(adb: &'a Adb, parent: &str, root: Option<Root>) -> anyhow::Result<Place<'a>> {
        let template = format!("{parent}/run.XXXXXX");
        let output = adb.shell(&line(["mktemp", "-d", &template]))?;
        let answer = String::from_utf8_lossy(&output.stdout);
        let made = answer.lines().map(str::trim).rfind(|line| !line.is_empty());
        // It is removed later: nothing else than what was asked for.
        let is_ours = |path: &&str| {
            let name = path
                .strip_prefix(parent)
                .and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| name.starts_with("run.") && is_plain_name(name))
        };
        match made.filter(is_ours) {
            Some(path) => Ok(Place {
                adb,
                directory: directory(path)?,
                root,
                is_left: false,
            }),
            None => bail!(
                "{parent}: cannot make a directory on the phone: {}",
                said(&output.stderr)
            ),
        }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }

    fn line(&self, line: &str) -> String {
        match self.root {
            Some(root) => root.line(line),
            None => line.to_owned(),
        }
    }

    /// Runs the program there, says what it says, and hands on a signal.
    ///
    /// Errors: there is no adb.
    fn run(&self, words: &[&str], what: &str, interrupt: &Interrupt) -> anyhow::Result<ExitStatus> {
        let directory = self.directory.as_str();
        let (parent, _) = directory.rsplit_once('/').context("a place")?;
        let program = format!("{parent}/iostep");
        let words = line([program.as_str()].into_iter().chain(words.iter().copied()));
        let script = format!("cd {directory} && echo $$ >{PID} && TMPDIR={directory} exec {words}");
        let bar = working(what);
        let mut child = self.adb.start(&self.line(&script))?;
        let said = child.stderr.take().context("a pipe")?;
        let status = std::thread::scope(|scope| {
            scope.spawn(|| {
                for line in BufReader::new(said).split(b'\n').map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line);
                    bar.suspend(|| say!("{}", line.trim_end()));
                }
            });
            self.wait(&mut child, interrupt)
        });
        bar.finish_and_clear();
        status
    }

    fn wait(&self, child: &mut Child, interrupt: &Interrupt) -> anyhow::Result<ExitStatus> {
        let mut is_asked = false;
        loop {
            if let Some(status) = child.try_wait().context("adb")? {
                return Ok(status);
            }
            if interrupt.came() && !is_asked {
                is_asked = true;
                // Whatever becomes of it, the program's end is waited for.
                let kill = format!("kill -INT $(cat {})", self.path(PID));
                self.adb.shell(&self.line(&kill))?;
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// True if a file or a directory is there.
    ///
    /// Errors: there is no adb.
    fn has(&self, path: &str) -> anyhow::Result<bool> {
        Ok(self.adb.shell(&format!("[ -e {path} ]"))?.status.success())
    }

    /// Leaves it on the phone, and says so: what could not be fetched may be of use.
    fn leave(mut self) -> String {
        self.is_left = true;
        format!("the result is left on the phone, in {}", self.directory)
    }

    /// Lets adb's shell read what root made.
    ///
    /// Errors: there is no adb.
    fn give_to(&self, uid: u32) -> anyhow::Result<()> {
        if self.root.is_some() {
            let line = format!("chown -R {uid} {}", self.directory);
            self.adb.shell(&self.line(&line))?;
        }
        Ok(())
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        let line = self.line(&format!("rm -rf {}", self.directory));
        let removed = self.adb.shell(&line);
        if !removed.is_ok_and(|output| output.status.success()) {
            say!("iostep: {} is left on the phone", self.directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_named_before_a_command_of_the_users() {
        let words = |kind: Kind, arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|word| (*word).into()).collect();
            let words = kind.words("/r", &arguments).map(|words| words.join(" "));
            words.map_err(|error| error.to_string())
        };
        assert_eq!(
            words(Kind::Bench, &["sqlite", "/data", "--journal", "wal"]).expect("words"),
            "bench sqlite -o /r /data --journal wal"
        );
        assert_eq!(
            words(Kind::Trace, &["/data", "--", "app", "-o", "x"]).expect("words"),
            "trace -o /r /data -- app -o x"
        );
        for wrong in [&["run", "jobs.toml"][..], &["/data"], &["--profile", "x"]] {
            let error = words(Kind::Bench, wrong).expect_err("no single result");
            assert!(error.starts_with("name file or sqlite first"), "{error}");
        }
    }
}
