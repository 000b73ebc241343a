//! `iostep import` against debugfs: text about places whose owner debugfs names.

mod actions;
mod recordings;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use iostep_model::manifest::{Backend, State};
use iostep_model::table::{Segment, Trace};
use iostep_model::{Class, Evidence, store};
use tempfile::TempDir;

use crate::iostep;

const BLOCK_BYTES: u64 = 1024;
const IMAGE_BYTES: u64 = 16 << 20;
/// The partition's place on the traced disk.
const OFFSET_BYTES: u64 = 1 << 20;

/// An ext4 image, and text about it.
struct Case {
    directory: TempDir,
}

impl Case {
    fn new() -> Case {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let case = Case { directory };
        let tree = case.path("tree");
        std::fs::create_dir_all(tree.join("data")).expect("a directory");
        for (name, bytes) in [
            ("data/app.db", 40_000),
            ("data/app.db-wal", 9_000),
            ("movie.mp4", 300_000),
        ] {
            std::fs::write(tree.join(name), vec![0x6B; bytes]).expect("a file");
        }
        let image = std::fs::File::create(case.path("image")).expect("an image");
        image.set_len(IMAGE_BYTES).expect("its size");
        let mut mke2fs = Command::new("mke2fs");
        mke2fs.args(["-q", "-F", "-t", "ext4", "-b", "1024", "-d"]);
        let made = mke2fs.arg(tree).arg(case.path("image")).status();
        assert!(made.expect("mke2fs; install e2fsprogs").success());
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn debugfs(&self, request: &str) -> String {
        let mut debugfs = Command::new("debugfs");
        let output = debugfs
            .args(["-R", request])
            .arg(self.path("image"))
            .output();
        let output = output.expect("debugfs; install e2fsprogs");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The blocks of a file, in the order of the file.
    fn blocks(&self, file: &str) -> Vec<u64> {
        let numbers = self.debugfs(&format!("blocks {file}"));
        let blocks: Vec<u64> = numbers
            .split_whitespace()
            .map(|number| number.parse().expect("a number"))
            .collect();
        assert!(!blocks.is_empty(), "{file}");
        blocks
    }

    fn import(&self, text: &str, options: &[&str]) -> Output {
        std::fs::write(self.path("text"), text).expect("write the text");
        iostep()
            .arg("import")
            .arg(self.path("text"))
            .arg("--image")
            .arg(self.path("image"))
            .arg("--output")
            .arg(self.path("trace"))
            .args(options)
            .output()
            .expect("run iostep")
    }

    fn imported(&self, text: &str, options: &[&str]) -> Trace {
        let output = self.import(text, options);
        assert!(output.status.success(), "{}", said(&output));
        store::read(&self.path("trace")).expect("read the trace")
    }
}

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// A write of whole filesystem blocks, from its queueing to its completion.
fn write_lines(n: u64, first_block: u64, blocks: u64) -> String {
    let sector = (OFFSET_BYTES + first_block * BLOCK_BYTES) / 512;
    let sectors = blocks * BLOCK_BYTES / 512;
    let line = |step: u64, action: &str, end: &str| {
        let time = format!("{}.{:09}", n, step * 1000);
        format!(
            "  8,0    1 {n:8} {time:>14} {:5}  {action}  WS {sector} + {sectors} [{end}]\n",
            700 + n
        )
    };
    [
        line(1, "Q", "app"),
        line(2, "G", "app"),
        line(3, "D", "app"),
        line(9, "C", "0"),
    ]
    .concat()
}

/// The segments of the `n`th request.
fn segments(trace: &Trace, n: usize) -> &[Segment] {
    trace.segments_of(&trace.requests[n])
}

fn path_of<'a>(trace: &'a Trace, segment: &Segment) -> Option<&'a str> {
    trace.files[segment.file? as usize].path.as_deref()
}

#[test]
fn every_block_of_a_file_is_the_one_that_debugfs_names() {
    let case = Case::new();
    let files = ["/data/app.db", "/data/app.db-wal", "/movie.mp4"];
    let places: Vec<(&str, u64, u64)> = files
        .iter()
        .flat_map(|file| {
            (0..)
                .zip(case.blocks(file))
                .map(|(at, block)| (*file, at, block))
        })
        .collect();
    let text: String = (1..)
        .zip(&places)
        .map(|(n, (_, _, block))| write_lines(n, *block, 1))
        .collect();
    let trace = case.imported(&text, &["--offset", "1048576"]);
    assert_eq!(trace.requests.len(), places.len());
    for (n, (file, at, _)) in places.iter().enumerate() {
        let [segment] = segments(&trace, n) else {
            panic!("request {n}");
        };
        assert_eq!(path_of(&trace, segment), Some(*file));
        assert_eq!(segment.file_offset_bytes, Some(at * BLOCK_BYTES));
        assert_eq!(
            (segment.class, segment.evidence),
            (Class::FileData, Evidence::OwnerMap)
        );
        let request = &trace.requests[n];
        let submitter = request.submitter.expect("the text names it");
        assert_eq!(trace.processes[submitter as usize].pid, 701 + n as u32);
        assert_eq!(
            request.complete_ns.expect("complete") - request.queue_ns,
            8000
        );
    }
    assert_eq!(
        (trace.manifest.backend, trace.manifest.state),
        (Backend::Import, State::Complete)
    );
}

