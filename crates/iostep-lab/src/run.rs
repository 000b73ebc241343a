//! One cell: its storage, its workload as a child process, and what came of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iostep_model::bench::{Document, RunState};
use iostep_model::host::Host;
use iostep_model::lab::{Cell, CellResult, Environment, Place, Run, State, Tool, WorkloadKind};
use iostep_model::store;
use iostep_model::table::Trace;

use crate::child::{self, Cut, Ended};
use crate::cpu_load::CpuLoad;
use crate::error::{Error, Result};
use crate::scratch::Scratch;
use crate::storage::{Ground, Mounted};
use crate::{measure, recording, replay_result};

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
}

/// What cells lie on.
#[derive(Clone, Copy, Debug)]
pub enum Site<'a> {
    /// Storage is made for each cell. The place is what results call it.
    Made(Ground<'a>, Place),
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
    replays: Vec<Run>,
}

impl Runner<'_> {
    /// Runs a cell. Whatever goes wrong is in the answer, and whatever was made is gone.
    ///
    /// Storage is made only in mounts of the caller's own ([`crate::enter_private_mounts`]).
    pub fn run(&self, cell: &Cell, site: Site<'_>) -> CellResult {
        let start = SystemTime::now().duration_since(UNIX_EPOCH);
        let start_wall_ns = start.map_or(0, |since| since.as_nanos() as u64);
        let mut result = CellResult {
            cell: cell.clone(),
            state: State::Complete,
            environment: None,
            runs: Vec::new(),
        };
        if let Err(error) = self.attempt(&mut result, site, start_wall_ns) {
            // A terminal's Ctrl-C reaches mkfs, too.
            result.state = match self.interrupted.load(Ordering::Relaxed) {
                true => State::Interrupted,
                false => State::Failed {
                    reason: one_line(&error.to_string()),
                },
            };
        }
        result
    }

    fn attempt(&self, result: &mut CellResult, site: Site<'_>, start_wall_ns: u64) -> Result<()> {
        let cell = &result.cell;
        let held = match site {
            Site::Made(ground, _) => Held::Made(Box::new(Mounted::make(&cell.storage, ground)?)),
            Site::Directory(path) => Held::Directory(path),
        };
        held.settle()?;
        let left = self.measure(cell, &held)?;
        result.environment = Some(self.environment(&left, &held, site, start_wall_ns));
        result.runs = match &left.document {
            Some(document) => measure::runs(document, left.trace.as_ref(), cell.pattern),
            None => left.replays.clone(),
        };
        result.state = state(cell, &left, result.runs.len(), self.time_limit);
        Ok(())
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
        let mut command = match cell.workload.kind {
            WorkloadKind::Replay => self.replay(cell, held, scratch.path())?,
            WorkloadKind::Sqlite | WorkloadKind::File => self.bench(cell, held, &trace),
        };
        command.arg("--repeat").arg(cell.repeat.to_string());
        command.arg("-o").arg(&output);
        let ended = child::run(&mut command, self.interrupted, Some(self.time_limit))
            .map_err(Error::io(&self.program, "run"))?;
        drop(load);
        let is_bench = cell.workload.kind != WorkloadKind::Replay;
        let traced = cell.trace && is_bench && ended.cut.is_none();
        Ok(Left {
            document: match is_bench {
                true => Document::read(&output).ok(),
                false => None,
            },
            replays: match is_bench {
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
        let device = found.and_then(|found| found.device.clone());
        let (commands, tools): (&[String], &[Tool]) = match held {
            Held::Made(mounted) => (mounted.commands(), mounted.tools()),
            Held::Directory(_) => (&[], &[]),
        };
        let mounted = found.and_then(|found| found.filesystem.as_ref());
        Environment {
            place: match (self.guest, site) {
                (Some(_), _) => Place::Guest,
                (None, Site::Made(_, place)) => place,
                (None, Site::Directory(_)) => Place::Directory,
            },
            emulated: self.guest.unwrap_or(false),
            host: found.map_or_else(Host::running, |found| found.host.clone()),
            device_model: device
                .as_ref()
                .map_or(String::new(), |device| model(&device.name)),
            device,
            mounted: mounted.map_or(String::new(), |m| format!("{} {}", m.kind, m.options)),
            commands: commands.to_vec(),
            tools: tools.to_vec(),
            iostep_version: self.version.0.to_owned(),
            iostep_commit: self.version.1.map(str::to_owned),
            sqlite_version: found
                .and_then(|found| found.sqlite.as_ref())
                .map(|sqlite| sqlite.version.clone()),
            start_wall_ns,
        }
    }
}

/// What a cell that was tried has come to.
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
    if whole == 0 || whole < cell.repeat as usize || !left.ended.status.success() {
        return failed(left.ended.reason());
    }
    match (&left.trace, cell.trace && left.document.is_some()) {
        (None, true) => failed(left.ended.reason()),
        _ => State::Complete,
    }
}

/// What a device calls itself; empty for one that does not.
fn model(device: &str) -> String {
    let directory = PathBuf::from("/sys/class/block").join(device);
    // A partition has its disk's.
    let files = ["device/model", "../device/model", "device/name"];
    let found = files
        .iter()
        .find_map(|name| std::fs::read_to_string(directory.join(name)).ok());
    found.map_or(String::new(), |text| text.trim().to_owned())
}

fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(500).collect()
}
