//! `iostep import` of requests that lie before, behind and across the ends of a filesystem.

use std::path::Path;
use std::process::Command;

use iostep_model::table::{Segment, Trace};
use iostep_model::{Class, Evidence, Layer, store};

use crate::{iostep, name, said};

const MIB: u64 = 1 << 20;
const SECTOR_BYTES: u64 = 512;
/// What is behind the filesystem in its image.
const TAIL_BYTES: u64 = MIB + 4096 + 512;
/// The letters of blkparse for reads, writes, discards, secure erases and zeroes.
const OPERATIONS: [&str; 6] = ["R", "W", "WS", "D", "DE", "WZ"];

/// The command that makes a filesystem, and its size.
const FILESYSTEMS: [(&[&str], u64); 8] = [
    (&["mkfs.ext4", "-q", "-F", "-b", "4096"], 64 * MIB),
    (&["mkfs.ext4", "-q", "-F", "-b", "1024"], 24 * MIB),
    (&["mkfs.ext2", "-q", "-F"], 16 * MIB),
    (&["mkfs.xfs", "-q"], 300 * MIB),
    (&["mkfs.btrfs", "-q"], 128 * MIB),
    (&["mkfs.f2fs", "-q"], 64 * MIB),
    (&["mkfs.nilfs2", "-q"], 160 * MIB),
    (&["mkfs.fat", "-F", "32"], 64 * MIB),
];

/// A filesystem of this size at the beginning of a larger image.
fn make_image(path: &Path, make: &[&str], bytes: u64) {
    let file = std::fs::File::create(path).expect("an image");
    file.set_len(bytes).expect("its size");
    let output = Command::new(make[0]).args(&make[1..]).arg(path).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}; run scripts/setup", make[0]));
    assert!(output.status.success(), "{make:?}: {}", said(&output));
    file.set_len(bytes + TAIL_BYTES).expect("more of it");
}

/// blkparse's lines of one request, from its queueing to its completion.
fn lines(n: usize, operation: &str, sector: u64, sectors: u64) -> String {
    let line = |step: usize, action: &str, end: &str| {
        let time = format!("{n}.{:09}", step * 1000);
        format!("  8,0 1 {n} {time} 700 {action} {operation} {sector} + {sectors} [{end}]\n")
    };
    line(1, "Q", "app") + &line(2, "D", "app") + &line(3, "C", "0")
}

fn import(directory: &Path, text: &str, options: &[&str]) -> Trace {
    let (from, to) = (directory.join("text"), directory.join("trace"));
    std::fs::write(&from, text).expect("the text");
    let mut command = iostep();
    command.arg("import").arg(&from).args(options);
    let output = command.arg("-o").arg(&to).output().expect("run iostep");
    assert!(output.status.success(), "{}", said(&output));
    let trace = store::read(&to).expect("read the trace");
    std::fs::remove_dir_all(&to).expect("it is there");
    trace
}

/// The sectors of a segment.
fn sectors(segment: &Segment) -> std::ops::Range<u64> {
    segment.sector..segment.sector + u64::from(segment.bytes) / SECTOR_BYTES
}

/// Requests that cover, or lie in, the parts before, of and behind a filesystem.
fn requests(start: u64, end: u64) -> Vec<(u64, u64)> {
    let tail = TAIL_BYTES / SECTOR_BYTES;
    let mut all = vec![
        (start, end - start),
        (start, 8),
        (end - 8, 8),
        (end - 3, 9),
        (end, 8),
        (end + tail - 1, 1),
        (end + tail, 4096),
        (end + (1 << 31), 8),
    ];
    if start > 0 {
        all.extend([
            (0, 8),
            (start - 8, 8),
            (start - 3, 8),
            (0, start),
            (0, end + tail + 800_000),
        ]);
    }
    all
}

