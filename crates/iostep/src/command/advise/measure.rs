//! Runs the present setting and the candidates by turns, each run in a process of its own.

use std::ffi::OsString;
use std::mem::discriminant;
use std::path::Path;
use std::time::Duration;

use iostep_model::directory::Temporary;

use anyhow::Context;
use indicatif::ProgressBar;
use iostep_analyze::advise::{
    Candidate, Observation, Planned, Setback, Setting, Situation, Turn, Turns,
};
use iostep_analyze::bench::Summary;
use iostep_load::Error;
use iostep_model::bench::{Document, Environment, Warning};
use iostep_model::pragma::Journal;
use iostep_model::printable;
use iostep_model::turns::order;

use super::remount::Remounted;
use crate::command::bench::{bar, child};
use crate::error::describe;
use crate::interrupt::Interrupt;
use crate::terminal;

/// What came of it.
#[derive(Debug, Default)]
pub struct Measured {
    /// Every run.
    pub turns: Turns,
    pub environment: Option<Environment>,
    /// What spoils it, each kind once.
    pub warnings: Vec<Warning>,
}

/// Measures every candidate that has no reason against it, in as many rounds as asked, until a
/// signal comes.
///
/// Errors: `Refused` if nothing can be written beside the database; a present setting that cannot
/// be measured.
pub fn all(
    place: &Situation,
    planned: &[Planned],
    interrupt: &Interrupt,
) -> anyhow::Result<Measured> {
    let mut session = Session::new(place, planned, interrupt)?;
    let finished = session.rounds(planned);
    session.bar.finish_and_clear();
    match finished {
        Ok(()) => {}
        Err(Stop::Setback(Setback::Interrupted)) => session.measured.turns.interrupted = true,
        Err(Stop::Setback(Setback::NotApplicable(reason) | Setback::Failed(reason))) => {
            let name = place.present.name();
            anyhow::bail!("the present setting ({name}) cannot be measured: {reason}");
        }
        Err(Stop::Broken(error)) => return Err(error),
    }
    Ok(session.measured)
}

/// Why a run has no figures.
enum Stop {
    /// The setting's own fault, or a signal.
    Setback(Setback),
    /// Nothing can be measured any more.
    Broken(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Stop {
        Stop::Broken(error)
    }
}

impl From<Setback> for Stop {
    fn from(setback: Setback) -> Stop {
        Stop::Setback(setback)
    }
}

struct Session<'a> {
    place: &'a Situation,
    interrupt: &'a Interrupt,
    bar: ProgressBar,
    measured: Measured,
    /// Beside the database, so on its filesystem; gone with this value.
    work: Temporary,
    /// For the results of runs, elsewhere.
    results: Temporary,
}

