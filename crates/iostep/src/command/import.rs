//! `iostep import`: blkparse text and an image of the filesystem become a trace.

mod manifest;

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::error::bad_input;
use crate::input;
use crate::terminal;

use anyhow::{Context, bail};
use iostep_analyze::attribute;
use iostep_analyze::attribute::log_image::{self, Head};
use iostep_analyze::attribute::owner_map::{self, Explained};
use iostep_fs::{Found, Kind, OwnerMap, ReadAt, Section, ext4, fat};
use iostep_model::event::Event;
use iostep_model::printable;
use iostep_model::store;
use iostep_model::table::Trace;
use iostep_model::units;
use iostep_trace::blkparse::{self, Device, Ledger};

/// How many problems of the image are printed.
const SHOWN_PROBLEMS: usize = 5;

/// Make a trace of blkparse text and an image of the filesystem.
///
/// The files are found in the image as it is afterwards: a block that was freed since has no
/// owner, and one that was used again has its new one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  blkparse -i phone > phone.txt
  iostep import phone.txt --image userdata.img -o phone.iostep
  iostep import sda.txt --image /dev/sda2 -o sda2.iostep

docs/import.md explains what such a trace can tell and what it cannot.")]
pub struct Args {
    /// What blkparse printed, in its default format
    text: PathBuf,

    /// Image or partition with the filesystem, not mounted
    #[arg(long, value_name = "IMAGE")]
    image: PathBuf,

    /// Directory to make for the trace
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Where the filesystem begins on the traced device [default: where the partition IMAGE does,
    /// else 0]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    offset: Option<u64>,

    /// Where the filesystem begins in IMAGE
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = units::parse_bytes)]
    image_offset: u64,

    /// The device to take, if the text has several
    #[arg(long, value_name = "MAJOR,MINOR", value_parser = device)]
    device: Option<Device>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Exit with status 0 even if events were lost
    #[arg(long)]
    allow_loss: bool,
}

fn device(text: &str) -> Result<Device, String> {
    let numbers = text.split_once(',').or_else(|| text.split_once(':'));
    numbers
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| "two numbers like 8,0".to_owned())
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.output.exists() {
        bail!(
            "{}: already there; choose another directory with --output",
            args.output.display()
        );
    }
    input::expect(&args.text, &[input::Kind::Blkparse])?;
    let image = Image::read(&args).map_err(bad_input)?;
    let recording = blkparse::read(&args.text, args.device).map_err(bad_input)?;
    let manifest = manifest::of(&recording, image.found.as_ref(), image.place());
    let mut events: Vec<Event> = recording.events;
    // blkparse merges what the CPUs recorded, and lets late lines through.
    events.sort_by_key(Event::mono_ns);
    let mut trace = attribute::assemble(manifest, &events);
    if let Some(owners) = &image.owners {
        owner_map::apply(&mut trace, owners);
    }
    if image.has_jbd2_blocks_only {
        log_image::apply(&mut trace, |block| image.head(block));
    }
    publish(&args.output, &trace)?;
    let outcome = Outcome {
        output: args.output,
        explained: Explained::of(&trace),
        requests: trace.requests.len(),
        lost_events: trace.manifest.check.lost_events,
        ledger: recording.ledger,
        warnings: image.warnings,
    };
    if args.json {
        terminal::print_json(&outcome.json())?;
    } else {
        terminal::print(&outcome.text())?;
    }
    let failed = outcome.lost_events > 0 && !args.allow_loss;
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Writes the trace, whole or not at all.
fn publish(directory: &Path, trace: &Trace) -> anyhow::Result<()> {
    std::fs::create_dir(directory)
        .with_context(|| format!("{}: cannot make the directory", directory.display()))?;
    let written = store::write(directory, trace);
    if written.is_err() {
        // The reason why writing failed is worth more than why removing did.
        let _ = std::fs::remove_dir_all(directory);
    }
    Ok(written?)
}

/// The filesystem that the text is about.
struct Image {
    source: Section<File>,
    start_bytes: u64,
    size_bytes: u64,
    /// Each block of the journal is a block of jbd2 or a copy of another block.
    has_jbd2_blocks_only: bool,
    found: Option<Found>,
    owners: Option<OwnerMap>,
    warnings: Vec<String>,
}

impl Image {
    fn read(args: &Args) -> anyhow::Result<Image> {
        let name = args.image.display();
        let file = File::open(&args.image).with_context(|| format!("{name}: cannot open"))?;
        let start_bytes = match args.offset {
            Some(offset) => offset,
            None => partition_start_bytes(&file)?,
        };
        let source = Section::from(file, args.image_offset)
            .with_context(|| format!("{name}: --image-offset {}", args.image_offset))?;
        let size_bytes = source.size_bytes()?;
        let found = iostep_fs::layout(&source).with_context(|| name.to_string())?;
        let mut image = Image {
            source,
            start_bytes,
            size_bytes,
            found,
            has_jbd2_blocks_only: false,
            owners: None,
            warnings: Vec::new(),
        };
        match image.found.as_ref().map(|found| found.kind) {
            Some(Kind::Ext2 | Kind::Ext3 | Kind::Ext4) => {
                image
                    .read_ext4(&args.image)
                    .with_context(|| name.to_string())?;
            }
            Some(Kind::Fat) => {
                image
                    .read_fat(&args.image)
                    .with_context(|| name.to_string())?;
            }
            Some(kind) => image.warn(format!(
                "{name}: {kind}: only the filesystem's fixed places are known; files need ext4 or \
                 FAT"
            )),
            None => bail!("{name}: no filesystem found; --image-offset says where it begins"),
        }
        Ok(image)
    }

