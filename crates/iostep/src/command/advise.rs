//! `iostep advise`: the settings that make a database faster here, measured.

pub(super) mod guard;
mod measure;
mod mounted;
mod remount;
mod subject;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use iostep_analyze::advise::recording::{Habit, Habits};
use iostep_analyze::advise::{
    Advice, Candidate, Planned, Setting, Situation, Workload, candidates, mount_options,
};
use iostep_analyze::report;
use iostep_load::Error;
use iostep_model::bench::WalFile;
use iostep_model::durability::Loss;
use iostep_model::goal::Goal;
use iostep_model::pragma::{Journal, Synchronous};
use iostep_model::syscall::text::Reader;
use iostep_model::{publish, units};
use iostep_report::document::Detail;

use super::bench::check_parent;
use crate::interrupt::Interrupt;
use crate::terminal;
use subject::Subject;

/// Shorter runs are all beginning.
const LEAST_RUN: Duration = Duration::from_millis(50);

/// Find the settings that make a database faster here.
///
/// Measures journal modes, synchronous settings, sizes of the log, page sizes and waldio in a
/// directory of its own beside the database, with transactions like the application's. The
/// database itself is only read.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep advise app.db
  iostep advise app.db --trace app.trace --max-loss since-checkpoint
  iostep advise /mnt --record 500 --synchronous normal --journal wal
  iostep advise app.db --goal wear --time 60
  iostep advise app.db --candidates wal-full,waldio-full --time 20 --json

Exit status: 0 done, 1 interrupted or a run failed, 2 bad usage or no database,
4 this machine cannot do it. docs/advise.md explains the ranking.")]
pub struct Args {
    /// A database, or a directory on the filesystem that it will be on
    #[arg(value_name = "DATABASE|DIR")]
    target: PathBuf,

    /// How long each candidate is measured, all of its runs together
    #[arg(long, value_name = "DURATION", default_value = "10",
          value_parser = units::parse_duration_ns)]
    time: u64,

    /// What a setting is chosen for: speed, wear (bytes written), durability (what can be lost)
    #[arg(long, value_name = "GOAL", default_value = "speed")]
    goal: Goal,

    /// In how many turns with the present setting: more make intervals narrower
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(2..=100))]
    rounds: u32,

    /// What the application does, as `iostep record` recorded it
    #[arg(long, value_name = "RECORDING")]
    trace: Option<PathBuf>,

    #[command(flatten)]
    present: PresentArgs,

    #[command(flatten)]
    workload: WorkloadArgs,

    /// Leave out what can lose more: nothing, last-commit, last-commits,
    /// since-checkpoint, database, filesystem
    #[arg(long, value_name = "LOSS")]
    max_loss: Option<Loss>,

    /// Measure only these, as the key of a row in --json has them
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    candidates: Vec<String>,

    /// Measure mount options too, by remounting the filesystem (root)
    #[arg(long)]
    remount: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Write the JSON to this file too
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What the application sets now, which the file does not tell.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What the application sets now")]
struct PresentArgs {
    /// Its journal mode [default: the recording's, or the database's own]
    #[arg(long, value_name = "MODE")]
    journal: Option<Journal>,

    /// Its PRAGMA synchronous [default: the recording's, or full]
    #[arg(long, value_name = "SETTING")]
    synchronous: Option<Synchronous>,

    /// Its PRAGMA wal_autocheckpoint
    #[arg(long, value_name = "PAGES", default_value_t = 1000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    checkpoint: u32,
}

/// Transactions that are not to be guessed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Transactions, if they are not to be guessed")]
struct WorkloadArgs {
    /// What a statement does
    #[arg(long, value_parser = ["insert", "update"], default_value = "insert")]
    operation: String,

    /// Bytes of a row
    #[arg(long, value_name = "SIZE", value_parser = record_bytes)]
    record: Option<u32>,

    /// Tables and indexes that a transaction touches
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    tables: Option<u32>,

    /// Statements of a transaction for each of them
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    statements: u32,

    /// Threads that write to the database
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Option<u32>,

    /// A log when a run begins: steady, as in a long-lived process, or fresh
    #[arg(long, value_name = "STATE", default_value = "steady")]
    wal_file: WalFile,
}

fn record_bytes(text: &str) -> Result<u32, String> {
    let bytes = units::parse_bytes(text).map_err(|error| error.to_string())?;
    match u32::try_from(bytes) {
        Ok(bytes @ 1..=0x4000_0000) => Ok(bytes),
        _ => Err("choose 1 B to 1 GiB".into()),
    }
}

/// Runs the command.
///
/// Errors: `Usage` for what is no database, directory or recording; `Refused` without room or
/// where nothing can be written; a present setting that cannot be measured.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    terminal::check_results(args.json, &args.output)?;
    if let Some(path) = &args.output {
        check_parent(path)?;
    }
    let interrupt = Interrupt::install()?;
    let subject = Subject::of(&args.target)?;
    let habit = args
        .trace
        .as_deref()
        .map(|path| habit(path, &subject))
        .transpose()?;
    let place = place(args, &subject, habit)?;
    let planned = plan(args, &place, &subject)?;
    if args.remount {
        remount::check_rights()?;
    }
    subject.check_room(&place)?;
    let measured = measure::all(&place, &planned, &interrupt)?;
    let advice = Advice::new(
        place,
        &planned,
        &measured.turns,
        measured.environment,
        measured.warnings,
    );
    show(args, &advice)?;
    Ok(ExitCode::from(u8::from(
        advice.interrupted || advice.has_failures(),
    )))
}

