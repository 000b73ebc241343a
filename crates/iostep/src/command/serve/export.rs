//! `iostep serve export` and `iostep serve backup`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use iostep_model::bench::Document;
use iostep_model::hex;
use iostep_model::printable::Screen;
use iostep_model::publish;
use iostep_serve::store::{Filter, Readers, Record, State};

use super::{expect_elsewhere, line, open};
use crate::terminal;

/// Results that are read at once.
const PAGE: u32 = 500;

/// Write all results as lines of JSON.
///
/// Each line has `submission` and `result`, the newest first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep serve export --data results -o results.jsonl
  iostep serve export --data results --state valid -o - | wc -l")]
pub struct ExportArgs {
    /// Directory of the results
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// Where to: a file, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Those of a state: valid, invalid, quarantined, delisted
    #[arg(long, value_name = "STATE")]
    state: Option<State>,

    /// Print JSON: how many results it were
    #[arg(long)]
    json: bool,
}

pub fn export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    terminal::check_results(args.json, [&args.output])?;
    let store = open(&args.data)?;
    expect_elsewhere(&args.output, &store)?;
    let readers = Readers::new(store);
    let mut count = 0_u64;
    publish::write_with(&args.output, |out| -> Result<(), Failed> {
        let mut filter = Filter {
            state: args.state,
            limit: PAGE,
            ..Filter::default()
        };
        loop {
            let page = readers.list(&filter)?;
            for submission in page.results {
                let id = hex::decode(&submission.id).context("a name in the store")?;
                // One that was taken back meanwhile is none.
                let Record::Kept(submission, body) = readers.submission(&id)? else {
                    continue;
                };
                let result: Document =
                    serde_json::from_slice(&body).context("a result in the store")?;
                let both = serde_json::json!({ "submission": submission, "result": result });
                // It may be a terminal, and the words in it are others'.
                writeln!(Screen::json(&mut *out), "{both}").context("cannot write")?;
                count += 1;
            }
            filter.before = page.next_before;
            if filter.before.is_none() {
                return Ok(());
            }
        }
    })
    .map_err(|Failed(error)| error)?;
    let shown = args.output.display();
    terminal::print_either(
        [&args.output],
        args.json,
        || terminal::json(&serde_json::json!({ "results": count })),
        || line(&format!("{count} results in {shown}")),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Whatever keeps the results from being written.
struct Failed(anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for Failed {
    fn from(error: E) -> Failed {
        Failed(error.into())
    }
}

/// Copy the store while it is used, to a plain SQLite database.
///
/// The copy is of one moment, and any SQLite reads it. To use it, put it into an empty directory as
/// store.db.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  iostep serve backup --data results copy.db")]
pub struct BackupArgs {
    /// Directory of the results
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// The new file
    file: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn back_up(args: &BackupArgs) -> anyhow::Result<ExitCode> {
    let store = open(&args.data)?;
    if args.file.symlink_metadata().is_ok() {
        let file = args.file.display();
        let error = anyhow!("{file}: there is something of that name; name a new file");
        return Err(crate::error::bad_input(error));
    }
    expect_elsewhere(&args.file, &store)?;
    store.back_up(&args.file)?;
    let bytes = args
        .file
        .metadata()
        .context("cannot look at the copy")?
        .len();
    let file = args.file.display().to_string();
    match args.json {
        true => terminal::print_json(&terminal::json(
            &serde_json::json!({ "file": file, "bytes": bytes }),
        ))?,
        false => terminal::print(&line(&format!("{file}: {bytes} bytes")))?,
    }
    Ok(ExitCode::SUCCESS)
}
