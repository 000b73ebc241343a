//! The tables of a finished trace: what `iostep report` reads and what other tools find in the
//! Parquet files. Rows refer to each other by index.

use std::collections::HashMap;

use serde::Serialize;

use crate::class::{Class, Evidence, FileType};
use crate::event::{Marker, Process};
use crate::identity::FileKey;
use crate::manifest::Manifest;
use crate::operation::{Flags, Operation};
use crate::sync::SyncKind;

/// A whole trace.
#[derive(Clone, Debug)]
pub struct Trace {
    /// How and on what it was taken.
    pub manifest: Manifest,
    /// Requests in the order of issue.
    pub requests: Vec<Request>,
    /// Parts of requests, grouped by request, in the order of sectors.
    pub segments: Vec<Segment>,
    pub files: Vec<File>,
    /// Threads.
    pub processes: Vec<ProcessRow>,
    /// Sync calls in the order of entry.
    pub syncs: Vec<Sync>,
    /// Commits of the filesystem's log.
    pub commits: Vec<Commit>,
    /// Milestones.
    pub markers: Vec<MarkerRow>,
}

/// A thread under one name and in one control group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessRow {
    /// When it was first seen so.
    pub mono_ns: u64,
    /// Thread id.
    pub pid: u32,
    /// Process id.
    pub tgid: u32,
    /// Parent's process id.
    pub parent_tgid: u32,
    /// The thread's `comm`, at most 15 bytes. Where `pid` is `tgid`, the program's name.
    pub comm: String,
    /// True for a kernel thread.
    pub kernel: bool,
    /// The process's command line, where it could be read in time.
    pub command_line: Option<String>,
    /// Number of its control group, where that is known.
    pub cgroup_id: Option<u64>,
    /// Path of its control group below the root of the hierarchy, where that is known.
    pub cgroup: Option<String>,
}

impl From<Process> for ProcessRow {
    fn from(process: Process) -> ProcessRow {
        ProcessRow {
            mono_ns: process.mono_ns,
            pid: process.pid,
            tgid: process.tgid,
            parent_tgid: process.parent_tgid,
            comm: process.comm,
            kernel: process.kernel,
            command_line: process.command_line,
            cgroup_id: None,
            cgroup: None,
        }
    }
}

impl ProcessRow {
    /// The name of the file in the command line, or else the thread's own.
    fn own_name(&self) -> &str {
        self.file_name().unwrap_or(&self.comm)
    }

    /// The name of the file in the command line.
    fn file_name(&self) -> Option<&str> {
        let file = self.command_line.as_ref()?.split(' ').next()?;
        file.rsplit('/').next().filter(|name| !name.is_empty())
    }
}

/// An I/O: one request to the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// When its first bio was queued; equals `issue_ns` where that was not seen.
    pub queue_ns: u64,
    /// When it went to the driver (the last time, if it was requeued).
    pub issue_ns: u64,
    /// When it came back; `None` if it was still under way at the end.
    pub complete_ns: Option<u64>,
    /// First sector, on the whole disk.
    pub sector: u64,
    /// Length; 0 for a flush.
    pub bytes: u32,
    pub operation: Operation,
    /// How, with the preflush and FUA that its bios asked for: where the device cannot do them,
    /// the kernel makes flushes of them.
    pub flags: Flags,
    /// `blk_status_t`, 0 for success.
    pub status: u8,
    /// Bios that it was made of; 0 if none was seen.
    pub bios: u16,
    /// Who submitted the first bio: index into `processes`.
    pub submitter: Option<u32>,
    /// The sync call that the submitter was in; for a flush, the one that made it necessary: index
    /// into `syncs`.
    pub sync: Option<u32>,
    /// Index of its first segment.
    pub first_segment: u32,
    /// Number of its segments.
    pub segments: u16,
    /// When in the recording.
    pub phase: Phase,
    /// True for I/O that iostep itself made (its trace lies on the traced device).
    pub by_tracer: bool,
    /// The disk: index into the manifest's `devices`; 0 where there is only one.
    pub device: u8,
}

impl Request {
    /// True for a flush that the device executed, the one thing that is counted as a flush
    /// anywhere. The kernel counts the same in the 16th field of `/sys/block/X/stat`: one for each
    /// request that its flush machinery made and that came back (`blk_account_io_flush` in
    /// block/blk-flush.c, since 5.5). A write that asks for a flush before or after it is none: it
    /// shares the machinery's request with whoever waits at the same time.
    pub fn is_executed_flush(&self) -> bool {
        self.operation == Operation::Flush && self.complete_ns.is_some()
    }
}

