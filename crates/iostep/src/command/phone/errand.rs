//! A command of iostep that runs on the phone, and its result's way to the desk.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use iostep_model::publish;
use iostep_model::syscall::kept;

use super::adb::{self, Adb, Root, directory, is_plain_name};
use super::device::{self, Device};
use super::{PhoneArgs, fetch, program};
use crate::command::report;
use crate::error::bad_input;
use crate::shell::{line, quoted};
use crate::terminal::{self, say, working};

/// A program may not be there yet to hear a signal.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(500);
/// Whoever sends more does not want to wait for the program.
const MOST_SIGNALS: u32 = 3;
/// A line of a program that is said at once.
const MOST_LINE_BYTES: u64 = 64 << 10;
/// The result's name on the phone, and that of a recording that is compressed, as its name says.
const RESULT: &str = "result";
const COMPRESSED: &str = "result.zst";
/// What helps with what was fetched and cannot be used.
const HINT: &str = "adb pull can fetch it";
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
    let device = device::ask(adb, &phone.directory, kind.needs_root())?;
    let root = root(kind, &device)?;
    program::provide(adb, phone, &device)?;
    let mut place = PhoneDirectory::make(adb, &phone.directory, root)?;
    let is_compressed =
        kind == Kind::Record && args.output.extension().is_some_and(|it| it == "zst");
    let result = place.path(if is_compressed { COMPRESSED } else { RESULT });
    let words = kind.words(&result, &args.arguments)?;
    let what = format!("{} on {}", kind.name(), device.name());
    let ended = place.run(&words, &what)?;
    let Some(status) = ended.status else {
        let hint = place.leave("the program may still run");
        bail!("the connection to the phone was lost; {hint}");
    };
    let has_result = place
        .give_to(device.shell_uid)
        .and_then(|()| place.has(&result));
    let fetched = match has_result {
        // The command said why.
        Ok(false) if status != 0 => return Ok(ExitCode::from(status)),
        Ok(false) => bail!("{}: it made no result", device.name()),
        Ok(true) => fetch(adb, kind, &result, &args.output),
        Err(error) => Err(error),
    };
    if let Err(error) = fetched {
        let hint = place.leave("adb pull can fetch what is there");
        return Err(error.context(hint));
    }
    say!(
        "iostep: {} was fetched from {}",
        args.output.display(),
        device.name()
    );
    keep(&args.output).map_err(|error| anyhow!("{}: {error:#}", place.leave(HINT)))?;
    // What cannot be read here is better there than nowhere; and it is no bad usage.
    let shown = report::fetched(&args.output, args.html.as_deref(), args.json)
        .map_err(|error| anyhow!("{}: {error:#}", place.leave(HINT)))?;
    drop(place);
    if let Some(page) = args.html.as_deref().filter(|_| args.open) {
        open(page)?;
    }
    Ok(match status {
        0 if ended.was_interrupted => ExitCode::from(adb.interrupt.status()),
        0 => shown,
        status => ExitCode::from(status),
    })
}

fn fetch(adb: &Adb, kind: Kind, from: &str, to: &Path) -> anyhow::Result<()> {
    match kind {
        Kind::Trace => fetch::directory(adb, from, to),
        Kind::Bench => fetch::result(adb, from, to),
        Kind::Record => fetch::recording(adb, from, to),
    }
}

/// Makes the name of what was fetched survive a power loss, as its content does.
fn keep(output: &Path) -> anyhow::Result<()> {
    let mut directories = vec![place_of(output)?];
    directories.extend(output.is_dir().then(|| output.to_owned()));
    directories.extend(Some(kept::directory_of(output)).filter(|data| data.is_dir()));
    directories.iter().try_for_each(|directory| {
        match File::open(directory).and_then(|directory| directory.sync_all()) {
            // A directory that may not be read, or whose filesystem syncs none, as one of a network.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported
                ) =>
            {
                Ok(())
            }
            done => done.with_context(|| format!("{}: cannot sync", directory.display())),
        }
    })
}

