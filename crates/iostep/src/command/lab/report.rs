//! `iostep lab report`: what a directory of results says, beside what the papers say.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use iostep_analyze::lab::Report;
use iostep_analyze::report;
use iostep_lab::results;
use iostep_model::lab::{CellResult, Lab};
use iostep_model::publish;
use iostep_report::document::Detail;

use crate::terminal::{self, say};

/// Show what the results of a lab say.
///
/// The tables and figures of the papers that the lab repeats, with their numbers beside, and
/// whether what they found is there. Results may still be incomplete.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep lab report matrix
  iostep lab report matrix --html matrix.html
  iostep lab report matrix --json | jq '.findings[] | {name, verdict}'

Exit status 1: a cell that should have a result has none.")]
pub struct Args {
    /// Directory that iostep lab run made
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Write one self-contained page with the figures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// For another command that was given such a directory.
    pub(super) fn new(directory: &Path, html: Option<&Path>, json: bool) -> Args {
        Args {
            directory: directory.to_owned(),
            html: html.map(Path::to_owned),
            json,
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (lab, cells) = results::read(&args.directory)?;
    let report = show(&lab, &cells, args.html.as_deref(), args.json)?;
    Ok(match report.is_complete() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Writes the page that was asked for, and prints the rest.
pub(super) fn show(
    lab: &Lab,
    cells: &[CellResult],
    page: Option<&Path>,
    json: bool,
) -> anyhow::Result<Report> {
    terminal::check_results(json, page)?;
    let report = Report::of(lab, cells);
    let document = report::lab::document(&report);
    if let Some(path) = page {
        publish::write(path, document.html().as_bytes())
            .with_context(|| format!("{}: cannot write", path.display()))?;
        say!("wrote {}", path.display());
    }
    if json {
        terminal::print_json(&terminal::json(&report))?;
    } else if page.is_none() {
        terminal::print(&document.text(Detail::Full, terminal::style()))?;
    }
    Ok(report)
}