/// A part of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// While the command ran, or the whole time if there was none.
    Run,
    /// After the command ended, before any settling.
    After,
    /// Written because `--settle` synced the filesystem.
    Settle,
}

crate::listed! { Phase,
    Run = "run",
    After = "after",
    Settle = "settle",
}

/// A part of a request whose bytes have one owner and one origin. The bytes of a request's
/// segments add up to the request's.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Index into `requests`.
    pub request: u32,
    /// First sector, on the whole disk.
    pub sector: u64,
    /// Length.
    pub bytes: u32,
    /// What the bytes are.
    pub class: Class,
    /// How the class and the file are known.
    pub evidence: Evidence,
    /// Whose they are: index into `files`. For a logged data block, the file it is a copy of.
    pub file: Option<u32>,
    pub file_offset_bytes: Option<u64>,
    /// Who made them dirty: index into `processes`.
    pub dirtier: Option<u32>,
    /// True if `dirtier` is the inode's last and not known to be this page's.
    pub dirtier_by_inode: bool,
    /// The sync call that made this I/O necessary: index into `syncs`.
    pub cause: Option<u32>,
    /// Log blocks: the commit they belong to (jbd2 transaction id, xfs CIL sequence).
    pub commit: Option<u64>,
    /// Logged blocks: the filesystem block that this is a copy of. btrfs: the logical address.
    pub home: Option<u64>,
    /// Logged blocks: the class of the home block. btrfs: `None`.
    pub home_class: Option<Class>,
    /// Which filesystem's they are, by what it begins on: index into the manifest's `volumes`, where
    /// there are several; `None` for what is in none.
    pub volume: Option<u16>,
}

impl Segment {
    /// Bytes of a class, by some evidence, of which nothing else is known yet.
    pub fn of(bytes: u32, class: Class, evidence: Evidence) -> Segment {
        Segment {
            request: 0,
            sector: 0,
            bytes,
            class,
            evidence,
            file: None,
            file_offset_bytes: None,
            dirtier: None,
            dirtier_by_inode: false,
            cause: None,
            commit: None,
            home: None,
            home_class: None,
            volume: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Its identity.
    pub key: FileKey,
    /// Last path below the filesystem's root that was seen, if any.
    pub path: Option<String>,
    /// `i_mode`; 0 if not known.
    pub mode: u16,
    pub file_type: FileType,
    /// When its inode was made (wall clock), where the filesystem says so.
    pub birth_wall_ns: Option<i64>,
    /// When it was seen to be gone: unlinked, or its inode freed.
    pub deleted_ns: Option<u64>,
    /// Which filesystem's it is, as a segment's.
    pub volume: Option<u16>,
    /// The first path that was seen, where it is another than the last.
    pub first_path: Option<String>,
}

impl File {
    /// True for a file that no name ever led to: made by `O_TMPFILE`, and not linked. The kernel
    /// calls it `#` and its inode number (`d_mark_tmpfile`, fs/dcache.c).
    pub fn is_nameless(&self) -> bool {
        let path = self.path.as_deref();
        self.deleted_ns.is_some() && path.is_some_and(|path| is_no_name(path, self.key))
    }
}

/// True for the path that the kernel gives a file of `O_TMPFILE`, to which no path leads.
pub fn is_no_name(path: &str, file: FileKey) -> bool {
    let name = path.rsplit('/').next();
    let number = name.and_then(|name| name.strip_prefix('#')?.parse().ok());
    number == Some(file.inode)
}

/// A sync call.
#[derive(Clone, Debug, PartialEq)]
pub struct Sync {
    /// When it entered.
    pub enter_ns: u64,
    /// When it left; `None` if it was still under way at the end.
    pub exit_ns: Option<u64>,
    /// What was called.
    pub kind: SyncKind,
    /// Thread: index into `processes`.
    pub process: Option<u32>,
    /// On which file: index into `files`.
    pub file: Option<u32>,
    /// What it returned, where that was seen.
    pub result: Option<i64>,
    /// The commit of the filesystem's log that it needed.
    pub commit: Option<u64>,
    /// Which filesystem it was called on, as a segment's; `None` for `sync`.
    pub volume: Option<u16>,
}

/// A commit of the filesystem's log.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// jbd2 transaction id, or xfs CIL sequence.
    pub id: u64,
    /// When it began; xfs: when its first log record was queued.
    pub start_ns: u64,
    /// When it ended, where that was seen.
    pub end_ns: Option<u64>,
    /// The sync call that started it: index into `syncs`. `None`: the filesystem's own timer or
    /// lack of log space.
    pub cause: Option<u32>,
    /// Which filesystem's it is, as a segment's: each counts its own.
    pub volume: Option<u16>,
}

/// A milestone of the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkerRow {
    pub mono_ns: u64,
    pub marker: Marker,
}

