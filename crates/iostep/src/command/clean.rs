//! `iostep clean`: traces of other tools, and what a recorder left that was cut short, become a trace
//! of system calls.

mod inputs;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use iostep_calls::import::Format;
use iostep_calls::{Error, Finished, Tracker};
use iostep_model::printable;
use iostep_model::syscall::raw::Action;
use iostep_model::syscall::text::Writer;
use iostep_trace::syscalls::{Recorded, spool};

use crate::error::bad_input;
use crate::input::{self, Kind};
use crate::interrupt::Interrupt;
use crate::packed;
use crate::terminal::{self, say};
use inputs::Inputs;
use table::Cleaned;

/// Events between two looks at Ctrl-C.
const EVENTS_A_LOOK: u64 = 4096;
/// The reason of lines that the importers tell with their text.
const UNREADABLE: &str = "cannot be read";

/// Make a trace of system calls of another tool's trace, or of a recording that was cut short.
///
/// Descriptors are followed, so that calls on what is no file are left out, and reads and writes
/// without an open get the one that they need. Every line is accounted for.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  strace -f -ttt -T -y -o app.strace COMMAND; iostep clean app.strace -o app.trace
  iostep clean app.strace.* -o app.trace
  iostep clean mobigen.out.twitter -o twitter.trace.zst
  iostep clean mobigen.out.twitter --format mobigen -o twitter.trace --json
  iostep clean app.trace.partial -o app.trace
  ssh host cat app.strace.gz | iostep clean - -o app.trace

Exit status: 0 done, 1 interrupted or not written, 2 bad usage or input.
docs/clean.md explains the table and what such a trace can tell.")]
pub struct Args {
    /// The traces, also packed with gzip or zstd; several are one recording, - is standard input
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,

    /// File to write; compressed if its name ends in .zst
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// What the traces are [default: what they look like]
    #[arg(long, value_enum)]
    format: Option<FormatName>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FormatName {
    /// A replay script of MobiGen
    Mobigen,
    /// A text of strace; several are the files of strace -ff
    Strace,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Format {
        match name {
            FormatName::Mobigen => Format::Mobigen,
            FormatName::Strace => Format::Strace,
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    terminal::check_results(args.json, [&args.output])?;
    // With --format whatever is given is taken for that.
    let is_plain = |input: &&PathBuf| {
        args.format.is_none() && !packed::is_standard_input(input) && !packed::is_packed(input)
    };
    for input in args.inputs.iter().filter(is_plain) {
        input::expect(input, &[Kind::Calls, Kind::Partial])?;
    }
    let interrupt = Interrupt::install()?;
    let inputs = Inputs::new(&args.inputs, &args.output)?;
    let cleaned = match &inputs.start {
        start if start.starts_with(spool::MAGIC) => recover(args, &inputs, &interrupt)?,
        _ => clean(args, &inputs, &interrupt)?,
    };
    cleaned.print(args.json)?;
    Ok(ExitCode::from(u8::from(cleaned.interrupted)))
}

/// An importer's error. One that is about the input is the user's to mend.
fn of_input(error: Error) -> anyhow::Error {
    match error {
        Error::Foreign { .. } => bad_input(error),
        other => other.into(),
    }
}

fn clean<'a>(
    args: &'a Args,
    inputs: &Inputs,
    interrupt: &Interrupt,
) -> anyhow::Result<Cleaned<'a>> {
    let format = match args.format {
        Some(name) => name.into(),
        None => inputs.format()?,
    };
    let import = format.open(inputs.open()?).map_err(of_input)?;
    let writer = Writer::create(&args.output, import.header())?;
    let mut tracker = Tracker::new(writer);
    let mut events = 0_u64;
    let mut unreadable = Vec::new();
    let told = import.events(&mut |event| {
        events += 1;
        if events.is_multiple_of(EVENTS_A_LOOK) && interrupt.came() {
            return Err(Error::Interrupted);
        }
        if let Action::LeftOut { name, reason } = &event.action
            && *reason == UNREADABLE
            && !name.is_empty()
        {
            unreadable.push(name.to_string());
        }
        tracker.event(event)
    });
    inputs.bar.finish_and_clear();
    let interrupted = match told {
        Ok(remarks) => {
            for remark in remarks {
                say!("iostep: {}", printable(&remark));
            }
            false
        }
        // What was read so far is a trace too.
        Err(Error::Interrupted) => true,
        Err(error) => return Err(of_input(error)),
    };
    finish(args, tracker, unreadable, interrupted)
}

fn finish(
    args: &Args,
    tracker: Tracker<Writer>,
    unreadable: Vec<String>,
    interrupted: bool,
) -> anyhow::Result<Cleaned<'_>> {
    let Finished {
        sink,
        paths,
        initial,
        ledger,
    } = tracker.finish();
    sink.finish(&initial, &ledger, &paths)?;
    Ok(Cleaned {
        output: &args.output,
        ledger,
        unreadable,
        interrupted,
    })
}

/// Makes the trace that a recorder did not come to.
fn recover<'a>(
    args: &'a Args,
    inputs: &Inputs,
    interrupt: &Interrupt,
) -> anyhow::Result<Cleaned<'a>> {
    let input = inputs.only()?;
    let mut recorded = Recorded::left(input)?;
    let header = recorded.spool.beginning.header.clone();
    let mut tracker = Tracker::new(Writer::create(&args.output, header)?);
    let mut events = 0_u64;
    let told = recorded.events::<anyhow::Error>(&mut |event| {
        events += 1;
        if events.is_multiple_of(EVENTS_A_LOOK) && interrupt.came() {
            return Err(Error::Interrupted.into());
        }
        Ok(tracker.event(event)?)
    });
    inputs.bar.finish_and_clear();
    let interrupted = match told {
        Err(error) if matches!(error.downcast_ref(), Some(Error::Interrupted)) => true,
        told => told.map(|()| false)?,
    };
    let name = input.display();
    say!(
        "iostep: {name}: its recorder was ended before it was done: calls after the last are missing"
    );
    finish(args, tracker, Vec::new(), interrupted)
}
