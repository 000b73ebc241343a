//! Who watches a run: the device's counters, a bar on the terminal, the log of operations.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use iostep_load::engine::{Observer, Operation, Progress};
use iostep_load::environment::others::Watch;
use iostep_model::bench::{FileJob, Job, Limits, OthersIo, Sharing};
use iostep_model::manifest::Counters;
use iostep_trace::counters;
use iostep_trace::target::Target;

use super::progress::{self, Lines, Phase};
use crate::terminal;

/// The first line of a log.
const LOG_HEADER: &str = "run,thread,end_ns,latency_ns,sync_ns\n";
/// How often it is looked which processes are there.
const LOOK: Duration = Duration::from_millis(500);
const PREPARING: &str = "{prefix} {bar:30} {percent} %{left}";
const RUNNING: &str = "{prefix} {bar:30} {msg}{left}";

/// Watches every run of a job.
pub struct Watcher<'a> {
    devices: Vec<&'a Target>,
    bar: ProgressBar,
    lines: Option<Lines>,
    /// When preparing began.
    began: Instant,
    shows: Shows,
    goal: Goal,
    /// The run under way, from 1, and how many there can be.
    run: (u32, u32),
    log: Option<Log<'a>>,
    /// Whose I/O it is, while a run is measured.
    others: Option<Watch>,
    /// What other partitions of the disks counted when a run began to be measured.
    beside: Option<Counters>,
    /// When it was last looked who is there.
    looked: Instant,
}

/// What the bar is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    Nothing,
    Preparing,
    Running,
}

/// When a run will be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// After this time, ramp included.
    TimeNs(u64),
    /// After so many operations of all threads.
    Operations(u64),
}

struct Log<'a> {
    out: &'a mut dyn Write,
    failed: Option<io::Error>,
}

impl<'a> Watcher<'a> {
    /// Watches `devices`, writes operations to `log`, and shows at most `runs` runs of `job`.
    pub fn new(
        job: &Job,
        runs: u32,
        devices: Vec<&'a Target>,
        log: Option<&'a mut dyn Write>,
    ) -> Watcher<'a> {
        Watcher {
            devices: match devices.iter().all(|device| counters::counts(device)) {
                true => devices,
                false => Vec::new(),
            },
            bar: super::bar(),
            lines: None,
            began: Instant::now(),
            shows: Shows::Nothing,
            goal: Goal::of(job),
            run: (1, runs),
            log: log.map(Log::new),
            others: None,
            beside: None,
            looked: Instant::now(),
        }
    }

    /// Says progress as lines, too.
    pub fn say_lines(&mut self) {
        self.lines = Some(Lines::default());
    }

    /// The next progress is that of run `number`, from 1.
    pub fn begin_run(&mut self, number: u32) {
        self.run.0 = number;
        self.shows = Shows::Nothing;
        self.began = Instant::now();
    }

    /// Takes the bar off the terminal.
    ///
    /// Errors: whatever kept the log from being written.
    pub fn finish(self) -> io::Result<()> {
        self.bar.finish_and_clear();
        self.log.and_then(|log| log.failed).map_or(Ok(()), Err)
    }

    fn say(&mut self, phase: Phase, (done, length): (u64, u64), elapsed_ns: u64, operations: u64) {
        let (run, runs) = self.run;
        let done = done.min(length) as f64 / length.max(1) as f64;
        if let Some(lines) = &mut self.lines {
            lines.say(progress::Progress {
                run,
                runs,
                phase,
                done,
                elapsed_ns,
                left_ns: progress::left_ns(elapsed_ns, done),
                operations,
            });
        }
    }

    fn show(&mut self, shows: Shows, length: u64) {
        if self.shows == shows {
            return;
        }
        self.shows = shows;
        let (template, prefix) = match (shows, self.run) {
            (Shows::Running, (_, 1)) => (RUNNING, "running".to_owned()),
            (Shows::Running, (run, runs)) => (RUNNING, format!("run {run} of {runs}")),
            _ => (PREPARING, "preparing".to_owned()),
        };
        let style = terminal::bar_style(template);
        self.bar.set_style(style);
        self.bar.set_prefix(prefix);
        self.bar.set_length(length);
        self.bar.reset();
    }
}

