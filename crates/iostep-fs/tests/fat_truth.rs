//! The FAT reader against mkfs.fat, mtools and fsck.fat, and against files whose every sector says
//! where it belongs.

#[path = "../../../fuzz/entries/fat_layout.rs"]
mod entry;
#[path = "../../../fuzz/entries/mutate.rs"]
mod mutate;
mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;

use iostep_fs::fat::{self, Fat, Width};
use iostep_fs::{Owner, OwnerMap, layout};
use iostep_model::Class;
use mutate::Random;
use support::{Image, run};

const MIB: u64 = 1 << 20;
const STAMP_BYTES: usize = 512;

/// An image and what was put into it: path to length in stamps.
struct Populated {
    image: Image,
    files: BTreeMap<String, u64>,
    deleted: Vec<String>,
}

fn mtools(image: &Image, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command
        .env("LC_ALL", "C.UTF-8")
        .env("MTOOLS_SKIP_CHECK", "1")
        .arg("-i")
        .arg(image.path())
        .args(arguments);
    run(&mut command, "")
}

/// 512 bytes that name their file and their place in it.
fn stamp(path: &str, index: u64) -> Vec<u8> {
    let mut stamp = format!("iostep fat stamp\n{path}\n{index}\n").into_bytes();
    stamp.resize(STAMP_BYTES, b'.');
    stamp
}

/// The path and the index of a stamp.
fn read_stamp(bytes: &[u8]) -> Option<(String, u64)> {
    let text = bytes.strip_prefix(b"iostep fat stamp\n")?;
    let mut lines = std::str::from_utf8(text).ok()?.lines();
    Some((lines.next()?.to_owned(), lines.next()?.parse().ok()?))
}

impl Populated {
    fn new(options: &[&str], size_bytes: u64) -> Populated {
        let image = Image::empty(size_bytes);
        run(Command::new("mkfs.fat").args(options).arg(image.path()), "");
        let mut populated = Populated {
            image,
            files: BTreeMap::new(),
            deleted: Vec::new(),
        };
        populated.fill();
        populated
    }

    fn fill(&mut self) {
        for directory in ["/deep", "/deep/er", "/many", "/A long directory name"] {
            mtools(&self.image, "mmd", &[&format!("::{directory}")]);
        }
        self.write("/PLAIN.TXT", 3);
        self.write("/lower.txt", 1);
        self.write(
            "/deep/er/a name that does not fit in eight and three.db",
            40,
        );
        self.write("/A long directory name/grüße an alle.db-journal", 9);
        self.write("/empty", 0);
        for number in 0..60 {
            self.write(&format!("/many/a file of many, number {number}.xml"), 5);
        }
        // Every second one goes, and a large one takes the gaps.
        for number in (0..60).step_by(2) {
            self.delete(&format!("/many/a file of many, number {number}.xml"));
        }
        self.look_for_free_clusters_from_the_start();
        self.write("/pieces.dat", 600);
    }

    /// FSInfo tells on FAT32 where the next free cluster may be.
    fn look_for_free_clusters_from_the_start(&self) {
        let filesystem = Fat::open(self.image.open()).expect("open");
        let boot = filesystem.boot();
        if boot.info_sector == 0 {
            return;
        }
        let hint = boot.info_sector * u64::from(boot.sector_bytes) + 492;
        let options = File::options().write(true).open(self.image.path());
        let image = options.expect("open for writing");
        image
            .write_all_at(&2u32.to_le_bytes(), hint)
            .expect("the hint");
    }

