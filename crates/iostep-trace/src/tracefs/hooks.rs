//! The tracepoints that this backend records, their filters, and what their records say.

use iostep_model::SyncKind;

use crate::error::{Error, Result};
use crate::rwbs;
use crate::tracefs::format::{Field, Format};
use crate::tracefs::instance::Instance;
use crate::tracefs::scope::{Of, Scope};
use crate::tracefs::seen::{Block, OfFile, OfSync, OfTask, Part, Piece, Range, Seen};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Queue,
    Issue,
    Requeue,
    Complete,
    Split,
    Merge,
    Mapped,
    Looked,
    MapExit,
    Freed,
    Write,
    Folio,
    FsyncEnter,
    FsyncExit,
    SyscallEnter(SyncKind),
    SyscallExit,
    SyncFs,
    Writepages,
    CommitStart,
    CommitEnd,
    Handle,
    Marked,
    UringFsync,
    InodeNew,
    InodeFree,
    TaskNew,
    TaskRename,
}

struct Hook {
    system: &'static str,
    name: &'static str,
    of: Of,
    kind: Kind,
    /// Their meaning is by place; see [`Decoder::decode`].
    fields: &'static [&'static str],
}

const fn hook(
    system: &'static str,
    name: &'static str,
    of: Of,
    kind: Kind,
    fields: &'static [&'static str],
) -> Hook {
    Hook {
        system,
        name,
        of,
        kind,
        fields,
    }
}

const RANGE: &[&str] = &["sector", "nr_sector", "rwbs"];
const STATUS_EXTENT: &[&str] = &["ino", "lblk", "pblk", "len", "status"];
const WRITTEN: &[&str] = &["ino", "pos", "copied"];

#[rustfmt::skip]
const HOOKS: &[Hook] = &[
    hook("block", "block_bio_queue", Of::Bio, Kind::Queue, RANGE),
    hook("block", "block_rq_issue", Of::Request, Kind::Issue, RANGE),
    hook("block", "block_rq_requeue", Of::Request, Kind::Requeue, RANGE),
    hook("block", "block_rq_complete", Of::Request, Kind::Complete, &["sector", "nr_sector", "rwbs", "error|errors"]),
    hook("block", "block_split", Of::Bio, Kind::Split, &["new_sector"]),
    hook("block", "block_bio_backmerge", Of::Bio, Kind::Merge, &[]),
    hook("block", "block_bio_frontmerge", Of::Bio, Kind::Merge, &[]),
    hook("block", "block_rq_merge", Of::Request, Kind::Merge, &[]),
    hook("ext4", "ext4_es_insert_extent", Of::Filesystem, Kind::Mapped, STATUS_EXTENT),
    hook("ext4", "ext4_es_lookup_extent_exit", Of::Filesystem, Kind::Looked, &["ino", "lblk", "pblk", "len", "status", "found"]),
    hook("ext4", "ext4_ext_map_blocks_exit", Of::Filesystem, Kind::MapExit, &["ino", "lblk", "pblk", "len", "ret"]),
    hook("ext4", "ext4_ind_map_blocks_exit", Of::Filesystem, Kind::MapExit, &["ino", "lblk", "pblk", "len", "ret"]),
    hook("ext4", "ext4_free_blocks", Of::Filesystem, Kind::Freed, &["block", "count"]),
    hook("ext4", "ext4_da_write_end", Of::Filesystem, Kind::Write, WRITTEN),
    hook("ext4", "ext4_write_end", Of::Filesystem, Kind::Write, WRITTEN),
    hook("ext4", "ext4_journalled_write_end", Of::Filesystem, Kind::Write, WRITTEN),
    hook("writeback", "writeback_dirty_folio", Of::Backing, Kind::Folio, &["ino", "index"]),
    hook("writeback", "writeback_dirty_page", Of::Backing, Kind::Folio, &["ino", "index"]),
    hook("ext4", "ext4_sync_file_enter", Of::Filesystem, Kind::FsyncEnter, &["ino", "datasync"]),
    hook("ext4", "ext4_sync_file_exit", Of::Filesystem, Kind::FsyncExit, &["ret"]),
    hook("ext4", "ext4_sync_fs", Of::Filesystem, Kind::SyncFs, &[]),
    hook("ext4", "ext4_writepages", Of::Filesystem, Kind::Writepages, &["ino"]),
    hook("ext4", "ext4_allocate_inode", Of::Filesystem, Kind::InodeNew, &["ino", "dir", "mode"]),
    hook("ext4", "ext4_free_inode", Of::Filesystem, Kind::InodeFree, &["ino"]),
    hook("jbd2", "jbd2_start_commit", Of::Filesystem, Kind::CommitStart, &["transaction"]),
    hook("jbd2", "jbd2_end_commit", Of::Filesystem, Kind::CommitEnd, &["transaction"]),
    hook("jbd2", "jbd2_handle_start", Of::Filesystem, Kind::Handle, &["tid"]),
    hook("jbd2", "jbd2_handle_restart", Of::Filesystem, Kind::Handle, &["tid"]),
    hook("ext4", "ext4_mark_inode_dirty", Of::Filesystem, Kind::Marked, &["ino", "ip"]),
    // IORING_OP_FSYNC; the event was renamed in 6.3.
    hook("io_uring", "io_uring_submit_req", Of::Matching("opcode == 3"), Kind::UringFsync, &["opcode"]),
    hook("io_uring", "io_uring_submit_sqe", Of::Matching("opcode == 3"), Kind::UringFsync, &["opcode"]),
    hook("syscalls", "sys_enter_fsync", Of::Anything, Kind::SyscallEnter(SyncKind::Fsync), &[]),
    hook("syscalls", "sys_enter_fdatasync", Of::Anything, Kind::SyscallEnter(SyncKind::Fdatasync), &[]),
    hook("syscalls", "sys_enter_msync", Of::Anything, Kind::SyscallEnter(SyncKind::Msync), &[]),
    hook("syscalls", "sys_enter_sync_file_range", Of::Anything, Kind::SyscallEnter(SyncKind::SyncFileRange), &[]),
    hook("syscalls", "sys_enter_syncfs", Of::Anything, Kind::SyscallEnter(SyncKind::Syncfs), &[]),
    hook("syscalls", "sys_enter_sync", Of::Anything, Kind::SyscallEnter(SyncKind::Sync), &[]),
    hook("syscalls", "sys_exit_fsync", Of::Anything, Kind::SyscallExit, &["ret"]),
    hook("syscalls", "sys_exit_fdatasync", Of::Anything, Kind::SyscallExit, &["ret"]),
    hook("syscalls", "sys_exit_msync", Of::Anything, Kind::SyscallExit, &["ret"]),
    hook("syscalls", "sys_exit_sync_file_range", Of::Anything, Kind::SyscallExit, &["ret"]),
    hook("syscalls", "sys_exit_syncfs", Of::Anything, Kind::SyscallExit, &["ret"]),
    hook("syscalls", "sys_exit_sync", Of::Anything, Kind::SyscallExit, &["ret"]),
    hook("task", "task_newtask", Of::Anything, Kind::TaskNew, &["pid", "clone_flags", "comm"]),
    hook("task", "task_rename", Of::Anything, Kind::TaskRename, &["common_pid", "newcomm"]),
];

