//! `iostep fleet`: the traces and results of many devices as tables that engines of SQL read.

mod add;
mod ask;
mod compact;
mod info;
mod query;
mod sql;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use iostep_model::error::{Error, Result};

/// Gather traces and results of many devices as tables for SQL.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep fleet add app.iostep wal.json lake
  iostep fleet add phone-7/*.iostep lake --device phone-7
  iostep fleet compact lake --date 2026-11-26
  iostep fleet info lake
  iostep fleet ask fsync-by-part lake
  iostep fleet sql lake 'SELECT count(*) FROM traces'

Exit status: 0 done, 1 failed or interrupted, 2 bad usage or input.
docs/fleet.md explains it; docs/format-lake.md names tables and columns.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Add traces and results of bench; what is there already is not added again
    Add(add::Args),
    /// Merge the small files of each date into few large ones
    Compact(compact::Args),
    /// Show what a lake holds
    Info(info::Args),
    /// Ask a lake one of ten questions
    Ask(ask::Args),
    /// Ask a lake in SQL
    Sql(sql::Args),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Add(args) => add::run(args),
        Command::Compact(args) => compact::run(args),
        Command::Info(args) => info::run(args),
        Command::Ask(args) => ask::run(args),
        Command::Sql(args) => sql::run(args),
    }
}

/// Asked between parts of what takes long. Errors: the end was asked for.
pub fn go_on(lake: &Path, is_asked_to_end: bool) -> Result<()> {
    match is_asked_to_end {
        true => Err(Error::io(lake, "go on")(io::Error::other(
            "interrupted; what was not done yet is as it was",
        ))),
        false => Ok(()),
    }
}