    fn write(&mut self, path: &str, stamps: u64) {
        let content: Vec<u8> = (0..stamps).flat_map(|index| stamp(path, index)).collect();
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), content).expect("content");
        let from = file.path().to_string_lossy().into_owned();
        mtools(&self.image, "mcopy", &[&from, &format!("::{path}")]);
        self.files.insert(path.to_owned(), stamps);
    }

    fn delete(&mut self, path: &str) {
        mtools(&self.image, "mdel", &[&format!("::{path}")]);
        self.files.remove(path);
        self.deleted.push(path.to_owned());
    }

    fn owners(&self) -> OwnerMap {
        let filesystem = Fat::open(self.image.open()).expect("open");
        let map = fat::owners(&filesystem).expect("owners");
        assert!(map.problems.is_empty(), "{:?}", map.problems);
        assert_eq!(map.shared_blocks, 0);
        map
    }

    /// Every stamp on the image is where the map says, and none of a file is missing.
    fn check_stamps(&self, map: &OwnerMap) {
        let sector_bytes = map.block_bytes as usize;
        let mut seen: BTreeMap<String, u64> = BTreeMap::new();
        for (at, bytes) in (0..).zip(self.image.bytes().chunks_exact(STAMP_BYTES)) {
            let Some((path, index)) = read_stamp(bytes) else {
                continue;
            };
            let sector = at * STAMP_BYTES as u64 / sector_bytes as u64;
            let owner = map.owner(sector).expect("inside");
            if owner.class == Class::Free {
                assert!(self.deleted.contains(&path), "{path} at {sector} is free");
                continue;
            }
            let Some(inode) = owner.inode else {
                panic!("{path} at {sector}: {owner:?}");
            };
            // What was deleted can still lie behind a file's end, in its last cluster.
            if self.deleted.contains(&path) {
                continue;
            }
            assert_eq!(map.path(inode), Some(path.clone()));
            assert_eq!(owner.class, Class::FileData);
            let place = owner.file_block.expect("content") * sector_bytes as u64;
            let inside = at * STAMP_BYTES as u64 % sector_bytes as u64;
            assert_eq!(place + inside, index * STAMP_BYTES as u64, "{path}");
            *seen.entry(path).or_default() += 1;
        }
        let expected = self.files.iter().filter(|(_, stamps)| **stamps > 0);
        let expected: BTreeMap<_, _> = expected.map(|(p, n)| (p.clone(), *n)).collect();
        assert_eq!(seen, expected);
    }

    /// The number of used clusters is that of fsck.fat.
    fn check_used(&self, map: &OwnerMap, cluster_sectors: u64, has_root_in_clusters: bool) {
        let said = run(
            Command::new("fsck.fat").arg("-n").arg(self.image.path()),
            "",
        );
        let (_, counts) = said.rsplit_once("files, ").expect("a summary");
        let (used, _) = counts.split_once('/').expect("used/all");
        let used: u64 = used.parse().expect("a number");
        let in_clusters = |owner: &Owner| match owner.inode {
            Some(fat::ROOT_INODE) => has_root_in_clusters,
            inode => inode.is_some(),
        };
        let sectors = runs(map).filter(|(_, owner)| in_clusters(owner));
        let sectors: u64 = sectors.map(|(_, owner)| owner.blocks).sum();
        assert_eq!(sectors / cluster_sectors, used, "{said}");
    }
}

/// The map's answers, each with its first sector.
fn runs(map: &OwnerMap) -> impl Iterator<Item = (u64, Owner)> + '_ {
    let mut sector = 0;
    std::iter::from_fn(move || {
        let owner = map.owner(sector)?;
        let first = sector;
        sector += owner.blocks;
        Some((first, owner))
    })
}

fn check(options: &[&str], size_bytes: u64, width: Width) {
    let populated = Populated::new(options, size_bytes);
    let filesystem = Fat::open(populated.image.open()).expect("open");
    let boot = filesystem.boot();
    assert_eq!(boot.width, width);
    let map = populated.owners();
    populated.check_stamps(&map);
    let cluster_sectors = u64::from(boot.cluster_sectors);
    populated.check_used(&map, cluster_sectors, width == Width::Fat32);
    check_names(&populated, &map);
    check_layout(&populated.image, &map);
    let in_pieces = runs(&map).filter(|(_, owner)| {
        let path = owner.inode.and_then(|inode| map.path(inode));
        path.as_deref() == Some("/pieces.dat")
    });
    assert!(in_pieces.count() > 5, "the large file is in one piece");
}

fn check_names(populated: &Populated, map: &OwnerMap) {
    let mut paths: Vec<String> = map
        .files()
        .iter()
        .filter_map(|f| map.path(f.inode))
        .collect();
    paths.sort();
    let directories = ["/", "/A long directory name", "/deep", "/deep/er", "/many"];
    let mut expected: Vec<String> = populated.files.keys().cloned().collect();
    expected.extend(directories.map(str::to_owned));
    expected.sort();
    assert_eq!(paths, expected);
}

/// What the layout reserves is what the map says; the root directory has an owner besides.
fn check_layout(image: &Image, map: &OwnerMap) {
    let found = layout(&image.open())
        .expect("layout")
        .expect("a filesystem");
    assert_eq!(found.block_bytes, map.block_bytes);
    for range in &found.layout {
        for sector in range.first_block..range.first_block + range.blocks {
            let owner = map.owner(sector).expect("inside");
            assert_eq!(owner.class, range.class, "sector {sector}");
            let expected = (range.class == Class::Directory).then_some(fat::ROOT_INODE);
            assert_eq!(owner.inode, expected, "sector {sector}");
        }
    }
    let classes: Vec<Class> = found.layout.iter().map(|range| range.class).collect();
    for class in [Class::Superblock, Class::AllocationTable, Class::Directory] {
        assert!(classes.contains(&class), "{}", class.name());
    }
}

#[test]
fn fat32_agrees_with_mtools_and_fsck() {
    check(&["-F", "32"], 64 * MIB, Width::Fat32);
}

#[test]
fn fat32_of_large_clusters_agrees_with_mtools_and_fsck() {
    check(
        &["-F", "32", "-s", "8", "-R", "100"],
        300 * MIB,
        Width::Fat32,
    );
}

#[test]
fn fat16_agrees_with_mtools_and_fsck() {
    check(&["-F", "16", "-s", "4"], 32 * MIB, Width::Fat16);
}

