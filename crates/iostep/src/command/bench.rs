//! `iostep bench`: generate file and SQLite workloads and measure them.

mod cell;
pub mod child;
mod generator;
mod job_file;
mod location;
mod matrix;
mod measure_args;
mod mobibench;
mod own_storage;
mod progress;
mod session;
mod show_result;
mod single;
mod watcher;

use std::io::IsTerminal;
use std::process::ExitCode;

use indicatif::ProgressBar;

pub(super) use cell::{check_arguments, complaint};
use generator::Generator;
pub(super) use location::Location;
use matrix::RunArgs;
use measure_args::Sandbox;
use mobibench::ProfileArgs;
pub(super) use own_storage::filesystem_like;
use show_result::ShowArgs;
pub(super) use single::{check_parent, show};

/// Generate file and SQLite workloads and measure them.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  iostep bench file /mnt --access random-write --sync fdatasync --time 10
  iostep bench sqlite /mnt --journal wal --repeat 5 -o wal.json
  iostep bench run jobs.toml --results results
  iostep bench --profile mobibench /mnt

Exit status: 0 done, 1 an operation failed or a signal ended it, 2 bad usage,
4 this machine cannot do it."
)]
pub struct Args {
    #[command(subcommand)]
    workload: Option<Workload>,

    #[command(flatten)]
    profile: Option<ProfileArgs>,
}

/// What is run.
#[derive(Clone, Debug, clap::Subcommand)]
enum Workload {
    #[command(flatten)]
    One(Generator),
    /// Run every combination of a job file
    Run(RunArgs),
    /// Show a result
    Show(ShowArgs),
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match &args.workload {
        Some(Workload::One(generator)) => generator.measure().sandbox.enter()?,
        _ => Sandbox::Auto.enter()?,
    }
    match (args.workload, args.profile) {
        (Some(Workload::Run(args)), _) => matrix::run(&args),
        (Some(Workload::Show(args)), _) => show_result::run(&args),
        (Some(Workload::One(generator)), _) => single::run(&generator),
        (None, Some(profile)) => mobibench::run(&profile),
        (None, None) => unreachable!("clap asks for one of the two"),
    }
}

/// A bar on the terminal; nothing where standard error is none.
pub(super) fn bar() -> ProgressBar {
    match std::io::stderr().is_terminal() {
        true => ProgressBar::new(0),
        false => ProgressBar::hidden(),
    }
}