/// Everything that could keep a result from its place, before there is one.
fn check(kind: Kind, args: &ErrandArgs) -> anyhow::Result<()> {
    let output = args.output.as_path();
    let new = match kind {
        Kind::Bench => None,
        Kind::Trace => Some(args.output.clone()),
        Kind::Record => Some(kept::directory_of(output)),
    };
    if let Some(path) = new.filter(|path| path.symlink_metadata().is_ok()) {
        return Err(fetch::is_there(&path));
    }
    terminal::check_results(args.json, args.html.iter().chain([&args.output]))?;
    let wrong = |what: &str| Err(bad_input(anyhow!("{}: {what}", output.display())));
    let found = output.metadata().ok();
    let is_no_file = found.is_some_and(|found| !found.is_file())
        || output.as_os_str().as_bytes().ends_with(b"/")
        || publish::is_standard_output(output);
    if is_no_file {
        return wrong("name a file, which is then shown");
    }
    let parent = place_of(output);
    if !parent.as_deref().is_ok_and(Path::is_dir) {
        return wrong("there is no directory for it");
    }
    if let Some(page) = &args.html {
        let is_same = place_of(page).ok() == parent.ok() && page.file_name() == output.file_name();
        if is_same {
            return wrong("name another file for the page");
        }
        if kind == Kind::Record {
            return Err(bad_input(anyhow!("--html: a recording has no page")));
        }
        if args.open && publish::is_standard_output(page) {
            return Err(bad_input(anyhow!("--open: name a file with --html")));
        }
    }
    // Before the phone is asked for anything.
    kind.words("", &args.arguments).map(drop)
}

/// The directory that a path is in.
fn place_of(path: &Path) -> std::io::Result<PathBuf> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    parent.unwrap_or(Path::new(".")).canonicalize()
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

fn open(page: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("xdg-open");
    command.arg(page).stdin(Stdio::null());
    let status = command.status().context("xdg-open: cannot run it")?;
    match status.success() {
        true => Ok(()),
        false => bail!("xdg-open: {status}; {} is written", page.display()),
    }
}

/// How a program on the phone ended.
struct Ended {
    /// Its exit status; `None` if the phone was lost.
    status: Option<u8>,
    /// A signal was handed on to it.
    was_interrupted: bool,
}

/// A directory on the phone, which is removed with all that is in it.
struct PhoneDirectory<'a> {
    adb: &'a Adb,
    directory: String,
    root: Option<Root>,
    is_left: bool,
}

