//! The `iostep` command: where every byte of a database's I/O goes, and how to take the waste
//! away.

mod command;
mod input;
mod interrupt;
mod recording;
mod terminal;
mod trace_dir;

use std::process::ExitCode;

use clap::Parser;

/// Shows where every byte of a database's I/O goes, and takes the waste away.
#[derive(Debug, Parser)]
#[command(
    name = "iostep",
    version,
    max_term_width = 80,
    after_help = "\
Examples:
  iostep demo
  iostep trace /var/lib/app -o app.iostep --settle -- ./app --once
  iostep report app.iostep --html app.html
  iostep explain app.db \"DELETE FROM notes\" --journal delete,wal
  iostep bench file /mnt --access random-write --sync fdatasync --time 10

Exit status: 0 done, 1 failed, 2 bad usage, 4 this machine cannot do it."
)]
struct Cli {
    #[command(subcommand)]
    command: command::Command,
}

fn main() -> ExitCode {
    match command::run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("iostep: {}", command::describe(&error));
            command::exit_code(&error)
        }
    }
}
