//! One trace of the workload, shared by the tests that judge it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use iostep_kernel_tests::compare::Comparison;
use iostep_kernel_tests::counters;
use iostep_kernel_tests::extents::{self, Piece};
use iostep_kernel_tests::facts::Facts;
use iostep_kernel_tests::image::Image;
use iostep_kernel_tests::iostep::{self, Outcome};
use iostep_kernel_tests::stack::{Below, Places};
use iostep_kernel_tests::stamp::Stamps;
use iostep_kernel_tests::truth::{self, Truth};
use iostep_kernel_tests::written::Written;
use iostep_lab::Kind;
use iostep_model::manifest::Counters;
use iostep_model::store;
use iostep_model::table::{Segment, Trace};
use iostep_model::{Class, SECTOR_BYTES, SyncKind};

use crate::stage::Stage;

/// What to trace.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name in the tests' names.
    pub name: &'static str,
    pub kind: Kind,
    /// Arguments of its mkfs.
    pub mkfs: &'static [&'static str],
    /// Mount options.
    pub mount: &'static str,
    /// `--backend`.
    pub backend: &'static str,
    /// What lies between the filesystem and its disks.
    pub below: Below,
    /// Modes of the workload, or with a minus those that it leaves out; none for all.
    pub modes: &'static [&'static str],
    /// Where the blocks are looked for.
    pub found: FoundBy,
}

/// How stamped blocks are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// In the raw image, wherever they lie.
    Image,
    /// In the files, at the place that the filesystem tells: what lies there is encrypted, or in
    /// blocks smaller than a stamp.
    Files,
    /// The same, in blocks that can be compressed.
    CompressedFiles,
}

/// A trace and everything that it is judged by.
pub struct Recording {
    /// What the command printed.
    pub outcome: Outcome,
    /// What it recorded.
    pub trace: Trace,
    /// What lay below the filesystem.
    pub below: Below,
    /// What the disks counted meanwhile.
    pub counted: Counters,
    /// The trace with the sectors of the device that the filesystem lies on.
    pub above: Trace,
    facts: Facts,
    /// How its blocks were found.
    pub found: FoundBy,
    stamps: Stamps,
    truth: Truth,
    /// btrfs: where the chunk tree puts the copies of the addresses in the trace.
    pub copies: BTreeMap<u64, Vec<u64>>,
}

impl Recording {
    /// The segments of all writes, in the order of their requests.
    pub fn writes(&self) -> impl Iterator<Item = &Segment> {
        let requests = self.trace.requests.iter();
        let writes = requests.filter(|request| request.operation.is_write());
        writes.flat_map(|request| self.trace.segments_of(request))
    }

    /// Bytes by class of what was written because of each sync call of a kind, in the order of calls.
    pub fn written_for(&self, kind: SyncKind) -> Vec<BTreeMap<Class, u64>> {
        let mut written = BTreeMap::new();
        for (row, _) in (0u32..)
            .zip(&self.trace.syncs)
            .filter(|(_, s)| s.kind == kind)
        {
            written.insert(row, BTreeMap::new());
        }
        for segment in self.writes() {
            let classes = segment.cause.and_then(|cause| written.get_mut(&cause));
            if let Some(classes) = classes {
                *classes.entry(segment.class).or_insert(0) += u64::from(segment.bytes);
            }
        }
        written.into_values().collect()
    }

    /// Runs the workload under the command, then reads the trace, the image and the counters.
    pub fn make(scenario: &Scenario) -> anyhow::Result<Recording> {
        let below = scenario.below;
        let stage = Stage::on(below, scenario.kind, scenario.mkfs, scenario.mount)?;
        let directory = tempfile::tempdir()?;
        let output = directory.path().join("run.iostep");
        let before = counters::of_all(stage.disks())?;
        let outcome = run(scenario, &stage, &output)?;
        let after = counters::of_all(stage.disks())?;
        keep(scenario, &output)?;
        let trace = store::read(&output).context("the trace")?;
        let status = trace.manifest.command.as_ref().map(|c| c.exit_status);
        anyhow::ensure!(status == Some(Some(0)), "the workload: {status:?}");
        let pieces = match scenario.found {
            FoundBy::Image => Vec::new(),
            _ => extents::stamps_below(stage.root())?,
        };
        let above = lifted(&trace, &stage.places()?)?;
        let remains = stage.unmount()?;
        let written = Written::of(&above).sectors();
        let kind = scenario.kind.name();
        let homes: Vec<u64> = trace.segments.iter().filter_map(|s| s.home).collect();
        Ok(Recording {
            outcome,
            counted: counters::difference(before, after),
            truth: Truth::read(kind, &remains.image, &remains.facts, &written)?,
            found: scenario.found,
            stamps: match scenario.found {
                FoundBy::Image => remains.image.stamp_map()?,
                _ => stamps_of(scenario.kind, &remains.image, &pieces)?,
            },
            facts: remains.facts,
            copies: match scenario.kind {
                Kind::Btrfs => truth::btrfs::copies(&remains.image, &homes)?,
                _ => BTreeMap::new(),
            },
            trace,
            below,
            above,
        })
    }

