//! `iostep trace-info`: what a trace of system calls holds.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use indicatif::ProgressBar;
use iostep_analyze::report::syscalls;
use iostep_analyze::syscalls::Count;
use iostep_model::syscall::text::Reader;
use iostep_report::document::Detail;

use crate::error::bad_input;
use crate::input::{self, Kind};
use crate::interrupt::Interrupt;
use crate::terminal;

/// Calls between two looks at Ctrl-C.
const CALLS_A_LOOK: u64 = 1 << 14;

/// Show what a trace of system calls holds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep trace-info app.trace
  iostep trace-info app.trace.zst --calls --files

Exit status: 0 done, 1 interrupted, 2 bad usage or input.
docs/trace-info.md explains the numbers.")]
pub struct Args {
    /// The trace, as `iostep record` and `iostep clean` make it
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Show the numbers of each file
    #[arg(long)]
    files: bool,

    /// Show the numbers of each system call
    #[arg(long)]
    calls: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    input::expect(&args.file, &[Kind::Recording])?;
    let mut reader = Reader::open(&args.file).map_err(bad_input)?;
    let interrupt = Interrupt::install()?;
    let bar =
        ProgressBar::new_spinner().with_style(terminal::bar_style("reading, {human_pos} calls"));
    let mut count = Count::default();
    let mut calls = 0_u64;
    let mut interrupted = false;
    while let Some(call) = reader.next_call().map_err(bad_input)? {
        count.call(&call);
        calls += 1;
        if calls.is_multiple_of(CALLS_A_LOOK) {
            bar.set_position(calls);
            interrupted = interrupt.came();
            if interrupted {
                break;
            }
        }
    }
    bar.finish_and_clear();
    let info = count.finish(&reader, args.files, interrupted);
    if args.json {
        let json = serde_json::to_string_pretty(&info).context("cannot make JSON")?;
        terminal::print_json(&json)?;
    } else {
        let title = args.file.display().to_string();
        let report = syscalls::document(&info, &title, args.calls);
        terminal::print(&report.text(Detail::Full, terminal::style()))?;
    }
    Ok(ExitCode::from(u8::from(interrupted)))
}

/// Shows a recording as the command does without options.
pub(super) fn show(file: &Path, json: bool) -> anyhow::Result<ExitCode> {
    run(&Args {
        file: file.to_owned(),
        files: false,
        calls: false,
        json,
    })
}