fn show(args: &Args, advice: &Advice) -> anyhow::Result<()> {
    let json = || terminal::json(advice);
    if let Some(path) = &args.output {
        publish::write(path, (json() + "\n").as_bytes())?;
    }
    let text = || report::advise::document(advice).text(Detail::Full, terminal::style());
    terminal::print_either(&args.output, args.json, json, text)
}

/// What a recording says of the database, or of the one with the most transactions.
fn habit(path: &Path, subject: &Subject) -> anyhow::Result<Habit> {
    let unreadable = |error: iostep_model::Error| Error::Usage {
        what: error.to_string(),
        hint: "name a recording of iostep record".into(),
    };
    let mut reader = Reader::open(path).map_err(unreadable)?;
    let mut habits = Habits::default();
    while let Some(call) = reader.next_call().map_err(unreadable)? {
        habits.call(&call, reader.paths());
    }
    let name = subject.name();
    let of = name.map_or("any database".into(), |name| {
        String::from_utf8_lossy(name).into_owned()
    });
    let found = habits.finish(name);
    Ok(found.ok_or_else(|| Error::Usage {
        what: format!("{}: no transaction of {of} in it", path.display()),
        hint: "record the application while it writes (iostep record), or leave --trace out".into(),
    })?)
}

/// What is known before anything is measured.
fn place(args: &Args, subject: &Subject, habit: Option<Habit>) -> anyhow::Result<Situation> {
    let runs = 2 * args.rounds;
    let run_ns = args.time / u64::from(runs);
    if u128::from(run_ns) < LEAST_RUN.as_nanos() {
        let least = LEAST_RUN * runs;
        return Err(Error::Usage {
            what: format!("--time: too short for {runs} runs of each candidate"),
            hint: format!("choose {least:?} or more, or fewer --rounds"),
        }
        .into());
    }
    let (present, present_basis) = present(&args.present, subject, habit.as_ref());
    let mut workload = Workload::like(subject.database.as_ref(), habit.as_ref());
    let chosen = &args.workload;
    workload.operation.clone_from(&chosen.operation);
    workload.statements = chosen.statements;
    workload.log_file = chosen.wal_file;
    workload.record_bytes = chosen.record.unwrap_or(workload.record_bytes);
    workload.tables = chosen.tables.unwrap_or(workload.tables);
    workload.threads = chosen.threads.unwrap_or(workload.threads);
    Ok(Situation {
        directory: subject.directory.clone(),
        mount_point: subject.mount_point.clone(),
        database: subject.database.clone(),
        recording: habit,
        workload,
        present,
        present_basis,
        goal: args.goal,
        run_ns,
        rounds: args.rounds,
    })
}

/// The present setting, and where each part of it is known from.
fn present(args: &PresentArgs, subject: &Subject, habit: Option<&Habit>) -> (Setting, Vec<String>) {
    let database = subject.database.as_ref();
    let own = database.map_or(Journal::Delete, |facts| facts.journal);
    let (journal, journal_basis) = match (args.journal, habit.and_then(|habit| habit.journal)) {
        (Some(journal), _) => (journal, "from --journal"),
        (None, Some(journal)) => (journal, "from the recording"),
        (None, None) if own.is_log() => (own, "from the database"),
        (None, None) => (own, "SQLite's own choice"),
    };
    let recorded = habit.and_then(|habit| habit.synchronous);
    let (synchronous, synchronous_basis) = match (args.synchronous, recorded) {
        (Some(synchronous), _) => (synchronous, "from --synchronous"),
        (None, Some(synchronous)) => (synchronous, "from the recording"),
        (None, None) => (Synchronous::Full, "SQLite's own choice"),
    };
    let page_bytes = database.map_or(4096, |facts| facts.page_bytes);
    let setting = Setting {
        checkpoint_pages: args.checkpoint,
        ..Setting::new(journal, synchronous, page_bytes)
    };
    let basis = vec![
        format!("journal {journal}: {journal_basis}"),
        format!("synchronous {synchronous}: {synchronous_basis}"),
    ];
    (setting, basis)
}

/// The candidates that were asked for, and why some are not measured.
fn plan(args: &Args, place: &Situation, subject: &Subject) -> anyhow::Result<Vec<Planned>> {
    let options = mount_options(&subject.filesystem, &subject.mount_options);
    let mut all = candidates(&place.present, &place.workload, &options);
    if let Some(most) = args.max_loss {
        all.retain(|candidate| candidate.setting.durability().worst() <= most);
    }
    let names: Vec<&str> = all.iter().map(|candidate| candidate.key.as_str()).collect();
    let unknown = args
        .candidates
        .iter()
        .find(|key| !names.contains(&key.as_str()));
    if let Some(key) = unknown {
        return Err(Error::Usage {
            what: format!("{key}: no candidate here"),
            hint: format!("choose of {}", names.join(", ")),
        }
        .into());
    }
    if !args.candidates.is_empty() {
        all.retain(|candidate| args.candidates.contains(&candidate.key));
    }
    let skipped = |candidate: &Candidate| {
        let option = candidate.setting.mount?;
        remount::reason_against(&option, subject, args.remount)
    };
    Ok(all
        .into_iter()
        .map(|candidate| {
            let reason = skipped(&candidate);
            (candidate, reason)
        })
        .collect())
}

#[cfg(test)]
mod tests;
