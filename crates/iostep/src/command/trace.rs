//! `iostep trace`: record every block I/O of a device while a command runs, or for a time.

use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::ProgressBar;
use iostep_analyze::report::trace as report;
use iostep_analyze::stats::Summary;
use iostep_model::event::Marker;
use iostep_model::printable;
use iostep_model::table::Trace;
use iostep_model::units;
use iostep_report::document::Detail;
use iostep_trace::fault::Fault;
use iostep_trace::rights;
use iostep_trace::session::{BackendChoice, Session};
use iostep_trace::target::Target;
use iostep_trace::user::User;

use super::filter_args::FilterArgs;
use crate::child::Child;
use crate::interrupt::Interrupt;
use crate::recording;
use crate::terminal::{self, say};

/// How often Ctrl-C and the end of the time are looked for.
const TICK: Duration = Duration::from_millis(50);

/// Record every block I/O of a device, and say whose it was and why.
///
/// TARGET is a block device, a partition, or any path on a mounted filesystem. Recording begins
/// before the command's first I/O and ends after its last write has reached the device; without
/// a command it ends with --duration or Ctrl-C, which keeps what was recorded.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep trace /var/lib/app -o app.iostep --settle -- ./app --once
  iostep trace /dev/nvme0n1 --duration 30s
  sudo iostep trace /var/lib/pg --user postgres -- pgbench -c 4 -T 10

Exit status: the command's, 128 and its number if a signal killed it, or if
SIGTERM or SIGHUP ended the recording before its time; else 0, or 1 if events
were lost or sums do not agree.
The trace directory is for `iostep report`; docs/format-trace.md describes it.
Needs root, or CAP_BPF, CAP_PERFMON and CAP_SYSLOG.")]
pub struct Args {
    /// Block device, partition, or any path on a mounted filesystem
    target: PathBuf,

    /// Trace directory to make [default: DEVICE-N.iostep in this directory]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Stop after this long: 10, 500ms, 2m; the command is then sent SIGTERM
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    duration: Option<Duration>,

    /// Sync the filesystem at the end, and mark what that adds
    #[arg(long)]
    settle: bool,

    /// Exit with status 0 even if events were lost or sums do not agree
    #[arg(long)]
    allow_loss: bool,

    /// How to take events
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,

    /// Make a fault on purpose, to see that the self-check finds it
    #[arg(long, hide = true, value_name = "POINT:KIND:NUMBER")]
    fault: Option<Fault>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Print every table, and more rows of each
    #[arg(long, conflicts_with = "json")]
    full: bool,

    #[command(flatten)]
    filter: FilterArgs,

    /// If the kernel refuses a BPF program, print what its verifier said
    #[arg(long)]
    verbose: bool,

    /// Run the command as this user, without any of root's rights
    #[arg(long, value_name = "NAME", requires = "command")]
    user: Option<String>,

    /// Command to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The command is not there, or no program.
#[derive(Debug)]
struct NotRun;

impl std::fmt::Display for NotRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nothing was recorded")
    }
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Backend {
    /// BPF where the kernel has BTF, tracefs elsewhere
    Auto,
    /// BPF programs on tracepoints
    Bpf,
    /// A private tracefs instance: ext4 only, no look into the bios
    Tracefs,
}

