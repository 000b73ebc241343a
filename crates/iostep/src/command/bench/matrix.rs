//! `iostep bench run`: every cell of a job file, one after the other, going on where it was.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use iostep_analyze::bench::Summary;
use iostep_analyze::report::bench;
use iostep_load::Error;
use iostep_model::bench::Document;
use iostep_model::directory::lock;
use iostep_model::printable;
use iostep_model::publish;
use iostep_report::document::Detail;
use serde::Serialize;

use super::cell::{self, Planned};
use super::child;
use super::job_file;
use super::single::check_parent;
use crate::command::outbox::{Outbox, OutboxArgs};
use crate::interrupt::Interrupt;
use crate::shell::shown;
use crate::terminal::{self, say};

const LOCK: &str = ".iostep-bench-lock";

/// Run every combination of a job file
///
/// Each cell is a process of its own, and leaves its result in DIR. Cells whose result is there
/// are not run again, so the same command goes on after a kill.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Example, jobs.toml:
  [[job]]
  name = \"sync\"
  workload = \"file\"
  target = \"/mnt\"
  access = [\"write\", \"random-write\"]
  sync = [\"fsync\", \"fdatasync\"]
  repeat = 5

  iostep bench run jobs.toml --results results

Keys are the long flags of iostep bench file and iostep bench sqlite; lists are
crossed. docs/bench-run.md has more.")]
pub struct RunArgs {
    /// Job file, TOML
    jobs: PathBuf,

    /// Directory for the results; made if it is not there
    #[arg(long, value_name = "DIR")]
    results: PathBuf,

    #[command(flatten)]
    outbox: OutboxArgs,

    /// Write all results as one page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the cells that have no result yet.
///
/// Errors: `Usage` for anything wrong in the job file, before anything runs; `Refused` if another
/// process uses the directory of results.
pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    terminal::check_results(args.json, &args.html)?;
    let file = args.jobs.display().to_string();
    let cells = cell::plan(&file, job_file::cells(&file, &read(&args.jobs)?)?)?;
    if let Some(path) = &args.html {
        check_parent(path)?;
    }
    let mut outbox = args.outbox.open()?;
    let interrupt = Interrupt::install()?;
    let results = Results::open(&args.results)?;
    let complaints = run_all(&cells, &results, &interrupt, &mut outbox)?;
    let rows: Vec<CellOutcome> = cells
        .iter()
        .map(|cell| results.row(cell, complaints.get(&cell.result())))
        .collect();
    let (json, text) = (|| terminal::json(&rows), || tables(&rows));
    terminal::print_either(&args.html, args.json, json, text)?;
    if let Some(path) = &args.html {
        publish::write(path, results.page(&rows).as_bytes())?;
    }
    for (cell, row) in cells.iter().zip(&rows) {
        if let Some(complaint) = &row.complaint {
            say!("iostep: {}: {complaint}", cell.label);
        }
    }
    let missing = rows.iter().filter(|row| !row.complete).count();
    if missing > 0 {
        say!(
            "iostep: {missing} of {} cells have no complete result; the same command runs them",
            cells.len()
        );
    }
    let all_taken = outbox.finish(
        &interrupt,
        &(shown(&args.results.to_string_lossy()) + "/*.json"),
    );
    Ok(ExitCode::from(u8::from(missing > 0 || !all_taken)))
}

/// A cell with what came of it.
#[derive(Debug, Serialize)]
struct CellOutcome {
    /// Number of the job in its file, from 1.
    job: usize,
    /// The job's name.
    name: String,
    /// Arguments of `iostep bench`.
    arguments: Vec<String>,
    /// The file of the result in the directory of results; `None` if there is none.
    file: Option<PathBuf>,
    /// True if it holds everything that was asked for.
    complete: bool,
    /// Why there is no complete result, if it was tried.
    complaint: Option<String>,
    /// The numbers, also if they are not complete.
    summary: Option<Summary>,
    /// The result without its runs, which would not all fit into memory.
    #[serde(skip)]
    document: Option<Document>,
}

/// A table for each job, since jobs need not have settings in common.
fn tables(rows: &[CellOutcome]) -> String {
    let tables: Vec<String> = rows
        .chunk_by(|a, b| a.job == b.job)
        .map(|rows| {
            let cells: Vec<_> = rows.iter().filter_map(CellOutcome::cell).collect();
            bench::matrix(&cells).text(Detail::Full, terminal::style())
        })
        .filter(|table| !table.is_empty())
        .collect();
    tables.join("\n")
}

impl CellOutcome {
    fn cell(&self) -> Option<bench::Cell<'_>> {
        Some(bench::Cell {
            name: &self.name,
            document: self.document.as_ref()?,
            summary: self.summary.as_ref()?,
        })
    }
}

/// The job file, if it is a text of sensible length.
fn read(path: &Path) -> Result<String, Error> {
    let bad = |what: String| Error::Usage {
        what: format!("{}: {what}", path.display()),
        hint: "name a job file of TOML".into(),
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| {
            file.take(iostep_lab::matrix::MAX_BYTES as u64 + 1)
                .read_to_end(&mut bytes)
        })
        .map_err(|error| bad(format!("cannot read: {error}")))?;
    String::from_utf8(bytes).map_err(|_| bad("not UTF-8".into()))
}

/// Runs what has no result; the answer is what went wrong, by the name of the missing result.
fn run_all(
    cells: &[Planned],
    results: &Results,
    interrupt: &Interrupt,
    outbox: &mut Outbox,
) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let bar = super::bar();
    let template = "{bar:20} {pos} of {len} cells{left}: {wide_msg}";
    bar.set_style(terminal::bar_style(template));
    let ahead: Vec<&Planned> = cells.iter().filter(|cell| !results.has(cell)).collect();
    bar.set_length(cells.len() as u64);
    bar.set_position((cells.len() - ahead.len()) as u64);
    bar.reset_eta();
    bar.enable_steady_tick(Duration::from_millis(500));
    let mut complaints = BTreeMap::new();
    for cell in ahead {
        if interrupt.came() {
            break;
        }
        bar.set_message(printable(&cell.label).into_owned());
        match run_one(cell, results, interrupt)? {
            Ok(()) => bar.suspend(|| outbox.bring(results.directory.join(cell.result()))),
            Err(complaint) => {
                complaints.insert(cell.result(), complaint);
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(complaints)
}

/// Runs one cell. The inner error is why it has no complete result.
fn run_one(
    cell: &Planned,
    results: &Results,
    interrupt: &Interrupt,
) -> anyhow::Result<Result<(), String>> {
    let partial = results.directory.join(cell.partial());
    let ended = child::run(&cell.arguments, &partial, interrupt)?;
    if ended.status.success() {
        let complete = results.directory.join(cell.result());
        std::fs::rename(&partial, &complete)
            .with_context(|| format!("{}: cannot rename", partial.display()))?;
        return Ok(Ok(()));
    }
    Ok(Err(ended.reason()))
}

/// The directory of results, for this process alone.
pub struct Results {
    directory: PathBuf,
    _lock: File,
}

impl Results {
    fn open(directory: &Path) -> anyhow::Result<Results> {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{}: cannot make the directory", directory.display()))?;
        let lock = lock(&directory.join(LOCK))?.ok_or_else(|| Error::Refused {
            what: format!(
                "{}: another iostep bench run puts its results here",
                directory.display()
            ),
            hint: "wait for it, or name another directory".into(),
        })?;
        Ok(Results {
            directory: directory.to_owned(),
            _lock: lock,
        })
    }

    /// True if the cell's complete result is there and can be read.
    fn has(&self, cell: &Planned) -> bool {
        Document::read(&self.directory.join(cell.result())).is_ok()
    }

    /// Everything that there is, as a page.
    fn page(&self, rows: &[CellOutcome]) -> String {
        let files = rows.iter().filter_map(|row| row.file.as_ref());
        let found: Vec<(Document, Summary)> = files
            .filter_map(|file| Document::read(&self.directory.join(file)).ok())
            .map(|document| {
                let summary = Summary::of(&document);
                (document, summary)
            })
            .collect();
        bench::matrix_page(&found).html()
    }

    /// The cell's result, or what there is of one.
    fn row(&self, cell: &Planned, complaint: Option<&String>) -> CellOutcome {
        let read = |name: &PathBuf| Document::read(&self.directory.join(name)).ok();
        let complete = read(&cell.result());
        let is_complete = complete.is_some();
        let mut document = complete.or_else(|| read(&cell.partial()));
        let file = document.as_ref().map(|_| match is_complete {
            true => cell.result(),
            false => cell.partial(),
        });
        let summary = document.as_ref().map(Summary::of);
        if let Some(document) = &mut document {
            document.runs.clear();
        }
        CellOutcome {
            job: cell.job,
            name: cell.name.clone(),
            arguments: cell.arguments.clone(),
            complete: is_complete,
            file,
            complaint: complaint.cloned(),
            summary,
            document,
        }
    }
}
