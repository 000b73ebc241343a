//! What extents and log blocks say of bios.

use iostep_model::Operation;
use iostep_model::event::{Extent, File, Process};
use iostep_model::manifest::Filesystem;

use super::*;

const APP: u32 = 100;
const OTHER: u32 = 200;
const KWORKER: u32 = 7;
const BLOCK: u64 = 4096;

fn extents(start_sector: u64) -> Extents {
    let mut manifest = iostep_model::fixture::sqlite_on_ext4(1).manifest;
    manifest.device.start_sector = start_sector;
    let range = |first_block, blocks, class| LayoutRange {
        first_block,
        blocks,
        class,
    };
    manifest.filesystem = Some(Filesystem {
        kind: "ext4".into(),
        mount_point: "/mnt".into(),
        block_bytes: BLOCK as u32,
        layout: vec![
            range(0, 1, Class::Superblock),
            range(500, 100, Class::LogOther),
        ],
        ..Filesystem::default()
    });
    let mut extents = Extents::new(&manifest, &[]).expect("a filesystem");
    for (pid, kernel) in [(APP, false), (OTHER, false), (KWORKER, true)] {
        extents.apply(&Event::Process(Process {
            mono_ns: 0,
            pid,
            tgid: pid,
            parent_tgid: 1,
            comm: String::new(),
            kernel,
            command_line: None,
        }));
    }
    extents
}

fn file(inode: u64, generation: u32) -> Event {
    Event::File(File {
        mono_ns: 0,
        file: FileKey::plain(inode, generation),
        mode: 0o100_644,
        path: None,
        unlinked: false,
        birth_wall_ns: None,
    })
}

fn extent(inode: u64, file_block: u64, fs_block: u64, fs_blocks: u32) -> Event {
    Event::Extent(Extent {
        mono_ns: 0,
        inode,
        file_block,
        fs_block,
        fs_blocks,
    })
}

fn dirty(inode: u64, block: u64, blocks: u64, pid: u32) -> Event {
    Event::Dirty {
        mono_ns: 0,
        inode,
        offset_bytes: block * BLOCK,
        bytes: (blocks * BLOCK) as u32,
        pid,
    }
}

fn write(sector: u64, blocks: u32, pid: u32) -> Queue {
    Queue {
        mono_ns: 0,
        sector,
        bytes: blocks * BLOCK as u32,
        operation: Operation::Write,
        flags: Flags::default(),
        pid,
        tgid: pid,
        sync: None,
        segments: vec![],
    }
}

fn owners(parts: &[Part]) -> Vec<(u32, Option<u32>, Option<u32>)> {
    let owner = |part: &Part| {
        (
            part.bytes / BLOCK as u32,
            part.file.map(|file| file.generation),
            part.dirtier.map(|dirtier| dirtier.pid),
        )
    };
    parts.iter().map(owner).collect()
}

#[test]
fn a_bio_over_two_files_is_cut_where_one_ends() {
    let mut extents = extents(2048);
    let told = [
        file(12, 1),
        file(13, 2),
        extent(12, 0, 1000, 4),
        extent(13, 0, 1004, 4),
        dirty(12, 0, 4, APP),
        dirty(13, 0, 4, OTHER),
    ];
    told.iter().for_each(|event| extents.apply(event));
    let parts = extents.parts(&write(2048 + 1002 * 8, 4, KWORKER));
    let expected = [(2, Some(1), Some(APP)), (2, Some(2), Some(OTHER))];
    assert_eq!(owners(&parts), expected);
    assert_eq!(parts[0].file_offset_bytes, Some(2 * BLOCK));
    assert_eq!(parts[1].file_offset_bytes, Some(0));
}

#[test]
fn a_reused_block_belongs_to_its_new_file() {
    let mut extents = extents(0);
    let told = [file(12, 1), extent(12, 0, 1000, 4), dirty(12, 0, 4, APP)];
    told.iter().for_each(|event| extents.apply(event));
    let first = extents.parts(&write(8000, 4, KWORKER));
    assert_eq!(owners(&first), [(4, Some(1), Some(APP))]);
    let file_gone = Event::FileDeleted {
        mono_ns: 0,
        file: FileKey::plain(12, 1),
    };
    let told = [
        extent(0, 0, 1000, 4),
        file_gone,
        file(12, 9),
        extent(12, 0, 1002, 2),
        dirty(12, 0, 2, OTHER),
    ];
    told.iter().for_each(|event| extents.apply(event));
    let second = extents.parts(&write(8000, 4, KWORKER));
    let expected = [(2, None, None), (2, Some(9), Some(OTHER))];
    assert_eq!(owners(&second), expected);
    assert_eq!(second[0].class, Class::Unknown);
}