impl From<Backend> for BackendChoice {
    fn from(backend: Backend) -> BackendChoice {
        match backend {
            Backend::Auto => BackendChoice::Auto,
            Backend::Bpf => BackendChoice::Bpf,
            Backend::Tracefs => BackendChoice::Tracefs,
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    match units::parse_duration_ns(text) {
        Ok(0) => Err("must be more than 0".into()),
        Ok(ns) => Ok(Duration::from_nanos(ns)),
        Err(error) => Err(error.to_string()),
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let directory = match &args.output {
        Some(directory) => directory.clone(),
        None => free_name(&args.target)?,
    };
    let user = args.user.as_deref().map(User::named).transpose()?;
    let mut living = args.filter.living();
    args.filter.check_processes(&living)?;
    let backend = args.backend.into();
    let started = recording::start(&args.target, &directory, backend, args.fault);
    let mut session = started.inspect_err(|error| show_log(&args, error))?;
    tell(&args, session.target());
    let ended = match watch(&args, user.as_ref(), &mut session, &interrupt) {
        Ok(ended) => ended,
        // A recording whose command could not be run is worth nothing; any other is.
        Err(error) if error.is::<NotRun>() => {
            session.discard();
            return Err(error);
        }
        Err(error) => {
            drop(session);
            return Err(kept(error, &directory));
        }
    };
    let working = terminal::working("finding out what each byte was for");
    let trace = recording::finish(session).map_err(|error| kept(error, &directory))?;
    working.finish_and_clear();
    let failed = !args.allow_loss && !trace.manifest.check.passed();
    living.extend(args.filter.living());
    let checked = FilterArgs::refuse(args.filter.unmatched(&trace, None), &living);
    checked.map_err(|error| whole(error, &directory))?;
    show(&args, &directory, args.filter.filter().apply(trace))?;
    Ok(ExitCode::from(match ended {
        0 => u8::from(failed),
        status => status,
    }))
}

/// Says that the recording has begun, and of what, unless a progress bar does.
fn tell(args: &Args, target: &Target) {
    if args.command.is_empty() && std::io::stderr().is_terminal() {
        return;
    }
    let device = target.title();
    let place = target.mount.as_ref();
    let place = place.map_or(String::new(), |m| format!(" ({})", m.point.display()));
    let end = match (&args.command[..], args.duration) {
        ([], None) => "; Ctrl-C ends it".to_owned(),
        ([], Some(duration)) => format!(" for {duration:?}"),
        ([program, ..], _) => format!(" while {program} runs"),
    };
    say!("iostep: recording {device}{place}{end}");
}

/// The verifier's log is long, and of use to those who know it.
fn show_log(args: &Args, error: &anyhow::Error) {
    match error.downcast_ref() {
        Some(iostep_trace::Error::Refused { log, .. }) if args.verbose => {
            terminal::say_lines(log);
        }
        _ => {}
    }
}

/// Runs the command or waits, then settles. Gives the status that it ended with.
fn watch(
    args: &Args,
    user: Option<&User>,
    session: &mut Session,
    interrupt: &Interrupt,
) -> anyhow::Result<u8> {
    let ended = match args.command.is_empty() {
        true => {
            rights::give_up();
            wait(args.duration, session, interrupt)
        }
        false => run_command(args, user, session, interrupt)?,
    };
    if args.settle {
        session.mark(Marker::SettleStart)?;
        let working = terminal::working("syncing the filesystem");
        settle(session)?;
        working.finish_and_clear();
        session.mark(Marker::SettleEnd)?;
    }
    Ok(ended)
}

/// Runs the command. Gives the status that it ended with, as a shell has it; 0 if its time was over,
/// and that of the signal if one ended it.
fn run_command(
    args: &Args,
    user: Option<&User>,
    session: &mut Session,
    interrupt: &Interrupt,
) -> anyhow::Result<u8> {
    session.mark(Marker::CommandStart)?;
    let spawned = Child::spawn(&args.command, user);
    let mut child = spawned.map_err(|error| error.context(NotRun))?;
    rights::give_up();
    session.set_command(child.description(&args.command));
    let end = args.duration.map(|duration| Instant::now() + duration);
    let over = || interrupt.came() || end.is_some_and(|end| Instant::now() >= end);
    let mut told = false;
    while !child.wait(TICK)? && !over() {
        if !told && !session.is_recording() {
            told = true;
            say!("iostep: recording stopped; the command goes on, and is waited for");
        }
    }
    // Ctrl-C reaches the command too: what that makes of it is no failure.
    let ended = child.shell_status().filter(|_| !interrupt.came());
    if over() {
        child.terminate();
    }
    if child.outlived_by_descendants() {
        say!("iostep: the command ended, processes it started go on; Ctrl-C ends the trace");
        while child.outlived_by_descendants() && !over() && session.is_recording() {
            std::thread::sleep(TICK);
        }
    }
    session.set_command(child.description(&args.command));
    session.mark(Marker::CommandEnd)?;
    if let Some(signal) = child.signal() {
        say!("iostep: {}: killed by signal {signal}", args.command[0]);
    }
    Ok(match ended {
        None | Some(0) if interrupt.came() => interrupt.status(),
        ended => ended.unwrap_or(0),
    })
}

/// Waits for the time to be over or for a signal, whose status it gives if there was a time.
fn wait(duration: Option<Duration>, session: &Session, interrupt: &Interrupt) -> u8 {
    let begin = Instant::now();
    let bar = progress(duration);
    let mut cut = false;
    while session.is_recording() {
        let elapsed = begin.elapsed();
        if duration.is_some_and(|duration| elapsed >= duration) {
            break;
        }
        if interrupt.came() {
            // Without a time a signal is the only end.
            cut = duration.is_some();
            break;
        }
        bar.set_position(elapsed.as_millis() as u64);
        let left = duration.map_or(TICK, |duration| duration.saturating_sub(elapsed));
        std::thread::sleep(left.min(TICK));
    }
    bar.finish_and_clear();
    match cut {
        true => interrupt.status(),
        false => 0,
    }
}

fn progress(duration: Option<Duration>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    bar(duration)
}

fn bar(duration: Option<Duration>) -> ProgressBar {
    let (bar, template) = match duration {
        Some(duration) => (
            // What a bar itself takes for the whole time is none at its beginning.
            ProgressBar::new(duration.as_millis() as u64).with_message(format!("{duration:?}")),
            "recording {bar:40} {elapsed} of {msg}{left}",
        ),
        None => (
            ProgressBar::new_spinner(),
            "recording {spinner} {elapsed}, Ctrl-C ends it",
        ),
    };
    let style = terminal::bar_style(template);
    bar.with_style(style)
}

/// Syncs every traced filesystem; a device without one is synced itself.
fn settle(session: &Session) -> anyhow::Result<()> {
    let target = session.target();
    let of_volumes = target.volumes.iter().filter_map(|it| it.mount.as_ref());
    let mut is_mounted = false;
    for mount in target.mount.iter().chain(of_volumes) {
        is_mounted = true;
        // What was unmounted meanwhile was written by that.
        if let Some(path) = mount.reached() {
            sync(&path, |file| rustix::fs::syncfs(file))?;
        }
    }
    match is_mounted {
        true => Ok(()),
        false => sync(&target.node(), |file| rustix::fs::fsync(file)),
    }
}

fn sync(path: &Path, call: fn(&File) -> rustix::io::Result<()>) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| format!("{}: cannot open", path.display()))?;
    call(&file).with_context(|| format!("{}: cannot sync", path.display()))
}

/// `DEVICE-N.iostep` with the first free N.
fn free_name(target: &Path) -> anyhow::Result<PathBuf> {
    let name = Target::resolve(target)?.title();
    (1..10_000)
        .map(|n| PathBuf::from(format!("{name}-{n}.iostep")))
        .find(|path| !path.exists())
        .context("no free name for the trace directory; name one with -o")
}

/// Says where the recording is that nothing of is shown.
fn whole(error: anyhow::Error, directory: &Path) -> anyhow::Error {
    let directory = directory.display();
    say!("iostep: the whole recording is kept; `iostep report {directory}` shows it");
    error
}

/// Says where the recording is that ended early, as on a full disk.
fn kept(error: anyhow::Error, directory: &Path) -> anyhow::Error {
    let directory = directory.display();
    error.context(format!(
        "the recording stopped early; what it has is kept, and `iostep report {directory}` reads it \
         where there is room"
    ))
}

fn show(args: &Args, directory: &Path, trace: Trace) -> anyhow::Result<()> {
    let summary = Summary::of(&trace);
    if args.json {
        return terminal::print_json(&terminal::json(&summary));
    }
    let detail = if args.full {
        Detail::Full
    } else {
        Detail::Brief
    };
    let text = report::render(&summary, detail, terminal::style());
    let directory = directory.display().to_string();
    terminal::print(&format!("{text}trace: {}\n", printable(&directory)))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// Keeps all that is written to it.
    #[derive(Clone, Debug, Default)]
    struct Written(Arc<Mutex<String>>);

    impl TermLike for Written {
        fn width(&self) -> u16 {
            100
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().expect("no panic").push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_bar_says_from_its_beginning_how_long_it_takes() {
        let written = Written::default();
        let bar = bar(Some(Duration::from_secs(90)));
        bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(written.clone())));
        bar.tick();
        let written = written.0.lock().expect("no panic");
        assert!(written.contains(" 0s of 90s"), "{written}");
        assert!(!written.contains("left"), "{written}");
    }
}
