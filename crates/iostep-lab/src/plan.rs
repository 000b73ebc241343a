//! From the text of a lab to its cells.
//!
//! A lab is TOML: `title`, `[defaults]` and `[[cells]]` blocks whose lists are crossed, and what is
//! shown of them ([`Analysis`](iostep_model::lab::Analysis)). The keys of a block are those of
//! [`OWN_KEYS`] and the long flags of the workload's command; whoever reads that command's line
//! checks them (`check`).

use std::hash::Hasher;
use std::path::Path;

use iostep_model::lab::{Cell, Lab, Storage, Workload, WorkloadKind};
use iostep_model::printable::excerpt;
use toml::{Table, Value};
use twox_hash::XxHash64;

use crate::error::{Error, Result};
use crate::matrix::{self, Blocks, Choice, MAX_CELLS, Problem, check_name, shown};

mod analysis;
mod draft;
mod select;
#[cfg(test)]
mod tests;

use draft::Draft;
pub use draft::OWN_KEYS;
pub use select::{Shard, in_turns, not_applicable, select, with_repeat};

/// Checks the arguments of a workload, which follow its name and its place: what is wrong, and
/// what would be right.
pub type Check<'a> = &'a dyn Fn(WorkloadKind, &[String]) -> Result<(), (String, String)>;

/// Reads a lab. `file` names the text in errors; recordings are found beside it, and it gives the
/// lab its name.
///
/// Errors: `Usage` with the file, the block and the key.
pub fn parse(file: &Path, text: &str, check: Check<'_>) -> Result<Lab> {
    let shown_file = file.display();
    let bad = |(what, hint): (String, String)| Error::Usage {
        what: format!("{shown_file}: {what}"),
        hint,
    };
    let own = |(what, hint): Problem| (what, hint.to_owned());
    let Blocks { blocks, mut rest } = matrix::blocks(text, "cells").map_err(own).map_err(bad)?;
    let analysis = analysis::take(&mut rest).map_err(own).map_err(bad)?;
    let (name, title) = names(file, &mut rest).map_err(own).map_err(bad)?;
    let mut cells: Vec<Cell> = Vec::new();
    for (number, block) in (1..).zip(blocks) {
        let reader = Reader {
            directory: file.parent().unwrap_or(Path::new("")),
            check,
            room: MAX_CELLS - cells.len(),
        };
        let made = reader.cells(number, block);
        cells.extend(made.map_err(|(what, hint)| bad((format!("block {number}: {what}"), hint)))?);
    }
    refuse_twins(&cells).map_err(bad)?;
    analysis::check(&analysis, &cells)
        .map_err(own)
        .map_err(bad)?;
    Ok(Lab {
        name,
        title,
        cells,
        analysis,
    })
}

/// The lab's name and title, and nothing else at the top.
fn names(file: &Path, rest: &mut Table) -> Result<(String, String), Problem> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = matrix::take_text(rest, "name")?.unwrap_or_else(|| stem.into_owned());
    check_name(&name)?;
    let title = matrix::take_text(rest, "title")?.unwrap_or_else(|| name.clone());
    match rest.keys().next() {
        None => Ok((name, shown_line(&title))),
        Some(key) => {
            let hint = "keys stand in [[cells]] or [defaults]; at the top only name, title, views, claims and papers";
            Err((format!("{}: no such table", shown(key)), hint))
        }
    }
}

fn shown_line(text: &str) -> String {
    excerpt(text, 200)
}

fn refuse_twins(cells: &[Cell]) -> Result<(), (String, String)> {
    let mut seen = std::collections::HashMap::new();
    for cell in cells {
        if let Some(other) = seen.insert(&cell.key, cell) {
            let what = format!("{}: the same as {}", label(cell), label(other));
            return Err((what, "take one of them out".into()));
        }
    }
    Ok(())
}

/// A cell as people read it: its block and what varies, in one line that moves no terminal.
pub fn label(cell: &Cell) -> String {
    let axes = cell
        .axes
        .iter()
        .filter(|(name, value)| name != "switches" || !value.is_empty())
        .map(|(name, value)| format!(" {name}={value}"));
    let words: String = std::iter::once(cell.block.clone()).chain(axes).collect();
    shown_line(&words)
}

/// What reads one block.
struct Reader<'a> {
    directory: &'a Path,
    check: Check<'a>,
    room: usize,
}

