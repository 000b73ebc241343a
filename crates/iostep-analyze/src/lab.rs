//! What the results of a lab say: the tables that it asks for with the papers' numbers beside, and
//! whether what it claims is there.
//!
//! Numbers of a cell are medians over its runs. Times are compared between cells of one place
//! only: what a loop device and an emulated guest take says nothing about each other. Counts and
//! bytes are compared everywhere.

mod claims;
mod finding;
#[cfg(test)]
pub(crate) mod fixture;
mod grid;
mod order;
mod papers;
mod pattern;
#[cfg(test)]
pub(crate) mod recorded;
mod results;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeSet;

pub use iostep_model::lab::Measure;
use iostep_model::lab::{Cell, CellResult, Lab, State, View};
use serde::Serialize;

pub use finding::{Evidence, Finding, Missing, Number, Verdict};
pub use grid::{Column, Entry, Grid, Row};
pub use papers::PaperValue;
pub use pattern::{Pattern, WholeRequest};
pub use results::Platform;
pub use value::Value;

use results::Results;

/// Everything that is shown of a lab's results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The lab's name.
    pub name: String,
    pub title: String,
    /// Where its cells were measured, and which filesystems there.
    pub grounds: Vec<PlatformUse>,
    /// Programs that took part, with their versions.
    pub tools: Vec<String>,
    /// Cells of the lab.
    pub cells: usize,
    /// Those without a complete result.
    pub incomplete: Vec<Incomplete>,
    /// Those whose log waldio left to SQLite.
    pub stock_logs: Vec<Incomplete>,
    pub grids: Vec<Grid>,
    /// Block patterns, if the lab keeps them.
    pub patterns: Vec<Pattern>,
    /// The papers' claims.
    pub findings: Vec<Finding>,
}

/// A place with what was measured there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlatformUse {
    /// The place.
    pub ground: Platform,
    /// Names of the filesystems.
    pub filesystems: Vec<String>,
    /// How many cells.
    pub cells: usize,
}

/// A cell without a complete result, or not quite with what was asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Incomplete {
    pub key: String,
    /// What it is, in words.
    pub cell: String,
    /// Why, in one line.
    pub reason: String,
    /// True where the combination means nothing; otherwise running the lab again may help.
    pub not_applicable: bool,
}

impl Report {
    /// Of the results of a lab's cells; those of other cells are left out.
    pub fn of(lab: &Lab, results: &[CellResult]) -> Report {
        let ordered = in_order(lab, results);
        let found = Results(&ordered);
        let shown = &lab.analysis;
        let plain = [plain_view(lab, found)];
        let views = match shown.views.as_slice() {
            [] => &plain,
            views => views,
        };
        Report {
            name: lab.name.clone(),
            title: lab.title.clone(),
            grounds: grounds(&ordered),
            tools: tools(&ordered),
            cells: lab.cells.len(),
            incomplete: incomplete(lab, &ordered),
            stock_logs: ordered.iter().filter_map(stock_log).collect(),
            grids: views
                .iter()
                .filter_map(|view| Grid::of(view, &shown.papers, found))
                .collect(),
            patterns: ordered.iter().filter_map(Pattern::of).collect(),
            findings: shown
                .claims
                .iter()
                .map(|claim| claims::judge(claim, found))
                .collect(),
        }
    }

    /// True if every cell is done, or means nothing.
    pub fn is_complete(&self) -> bool {
        self.incomplete.iter().all(|cell| cell.not_applicable)
    }
}

/// The results in the order of the lab's cells.
fn in_order(lab: &Lab, results: &[CellResult]) -> Vec<CellResult> {
    let by_key: rustc_hash::FxHashMap<&str, &CellResult> = results
        .iter()
        .map(|result| (result.cell.key.as_str(), result))
        .collect();
    let found = lab.cells.iter().filter_map(|cell| {
        let result = *by_key.get(cell.key.as_str())?;
        // Block and axes are the lab's words; the key does not hold them.
        Some(CellResult {
            cell: cell.clone(),
            ..result.clone()
        })
    });
    found.collect()
}

