//! Synthetic traces, the same at every call, for tests, examples and benchmarks.
//!
//! The shape is that of SQLite on ext4 in ordered mode (ATC'13 figure 4): rollback-journal
//! transactions in the first half and WAL transactions in the second, each sync followed by a
//! commit of the filesystem's log, now and then a checkpoint, write-back of metadata in place,
//! and reads. Times and places are made up; what belongs to what is as the kernel does it.

use crate::class::{Class, Evidence, FileType};
use crate::event::Marker;
use crate::host::Host;
use crate::identity::FileKey;
use crate::lab::{self, Cell, Storage, Switches, Workload, WorkloadKind};
use crate::manifest::{
    Backend, Check, Clocks, Command, Counters, Device, Filesystem, Holds, Interrupt, LayoutRange,
    Manifest, MountPlace, SCHEMA_VERSION, State, Volume,
};
use crate::operation::{Counter, Flags, Operation};
use crate::sync::SyncKind;
use crate::table::{Commit, File, MarkerRow, Phase, ProcessRow, Request, Segment, Trace};

/// Sectors in a filesystem block of the synthetic device.
const BLOCK_SECTORS: u64 = 8;
/// Bytes in a filesystem block of the synthetic device.
const BLOCK_BYTES: u32 = 4096;
const START_NS: u64 = 8_000_000_000_000;

const DATABASE: u32 = 0;
const JOURNAL: u32 = 1;
const WAL: u32 = 2;
const PHOTO: u32 = 3;
const DIRECTORY: u32 = 4;

const APP: u32 = 0;
const JBD2: u32 = 1;
const KWORKER: u32 = 2;

const DATABASE_BLOCK: u64 = 34_816;
const JOURNAL_BLOCK: u64 = 33_024;
const WAL_BLOCK: u64 = 40_960;
const PHOTO_BLOCK: u64 = 98_304;
const LOG_BLOCK: u64 = 131_072;
const LOG_BLOCKS: u64 = 8_192;
const DIRECTORY_BLOCK: u64 = 9_260;
const INODE_TABLE_BLOCK: u64 = 1_070;

/// SQLite on ext4 with exactly `requests` requests.
pub fn sqlite_on_ext4(requests: usize) -> Trace {
    let mut builder = Builder::new(requests);
    builder.mark(Marker::CommandStart);
    builder.read(DATABASE, DATABASE_BLOCK, 1, FileType::SqliteDatabase);
    let steps = requests <= 400;
    let mut transaction = 0;
    while builder.trace.requests.len() < requests {
        if steps {
            builder.mark(Marker::Step(format!("insert {}", transaction + 1)));
        }
        if builder.trace.requests.len() * 2 < requests {
            builder.rollback_transaction();
        } else {
            builder.wal_transaction();
        }
        transaction += 1;
        if transaction % 7 == 0 {
            builder.background();
        }
    }
    builder.finish(requests)
}

/// A trace of 1.5 s without any I/O, on a device without a filesystem.
pub fn empty() -> Trace {
    let mut trace = Builder::new(0).finish(0);
    trace.manifest.filesystem = None;
    trace.manifest.end_mono_ns = Some(START_NS + 1_500_000_000);
    trace
}

/// What one request of the fixture is, before it gets its times.
struct Io {
    operation: Operation,
    flags: Flags,
    submitter: u32,
    sync: Option<u32>,
    block: u64,
    parts: Vec<Segment>,
}

/// A run of filesystem blocks with one owner.
fn part(blocks: u32, class: Class, evidence: Evidence) -> Segment {
    Segment::of(blocks * BLOCK_BYTES, class, evidence)
}

fn file_data(blocks: u32, file: u32, file_block: u64, cause: Option<u32>) -> Segment {
    Segment {
        file: Some(file),
        file_offset_bytes: Some(file_block * u64::from(BLOCK_BYTES)),
        dirtier: Some(APP),
        cause,
        ..part(blocks, Class::FileData, Evidence::PageCache)
    }
}

