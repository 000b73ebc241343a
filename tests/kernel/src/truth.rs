//! What an unmounted image says about its own blocks.

pub mod btrfs;
pub mod ext4;
pub mod f2fs;
pub mod fat;
pub mod nilfs2;
pub mod xfs;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use iostep_model::Class;

use crate::facts::{Facts, Process, Sync};
use crate::image::Image;
use crate::sector_map::SectorMap;
use crate::stamp::Stamp;

/// What is known about an image without a trace.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// The class of what lies where; the log apart.
    pub classes: SectorMap<Class>,
    /// The filesystem's log.
    pub log: SectorMap<LogBlock>,
    /// ext4: where the log lies, with what was in it before.
    pub journal: SectorMap<()>,
    /// btrfs: the logical address of what lies where.
    pub logical: SectorMap<u64>,
}

/// A piece of the filesystem's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogBlock {
    pub class: Class,
    /// jbd2: the transaction.
    pub commit: Option<u64>,
    /// jbd2: the block that this is a copy of.
    pub home: Option<u64>,
    /// Which sync call made it necessary.
    pub cause: Cause,
}

/// The sync call behind a piece of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The image does not tell.
    Unknown,
    /// None: the filesystem wrote it for itself.
    Nobody,
    /// One of these, by their place in [`Facts::syncs`].
    OneOf(Vec<usize>),
}

impl Truth {
    /// Reads an image that holds a filesystem of this kind, last written by this workload.
    ///
    /// `asked` are sectors whose class the caller wants to know; ext4 looks up their owners.
    pub fn read(kind: &str, image: &Image, facts: &Facts, asked: &[u64]) -> anyhow::Result<Truth> {
        match kind {
            "ext4" => ext4::read(image, facts, asked),
            "xfs" => xfs::read(image, facts),
            "btrfs" => btrfs::read(image, facts),
            "f2fs" => f2fs::read(image, facts),
            "nilfs2" => nilfs2::read(image, facts),
            "vfat" => fat::read(image),
            other => anyhow::bail!("no truth is known about {other}"),
        }
    }
}

