//! `iostep import` of a whole disk's text: several filesystems, each with its files and structures.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use iostep_model::table::{Segment, Trace};
use iostep_model::{Class, store};
use tempfile::TempDir;

use crate::{iostep, name, said};

const MIB: u64 = 1 << 20;
const SECTOR_BYTES: u64 = 512;
/// Number, first sector, sectors and type of each partition: two ext4, a FAT32 and a swap.
const PARTITIONS: [(usize, u64, u64, u8); 4] = [
    (0, 2048, 16 * MIB / SECTOR_BYTES, 0x83),
    (1, 40_960, 24 * MIB / SECTOR_BYTES, 0x83),
    (2, 100_000, 40 * MIB / SECTOR_BYTES, 0x0c),
    (3, 190_000, 4 * MIB / SECTOR_BYTES, 0x82),
];
const DISK_BYTES: u64 = 110 * MIB;
/// What is written into each file.
const FILE_BYTES: usize = 64 << 10;

/// A disk's image, and one of each of its partitions.
struct Case {
    directory: TempDir,
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .env("MTOOLS_SKIP_CHECK", "1")
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; run scripts/setup"));
    assert!(output.status.success(), "{program}: {}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Case {
    fn new() -> Case {
        let directory = tempfile::tempdir().expect("a directory");
        let case = Case { directory };
        let tree = case.path("tree");
        std::fs::create_dir(&tree).expect("a directory");
        // The same name, and by mke2fs the same inode number, on each.
        std::fs::write(tree.join("data.db"), vec![0x5a; FILE_BYTES]).expect("a file");
        let mut disk = vec![0; DISK_BYTES as usize];
        disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        for (place, start, sectors, kind) in PARTITIONS {
            let entry = &mut disk[446 + place * 16..][..16];
            entry[4] = kind;
            entry[8..12].copy_from_slice(&(start as u32).to_le_bytes());
            entry[12..16].copy_from_slice(&(sectors as u32).to_le_bytes());
            let image = case.part(place);
            let file = std::fs::File::create(&image).expect("an image");
            file.set_len(sectors * SECTOR_BYTES).expect("its size");
            match kind {
                0x83 => {
                    let options = ["-q", "-F", "-b", "4096", "-d", name(&tree), name(&image)];
                    run("mkfs.ext4", &options);
                }
                0x0c => {
                    run("mkfs.fat", &["-F", "32", "-s", "1", name(&image)]);
                    let from = tree.join("data.db");
                    run("mcopy", &["-i", name(&image), name(&from), "::data.db"]);
                }
                _ => {
                    run("mkswap", &[name(&image)]);
                }
            }
            let bytes = std::fs::read(&image).expect("the image");
            disk[(start * SECTOR_BYTES) as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        std::fs::write(case.path("disk.img"), disk).expect("the disk");
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn part(&self, place: usize) -> PathBuf {
        self.path(&format!("part{place}.img"))
    }

    /// The first sector of the file in a partition of ext4, on the disk, as debugfs says.
    fn file_sector(&self, place: usize) -> u64 {
        let blocks = run(
            "debugfs",
            &["-R", "blocks /data.db", name(&self.part(place))],
        );
        let first = blocks.split_whitespace().next().expect("a block");
        PARTITIONS[place].1 + first.parse::<u64>().expect("a number") * 8
    }

    /// The first sector of the file in the FAT, by its bytes.
    fn fat_sector(&self) -> u64 {
        let bytes = std::fs::read(self.part(2)).expect("the image");
        let sectors = bytes.chunks(SECTOR_BYTES as usize);
        let is_file = |sector: &[u8]| sector.iter().all(|byte| *byte == 0x5a);
        let first = sectors.into_iter().position(is_file).expect("the file");
        PARTITIONS[2].1 + first as u64
    }

    fn import(&self, text: &str, options: &[&str]) -> Output {
        std::fs::write(self.path("text"), text).expect("write the text");
        let _ = std::fs::remove_dir_all(self.path("trace"));
        let mut command = iostep();
        command.arg("import").arg(self.path("text")).args(options);
        let output = command.arg("-o").arg(self.path("trace")).output();
        output.expect("run iostep")
    }

    fn imported(&self, text: &str, options: &[&str]) -> Trace {
        let output = self.import(text, options);
        assert!(output.status.success(), "{}", said(&output));
        store::read(&self.path("trace")).expect("read the trace")
    }
}

/// blkparse's lines of a write.
fn lines(n: usize, sector: u64, sectors: u64) -> String {
    let line = |step: usize, action: &str, end: &str| {
        let time = format!("{n}.{:09}", step * 1000);
        format!("  8,0 1 {n} {time} 700 {action} W {sector} + {sectors} [{end}]\n")
    };
    line(1, "Q", "app") + &line(2, "D", "app") + &line(3, "C", "0")
}

/// The volume, the class and the file of a write.
type Row = (Option<u16>, Class, Option<String>);

/// The volume, class and file of the only segment of each request.
fn found(trace: &Trace) -> Vec<Row> {
    let only = |own: &[Segment]| {
        let [segment] = own else {
            panic!("{own:?}");
        };
        (
            segment.volume,
            segment.class,
            segment.file.map(|file| trace.file_name(file)),
        )
    };
    let requests = trace.requests.iter();
    requests
        .map(|request| only(trace.segments_of(request)))
        .collect()
}

/// What each of these writes has to be, with names of volumes as they are given.
fn expected(case: &Case, names: [&str; 3]) -> (String, Vec<Row>) {
    let file = |volume: usize| Some(format!("{}:/data.db", names[volume]));
    let all = [
        (0, None, Class::OutsideFilesystem, None),
        (2040, None, Class::OutsideFilesystem, None),
        (PARTITIONS[0].1, Some(0), Class::Superblock, None),
        (PARTITIONS[1].1, Some(1), Class::Superblock, None),
        (PARTITIONS[2].1 + 64, Some(2), Class::AllocationTable, None),
        (case.file_sector(0), Some(0), Class::FileData, file(0)),
        (case.file_sector(1), Some(1), Class::FileData, file(1)),
        (case.fat_sector(), Some(2), Class::FileData, file(2)),
        (PARTITIONS[1].1 - 8, None, Class::OutsideFilesystem, None),
    ];
    let numbered = (1..).zip(&all);
    let text = numbered
        .map(|(n, (sector, ..))| lines(n, *sector, 8))
        .collect();
    let rows = all.map(|(_, volume, class, file)| (volume, class, file));
    (text, rows.to_vec())
}

#[test]
fn each_filesystem_of_a_whole_disk_has_its_files_and_structures() {
    let case = Case::new();
    let names = ["disk.img1", "disk.img2", "disk.img3"];
    let (text, rows) = expected(&case, names);
    let disk = case.path("disk.img");
    let trace = case.imported(&text, &["--image", name(&disk)]);
    assert_eq!(found(&trace), rows);
    let kinds = trace.manifest.volumes.iter().map(|volume| {
        let kind = volume.filesystem.as_ref().map(|it| it.kind.as_str());
        (volume.name.as_str(), kind)
    });
    let expected = [
        ("disk.img1", Some("ext4")),
        ("disk.img2", Some("ext4")),
        ("disk.img3", Some("vfat")),
        ("disk.img4", None),
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    // Two files of one name are two.
    assert_eq!(trace.files.len(), 3);
    // Swap belongs to its partition and to nobody there.
    let trace = case.imported(&lines(1, PARTITIONS[3].1, 8), &["--image", name(&disk)]);
    assert_eq!(found(&trace), [(Some(3), Class::Unknown, None)]);
}

#[test]
fn several_images_have_a_place_each() {
    let case = Case::new();
    let names = ["part0.img", "part1.img", "part2.img"];
    let (text, rows) = expected(&case, names);
    let parts = [0, 1, 2].map(|place| case.part(place));
    let offsets = [0, 1, 2].map(|place| (PARTITIONS[place].1 * SECTOR_BYTES).to_string());
    // In any order.
    let mut options = Vec::new();
    for place in [2, 0, 1] {
        options.extend(["--image", name(&parts[place]), "--offset", &offsets[place]]);
    }
    let trace = case.imported(&text, &options);
    assert_eq!(found(&trace), rows);
    // The same of one image of the disk.
    let disk = case.path("disk.img");
    let mut options = Vec::new();
    for offset in &offsets {
        options.extend([
            "--image",
            name(&disk),
            "--offset",
            offset,
            "--image-offset",
            offset,
        ]);
    }
    let classes = |trace: &Trace| -> Vec<_> {
        let rows = found(trace).into_iter();
        rows.map(|(volume, class, _)| (volume, class)).collect()
    };
    assert_eq!(classes(&case.imported(&text, &options)), classes(&trace));
}

#[test]
fn one_request_over_the_whole_disk_is_cut_at_every_filesystem() {
    let case = Case::new();
    let disk = case.path("disk.img");
    let sectors = DISK_BYTES / SECTOR_BYTES + 100;
    let trace = case.imported(&lines(1, 0, sectors), &["--image", name(&disk)]);
    let parts = trace.segments_of(&trace.requests[0]);
    let bytes = |volume: Option<u16>| -> u64 {
        let own = parts.iter().filter(|part| part.volume == volume);
        own.map(|part| u64::from(part.bytes)).sum()
    };
    let mut rest = sectors * SECTOR_BYTES;
    for (place, _, sectors, _) in PARTITIONS {
        assert_eq!(bytes(Some(place as u16)), sectors * SECTOR_BYTES, "{place}");
        rest -= sectors * SECTOR_BYTES;
    }
    assert_eq!(bytes(None), rest);
    let outside = parts.iter().filter(|part| part.volume.is_none());
    assert!(
        outside
            .clone()
            .all(|part| part.class == Class::OutsideFilesystem)
    );
    let named = (0..)
        .zip(&trace.files)
        .filter(|(_, file)| file.path.as_deref() == Some("/data.db"));
    let files: Vec<u32> = named.map(|(row, _)| row).collect();
    assert_eq!(files.len(), 3);
    for file in files {
        let own = parts
            .iter()
            .filter(|part| part.file == Some(file) && part.class == Class::FileData);
        let sum: u64 = own.map(|part| u64::from(part.bytes)).sum();
        assert_eq!(sum, FILE_BYTES as u64, "{}", trace.file_name(file));
    }
}

#[test]
fn places_that_do_not_fit_are_refused() {
    let case = Case::new();
    let (first, second) = (case.part(0), case.part(1));
    let (first, second) = (name(&first), name(&second));
    let swap = case.part(3);
    for (options, expected) in [
        (
            &["--image", first, "--image", second, "--offset", "1MiB"][..],
            "--offset: given 1 times for 2 images",
        ),
        (
            &[
                "--image", first, "--image", second, "--offset", "1MiB", "--offset", "2MiB",
            ],
            "--offset says where each begins",
        ),
        (&["--image", name(&swap)], "no filesystem found"),
        (
            &["--image", first, "--offset", "1000"],
            "not a multiple of 512",
        ),
        (
            &["--image", first, "--offset", "18446744073709551104"],
            "no device is so large",
        ),
        (
            &["--image", first, "--offset", "9223372036854775296"],
            "no device is so large",
        ),
        (
            &[
                "--image",
                name(&case.path("disk.img")),
                "--image-offset",
                "1TiB",
            ],
            "behind the end of the image",
        ),
        (&[], "--image"),
    ] {
        let output = case.import(&lines(1, 0, 8), options);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
        assert!(!Path::new(&case.path("trace")).exists());
    }
}

/// What is likely wrong is said, and the trace is made: only the user knows.
#[test]
fn an_image_that_lies_where_no_request_does_is_doubted() {
    let case = Case::new();
    let (first, second) = (case.part(0), case.part(1));
    let (first, second) = (name(&first), name(&second));
    let inside = lines(1, PARTITIONS[0].1 + 64, 8);
    let behind = inside.clone() + &lines(2, DISK_BYTES / SECTOR_BYTES, 8);
    for (text, options, expected) in [
        (
            &inside,
            &["--image", first, "--offset", "900GiB"][..],
            Some("part0.img: no request lies in it, in the bytes 966367641600 to 966384418816"),
        ),
        (
            &inside,
            &[
                "--image", first, "--offset", "1MiB", "--image", second, "--offset", "800MiB",
            ],
            Some("part1.img: no request lies in it"),
        ),
        (
            &behind,
            &["--image", first],
            Some("part0.img: 2 of 4 bios and requests go on behind its end, 16 MiB"),
        ),
        (&behind, &["--image", first, "--offset", "1MiB"], None),
        (&inside, &["--image", name(&case.path("disk.img"))], None),
    ] {
        let output = case.import(text, options);
        assert!(output.status.success(), "{}", said(&output));
        let said = String::from_utf8_lossy(&output.stdout);
        match expected {
            Some(expected) => {
                assert!(said.contains(&format!("warning: {expected}")), "{said}");
                assert!(said.contains("--offset says where it begins"), "{said}");
            }
            None => assert!(!said.contains("warning"), "{said}"),
        }
    }
}
