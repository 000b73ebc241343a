//! The ext4 reader against e2fsprogs: every block of images made with many feature sets.

mod support;

use iostep_fs::ext4::{self, Ext4};
use iostep_fs::{Kind, Owner, OwnerMap};
use iostep_model::Class;
use support::truth::{self, Use};
use support::{Image, field};

const MIB: u64 = 1 << 20;

/// Opens an image and compares every block and every path with what e2fsprogs says.
fn check(kind: &str, options: &[&str], size_bytes: u64) {
    let image = Image::ext4(kind, options, size_bytes);
    let map = check_image(&image);
    // An image without these would prove less than it seems to.
    if kind == "ext4" {
        assert!(has(&map, |owner| owner.unwritten));
        assert!(has(&map, |owner| owner.class == Class::ExtentBlock));
    } else {
        assert!(has(&map, |owner| owner.class == Class::IndirectBlock));
    }
}

fn has(map: &OwnerMap, wanted: fn(&Owner) -> bool) -> bool {
    (0..map.blocks).any(|block| wanted(&map.owner(block).expect("inside")))
}

fn check_image(image: &Image) -> OwnerMap {
    let filesystem = Ext4::open(image.open()).expect("open");
    let dump = image.dumpe2fs();
    let superblock = filesystem.superblock();
    assert_eq!(superblock.blocks, field(&dump, "Block count:"));
    assert_eq!(
        u64::from(superblock.block_bytes),
        field(&dump, "Block size:")
    );
    let truth = truth::owners(image);
    check_layout(&filesystem, &truth);
    let map = ext4::owners(&filesystem).expect("owners");
    assert!(map.problems.is_empty(), "{:?}", map.problems);
    assert_eq!(map.shared_blocks, 0);
    for block in 0..superblock.blocks {
        let owner = map.owner(block).expect("inside");
        let found = Use {
            class: owner.class,
            inode: owner.inode,
            file_block: owner.file_block,
            unwritten: owner.unwritten,
        };
        let expected = truth.get(&block).copied().unwrap_or(FREE);
        assert_eq!(found, expected, "block {block}");
    }
    check_free(&map, &dump);
    check_paths(&map, image);
    map
}

const FREE: Use = Use {
    class: Class::Free,
    inode: None,
    file_block: None,
    unwritten: false,
};

fn check_layout(filesystem: &Ext4<std::fs::File>, truth: &std::collections::BTreeMap<u64, Use>) {
    let layout = filesystem.layout().expect("layout");
    let mut found = std::collections::BTreeMap::new();
    for range in &layout {
        for block in range.first_block..range.first_block + range.blocks {
            let before = found.insert(block, range.class);
            assert_eq!(before, None, "block {block} is listed twice");
        }
    }
    let expected = truth
        .iter()
        .filter(|(_, used)| used.inode.is_none() || used.class == Class::SystemFile)
        .map(|(block, used)| (*block, used.class))
        .collect();
    assert_eq!(found, expected);
    let first_blocks: Vec<u64> = layout.iter().map(|range| range.first_block).collect();
    assert!(first_blocks.is_sorted());
}

/// The block bitmap is a third opinion: neither the inodes nor the layout.
fn check_free(map: &OwnerMap, dump: &str) {
    if dump.contains("bigalloc") {
        return;
    }
    let free: Vec<u64> = truth::free(dump, "  Free blocks: ").collect();
    let boot_block = u64::from(map.block_bytes == 1024);
    let found: Vec<u64> = (boot_block..map.blocks)
        .filter(|&block| map.owner(block).expect("inside").class == Class::Free)
        .collect();
    assert_eq!(found, free);
}

fn check_paths(map: &OwnerMap, image: &Image) {
    let truth = truth::paths(image);
    assert!(truth.len() > 800, "only {} paths", truth.len());
    for (inode, paths) in &truth {
        let path = map.path(*inode).unwrap_or_default();
        assert!(
            paths.contains(&path),
            "inode {inode}: {path} not in {paths:?}"
        );
    }
    for file in map.files() {
        let named = map.path(file.inode).is_some();
        assert_eq!(
            named,
            truth.contains_key(&file.inode),
            "inode {}",
            file.inode
        );
    }
}

macro_rules! images {
    ($($name:ident: $kind:literal, $options:expr, $mib:literal;)*) => {
        $(#[test]
        fn $name() {
            check($kind, &$options, $mib * MIB);
        })*
    };
}