#[test]
fn fat12_agrees_with_mtools_and_fsck() {
    check(&["-F", "12", "-s", "2"], 4 * MIB, Width::Fat12);
}

#[test]
fn sectors_of_2_kib_agree_with_mtools_and_fsck() {
    check(
        &["-F", "32", "-S", "2048", "-s", "1"],
        150 * MIB,
        Width::Fat32,
    );
}

#[test]
fn every_cluster_of_a_file_is_where_mshowfat_says() {
    let populated = Populated::new(&["-F", "32", "-s", "2"], 80 * MIB);
    let map = populated.owners();
    let filesystem = Fat::open(populated.image.open()).expect("open");
    let boot = filesystem.boot();
    let tables = boot.table_sectors * u64::from(boot.tables);
    let data_start = boot.reserved_sectors + tables + boot.root_sectors;
    for path in populated.files.keys().filter(|path| *path != "/empty") {
        let said = mtools(&populated.image, "mshowfat", &[&format!("::{path}")]);
        let mut expected: Vec<u64> = Vec::new();
        for range in said.split('<').skip(1) {
            let range = range.split('>').next().unwrap_or_default();
            let mut ends = range
                .split('-')
                .map(|n| n.parse::<u64>().expect("a cluster"));
            let first = ends.next().expect("a cluster");
            expected.extend(first..=ends.next().unwrap_or(first));
        }
        let mut found: Vec<(u64, u64)> = Vec::new();
        for (first, owner) in runs(&map) {
            if owner.inode.and_then(|inode| map.path(inode)).as_ref() != Some(path) {
                continue;
            }
            let file_block = owner.file_block.expect("content");
            let cluster_sectors = usize::try_from(boot.cluster_sectors).expect("small");
            let sectors = (0..owner.blocks).step_by(cluster_sectors);
            let cluster = |sector: u64| (sector - data_start) / u64::from(boot.cluster_sectors) + 2;
            found.extend(sectors.map(|n| (file_block + n, cluster(first + n))));
        }
        found.sort_unstable();
        let found: Vec<u64> = found.into_iter().map(|(_, cluster)| cluster).collect();
        assert_eq!(found, expected, "{path}: {said}");
    }
}

/// Damages what the reader goes by: boot sector, table and directories.
#[test]
fn damaged_filesystems_end_in_an_error_or_a_value() {
    for (options, size_bytes) in [
        (&["-F", "12", "-s", "2"][..], 2 * MIB),
        (&["-F", "16", "-s", "1"], 6 * MIB),
    ] {
        let populated = Populated::new(options, size_bytes);
        let clean = populated.image.bytes();
        let map = populated.owners();
        let places: Vec<(usize, usize)> = runs(&map)
            .filter(|(_, owner)| matches!(owner.class, Class::Directory | Class::AllocationTable))
            .map(|(first, owner)| (first as usize * 512, owner.blocks as usize * 512))
            .chain([(0, 64)])
            .collect();
        let mut bytes = clean.clone();
        for seed in 0..400 {
            let mut random = Random::new(seed);
            let (start, length) = places[random.below(places.len())];
            let place = start..start + length.min(4096);
            mutate::damage(&mut bytes[place.clone()], &mut random);
            entry::run(&bytes);
            bytes[place.clone()].copy_from_slice(&clean[place]);
        }
    }
}

#[test]
fn damage_of_a_chain_is_told_and_the_rest_is_read() {
    let populated = Populated::new(&["-F", "16", "-s", "4"], 32 * MIB);
    let mut bytes = populated.image.bytes();
    let before = populated.owners();
    let filesystem = Fat::open(bytes.clone()).expect("open");
    let boot = filesystem.boot().clone();
    // The first cluster of the large file leads back to itself.
    let found = runs(&before).find(|(_, owner)| {
        let path = owner.inode.and_then(|inode| before.path(inode));
        path.as_deref() == Some("/pieces.dat") && owner.file_block == Some(0)
    });
    let (first, _) = found.expect("the large file");
    let tables = boot.table_sectors * u64::from(boot.tables);
    let data_start = boot.reserved_sectors + tables + boot.root_sectors;
    let cluster = (first - data_start) / u64::from(boot.cluster_sectors) + 2;
    let entry = boot.reserved_sectors as usize * 512 + cluster as usize * 2;
    bytes[entry..entry + 2].copy_from_slice(&(cluster as u16).to_le_bytes());
    let map = fat::owners(&Fat::open(bytes).expect("open")).expect("owners");
    let [problem] = &map.problems[..] else {
        panic!("{:?}", map.problems);
    };
    assert!(problem.to_string().contains("a second time"), "{problem}");
    assert_eq!(map.files().len(), before.files().len());
}

#[test]
fn a_truncated_image_is_an_error() {
    let populated = Populated::new(&["-F", "32"], 64 * MIB);
    let bytes = populated.image.bytes();
    for length in [0, 100, 511, 512, 4096, 1 << 20, bytes.len() - 512] {
        assert!(Fat::open(&bytes[..length]).is_err(), "{length} bytes");
    }
}
