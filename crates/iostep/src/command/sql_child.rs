//! `iostep __sql-child`: the process in which `explain` and `demo` run SQL.

use std::process::ExitCode;

/// It takes its orders from standard input.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Serves until standard input ends.
pub fn run(_: Args) -> anyhow::Result<ExitCode> {
    iostep_load::script::serve(std::io::stdin(), std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
