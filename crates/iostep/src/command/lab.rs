//! `iostep lab`: filesystems x journal modes x optimisations, on storage of their own.

mod guest;
mod list;
mod merge;
mod report;
mod run;
mod source;

use std::path::Path;
use std::process::ExitCode;

/// Run a matrix of experiments, each on storage of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep lab list
  iostep lab run matrix --results matrix
  iostep lab run my.toml --results my --on /dev/sdb --destroy-data
  iostep lab report matrix --html matrix.html

Exit status: 0 done, 1 a cell failed or a signal ended it, 2 bad usage,
4 this machine cannot do it. docs/lab.md explains it.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Name the labs that are built in
    List(list::Args),
    /// Run the cells of a lab that have no result yet
    Run(Box<run::Args>),
    /// Join directories of results
    Merge(merge::Args),
    /// Show what a directory of results says
    Report(report::Args),
    /// Run a command in a guest under QEMU
    Guest(guest::Args),
}

/// Shows a directory of results as `iostep lab report` does.
///
/// Errors: those of `iostep lab report`.
pub(super) fn show(directory: &Path, page: Option<&Path>, json: bool) -> anyhow::Result<ExitCode> {
    report::run(&report::Args::new(directory, page, json))
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::List(args) => list::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Guest(args) => guest::run(&args),
    }
}
