//! What the workload says about itself: one JSON object per process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;
use iostep_model::SyncKind;
use serde::{Deserialize, Serialize};

use crate::clock::Moment;

/// One process of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    pub mode: String,
    /// Its process id.
    pub pid: u32,
    /// Its `comm`.
    pub comm: String,
    /// The clocks when it began.
    pub began: Moment,
    /// Bytes of stamped blocks that it wrote.
    pub bytes: u64,
    /// Files that it wrote.
    pub files: Vec<File>,
    /// Sync calls that it made, in order.
    pub syncs: Vec<Sync>,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its number in the stamps.
    pub id: u32,
    /// Inode number.
    pub inode: u64,
    /// `i_generation`, where `FS_IOC_GETVERSION` tells it.
    pub generation: Option<u32>,
    /// Every path that it ever had, below the mount point, beginning with `/`; bytes that are not
    /// UTF-8 are replaced.
    pub paths: Vec<String>,
    /// True if no name was left at the end.
    pub deleted: bool,
}

/// A sync call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sync {
    /// What was called.
    pub kind: SyncKind,
    /// On which file, by its number; `None` for `syncfs`.
    pub file_id: Option<u32>,
    /// The file's length when it was called, where that was asked for.
    pub file_bytes: Option<u64>,
    /// The last block that the process had written before, by its number in the stamps.
    pub sequence: u64,
    /// Before the call.
    pub enter_ns: u64,
    /// After it.
    pub exit_ns: u64,
    /// The filesystem's clock before and after the call, see [`crate::clock::coarse_wall_ns`].
    pub coarse_wall_ns: (u64, u64),
    /// What it returned.
    pub result: i64,
    /// True if nobody else wrote or synced meanwhile, and the coarse clock moved before the next.
    pub alone: bool,
}

/// The whole workload.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub processes: Vec<Process>,
    /// Every file, by its number; paths of all processes together.
    pub files: BTreeMap<u32, File>,
}

impl Facts {
    /// Reads every `*.json` of a directory.
    ///
    /// Errors: a file that cannot be read, is no [`Process`], or contradicts another.
    pub fn read(dir: &Path) -> anyhow::Result<Facts> {
        let mut facts = Facts::default();
        let mut paths: Vec<_> = std::fs::read_dir(dir)
            .with_context(|| format!("{}: cannot list", dir.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
            .collect();
        paths.sort();
        for path in paths {
            let text = std::fs::read(&path)?;
            let process = serde_json::from_slice(&text)
                .with_context(|| format!("{}: not the facts of a process", path.display()))?;
            facts.add(process)?;
        }
        Ok(facts)
    }

    /// Adds a process and its files.
    ///
    /// Errors: one number for two inodes.
    pub fn add(&mut self, process: Process) -> anyhow::Result<()> {
        for file in &process.files {
            let known = self.files.entry(file.id).or_insert_with(|| file.clone());
            anyhow::ensure!(
                known.inode == file.inode,
                "file {} is inode {} and inode {}",
                file.id,
                known.inode,
                file.inode
            );
            let all: BTreeSet<String> = known.paths.iter().chain(&file.paths).cloned().collect();
            known.paths = all.into_iter().collect();
            known.deleted |= file.deleted;
        }
        self.processes.push(process);
        Ok(())
    }

    /// Bytes of stamped blocks written by all processes.
    pub fn bytes(&self) -> u64 {
        self.processes.iter().map(|p| p.bytes).sum()
    }

    /// Every sync call with its process, in the order of entry.
    pub fn syncs(&self) -> Vec<(&Process, &Sync)> {
        let mut all: Vec<_> = self
            .processes
            .iter()
            .flat_map(|p| p.syncs.iter().map(move |s| (p, s)))
            .collect();
        all.sort_by_key(|(_, sync)| sync.enter_ns);
        all
    }

    /// The files that had this inode number, in the order of their numbers.
    pub fn files_with_inode(&self, inode: u64) -> impl Iterator<Item = &File> {
        self.files.values().filter(move |f| f.inode == inode)
    }
}
