//! Cells: their storage, their workloads as child processes, and what came of them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use iostep_model::bench::{self, Document, RunState};
use iostep_model::directory::Temporary;
use iostep_model::disk::Disk;
use iostep_model::lab::{Cell, CellResult, Environment, Medium, Run, State, Tool, WorkloadKind};
use iostep_model::manifest::{Counters, Device};
use iostep_model::store;
use iostep_model::table::Trace;
use iostep_model::turns::order;

use crate::child::{self, Cut, Ended};
use crate::cpu_load::CpuLoad;
use crate::error::{Error, Result};
use crate::measured::Measured;
use crate::scratch::Scratch;
use crate::storage::{DeviceSource, Mounted};
use crate::{command_result, measure, recording, replay_result};

/// What runs cells on this machine.
#[derive(Debug)]
pub struct Runner<'a> {
    /// The iostep that is run as a child.
    pub program: PathBuf,
    /// Its version, and the commit it was built from.
    pub version: (&'a str, Option<&'a str>),
    /// Becomes true when a signal came.
    pub interrupted: &'a AtomicBool,
    /// What a cell may take, without its mkfs.
    pub time_limit: Duration,
    /// Set in a guest of the lab: true if its processor is emulated.
    pub guest: Option<bool>,
    /// What the kernel counted for the devices below a directory.
    pub counters: fn(&Path) -> Option<Counters>,
    /// This machine, with the filesystem and the device of a directory.
    pub environment: fn(&Path) -> bench::Environment,
}

/// What cells lie on.
#[derive(Clone, Copy, Debug)]
pub enum Site<'a> {
    /// Storage is made for each cell. The place is what results call it.
    Made(DeviceSource<'a>, Medium),
    /// A directory that is used as it is.
    Directory(&'a Path),
}

/// A cell's storage while it lasts.
enum Held<'a> {
    Made(Box<Mounted>),
    Directory(&'a Path),
}

impl Held<'_> {
    fn root(&self) -> &Path {
        match self {
            Held::Made(mounted) => mounted.root(),
            Held::Directory(path) => path,
        }
    }

    fn journal(&self) -> Option<&Path> {
        match self {
            Held::Made(mounted) => mounted.journal(),
            Held::Directory(_) => None,
        }
    }

    fn settle(&self) -> Result<()> {
        match self {
            Held::Made(mounted) => mounted.settle(),
            Held::Directory(_) => Ok(()),
        }
    }
}

/// What the children left.
struct Left {
    ended: Ended,
    document: Option<Document>,
    trace: Option<Trace>,
    /// Of what leaves no document.
    others: Vec<Run>,
}

