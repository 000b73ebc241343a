//! `iostep bench show`: a result that is there already.

use std::path::PathBuf;
use std::process::ExitCode;

use iostep_analyze::bench::strip;
use iostep_model::bench::Document;

use super::single;
use crate::terminal;

/// Which result, and as what.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep bench show wal.json
  iostep bench show wal.json --to-send")]
pub struct ShowArgs {
    /// A file of -o, or the `result` of one
    #[arg(value_name = "RESULT")]
    file: PathBuf,

    /// Print JSON, the summary worked out anew
    #[arg(long)]
    json: bool,

    /// Write the result as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print what iostep submit would send of it, as JSON
    #[arg(long, conflicts_with_all = ["json", "html"])]
    to_send: bool,
}

/// Shows a result.
///
/// Errors: those of reading and writing.
pub fn run(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    if !args.to_send {
        return single::show(&args.file, args.html.as_deref(), args.json);
    }
    let mut document = Document::read(&args.file)?;
    strip(&mut document);
    terminal::print_json(&terminal::json(&document))?;
    Ok(ExitCode::SUCCESS)
}