struct Builder {
    trace: Trace,
    now_ns: u64,
    random: u64,
    log_head: u64,
    wal_head: u64,
    commit: u64,
}

impl Builder {
    fn new(requests: usize) -> Builder {
        let mut trace = Trace {
            manifest: manifest(),
            requests: Vec::with_capacity(requests + 16),
            segments: Vec::with_capacity(requests * 2),
            files: Vec::new(),
            processes: Vec::new(),
            syncs: Vec::new(),
            commits: Vec::new(),
            markers: Vec::new(),
        };
        trace.files = files();
        trace.processes = processes();
        Builder {
            trace,
            now_ns: START_NS + 1_000_000,
            random: 0x2545_F491_4F6C_DD1D,
            log_head: 3,
            wal_head: 0,
            commit: 40,
        }
    }

    /// xorshift64: the same numbers on every machine.
    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn mark(&mut self, marker: Marker) {
        let mono_ns = self.now_ns;
        self.trace.markers.push(MarkerRow { mono_ns, marker });
    }

    fn push(&mut self, io: Io) {
        let wait_ns = 4_000 + self.random(9_000);
        let bytes: u32 = io.parts.iter().map(|part| part.bytes).sum();
        let segments = io.parts.len() as u16;
        let service_ns = match io.operation {
            Operation::Flush => 600_000 + self.random(900_000),
            _ => 60_000 + u64::from(bytes) * 4 + self.random(120_000),
        };
        let first_segment = self.trace.segments.len() as u32;
        let mut block = io.block;
        for part in io.parts {
            let sector = block * BLOCK_SECTORS;
            block += u64::from(part.bytes / BLOCK_BYTES);
            self.trace.segments.push(Segment {
                request: self.trace.requests.len() as u32,
                sector,
                ..part
            });
        }
        self.trace.requests.push(Request {
            queue_ns: self.now_ns,
            issue_ns: self.now_ns + wait_ns,
            complete_ns: Some(self.now_ns + wait_ns + service_ns),
            sector: if bytes == 0 {
                0
            } else {
                io.block * BLOCK_SECTORS
            },
            bytes,
            operation: io.operation,
            flags: io.flags,
            status: 0,
            bios: 1,
            submitter: Some(io.submitter),
            sync: io.sync,
            first_segment,
            segments,
            phase: Phase::Run,
            by_tracer: false,
            device: 0,
        });
        self.now_ns += wait_ns + service_ns;
    }

    fn read(&mut self, file: u32, block: u64, blocks: u32, file_type: FileType) {
        debug_assert_eq!(self.trace.files[file as usize].file_type, file_type);
        let part = Segment {
            dirtier: None,
            ..file_data(blocks, file, block - file_start(file), None)
        };
        self.push(Io {
            operation: Operation::Read,
            flags: Flags::READAHEAD,
            submitter: APP,
            sync: None,
            block,
            parts: vec![part],
        });
    }

    /// Runs `body` inside a sync call on `file`.
    fn sync(&mut self, kind: SyncKind, file: u32, body: impl FnOnce(&mut Builder, u32)) {
        let index = self.trace.syncs.len() as u32;
        self.trace.syncs.push(crate::table::Sync {
            enter_ns: self.now_ns,
            exit_ns: None,
            kind,
            process: Some(APP),
            file: Some(file),
            result: Some(0),
            commit: None,
            volume: None,
        });
        self.now_ns += 15_000;
        body(self, index);
        self.now_ns += 12_000;
        self.trace.syncs[index as usize].exit_ns = Some(self.now_ns);
        self.now_ns += 90_000 + self.random(400_000);
    }

    fn write_file(&mut self, file: u32, file_block: u64, blocks: u32, sync: u32) {
        self.push(Io {
            operation: Operation::Write,
            flags: Flags::SYNC,
            submitter: APP,
            sync: Some(sync),
            block: file_start(file) + file_block,
            parts: vec![file_data(blocks, file, file_block, Some(sync))],
        });
    }

