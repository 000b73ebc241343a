//! A job, run as often as asked, to a document.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use iostep_analyze::bench::spread;
use iostep_load::environment::Before;
use iostep_load::{Error, file, transactions};
use iostep_model::bench::{
    Document, Failure, Job, Run, RunState, SCHEMA_VERSION, SqliteLibrary, Warning,
};
use iostep_model::clock::wall_ns;
use iostep_model::disk;

use super::location::Location;
use super::measure_args::Repetition;
use super::watcher::Watcher;
use crate::command;
use crate::interrupt::Interrupt;
use crate::terminal::say;
use crate::version;

/// What came of a job.
pub struct Measured(pub Document);

impl Measured {
    /// True if every run came to its end, and nothing that was read back was wrong.
    pub fn is_whole(&self) -> bool {
        self.0.runs.iter().all(|run| {
            let wrong = run.verification.as_ref().map_or(0, |found| found.wrong);
            run.state == RunState::Complete && wrong == 0
        })
    }

    /// Says on standard error why the exit status will not be 0; the outputs have the details.
    pub fn tell(&self) {
        for (number, run) in (1..).zip(&self.0.runs) {
            for failure in &run.failures {
                say!(
                    "iostep: run {number}, thread {}, operation {}: {}: {}",
                    failure.thread,
                    failure.operation,
                    failure.attempt,
                    failure.reason
                );
            }
            if run.state == RunState::Interrupted {
                say!("iostep: run {number}: interrupted; what was measured is kept");
            }
            let wrong = run.verification.as_ref().filter(|found| found.wrong > 0);
            if let Some(found) = wrong {
                say!(
                    "iostep: run {number}: {} of {} that were read back are wrong",
                    found.wrong,
                    found.compared
                );
            }
        }
    }
}

/// What is told of a job while it runs.
#[derive(Default)]
pub struct Output<'a> {
    /// Takes every operation.
    pub log: Option<&'a mut dyn Write>,
    /// Whether lines on standard error tell how far it is.
    pub progress: bool,
}

/// Either generator, made ready.
enum Bench<'a> {
    File(Box<file::Bench<'a>>),
    Sqlite(Box<transactions::Bench<'a>>),
}

impl<'a> Bench<'a> {
    fn open(
        job: &Job,
        interrupted: &'a AtomicBool,
        watcher: &mut Watcher<'_>,
    ) -> iostep_load::Result<Bench<'a>> {
        Ok(match job {
            Job::File(job) => Bench::File(Box::new(file::Bench::open(job, interrupted, watcher)?)),
            Job::Sqlite(job) => Bench::Sqlite(Box::new(transactions::Bench::open(
                job,
                interrupted,
                watcher,
            )?)),
        })
    }

    fn run(&mut self, watcher: &mut Watcher<'_>) -> iostep_load::Result<Run> {
        match self {
            Bench::File(bench) => bench.run(watcher),
            Bench::Sqlite(bench) => bench.run(watcher),
        }
    }

    fn library(&self) -> Option<SqliteLibrary> {
        match self {
            Bench::File(_) => None,
            Bench::Sqlite(bench) => Some(bench.library().clone()),
        }
    }
}

/// Runs a job until it was repeated as often as asked, a run fails, or a signal comes. The I/O of the
/// device `journal` is counted with the target's.
///
/// Errors: from before the first run; later ones are in the answer.
pub fn run(
    job: Job,
    repetition: Repetition,
    journal: Option<&Path>,
    interrupt: &Interrupt,
    output: Output<'_>,
) -> anyhow::Result<Measured> {
    let place = Location::of(&job, journal)?;
    let log = output.log.map(|out| out as &mut dyn Write);
    let mut watcher = Watcher::new(&job, repetition.most, place.devices(), log);
    if output.progress {
        watcher.say_lines();
    }
    let mut bench = Bench::open(&job, interrupt.flag(), &mut watcher)?;
    let mut environment = place.environment();
    environment.sqlite = bench.library();
    disk::read_before(Path::new("/"), &mut environment.disks);
    let before = Before::take(Path::new("/"));
    let mut runs = Vec::new();
    while !enough(&runs, repetition) {
        watcher.begin_run(runs.len() as u32 + 1);
        let run = match interrupt.came() && !runs.is_empty() {
            true => Err(Error::Interrupted),
            false => bench.run(&mut watcher),
        };
        match run {
            Ok(run) => runs.push(run),
            Err(error) if runs.is_empty() => return Err(error.into()),
            // Those before are worth keeping; this one marks the result as not all of it.
            Err(error) => runs.push(not_begun(&error)),
        }
    }
    // The work files take part in filling the filesystem, so they are still there.
    disk::read_after(Path::new("/"), &mut environment.disks);
    let mut warnings = before.warnings(&job, &environment, &runs);
    warnings.extend(too_wide(&runs, repetition));
    drop(bench);
    watcher.finish().context("cannot write the log")?;
    Ok(Measured(Document {
        schema_version: SCHEMA_VERSION,
        iostep_version: version::NUMBER.into(),
        arguments: command::arguments(),
        job,
        environment,
        runs,
        warnings,
    }))
}

