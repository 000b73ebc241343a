//! The commands `iostep`: where every byte of a database's I/O goes, and how to take the waste
//! away; and `iostep-bench`: the part of it that needs no BPF. Without the feature `trace` there is
//! only the second.

// What is printed goes through `terminal`, which keeps it from steering one.
#![deny(clippy::print_stdout, clippy::print_stderr)]
// What both share has functions for commands that `iostep` alone has.
#![cfg_attr(not(feature = "trace"), allow(dead_code, unused_imports))]

#[cfg(feature = "trace")]
mod child;
mod command;
#[cfg(feature = "trace")]
mod disk_health;
mod error;
mod input;
mod interrupt;
#[cfg(feature = "trace")]
mod ledger;
mod packed;
#[cfg(feature = "trace")]
mod passing;
#[cfg(feature = "trace")]
mod recording;
mod shell;
mod terminal;
#[cfg(feature = "trace")]
mod trace_dir;
mod version;

use std::process::ExitCode;

use clap::Parser;
use iostep_model::printable;

/// Shows where every byte of a database's I/O goes, and takes the waste away.
#[cfg(feature = "trace")]
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

/// Generates file and SQLite workloads and measures them, where nothing is traced.
#[derive(Debug, Parser)]
#[command(
    name = "iostep-bench",
    version,
    long_version = version::long(),
    max_term_width = 80,
    after_help = "\
Examples:
  iostep-bench bench file /data/local/tmp --sync fdatasync --time 10 --json
  iostep-bench bench sqlite /data/local/tmp --journal wal -o wal.json
  iostep-bench compare before.json after.json

What is written is what iostep writes, which reads it on any machine.
Exit status: 0 done, 1 failed, 2 bad usage, 4 this machine cannot do it."
)]
struct BenchCli {
    #[command(subcommand)]
    command: command::OfBench,
}

/// Runs `iostep` with this process's arguments.
#[cfg(feature = "trace")]
pub fn main() -> ExitCode {
    run(|cli: Cli| command::run(cli.command))
}

/// Runs `iostep-bench` with this process's arguments.
pub fn main_of_bench() -> ExitCode {
    run(|cli: BenchCli| command::run_of_bench(cli.command))
}

fn run<C: Parser>(command: impl FnOnce(C) -> anyhow::Result<ExitCode>) -> ExitCode {
    let cli = match C::try_parse() {
        Ok(cli) => cli,
        Err(error) => refuse::<C>(&error),
    };
    match command(cli) {
        Ok(code) => code,
        Err(error) => {
            terminal::say_lines(&format!("iostep: {}\n", error::describe(&error)));
            error::exit_code(&error)
        }
    }
}

/// Shows the help that was asked for, or what is wrong with the arguments, and ends.
fn refuse<C: Parser>(error: &clap::Error) -> ! {
    // What clap quotes is told apart from its colours only before it is quoted.
    let arguments = std::env::args_os();
    let shown = arguments.map(|word| printable(&word.to_string_lossy()).into_owned());
    match C::try_parse_from(shown) {
        Err(shown) if shown.kind() == error.kind() => shown.exit(),
        _ => {
            terminal::say_lines(&error.render().to_string());
            std::process::exit(error.exit_code())
        }
    }
}
