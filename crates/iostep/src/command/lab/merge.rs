//! `iostep lab merge`: directories of results joined, as those of shards.

use std::path::PathBuf;
use std::process::ExitCode;

use iostep_lab::{matrix, results};
use iostep_model::printable;

use crate::terminal;

/// Join directories of results.
///
/// Of two results of a cell the one that is complete stays; two complete ones that differ are
/// refused, and then nothing is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  iostep lab run matrix --shard 1/2 --results a    (on one machine)
  iostep lab run matrix --shard 2/2 --results b    (on another)
  iostep lab merge a b --results all")]
pub struct Args {
    /// Directories that iostep lab run made
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,

    /// Where to put all of them; made if it is not there
    #[arg(long, value_name = "DIR")]
    results: PathBuf,

    /// Print every result as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (lab, all) = results::merge(&args.directories, &args.results)?;
    if args.json {
        terminal::print_json(&terminal::json(&all))?;
    } else {
        terminal::print(&format!(
            "{} of {} cells of {} have a result in {}\n",
            all.len(),
            lab.cells.len(),
            matrix::shown(&lab.name),
            printable(&args.results.display().to_string())
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
