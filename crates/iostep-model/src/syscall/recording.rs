//! A recording: calls in the order they began, and all that is needed to perform them again.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::calls::Syscall;
use super::identity::{HandleId, PathId, ProcessId, ThreadId};
use super::operation::Operation;

/// An error number of the recorded machine, in the numbering of x86 and arm, which is generic
/// (include/uapi/asm-generic/errno.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Errno(pub i32);

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It returned this number, 0 or more. mmap's is 0 here.
    Value(i64),
    /// It returned a descriptor of this open file.
    Handle(HandleId),
    Failed(Errno),
    /// It never returned: the thread was killed in it, or the recording ended.
    Unfinished,
    /// The source does not say.
    Unknown,
}

/// One system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it began, since the recording's start.
    pub start_ns: u64,
    /// How long it took; none where the source does not say or it never returned.
    pub duration_ns: Option<u64>,
    /// Who called.
    pub thread: ThreadId,
    /// Under which name.
    pub syscall: Syscall,
    /// What it asked for.
    pub operation: Operation<HandleId, PathId>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Call {
    /// Bytes that a read, write or copy moved: what it returned. Of a request of which nobody was told
    /// how it ended, what it asked for.
    pub fn moved_bytes(&self) -> u64 {
        match (self.outcome, &self.operation) {
            (Outcome::Value(bytes), _) => bytes.unsigned_abs(),
            (Outcome::Unknown, Operation::Transfer { size, .. }) => *size,
            _ => 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub id: ThreadId,
    /// The process that it belongs to.
    pub process: ProcessId,
    /// Its number on the recorded machine.
    pub tid: u32,
    /// Its name (`/proc/TID/comm`), if known.
    pub name: String,
}

/// Where the recording's times come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Wall clock at time 0, nanoseconds since 1970, if known.
    pub start_wall_ns: Option<i128>,
    /// What the times are exact to, in nanoseconds: 1, 1000 for strace's microseconds, 1000000000
    /// for its seconds.
    pub resolution_ns: u64,
}

/// What made a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Program, version and way: `iostep 0.1.0 bpf`, `strace`, `mobigen`.
    pub recorder: String,
    /// Kernel and architecture, empty if unknown.
    pub machine: String,
    /// The command with its arguments; empty if it was attached to or is unknown.
    pub command: Vec<Vec<u8>>,
    /// Times.
    pub clock: Clock,
}

impl Header {
    /// True if the recorder saw the positions of files that were open before.
    pub fn sees_positions(&self) -> bool {
        self.recorder.starts_with("iostep ")
    }
}

/// What a path was before the first call that touched it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitialFile {
    pub path: PathId,
    pub kind: InitialKind,
    /// Permissions of a regular file, if a call told of them.
    pub mode: Option<u32>,
    /// True if this was seen, or a call that asks for it told; false if it was concluded from what
    /// other calls returned.
    pub seen: bool,
}

/// What can be at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InitialKind {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Its size in bytes; at least that, if concluded.
        size: u64,
        /// What it held.
        content: Content,
    },
    Directory,
    /// A symbolic link.
    Symlink {
        /// What it says.
        content: PathId,
    },
    /// A FIFO.
    Fifo,
    /// A socket with a name.
    Socket,
    /// A character or block device.
    Device,
    /// A further name of another path's file.
    HardLink {
        /// The name it was first seen by.
        of: PathId,
    },
}

/// What a file held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Data that was not recorded, or nobody knows: a replay makes incompressible data.
    Data,
    /// Nothing but holes.
    Hole,
    /// So many bytes of such data, and a hole behind them: of a file that takes less room than its
    /// size. Where its holes were is not known.
    Sparse(u64),
    /// This data, kept beside the recording, by this number ([`super::kept`]).
    Kept(u32),
}

impl Content {
    /// What a file of `size` bytes in `blocks` blocks of 512 bytes holds (stat(2)). A file of a page may
    /// lie in its inode, and then takes none.
    pub fn in_blocks(size: u64, blocks: u64) -> Content {
        const PAGE_BYTES: u64 = 4096;
        let held = blocks.saturating_mul(512);
        match held {
            _ if size <= PAGE_BYTES || held.saturating_add(PAGE_BYTES) > size => Content::Data,
            0 => Content::Hole,
            held => Content::Sparse(held),
        }
    }
}

/// Where every line or event of the source went. The sum of its lines is what the source had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// One line a reason.
    pub lines: Vec<LedgerLine>,
    /// Events that the recorder lost: what they were is not known.
    pub lost: u64,
}

/// One reason to keep something or to leave it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// True: it is in the recording.
    pub kept: bool,
    /// Why, in words: `call`, `socket`, `ashmem`, `not about files`, `cannot be read`.
    pub reason: String,
    /// How many.
    pub count: u64,
}

impl Ledger {
    /// Counts `count` for a reason.
    pub fn add(&mut self, kept: bool, reason: &str, count: u64) {
        let mut lines = self.lines.iter_mut();
        match lines.find(|line| line.kept == kept && line.reason == reason) {
            Some(line) => line.count += count,
            None => self.lines.push(LedgerLine {
                kept,
                reason: reason.to_owned(),
                count,
            }),
        }
    }

    /// What was kept, what was left out.
    pub fn totals(&self) -> (u64, u64) {
        let sum = |kept| {
            let lines = self.lines.iter().filter(|line| line.kept == kept);
            lines.map(|line| line.count).sum()
        };
        (sum(true), sum(false))
    }
}

/// Paths, each once. A path is bytes: not all are UTF-8.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    list: Vec<Arc<[u8]>>,
    known: HashMap<Arc<[u8]>, PathId>,
}

impl Paths {
    /// The number of a path, a new one if it is new.
    pub fn intern(&mut self, path: &[u8]) -> PathId {
        if let Some(&id) = self.known.get(path) {
            return id;
        }
        let id = PathId(u32::try_from(self.list.len()).expect("fewer than 2^32 paths"));
        let path: Arc<[u8]> = path.into();
        self.list.push(path.clone());
        self.known.insert(path, id);
        id
    }

    /// The path of a number that [`Paths::intern`] gave.
    pub fn get(&self, id: PathId) -> &[u8] {
        &self.list[id.0 as usize]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl PartialEq for Paths {
    fn eq(&self, other: &Paths) -> bool {
        self.list == other.list
    }
}

/// A whole recording in memory. Its calls are sorted by `start_ns`; calls of one thread do not
/// overlap, requests of io_uring apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    pub header: Header,
    /// Every path that the rest names.
    pub paths: Paths,
    /// Every thread, by its number from 1.
    pub threads: Vec<Thread>,
    pub calls: Vec<Call>,
    /// What was there before.
    pub initial: Vec<InitialFile>,
    /// Where everything else of the source went.
    pub ledger: Ledger,
    /// The line at which its file stops without an end: calls after it are missing.
    pub cut_at_line: Option<u64>,
}