#[test]
fn the_layout_outranks_extents_and_the_log_knows_its_commit() {
    let mut extents = extents(0);
    extents.apply(&extent(12, 0, 0, 2000));
    extents.apply(&Event::CommitStart {
        mono_ns: 0,
        commit: 42,
    });
    let mut commit = write(510 * 8, 1, KWORKER);
    commit.flags = Flags::PREFLUSH.with(Flags::FUA);
    let parts = extents.parts(&commit);
    assert_eq!(
        (parts[0].class, parts[0].commit),
        (Class::LogCommit, Some(42))
    );
    let superblock = extents.parts(&write(500 * 8, 1, KWORKER));
    assert_eq!(superblock[0].class, Class::LogSuperblock);
    let first = extents.parts(&write(0, 2, KWORKER));
    assert_eq!(first[0].class, Class::Superblock);
    assert_eq!(first[1].evidence, Evidence::ExtentEvent);
}

#[test]
fn bytes_of_the_parts_add_up_even_off_block_borders() {
    let mut extents = extents(0);
    extents.apply(&file(12, 1));
    extents.apply(&extent(12, 5, 1000, 1));
    let mut queue = write(1000 * 8 + 3, 1, APP);
    queue.bytes = 4096;
    let parts = extents.parts(&queue);
    assert_eq!(parts.iter().map(|part| part.bytes).sum::<u32>(), 4096);
    assert_eq!(parts[0].bytes, 5 * 512);
    assert_eq!(parts[0].file_offset_bytes, Some(5 * BLOCK + 3 * 512));
    let before_the_device = extents.parts(&Queue {
        sector: 0,
        ..write(0, 1, APP)
    });
    assert_eq!(before_the_device.len(), 1);
}

#[test]
fn a_file_that_is_named_only_later_is_still_the_owner() {
    let manifest = iostep_model::fixture::sqlite_on_ext4(1).manifest;
    let mut extents = Extents::new(&manifest, &[file(12, 3)]).expect("a filesystem");
    let free = 3_000_000_000;
    extents.apply(&extent(12, 0, free, 1));
    let parts = extents.parts(&write(free * 8, 1, APP));
    assert_eq!(parts[0].file, Some(FileKey::plain(12, 3)));
}

fn log_write(blocks: Vec<(Option<u64>, [u8; 16])>) -> Queue {
    let mut queue = write(510 * 8, blocks.len() as u32, KWORKER);
    let segment = |(home_fs_block, head)| event::Segment {
        bytes: BLOCK as u32,
        content: Content::JournalBlock {
            head,
            home_fs_block,
            home_file: None,
            commit: Some(42),
            fast: false,
        },
        dirtier: None,
    };
    queue.segments = blocks.into_iter().map(segment).collect();
    queue
}

#[test]
fn a_logged_block_is_a_copy_of_its_home_and_metadata_stays_known_in_place() {
    let mut extents = extents(0);
    let told = [file(12, 1), extent(12, 0, 1000, 4), dirty(12, 0, 4, APP)];
    told.iter().for_each(|event| extents.apply(event));
    let mut descriptor = [0; 16];
    descriptor[..8].copy_from_slice(&[0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 1]);
    let mut extent_block = [0; 16];
    extent_block[..6].copy_from_slice(&[0x0a, 0xf3, 3, 0, 84, 1]);
    let parts = extents.parts(&log_write(vec![
        (None, descriptor),
        (Some(0), [0; 16]),
        (Some(2000), extent_block),
        (Some(1002), [0; 16]),
    ]));
    let seen: Vec<_> = parts.iter().map(|p| (p.class, p.home, p.commit)).collect();
    let logged = |class, home, of| (class, Some((home, of)), Some(42));
    let expected = [
        (Class::LogDescriptor, None, Some(42)),
        logged(Class::LoggedBlock, 0, Class::Superblock),
        logged(Class::LoggedBlock, 2000, Class::ExtentBlock),
        logged(Class::LoggedData, 1002, Class::FileData),
    ];
    assert_eq!(seen, expected);
    assert_eq!(parts[3].file_offset_bytes, Some(2 * BLOCK));
    assert_eq!(parts[3].dirtier.map(|d| d.pid), Some(APP));
    let in_place = extents.parts(&write(2000 * 8, 1, KWORKER));
    assert_eq!(in_place[0].class, Class::ExtentBlock);
}

#[test]
fn whoever_makes_room_in_the_log_is_no_writer_of_the_data() {
    let mut extents = extents(0);
    let told = [file(12, 1), extent(12, 0, 1000, 4), dirty(12, 0, 4, APP)];
    told.iter().for_each(|event| extents.apply(event));
    extents.parts(&log_write(vec![(Some(1000), [0; 16])]));
    for _ in 0..2 {
        let parts = extents.parts(&write(8000, 1, OTHER));
        assert_eq!(parts[0].dirtier.map(|d| d.pid), Some(APP));
    }
}