    fn flush(&mut self, submitter: u32, sync: Option<u32>) {
        self.push(Io {
            operation: Operation::Flush,
            flags: Flags::SYNC,
            submitter,
            sync,
            block: 0,
            parts: Vec::new(),
        });
    }

    /// A jbd2 commit: descriptor and logged blocks, a flush, the commit block with FUA.
    fn commit(&mut self, sync: u32, homes: &[(u64, Class)]) {
        let id = self.commit;
        let start_ns = self.now_ns;
        let file = self.trace.syncs[sync as usize].file;
        let logged = |class, home: Option<(u64, Class)>| Segment {
            file,
            file_offset_bytes: file.map(|_| 0),
            dirtier: Some(APP),
            cause: Some(sync),
            commit: Some(id),
            home: home.map(|h| h.0),
            home_class: home.map(|h| h.1),
            volume: None,
            ..part(1, class, Evidence::LogBuffer)
        };
        let mut parts = vec![logged(Class::LogDescriptor, None)];
        parts.extend(homes.iter().map(|h| logged(Class::LoggedBlock, Some(*h))));
        if self.log_head + parts.len() as u64 + 1 >= LOG_BLOCKS {
            self.log_head = 1;
        }
        let block = LOG_BLOCK + self.log_head;
        self.log_head += parts.len() as u64 + 1;
        let commit_block = block + parts.len() as u64;
        self.push(Io {
            operation: Operation::Write,
            flags: Flags::SYNC.with(Flags::META),
            submitter: JBD2,
            sync: None,
            block,
            parts,
        });
        self.flush(JBD2, None);
        self.push(Io {
            operation: Operation::Write,
            flags: Flags::SYNC.with(Flags::META).with(Flags::FUA),
            submitter: JBD2,
            sync: None,
            block: commit_block,
            parts: vec![logged(Class::LogCommit, None)],
        });
        self.trace.syncs[sync as usize].commit = Some(id);
        self.trace.commits.push(Commit {
            id,
            start_ns,
            end_ns: Some(self.now_ns),
            cause: Some(sync),
            volume: None,
        });
        self.commit += 1;
    }

    fn rollback_transaction(&mut self) {
        self.sync(SyncKind::Fdatasync, JOURNAL, |builder, sync| {
            builder.write_file(JOURNAL, 0, 3, sync);
            builder.commit(
                sync,
                &[
                    (INODE_TABLE_BLOCK, Class::InodeTable),
                    (DIRECTORY_BLOCK, Class::Directory),
                    (1_040, Class::BlockBitmap),
                    (1_056, Class::InodeBitmap),
                ],
            );
        });
        self.sync(SyncKind::Fdatasync, DATABASE, |builder, sync| {
            let page = builder.random(1_900);
            builder.write_file(DATABASE, 0, 1, sync);
            builder.write_file(DATABASE, page, 1, sync);
            builder.commit(sync, &[(INODE_TABLE_BLOCK, Class::InodeTable)]);
        });
    }

    fn wal_transaction(&mut self) {
        self.sync(SyncKind::Fdatasync, WAL, |builder, sync| {
            let frames = 1 + builder.random(3) as u32;
            let at = builder.wal_head;
            builder.write_file(WAL, at, frames, sync);
            builder.wal_head += u64::from(frames);
            builder.commit(sync, &[(INODE_TABLE_BLOCK + 1, Class::InodeTable)]);
        });
        if self.wal_head > 1_000 {
            self.wal_head = 0;
            self.sync(SyncKind::Fdatasync, DATABASE, |builder, sync| {
                for _ in 0..40 {
                    let page = builder.random(1_900);
                    builder.write_file(DATABASE, page, 1, sync);
                }
                builder.flush(APP, Some(sync));
            });
        }
    }

