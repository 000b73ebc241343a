//! `iostep report`: what a trace says, and two traces side by side.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use iostep_analyze::compare::Comparison;
use iostep_analyze::report::trace;
use iostep_analyze::stats::Summary;
use iostep_model::publish;
use iostep_model::table::Trace;
use iostep_report::document::Detail;
use iostep_report::events;
use iostep_report::export::{self, Format};
use iostep_report::text::Style;
use serde::Serialize;

use super::filter_args::FilterArgs;
use super::{bench, lab, replay, trace_info};
use crate::error::bad_input;
use crate::input::{self, Kind};
use crate::terminal::{self, Content, say};
use crate::trace_dir;

/// Show what a trace says, or two traces side by side.
///
/// Without an option: what matters, on a screen. docs/report.md explains every table. A
/// recording whose recorder was killed is finished first. Results of bench, replay and lab, and
/// recordings of system calls, are shown as their own commands show them.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  iostep report app.iostep
  iostep report app.iostep --full --file '*.db-wal'
  iostep report before.iostep after.iostep
  iostep report app.iostep --html app.html
  iostep report app.iostep --format perfetto -o app.perfetto-trace

If events were lost, or sums do not agree with the device's counters, the
first line says so and the exit status is 1.")]
pub struct Args {
    /// Trace directory, or a result of another command
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// A second one to compare with the first
    #[arg(value_name = "DIR2", conflicts_with_all = ["events", "html", "format", "full"])]
    second: Option<PathBuf>,

    /// Print every table, and more rows of each
    #[arg(long, conflicts_with_all = ["events", "html", "format", "json"])]
    full: bool,

    #[command(flatten)]
    filter: FilterArgs,

    /// List every request, one line for each part that has an owner of its own
    #[arg(long, conflicts_with_all = ["html", "format", "json"])]
    events: bool,