impl Reader<'_> {
    fn cells(&self, number: usize, mut block: Table) -> Result<Vec<Cell>, (String, String)> {
        let own = |(what, hint): Problem| (what, hint.to_owned());
        let name = matrix::take_text(&mut block, "name").map_err(own)?;
        let name = name.unwrap_or_else(|| format!("cells-{number}"));
        check_name(&name).map_err(own)?;
        for key in ["mkfs-options", "env"] {
            join_options(&mut block, key).map_err(own)?;
        }
        let all = matrix::combinations(block, self.room).map_err(own)?;
        all.into_iter()
            .map(|chosen| self.cell(&name, &chosen))
            .collect()
    }

    fn cell(&self, block: &str, chosen: &[Choice]) -> Result<Cell, (String, String)> {
        let own = |(what, hint): Problem| (what, hint.to_owned());
        let draft = Draft::of(chosen).map_err(own)?;
        let (arguments, content) = draft.arguments(self.directory).map_err(own)?;
        (self.check)(draft.workload, &arguments)?;
        let mut cell = Cell {
            key: String::new(),
            block: block.to_owned(),
            axes: axes(chosen, &draft),
            storage: Storage {
                filesystem: draft.filesystem,
                external_journal: draft.switches.external_journal,
                mkfs_options: draft.mkfs_options,
                mount_options: draft.mount_options,
                device_bytes: draft.device_bytes,
            },
            switches: draft.switches,
            workload: Workload {
                kind: draft.workload,
                arguments,
            },
            trace: draft.trace,
            pattern: draft.pattern,
            cpu_load: draft.cpu_load,
            environment: draft.environment,
            turns: draft.turns,
            repeat: draft.repeat,
        };
        cell.key = key(&cell, content);
        Ok(cell)
    }
}

/// A list of options is one value, not several cells.
fn join_options(block: &mut Table, key: &str) -> Result<(), Problem> {
    let Some(Value::Array(values)) = block.get(key) else {
        return Ok(());
    };
    let words: Option<Vec<&str>> = values.iter().map(Value::as_str).collect();
    let words = words.ok_or((format!("{key}: no list of texts"), "write each in quotes"))?;
    let joined = words.join(" ");
    block.insert(key.into(), Value::String(joined));
    Ok(())
}

fn axes(chosen: &[Choice], draft: &Draft<'_>) -> Vec<(String, String)> {
    let mut axes = vec![
        ("filesystem".to_owned(), draft.filesystem.name().to_owned()),
        ("switches".to_owned(), draft.switches.to_string()),
    ];
    // A word that is no flag is there to be shown.
    let is_shown = |choice: &&Choice| choice.varies || ["turns", "label"].contains(&&*choice.key);
    let others = chosen
        .iter()
        .filter(is_shown)
        .filter(|choice| !["filesystem", "switches"].contains(&&*choice.key));
    axes.extend(others.map(|choice| (choice.key.clone(), choice.text.clone())));
    axes
}

/// A hash of everything that makes the cell, in an order that does not depend on the file's.
fn key(cell: &Cell, content: u64) -> String {
    let mut flags: Vec<&str> = cell.workload.arguments.iter().map(String::as_str).collect();
    if matches!(
        cell.workload.kind,
        WorkloadKind::Replay | WorkloadKind::Command
    ) {
        // The same recording or program may lie elsewhere on another machine.
        flags.remove(0);
    }
    if cell.workload.kind != WorkloadKind::Command {
        flags.sort_unstable();
    }
    let storage = &cell.storage;
    let parts = [
        storage.filesystem.name().to_owned(),
        storage.mkfs_options.join(" "),
        storage.mount_options.clone(),
        storage.device_bytes.to_string(),
        cell.switches.to_string(),
        cell.workload.kind.name().to_owned(),
        flags.join("\0"),
        format!("{content:x}"),
        cell.trace.to_string(),
        cell.pattern.to_string(),
        cell.cpu_load.to_string(),
        cell.repeat.to_string(),
    ];
    // Cells from before there were these keep their results.
    let later = [cell.environment.join(" "), cell.turns.clone()];
    let later = later.into_iter().filter(|part| !part.is_empty());
    let mut hasher = XxHash64::with_seed(0);
    for part in parts.into_iter().chain(later) {
        hasher.write(part.as_bytes());
        // No part can be taken for the end of the one before.
        hasher.write(b"\0\0");
    }
    format!("{:016x}", hasher.finish())
}