    /// Write-back of metadata in place, a photo being saved, and a read.
    fn background(&mut self) {
        for (block, class) in [
            (1_040, Class::BlockBitmap),
            (INODE_TABLE_BLOCK, Class::InodeTable),
            (DIRECTORY_BLOCK, Class::Directory),
        ] {
            self.push(Io {
                operation: Operation::Write,
                flags: Flags::META.with(Flags::BACKGROUND),
                submitter: KWORKER,
                sync: None,
                block,
                parts: vec![Segment {
                    dirtier: Some(APP),
                    ..part(1, class, Evidence::LayoutRange)
                }],
            });
        }
        let at = self.random(4_000);
        self.push(Io {
            operation: Operation::Write,
            flags: Flags::BACKGROUND,
            submitter: KWORKER,
            sync: None,
            block: PHOTO_BLOCK + at,
            parts: vec![file_data(64, PHOTO, at, None)],
        });
        let page = self.random(1_900);
        self.read(DATABASE, DATABASE_BLOCK + page, 4, FileType::SqliteDatabase);
        self.now_ns += 20_000_000;
    }

    fn finish(mut self, requests: usize) -> Trace {
        self.mark(Marker::CommandEnd);
        self.trace.requests.truncate(requests);
        let kept = self.trace.requests.last().map_or(0, |last| {
            last.first_segment as usize + usize::from(last.segments)
        });
        self.trace.segments.truncate(kept);
        let counters = count(&self.trace.requests);
        self.trace.manifest.check = Check {
            device: Some(counters),
            queued: counters,
            issued: counters,
            completed: counters,
            ..Check::default()
        };
        self.trace
    }
}

/// The device's counters, had it served exactly `requests`.
fn count(requests: &[Request]) -> Counters {
    let mut counters = Counters::default();
    for request in requests {
        let group = match request.operation.counter() {
            Counter::Read => &mut counters.read,
            Counter::Write => &mut counters.write,
            Counter::Discard => &mut counters.discard,
            Counter::Flush => &mut counters.flush,
            Counter::None => continue,
        };
        group.ios += 1;
        group.bytes += u64::from(request.bytes);
    }
    counters
}

fn file_start(file: u32) -> u64 {
    match file {
        DATABASE => DATABASE_BLOCK,
        JOURNAL => JOURNAL_BLOCK,
        WAL => WAL_BLOCK,
        PHOTO => PHOTO_BLOCK,
        _ => DIRECTORY_BLOCK,
    }
}

fn files() -> Vec<File> {
    let rows = [
        (DATABASE, "/app/app.db", FileType::SqliteDatabase),
        (JOURNAL, "/app/app.db-journal", FileType::SqliteJournal),
        (WAL, "/app/app.db-wal", FileType::SqliteWal),
        (PHOTO, "/media/IMG_0042.jpg", FileType::Multimedia),
        (DIRECTORY, "/app", FileType::Directory),
    ];
    let file = |(index, path, file_type): (u32, &str, FileType)| File {
        key: FileKey::plain(12 + u64::from(index), 0x51C0_0000 + index),
        path: Some(path.to_owned()),
        mode: 0o100_644,
        file_type,
        birth_wall_ns: None,
        deleted_ns: None,
        volume: None,
        first_path: None,
    };
    rows.into_iter().map(file).collect()
}

fn processes() -> Vec<ProcessRow> {
    let rows = [
        (4_101, "app", false),
        (812, "jbd2/loop0-8", true),
        (96, "kworker/u4:1", true),
    ];
    let process = |(pid, comm, kernel): (u32, &str, bool)| ProcessRow {
        mono_ns: START_NS,
        pid,
        tgid: pid,
        parent_tgid: if kernel { 2 } else { 4_000 },
        comm: comm.to_owned(),
        kernel,
        command_line: (!kernel).then(|| "app --inserts".to_owned()),
        cgroup_id: Some(if kernel { 1 } else { 4_711 }),
        cgroup: Some(
            if kernel {
                "/"
            } else {
                "/system.slice/app.service"
            }
            .to_owned(),
        ),
    };
    rows.into_iter().map(process).collect()
}

