//! The small readers against the tools that made the image.

#[path = "../../../fuzz/entries/mutate.rs"]
mod mutate;
mod support;

use std::process::Command;

use iostep_fs::{Found, Kind, ReadAt, detect, layout};
use iostep_model::Class;
use mutate::Random;
use support::{Image, run};

const MIB: u64 = 1 << 20;

fn made_by(program: &str, options: &[&str], size_bytes: u64) -> Image {
    let image = Image::empty(size_bytes);
    run(Command::new(program).args(options).arg(image.path()), "");
    image
}

fn found(image: &Image) -> Found {
    layout(&image.open())
        .expect("layout")
        .expect("a filesystem")
}

/// The layout's single blocks, with their class.
fn blocks(found: &Found) -> Vec<(u64, Class)> {
    found
        .layout
        .iter()
        .flat_map(|range| {
            (range.first_block..)
                .take(range.blocks as usize)
                .map(|n| (n, range.class))
        })
        .collect()
}

fn check_xfs(options: &[&str], sector_bytes: u64) {
    let image = made_by("mkfs.xfs", options, 600 * MIB);
    let found = found(&image);
    assert_eq!(
        (found.kind, u64::from(found.block_bytes)),
        (Kind::Xfs, sector_bytes)
    );
    let query = |commands: &[&str]| {
        let mut xfs_db = Command::new("xfs_db");
        xfs_db.arg("-r");
        for command in commands {
            xfs_db.args(["-c", command]);
        }
        run(xfs_db.arg(image.path()), "")
    };
    let number = |text: &str| {
        let number = text.rsplit('=').next().map(str::trim).unwrap_or_default();
        number
            .parse::<u64>()
            .unwrap_or_else(|_| panic!("no number in {text:?}"))
    };
    let logstart = number(&query(&["sb 0", "p logstart"]));
    let logblocks = number(&query(&["sb 0", "p logblocks"]));
    let blocksize = number(&query(&["sb 0", "p blocksize"]));
    let daddr = query(&[&format!("convert fsblock {logstart} daddr")]);
    let daddr = daddr.split(['(', ')']).nth(1).expect("decimal in brackets");
    let log_start: u64 = daddr.parse().expect("a sector");
    let log =
        log_start * 512 / sector_bytes..(log_start * 512 + logblocks * blocksize) / sector_bytes;
    // Every sector of the image that begins with a header's magic, and no other, is a header.
    let bytes = image.bytes();
    let mut truth: Vec<(u64, Class)> = log.clone().map(|n| (n, Class::LogOther)).collect();
    for (n, sector) in (0..).zip(bytes.chunks(sector_bytes as usize)) {
        let class = match &sector[..4] {
            b"XFSB" => Class::Superblock,
            b"XAGF" | b"XAFL" => Class::FreeSpaceHeader,
            b"XAGI" => Class::InodeHeader,
            _ => continue,
        };
        assert!(!log.contains(&n));
        truth.push((n, class));
    }
    truth.sort();
    assert_eq!(blocks(&found), truth);
    assert!(truth.len() > 16);
}

#[test]
fn xfs_headers_and_log_agree_with_the_image() {
    check_xfs(&["-q"], 512);
}

#[test]
fn xfs_of_4k_sectors_agrees_with_the_image() {
    check_xfs(&["-q", "-s", "size=4096", "-d", "agcount=7"], 4096);
}

#[test]
fn xfs_of_1k_blocks_agrees_with_the_image() {
    check_xfs(&["-q", "-b", "size=1024", "-m", "crc=1"], 512);
}

#[test]
fn btrfs_superblocks_agree_with_dump_super() {
    let image = made_by("mkfs.btrfs", &["-q"], 300 << 30);
    let mut dump = Command::new("btrfs");
    dump.args(["inspect-internal", "dump-super", "-a"])
        .arg(image.path());
    let said = run(&mut dump, "");
    let truth: Vec<(u64, Class)> = said
        .lines()
        .filter_map(|line| line.strip_prefix("bytenr"))
        .map(|bytenr| bytenr.trim().parse::<u64>().expect("a number"))
        .map(|bytenr| (bytenr / 4096, Class::Superblock))
        .collect();
    assert_eq!(truth.len(), 3);
    assert_eq!(blocks(&found(&image)), truth);
}

#[test]
fn a_small_btrfs_has_fewer_superblocks() {
    let image = made_by("mkfs.btrfs", &["-q", "--mixed"], 60 * MIB);
    assert_eq!(blocks(&found(&image)), [(16, Class::Superblock)]);
}

/// A number of `dump.f2fs`: `cp_blkaddr   [0x     200 : 512]`.
fn f2fs_field(said: &str, name: &str) -> u64 {
    let line = said.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_once(" : ")?.1.strip_suffix(']'));
    let number = number.unwrap_or_else(|| panic!("no {name} in {said}"));
    number.parse().expect("a number")
}

