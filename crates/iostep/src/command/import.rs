//! `iostep import`: what others recorded of block I/O and an image of the filesystem become a trace.

mod image;
mod manifest;
mod places;
mod recordings;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::error::bad_input;
use crate::terminal;

use anyhow::{Context, bail};
use iostep_analyze::attribute;
use iostep_analyze::attribute::owner_map::{self, Explained};
use iostep_analyze::attribute::{log_image, volumes};
use iostep_model::printable;
use iostep_model::store;
use iostep_model::table::Trace;
use iostep_model::units;
use iostep_trace::blkparse::{Device, Ledger};

/// Make a trace of what blktrace, the kernel or fio recorded, and an image of the filesystem.
///
/// The files are found in the image as it is afterwards: a block that was freed since has no
/// owner, and one that was used again has its new one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  blkparse -i phone > phone.txt
  iostep import phone.txt --image userdata.img -o phone.iostep
  iostep import sda.blktrace.0 --image /dev/sda2 -o sda2.iostep
  iostep import sda.txt --image /dev/sda2 -o sda2.iostep
  iostep import mmcblk0.txt --image mmcblk0.img -o phone.iostep
  iostep import mmcblk0.txt --image system.img --offset 64MiB --image userdata.img --offset 3GiB -o phone.iostep

docs/import.md explains what such a trace can tell and what it cannot.")]
pub struct Args {
    /// What blkparse printed, in its default format; blktrace's files, of which one or the name
    /// before `.blktrace.` is enough; block events of the kernel as tracefs, trace-cmd report or
    /// perf script print them; fio's log of a block device. `-` is standard input
    #[arg(value_name = "RECORDING", required = true)]
    texts: Vec<PathBuf>,

    /// Image or partition with the filesystem, not mounted; or of a whole disk with a partition
    /// table, for all of its filesystems. May be given several times, for several filesystems
    #[arg(long, value_name = "IMAGE", required = true)]
    image: Vec<PathBuf>,

    /// Directory to make for the trace
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Where the filesystem, or the image of a whole disk, begins on the traced device [default:
    /// where the partition IMAGE does, else 0]; as many as images, in the same order
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    offset: Vec<u64>,

    /// Where the filesystem begins in IMAGE [default: 0]; as many as images, in the same order
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    image_offset: Vec<u64>,

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
    let recordings = recordings::open(&args.texts)?;
    let images = image::read(&args).map_err(bad_input)?;
    let recording = recordings.read(args.device).map_err(bad_input)?;
    let doubts = places::doubts(&images, &recording.events);
    let manifest = manifest::of(&recording, &images);
    let mut trace = attribute::assemble(manifest, &recording.events);
    volumes::place(&mut trace);
    for (number, image) in (0..).zip(&images.all) {
        let volume = images.are_several.then_some(number);
        if let Some(owners) = &image.owners {
            owner_map::apply(&mut trace, volume, owners);
        }
        if image.has_jbd2_blocks_only {
            log_image::apply(&mut trace, volume, |block| image.head(block));
        }
    }
    publish(&args.output, &trace)?;
    let outcome = Outcome {
        output: args.output,
        explained: Explained::of(&trace),
        requests: trace.requests.len(),
        lost_events: trace.manifest.check.lost_events,
        ledger: recording.ledger,
        warnings: [recording.unrecorded, images.warnings, doubts].concat(),
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
            lines.push(format!(
                "lost {} events, says the recording",
                self.lost_events
            ));
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