fn check(directory: &Path, make: &[&str], bytes: u64, start: u64) {
    let image = directory.join("image");
    let end = start + bytes / SECTOR_BYTES;
    let all: Vec<(&str, (u64, u64))> = OPERATIONS
        .into_iter()
        .flat_map(|operation| {
            requests(start, end)
                .into_iter()
                .map(move |it| (operation, it))
        })
        .collect();
    let text: String = (1..)
        .zip(&all)
        .map(|(n, (operation, (sector, sectors)))| lines(n, operation, *sector, *sectors))
        .collect();
    let offset = (start * SECTOR_BYTES).to_string();
    let trace = import(
        directory,
        &text,
        &["--image", name(&image), "--offset", &offset],
    );
    assert_eq!(trace.requests.len(), all.len(), "{make:?}");
    for (request, (operation, (sector, length))) in trace.requests.iter().zip(&all) {
        let what = format!("{make:?} at {start}: {operation} {sector} + {length}");
        let parts = trace.segments_of(request);
        let summed: u64 = parts.iter().map(|part| u64::from(part.bytes)).sum();
        assert_eq!(summed, length * SECTOR_BYTES, "{what}");
        let mut next = *sector;
        for part in parts {
            let place = sectors(part);
            assert_eq!(place.start, next, "{what}");
            next = place.end;
            let is_inside = (start..end).contains(&place.start);
            assert_eq!(
                is_inside,
                (start + 1..=end).contains(&place.end),
                "{what}: {part:?}"
            );
            let is_outside = part.class == Class::OutsideFilesystem;
            assert_eq!(is_outside, !is_inside, "{what}: {part:?}");
            if is_outside {
                assert_eq!(part.class.layer(), Layer::Unknown);
                assert_eq!((part.evidence, part.file), (Evidence::None, None), "{what}");
            }
        }
    }
}

#[test]
fn what_is_before_and_behind_a_filesystem_is_outside_of_it() {
    let directory = tempfile::tempdir().expect("a directory");
    for (make, bytes) in FILESYSTEMS {
        make_image(&directory.path().join("image"), make, bytes);
        for start in [0, 63, 2048] {
            check(directory.path(), make, bytes, start);
        }
    }
}

#[test]
fn an_ext4_of_fewer_blocks_than_its_partition_ends_with_its_last_block() {
    let directory = tempfile::tempdir().expect("a directory");
    let image = directory.path().join("image");
    make_image(&image, &["true"], 40 * MIB);
    let mut mkfs = Command::new("mkfs.ext4");
    mkfs.args(["-q", "-F", "-b", "1024"])
        .arg(&image)
        .arg("9001");
    let output = mkfs.output().expect("mkfs.ext4; run scripts/setup");
    assert!(output.status.success(), "{}", said(&output));
    check(
        directory.path(),
        &["mkfs.ext4", "9001 blocks"],
        9001 * 1024,
        2048,
    );
}

#[test]
fn a_request_over_a_structure_is_cut_where_the_structure_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let image = directory.path().join("image");
    make_image(&image, &["mkfs.xfs", "-q", "-s", "size=512"], 300 * MIB);
    let trace = import(
        directory.path(),
        &lines(1, "W", 2048, 16),
        &["--image", name(&image), "--offset", "1MiB"],
    );
    let parts = trace.segments_of(&trace.requests[0]).iter();
    let parts: Vec<_> = parts.map(|part| (part.class, part.bytes)).collect();
    let expected = [
        (Class::Superblock, 512),
        (Class::FreeSpaceHeader, 512),
        (Class::InodeHeader, 512),
        (Class::FreeSpaceHeader, 512),
        (Class::Unknown, 6144),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn an_issue_without_its_bio_is_cut_at_the_ends_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let image = directory.path().join("image");
    make_image(&image, &["mkfs.ext4", "-q", "-F", "-b", "4096"], 16 * MIB);
    let text = lines(1, "W", 2040, 16);
    let text: String = text
        .lines()
        .skip(1)
        .map(|line| format!("{line}\n"))
        .collect();
    let trace = import(
        directory.path(),
        &text,
        &["--image", name(&image), "--offset", "1MiB"],
    );
    let parts = trace.segments_of(&trace.requests[0]).iter();
    let outside: u32 = parts
        .clone()
        .filter(|part| part.class == Class::OutsideFilesystem)
        .map(|part| part.bytes)
        .sum();
    assert_eq!(outside, 4096);
    assert!(
        parts.skip(1).all(|part| part.class == Class::Superblock),
        "{trace:?}"
    );
}
