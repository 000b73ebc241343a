//! Whose I/O it is: by file and by process.

use iostep_model::class::{FileType, Layer};
use iostep_model::table::{Request, Segment, Trace};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::amount::{Amount, Split};

/// What was read and written of one file: its data, and metadata that is only its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileRow {
    /// Row in `files.parquet`.
    pub file: u32,
    /// Path below the filesystem's root, or `inode N`.
    pub path: String,
    /// The path as users have it, below the mount point.
    pub user_path: String,
    /// Its first path below the filesystem's root, if it has another name now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_path: Option<String>,
    /// The same as users have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_first_path: Option<String>,
    pub file_type: FileType,
    /// Inode number.
    pub inode: u64,
    /// Files that the row is about: 1, but in [`super::Summary::files_by_path`].
    pub files: u64,
    /// True if it was seen to be deleted.
    pub deleted: bool,
    /// How many of `files` were.
    #[serde(skip)]
    pub deleted_files: u64,
    /// Its requests and bytes; a logged copy of its data is the journal's, not its own.
    #[serde(flatten)]
    pub amounts: Split,
    /// Sync calls on it.
    pub syncs: u64,
}

/// What one process made the device do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessRow {
    /// Process id.
    pub pid: u32,
    /// Its name: the program's ([`Trace::program`]).
    pub name: String,
    /// True for a kernel thread.
    pub kernel: bool,
    /// Its command line, where it could be read.
    pub command_line: Option<String>,
    /// Path of the control group that it was last seen in.
    pub cgroup: Option<String>,
    /// Writes of pages that it made dirty, whoever submitted them.
    pub dirtied: Amount,
    /// What it submitted, whoever made it dirty.
    pub submitted: Split,
    /// Sync calls that it made.
    pub syncs: u64,
}

/// A counter that sees each request once, however many segments name it.
#[derive(Clone, Copy, Default)]
struct PerOwner {
    split: Split,
    last_request: Option<u32>,
}

impl PerOwner {
    fn add(&mut self, request: &Request, segment: &Segment) {
        if let Some(side) = self.split.side(request.operation) {
            side.bytes += u64::from(segment.bytes);
            side.requests += u64::from(self.last_request != Some(segment.request));
            self.last_request = Some(segment.request);
        }
    }
}

/// The most written first.
pub(super) fn sort(rows: &mut [FileRow]) {
    rows.sort_by(|a, b| {
        let bytes = |row: &FileRow| (row.amounts.write.bytes, row.amounts.read.bytes);
        bytes(b).cmp(&bytes(a)).then_with(|| a.path.cmp(&b.path))
    });
}

pub(super) struct Collector {
    files: Vec<PerOwner>,
    /// Index into `dirtied` and `submitted` by row of the trace's processes.
    group_of: Vec<usize>,
    /// The process id of each group.
    pids: Vec<u32>,
    dirtied: Vec<PerOwner>,
    submitted: Vec<Split>,
}

impl Collector {
    pub(super) fn new(trace: &Trace) -> Collector {
        let mut pids = Vec::new();
        let mut groups = FxHashMap::default();
        let group_of = trace.processes.iter().map(|thread| {
            *groups.entry(thread.tgid).or_insert_with(|| {
                pids.push(thread.tgid);
                pids.len() - 1
            })
        });
        let group_of = group_of.collect();
        Collector {
            files: vec![PerOwner::default(); trace.files.len()],
            group_of,
            dirtied: vec![PerOwner::default(); pids.len()],
            submitted: vec![Split::default(); pids.len()],
            pids,
        }
    }

    pub(super) fn add(&mut self, request: &Request, segments: &[Segment]) {
        if let Some(submitter) = request.submitter {
            let group = self.group_of[submitter as usize];
            if let Some(side) = self.submitted[group].side(request.operation) {
                side.add(request.bytes.into());
            }
        }
        for segment in segments {
            if let Some(file) = segment
                .file
                .filter(|_| segment.class.layer() != Layer::Journal)
            {
                self.files[file as usize].add(request, segment);
            }
            if let Some(dirtier) = segment.dirtier.filter(|_| request.operation.is_write()) {
                self.dirtied[self.group_of[dirtier as usize]].add(request, segment);
            }
        }
    }

    pub(super) fn finish(self, trace: &Trace) -> (Vec<FileRow>, Vec<ProcessRow>) {
        let mut file_syncs = vec![0; trace.files.len()];
        let mut process_syncs = vec![0; self.pids.len()];
        for sync in &trace.syncs {
            if let Some(file) = sync.file {
                file_syncs[file as usize] += 1;
            }
            if let Some(process) = sync.process {
                process_syncs[self.group_of[process as usize]] += 1;
            }
        }
        (
            self.file_rows(trace, &file_syncs),
            self.process_rows(trace, &process_syncs),
        )
    }

    fn file_rows(&self, trace: &Trace, syncs: &[u64]) -> Vec<FileRow> {
        let rows = trace.files.iter().enumerate().map(|(index, file)| FileRow {
            file: index as u32,
            path: trace.file_path(index as u32),
            user_path: trace.file_name(index as u32),
            first_path: file.first_path.clone(),
            user_first_path: trace.first_name(index as u32),
            file_type: file.file_type,
            inode: file.key.inode,
            files: 1,
            deleted: file.deleted_ns.is_some(),
            deleted_files: file.deleted_ns.is_some().into(),
            amounts: self.files[index].split,
            syncs: syncs[index],
        });
        let mut rows: Vec<FileRow> = rows
            .filter(|row| !row.amounts.is_empty() || row.syncs > 0)
            .collect();
        sort(&mut rows);
        rows
    }

    fn process_rows(&self, trace: &Trace, syncs: &[u64]) -> Vec<ProcessRow> {
        let mut rows: Vec<ProcessRow> = self
            .named(trace)
            .enumerate()
            .map(|(group, thread)| ProcessRow {
                pid: self.pids[group],
                name: trace.program(thread).to_owned(),
                kernel: trace.processes[thread as usize].kernel,
                command_line: trace.processes[thread as usize].command_line.clone(),
                cgroup: trace.processes[thread as usize].cgroup.clone(),
                dirtied: self.dirtied[group].split.write,
                submitted: self.submitted[group],
                syncs: syncs[group],
            })
            .filter(|row| !row.submitted.is_empty() || row.dirtied.requests > 0 || row.syncs > 0)
            .collect();
        rows.sort_by_key(|row| {
            let submitted = row.submitted.sum().bytes;
            (std::cmp::Reverse((row.dirtied.bytes, submitted)), row.pid)
        });
        rows
    }

    /// The row that names each group: the last one of its first thread, or else any thread's.
    fn named(&self, trace: &Trace) -> impl Iterator<Item = u32> {
        let mut names = vec![None; self.pids.len()];
        for ((thread, group), row) in trace.processes.iter().zip(&self.group_of).zip(0..) {
            if names[*group].is_none() || thread.pid == thread.tgid {
                names[*group] = Some(row);
            }
        }
        names.into_iter().flatten()
    }
}
