//! One experiment of a lab: storage, workload and switches.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Filesystem, Switches};
use crate::names::named;

/// One combination of the values of a lab, complete: two cells with the same key do the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Hash of everything below but [`Cell::block`] and [`Cell::axes`]: 16 hexadecimal digits.
    pub key: String,
    /// The name of its `[[cells]]` block; `cells-1` and so on where it has none.
    pub block: String,
    /// The keys of the block that vary or that tables are made by, with their values as written:
    /// `filesystem` and `switches` always, then every key with a list.
    pub axes: Vec<(String, String)>,
    /// What it runs on.
    pub storage: Storage,
    /// The optimisations.
    pub switches: Switches,
    /// What runs on it.
    pub workload: Workload,
    /// True if block I/O is traced too, which gives the classes; times are then those of a traced
    /// run.
    pub trace: bool,
    /// Of how many of the last operations the block pattern is kept; 0 for none. Needs `trace`.
    #[serde(default)]
    pub pattern: u32,
    /// Processes that spin beside the workload.
    pub cpu_load: u32,
    /// Further variables of the workload's environment, as `NAME=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// Whom it takes turns with: cells with this word and the same storage are run in rounds on one
    /// filesystem, and [`Cell::repeat`] counts the rounds. Empty for a cell that runs alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub turns: String,
    /// How many times the workload runs.
    pub repeat: u32,
}

impl Cell {
    /// What tables are made by: the cell's value on an axis of the lab or for a flag of the
    /// workload, or what is derived of them; `None` where it has none.
    pub fn value(&self, axis: &str) -> Option<Cow<'_, str>> {
        Some(match axis {
            "workload" => self.workload.kind.name().into(),
            "filesystem" => self.storage.filesystem.name().into(),
            "switches" => self.switches.to_string().into(),
            "cpu-load" => self.cpu_load.to_string().into(),
            "traced" => if self.trace { "yes" } else { "no" }.into(),
            // The journal mode, and of waldio how it syncs.
            "mode" => match self.argument("journal").unwrap_or("") {
                "waldio" => {
                    let sync = self.argument("waldio-sync").unwrap_or("full");
                    format!("waldio {sync}").into()
                }
                journal => journal.into(),
            },
            _ => self.axis(axis).or_else(|| self.argument(axis))?.into(),
        })
    }

    /// True if both are run in the same rounds; a cell is with itself.
    pub fn takes_turns_with(&self, other: &Cell) -> bool {
        let together = self.turns == other.turns && self.storage == other.storage;
        self.key == other.key || (!self.turns.is_empty() && together)
    }

    /// True if it has each of the values; where it has none, the empty text stands.
    pub fn is_at<'a>(&self, at: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
        at.into_iter()
            .all(|(axis, value)| self.value(axis).unwrap_or_default() == value)
    }

    /// The value of an axis.
    pub fn axis(&self, name: &str) -> Option<&str> {
        let mut axes = self.axes.iter();
        let found = axes.find(|(axis, _)| axis == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The value of a flag of the workload: `Some("")` for one without a value, `None` for one
    /// that is not given.
    pub fn argument(&self, flag: &str) -> Option<&str> {
        self.workload.arguments.iter().find_map(|argument| {
            let rest = argument.strip_prefix("--")?.strip_prefix(flag)?;
            match rest.strip_prefix('=') {
                Some(value) => Some(value),
                None => rest.is_empty().then_some(""),
            }
        })
    }
}

/// What a cell runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    pub filesystem: Filesystem,
    /// Its journal or log is on a second device.
    pub external_journal: bool,
    /// Further arguments for its mkfs.
    pub mkfs_options: Vec<String>,
    /// Further mount options, as `mount -o` has them.
    pub mount_options: String,
    /// Length of the device; where a real device is given, of what is used of it at least.
    pub device_bytes: u64,
}

/// What runs on a cell's storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Which command.
    pub kind: WorkloadKind,
    /// Its flags, as `--journal=wal`, without the place; for a replay the recording comes first,
    /// for a command the program and its own arguments.
    pub arguments: Vec<String>,
}

/// What makes a cell's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkloadKind {
    /// `iostep bench sqlite`.
    Sqlite,
    /// `iostep bench file`.
    File,
    /// `iostep replay`.
    Replay,
    /// A program that says what it did.
    Command,
}

named!(
    WorkloadKind,
    "workload",
    Sqlite = "sqlite",
    File = "file",
    Replay = "replay",
    Command = "command",
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_flag_is_found_by_its_whole_name() {
        let arguments = ["--fsync", "--checkpoint=10"];
        let cell = fixture::cell(Filesystem::Xfs, WorkloadKind::Sqlite, &arguments);
        assert_eq!(cell.argument("fsync"), Some(""));
        assert_eq!(cell.argument("checkpoint"), Some("10"));
        assert_eq!(cell.argument("check"), None);
        assert_eq!(cell.axis("filesystem"), Some("xfs"));
        assert_eq!(cell.axis("journal"), None);
    }
}
