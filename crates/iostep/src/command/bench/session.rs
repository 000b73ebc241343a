//! A job, run as often as asked, to a document.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use iostep_analyze::bench::spread;
use iostep_load::environment::Before;
use iostep_load::{Error, file, sqlite};
use iostep_model::bench::{Document, Job, Run, RunState, SCHEMA_VERSION, SqliteLibrary};

use super::measure_args::Repetition;
use super::place::Place;
use super::watcher::Watcher;
use crate::interrupt::Interrupt;

/// What came of a job.
pub struct Measured {
    /// What was measured, also if that is not all that was asked for.
    pub document: Document,
    /// Why there are not as many runs as asked for.
    pub cut_short: Option<anyhow::Error>,
}

impl Measured {
    /// True if every run came to its end, and nothing that was read back was wrong.
    pub fn is_whole(&self) -> bool {
        let whole = |run: &Run| {
            let wrong = run.verification.as_ref().map_or(0, |found| found.wrong);
            run.state == RunState::Complete && wrong == 0
        };
        self.cut_short.is_none() && self.document.runs.iter().all(whole)
    }

    /// Says on standard error why the exit status will not be 0; the outputs have the details.
    pub fn tell(&self) {
        for (number, run) in (1..).zip(&self.document.runs) {
            for failure in &run.failures {
                eprintln!(
                    "iostep: run {number}, thread {}, operation {}: {}: {}",
                    failure.thread, failure.operation, failure.attempt, failure.reason
                );
            }
            let wrong = run.verification.as_ref().filter(|found| found.wrong > 0);
            if let Some(found) = wrong {
                eprintln!(
                    "iostep: run {number}: {} of {} that were read back are wrong",
                    found.wrong, found.compared
                );
            }
        }
        if let Some(error) = &self.cut_short {
            let runs = self.document.runs.len();
            eprintln!(
                "iostep: {}; {runs} runs are kept",
                crate::command::describe(error)
            );
        }
    }
}

/// Either generator, made ready.
enum Bench<'a> {
    File(Box<file::Bench<'a>>),
    Sqlite(Box<sqlite::Bench<'a>>),
}

impl<'a> Bench<'a> {
    fn open(
        job: &Job,
        interrupted: &'a AtomicBool,
        watcher: &mut Watcher<'_>,
    ) -> iostep_load::Result<Bench<'a>> {
        Ok(match job {
            Job::File(job) => Bench::File(Box::new(file::Bench::open(job, interrupted, watcher)?)),
            Job::Sqlite(job) => {
                Bench::Sqlite(Box::new(sqlite::Bench::open(job, interrupted, watcher)?))
            }
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

/// Runs a job until it was repeated as often as asked, a run fails, or a signal comes. Operations
/// go to `log`.
///
/// Errors: from before the first run; later ones are in the answer.
pub fn run(
    job: Job,
    repetition: Repetition,
    interrupt: &Interrupt,
    log: Option<&mut dyn Write>,
) -> anyhow::Result<Measured> {
    let place = Place::of(&job);
    let log = log.map(|out| out as &mut dyn Write);
    let mut watcher = Watcher::new(&job, repetition.most, place.target.as_ref(), log);
    let mut bench = Bench::open(&job, interrupt.flag(), &mut watcher)?;
    let mut environment = place.environment();
    environment.sqlite = bench.library();
    let before = Before::take(Path::new("/"));
    let mut runs = Vec::new();
    let mut cut_short = None;
    while !enough(&runs, repetition) {
        watcher.begin_run(runs.len() as u32 + 1);
        match bench.run(&mut watcher) {
            Ok(run) => runs.push(run),
            Err(error) if runs.is_empty() => return Err(error.into()),
            Err(error) => cut_short = Some(error.into()),
        }
        if interrupt.came() {
            cut_short.get_or_insert(Error::Interrupted.into());
        }
        if cut_short.is_some() {
            break;
        }
    }
    // The work files take part in filling the filesystem, so they are still there.
    let warnings = before.warnings(&job, &environment, &runs);
    drop(bench);
    watcher.finish().context("cannot write the log")?;
    Ok(Measured {
        document: Document {
            schema_version: SCHEMA_VERSION,
            iostep_version: env!("CARGO_PKG_VERSION").into(),
            arguments: arguments(),
            job,
            environment,
            runs,
            warnings,
        },
        cut_short,
    })
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

/// What the user wrote after `iostep`.
fn arguments() -> Vec<String> {
    let all = std::env::args_os().skip(1);
    all.map(|argument| argument.to_string_lossy().into_owned())
        .collect()
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
}
