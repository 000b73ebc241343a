//! Reads of file pages that are mapped in pieces: they go by buffers, and are the file's all the same.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use iostep_kernel_tests::extents;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::score::Score;
use iostep_kernel_tests::sector_map::SectorMap;
use iostep_kernel_tests::stamp::BLOCK_BYTES;
use iostep_lab::Kind;
use iostep_model::table::Trace;
use iostep_model::{Class, Operation, SECTOR_BYTES, store};

use crate::case::Case;
use crate::stage::{self, Stage};

const BLOCKS: u64 = 400;

/// What is read, and how the filesystem is made.
struct Reading {
    name: &'static str,
    mkfs: &'static [&'static str],
    /// Blocks that are written, of how many.
    every: u64,
    /// The workload's word for it.
    how: &'static str,
}

const READINGS: [Reading; 3] = [
    Reading {
        name: "small writes into a file that is not in memory read the file",
        mkfs: &[],
        every: 1,
        how: "touch",
    },
    Reading {
        name: "a file with holes is read as itself",
        mkfs: &[],
        every: 2,
        how: "read",
    },
    Reading {
        name: "a file in blocks of 1 KiB is read as itself",
        mkfs: &["-b", "1024"],
        every: 2,
        how: "read",
    },
];

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut needs = stage::requirements(Kind::Ext4);
    needs.push(Requirement::Btf);
    let case = |reading: Reading| {
        let name = reading.name;
        Case::new(name, needs.clone(), move || read_back(&reading)).about("ext4 reads")
    };
    READINGS.into_iter().map(case).collect()
}

fn read_back(reading: &Reading) -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, reading.mkfs, "")?;
    let path = stage.root().join("file.db");
    let places = write_and_forget(&path, reading.every)?;
    stage.settle()?;
    let file = File::open(&path)?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let words = [
        env!("CARGO_BIN_EXE_workload"),
        reading.how,
        &path.to_string_lossy(),
    ];
    let command = words.map(str::to_owned);
    iostep::run(stage.trace(&output, &[], &command))?.success()?;
    let trace = store::read(&output)?;
    let score = judge(&trace, &places, fs::metadata(&path)?.ino());
    let read: u64 = places.iter().map(|(_, sectors, _)| sectors).sum();
    anyhow::ensure!(
        score.total() * 2 > read * SECTOR_BYTES,
        "only {score} of {read} sectors were read"
    );
    score.require("bytes read to file", 99.9)
}

/// Where in the file the blocks lie that were written.
fn write_and_forget(path: &Path, every: u64) -> anyhow::Result<SectorMap<u64>> {
    let file = File::create_new(path)?;
    for index in 0..BLOCKS {
        file.write_all_at(&[1; BLOCK_BYTES], index * every * BLOCK_BYTES as u64)?;
    }
    file.sync_all()?;
    let mut places = SectorMap::default();
    for extent in extents::of(&file)? {
        let sectors = extent.bytes / SECTOR_BYTES;
        places.insert(extent.physical / SECTOR_BYTES, sectors, extent.logical);
    }
    Ok(places)
}

fn judge(trace: &Trace, places: &SectorMap<u64>, inode: u64) -> Score {
    let mut score = Score::default();
    let reads = trace.requests.iter();
    let reads = reads.filter(|request| request.operation == Operation::Read);
    for segment in reads.flat_map(|request| trace.segments_of(request)) {
        for (first, sectors, logical) in places.iter() {
            let end = segment.sector + u64::from(segment.bytes) / SECTOR_BYTES;
            for sector in segment.sector.max(first)..end.min(first + sectors) {
                let file = segment.file.map(|row| trace.files[row as usize].key.inode);
                let inside = (sector - segment.sector) * SECTOR_BYTES;
                let offset = segment.file_offset_bytes.map(|offset| offset + inside);
                let expected = logical + (sector - first) * SECTOR_BYTES;
                let fault = match (segment.class, file == Some(inode), offset) {
                    (Class::FileData, true, Some(found)) if found == expected => None,
                    (class, _, found) => Some(format!("{}, offset {found:?}", class.name())),
                };
                score.count(SECTOR_BYTES, fault, || format!("{segment:?}"));
            }
        }
    }
    score
}