    /// Write one self-contained page with plots and the picture of time against LBA
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "output"])]
    html: Option<PathBuf>,

    /// Write the trace in another tool's format
    #[arg(long, value_enum, conflicts_with_all = ["json", "pids", "comms", "cgroups", "files"])]
    format: Option<FormatName>,

    /// Where to write to, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,

    /// Exit with status 0 even if events were lost or sums do not agree
    #[arg(long)]
    allow_loss: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FormatName {
    /// blkparse's default text
    Blkparse,
    /// The output of MOST (.po)
    Most,
    /// A line per part of a request
    Csv,
    /// A trace in protobuf for ui.perfetto.dev
    Perfetto,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Format {
        match name {
            FormatName::Blkparse => Format::Blkparse,
            FormatName::Most => Format::Most,
            FormatName::Csv => Format::Csv,
            FormatName::Perfetto => Format::Perfetto,
        }
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    terminal::check_results(args.json && args.output.is_none(), &args.html)?;
    if args.second.is_none()
        && let Some(shown) = other(&args)?
    {
        return Ok(shown);
    }
    let passed = match &args.second {
        Some(second) => compare(&args, second)?,
        None => report(&args)?,
    };
    Ok(match passed || args.allow_loss {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Shows what is no trace directory as its own command does; nothing for a trace directory.
fn other(args: &Args) -> anyhow::Result<Option<ExitCode>> {
    let (path, html) = (&args.directory, args.html.as_deref());
    let taken = [
        Kind::Trace,
        Kind::Recording,
        Kind::Bench,
        Kind::Replay,
        Kind::Lab,
    ];
    let kind = input::expect(path, &taken)?;
    // Of the last three it is said that they are no trace directory.
    if matches!(
        kind,
        Kind::Trace | Kind::Damaged | Kind::Stream | Kind::Other
    ) {
        return Ok(None);
    }
    let of_traces = args.full
        || args.events
        || args.format.is_some()
        || args.output.is_some()
        || !args.filter.filter().is_empty();
    if of_traces || (kind == Kind::Recording && html.is_some()) {
        return Err(input::unfit(path, kind));
    }
    match kind {
        Kind::Recording => trace_info::show(path, args.json),
        Kind::Bench => bench::show(path, html, args.json),
        Kind::Replay => replay::show(path, html, args.json),
        _ => lab::show(path, html, args.json),
    }
    .map(Some)
}

/// A whole trace.
fn open(directory: &Path) -> anyhow::Result<Trace> {
    input::expect(directory, &[Kind::Trace])?;
    trace_dir::open(directory)
}

/// Compares two traces, and says what `iostep report` would.
///
/// Errors: those of `iostep report`.
pub(super) fn two(first: &Path, second: &Path, json: bool) -> anyhow::Result<ExitCode> {
    run(Args {
        directory: first.to_owned(),
        second: Some(second.to_owned()),
        json,
        ..Args::default()
    })
}

/// Shows what was fetched from another machine.
///
/// Errors: those of `iostep report`.
#[cfg(feature = "many-devices")]
pub(super) fn fetched(path: &Path, html: Option<&Path>, json: bool) -> anyhow::Result<ExitCode> {
    run(Args {
        directory: path.to_owned(),
        html: html.map(Path::to_owned),
        json,
        ..Args::default()
    })
}

/// Reports on one trace; true if its self-check passed.
fn report(args: &Args) -> anyhow::Result<bool> {
    let trace = args.filter.part(open(&args.directory)?)?;
    let passed = trace.manifest.check.passed();
    if let Some(format) = args.format {
        check_place(args, format)?;
        complain(&trace);
        output(args, Content::Data, |out| {
            export::write(&mut &mut *out, &trace, format.into())
        })?;
    } else if args.events {
        output(args, Content::Text, |out| list_events(out, &trace))?;
    } else {
        let summary = Summary::of(&trace);
        summarize(args, &trace, &summary)?;
    }
    Ok(passed)
}

/// Errors: bytes that are no text would go to a terminal.
fn check_place(args: &Args, format: FormatName) -> anyhow::Result<()> {
    let is_shown = args.output.is_none() && io::stdout().is_terminal();
    if is_shown && matches!(format, FormatName::Perfetto) {
        return Err(bad_input(anyhow!(
            "--format perfetto is no text for a terminal; name a file with --output"
        )));
    }
    Ok(())
}

fn summarize(args: &Args, trace: &Trace, summary: &Summary) -> anyhow::Result<()> {
    if let Some(path) = &args.html {
        publish::write(path, trace::page(trace, summary).as_bytes())?;
        if !args.json {
            complain(trace);
            say!("wrote {}", path.display());
            return Ok(());
        }
    }
    if args.json {
        complain(trace);
        return output(args, Content::Json, |out| write_json(out, summary));
    }
    let detail = if args.full {
        Detail::Full
    } else {
        Detail::Brief
    };
    let text = trace::render(summary, detail, style(args));
    output(args, Content::Text, |out| out.write_all(text.as_bytes()))
}

/// Compares two traces; true if both self-checks passed.
fn compare(args: &Args, second: &Path) -> anyhow::Result<bool> {
    let names = [&args.directory, second].map(|path: &Path| path.display().to_string());
    let mut summaries = Vec::with_capacity(2);
    let mut unmatched = None;
    for directory in [&args.directory, second] {
        // Each trace is dropped before the next is read.
        let trace = open(directory)?;
        unmatched = Some(args.filter.unmatched(&trace, unmatched));
        summaries.push(Summary::of(&args.filter.filter().apply(trace)));
    }
    FilterArgs::refuse(unmatched.unwrap_or_default(), &[])?;
    let comparison = Comparison::of(&summaries[0], &summaries[1]);
    let passed = comparison.complaints.iter().all(Option::is_none);
    if args.json {
        output(args, Content::Json, |out| write_json(out, &comparison))?;
    } else {
        let names = [names[0].as_str(), names[1].as_str()];
        let text = trace::comparison(&comparison, names).text(Detail::Full, style(args));
        output(args, Content::Text, |out| out.write_all(text.as_bytes()))?;
    }
    Ok(passed)
}

/// Says on standard error what the output's own format has no room for.
fn complain(trace: &Trace) {
    if let Some(complaint) = trace::complaint_of(&trace.manifest.check) {
        say!("{complaint}");
    }
}

fn list_events(out: &mut dyn Write, trace: &Trace) -> io::Result<()> {
    if let Some(complaint) = trace::complaint_of(&trace.manifest.check) {
        writeln!(out, "{complaint}")?;
    }
    events::write(&mut &mut *out, trace)
}

fn write_json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Writes to `--output`, whole or not at all, or to standard output.
fn output(
    args: &Args,
    content: Content,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let Some(path) = &args.output else {
        return terminal::write(content, fill);
    };
    publish::write_with(path, |file| {
        fill(file).with_context(|| format!("{}: cannot write", path.display()))
    })
}

fn style(args: &Args) -> Style {
    match args.output {
        Some(_) => Style::default(),
        None => terminal::style(),
    }
}
