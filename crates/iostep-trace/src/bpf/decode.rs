//! Wire records to events.

use std::collections::HashMap;

use iostep_model::event::{
    Cgroup, Completion, Content, Dirtier, Event, Fact, File, Io, NO_VOLUME, Process, Queue, Remap,
    Segment, SyncEnter, Transfer,
};
use iostep_model::printable::name_text;
use iostep_model::{FileKey, Operation, SyncKey, SyncKind};

use super::flags::KernelFlags;
use super::programs::types::{
    self, wire_content as WireContent, wire_device as WireDevice,
    wire_segment_flags as SegmentFlag, wire_sync_flags as SyncFlag, wire_sync_via as SyncVia,
    wire_transfer_flags as TransferFlag, wire_type as RecordType,
};
use crate::error::{Error, Result};
use crate::fault::{Fault, FaultKind, Point};
use crate::ledger::{Extent, Ledger};

/// What `O_SYNC` has beyond `O_DSYNC`.
const O_SYNC_ONLY: u32 = (libc::O_SYNC & !libc::O_DSYNC) as u32;

/// A record type generated from wire.h.
///
/// # Safety
/// Every bit pattern must be a value, and there must be no padding.
pub(super) unsafe trait Record: Copy {}

macro_rules! records {
    ($($name:ident),*) => {
        // SAFETY: generated from wire.h, whose records hold only integers and byte arrays.
        $(unsafe impl Record for types::$name {})*
    };
}

records!(
    wire_queue,
    wire_segment,
    wire_transfer,
    wire_remap,
    wire_flush_end,
    wire_older,
    wire_sync_enter,
    wire_sync_exit,
    wire_sums,
    wire_sync_needs,
    wire_commit,
    wire_process,
    wire_cgroup,
    wire_file,
    wire_file_deleted,
    wire_pending
);