/// `ES_WRITTEN` and `ES_UNWRITTEN` of fs/ext4/extents_status.h: the extent has blocks.
const MAPPED_STATUS: u64 = 0b11;
const WRITTEN_STATUS: u64 = 0b01;
/// `CLONE_THREAD`, include/uapi/linux/sched.h.
const CLONE_THREAD: u64 = 0x0001_0000;

/// Decodes the records of the hooks that were enabled.
#[derive(Debug, Default)]
pub(crate) struct Decoders {
    /// By `common_type`.
    by_id: Vec<Option<Decoder>>,
    /// True if the kernel tells which system call a sync came from.
    pub syscalls: bool,
}

#[derive(Debug)]
struct Decoder {
    kind: Kind,
    fields: Vec<Field>,
    pid: Field,
}

impl Decoders {
    /// Enables every hook that this kernel has and that `scope` needs.
    ///
    /// Errors: `Unsupported` if the block layer's own events are missing; `Io`.
    pub fn enable(instance: &Instance, scope: &Scope) -> Result<Decoders> {
        let mut decoders = Decoders::default();
        for hook in HOOKS {
            let Some(filter) = scope.filter(hook.of) else {
                continue;
            };
            // The extent status tree says all that the mapping's exit says.
            if hook.kind == Kind::MapExit && decoders.has(Kind::Mapped) {
                continue;
            }
            let format = instance.format(hook.system, hook.name);
            let decoder = format.as_ref().and_then(|f| Decoder::new(hook, f));
            match (format, decoder) {
                (Some(format), Some(decoder)) => {
                    instance.enable(hook.system, hook.name, &filter)?;
                    decoders.add(format.id, decoder);
                }
                _ if matches!(hook.kind, Kind::Queue | Kind::Issue | Kind::Complete) => {
                    let event = format!("no {}:{} event as expected", hook.system, hook.name);
                    return Err(Error::unsupported("tracefs", &event));
                }
                _ => {}
            }
        }
        decoders.syscalls = decoders.has(Kind::SyscallEnter(SyncKind::Fsync));
        Ok(decoders)
    }

    fn has(&self, kind: Kind) -> bool {
        self.by_id.iter().flatten().any(|d| d.kind == kind)
    }

    fn add(&mut self, id: u16, decoder: Decoder) {
        let id = usize::from(id);
        if self.by_id.len() <= id {
            self.by_id.resize_with(id + 1, || None);
        }
        self.by_id[id] = Some(decoder);
    }

    /// The thread and what it did; `None` for a record that says nothing of use.
    pub fn decode(&self, record: &[u8]) -> Option<(u32, Seen)> {
        let id = u16::from_ne_bytes(*record.first_chunk()?);
        let decoder = self.by_id.get(usize::from(id))?.as_ref()?;
        let pid = decoder.pid.number(record)? as u32;
        Some((pid, decoder.decode(record)?))
    }
}

