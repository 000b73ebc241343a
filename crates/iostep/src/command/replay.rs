//! `iostep replay`: perform the calls of a recording again, in one or several directories.

mod run;
mod traced;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use iostep_analyze::replay::{About, Document};
use iostep_analyze::report;
use iostep_load::replay::plan::Plan;
use iostep_model::publish;
use iostep_model::replay::{Settings, Threads, Timing};
use iostep_model::syscall::kept;
use iostep_model::syscall::text as trace_file;
use iostep_report::document::Detail;

use crate::error::bad_input;
use crate::input::{self, Kind};
use crate::interrupt::Interrupt;
use crate::terminal;
use run::{End, Order};

/// Perform the system calls of a recording again.
///
/// The files that the recording found are made in DIR/iostep-replay first, then its threads make
/// its calls there, at the recorded times or as fast as their order allows. Nothing outside of
/// that directory is touched, whatever the recording says.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep replay app.trace --to /mnt
  iostep replay app.trace.zst --to /mnt/ext4 --to /mnt/xfs --timing fast --repeat 5
  iostep replay app.trace --to /mnt/ext4 --to /mnt/btrfs --trace --html app.html

Exit status: 0 done, 1 interrupted, out of order, or results that differ without
an explanation, 2 bad usage or input, 4 this machine cannot do it.
docs/replay.md explains every number, docs/format-replay.md the file of -o.")]
pub struct Args {
    /// The recording, as `iostep record` and `iostep clean` make it
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Directory to replay in; several are replayed by turns and compared
    #[arg(long, value_name = "DIR", required = true)]
    to: Vec<PathBuf>,

    /// When calls are issued: at their times (original), at once (fast), or after the pauses
    /// between a thread's calls (think)
    #[arg(long, default_value_t)]
    timing: Timing,

    /// This many times faster than recorded
    #[arg(long, value_name = "X", default_value = "1", value_parser = speed)]
    speed: f64,

    /// Who issues them: as many threads as recorded (original), or one (merge)
    #[arg(long, default_value_t)]
    threads: Threads,

    /// Replay this often in each directory
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,

    /// Record the block I/O of each replay (root)
    #[arg(long)]
    trace: bool,

    /// Leave the files of the last replay where they are
    #[arg(long)]
    keep: bool,

    /// Write a page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    /// Write the result to this file, as JSON
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number")?;
    match speed > 0.0 && speed.is_finite() {
        true => Ok(speed),
        false => Err("must be more than 0".into()),
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    check(args)?;
    input::expect(&args.file, &[Kind::Recording])?;
    let interrupt = Interrupt::install()?;
    let began = Instant::now();
    let recording = trace_file::read(&args.file).map_err(bad_input)?;
    let plan = Plan::new(&recording, args.threads);
    let load_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let settings = Settings {
        timing: args.timing,
        speed: args.speed,
        threads: args.threads,
    };
    let order = Order {
        recording: &recording,
        plan: &plan,
        settings,
        kept_data: &kept::directory_of(&args.file),
        directories: &args.to,
        repeat: args.repeat,
        trace: args.trace,
        keep: args.keep,
    };
    let (targets, end) = run::all(&order, &interrupt);
    let interrupted = matches!(end, End::Interrupted);
    let nothing = targets.iter().all(|target| target.runs.is_empty());
    let failure = match end {
        End::Failed(error) if nothing => return Err(error),
        End::Failed(error) => Some(error),
        End::Whole | End::Interrupted => None,
    };
    let about = About::of(&recording, &args.file, load_ns);
    let document = Document::new(super::arguments(), about, targets);
    publish_all(args, &document)?;
    let files = [&args.output, &args.html];
    print(&document, args.json, files.into_iter().flatten())?;
    // What was measured before is kept.
    if let Some(error) = failure {
        return Err(error);
    }
    let mut runs = document.targets.iter().flat_map(|target| &target.runs);
    let failed = interrupted || !runs.all(|run| run.is_good());
    Ok(ExitCode::from(u8::from(failed)))
}

/// Shows the result in a file, on a page if one is asked for.
///
/// Errors: it cannot be read, or the page not be written.
pub(super) fn show(file: &Path, page: Option<&Path>, as_json: bool) -> anyhow::Result<ExitCode> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("{}: cannot read", file.display()))?;
    let document = Document::from_json(file, &text)?;
    terminal::check_results(as_json, page)?;
    if let Some(path) = page {
        publish::write(path, report::replay::document(&document).html().as_bytes())?;
    }
    if page.is_none() || as_json {
        print(&document, as_json, page)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What can be wrong before anything is done.
fn check(args: &Args) -> iostep_load::Result<()> {
    let results = || [&args.html, &args.output].into_iter().flatten();
    terminal::check_results(args.json, results())?;
    for path in results() {
        super::bench::check_parent(path)?;
    }
    let resolved = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    let all: Vec<PathBuf> = args.to.iter().map(resolved).collect();
    for (index, directory) in all.iter().enumerate() {
        if all[..index].contains(directory) {
            return Err(iostep_load::Error::Usage {
                what: format!("--to {}: named twice", args.to[index].display()),
                hint: "use --repeat to replay it more than once".into(),
            });
        }
    }
    Ok(())
}

/// Prints the result beside those in files.
fn print<P: AsRef<Path>>(
    document: &Document,
    as_json: bool,
    files: impl IntoIterator<Item = P>,
) -> anyhow::Result<()> {
    let json = || terminal::json(document);
    let text = || report::replay::document(document).text(Detail::Full, terminal::style());
    terminal::print_either(files, as_json, json, text)
}

fn publish_all(args: &Args, document: &Document) -> iostep_model::Result<()> {
    if let Some(path) = &args.output {
        publish::write(path, (terminal::json(document) + "\n").as_bytes())?;
    }
    if let Some(path) = &args.html {
        publish::write(path, report::replay::document(document).html().as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::parsed;

    #[test]
    fn without_options_the_recording_keeps_its_times_and_threads() {
        let args = parsed::<Args>(&["app.trace", "--to", "/mnt"]).expect("valid");
        assert_eq!(
            (args.timing, args.threads, args.repeat),
            (Timing::Original, Threads::Original, 1)
        );
    }

    #[test]
    fn what_makes_no_sense_is_bad_usage() {
        for arguments in [
            &["app.trace"][..],
            &["--to", "/mnt"],
            &["app.trace", "--to", "/mnt", "--speed", "0"],
            &["app.trace", "--to", "/mnt", "--speed", "-1"],
            &["app.trace", "--to", "/mnt", "--speed", "nan"],
            &["app.trace", "--to", "/mnt", "--timing", "slow"],
            &["app.trace", "--to", "/mnt", "--threads", "two"],
            &["app.trace", "--to", "/mnt", "--repeat", "0"],
        ] {
            assert!(parsed::<Args>(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn a_directory_named_twice_is_refused() {
        let args = parsed::<Args>(&["app.trace", "--to", "/tmp", "--to", "/tmp/."]).expect("valid");
        let error = check(&args).expect_err("the same directory");
        assert!(error.to_string().contains("named twice"), "{error}");
    }
}
