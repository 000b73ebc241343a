//! Two ext4 on one disk, whose inodes and commits have the same numbers.

use iostep_model::event::{self, Content, Event, Fact, File, Queue, SyncEnter, Transfer};
use iostep_model::manifest;
use iostep_model::table::Trace;
use iostep_model::{FileKey, Flags, Operation, SyncKey, SyncKind, fixture};

use super::*;
use crate::attribute::assemble;

const FILE: FileKey = FileKey::plain(12, 7);
const COMMIT: u64 = 5;
/// First sectors of the volumes, of 4096 sectors each.
const STARTS: [u64; 2] = [2048, 10_000];

fn manifest() -> Manifest {
    let volume = |start_sector| manifest::Volume {
        name: format!("sda{start_sector}"),
        title: None,
        device: 0,
        start_sector,
        sectors: 4096,
        holds: Holds::Filesystem,
        part_of: None,
        filesystem: Some(Filesystem {
            kind: "ext4".into(),
            block_bytes: 4096,
            // 96 sectors less than there is room for.
            size_bytes: Some(4000 * SECTOR_BYTES),
            layout: vec![LayoutRange {
                first_block: 0,
                blocks: 1,
                class: Class::Superblock,
            }],
            ..Filesystem::default()
        }),
    };
    Manifest {
        filesystem: None,
        volumes: STARTS.map(volume).to_vec(),
        ..fixture::empty().manifest
    }
}

fn transfer(mono_ns: u64, sector: u64, operation: Operation, bytes: u32) -> Transfer {
    Transfer {
        mono_ns,
        sector,
        bytes,
        operation,
        flags: Flags::default(),
    }
}

/// A bio of one part, and its request.
fn write(mono_ns: u64, sector: u64, content: Content, sync: Option<SyncKey>) -> [Event; 2] {
    let request = transfer(mono_ns + 1, sector, Operation::Write, 4096);
    let queue = Queue {
        mono_ns,
        sector,
        bytes: 4096,
        operation: Operation::Write,
        flags: Flags::default(),
        pid: 1,
        tgid: 1,
        sync,
        segments: vec![event::Segment {
            bytes: 4096,
            content,
            dirtier: None,
        }],
    };
    [Event::Queue(queue), Event::Issue(request)]
}

/// What a volume tells, from a time on: a file that is written and synced by its own thread.
fn life(volume: u16, mono_ns: u64) -> Vec<Event> {
    let start = STARTS[usize::from(volume)];
    let sync = SyncKey {
        pid: 10 + u32::from(volume),
        enter_ns: mono_ns + 1,
    };
    let file = Content::File {
        file: FILE,
        offset_bytes: 0,
        direct: false,
    };
    let log = Content::JournalBlock {
        head: [0; 16],
        home_fs_block: Some(0),
        home_file: None,
        commit: Some(COMMIT),
        fast: false,
    };
    let facts = [
        Fact::File(File {
            mono_ns,
            file: FILE,
            mode: 0o100_644,
            path: Some("/same".into()),
            unlinked: false,
            birth_wall_ns: None,
        }),
        Fact::SyncEnter(SyncEnter {
            sync,
            tgid: sync.pid,
            kind: SyncKind::Fsync,
            file: Some(FILE),
        }),
        Fact::SyncNeeds {
            mono_ns: mono_ns + 2,
            sync,
            commit: COMMIT,
        },
        Fact::CommitStart {
            mono_ns: mono_ns + 3,
            commit: COMMIT,
        },
    ];
    let mut events: Vec<Event> = facts.map(|fact| Event::of(volume, fact)).into();
    events.extend(write(mono_ns + 4, start + 800, file, Some(sync)));
    events.extend(write(mono_ns + 6, start + 1600, log, None));
    events
}

fn trace() -> Trace {
    // One after the other, as they come from one thread each at the same time.
    let (first, second) = (life(0, 100), life(1, 101));
    let events: Vec<Event> = first
        .into_iter()
        .zip(second)
        .flat_map(|(a, b)| [a, b])
        .collect();
    assemble(manifest(), &events)
}

#[test]
fn files_of_equal_numbers_on_two_filesystems_are_two() {
    let trace = trace();
    let names: Vec<String> = (0..2).map(|file| trace.file_name(file)).collect();
    assert_eq!(names, ["sda2048:/same", "sda10000:/same"]);
    assert_eq!(trace.files.len(), 2);
    for segment in trace.segments.iter().filter(|it| it.file.is_some()) {
        let file = &trace.files[segment.file.expect("it has") as usize];
        assert_eq!(file.volume, segment.volume);
        let start = STARTS[usize::from(segment.volume.expect("a volume"))];
        assert_eq!(segment.sector, start + 800);
    }
}

#[test]
fn commits_of_equal_numbers_have_the_causes_of_their_own_filesystems() {
    let trace = trace();
    assert_eq!(trace.commits.len(), 2);
    for commit in &trace.commits {
        let cause = commit.cause.expect("a cause") as usize;
        assert_eq!(trace.syncs[cause].volume, commit.volume);
    }
    let logged = trace
        .segments
        .iter()
        .filter(|it| it.class == Class::LoggedBlock);
    let causes: Vec<_> = logged
        .map(|it| {
            (
                it.volume,
                trace.syncs[it.cause.expect("a cause") as usize].volume,
            )
        })
        .collect();
    assert_eq!(causes, [(Some(0), Some(0)), (Some(1), Some(1))]);
}

#[test]
fn a_discard_of_the_disk_is_cut_at_every_end() {
    let bytes = (STARTS[1] + 4096) as u32 * 512;
    let discard = Queue {
        mono_ns: 1,
        sector: 0,
        bytes,
        operation: Operation::Discard,
        flags: Flags::default(),
        pid: 1,
        tgid: 1,
        sync: None,
        segments: Vec::new(),
    };
    let request = transfer(2, 0, Operation::Discard, bytes);
    let trace = assemble(manifest(), &[Event::Queue(discard), Event::Issue(request)]);
    let parts = trace.segments.iter();
    let parts: Vec<_> = parts
        .map(|part| (part.sector, part.volume, part.class))
        .collect();
    let outside = Class::OutsideFilesystem;
    let expected = [
        (0, None, outside),
        (STARTS[0], Some(0), Class::Free),
        (STARTS[0] + 4000, None, outside),
        (STARTS[1], Some(1), Class::Free),
        (STARTS[1] + 4000, None, outside),
    ];
    assert_eq!(parts, expected);
}
