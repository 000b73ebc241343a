//! `iostep import` with an image of FAT32: text about places whose content says whose it is.

use std::path::Path;
use std::process::Command;

use iostep_model::table::Trace;
use iostep_model::{Class, Evidence, FileType, store};

use crate::{name, said};

const SECTOR_BYTES: usize = 512;
/// The partition's place on the traced disk.
const OFFSET_SECTORS: u64 = 2048;
const FILES: [(&str, usize); 3] = [
    ("/app.db", 80),
    ("/app.db-journal", 17),
    ("/A picture of a card.jpg", 301),
];

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program)
        .env("MTOOLS_SKIP_CHECK", "1")
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; run scripts/setup"));
    assert!(output.status.success(), "{program}: {}", said(&output));
}

/// A sector that says which file's it is, and which of the file.
fn stamp(name: &str, number: usize) -> Vec<u8> {
    let mut sector = format!("stamp:{number}:{name}\n").into_bytes();
    sector.resize(SECTOR_BYTES, 0);
    sector
}

fn read_stamp(sector: &[u8]) -> Option<(String, u64)> {
    let text = std::str::from_utf8(sector.strip_prefix(b"stamp:")?).ok()?;
    let (number, name) = text.lines().next()?.split_once(':')?;
    Some((name.to_owned(), number.parse().ok()?))
}

fn make_image(directory: &Path) -> Vec<u8> {
    let image = directory.join("image");
    let file = std::fs::File::create(&image).expect("an image");
    file.set_len(64 << 20).expect("its size");
    run("mkfs.fat", &["-F", "32", name(&image)]);
    for (file, sectors) in FILES {
        let content: Vec<u8> = (0..sectors).flat_map(|n| stamp(file, n)).collect();
        let from = directory.join("content");
        std::fs::write(&from, content).expect("a file");
        let to = format!("::{file}");
        run("mcopy", &["-i", name(&image), name(&from), &to]);
    }
    std::fs::read(&image).expect("the image")
}

/// blkparse's lines of one write of a sector.
fn write_lines(n: u64, sector: u64) -> String {
    let sector = sector + OFFSET_SECTORS;
    let line = |step: u64, action: &str, end: &str| {
        let time = format!("{}.{:09}", n, step * 1000);
        format!("  8,0    1 {n:8} {time:>14}   700  {action}  WS {sector} + 1 [{end}]\n")
    };
    [line(1, "Q", "app"), line(3, "D", "app"), line(9, "C", "0")].concat()
}

fn imported(directory: &Path, text: &str) -> Trace {
    let (input, image) = (directory.join("text"), directory.join("image"));
    std::fs::write(&input, text).expect("the text");
    let trace = directory.join("trace");
    let output = crate::iostep()
        .args(["import", name(&input), "--image", name(&image)])
        .args(["--output", name(&trace), "--offset", "1048576"])
        .output()
        .expect("run iostep");
    assert!(output.status.success(), "{}", said(&output));
    store::read(&trace).expect("read the trace")
}

#[test]
fn every_sector_of_a_file_is_the_one_that_its_content_names() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let image = make_image(directory.path());
    let stamps: Vec<(u64, (String, u64))> = (0..)
        .zip(image.chunks(SECTOR_BYTES))
        .filter_map(|(sector, bytes)| Some((sector, read_stamp(bytes)?)))
        .collect();
    let written: usize = FILES.iter().map(|(_, sectors)| sectors).sum();
    assert_eq!(stamps.len(), written);
    let text: String = (1..)
        .zip(&stamps)
        .map(|(n, (sector, _))| write_lines(n, *sector))
        .collect();
    let trace = imported(directory.path(), &text);
    assert_eq!(trace.requests.len(), stamps.len());
    for (request, (_, (name, number))) in trace.requests.iter().zip(&stamps) {
        let [segment] = trace.segments_of(request) else {
            panic!("{name}: {:?}", trace.segments_of(request));
        };
        let file = &trace.files[segment.file.expect("a file") as usize];
        assert_eq!(file.path.as_ref(), Some(name));
        assert_eq!(segment.file_offset_bytes, Some(number * 512));
        assert_eq!(segment.class, Class::FileData);
        assert_eq!(segment.evidence, Evidence::OwnerMap);
    }
    let database = trace
        .files
        .iter()
        .find(|f| f.path.as_deref() == Some("/app.db"));
    let kind = database.expect("the database").file_type;
    assert_eq!(kind, FileType::SqliteDatabase);
}

#[test]
fn what_the_filesystem_keeps_for_itself_has_its_class() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    make_image(directory.path());
    // Boot sector, FSInfo, the first sector of the table.
    let places = [0, 1, 32];
    let text: String = (1..).zip(places).map(|(n, s)| write_lines(n, s)).collect();
    let trace = imported(directory.path(), &text);
    let classes: Vec<Class> = trace.segments.iter().map(|s| s.class).collect();
    let expected = [
        Class::Superblock,
        Class::FreeSpaceHeader,
        Class::AllocationTable,
    ];
    assert_eq!(classes, expected);
}
