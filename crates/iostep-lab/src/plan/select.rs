//! Which cells of a lab are run here, and which mean nothing anywhere.

use iostep_model::lab::{Cell, Filesystem, Lab, WorkloadKind};

use super::key;
use crate::error::{Error, Result};
use crate::matrix::shown;

/// The same lab with each cell run `repeat` times.
pub fn with_repeat(mut lab: Lab, repeat: u32) -> Lab {
    for cell in &mut lab.cells {
        if cell.repeat == repeat {
            continue;
        }
        cell.repeat = repeat;
        // What the recording holds is in the key before.
        let before = u64::from_str_radix(&cell.key, 16).unwrap_or_default();
        cell.key = key(cell, before);
    }
    lab
}

/// A share of a lab: every `of`-th of its cells in the order of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 1.
    pub index: u32,
    /// Of how many.
    pub of: u32,
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let bad = || format!("{}: expected a share as 2/8, from 1 on", shown(text));
        let (index, of) = text.split_once('/').ok_or_else(bad)?;
        let index: u32 = index.parse().map_err(|_| bad())?;
        let of: u32 = of.parse().map_err(|_| bad())?;
        match (1..=of).contains(&index) {
            true => Ok(Shard { index, of }),
            false => Err(bad()),
        }
    }
}

/// The cells to run, in the order of the lab: those of a share, or with one of `keys` if there are
/// any, and with each those it takes turns with.
///
/// Errors: `Usage` for a key that no cell has.
pub fn select<'a>(lab: &'a Lab, shard: Option<Shard>, keys: &[String]) -> Result<Vec<&'a Cell>> {
    if let Some(unknown) = keys
        .iter()
        .find(|key| !lab.cells.iter().any(|c| c.key == **key))
    {
        return Err(Error::Usage {
            what: format!(
                "{}: no cell of {} has this key",
                shown(unknown),
                shown(&lab.name)
            ),
            hint: "see iostep lab list NAME --json".into(),
        });
    }
    let mut sorted: Vec<&str> = lab.cells.iter().map(|cell| cell.key.as_str()).collect();
    sorted.sort_unstable();
    let in_shard = |cell: &Cell| {
        shard.is_none_or(|shard| {
            let position = sorted.binary_search(&cell.key.as_str()).unwrap_or_default();
            position % shard.of as usize == shard.index as usize - 1
        })
    };
    let is_chosen = |cells: &Vec<&Cell>| {
        let named = cells.iter().any(|cell| keys.contains(&cell.key));
        (keys.is_empty() || named) && in_shard(cells[0])
    };
    let all: Vec<&Cell> = lab.cells.iter().collect();
    Ok(in_turns(&all)
        .into_iter()
        .filter(is_chosen)
        .flatten()
        .collect())
}

/// Cells with those that they take turns with, each of which is in the list once.
pub fn in_turns<'a>(cells: &[&'a Cell]) -> Vec<Vec<&'a Cell>> {
    let mut groups: Vec<Vec<&Cell>> = Vec::new();
    for cell in cells {
        let same = |group: &&mut Vec<&Cell>| group[0].takes_turns_with(cell);
        let is_alone = cell.turns.is_empty();
        let known = if is_alone {
            None
        } else {
            groups.iter_mut().find(same)
        };
        match known {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups
}

/// Why a combination means nothing, whatever machine it is run on; `None` if it does.
pub fn not_applicable(cell: &Cell) -> Option<String> {
    let switches = cell.switches;
    let filesystem = cell.storage.filesystem;
    if switches.external_journal && !filesystem.takes_external_journal() {
        return Some(format!(
            "{filesystem} has no journal that could lie elsewhere"
        ));
    }
    if switches.batch_atomic
        && let Some(reason) = no_batch_atomic(cell)
    {
        return Some(reason);
    }
    match cell.workload.kind {
        WorkloadKind::Sqlite if switches.polled => Some(
            "the kernel polls only for direct I/O, and SQLite writes through the page cache".into(),
        ),
        WorkloadKind::File if switches.wal || switches.waldio => {
            Some("a log is SQLite's, and the workload is a file".into())
        }
        WorkloadKind::Replay if switches.polled => Some(
            "the kernel polls only for direct I/O that asks for it, and a replay makes the calls \
             that were recorded"
                .into(),
        ),
        WorkloadKind::Command if switches.polled || switches.wal || switches.waldio => {
            Some("a command does what it does".into())
        }
        WorkloadKind::Replay if switches.wal || switches.waldio => {
            Some("a replay makes the calls that were recorded".into())
        }
        _ => None,
    }
}

/// Why a cell cannot have batch atomic writes, as [`not_applicable`].
fn no_batch_atomic(cell: &Cell) -> Option<String> {
    let filesystem = cell.storage.filesystem;
    if filesystem != Filesystem::F2fs {
        return Some(format!("{filesystem} has no batch atomic writes"));
    }
    if cell.workload.kind != WorkloadKind::Sqlite {
        return Some("batch atomic writes are SQLite's, and the workload is another".into());
    }
    let journal = cell.argument("journal").unwrap_or("delete");
    let rollback = ["delete", "truncate", "persist"];
    let has_rollback = rollback
        .iter()
        .any(|mode| journal.eq_ignore_ascii_case(mode));
    (!has_rollback).then(|| {
        format!("journal mode {journal} has no rollback journal that batch atomic writes replace")
    })
}