impl Decoder {
    fn new(hook: &Hook, format: &Format) -> Option<Decoder> {
        let fields: Option<Vec<_>> = hook.fields.iter().map(|f| format.field(f)).collect();
        let mut fields = fields?;
        if hook.kind == Kind::TaskRename {
            // A thread can rename another; kernels that cannot say so have no such field.
            fields.extend(format.field("pid"));
        }
        Some(Decoder {
            kind: hook.kind,
            fields,
            pid: format.field("common_pid")?,
        })
    }

    fn number(&self, field: usize, record: &[u8]) -> Option<u64> {
        self.fields.get(field)?.number(record)
    }

    fn decode(&self, record: &[u8]) -> Option<Seen> {
        let number = |field| self.number(field, record);
        Some(match self.kind {
            Kind::Queue => Seen::Block(Block::Queue(self.range(record)?)),
            Kind::Issue => Seen::Block(Block::Issue(self.range(record)?)),
            Kind::Requeue => Seen::Block(Block::Requeue(self.range(record)?)),
            Kind::Complete => Seen::Block(Block::Complete(self.range(record)?, number(3)? as i32)),
            Kind::Split => Seen::Block(Block::Split(number(0)?)),
            Kind::Merge => Seen::Block(Block::Merge),
            Kind::TaskNew => {
                let same_process = number(1)? & CLONE_THREAD != 0;
                let name = self.fields.get(2)?.text(record)?;
                Seen::Task(OfTask::New(number(0)? as u32, same_process, name))
            }
            Kind::TaskRename => {
                let name = self.fields.get(1)?.text(record)?;
                Seen::Task(OfTask::Renamed(number(2).map(|pid| pid as u32), name))
            }
            _ => return self.of_file(record).or_else(|| self.of_sync(record)),
        })
    }

    fn of_file(&self, record: &[u8]) -> Option<Seen> {
        let number = |field| self.number(field, record);
        Some(Seen::File(match self.kind {
            Kind::Mapped => {
                let written = number(4)? & WRITTEN_STATUS != 0;
                OfFile::Mapped(self.status_extent(record)?, written)
            }
            Kind::Looked if number(5)? != 0 => OfFile::Looked(self.status_extent(record)?),
            Kind::MapExit if (number(4)? as i32) > 0 => OfFile::Looked(self.extent(record)?),
            Kind::Freed => OfFile::Freed(number(0)?, number(1)?),
            Kind::Write => OfFile::Write(self.part(record)?),
            Kind::Folio => OfFile::Folio(number(0)?, number(1)?),
            Kind::InodeNew => OfFile::Born {
                inode: number(0)?,
                parent: number(1)?,
                mode: number(2)? as u16,
            },
            Kind::InodeFree => OfFile::Gone(number(0)?),
            _ => return None,
        }))
    }

    fn of_sync(&self, record: &[u8]) -> Option<Seen> {
        let number = |field| self.number(field, record);
        Some(Seen::Sync(match self.kind {
            Kind::FsyncEnter => OfSync::FsyncEnter {
                inode: number(0)?,
                datasync: number(1)? != 0,
            },
            Kind::FsyncExit => OfSync::FsyncExit(number(0)? as i64),
            Kind::SyscallEnter(kind) => OfSync::SyscallEnter(kind),
            Kind::SyscallExit => OfSync::SyscallExit(number(0)? as i64),
            Kind::SyncFs => OfSync::SyncFs,
            Kind::Writepages => OfSync::Writepages(number(0)?),
            Kind::CommitStart => OfSync::CommitStart(number(0)?),
            Kind::CommitEnd => OfSync::CommitEnd(number(0)?),
            Kind::Handle => OfSync::Handle(number(0)?),
            Kind::Marked => OfSync::Marked(number(0)?, number(1)?),
            Kind::UringFsync => OfSync::UringFsync,
            _ => return None,
        }))
    }

    fn part(&self, record: &[u8]) -> Option<Part> {
        Some(Part {
            inode: self.number(0, record)?,
            offset_bytes: self.number(1, record)?,
            bytes: self.number(2, record)?,
        })
    }

    fn range(&self, record: &[u8]) -> Option<Range> {
        let sectors = self.number(1, record)? as u32;
        let letters = self.fields.get(2)?.bytes(record)?;
        let (operation, flags) = rwbs::parse(letters, sectors);
        Some(Range {
            sector: self.number(0, record)?,
            bytes: sectors.saturating_mul(512),
            operation,
            flags,
        })
    }

    fn status_extent(&self, record: &[u8]) -> Option<Piece> {
        if self.number(4, record)? & MAPPED_STATUS == 0 {
            return None;
        }
        self.extent(record)
    }

    fn extent(&self, record: &[u8]) -> Option<Piece> {
        let piece = Piece {
            inode: self.number(0, record)?,
            file_block: self.number(1, record)?,
            fs_block: self.number(2, record)?,
            blocks: u32::try_from(self.number(3, record)?).ok()?,
        };
        (piece.fs_block != 0 && piece.blocks != 0 && piece.inode != 0).then_some(piece)
    }
}