impl Runner<'_> {
    /// Runs a cell, or cells that take turns. Whatever goes wrong is in the answers, and whatever
    /// was made is gone.
    ///
    /// Storage is made only in mounts of the caller's own ([`crate::enter_private_mounts`]).
    pub fn run(&self, cells: &[&Cell], site: Site<'_>) -> Vec<Measured> {
        let start = SystemTime::now().duration_since(UNIX_EPOCH);
        let start_wall_ns = start.map_or(0, |since| since.as_nanos() as u64);
        let results = cells.iter();
        let results = results.map(|cell| CellResult::without_runs(cell, State::Complete).into());
        let mut results: Vec<Measured> = results.collect();
        let Some(first) = cells.first() else {
            return results;
        };
        let made = match site {
            Site::Made(source, _) => {
                let filled = !first.turns.is_empty();
                let mounted = Mounted::make(&first.storage, source, filled);
                mounted.map(|mounted| Held::Made(Box::new(mounted)))
            }
            Site::Directory(path) => Ok(Held::Directory(path)),
        };
        match made {
            Ok(held) => self.rounds(&mut results, &held, site, start_wall_ns),
            Err(error) => {
                let failed = self.failed(&error);
                let all = results.iter_mut();
                all.for_each(|measured| measured.result.state = failed.clone());
            }
        }
        results.iter_mut().for_each(Measured::settle);
        results
    }

    /// A round is each cell once. A cell that fails has no further turn.
    fn rounds(&self, results: &mut [Measured], held: &Held<'_>, site: Site<'_>, start: u64) {
        let most = results.iter().map(|it| rounds(&it.result.cell)).max();
        for round in 0..most.unwrap_or(0) {
            for number in order(results.len(), round) {
                let measured = &mut results[number];
                let result = &measured.result;
                if result.state != State::Complete || round >= rounds(&result.cell) {
                    continue;
                }
                let turn = self.turn(measured, held, site, start);
                measured.result.state = turn.unwrap_or_else(|error| self.failed(&error));
            }
        }
    }

    fn failed(&self, error: &Error) -> State {
        // A terminal's Ctrl-C reaches mkfs, too.
        match self.interrupted.load(Ordering::Relaxed) {
            true => State::Interrupted,
            false => State::Failed {
                reason: one_line(&error.to_string()),
            },
        }
    }

    /// Adds the runs of a turn; a cell that runs alone has all of its repetitions in one.
    fn turn(
        &self,
        measured: &mut Measured,
        held: &Held<'_>,
        site: Site<'_>,
        start: u64,
    ) -> Result<State> {
        let result = &mut measured.result;
        if self.interrupted.load(Ordering::Relaxed) {
            return Ok(State::Interrupted);
        }
        held.settle()?;
        let cell = &result.cell;
        let left = self.measure(cell, held)?;
        let environment = result.environment.take();
        result.environment =
            Some(environment.unwrap_or_else(|| self.environment(&left, held, site, start)));
        let runs = match &left.document {
            Some(document) => measure::runs(document, left.trace.as_ref(), cell.pattern),
            None => left.others.clone(),
        };
        let state = state(cell, &left, runs.len(), self.time_limit);
        result.runs.extend(runs);
        if let Some(document) = left.document {
            measured.add(document);
        }
        Ok(state)
    }

    /// Runs the children, and reads what they leave.
    fn measure(&self, cell: &Cell, held: &Held<'_>) -> Result<Left> {
        let scratch = match held {
            Held::Made(_) => Scratch::mounted()?,
            Held::Directory(_) => Scratch::directory()?,
        };
        let output = scratch.path().join("result.json");
        let trace = scratch.path().join("trace");
        let load = CpuLoad::start(cell.cpu_load)
            .map_err(Error::io(&self.program, "start a load beside"))?;
        if cell.workload.kind == WorkloadKind::Command {
            return self.command(cell, held, &output);
        }
        let mut command = match cell.workload.kind {
            WorkloadKind::Replay => self.replay(cell, held, scratch.path())?,
            _ => self.bench(cell, held, &trace),
        };
        command.arg("--repeat").arg(repeat(cell).to_string());
        command.arg("-o").arg(&output);
        let ended = self.child(cell, command.stdout(Stdio::null()))?;
        drop(load);
        let is_bench = cell.workload.kind != WorkloadKind::Replay;
        let traced = cell.trace && is_bench && ended.cut.is_none();
        Ok(Left {
            document: match is_bench {
                true => Document::read(&output).ok(),
                false => None,
            },
            others: match is_bench {
                true => Vec::new(),
                false => replay_result::read(&output),
            },
            trace: match traced && trace.is_dir() {
                true => Some(store::read(&trace)?),
                false => None,
            },
            ended,
        })
    }

    fn child(&self, cell: &Cell, command: &mut Command) -> Result<Ended> {
        let variables = cell.environment.iter().filter_map(|v| v.split_once('='));
        let program = PathBuf::from(command.get_program());
        child::run(
            command.envs(variables),
            self.interrupted,
            Some(self.time_limit),
        )
        .map_err(Error::io(program, "run"))
    }

    /// A program in an empty directory of the filesystem. What the kernel counts is what it counts
    /// from its start to its end.
    fn command(&self, cell: &Cell, held: &Held<'_>, output: &Path) -> Result<Left> {
        let directory = Temporary::new(held.root(), "iostep-command-")?;
        held.settle()?;
        let answer = File::create(output).map_err(Error::io(output, "create"))?;
        let (program, arguments) = cell.workload.arguments.split_first().unzip();
        let mut command = Command::new(program.map_or("", String::as_str));
        command.args(arguments.unwrap_or_default());
        command
            .current_dir(directory.directory().name())
            .stdout(answer);
        let before = (self.counters)(held.root());
        let begin = Instant::now();
        let ended = self.child(cell, &mut command)?;
        let elapsed_ns = begin.elapsed().as_nanos() as u64;
        let counted = before.zip((self.counters)(held.root()));
        let counted = counted.map(|(before, after)| after.since(before));
        let others = match ended.status.success() && ended.cut.is_none() {
            true => vec![command_result::read(output, elapsed_ns, counted)?],
            false => Vec::new(),
        };
        Ok(Left {
            ended,
            document: None,
            trace: None,
            others,
        })
    }

    fn bench(&self, cell: &Cell, held: &Held<'_>, trace: &Path) -> Command {
        let mut command = Command::new(&self.program);
        if cell.trace {
            command.arg("trace").arg(held.root()).arg("-o").arg(trace);
            command.arg("--").arg(&self.program);
        }
        command.args(["bench", cell.workload.kind.name()]);
        command.arg(held.root()).args(&cell.workload.arguments);
        command.arg("--quiet");
        if let Some(journal) = held.journal() {
            command.arg("--journal-device").arg(journal);
        }
        command
    }

    fn replay(&self, cell: &Cell, held: &Held<'_>, scratch: &Path) -> Result<Command> {
        let mut command = Command::new(&self.program);
        command
            .arg("replay")
            .arg(recording::prepare(cell, scratch)?);
        // The first names the recording.
        command.args(cell.workload.arguments.iter().skip(1));
        command.arg("--to").arg(held.root());
        if cell.trace {
            command.arg("--trace");
        }
        Ok(command)
    }

    fn environment(
        &self,
        left: &Left,
        held: &Held<'_>,
        site: Site<'_>,
        start_wall_ns: u64,
    ) -> Environment {
        let found = left.document.as_ref().map(|document| &document.environment);
        let found = found.cloned();
        let found = found.unwrap_or_else(|| (self.environment)(held.root()));
        let device = found.device.clone();
        let (commands, tools): (&[String], &[Tool]) = match held {
            Held::Made(mounted) => (mounted.commands(), mounted.tools()),
            Held::Directory(_) => (&[], &[]),
        };
        let mounted = found.filesystem.as_ref();
        Environment {
            place: match (self.guest, site) {
                (Some(_), _) => Medium::Guest,
                (None, Site::Made(_, place)) => place,
                (None, Site::Directory(_)) => Medium::Directory,
            },
            emulated: self.guest.unwrap_or(false),
            host: found.host.clone(),
            device_model: model(&found.disks, device.as_ref()),
            disks: found.disks.clone(),
            device,
            mounted: mounted.map_or(String::new(), |m| format!("{} {}", m.kind, m.options)),
            commands: commands.to_vec(),
            tools: tools.to_vec(),
            iostep_version: self.version.0.to_owned(),
            iostep_commit: self.version.1.map(str::to_owned),
            sqlite_version: found.sqlite.as_ref().map(|sqlite| sqlite.version.clone()),
            start_wall_ns,
        }
    }
}

