//! `iostep clean`: traces of other tools become a trace of system calls.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use iostep_calls::import::{Format, GUESS_BYTES, Input};
use iostep_calls::{Finished, Tracker};
use iostep_model::syscall::Ledger;
use iostep_model::syscall::raw::Action;
use iostep_model::syscall::text::Writer;

use crate::interrupt::Interrupt;
use crate::terminal;

/// Events between two looks at Ctrl-C.
const EVENTS_A_LOOK: u64 = 4096;
/// The reason of lines that the importers tell with their text.
const UNREADABLE: &str = "cannot be read";
const READING: &str = "{prefix} {bar:30} {percent} %, {eta} left";

/// Make a trace of system calls of another tool's trace.
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

docs/clean.md explains the table and what such a trace can tell.")]
pub struct Args {
    /// The traces; several are one recording
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

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let format = match args.format {
        Some(name) => name.into(),
        None => guess(&args.inputs[0])?,
    };
    let bar = bar(&args.inputs)?;
    let mut inputs = Vec::new();
    for path in &args.inputs {
        let file = File::open(path).with_context(|| format!("{}: cannot open", path.display()))?;
        inputs.push(Input::new(path, BufReader::new(bar.wrap_read(file))));
    }
    let import = format.open(inputs)?;
    let writer = Writer::create(&args.output, import.header())?;
    let mut tracker = Tracker::new(writer);
    let mut events = 0_u64;
    let mut unreadable = Vec::new();
    let told = import.events(&mut |event| {
        events += 1;
        if events.is_multiple_of(EVENTS_A_LOOK) && interrupt.came() {
            return Err(iostep_calls::Error::Interrupted);
        }
        if let Action::LeftOut { name, reason } = &event.action
            && *reason == UNREADABLE
            && !name.is_empty()
        {
            unreadable.push(name.to_string());
        }
        tracker.event(event)
    });
    bar.finish_and_clear();
    let interrupted = match told {
        Ok(()) => false,
        // What was read so far is a trace too.
        Err(iostep_calls::Error::Interrupted) => true,
        Err(error) => return Err(error.into()),
    };
    let Finished {
        sink,
        paths,
        initial,
        ledger,
    } = tracker.finish();
    sink.finish(&initial, &ledger, &paths)?;
    let cleaned = Cleaned {
        output: &args.output,
        ledger,
        unreadable,
        interrupted,
    };
    terminal::print(&match args.json {
        true => format!("{}\n", cleaned.json()),
        false => cleaned.text(),
    })?;
    Ok(match interrupted {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// What the first input looks like.
fn guess(path: &Path) -> anyhow::Result<Format> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("{name}: cannot open"))?;
    let mut start = Vec::new();
    let mut limited = file.take(GUESS_BYTES as u64);
    let read = limited.read_to_end(&mut start);
    read.with_context(|| format!("{name}: cannot read"))?;
    match Format::guess(&start) {
        Some(format) => Ok(format),
        None => bail!("{name}: looks like no trace that is known; --format says what it is"),
    }
}

/// A bar for all inputs' bytes.
fn bar(inputs: &[PathBuf]) -> anyhow::Result<ProgressBar> {
    let mut bytes = 0;
    for path in inputs {
        let metadata = std::fs::metadata(path);
        let metadata = metadata.with_context(|| format!("{}: cannot open", path.display()))?;
        bytes += metadata.len();
    }
    let style = ProgressStyle::with_template(READING).expect("the template is a constant");
    Ok(ProgressBar::new(bytes)
        .with_style(style)
        .with_prefix("reading"))
}

/// What became of the inputs.
struct Cleaned<'a> {
    output: &'a Path,
    ledger: Ledger,
    /// The first lines that cannot be read, with where they are.
    unreadable: Vec<String>,
    interrupted: bool,
}

impl Cleaned<'_> {
    /// The table: every line of the inputs in one of its lines.
    fn text(&self) -> String {
        let ledger = &self.ledger;
        let (kept, left_out) = ledger.totals();
        let mut lines = Vec::new();
        if self.interrupted {
            lines.push("interrupted: the trace holds only the beginning".to_owned());
        }
        let total = kept + left_out;
        let part = |count: u64| 100.0 * count as f64 / total.max(1) as f64;
        let line = |count: u64, of: &str| format!("{count:>12} {:>6.2} %  {of}", part(count));
        lines.push(line(total, "lines read"));
        for (is_kept, sum, title) in [(true, kept, "kept"), (false, left_out, "left out")] {
            lines.push(line(sum, title));
            let mut reasons: Vec<_> = ledger.lines.iter().filter(|l| l.kept == is_kept).collect();
            reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
            let of = |reason: &str| format!("  {reason}");
            lines.extend(reasons.iter().map(|l| line(l.count, &of(&l.reason))));
        }
        if !self.unreadable.is_empty() {
            lines.push(format!("first lines that {UNREADABLE}:"));
            lines.extend(self.unreadable.iter().map(|line| format!("  {line}")));
        }
        lines.push(format!("wrote {}", self.output.display()));
        lines.join("\n") + "\n"
    }

    fn json(&self) -> serde_json::Value {
        let (kept, left_out) = self.ledger.totals();
        let reasons = |is_kept| -> serde_json::Map<String, serde_json::Value> {
            let lines = self.ledger.lines.iter().filter(|line| line.kept == is_kept);
            lines.map(|l| (l.reason.clone(), l.count.into())).collect()
        };
        serde_json::json!({
            "output": self.output,
            "interrupted": self.interrupted,
            "lines": {
                "read": kept + left_out,
                "kept": kept,
                "left_out": left_out,
            },
            "kept": reasons(true),
            "left_out": reasons(false),
            "unreadable": self.unreadable,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_accounts_for_every_line() {
        let mut ledger = Ledger::default();
        ledger.add(true, "call", 6);
        ledger.add(false, "pipe", 1);
        ledger.add(false, "socket", 3);
        let cleaned = Cleaned {
            output: Path::new("x.trace"),
            ledger,
            unreadable: vec!["x:7: abc".into()],
            interrupted: false,
        };
        let expected = "          10 100.00 %  lines read\n           6  60.00 %  kept\n           \
                        6  60.00 %    call\n           4  40.00 %  left out\n           3  30.00 %    \
                        socket\n           1  10.00 %    pipe\nfirst lines that cannot be read:\n  \
                        x:7: abc\nwrote x.trace\n";
        assert_eq!(cleaned.text(), expected);
        let json = cleaned.json();
        assert_eq!(json["unreadable"][0], "x:7: abc");
        assert_eq!(json["lines"]["read"], 10);
        assert_eq!(json["left_out"]["socket"], 3);
    }
}
