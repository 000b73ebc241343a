//! `iostep serve quarantine`, `delist` and `restore`: what an operator decides about a result.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iostep_model::hex;
use iostep_serve::store::{Change, State};
use iostep_serve::upload::Id;

use super::{expect_done, id, line, open};
use crate::terminal;

/// A reason is shown in one line.
const MOST_LETTERS: usize = 500;

/// Keep a result out of the rankings, for a reason that everybody sees.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep serve quarantine --data results 3f5a... --reason 'twice as fast as any'
  iostep serve delist --data results 3f5a... --reason 'made by hand'")]
pub struct ReasonArgs {
    /// Directory of the results
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// The result's name, as iostep serve list has it
    #[arg(value_parser = id)]
    id: Id,

    /// Why, in words that are shown with the result
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Let a result count again, unless its own figures speak against it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  iostep serve restore --data results 3f5a...")]
pub struct RestoreArgs {
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

/// Why, as an argument.
fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err("say why; everybody sees it".into()),
        count if count > MOST_LETTERS => Err(format!("at most {MOST_LETTERS} letters")),
        _ => Ok(text.to_owned()),
    }
}

pub fn quarantine(args: &ReasonArgs) -> anyhow::Result<ExitCode> {
    decide(
        &args.data,
        args.id,
        (State::Quarantined, &args.reason),
        args.json,
    )
}

pub fn delist(args: &ReasonArgs) -> anyhow::Result<ExitCode> {
    decide(
        &args.data,
        args.id,
        (State::Delisted, &args.reason),
        args.json,
    )
}

pub fn restore(args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    decide(&args.data, args.id, (State::Valid, ""), args.json)
}

fn decide(
    data: &Path,
    id: Id,
    (state, reason): (State, &str),
    json: bool,
) -> anyhow::Result<ExitCode> {
    let store = open(data)?;
    let outcome = store.change(&Change::Decide {
        id,
        state,
        reason: reason.to_owned(),
    })?;
    expect_done(outcome, &id)?;
    let readers = iostep_serve::store::Readers::new(store);
    // It may be invalid by its own figures.
    let state = match readers.submission(&id)? {
        iostep_serve::store::Record::Kept(submission, _) => submission.state,
        _ => state,
    };
    let name = hex::encode(&id);
    match json {
        true => terminal::print_json(&terminal::json(
            &serde_json::json!({ "id": name, "state": state }),
        ))?,
        false => terminal::print(&line(&format!("{name} is {state}")))?,
    }
    Ok(ExitCode::SUCCESS)
}
