//! The `iostep` command: where every byte of a database's I/O goes, and how to take the waste
//! away.

// What is printed goes through `terminal`, which keeps it from steering one.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod child;
mod command;
mod error;
mod input;
mod interrupt;
mod recording;
mod terminal;
mod trace_dir;
mod version;

use std::process::ExitCode;

use clap::Parser;
use iostep_model::printable;

/// Shows where every byte of a database's I/O goes, and takes the waste away.
#[derive(Debug, Parser)]
#[command(
    name = "iostep",
    version,
    long_version = version::long(),
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
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => refuse(&error),
    };
    match command::run(cli.command) {
        Ok(code) => code,
        Err(error) => {
            terminal::say_lines(&format!("iostep: {}\n", error::describe(&error)));
            error::exit_code(&error)
        }
    }
}

/// Shows the help that was asked for, or what is wrong with the arguments, and ends.
fn refuse(error: &clap::Error) -> ! {
    // What clap quotes is told apart from its colours only before it is quoted.
    let arguments = std::env::args_os();
    let shown = arguments.map(|word| printable(&word.to_string_lossy()).into_owned());
    match Cli::try_parse_from(shown) {
        Err(shown) if shown.kind() == error.kind() => shown.exit(),
        _ => {
            terminal::say_lines(&error.render().to_string());
            std::process::exit(error.exit_code())
        }
    }
}