pub(super) fn read<T: Record>(bytes: &[u8]) -> Result<T> {
    if bytes.len() < size_of::<T>() {
        return Err(Error::Kernel {
            what: "deliver a whole record".into(),
            reason: format!("{} bytes, expected {}", bytes.len(), size_of::<T>()),
        });
    }
    // SAFETY: the length was checked, the read needs no alignment, and any bits are a value.
    Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// True if a flag of wire.h is set.
fn has(flags: impl Into<u32>, flag: u32) -> bool {
    flags.into() & flag != 0
}

/// Translates records; remembers bios that came in several, and those that wait for a request.
#[derive(Debug)]
pub(super) struct Decoder {
    flags: KernelFlags,
    unfinished: HashMap<(u32, u64), Queue>,
    /// Which devices have requests, by their index.
    disks: Vec<bool>,
    /// By the kernel's number for what a filesystem lies on; none where there is only one.
    volumes: HashMap<u32, u16>,
    /// `None` for a device that has bios only.
    ledger: Option<Ledger>,
    /// A record of the trace to lose on purpose: of this type, and which.
    lose: Option<(u16, u64)>,
    has_begun: bool,
}

impl Decoder {
    /// A decoder for a kernel with these flag bits, and for devices that are disks or not.
    pub(super) fn new(
        flags: KernelFlags,
        (disks, volumes): (Vec<bool>, HashMap<u32, u16>),
        ledger: Option<Ledger>,
        fault: Option<Fault>,
    ) -> Decoder {
        let lose = fault.filter(|fault| fault.kind == FaultKind::Lose);
        Decoder {
            flags,
            unfinished: HashMap::new(),
            disks,
            volumes,
            ledger,
            lose: lose.map(|fault| (record_of(fault.point), fault.number)),
            has_begun: false,
        }
    }

    /// The trace begins.
    pub(super) fn begin(&mut self, begun_ns: u64) {
        self.has_begun = true;
        if let Some(ledger) = &mut self.ledger {
            ledger.begin(begun_ns);
        }
    }

    /// What was queued and not issued, and what the events add up to.
    pub(super) fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// So many bios that only flush came back unseen, of those that [`Ledger::flushes_over`] counts.
    pub(super) fn forget_flushes(&mut self, count: usize, before_ns: u64) {
        if let Some(ledger) = &mut self.ledger {
            ledger.forget_flushes(count, before_ns);
        }
    }

    /// True for the record that is to be lost.
    fn is_lost(&mut self, kind: u16) -> bool {
        match &mut self.lose {
            Some((lost, left)) if self.has_begun && *lost == kind && *left > 0 => {
                *left -= 1;
                *left == 0
            }
            _ => false,
        }
    }

    /// Hands the event of one record to `emit`, or keeps the record until the rest has come.
    pub(super) fn decode(
        &mut self,
        bytes: &[u8],
        emit: &mut impl FnMut(Event) -> Result<()>,
    ) -> Result<()> {
        let kind = bytes
            .first_chunk()
            .map_or(0, |first: &[u8; 2]| u16::from_ne_bytes(*first));
        if self.is_lost(kind) {
            return Ok(());
        }
        match RecordType(kind.into()) {
            RecordType::WIRE_QUEUE => {
                let head: types::wire_queue = read(bytes)?;
                let Some(queue) = self.queue(&head, bytes)? else {
                    return Ok(());
                };
                let place = (head.device as u8, queue.operation, queue.sector);
                self.arrive(place, queue.bytes, queue.mono_ns, head.flush_bio);
                emit(Event::on(place.0, Io::Queue(queue)))
            }
            RecordType::WIRE_ISSUE
            | RecordType::WIRE_REQUEUE
            | RecordType::WIRE_COMPLETE
            | RecordType::WIRE_BIO_END => {
                let wire: types::wire_transfer = read(bytes)?;
                self.enter(kind, &wire);
                let transfer = self.transfer(&wire);
                let io = match RecordType(kind.into()) {
                    RecordType::WIRE_ISSUE => Io::Issue(transfer),
                    RecordType::WIRE_REQUEUE => Io::Requeue(transfer),
                    RecordType::WIRE_COMPLETE => completion(transfer, &wire),
                    _ => return Ok(()),
                };
                emit(Event::on(wire.device as u8, io))
            }
            RecordType::WIRE_REMAP => {
                let wire: types::wire_remap = read(bytes)?;
                let remap = self.remap(&wire);
                let place = (remap.to, remap.operation, remap.to_sector);
                self.arrive(place, remap.bytes, remap.mono_ns, wire.flush_bio);
                emit(Event::Remap(remap))
            }
            RecordType::WIRE_OLDER => {
                self.arrive_late(&read(bytes)?);
                Ok(())
            }
            RecordType::WIRE_FLUSH_END => {
                self.end_flush(&read(bytes)?);
                Ok(())
            }
            RecordType::WIRE_SPLIT => emit(split(&read(bytes)?)),
            RecordType::WIRE_SYNC_EXIT => emit(sync_exit(&read(bytes)?)),
            RecordType::WIRE_PROCESS => emit(process(&read(bytes)?)),
            RecordType::WIRE_CGROUP => emit(cgroup(bytes)?),
            _ => emit(self.fact(kind, bytes)?),
        }
    }

    /// The event of a record about a filesystem.
    fn fact(&self, kind: u16, bytes: &[u8]) -> Result<Event> {
        let (filesystem, fact) = match RecordType(kind.into()) {
            RecordType::WIRE_SYNC_ENTER => {
                let enter: types::wire_sync_enter = read(bytes)?;
                (enter.file.filesystem, sync_enter(&enter))
            }
            RecordType::WIRE_SYNC_NEEDS => {
                let needs: types::wire_sync_needs = read(bytes)?;
                (needs.filesystem, sync_needs(&needs))
            }
            RecordType::WIRE_COMMIT_START | RecordType::WIRE_COMMIT_END => {
                let wire: types::wire_commit = read(bytes)?;
                (wire.filesystem, commit(&wire))
            }
            RecordType::WIRE_FILE => {
                let wire: types::wire_file = read(bytes)?;
                (wire.file.filesystem, file(&wire, bytes))
            }
            RecordType::WIRE_FILE_DELETED => {
                let deleted: types::wire_file_deleted = read(bytes)?;
                let fact = Fact::FileDeleted {
                    mono_ns: deleted.mono_ns,
                    file: key(&deleted.file),
                };
                (deleted.file.filesystem, fact)
            }
            RecordType(other) => {
                return Err(Error::Kernel {
                    what: "deliver a known record".into(),
                    reason: format!("record type {other}"),
                });
            }
        };
        Ok(self.of(filesystem, fact))
    }

    /// A fact about the filesystem on a device, by the kernel's number for it; 0 for all of them, or
    /// for the only one.
    fn of(&self, filesystem: u32, fact: Fact) -> Event {
        let volume = match filesystem {
            0 => 0,
            number => self.volumes.get(&number).copied().unwrap_or(NO_VOLUME),
        };
        Event::of(volume, fact)
    }

    fn queue(&mut self, head: &types::wire_queue, bytes: &[u8]) -> Result<Option<Queue>> {
        let operation = Operation::from_kernel(head.opf as u8);
        let identity = (head.pid, head.mono_ns);
        let mut queue = match self.unfinished.remove(&identity) {
            Some(queue) if head.continues_at_bytes > 0 => queue,
            _ => Queue {
                mono_ns: head.mono_ns,
                sector: head.sector,
                bytes: head.bytes,
                operation,
                flags: self.flags.translate(head.opf),
                pid: head.pid,
                tgid: head.tgid,
                sync: (head.sync_enter_ns > 0).then_some(SyncKey {
                    pid: head.pid,
                    enter_ns: head.sync_enter_ns,
                }),
                segments: Vec::with_capacity(usize::from(head.segments)),
            },
        };
        let mut rest = &bytes[size_of::<types::wire_queue>()..];
        for _ in 0..head.segments {
            queue.segments.push(segment_of(&read(rest)?));
            rest = &rest[size_of::<types::wire_segment>()..];
        }
        let known: u64 = queue.segments.iter().map(|s| u64::from(s.bytes)).sum();
        let missing = u64::from(queue.bytes).saturating_sub(known);
        if missing > 0 && head.segments == 64 {
            self.unfinished.insert(identity, queue);
            return Ok(None);
        }
        if missing > 0 && !queue.segments.is_empty() {
            queue.segments.push(Segment {
                bytes: missing as u32,
                content: Content::Unknown,
                dirtier: None,
            });
        }
        Ok(Some(queue))
    }

    /// A bio arrives at a device: at a disk it waits for its requests. `flush_bio` is the address
    /// of one that only flushes, or 0.
    fn arrive(&mut self, place: (u8, Operation, u64), bytes: u32, mono_ns: u64, flush_bio: u64) {
        let is_disk = self.disks.get(usize::from(place.0)) == Some(&true);
        let Some(ledger) = self.ledger.as_mut().filter(|_| is_disk) else {
            return;
        };
        ledger.queue(Extent::new(place, bytes), mono_ns);
        if flush_bio != 0 {
            ledger.queue_flush((place.0, flush_bio), mono_ns);
        }
    }

    /// A bio from before the programs: nothing is known of it but where it goes.
    fn arrive_late(&mut self, wire: &types::wire_older) {
        if let Some(ledger) = &mut self.ledger {
            let operation = Operation::from_kernel(wire.opf as u8);
            let extent = Extent::new((wire.device as u8, operation, wire.sector), wire.bytes);
            let flush_bio = (wire.flush_bio != 0).then_some((wire.device as u8, wire.flush_bio));
            ledger.arrive_late(extent, flush_bio, wire.mono_ns);
        }
    }

    fn end_flush(&mut self, wire: &types::wire_flush_end) {
        if let Some(ledger) = &mut self.ledger {
            let bio = (wire.device as u8, wire.bio);
            ledger.end_flush(bio, wire.is_expected != 0, iostep_model::clock::mono_ns());
        }
    }

    /// Enters a record of a request, or of a bio without one, into the ledger.
    fn enter(&mut self, kind: u16, wire: &types::wire_transfer) {
        let Some(ledger) = &mut self.ledger else {
            return;
        };
        let operation = Operation::from_kernel(wire.opf as u8);
        let extent = Extent::new((wire.device as u8, operation, wire.sector), wire.bytes);
        let has = |flag: TransferFlag| has(wire.flags, flag.0);
        match RecordType(kind.into()) {
            RecordType::WIRE_ISSUE => ledger.issue(
                extent,
                wire.mono_ns,
                has(TransferFlag::TRANSFER_BEGAN_BEFORE),
            ),
            RecordType::WIRE_REQUEUE => ledger.requeue(
                extent,
                wire.mono_ns,
                has(TransferFlag::TRANSFER_BEGAN_BEFORE),
            ),
            RecordType::WIRE_COMPLETE => ledger.complete(extent, has(TransferFlag::TRANSFER_WHOLE)),
            _ => ledger.end(extent),
        }
    }

    fn transfer(&self, transfer: &types::wire_transfer) -> Transfer {
        Transfer {
            mono_ns: transfer.mono_ns,
            sector: transfer.sector,
            bytes: transfer.bytes,
            operation: Operation::from_kernel(transfer.opf as u8),
            flags: self.flags.translate(transfer.opf),
        }
    }

    fn remap(&self, remap: &types::wire_remap) -> Remap {
        Remap {
            mono_ns: remap.mono_ns,
            from: (u32::from(remap.from) != WireDevice::NO_DEVICE.0).then_some(remap.from),
            from_sector: remap.from_sector,
            to: remap.to,
            to_sector: remap.to_sector,
            bytes: remap.bytes,
            operation: Operation::from_kernel(remap.opf as u8),
            flags: self.flags.translate(remap.opf),
        }
    }
}

fn completion(transfer: Transfer, record: &types::wire_transfer) -> Io {
    Io::Complete(Completion {
        transfer,
        status: record.status,
        in_flush_sequence: has(record.flags, TransferFlag::TRANSFER_IN_FLUSH_SEQUENCE.0),
    })
}

fn record_of(point: Point) -> u16 {
    let record = match point {
        Point::Queue => RecordType::WIRE_QUEUE,
        Point::Issue => RecordType::WIRE_ISSUE,
        Point::Complete => RecordType::WIRE_COMPLETE,
    };
    record.0 as u16
}

/// A request that went to the driver and was not seen to come back: its device, when it went there, and
/// its end, as if it came back now.
pub(super) fn pending(bytes: &[u8], flags: KernelFlags) -> Option<(u8, u64, Completion)> {
    let slot: types::wire_pending = read(bytes).ok()?;
    let transfer = || Transfer {
        mono_ns: iostep_model::clock::mono_ns(),
        sector: slot.sector,
        bytes: slot.bytes,
        operation: Operation::from_kernel(slot.opf as u8),
        flags: flags.translate(slot.opf),
    };
    (slot.valid != 0).then(|| {
        let completion = Completion {
            transfer: transfer(),
            status: 0,
            in_flush_sequence: slot.in_flush_sequence != 0 && slot.bytes > 0,
        };
        (slot.device as u8, slot.issue_ns, completion)
    })
}

fn key(key: &types::wire_file_key) -> FileKey {
    FileKey {
        subvolume: key.subvolume,
        inode: key.inode,
        generation: key.generation,
    }
}

fn segment_of(wire: &types::wire_segment) -> Segment {
    Segment {
        bytes: wire.bytes,
        content: content(wire),
        dirtier: (wire.dirtier_pid > 0).then_some(Dirtier {
            pid: wire.dirtier_pid,
            tgid: wire.dirtier_tgid,
            by_inode: has(wire.flags, SegmentFlag::SEGMENT_DIRTIER_BY_INODE.0),
        }),
    }
}

fn content(wire: &types::wire_segment) -> Content {
    match WireContent(wire.content.into()) {
        WireContent::CONTENT_FILE | WireContent::CONTENT_FILE_DIRECT => Content::File {
            file: FileKey {
                subvolume: wire.extra,
                inode: wire.inode,
                generation: wire.generation,
            },
            offset_bytes: wire.offset,
            direct: wire.content == WireContent::CONTENT_FILE_DIRECT.0 as u8,
        },
        WireContent::CONTENT_BUFFER => Content::Buffer { head: wire.head },
        WireContent::CONTENT_JOURNAL_BLOCK | WireContent::CONTENT_FAST_COMMIT => {
            journal_block(wire)
        }
        WireContent::CONTENT_XFS_BUFFER => Content::XfsBuffer {
            structure: text(&wire.head),
        },
        WireContent::CONTENT_XFS_LOG => Content::XfsLog {
            sequence: (has(wire.flags, SegmentFlag::SEGMENT_HAS_COMMIT.0)).then_some(wire.extra),
        },
        WireContent::CONTENT_BTRFS_NODE => Content::BtrfsNode {
            bytenr: wire.offset,
            owner: wire.extra,
            unused: 0,
        },
        WireContent::CONTENT_BTRFS_SUPERBLOCK => Content::BtrfsSuperblock,
        WireContent::CONTENT_DEVICE_DIRECT => Content::DeviceDirect,
        WireContent::CONTENT_F2FS_NODE => Content::F2fsNode {
            // Node ids are 32 bits wide (`nid_t`, fs/f2fs/f2fs.h).
            node: wire.offset as u32,
            inode: (wire.inode != 0).then_some(wire.inode),
            generation: (has(wire.flags, SegmentFlag::SEGMENT_HAS_GENERATION.0))
                .then_some(wire.generation),
        },
        WireContent::CONTENT_F2FS_META => Content::F2fsMeta,
        WireContent::CONTENT_BLOCK_MAP => Content::BlockMap {
            file: FileKey::plain(wire.inode, wire.generation),
        },
        _ => Content::Unknown,
    }
}

/// Of a page that belongs to no file any more.
const NO_FILE: FileKey = FileKey::plain(0, 0);

fn journal_block(wire: &types::wire_segment) -> Content {
    let has = |flag: SegmentFlag| has(wire.flags, flag.0);
    let home_file = has(SegmentFlag::SEGMENT_HOME_IS_FILE).then(|| {
        let file = FileKey::plain(wire.inode, wire.generation);
        let offset = *wire.head.first_chunk().expect("16 bytes hold 8");
        (file, u64::from_ne_bytes(offset))
    });
    let cut_off = has(SegmentFlag::SEGMENT_HOME_IS_CUT_OFF).then_some((NO_FILE, 0));
    let head_is_offset = home_file.is_some();
    let home_file = home_file.or(cut_off);
    Content::JournalBlock {
        head: if head_is_offset { [0; 16] } else { wire.head },
        home_fs_block: has(SegmentFlag::SEGMENT_HAS_HOME).then_some(wire.offset),
        home_file,
        commit: has(SegmentFlag::SEGMENT_HAS_COMMIT).then_some(wire.extra),
        fast: wire.content == WireContent::CONTENT_FAST_COMMIT.0 as u8,
    }
}

fn sync_kind(enter: &types::wire_sync_enter) -> SyncKind {
    let written =
        if enter.file_flags & O_SYNC_ONLY != 0 || enter.write_flags & libc::RWF_SYNC as u32 != 0 {
            SyncKind::OSync
        } else {
            SyncKind::ODsync
        };
    match (SyncVia(enter.via.into()), i64::from(enter.syscall)) {
        (SyncVia::SYNC_VIA_DIRECT_WRITE, _) if !has(enter.flags, SyncFlag::SYNC_DATA_ONLY.0) => {
            SyncKind::OSync
        }
        (SyncVia::SYNC_VIA_DIRECT_WRITE, _) => SyncKind::ODsync,
        (SyncVia::SYNC_VIA_URING, _) => SyncKind::UringFsync,
        (_, libc::SYS_fsync) => SyncKind::Fsync,
        (_, libc::SYS_fdatasync) => SyncKind::Fdatasync,
        (_, libc::SYS_msync) => SyncKind::Msync,
        (SyncVia::SYNC_VIA_SYSCALL, libc::SYS_sync_file_range) => SyncKind::SyncFileRange,
        (SyncVia::SYNC_VIA_SYSCALL, libc::SYS_ioctl) => SyncKind::AtomicCommit,
        (_, libc::SYS_syncfs) => SyncKind::Syncfs,
        (_, libc::SYS_sync) => SyncKind::Sync,
        (
            _,
            libc::SYS_write
            | libc::SYS_pwrite64
            | libc::SYS_writev
            | libc::SYS_pwritev
            | libc::SYS_pwritev2,
        ) => written,
        _ => SyncKind::Other,
    }
}

fn split(wire: &types::wire_transfer) -> Event {
    Event::Split {
        mono_ns: wire.mono_ns,
        sector: wire.sector,
    }
}

fn sync_enter(enter: &types::wire_sync_enter) -> Fact {
    Fact::SyncEnter(SyncEnter {
        sync: SyncKey {
            pid: enter.pid,
            enter_ns: enter.mono_ns,
        },
        tgid: enter.tgid,
        kind: sync_kind(enter),
        file: has(enter.flags, SyncFlag::SYNC_HAS_FILE.0).then(|| key(&enter.file)),
    })
}

fn sync_exit(exit: &types::wire_sync_exit) -> Event {
    Event::SyncExit {
        mono_ns: exit.mono_ns,
        sync: SyncKey {
            pid: exit.pid,
            enter_ns: exit.enter_ns,
        },
        result: has(exit.flags, SyncFlag::SYNC_HAS_RESULT.0).then_some(exit.result),
    }
}

fn sync_needs(needs: &types::wire_sync_needs) -> Fact {
    Fact::SyncNeeds {
        mono_ns: needs.mono_ns,
        sync: SyncKey {
            pid: needs.pid,
            enter_ns: needs.enter_ns,
        },
        commit: needs.commit,
    }
}

fn commit(commit: &types::wire_commit) -> Fact {
    let (mono_ns, id) = (commit.mono_ns, commit.commit);
    if RecordType(commit.r#type.into()) == RecordType::WIRE_COMMIT_START {
        Fact::CommitStart {
            mono_ns,
            commit: id,
        }
    } else {
        Fact::CommitEnd {
            mono_ns,
            commit: id,
        }
    }
}

fn process(process: &types::wire_process) -> Event {
    let kernel = process.kernel != 0;
    Event::Process(Process {
        mono_ns: process.mono_ns,
        pid: process.pid,
        tgid: process.tgid,
        parent_tgid: process.parent_tgid,
        comm: text(&process.comm),
        kernel,
        command_line: if kernel {
            None
        } else {
            command_line(process.tgid)
        },
    })
}

/// Best effort: the process may be gone, or be another one by now.
fn command_line(tgid: u32) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{tgid}/cmdline")).ok()?;
    let words: Vec<String> = bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(name_text)
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn cgroup(bytes: &[u8]) -> Result<Event> {
    let cgroup: types::wire_cgroup = read(bytes)?;
    let names = names_after::<types::wire_cgroup>(bytes, cgroup.path_bytes);
    Ok(Event::Cgroup(Cgroup {
        mono_ns: cgroup.mono_ns,
        pid: cgroup.pid,
        id: Some(cgroup.cgroup),
        path: path(names, cgroup.path_is_whole != 0),
    }))
}

/// The names behind a record.
fn names_after<T: Record>(bytes: &[u8], names: u32) -> &[u8] {
    let rest = &bytes[size_of::<T>()..];
    rest.get(..names as usize).unwrap_or(rest)
}

fn file(file: &types::wire_file, bytes: &[u8]) -> Fact {
    let names = names_after::<types::wire_file>(bytes, file.path_bytes);
    Fact::File(File {
        mono_ns: file.mono_ns,
        file: key(&file.file),
        mode: file.mode,
        path: path(names, file.path_is_whole != 0),
        unlinked: file.unlinked != 0,
        birth_wall_ns: (file.birth_wall_s != 0).then(|| {
            file.birth_wall_s
                .saturating_mul(1_000_000_000)
                .saturating_add(i64::from(file.birth_wall_ns))
        }),
    })
}

/// Components from the file upwards to a path from the root downwards. A path that was too deep
/// begins with `/...`.
fn path(names: &[u8], whole: bool) -> Option<String> {
    let mut path = String::new();
    if !whole {
        path.push_str("/...");
    }
    let names: Vec<&[u8]> = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() {
        return whole.then(|| "/".to_owned());
    }
    for name in names.into_iter().rev() {
        path.push('/');
        path.push_str(&name_text(name));
    }
    Some(path)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    name_text(&bytes[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_turned_round() {
        assert_eq!(path(b"c\0b\0a\0", true).as_deref(), Some("/a/b/c"));
        assert_eq!(path(b"c\0b\0", false).as_deref(), Some("/.../b/c"));
        assert_eq!(path(b"", true).as_deref(), Some("/"));
        assert_eq!(path(b"", false), None);
    }

    #[test]
    fn names_that_are_no_text_stay_apart() {
        let names = [&b"n\xff\0a\0"[..], b"n\xfe\0a\0", b"n\\xff\0a\0"];
        let paths = names.map(|names| path(names, true).expect("a path"));
        assert_eq!(paths, ["/a/n\\xff", "/a/n\\xfe", "/a/n\\\\xff"]);
        assert_eq!(text(b"app\xff\0\0"), "app\\xff");
    }

    #[test]
    fn half_a_record_is_an_error() {
        let error = read::<types::wire_commit>(&[9, 0, 0]).expect_err("too short");
        assert!(error.to_string().contains("3 bytes"));
    }
}