/// How many times a cell has its turn: one that takes turns, or whose program runs but once, as
/// often as it is repeated.
fn rounds(cell: &Cell) -> u32 {
    let is_alone = cell.turns.is_empty() && cell.workload.kind != WorkloadKind::Command;
    if is_alone { 1 } else { cell.repeat }
}

/// How many times its workload runs in a turn.
fn repeat(cell: &Cell) -> u32 {
    cell.repeat / rounds(cell)
}

/// What a turn has come to.
fn state(cell: &Cell, left: &Left, whole: usize, limit: Duration) -> State {
    let failed = |reason: String| State::Failed {
        reason: one_line(&reason),
    };
    match left.ended.cut {
        Some(Cut::Interrupted) => return State::Interrupted,
        Some(Cut::TimeLimit) => {
            return failed(format!("it did not end within {} seconds", limit.as_secs()));
        }
        None => {}
    }
    let interrupted = |document: &Document| {
        let mut runs = document.runs.iter();
        runs.any(|run| run.state == RunState::Interrupted)
    };
    if left.document.as_ref().is_some_and(interrupted) {
        return State::Interrupted;
    }
    if whole == 0 || whole < repeat(cell) as usize || !left.ended.status.success() {
        return failed(left.ended.reason());
    }
    match (&left.trace, cell.trace && left.document.is_some()) {
        (None, true) => failed(left.ended.reason()),
        _ => State::Complete,
    }
}

/// What the disk calls itself that is the device, or has it as a partition; empty for one that has
/// no name.
fn model(disks: &[Disk], device: Option<&Device>) -> String {
    let mut own = disks.iter().filter(|disk| {
        let device = device.map_or("", |device| &device.name);
        device.starts_with(&disk.name)
    });
    own.find_map(|disk| disk.model.clone()).unwrap_or_default()
}

fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(500).collect()
}
