//! A plan, recorded and explained.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use iostep_analyze::explain::Explanation;
use iostep_analyze::report;
use iostep_analyze::stats::Summary;
use iostep_model::event::Marker;
use iostep_model::printable;
use iostep_model::publish;
use iostep_model::table::Trace;
use iostep_report::document::Detail;

use super::drive::{Plan, Prepared};
use crate::interrupt::Interrupt;
use crate::terminal::{self, say};

/// An explanation and the recording that it is made from.
#[derive(Debug)]
pub struct Explained {
    pub explanation: Explanation,
    trace: Trace,
}

/// Runs a plan under a recording and explains it.
///
/// Errors: those of the recording, of SQLite, and of making copies.
pub fn explain(plan: &Plan, interrupt: &Interrupt) -> anyhow::Result<Explained> {
    let working = terminal::working("copying the database");
    let mut prepared = Prepared::new(plan, interrupt.flag())?;
    let scratch = crate::recording::scratch(&plan.database)?;
    prepared.dispose_of(scratch.directory().name())?;
    working.set_message("starting to record");
    let mut experiment = None;
    let trace =
        crate::recording::record(&plan.database, &scratch.path().join("trace"), |session| {
            experiment = Some(prepared.run(|marker| {
                if let Marker::Step(step) = &marker {
                    working.set_message(printable(step).into_owned());
                }
                Ok(session.mark(marker)?)
            })?);
            working.set_message("finding out what each byte was for");
            Ok(())
        })?;
    working.finish_and_clear();
    let experiment = experiment.context("the recording ended before the SQL ran")?;
    let explanation = iostep_analyze::explain::explain(&trace, &experiment)?;
    Ok(Explained { explanation, trace })
}

impl Explained {
    /// For people.
    pub fn text(&self) -> String {
        let document = report::explain::document(&self.explanation);
        document.text(Detail::Full, terminal::style())
    }

    /// For programs; what makes the numbers doubtful is told on standard error too.
    pub fn json(&self) -> String {
        for alarm in report::explain::alarms(&self.explanation) {
            say!("{alarm}");
        }
        terminal::json(&self.explanation)
    }

    /// What it cost and the whole recording's report as one page.
    ///
    /// Errors: the file cannot be written.
    pub fn write_html(&self, path: &Path) -> anyhow::Result<()> {
        let summary = Summary::of(&self.trace);
        let page = report::explain::page(&self.explanation, &self.trace, &summary);
        publish::write(path, page.as_bytes()).context("cannot write the report")
    }

    /// 1 if the recording's self-check failed and that is not allowed.
    pub fn exit_code(&self, allow_loss: bool) -> ExitCode {
        if allow_loss || self.trace.manifest.check.passed() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