/// A table of every cell, for labs that name none.
fn plain_view(lab: &Lab, results: Results<'_>) -> View {
    let mut rows: Vec<String> = Vec::new();
    for (axis, _) in lab.cells.iter().flat_map(|cell| &cell.axes) {
        if !rows.contains(axis) && results.values_of(axis, &[]).len() > 1 {
            rows.push(axis.clone());
        }
    }
    View {
        title: lab.title.clone(),
        rows,
        measures: vec![
            Measure::Throughput,
            Measure::OperationP50,
            Measure::SyncP50,
            Measure::Ios,
            Measure::WrittenBytes,
            Measure::Flushes,
        ],
        ..View::default()
    }
}

fn grounds(results: &[CellResult]) -> Vec<PlatformUse> {
    let mut uses: Vec<PlatformUse> = Vec::new();
    for result in results {
        let Some(ground) = Platform::of_result(result) else {
            continue;
        };
        let filesystem = result.cell.storage.filesystem.name().to_owned();
        match uses.iter_mut().find(|used| used.ground == ground) {
            Some(used) => {
                used.cells += 1;
                if !used.filesystems.contains(&filesystem) {
                    used.filesystems.push(filesystem);
                }
            }
            None => uses.push(PlatformUse {
                ground,
                filesystems: vec![filesystem],
                cells: 1,
            }),
        }
    }
    uses
}

fn tools(results: &[CellResult]) -> Vec<String> {
    let mut tools = BTreeSet::new();
    for environment in results
        .iter()
        .filter_map(|result| result.environment.as_ref())
    {
        let commit = environment.iostep_commit.as_deref();
        let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
        tools.insert(format!("iostep {}{commit}", environment.iostep_version));
        if let Some(version) = &environment.sqlite_version {
            tools.insert(format!("SQLite {version}"));
        }
        for tool in &environment.tools {
            // Some versions begin with the name.
            let version = tool.version.strip_prefix(&*tool.name);
            let version =
                version.map_or(&*tool.version, |rest| rest.trim_start_matches([',', ' ']));
            tools.insert(format!("{} {version}", tool.name));
        }
    }
    tools.into_iter().collect()
}

fn incomplete(lab: &Lab, results: &[CellResult]) -> Vec<Incomplete> {
    let state: rustc_hash::FxHashMap<&str, &State> = results
        .iter()
        .map(|result| (result.cell.key.as_str(), &result.state))
        .collect();
    let missing = lab.cells.iter().filter_map(|cell| {
        let state = state.get(cell.key.as_str());
        let reason = match state {
            None => "not run yet",
            Some(state) => state.reason()?,
        };
        Some(Incomplete {
            key: cell.key.clone(),
            cell: label(cell),
            reason: reason.to_owned(),
            not_applicable: matches!(state, Some(State::NotApplicable { .. })),
        })
    });
    missing.collect()
}

fn stock_log(result: &CellResult) -> Option<Incomplete> {
    let mut runs = result.runs.iter();
    let reason = runs.find_map(|run| run.waldio.as_ref()?.reasons.first())?;
    Some(Incomplete {
        key: result.cell.key.clone(),
        cell: label(&result.cell),
        reason: reason.clone(),
        not_applicable: false,
    })
}

/// A cell as people read it: what varies, with names where values alone say nothing.
fn label(cell: &Cell) -> String {
    let words = cell.axes.iter().filter(|(_, value)| !value.is_empty());
    let words = words.map(|(axis, value)| match axis.as_str() {
        "filesystem" | "switches" | "journal" | "operation" | "access" => value.clone(),
        _ => format!("{axis} {value}"),
    });
    words.collect::<Vec<_>>().join(", ")
}
