//! `iostep serve list` and `iostep serve show`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iostep_analyze::bench::Summary;
use iostep_analyze::report::bench;
use iostep_model::bench::Document;
use iostep_report::document::Detail;
use iostep_serve::log;
use iostep_serve::store::{Filter, Readers, Record, State, Submission};
use iostep_serve::upload::Id;

use super::{id, line, missing, open};
use crate::terminal;

/// Name the results that are kept, the newest first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep serve list --data results
  iostep serve list --data results --state quarantined --json")]
pub struct ListArgs {
    /// Directory of the results
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// Those of a state: valid, invalid, quarantined, delisted
    #[arg(long, value_name = "STATE")]
    state: Option<State>,

    /// Those of a test, by its name
    #[arg(long, value_name = "NAME")]
    test: Option<String>,

    /// Those of a phone's model or a storage part
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,

    /// Those before this number, as the last of an earlier list
    #[arg(long, value_name = "N")]
    before: Option<i64>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let readers = Readers::new(open(&args.data)?);
    let page = readers.list(&Filter {
        state: args.state,
        test: args.test.clone(),
        device: args.device.clone(),
        before: args.before,
        limit: args.limit,
        ..Filter::default()
    })?;
    match args.json {
        true => terminal::print_json(&terminal::json(&page))?,
        false => terminal::print(&page.results.iter().map(row).collect::<String>())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn row(submission: &Submission) -> String {
    let Submission {
        number,
        id,
        state,
        test,
        ..
    } = submission;
    let received = log::utc(submission.received.unsigned_abs());
    let device = device(submission);
    line(&format!(
        "{number:>8}  {received}  {state:11}  {id}  {device}  {test}"
    ))
}

/// The phone and its storage, as far as they are known.
fn device(submission: &Submission) -> String {
    let device = &submission.device;
    let known: Vec<&str> = [&device.vendor, &device.model, &device.part]
        .into_iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    match known[..] {
        [] => "unknown device".to_owned(),
        _ => known.join(" "),
    }
}

/// Show a result.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep serve show --data results 3f5a...
  iostep serve show --data results 3f5a... --json >result.json

The JSON is a file as of iostep bench -o.")]
pub struct ShowArgs {
    /// Directory of the results
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// The result's name, as iostep serve list has it
    #[arg(value_parser = id)]
    id: Id,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn show(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let readers = Readers::new(open(&args.data)?);
    let Record::Kept(submission, body) = readers.submission(&args.id)? else {
        return Err(missing(&args.id));
    };
    let result = Document::parse(Path::new(&submission.id), &body)?;
    let summary = Summary::of(&result);
    if args.json {
        let whole = serde_json::json!({
            "submission": submission, "result": result, "summary": summary
        });
        terminal::print_json(&terminal::json(&whole))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = row(&submission);
    for reason in &submission.reasons {
        text += &line(&format!("  {}: {}", reason.code, reason.text));
    }
    text += "\n";
    text += &bench::document(&result, &summary, false).text(Detail::Full, terminal::style());
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
