//! The ext4 reader over sources that fail, end early or hold wrong bytes.

#[path = "../../../fuzz/entries/ext4_layout.rs"]
mod entry;
#[path = "../../../fuzz/entries/mutate.rs"]
mod mutate;
mod support;

use std::cell::Cell;
use std::io;

use iostep_fs::ext4::{self, Ext4};
use iostep_fs::{Error, OwnerMap, ReadAt, Result};
use mutate::Random;
use support::Image;

const MIB: u64 = 1 << 20;

fn image_bytes(options: &[&str]) -> Vec<u8> {
    image_of("ext4", options)
}

fn image_of(kind: &str, options: &[&str]) -> Vec<u8> {
    Image::ext4(kind, options, 16 * MIB).bytes()
}

fn owners(source: impl ReadAt) -> Result<OwnerMap> {
    ext4::owners(&Ext4::open(source)?)
}

/// Fails one read and answers all others.
struct Faulty<'a> {
    bytes: &'a [u8],
    reads: Cell<u64>,
    fail_at: u64,
    kind: io::ErrorKind,
}

impl Faulty<'_> {
    fn over(bytes: &[u8], fail_at: u64, kind: io::ErrorKind) -> Faulty<'_> {
        Faulty {
            bytes,
            reads: Cell::new(0),
            fail_at,
            kind,
        }
    }
}

impl ReadAt for Faulty<'_> {
    fn read_exact_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.reads.set(self.reads.get() + 1);
        if self.reads.get() == self.fail_at {
            return Err(self.kind.into());
        }
        self.bytes.read_exact_at(offset_bytes, buffer)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.bytes.size_bytes()
    }
}

#[test]
fn a_read_that_fails_is_an_error_or_a_named_gap() {
    let bytes = image_bytes(&["-b", "1024"]);
    let whole = Faulty::over(&bytes, 0, io::ErrorKind::Other);
    owners(&whole).expect("no fault");
    let reads = whole.reads.get();
    assert!(reads > 900, "only {reads} reads");
    let early = 1..=40;
    let late = (41..=reads).step_by(23);
    for (n, kind) in early.chain(late).zip(
        [io::ErrorKind::UnexpectedEof, io::ErrorKind::Other]
            .iter()
            .cycle(),
    ) {
        match owners(Faulty::over(&bytes, n, *kind)) {
            Err(error) => assert!(matches!(error, Error::Io { .. }), "read {n}: {error}"),
            Ok(map) => assert!(
                matches!(map.problems[..], [Error::Io { .. }]),
                "read {n}: {:?}",
                map.problems
            ),
        }
    }
}

#[test]
fn a_truncated_image_is_an_error_and_not_an_empty_filesystem() {
    let bytes = image_bytes(&["-b", "1024"]);
    for length in [0, 100, 1024, 1535, 2047, 2048, 3000, 1 << 16, 16 * MIB - 1] {
        assert!(owners(&bytes[..length as usize]).is_err(), "{length} bytes");
    }
}

/// Says that it is longer than it is, as a device does whose end cannot be read.
struct Short<'a>(&'a [u8]);

impl ReadAt for Short<'_> {
    fn read_exact_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset_bytes, buffer)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(16 * MIB)
    }
}

#[test]
fn a_source_with_an_unreadable_end_yields_what_can_be_read() {
    let bytes = image_bytes(&["-b", "1024"]);
    for length in (0..16 * MIB).step_by(499_979) {
        match owners(Short(&bytes[..length as usize])) {
            Err(error) => assert!(matches!(error, Error::Io { .. }), "{error}"),
            Ok(map) => assert_eq!(map.blocks, 16 * 1024),
        }
    }
}