#[test]
fn structures_and_free_blocks_are_told_from_files() {
    let case = Case::new();
    let journal = case.blocks("<8>");
    let directory = case.blocks("/data");
    let free = case.debugfs("ffb 1");
    let free = free.split_whitespace().last().expect("a number");
    let free: u64 = free.parse().expect("a block");
    let expected = [
        (1, Class::Superblock, None),
        (2, Class::GroupDescriptor, None),
        (journal[0], Class::LogSuperblock, None),
        (directory[0], Class::Directory, Some("/data")),
        (free, Class::Free, None),
    ];
    let text: String = (1..)
        .zip(expected)
        .map(|(n, (block, ..))| write_lines(n, block, 1))
        .collect();
    let trace = case.imported(&text, &["--offset", "1048576"]);
    for (n, (block, class, path)) in expected.into_iter().enumerate() {
        let [segment] = segments(&trace, n) else {
            panic!("block {block}");
        };
        assert_eq!(
            (segment.class, path_of(&trace, segment)),
            (class, path),
            "block {block}"
        );
    }
}

#[test]
fn one_request_over_everything_is_cut_and_keeps_its_bytes() {
    let case = Case::new();
    let blocks = IMAGE_BYTES / BLOCK_BYTES;
    let trace = case.imported(&write_lines(1, 0, blocks), &["--offset", "1048576"]);
    let parts = segments(&trace, 0);
    let bytes: u64 = parts.iter().map(|part| u64::from(part.bytes)).sum();
    assert_eq!(bytes, IMAGE_BYTES);
    let of = |path| {
        let parts = parts
            .iter()
            .filter(|part| path_of(&trace, part) == Some(path));
        parts.map(|part| u64::from(part.bytes)).sum::<u64>()
    };
    assert_eq!(of("/movie.mp4"), 300_000u64.next_multiple_of(BLOCK_BYTES));
    assert_eq!(of("/data/app.db"), 40_000u64.next_multiple_of(BLOCK_BYTES));
}

#[test]
fn a_whole_disk_image_is_read_at_its_partition() {
    let case = Case::new();
    let partition = std::fs::read(case.path("image")).expect("read");
    let block = case.blocks("/movie.mp4")[0];
    let disk = [vec![0; OFFSET_BYTES as usize], partition].concat();
    std::fs::write(case.path("image"), disk).expect("write");
    let offsets = ["--offset", "1048576", "--image-offset", "1048576"];
    let trace = case.imported(&write_lines(1, block, 1), &offsets);
    assert_eq!(path_of(&trace, &segments(&trace, 0)[0]), Some("/movie.mp4"));
}

#[test]
fn the_account_of_lines_and_bytes_is_printed_as_json() {
    let case = Case::new();
    let block = case.blocks("/movie.mp4")[0];
    let output = case.import(
        &write_lines(1, block, 2),
        &["--offset", "1048576", "--json"],
    );
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["lines"]["read"], 4);
    assert_eq!(json["lines"]["kept"], 3);
    assert_eq!(json["lines"]["left_out"]["scheduler"], 1);
    assert_eq!(json["bytes"]["of_files"], 2048);
}

#[test]
fn skipped_events_fail_the_import_unless_they_are_allowed() {
    let case = Case::new();
    let text = write_lines(1, 1, 1) + "Skips: 3 forward (17 -   0.1%)\n";
    let output = case.import(&text, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).starts_with("lost 17 events"),
        "{}",
        said(&output)
    );
    std::fs::remove_dir_all(case.path("trace")).expect("it was written all the same");
    assert!(case.import(&text, &["--allow-loss"]).status.success());
}

/// Runs an import that must fail, and leave nothing behind.
fn refused(case: &Case, text: &str, options: &[&str]) -> (Option<i32>, String) {
    let output = case.import(text, options);
    assert!(!case.path("trace").exists());
    (output.status.code(), said(&output))
}

#[test]
fn bad_text_is_refused_and_leaves_nothing_behind() {
    let case = Case::new();
    let good = write_lines(1, 1, 1);
    for (text, options, status, expected) in [
        ("Q 0.1 8\n".to_owned(), &[][..], 2, "without -f"),
        (String::new(), &[], 2, "no event"),
        (
            format!("{good}8,0 1 2 x 7 Q W 8 + 8 [a]\n"),
            &[],
            2,
            "line 5, time",
        ),
        (good.clone(), &["--device", "8,1"], 2, "--device"),
        (good.clone(), &["--device", "sda"], 2, "two numbers"),
        (
            format!("{good}8,16 1 2 0.000000001 7 Q W 8 + 8 [a]\n"),
            &[],
            2,
            "--device",
        ),
        (
            good.clone(),
            &["--image-offset", "999999999999"],
            2,
            "--image-offset",
        ),
        (good, &["--image-offset", "4096"], 2, "no filesystem"),
    ] {
        let (code, said) = refused(&case, &text, options);
        assert_eq!(code, Some(status), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_damaged_superblock_is_named() {
    let case = Case::new();
    let mut image = std::fs::read(case.path("image")).expect("read");
    image[1024 + 0x20] ^= 1;
    std::fs::write(case.path("image"), image).expect("write");
    let (code, said) = refused(&case, &write_lines(1, 1, 1), &[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("s_checksum"), "{said}");
}

#[test]
fn a_directory_that_is_there_is_not_touched() {
    let case = Case::new();
    std::fs::create_dir(case.path("trace")).expect("a directory");
    let output = case.import(&write_lines(1, 1, 1), &[]);
    assert!(!output.status.success());
    assert!(is_empty(&case.path("trace")));
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("list").next().is_none()
}