impl PhoneDirectory<'_> {
    /// Makes one below `parent`.
    ///
    /// Errors: it cannot be made.
    fn make<'a>(
        adb: &'a Adb,
        parent: &str,
        root: Option<Root>,
    ) -> anyhow::Result<PhoneDirectory<'a>> {
        let template = format!("{parent}/run.XXXXXX");
        let answer = adb.shell(&line(["mktemp", "-d", &template]))?;
        // It is removed later: nothing else than what was asked for.
        let is_ours = |path: &&str| {
            let name = path.strip_prefix(parent);
            let name = name.and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| name.starts_with("run.") && is_plain_name(name))
        };
        match answer.output.lines().map(str::trim).rfind(is_ours) {
            Some(path) => Ok(PhoneDirectory {
                adb,
                directory: directory(path)?,
                root,
                is_left: false,
            }),
            None => bail!(
                "{parent}: cannot make a directory on the phone: {}",
                answer.said
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

    /// Runs the program there, says what it says, and hands on signals.
    ///
    /// Errors: there is no adb; signals, and the program does not end.
    fn run(&mut self, words: &[&str], what: &str) -> anyhow::Result<Ended> {
        let directory = self.directory.as_str();
        let (parent, _) = directory.rsplit_once('/').context("a place")?;
        let program = format!("{parent}/iostep");
        let words = line([program.as_str()].into_iter().chain(words.iter().copied()));
        let script = format!(
            "cd {directory} && echo $$ >{PID} && TMPDIR={directory} exec {words} >/dev/null"
        );
        // A shell of its own, whose process id is the program's.
        let script = self.line(&format!("sh -c {}", quoted(&script)));
        if self.adb.interrupt.came() {
            bail!("interrupted");
        }
        let bar = working(what);
        let mut child = self.adb.start(&script)?;
        let (output, said) = (child.stdout.take(), child.stderr.take());
        let waited = std::thread::scope(|scope| {
            let status = scope.spawn(|| {
                let mut status = None;
                lines(output, |line| {
                    status = adb::status_in(line.as_bytes()).or(status)
                });
                status
            });
            scope.spawn(|| lines(said, |line| bar.suspend(|| say!("{line}"))));
            let waited = self.wait(&mut child);
            if waited.is_err() {
                adb::end(&mut child);
            }
            waited.map(|was_interrupted| Ended {
                status: status.join().unwrap_or_default(),
                was_interrupted,
            })
        });
        bar.finish_and_clear();
        match waited {
            Ok(ended) => Ok(ended),
            Err(error) => {
                let hint = self.leave("the program may still run");
                Err(error.context(hint))
            }
        }
    }

    /// True if a signal came.
    fn wait(&self, child: &mut Child) -> anyhow::Result<bool> {
        let interrupt = &self.adb.interrupt;
        let (mut signals, mut is_pending, mut next) = (0, false, Instant::now());
        loop {
            let has_ended = child.try_wait().context("adb")?.is_some();
            // The next one is heard, too. One that comes as the program ends is not for the fetching.
            if interrupt.flag().swap(false, Ordering::Relaxed) {
                (signals, is_pending, next) = (signals + 1, true, Instant::now());
            }
            if has_ended {
                return Ok(signals > 0);
            }
            if signals > MOST_SIGNALS {
                bail!("the program on the phone does not end");
            }
            if is_pending && Instant::now() >= next {
                // It may not have begun yet, or the phone does not answer: then once more.
                let kill = format!("kill -INT $(cat {})", self.path(PID));
                let killed = self.adb.shell_soon(&self.line(&kill));
                is_pending = !killed.is_ok_and(|answer| answer.succeeded());
                next = Instant::now() + BETWEEN_SIGNALS;
            }
            std::thread::sleep(adb::INTERVAL);
        }
    }

    /// True if a file or a directory is there.
    ///
    /// Errors: there is no adb; the phone is lost.
    fn has(&self, path: &str) -> anyhow::Result<bool> {
        let answer = self.adb.shell(&format!("[ -e {path} ]"))?;
        match answer.status {
            Some(status) => Ok(status == 0),
            None => bail!("no phone answers: {}", answer.said),
        }
    }

    /// Leaves it on the phone, and says so: what could not be fetched may be of use.
    fn leave(&mut self, hint: &str) -> String {
        self.is_left = true;
        format!(
            "the result is left on the phone, in {}; {hint}",
            self.directory
        )
    }

    /// Lets adb's shell read what root made.
    ///
    /// Errors: there is no adb, or the phone fails.
    fn give_to(&self, uid: u32) -> anyhow::Result<()> {
        if self.root.is_none() {
            return Ok(());
        }
        let answer = self
            .adb
            .shell(&self.line(&format!("chown -R {uid} {}", self.directory)))?;
        match answer.succeeded() {
            true => Ok(()),
            false => bail!("on the phone: {}", answer.said),
        }
    }
}

/// Hands the lines of a pipe on; long ones in parts.
fn lines(pipe: Option<impl Read>, mut each: impl FnMut(&str)) {
    let Some(mut pipe) = pipe.map(BufReader::new) else {
        return;
    };
    loop {
        let mut line = Vec::new();
        match (&mut pipe)
            .take(MOST_LINE_BYTES)
            .read_until(b'\n', &mut line)
        {
            // What cannot be read was not said.
            Ok(0) | Err(_) => return,
            Ok(_) => each(String::from_utf8_lossy(&line).trim_end()),
        }
    }
}

impl Drop for PhoneDirectory<'_> {
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        let line = self.line(&format!("rm -rf {}", self.directory));
        let removed = self.adb.shell_soon(&line);
        if !removed.is_ok_and(|answer| answer.succeeded()) {
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