impl<'a> Session<'a> {
    fn new(
        place: &'a Situation,
        planned: &[Planned],
        interrupt: &'a Interrupt,
    ) -> anyhow::Result<Session<'a>> {
        let results = Temporary::new(&std::env::temp_dir(), "iostep-advise-")
            .context("cannot make a directory for results")?;
        let session = Session {
            work: work_directory(&place.directory)?,
            results,
            place,
            interrupt,
            bar: bar(),
            measured: Measured::default(),
        };
        let count = planned
            .iter()
            .filter(|(_, skipped)| skipped.is_none())
            .count() as u64;
        let template = "{bar:20} {pos} of {len} runs{left}: {wide_msg}";
        let style = terminal::bar_style(template);
        session.bar.set_style(style);
        session
            .bar
            .set_length(1 + 3 * count * u64::from(place.rounds));
        session.bar.enable_steady_tick(Duration::from_millis(500));
        Ok(session)
    }

    fn rounds(&mut self, planned: &[Planned]) -> Result<(), Stop> {
        let mut before = self.run(&self.place.present, "present")?;
        self.measured.turns.present.push(before);
        for round in 0..self.place.rounds {
            for number in order(planned.len(), round) {
                let (candidate, skipped) = &planned[number];
                if skipped.is_some() || self.measured.turns.setback(number).is_some() {
                    continue;
                }
                match self.turn(number, candidate, before) {
                    Ok(turn) => {
                        before = turn.after;
                        self.measured.turns.present.push(turn.after);
                        self.measured.turns.turns.push(turn);
                    }
                    Err(Stop::Setback(Setback::Interrupted)) => {
                        return Err(Setback::Interrupted.into());
                    }
                    Err(Stop::Setback(setback)) => {
                        self.measured.turns.setbacks.push((number, setback));
                    }
                    Err(broken) => return Err(broken),
                }
            }
        }
        Ok(())
    }

    /// Two runs of a candidate, and one of the present setting after them.
    fn turn(
        &mut self,
        number: usize,
        candidate: &Candidate,
        before: Observation,
    ) -> Result<Turn, Stop> {
        let place = self.place;
        let mount = candidate.setting.mount;
        let mounted = mount
            .map(|option| Remounted::new(&place.mount_point, &place.directory, &option))
            .transpose()
            .map_err(|error| Setback::Failed(describe(&error)))?;
        let own = [
            self.run(&candidate.setting, &candidate.name)?,
            self.run(&candidate.setting, &candidate.name)?,
        ];
        // What is measured from here on would not be the present setting.
        mounted.map_or(Ok(()), Remounted::take_back)?;
        Ok(Turn {
            candidate: number,
            before,
            own,
            after: self.run(&place.present, "present")?,
        })
    }

    fn run(&mut self, setting: &Setting, name: &str) -> Result<Observation, Stop> {
        if self.interrupt.came() {
            return Err(Setback::Interrupted.into());
        }
        self.bar.set_message(printable(name).into_owned());
        let output = self.results.directory().name().join("run.json");
        // What is there is the run before's.
        let _ = std::fs::remove_file(&output);
        let ended = child::run(&self.arguments(setting), &output, self.interrupt)?;
        self.bar.inc(1);
        if self.interrupt.came() {
            return Err(Setback::Interrupted.into());
        }
        let Ok(document) = Document::read(&output) else {
            return Err(Setback::Failed(ended.reason()).into());
        };
        let observation = Observation::of(&document)?;
        self.note(document);
        Ok(observation)
    }

    fn arguments(&self, setting: &Setting) -> Vec<OsString> {
        let workload = &self.place.workload;
        let is_waldio = setting.journal == Journal::Waldio;
        let flags = workload
            .arguments(setting.journal.is_log(), is_waldio)
            .into_iter()
            .chain(setting.arguments())
            .chain([format!("--time={}ns", self.place.run_ns)]);
        [
            OsString::from("sqlite"),
            self.work.directory().name().into(),
        ]
        .into_iter()
        .chain(flags.map(OsString::from))
        .collect()
    }

    /// Keeps what a run says about the machine.
    fn note(&mut self, document: Document) {
        let warnings = Summary::of(&document).warnings;
        for warning in warnings.into_iter().filter(matters) {
            let known = |kept: &Warning| discriminant(kept) == discriminant(&warning);
            if !self.measured.warnings.iter().any(known) {
                self.measured.warnings.push(warning);
            }
        }
        self.measured
            .environment
            .get_or_insert(document.environment);
    }
}

/// What is true of every short run, and told by the intervals, is no warning.
fn matters(warning: &Warning) -> bool {
    !matches!(
        warning,
        Warning::TooShort { .. }
            | Warning::NotSteady { .. }
            | Warning::SpreadTooWide { .. }
            | Warning::WithoutCheckpoint
    )
}

/// A directory of its own on the filesystem that is measured.
fn work_directory(parent: &Path) -> Result<Temporary, Error> {
    let made = Temporary::new(parent, ".iostep-advise-");
    made.map_err(|error| Error::Refused {
        what: format!(
            "{}: nothing can be written there: {error}",
            parent.display()
        ),
        hint: "make room, or name a directory on the same kind of device that can be written"
            .into(),
    })
}