images! {
    ext2_1k_agrees_with_e2fsprogs: "ext2", ["-b", "1024"], 40;
    ext2_4k_of_revision_0_agrees: "ext2", ["-b", "4096", "-r", "0", "-O", "none"], 40;
    ext3_1k_agrees: "ext3", ["-b", "1024"], 64;
    ext3_4k_agrees: "ext3", ["-b", "4096", "-g", "2048"], 64;
    ext4_1k_agrees: "ext4", ["-b", "1024"], 64;
    ext4_2k_agrees: "ext4", ["-b", "2048", "-g", "4096"], 64;
    ext4_4k_agrees: "ext4", ["-b", "4096"], 160;
    ext4_4k_with_many_groups_agrees: "ext4", ["-b", "4096", "-g", "512"], 128;
    ext4_64k_agrees: "ext4", ["-b", "65536"], 160;
    ext4_of_32_bits_agrees: "ext4", ["-b", "4096", "-g", "2048", "-O", "^64bit"], 64;
    ext4_with_group_checksums_agrees: "ext4", ["-b", "1024", "-O", "^metadata_csum,uninit_bg"], 64;
    ext4_without_checksums_agrees: "ext4", ["-b", "1024", "-O", "^metadata_csum,^uninit_bg"], 64;
    ext4_with_meta_groups_agrees: "ext4", ["-b", "1024", "-g", "512", "-O", "meta_bg,^resize_inode"], 64;
    ext4_without_flex_groups_agrees: "ext4", ["-b", "1024", "-O", "^flex_bg"], 64;
    ext4_with_inline_data_agrees: "ext4", ["-b", "4096", "-I", "256", "-O", "inline_data"], 64;
    ext4_with_small_inodes_agrees: "ext4", ["-b", "1024", "-I", "128"], 64;
    ext4_with_two_backups_agrees: "ext4", ["-b", "1024", "-O", "sparse_super2,^resize_inode"], 64;
    ext4_with_all_backups_agrees: "ext4", ["-b", "1024", "-O", "^sparse_super,^resize_inode"], 64;
    ext4_with_system_files_agrees: "ext4", ["-b", "4096", "-I", "256", "-O", "quota,project,orphan_file,mmp"], 64;
    ext4_without_journal_agrees: "ext4", ["-b", "4096", "-O", "^has_journal"], 64;
    ext4_with_a_checksum_seed_agrees: "ext4", ["-b", "4096", "-O", "metadata_csum_seed,large_dir,ea_inode"], 64;
    ext4_with_clusters_agrees: "ext4", ["-b", "4096", "-O", "bigalloc", "-C", "16384"], 64;
    ext4_with_clusters_of_1k_blocks_agrees: "ext4", ["-b", "1024", "-O", "bigalloc", "-C", "16384"], 64;
}

#[test]
fn a_block_of_attributes_has_its_file() {
    let image = Image::ext4("ext4", &["-b", "1024"], 64 * MIB);
    let map = check_image(&image);
    assert!(has(&map, |owner| owner.class == Class::Attribute
        && owner.inode.is_some()));
}

#[test]
fn the_three_generations_are_told_apart() {
    for (kind, expected) in [
        ("ext2", Kind::Ext2),
        ("ext3", Kind::Ext3),
        ("ext4", Kind::Ext4),
    ] {
        let image = Image::ext4(kind, &["-b", "1024"], 32 * MIB);
        let detected = iostep_fs::detect(&image.open()).expect("detect");
        let detected = detected.expect("a filesystem");
        assert_eq!(detected.kind, expected);
        assert_eq!(detected.size_bytes, Some(32 * MIB));
    }
}

#[test]
fn the_journal_ends_with_the_blocks_of_fast_commits() {
    let options = ["-b", "4096", "-J", "size=8", "-O", "fast_commit"];
    let image = Image::ext4("ext4", &options, 64 * MIB);
    let layout = Ext4::open(&image.open())
        .and_then(|filesystem| filesystem.layout())
        .expect("layout");
    let blocks = |class| {
        let ranges = layout.iter().filter(move |range| range.class == class);
        ranges.flat_map(|range| range.first_block..range.first_block + range.blocks)
    };
    let journal = image.debugfs("blocks <8>");
    let journal: Vec<u64> = journal
        .split_whitespace()
        .map(|word| word.parse().expect("a block"))
        .collect();
    let fast = field(&image.dumpe2fs(), "Fast commit length:") as usize;
    assert!(fast > 0);
    let (normal, fast) = journal.split_at(journal.len() - fast);
    assert!(blocks(Class::LogOther).eq(normal.iter().copied()));
    assert!(blocks(Class::FastCommit).eq(fast.iter().copied()));
}

#[test]
fn a_terabyte_is_laid_out_without_reading_its_inode_tables() {
    let image = Image::empty(1 << 40);
    let mut mke2fs = std::process::Command::new("mke2fs");
    support::run(mke2fs.args(["-q", "-t", "ext4"]).arg(image.path()), "");
    let source = support::Counting::over(image.open());
    let layout = Ext4::open(&source)
        .and_then(|filesystem| filesystem.layout())
        .expect("layout");
    let tables: u64 = layout
        .iter()
        .filter(|range| range.class == Class::InodeTable)
        .map(|range| range.blocks)
        .sum();
    let dump = image.dumpe2fs();
    let per_group = field(&dump, "Inode blocks per group:");
    assert_eq!(tables, per_group * 8192);
    assert!(
        source.read_bytes() < 2 * MIB,
        "{} bytes",
        source.read_bytes()
    );
}