#[test]
fn f2fs_areas_agree_with_dump_f2fs() {
    for options in [&["-q"][..], &["-q", "-O", "extra_attr,sb_checksum"]] {
        let image = made_by("mkfs.f2fs", options, 3 << 30);
        let said = run(
            Command::new("dump.f2fs")
                .args(["-d", "1"])
                .arg(image.path()),
            "",
        );
        let ends = [
            ("cp_blkaddr", "sit_blkaddr", Class::Checkpoint),
            ("sit_blkaddr", "nat_blkaddr", Class::SegmentInfoTable),
            ("nat_blkaddr", "ssa_blkaddr", Class::NodeAddressTable),
            ("ssa_blkaddr", "main_blkaddr", Class::SegmentSummary),
        ];
        let mut truth = vec![(0, Class::Superblock), (1, Class::Superblock)];
        for (first, end, class) in ends {
            let blocks = f2fs_field(&said, first)..f2fs_field(&said, end);
            truth.extend(blocks.map(|block| (block, class)));
        }
        assert_eq!(blocks(&found(&image)), truth);
        assert!(truth.len() > 4096);
    }
}

#[test]
fn each_filesystem_is_named_with_its_size() {
    for (program, options, mib, kind, block_bytes) in [
        ("mkfs.xfs", &["-q"][..], 300, Kind::Xfs, 4096),
        ("mkfs.btrfs", &["-q"], 128, Kind::Btrfs, 4096),
        ("mkfs.f2fs", &["-q"], 64, Kind::F2fs, 4096),
        (
            "mke2fs",
            &["-q", "-t", "ext4", "-b", "2048"],
            64,
            Kind::Ext4,
            2048,
        ),
    ] {
        let image = made_by(program, options, mib * MIB);
        let detected = detect(&image.open())
            .expect("detect")
            .expect("a filesystem");
        assert_eq!((detected.kind, detected.block_bytes), (kind, block_bytes));
        assert_eq!(detected.size_bytes, Some(mib * MIB), "{program}");
    }
}

#[test]
fn nilfs2_superblocks_are_where_the_image_has_them() {
    let image = made_by("mkfs.nilfs2", &["-q", "-f"], 256 * MIB);
    let bytes = image.bytes();
    let first = &bytes[1024..2048];
    let magic = &first[6..8];
    assert_eq!(magic, [0x34, 0x34]);
    let uuid = &first[152..168];
    let later = (1u64..).zip(bytes.chunks(4096).skip(1));
    let copies = later.filter(|(_, block)| block[6..8] == *magic && block[152..168] == *uuid);
    let mut truth = vec![(0, Class::Superblock)];
    truth.extend(copies.map(|(n, _)| (n, Class::Superblock)));
    assert_eq!(truth.len(), 2);
    let found = found(&image);
    assert_eq!((found.kind, found.block_bytes), (Kind::Nilfs2, 4096));
    assert_eq!(blocks(&found), truth);
}

#[test]
fn nothing_is_found_where_nothing_is() {
    for length in [0, 1, 511, 1024, 2048, 1 << 17] {
        let bytes = vec![0u8; length];
        assert!(detect(&bytes).expect("detect").is_none());
        assert!(layout(&bytes).expect("layout").is_none());
        assert_eq!(bytes.size_bytes().expect("size"), length as u64);
    }
}

#[test]
fn a_flipped_bit_in_a_superblock_is_named() {
    let xfs = made_by("mkfs.xfs", &["-q"], 300 * MIB).bytes();
    let btrfs = made_by("mkfs.btrfs", &["-q"], 128 * MIB).bytes();
    let checked = ["-q", "-O", "extra_attr,sb_checksum"];
    let f2fs = made_by("mkfs.f2fs", &checked, 64 * MIB).bytes();
    for (mut bytes, at, field) in [
        (xfs, 84, "sb_crc"),
        (btrfs, (64 << 10) + 112, "csum"),
        (f2fs, 1024 + 76, "crc"),
    ] {
        bytes[at] ^= 1;
        let error = layout(&bytes).expect_err("a wrong checksum").to_string();
        assert!(error.contains(field), "{error}");
    }
}

/// Nothing but the fields themselves tells that they are wrong: mkfs.f2fs makes no checksum unless
/// it is asked to.
#[test]
fn a_damaged_superblock_of_f2fs_ends_in_an_error_or_within_the_image() {
    let clean = made_by("mkfs.f2fs", &["-q"], 64 * MIB).bytes();
    let fields = 1024..1024 + 96;
    let mut bytes = clean.clone();
    let mut sound = 0;
    for seed in 0..20_000 {
        mutate::damage(&mut bytes[fields.clone()], &mut Random::new(seed));
        if let Ok(Some(found)) = layout(&bytes) {
            sound += 1;
            let mut end = 0;
            for range in &found.layout {
                assert!(range.first_block >= end, "seed {seed}: {found:?}");
                end = range.first_block + range.blocks;
            }
            let blocks = clean.len() as u64 / u64::from(found.block_bytes);
            assert!(end <= blocks, "seed {seed}: {found:?}");
        }
        bytes[fields.clone()].copy_from_slice(&clean[fields.clone()]);
    }
    // Damage to what the reader does not look at, and not to all the rest.
    assert!((1_000..19_000).contains(&sound), "{sound} of 20000");
}