/// Runs a program of the filesystem's own tools and takes what it prints.
///
/// Errors: the program cannot be started or fails.
pub fn tool(program: &str, arguments: &[&str], image: &Path) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .arg(image)
        .output()
        .with_context(|| format!("{program}: cannot run"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "{program}: {}: {error}",
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first number behind `label` in a line.
pub fn number_after(line: &str, label: &str) -> Option<u64> {
    let (_, rest) = line.split_once(label)?;
    let rest = rest.trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Sync calls that ran at a time of the coarse wall clock.
pub fn syncs_at(syncs: &[(&Process, &Sync)], wall_ns: u64) -> Vec<usize> {
    let running = |index: &usize| {
        let (enter, exit) = syncs[*index].1.coarse_wall_ns;
        (enter..=exit).contains(&wall_ns)
    };
    (0..syncs.len()).filter(running).collect()
}

/// The sync call that made a stamped block durable: the first one that its writer made on its file
/// afterwards, by its place in `syncs`.
pub fn first_sync_after(syncs: &[(&Process, &Sync)], stamp: &Stamp) -> Option<usize> {
    syncs.iter().position(|(process, sync)| {
        process.pid == stamp.pid
            && sync.file_id == Some(stamp.file_id)
            && sync.sequence >= stamp.sequence
    })
}

/// That call, and those that may have done its work: all that ran since its process wrote, which was
/// after the process's last call.
pub fn this_or_overlapping(syncs: &[(&Process, &Sync)], index: usize) -> Vec<usize> {
    let (process, of) = syncs[index];
    if of.alone {
        return vec![index];
    }
    let before = syncs[..index]
        .iter()
        .rev()
        .find(|(p, _)| p.pid == process.pid);
    let since_ns = before.map_or(of.enter_ns, |(_, last)| last.exit_ns);
    let overlaps = |other: &usize| {
        let other = syncs[*other].1;
        other.enter_ns <= of.exit_ns && since_ns < other.exit_ns
    };
    (0..syncs.len()).filter(overlaps).collect()
}

/// The inode that a sync call was made on.
pub fn inode_of(facts: &Facts, sync: &Sync) -> Option<u64> {
    Some(facts.files.get(&sync.file_id?)?.inode)
}

/// An inode in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedInode {
    pub inode: u64,
    /// When it was last changed, by the coarse wall clock or a finer one.
    pub wall_ns: u64,
    /// The file's length.
    pub file_bytes: u64,
}

/// The sync call that a log with these inodes was written for.
///
/// It is the first of any of the inodes that ended after the newest change. Where others ran at
/// the same time, it is one of the first of each inode after that inode's own newest change.
pub fn first_sync_of(facts: &Facts, syncs: &[(&Process, &Sync)], logged: &[LoggedInode]) -> Cause {
    let mut newest: BTreeMap<u64, LoggedInode> = BTreeMap::new();
    for found in logged {
        if facts.files_with_inode(found.inode).next().is_some() {
            let known = newest.entry(found.inode).or_insert(*found);
            if known.wall_ns <= found.wall_ns {
                *known = *found;
            }
        }
    }
    let last = newest.values().map(|l| l.wall_ns).max().unwrap_or(0);
    let of_any = |sync: &Sync| inode_of(facts, sync).is_some_and(|i| newest.contains_key(&i));
    match syncs
        .iter()
        .position(|call| of_any(call.1) && ended_after(call, last))
    {
        None => Cause::Unknown,
        Some(index) if syncs[index].1.alone => Cause::OneOf(vec![index]),
        Some(_) => {
            let possible = newest.values().flat_map(|l| firsts_of(facts, syncs, l));
            Cause::OneOf(possible.filter(|&index| !syncs[index].1.alone).collect())
        }
    }
}

fn ended_after((process, sync): &(&Process, &Sync), wall_ns: u64) -> bool {
    process.began.wall_at(sync.exit_ns) >= wall_ns
}

/// The first sync call of an inode after its change. The clock that stamps changes may lag behind,
/// so this is every call from the first that ended after the time to the first that surely began
/// after it; but none at which the file was shorter than logged. It may have been longer: xfs logs
/// the time of a write at once, and the length only when the data are written.
fn firsts_of(facts: &Facts, syncs: &[(&Process, &Sync)], logged: &LoggedInode) -> Vec<usize> {
    let mut possible = Vec::new();
    for (index, call) in syncs.iter().enumerate() {
        let shorter = call.1.file_bytes.is_some_and(|b| b < logged.file_bytes);
        let of_it = inode_of(facts, call.1) == Some(logged.inode);
        if shorter || !of_it || !ended_after(call, logged.wall_ns) {
            continue;
        }
        possible.push(index);
        if call.1.coarse_wall_ns.0 > logged.wall_ns {
            break;
        }
    }
    possible
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;
    use crate::facts::File;
    use iostep_model::SyncKind;

    const MS: u64 = 1_000_000;

    fn facts() -> Facts {
        let sync = |file_id, enter_ns: u64, exit_ns: u64| Sync {
            kind: SyncKind::Fsync,
            file_id: Some(file_id),
            file_bytes: Some(0),
            sequence: 0,
            enter_ns: enter_ns * MS,
            exit_ns: exit_ns * MS,
            coarse_wall_ns: ((enter_ns + 1_000) * MS, (exit_ns + 1_000) * MS),
            result: 0,
            alone: true,
        };
        let file = |id, inode| File {
            id,
            inode,
            generation: None,
            paths: vec![format!("/{id}")],
            deleted: false,
        };
        let process = Process {
            mode: "test".into(),
            pid: 1,
            comm: "test".into(),
            began: Moment {
                mono_ns: 0,
                wall_ns: 1_000 * MS,
            },
            bytes: 0,
            files: vec![file(1, 101), file(2, 102)],
            syncs: vec![sync(1, 100, 120), sync(2, 200, 220), sync(1, 300, 320)],
        };
        let mut facts = Facts::default();
        facts.add(process).expect("consistent");
        facts
    }

    #[test]
    fn a_time_belongs_to_the_sync_call_that_ran_then() {
        let facts = facts();
        assert_eq!(syncs_at(&facts.syncs(), 1_210 * MS), [1]);
        assert!(syncs_at(&facts.syncs(), 1_250 * MS).is_empty());
    }

    #[test]
    fn a_logged_inode_belongs_to_its_first_sync_after_the_change() {
        let facts = facts();
        let cause = |changes: &[(u64, u64)]| {
            let logged = |&(inode, wall_ns)| LoggedInode {
                inode,
                wall_ns,
                file_bytes: 0,
            };
            let logged: Vec<LoggedInode> = changes.iter().map(logged).collect();
            first_sync_of(&facts, &facts.syncs(), &logged)
        };
        assert_eq!(cause(&[(101, 1_090 * MS)]), Cause::OneOf(vec![0]));
        assert_eq!(
            cause(&[(101, 1_090 * MS), (102, 1_190 * MS)]),
            Cause::OneOf(vec![1])
        );
        assert_eq!(cause(&[(101, 1_130 * MS)]), Cause::OneOf(vec![2]));
        assert_eq!(cause(&[(999, 1_130 * MS)]), Cause::Unknown);
        assert_eq!(cause(&[(102, 1_400 * MS)]), Cause::Unknown);
    }

    #[test]
    fn beside_others_a_call_may_be_answered_by_any_since_its_process_wrote() {
        let mut facts = facts();
        facts.processes[0].syncs[2].alone = false;
        let mut other = facts.processes[0].clone();
        other.pid = 2;
        other.syncs.truncate(2);
        (other.syncs[0].enter_ns, other.syncs[0].exit_ns) = (150 * MS, 210 * MS);
        (other.syncs[1].enter_ns, other.syncs[1].exit_ns) = (215 * MS, 260 * MS);
        facts.processes.push(other);
        let syncs = facts.syncs();
        let entered = |index: &usize| syncs[*index].1.enter_ns / MS;
        let possible = this_or_overlapping(&syncs, 4);
        assert_eq!(possible.iter().map(entered).collect::<Vec<_>>(), [215, 300]);
        assert_eq!(this_or_overlapping(&syncs, 0), [0]);
    }

    #[test]
    fn numbers_are_read_behind_their_label() {
        assert_eq!(
            number_after("length 8388608 owner 2", "length"),
            Some(8_388_608)
        );
        assert_eq!(number_after("length none", "length"), None);
    }
}