impl Observer for Watcher<'_> {
    fn begin(&mut self) {
        let layers = self.devices.iter().flat_map(|device| device.disks());
        let disks: Vec<(u32, u32)> = layers
            .map(|disk| (disk.number.major, disk.number.minor))
            .collect();
        // Without counters there is nothing that others could be in.
        self.others = (!disks.is_empty()).then(|| Watch::begin(Path::new("/"), &disks));
        self.beside = counters::beside(self.devices.iter().copied()).ok();
        self.looked = Instant::now();
    }

    fn others(&mut self) -> Option<OthersIo> {
        let devices = || self.devices.iter().copied();
        let beside = counters::beside(devices()).ok().zip(self.beside);
        let others = self.others.take().map(Watch::end)?;
        Some(OthersIo {
            beside: beside.map_or_else(Counters::default, |(now, then)| now.since(then)),
            flushes_not_counted: counters::without_flushes(devices()),
            ..others
        })
    }

    fn device(&mut self) -> Option<Counters> {
        let devices = self.devices.iter().copied();
        let counted = counters::read(devices).ok();
        counted.filter(|_| !self.devices.is_empty())
    }

    fn progress(&mut self, progress: Progress) {
        if let Some(others) = &mut self.others
            && self.looked.elapsed() >= LOOK
        {
            others.look();
            self.looked = Instant::now();
        }
        let (done, length) = match self.goal {
            Goal::TimeNs(ns) => (progress.elapsed_ns / 1_000_000, ns / 1_000_000),
            Goal::Operations(count) => (progress.operations, count),
        };
        self.show(Shows::Running, length);
        let seconds = progress.elapsed_ns as f64 / 1e9;
        let rate = progress.operations as f64 / seconds.max(1e-3);
        self.bar.set_message(format!("{rate:.0}/s"));
        self.bar.set_position(done.min(length));
        let Progress {
            elapsed_ns,
            operations,
        } = progress;
        self.say(Phase::Running, (done, length), elapsed_ns, operations);
    }

    fn preparing(&mut self, done: u64, total: u64) {
        self.show(Shows::Preparing, total);
        self.bar.set_position(done.min(total));
        let elapsed_ns = self.began.elapsed().as_nanos() as u64;
        self.say(Phase::Preparing, (done, total), elapsed_ns, 0);
    }

    fn wants_operations(&self) -> bool {
        self.log.is_some()
    }

    fn operations(&mut self, thread: u32, operations: &[Operation]) {
        let run = self.run.0;
        if let Some(log) = &mut self.log {
            log.write(run, thread, operations);
        }
    }
}

impl Goal {
    fn of(job: &Job) -> Goal {
        let operations = match job {
            Job::File(job) => file_operations(job),
            Job::Sqlite(job) => job.transactions.saturating_mul(job.threads.into()),
        };
        match job.measurement().limits {
            Limits {
                time_ns: Some(time_ns),
                ramp_ns,
            } => Goal::TimeNs(time_ns.saturating_add(ramp_ns)),
            _ => Goal::Operations(operations),
        }
    }
}

/// Operations of one pass of all threads. In order, threads with one file each take a part of it.
fn file_operations(job: &FileJob) -> u64 {
    let records = job.file_bytes / job.record_bytes.max(1);
    match job.sharing {
        Sharing::SharedFile if !job.access.random() => records,
        _ => records.saturating_mul(u64::from(job.threads)),
    }
}

impl Log<'_> {
    fn new(out: &mut dyn Write) -> Log<'_> {
        let failed = out.write_all(LOG_HEADER.as_bytes()).err();
        Log { out, failed }
    }

    /// After a failure nothing more is written: lines would be missing in between.
    fn write(&mut self, run: u32, thread: u32, operations: &[Operation]) {
        for operation in operations {
            if self.failed.is_some() {
                return;
            }
            let Operation {
                end_ns,
                latency_ns,
                sync_ns,
            } = operation;
            let line = writeln!(self.out, "{run},{thread},{end_ns},{latency_ns},{sync_ns}");
            self.failed = line.err();
        }
    }
}