/// A run that measured nothing, since something stood against beginning it.
fn not_begun(error: &Error) -> Run {
    let (state, failures) = match error {
        Error::Interrupted => (RunState::Interrupted, Vec::new()),
        other => {
            let failure = Failure {
                thread: 0,
                operation: 0,
                attempt: "making ready for the run".into(),
                reason: other.to_string(),
            };
            (RunState::Failed, vec![failure])
        }
    };
    Run {
        failures,
        ..Run::empty(state, wall_ns())
    }
}

/// A bound on the spread that all repetitions together did not reach.
fn too_wide(runs: &[Run], repetition: Repetition) -> Option<Warning> {
    let bound = repetition.spread_bound?;
    let spread = spread(runs).filter(|spread| *spread >= bound)?;
    Some(Warning::SpreadTooWide { spread, bound })
}

/// True if no further run is needed, or the last one did not come to its end.
fn enough(runs: &[Run], repetition: Repetition) -> bool {
    let count = runs.len() as u32;
    if runs
        .last()
        .is_some_and(|run| run.state != RunState::Complete)
        || count >= repetition.most
    {
        return true;
    }
    count >= repetition.least
        && repetition
            .spread_bound
            .is_none_or(|bound| spread(runs).is_some_and(|spread| spread < bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(rates: &[u64], last: RunState) -> Vec<Run> {
        let run = |operations| Run {
            operations,
            ..fixture_run()
        };
        let mut runs: Vec<Run> = rates.iter().map(|rate| run(*rate)).collect();
        if let Some(run) = runs.last_mut() {
            run.state = last;
        }
        runs
    }

    fn fixture_run() -> Run {
        iostep_analyze::bench::fixture::write_fdatasync(1)
            .runs
            .remove(0)
    }

    const UNTIL: Repetition = Repetition {
        least: 3,
        most: 5,
        spread_bound: Some(0.05),
    };

    #[test]
    fn it_is_repeated_until_the_spread_is_under_the_bound() {
        let enough = |rates: &[u64]| enough(&runs(rates, RunState::Complete), UNTIL);
        assert!(!enough(&[]));
        assert!(!enough(&[1000, 1000]));
        assert!(enough(&[1000, 1000, 1000]));
        assert!(!enough(&[1000, 2000, 1000]));
        assert!(enough(&[1000, 2000, 1000, 2000, 1000]));
    }

    #[test]
    fn a_run_that_did_not_end_in_order_is_the_last() {
        for state in [RunState::Failed, RunState::Interrupted] {
            assert!(enough(&runs(&[1000], state), UNTIL));
        }
    }

    #[test]
    fn a_bound_that_was_not_reached_is_a_warning() {
        let wide = |rates: &[u64]| too_wide(&runs(rates, RunState::Complete), UNTIL).is_some();
        assert!(wide(&[1000, 2000, 1000]));
        assert!(!wide(&[1000, 1000, 1000]));
    }

    #[test]
    fn what_stood_against_a_run_marks_the_result() {
        let refused = Error::Refused {
            what: "no room".into(),
            hint: "make some".into(),
        };
        let run = not_begun(&refused);
        assert_eq!((run.state, run.operations), (RunState::Failed, 0));
        assert_eq!(run.failures[0].reason, "no room; make some");
        assert_eq!(not_begun(&Error::Interrupted).state, RunState::Interrupted);
    }
}
