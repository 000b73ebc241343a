//! The replays, one after the other.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use iostep_analyze::replay::{Run, Summary, Target};
use iostep_load::replay::plan::Plan;
use iostep_load::replay::{Stage, Watch};
use iostep_model::bench::Environment;
use iostep_model::disk;
use iostep_model::printable;
use iostep_model::replay::Settings;
use iostep_model::syscall::{Content, InitialKind, Recording};

use super::traced;
use crate::command::bench::Location;
use crate::disk_health;
use crate::interrupt::Interrupt;
use crate::terminal;

/// Between two looks at how far a replay is, and at Ctrl-C.
const TICK: Duration = Duration::from_millis(100);
const PREPARING: &str = "{prefix}: making files {bar:30} {bytes} of {total_bytes}{left}";
const RUNNING: &str = "{prefix}: {bar:30} {msg}{left}";

/// What is to be done.
pub struct Order<'a> {
    pub recording: &'a Recording,
    pub plan: &'a Plan,
    pub settings: Settings,
    /// Where kept content is.
    pub kept_data: &'a Path,
    pub directories: &'a [PathBuf],
    /// How often in each.
    pub repeat: u32,
    /// Record block I/O.
    pub trace: bool,
    /// Leave the files of the last run.
    pub keep: bool,
}

/// How the replays ended.
#[derive(Debug)]
pub enum End {
    /// All of them are done.
    Whole,
    /// By a signal.
    Interrupted,
    /// One could not be made: the initial state, a thread, the recording of block I/O.
    Failed(anyhow::Error),
}

/// Runs everything: one replay in each directory, then again, so that a drift of the machine
/// favours none. Gives what was measured, whatever ended it, and the disks' health around it.
pub fn all(order: &Order<'_>, interrupt: &Interrupt) -> (Vec<Target>, End) {
    let mut targets: Vec<Target> = order.directories.iter().map(|path| target(path)).collect();
    let end = rounds(order, &mut targets, interrupt);
    for target in &mut targets {
        disk::read_after(Path::new("/"), &mut target.disks);
        // A recording of block I/O gives up the right to ask.
        disk_health::ask_again(&mut target.disks);
    }
    (targets, end)
}

fn rounds(order: &Order<'_>, targets: &mut [Target], interrupt: &Interrupt) -> End {
    for round in 1..=order.repeat {
        for (directory, target) in order.directories.iter().zip(targets.iter_mut()) {
            let prefix = match order.repeat {
                1 => directory.display().to_string(),
                repeat => format!("{} {round}/{repeat}", directory.display()),
            };
            let keep = order.keep && round == order.repeat;
            match one(order, directory, &prefix, keep, interrupt) {
                Ok(run) => target.runs.push(run),
                Err(error) if is_interruption(&error) => return End::Interrupted,
                Err(error) => return End::Failed(error),
            }
            if interrupt.came() {
                return End::Interrupted;
            }
        }
    }
    End::Whole
}

fn is_interruption(error: &anyhow::Error) -> bool {
    let found = error.downcast_ref::<iostep_load::Error>();
    matches!(found, Some(iostep_load::Error::Interrupted))
}

/// A directory before its first replay.
fn target(path: &Path) -> Target {
    let Environment {
        filesystem,
        device,
        mut disks,
        ..
    } = Location::in_directory(path).environment();
    disk::read_before(Path::new("/"), &mut disks);
    Target {
        directory: path.display().to_string(),
        filesystem: filesystem.map(|filesystem| filesystem.kind),
        device,
        disks,
        runs: Vec::new(),
    }
}

fn one(
    order: &Order<'_>,
    directory: &Path,
    prefix: &str,
    keep: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Run> {
    let kept_data = order.kept_data.is_dir().then_some(order.kept_data);
    let watch = Watch::default();
    let bar = Bar::new(order, prefix);
    let stage = watched(&watch, interrupt, &bar, Bar::prepared, || {
        Stage::set(order.recording, directory, kept_data, keep, &watch)
    })?;
    bar.start_running();
    let perform = || {
        watched(&watch, interrupt, &bar, Bar::performed, || {
            stage.perform(order.recording, order.plan, order.settings, &watch)
        })
    };
    let (replay, block) = match order.trace {
        false => (perform()?, None),
        true => {
            let (replay, block) = traced::record(directory, || Ok(perform()?))?;
            (replay, Some(block))
        }
    };
    bar.bar.finish_and_clear();
    Ok(Run {
        summary: Summary::of(order.recording, &replay),
        block,
    })
}

/// Does `work` in a thread of its own while this one shows how far it is and looks for signals.
fn watched<T: Send>(
    watch: &Watch,
    interrupt: &Interrupt,
    bar: &Bar,
    show: fn(&Bar, &Watch),
    work: impl FnOnce() -> T + Send,
) -> T {
    std::thread::scope(|scope| {
        let (over, ended) = channel::<()>();
        let worker = scope.spawn(move || {
            let done = work();
            // Wakes the other thread; also by its drop, if the work panics.
            drop(over);
            done
        });
        while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            show(bar, watch);
            if interrupt.came() {
                watch.interrupted.store(true, Ordering::Relaxed);
            }
        }
        let joined = worker.join();
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// How far a replay is, on the terminal.
struct Bar {
    bar: ProgressBar,
    calls: u64,
    began: std::cell::Cell<Instant>,
}

impl Bar {
    fn new(order: &Order<'_>, prefix: &str) -> Bar {
        let initial = order.recording.initial.iter().map(|file| match file.kind {
            InitialKind::File {
                content: Content::Hole,
                ..
            } => 0,
            InitialKind::File { size, .. } => size,
            _ => 0,
        });
        let bytes = initial.fold(0, u64::saturating_add);
        let bar = match std::io::stderr().is_terminal() {
            true => ProgressBar::new(bytes),
            false => ProgressBar::hidden(),
        };
        Bar {
            bar: bar
                .with_style(terminal::bar_style(PREPARING))
                .with_prefix(printable(prefix).into_owned()),
            calls: order.recording.calls.len() as u64,
            began: std::cell::Cell::new(Instant::now()),
        }
    }

    fn prepared(&self, watch: &Watch) {
        let bytes = watch.prepared_bytes.load(Ordering::Relaxed);
        self.bar.set_position(bytes);
    }

    fn start_running(&self) {
        self.began.set(Instant::now());
        self.bar.set_style(terminal::bar_style(RUNNING));
        self.bar.set_length(self.calls);
        self.bar.reset();
    }

    fn performed(&self, watch: &Watch) {
        let calls = watch.calls.load(Ordering::Relaxed);
        let rate = calls as f64 / self.began.get().elapsed().as_secs_f64().max(1e-3);
        let all = self.calls;
        self.bar
            .set_message(format!("{calls} of {all} calls, {rate:.0}/s"));
        self.bar.set_position(calls);
    }
}
