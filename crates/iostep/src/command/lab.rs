//! `iostep lab`: experiments on storage of their own.

mod guest;

use std::process::ExitCode;

/// Run experiments on storage of their own.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run a command in a guest under QEMU
    Guest(guest::Args),
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Guest(args) => guest::run(&args),
    }
}
