//! What SQL transactions cost, layer by layer, and what would be cheaper.
//!
//! Input: a [`Trace`] with a [`Step`] marker at the start, the end and the settling of every
//! transaction, and the [`Experiment`]: what the transactions asked for. Output: an
//! [`Explanation`], which `report::explain` shows and which serializes as the `--json` output.

mod advice;
mod compare;
mod cost;
mod part;
mod step;
mod timeline;

use iostep_model::durability::Durability;
use iostep_model::table::Trace;
use serde::Serialize;

pub use compare::{PaperRow, Row};
pub use cost::{Cost, PartCost};
pub use part::{Owner, Part};
pub use step::{Edge, Step, Subject};
pub use timeline::Line;

use crate::stats::amount::ratio;
use part::Sorter;
use step::Windows;

/// The trace lacks a milestone of the experiment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the trace has no milestone \"{0}\"; record it again")]
pub struct MissingStep(pub String);

/// What was run under the trace.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The database's file name, without its directory: `app.db`.
    pub database: String,
    /// The process that ran the SQL.
    pub sql_tgid: u32,
    /// The journal mode that the database came with.
    pub own_mode: String,
    /// True if every page that a transaction needed had to be read from the device.
    pub cold_cache: bool,
    /// One for each journal mode.
    pub runs: Vec<Run>,
    /// The journal modes that cannot be used here.
    pub not_run: Vec<NotRun>,
}

/// A journal mode that cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotRun {
    /// Journal mode.
    pub mode: String,
    pub reason: String,
}

/// A script under one journal mode.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Journal mode.
    pub mode: String,
    /// Synchronous setting.
    pub synchronous: String,
    /// What a commit that returned can still lose.
    pub durability: Durability,
    /// Its transactions, in order.
    pub transactions: Vec<Asked>,
}

/// What a transaction was asked to do.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    /// Its statements' beginnings.
    pub statements: Vec<String>,
    /// How it ended: `committed`, `rolled back` or `left open`.
    pub outcome: String,
    /// Rows inserted, updated or deleted.
    pub rows: u64,
    /// Bytes that it asked to store, as docs/explain.md defines them; `None` where SQLite does not
    /// tell them.
    pub user_bytes: Option<u64>,
    /// How long its statements took, in nanoseconds.
    pub elapsed_ns: u64,
}

/// What everything cost.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// Kernel release.
    pub kernel: String,
    /// Filesystem, or `unknown`.
    pub filesystem: String,
    /// What the recording's self-check found wrong; empty if nothing.
    pub differences: Vec<String>,
    /// Events that the recording lost.
    pub lost_events: u64,
    /// True if every page that a transaction needed had to be read from the device.
    pub cold_cache: bool,
    /// One for each journal mode.
    pub runs: Vec<RunCost>,
    /// The journal modes that cannot be used here.
    pub not_run: Vec<NotRun>,
    /// The modes side by side.
    pub comparison: Vec<Row>,
    /// What would be cheaper.
    pub advice: String,
}

/// What a script cost under one journal mode.
#[derive(Clone, Debug, Serialize)]
pub struct RunCost {
    /// Journal mode.
    pub mode: String,
    /// Synchronous setting.
    pub synchronous: String,
    /// What a commit that returned can still lose.
    pub durability: Durability,
    /// Its transactions, in order.
    pub transactions: Vec<TransactionCost>,
    /// Closing the database: the checkpoint of a WAL.
    pub close: Cost,
}

#[derive(Clone, Debug, Serialize)]
pub struct TransactionCost {
    pub asked: Asked,
    /// Until its last statement returned.
    pub cost: Cost,
    /// What it left in memory, written when the filesystem was settled afterwards.
    pub later: Cost,
    /// Bytes written until the last statement returned, for each byte asked to store; `None` if
    /// that was no byte, or is not known.
    pub amplification: Option<f64>,
    /// The share of the bytes written that the filesystem's journal wrote for syncs of the SQLite
    /// journal.
    pub joj_share: Option<f64>,
    /// What happened, in order.
    pub timeline: Vec<Line>,
}

/// Explains an experiment.
///
/// Errors: [`MissingStep`] if the trace is not of this experiment, or was cut.
pub fn explain(trace: &Trace, experiment: &Experiment) -> Result<Explanation, MissingStep> {
    let windows = Windows::of(trace);
    let sorter = Sorter::new(trace, &experiment.database, experiment.sql_tgid);
    let mut runs = Vec::new();
    for run in &experiment.runs {
        runs.push(explain_run(&sorter, &windows, run)?);
    }
    let filesystem = trace.manifest.filesystem.as_ref();
    let filesystem = filesystem.map_or("unknown", |fs| &fs.kind).to_owned();
    let comparison = compare::rows(&runs, &filesystem);
    let advice = advice::advice(&runs, &experiment.own_mode, &filesystem);
    Ok(Explanation {
        kernel: trace.manifest.host.kernel.clone(),
        filesystem,
        differences: trace.manifest.check.differences.clone(),
        lost_events: trace.manifest.check.lost_events,
        cold_cache: experiment.cold_cache,
        runs,
        not_run: experiment.not_run.clone(),
        comparison,
        advice,
    })
}

fn explain_run(sorter: &Sorter<'_>, windows: &Windows, run: &Run) -> Result<RunCost, MissingStep> {
    let step = |subject| Step {
        mode: run.mode.clone(),
        subject,
    };
    let mut transactions = Vec::new();
    for (index, asked) in run.transactions.iter().enumerate() {
        let step = step(Subject::Transaction(index + 1));
        let during = windows.during(&step)?;
        let cost = Cost::of(sorter, &during);
        transactions.push(TransactionCost {
            asked: asked.clone(),
            amplification: asked.user_bytes.and_then(|bytes| ratio(cost.bytes, bytes)),
            joj_share: ratio(cost.joj_bytes, cost.bytes),
            timeline: timeline::lines(sorter, &during),
            cost,
            later: Cost::of_settling(sorter, &windows.settling(&step)?),
        });
    }
    Ok(RunCost {
        mode: run.mode.clone(),
        synchronous: run.synchronous.clone(),
        durability: run.durability,
        transactions,
        close: Cost::of(sorter, &windows.during(&step(Subject::Close))?),
    })
}

impl RunCost {
    /// The costs of its transactions added up.
    pub fn total(&self) -> Cost {
        self.transactions.iter().map(|t| &t.cost).sum()
    }

    /// What its transactions left to be written later, added up.
    pub fn total_later(&self) -> Cost {
        self.transactions.iter().map(|t| &t.later).sum()
    }

    /// Bytes that its transactions asked to store, if all of them are known.
    pub fn user_bytes(&self) -> Option<u64> {
        self.transactions.iter().map(|t| t.asked.user_bytes).sum()
    }
}

#[cfg(test)]
mod tests;