#[test]
fn a_flipped_bit_of_a_checked_structure_is_found_and_named() {
    let mut bytes = image_bytes(&["-b", "1024"]);
    let filesystem = Ext4::open(&bytes[..]).expect("open");
    let first_table = filesystem.groups()[0].inode_table * 1024;
    let map = filesystem.inode(8).expect("the journal's inode");
    assert!(filesystem.block_map(&map).is_ok());
    let root = first_table + 256;
    let in_use = filesystem.superblock().first_inode as u64;
    let last = first_table + (in_use + 20) * 256;
    let mut random = Random::new(1);
    for (start, bytes_long) in [(1024, 1024), (2048, 64), (root, 160), (last, 160)] {
        for _ in 0..200 {
            let at = start as usize + random.below(bytes_long);
            let bit = 1 << random.below(8);
            bytes[at] ^= bit;
            let found = match owners(&bytes[..]) {
                Err(Error::Corrupt { .. } | Error::Unsupported { .. }) => true,
                Err(Error::Io { .. }) => false,
                Ok(map) => !map.problems.is_empty(),
            };
            assert!(found, "byte {at} bit {bit:#x}");
            bytes[at] ^= bit;
        }
    }
}

/// Damages the places that a reader goes by, and reads.
fn damaged_images(kind: &str, options: &[&str], rounds: u64) {
    let clean = image_of(kind, options);
    let filesystem = Ext4::open(&clean[..]).expect("open");
    let block_bytes = u64::from(filesystem.superblock().block_bytes);
    let map = ext4::owners(&filesystem).expect("owners");
    // Superblock, first descriptors, the first inodes, and every block of a structure.
    let table = filesystem.groups()[0].inode_table * block_bytes;
    let mut targets = vec![
        (1024, 1024),
        (2048.max(block_bytes), 512),
        (table, 256 * 60),
    ];
    let structures = (0..map.blocks).filter(|&block| {
        let class = map.owner(block).expect("inside").class;
        use iostep_model::Class::{Directory, ExtentBlock, IndirectBlock, InodeBitmap};
        matches!(class, Directory | ExtentBlock | IndirectBlock | InodeBitmap)
    });
    targets.extend(structures.map(|block| (block * block_bytes, block_bytes)));
    let mut bytes = clean.clone();
    for seed in 0..rounds {
        let mut random = Random::new(seed);
        // Half of the damage goes to the three places that everything hangs on.
        let few = if seed % 2 == 0 { 3 } else { targets.len() };
        let (start, length) = targets[random.below(few)];
        let place = start as usize..(start + length) as usize;
        mutate::damage(&mut bytes[place.clone()], &mut random);
        entry::run(&bytes);
        bytes[place.clone()].copy_from_slice(&clean[place]);
    }
}

#[test]
fn damaged_extents_end_in_an_error_or_a_value() {
    damaged_images(
        "ext4",
        &["-b", "1024", "-O", "^metadata_csum,^uninit_bg"],
        600,
    );
}

#[test]
fn damaged_block_maps_end_in_an_error_or_a_value() {
    damaged_images("ext3", &["-b", "1024"], 1500);
}

#[test]
fn damaged_inline_data_ends_in_an_error_or_a_value() {
    let options = [
        "-b",
        "2048",
        "-I",
        "256",
        "-O",
        "^metadata_csum,^uninit_bg,inline_data",
    ];
    damaged_images("ext4", &options, 300);
}

#[test]
fn another_magic_is_unsupported_and_not_corrupt() {
    let error = owners(&[0; 4096][..]).expect_err("no filesystem");
    assert!(matches!(error, Error::Unsupported { .. }));
    assert_eq!(
        error.to_string(),
        "no ext4 filesystem that iostep reads: found magic 0x0000, expected 0xef53"
    );
}

#[test]
fn an_unknown_feature_is_unsupported_and_named() {
    let mut bytes = image_bytes(&["-b", "1024", "-O", "^metadata_csum"]);
    bytes[1024 + 0x60] |= 1;
    let error = owners(&bytes[..]).expect_err("compression");
    assert!(matches!(error, Error::Unsupported { .. }));
    assert!(error.to_string().contains("compression"), "{error}");
}