    /// Calls `judge` with the trace beside its truth.
    pub fn compare<T>(&self, judge: impl FnOnce(&Comparison<'_>) -> T) -> T {
        self.compare_other(&self.above, judge)
    }

    /// Calls `judge` with another trace beside the truth of this one.
    pub fn compare_other<T>(&self, trace: &Trace, judge: impl FnOnce(&Comparison<'_>) -> T) -> T {
        let written = Written::of(trace);
        let (facts, stamps, truth) = (&self.facts, &self.stamps, &self.truth);
        judge(&Comparison::new(trace, &written, facts, stamps, truth))
    }

    /// What the workload said.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// The pieces by their sectors; btrfs's own addresses are those of its chunk tree.
fn stamps_of(kind: Kind, image: &Image, pieces: &[Piece]) -> anyhow::Result<Stamps> {
    let mut stamps = Stamps::default();
    let addresses: Vec<u64> = pieces.iter().map(|piece| piece.physical).collect();
    let copies = match kind {
        Kind::Btrfs => truth::btrfs::copies(image, &addresses)?,
        _ => BTreeMap::new(),
    };
    for piece in pieces {
        let plain = vec![piece.physical / SECTOR_BYTES];
        for sector in copies.get(&piece.physical).unwrap_or(&plain) {
            stamps.insert(*sector, piece.sectors, piece.found);
        }
    }
    Ok(stamps)
}

/// A trace with the sectors of the device above in the place of the disks'. What lies nowhere on
/// it is left out: labels and headers of the devices in between.
fn lifted(trace: &Trace, places: &Places) -> anyhow::Result<Trace> {
    let mut above = trace.clone();
    let mut outside = 0;
    for request in &mut above.requests {
        let device = trace.manifest.device_at(request.device);
        let disk = format!("{}:{}", device.major, device.minor);
        let first = request.first_segment as usize;
        let segments = first..first + usize::from(request.segments);
        request.sector = places.above(&disk, request.sector).unwrap_or(0);
        for segment in &mut above.segments[segments] {
            match places.above(&disk, segment.sector) {
                Some(sector) => segment.sector = sector,
                None => {
                    outside += u64::from(segment.bytes);
                    segment.bytes = 0;
                }
            }
        }
    }
    println!("    {outside} bytes lie nowhere on the device above");
    Ok(above)
}

fn run(scenario: &Scenario, stage: &Stage, output: &Path) -> anyhow::Result<Outcome> {
    let flags = ["--settle", "--backend", scenario.backend];
    let mut command = stage.workload(scenario.modes);
    if scenario.found == FoundBy::CompressedFiles {
        let setting = ["env", "IOSTEP_COMPRESSIBLE=1"].map(str::to_owned);
        command.splice(..0, setting);
    }
    iostep::run(stage.trace(output, &flags, &command))?.success()
}

/// Copies the trace to a directory that outlives the tests, if `IOSTEP_KEEP` names one.
fn keep(scenario: &Scenario, output: &Path) -> anyhow::Result<()> {
    let Some(directory) = std::env::var_os("IOSTEP_KEEP") else {
        return Ok(());
    };
    let target = Path::new(&directory).join(scenario.name);
    std::fs::create_dir_all(&target)?;
    for entry in std::fs::read_dir(output)? {
        let entry = entry?;
        std::fs::copy(entry.path(), target.join(entry.file_name()))?;
    }
    Ok(())
}