    fn read_ext4(&mut self, path: &Path) -> iostep_fs::Result<()> {
        let filesystem = ext4::Ext4::open(&self.source)?;
        let features = filesystem.superblock().features;
        let owners = ext4::owners(&filesystem)?;
        if features.needs_recovery() {
            self.warn(format!(
                "{}: its journal was not replayed, so newer files may be missing; unmount it, or \
                 run e2fsck on a copy",
                path.display()
            ));
        }
        self.warn_of_problems(&owners, path);
        self.has_jbd2_blocks_only = !features.has_fast_commit();
        self.owners = Some(owners);
        Ok(())
    }

    fn read_fat(&mut self, path: &Path) -> iostep_fs::Result<()> {
        let filesystem = fat::Fat::open(&self.source)?;
        let owners = fat::owners(&filesystem)?;
        self.warn_of_problems(&owners, path);
        self.owners = Some(owners);
        Ok(())
    }

    /// The first bytes of a filesystem block.
    fn head(&self, block: u64) -> Option<Head> {
        let block_bytes = u64::from(self.found.as_ref()?.block_bytes);
        let mut head = Head::default();
        let offset_bytes = block.checked_mul(block_bytes)?;
        self.source.read_exact_at(offset_bytes, &mut head).ok()?;
        Some(head)
    }

    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    fn warn_of_problems(&mut self, owners: &OwnerMap, path: &Path) {
        let name = path.display();
        for problem in owners.problems.iter().take(SHOWN_PROBLEMS) {
            self.warn(format!("{name}: {problem}"));
        }
        if let Some(more) = owners.problems.len().checked_sub(SHOWN_PROBLEMS + 1) {
            self.warn(format!("{name}: and {} more problems", more + 1));
        }
        if owners.shared_blocks > 0 {
            let blocks = owners.shared_blocks;
            self.warn(format!(
                "{name}: {blocks} blocks are claimed by more than one file"
            ));
        }
    }

    fn place(&self) -> manifest::DeviceRange {
        manifest::DeviceRange {
            start_bytes: self.start_bytes,
            size_bytes: self.size_bytes,
        }
    }
}

/// Where a partition begins on its disk; 0 for what is no partition.
fn partition_start_bytes(file: &File) -> anyhow::Result<u64> {
    let metadata = file.metadata()?;
    if !metadata.file_type().is_block_device() {
        return Ok(0);
    }
    let device = metadata.rdev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    // Only partitions have this file.
    let path = format!("/sys/dev/block/{major}:{minor}/start");
    match std::fs::read_to_string(&path) {
        Ok(sectors) => {
            let sectors: u64 = sectors.trim().parse().with_context(|| path)?;
            Ok(sectors * iostep_model::SECTOR_BYTES)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error).with_context(|| path),
    }
}

struct Outcome {
    output: PathBuf,
    requests: usize,
    explained: Explained,
    lost_events: u64,
    ledger: Ledger,
    warnings: Vec<String>,
}

impl Outcome {
    fn text(&self) -> String {
        let mut lines = Vec::new();
        if self.lost_events > 0 {
            lines.push(format!("lost {} events, says blkparse", self.lost_events));
        }
        lines.extend(
            self.warnings
                .iter()
                .map(|warning| format!("warning: {warning}")),
        );
        let sums = &self.explained;
        let part = |bytes: u64, of: &str| {
            let percent = 100.0 * bytes as f64 / sums.bytes.max(1) as f64;
            format!("  {bytes:>14} bytes {percent:>6.2} % {of}")
        };
        lines.push(format!("{}", self.ledger));
        lines.push(format!("{} requests, {} bytes:", self.requests, sums.bytes));
        lines.push(part(sums.of_files, "of files"));
        lines.push(part(sums.of_layout, "of the filesystem's own structures"));
        lines.push(part(sums.free, "of blocks that are free now"));
        lines.push(part(sums.unknown, "unknown"));
        lines.push(format!("wrote {}", self.output.display()));
        lines.iter().map(|line| printable(line) + "\n").collect()
    }

    fn json(&self) -> String {
        let left_out: serde_json::Map<String, serde_json::Value> = self
            .ledger
            .left_out
            .iter()
            .map(|(reason, lines)| (reason.name().to_owned(), (*lines).into()))
            .collect();
        serde_json::json!({
            "output": self.output,
            "requests": self.requests,
            "bytes": self.explained,
            "lost_events": self.lost_events,
            "lines": {
                "read": self.ledger.lines,
                "kept": self.ledger.kept,
                "left_out": left_out,
            },
            "warnings": self.warnings,
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_two_numbers() {
        assert_eq!(device("8,16"), Ok((8, 16)));
        assert_eq!(device("8:16"), Ok((8, 16)));
        for wrong in ["", "8", "8,", "sda", "8,-1"] {
            assert!(device(wrong).is_err(), "{wrong}");
        }
    }
}