impl Trace {
    pub fn segments_of(&self, request: &Request) -> &[Segment] {
        let first = request.first_segment as usize;
        &self.segments[first..first + usize::from(request.segments)]
    }

    /// A file's path below the filesystem's root, or its inode number: the same wherever the
    /// filesystem is mounted.
    pub fn file_path(&self, file: u32) -> String {
        self.path_or_number(file, str::to_owned)
    }

    /// A file's path as users have it, below the mount point, or its inode number.
    pub fn file_name(&self, file: u32) -> String {
        let volume = self.files[file as usize].volume;
        self.path_or_number(file, |path| self.manifest.user_path(volume, path))
    }

    /// The first path of a file as users have it, below the mount point, if it has another name now.
    pub fn first_name(&self, file: u32) -> Option<String> {
        let file = &self.files[file as usize];
        let first = file.first_path.as_ref()?;
        Some(self.manifest.user_path(file.volume, first))
    }

    /// Every path by which a file can be asked for: its last and its first, below the mount point and
    /// below the filesystem's root.
    pub fn file_paths(&self, file: u32) -> impl Iterator<Item = String> {
        let last = [self.file_name(file), self.file_path(file)];
        let first = [
            self.first_name(file),
            self.files[file as usize].first_path.clone(),
        ];
        last.into_iter().chain(first.into_iter().flatten())
    }

    fn path_or_number(&self, file: u32, shown: impl Fn(&str) -> String) -> String {
        let file = &self.files[file as usize];
        match &file.path {
            // The next file with the number is called the same.
            Some(path) if file.is_nameless() => {
                format!("{}, generation {}", shown(path), file.key.generation)
            }
            Some(path) => shown(path),
            None => format!("inode {}", file.key.inode),
        }
    }

    /// A thread's name for people: `comm:pid` for a process's first thread, and
    /// `program:process/comm:thread` for another.
    pub fn thread_name(&self, thread: u32) -> String {
        let row = &self.processes[thread as usize];
        let own = format!("{}:{}", row.comm, row.pid);
        match row.pid == row.tgid {
            true => own,
            false => format!("{}:{}/{own}", self.program(thread), row.tgid),
        }
    }

    /// The name of the program that a thread runs: the `comm` of its process's first thread, the
    /// last one told by then. Traces of old do not always have one: then the name is that of the
    /// file in the command line, or else the thread's own.
    pub fn program(&self, thread: u32) -> &str {
        let row = &self.processes[thread as usize];
        let is_leader = |other: &&ProcessRow| other.tgid == row.tgid && other.pid == row.tgid;
        let (before, after) = self.processes.split_at(thread as usize + 1);
        let mut leaders = before.iter().rev().chain(after);
        match leaders.find(is_leader) {
            Some(leader) => &leader.comm,
            None => row.own_name(),
        }
    }
}

/// The programs of all threads, by row: of each what [`Trace::program`] says, without a search.
pub fn programs(processes: &[ProcessRow]) -> Vec<&str> {
    let mut leaders = HashMap::<u32, &str>::new();
    // From the end, so that those are left that come first.
    let all = processes.iter().rev();
    let is_leader = |row: &&ProcessRow| row.pid == row.tgid;
    leaders.extend(all.filter(is_leader).map(|row| (row.tgid, &*row.comm)));
    let rows = processes.iter().map(|row| {
        if is_leader(&row) {
            leaders.insert(row.tgid, &row.comm);
        }
        leaders
            .get(&row.tgid)
            .copied()
            .unwrap_or_else(|| row.own_name())
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn all_programs_are_those_of_each_thread() {
        let mut trace = fixture::empty();
        let rows = [
            (11, 10, "early"),
            (10, 10, "shell"),
            (11, 10, "worker"),
            (10, 10, "sqlite3"),
            (12, 10, "late"),
            (21, 20, "alone"),
            (22, 20, "beside"),
        ];
        trace.processes = rows
            .map(|(pid, tgid, comm)| ProcessRow {
                pid,
                tgid,
                comm: comm.into(),
                command_line: (pid == 22).then(|| "/bin/tool -x".into()),
                ..ProcessRow::default()
            })
            .into();
        let all = programs(&trace.processes);
        let expected = [
            "shell", "shell", "shell", "sqlite3", "sqlite3", "alone", "tool",
        ];
        assert_eq!(all, expected);
        assert!((0..7).all(|thread| trace.program(thread) == all[thread as usize]));
    }
}