fn layout() -> Vec<LayoutRange> {
    [
        (0, 1, Class::Superblock),
        (1, 1, Class::GroupDescriptor),
        (1_040, 16, Class::BlockBitmap),
        (1_056, 14, Class::InodeBitmap),
        (INODE_TABLE_BLOCK, 8_176, Class::InodeTable),
        (LOG_BLOCK, LOG_BLOCKS, Class::LogOther),
    ]
    .into_iter()
    .map(|(first_block, blocks, class)| LayoutRange {
        first_block,
        blocks,
        class,
    })
    .collect()
}

/// A partition of a whole disk that was traced.
pub fn volume(name: &str, filesystem: Option<Filesystem>) -> Volume {
    Volume {
        name: name.to_owned(),
        title: None,
        device: 0,
        start_sector: 0,
        sectors: 8,
        holds: Holds::Filesystem,
        part_of: None,
        filesystem,
    }
}

pub fn manifest() -> Manifest {
    Manifest {
        schema_version: SCHEMA_VERSION,
        iostep_version: env!("CARGO_PKG_VERSION").to_owned(),
        state: State::Complete,
        backend: Backend::Bpf,
        host: Host {
            kernel: "6.12.57-synthetic".to_owned(),
            machine: "x86_64".to_owned(),
            ..Host::default()
        },
        disks: Vec::new(),
        devices: Vec::new(),
        device: Device {
            name: "loop0".to_owned(),
            major: 7,
            minor: 0,
            part_of: None,
            start_sector: 0,
            sectors: 2_097_152,
            logical_block_bytes: Some(512),
            physical_block_bytes: Some(512),
            volatile_write_cache: Some(true),
            fua: Some(false),
            scheduler: Some("none".to_owned()),
            rotational: Some(false),
        },
        filesystem: Some(Filesystem {
            kind: "ext4".to_owned(),
            mount_point: "/mnt/app".to_owned(),
            mounts: vec![MountPlace {
                root: "/".to_owned(),
                point: "/mnt/app".to_owned(),
            }],
            options: "rw,relatime,data=ordered".to_owned(),
            block_bytes: BLOCK_BYTES,
            size_bytes: None,
            layout: layout(),
        }),
        volumes: Vec::new(),
        clocks: Clocks {
            mono_ns: START_NS,
            wall_ns: 1_700_000_000_000_000_000,
        },
        end_mono_ns: None,
        command: Some(Command {
            argv: vec!["app".to_owned(), "--inserts".to_owned()],
            pid: 4_101,
            exit_status: Some(0),
            signal: None,
        }),
        tracer_tgid: 4_000,
        check: Check::default(),
        interrupts: vec![
            Interrupt {
                label: "24".to_owned(),
                description: "PCI-MSI virtio0-requests".to_owned(),
                count: 1_200,
                of_device: true,
            },
            Interrupt {
                label: "LOC".to_owned(),
                description: "Local timer interrupts".to_owned(),
                count: 5_400,
                of_device: false,
            },
        ],
    }
}

/// A cell of a lab that runs a workload once, on 1 GiB of a filesystem without any switch.
pub fn cell(filesystem: lab::Filesystem, kind: WorkloadKind, arguments: &[&str]) -> Cell {
    Cell {
        key: "0123456789abcdef".to_owned(),
        block: "cells-1".to_owned(),
        axes: vec![("filesystem".to_owned(), filesystem.name().to_owned())],
        storage: Storage {
            filesystem,
            external_journal: false,
            mkfs_options: Vec::new(),
            mount_options: String::new(),
            device_bytes: 1 << 30,
        },
        switches: Switches::default(),
        workload: Workload {
            kind,
            arguments: arguments
                .iter()
                .map(|&argument| argument.to_owned())
                .collect(),
        },
        trace: false,
        pattern: 0,
        cpu_load: 0,
        environment: Vec::new(),
        turns: String::new(),
        repeat: 1,
    }
}
