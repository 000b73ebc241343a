//! `iostep explain`: what SQL statements cost on the device, layer by layer.

mod drive;
mod place;
mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use super::elsewhere;
use crate::input::{self, Kind};
use crate::interrupt::Interrupt;
use crate::terminal;

use iostep_load::script::{own_mode, split};
use iostep_model::directory;
use iostep_model::lab::Filesystem;
use iostep_model::pragma::{Journal, Synchronous};
use iostep_model::units;

pub use drive::{On, Plan, child_command};
use place::Place;
pub use run::{Explained, explain};

/// Explain what SQL costs on the device, transaction by transaction.
///
/// Runs the SQL on a copy beside the database, so on the same filesystem, and records every I/O
/// that it causes. Where iostep may not record, it does so in a guest.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep explain app.db \"INSERT INTO notes VALUES ('hello')\"
  iostep explain app.db --file script.sql --journal delete,truncate,persist,wal,waldio

Needs root, or CAP_BPF, CAP_PERFMON and CAP_SYSLOG, or else runs in a guest.
docs/explain.md explains the numbers.")]
pub struct Args {
    /// SQLite database
    database: PathBuf,

    /// SQL: one or more statements
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    sql: Option<String>,

    /// Read the SQL from this file
    #[arg(long, value_name = "SCRIPT")]
    file: Option<PathBuf>,

    /// Compare journal modes: delete, truncate, persist, wal, waldio, memory, off
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    journal: Vec<Journal>,

    /// PRAGMA synchronous: off, normal, full, extra
    #[arg(long, value_name = "SETTING")]
    sync: Option<Synchronous>,

    /// Read every page that a transaction needs from the device, not from memory
    #[arg(long)]
    cold_cache: bool,

    /// How long to wait for somebody else's lock on the database
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = units::parse_duration_ns)]
    timeout: u64,

    /// Change the database itself instead of a copy
    #[arg(long, conflicts_with_all = ["journal", "keep"])]
    in_place: bool,

    /// Do not commit an empty transaction first: the first one makes the journal or WAL
    #[arg(long)]
    cold: bool,

    /// Keep the copies and print where they are
    #[arg(long)]
    keep: bool,

    /// Where the copy lies: here, loop or guest [default: here, or guest if iostep may not record]
    #[arg(long, value_name = "PLACE", hide_possible_values = true,
          conflicts_with_all = ["in_place", "keep"])]
    on: Option<Place>,

    /// Filesystem with --on loop and guest [default: the database's, or ext4]
    #[arg(long, value_name = "KIND", requires = "on", conflicts_with_all = ["in_place", "keep"])]
    fs: Option<Filesystem>,

    /// Write the recording's report to this file, as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Nobody else uses the database, and what it lies on may have no locks: how a guest is told
    #[arg(long, hide = true, requires = "on")]
    unshared: bool,

    /// Exit with status 0 even if the recording's self-check failed
    #[arg(long)]
    allow_loss: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    terminal::check_results(args.json, &args.html)?;
    let guest = |interrupt: &Interrupt| place::guest(&args, &plan(&args)?, interrupt);
    match args.on {
        Some(Place::Guest) => elsewhere::in_a_guest(guest),
        // What stays or changes is the user's, who wants it here.
        Some(_) => here(&args),
        None if args.in_place || args.keep => here(&args),
        None => elsewhere::here_or_in_a_guest(|| here(&args), guest),
    }
}

fn here(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = plan(args)?;
    let interrupt = Interrupt::install()?;
    let explained = match args.on {
        Some(Place::Loop) => place::on_own_filesystem(plan, args, &interrupt)?,
        _ => explain(&plan, &interrupt)?,
    };
    if let Some(path) = &args.html {
        explained.write_html(path)?;
    }
    let (json, text) = (|| explained.json(), || explained.text());
    terminal::print_either(&args.html, args.json, json, text)?;
    Ok(explained.exit_code(args.allow_loss))
}

fn plan(args: &Args) -> anyhow::Result<Plan> {
    if args.fs.is_some() && args.on == Some(Place::Here) {
        return Err(iostep_load::Error::Usage {
            what: "--fs: with --on here the filesystem is the database's".into(),
            hint: "choose --on loop or --on guest, or leave --fs out".into(),
        }
        .into());
    }
    let script = match (&args.file, &args.sql) {
        (Some(path), _) => read_script(path)?,
        (None, sql) => sql.clone().unwrap_or_default(),
    };
    split(&script)?;
    if args.database.exists() {
        input::expect(&args.database, &[Kind::Database])?;
    }
    // The mode tells a missing file and a directory from a database, in better words than
    // resolve() has.
    own_mode(&args.database)?;
    let database = directory::resolve(&args.database)?;
    Ok(Plan {
        database,
        script,
        modes: without_repetition(&args.journal),
        synchronous: args.sync,
        warm_up: !args.cold && !args.in_place,
        cold_cache: args.cold_cache,
        timeout: Duration::from_nanos(args.timeout),
        on: match (args.in_place, args.keep) {
            (true, _) => On::Original,
            (false, true) => On::KeptCopy,
            (false, false) => On::Copy,
        },
        disposable: Vec::new(),
    })
}

fn read_script(path: &Path) -> Result<String, iostep_load::Error> {
    std::fs::read_to_string(path).map_err(|error| iostep_load::Error::Usage {
        what: format!("{}: cannot read the script: {error}", path.display()),
        hint: "name a text file of SQL".into(),
    })
}

/// A mode named twice would be measured twice under one name.
fn without_repetition(modes: &[Journal]) -> Vec<Journal> {
    let mut once = Vec::new();
    for mode in modes {
        if !once.contains(mode) {
            once.push(*mode);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::parsed;

    #[test]
    fn a_list_of_modes_is_read_once_each() {
        let args =
            parsed::<Args>(&["a.db", "SELECT 1", "--journal", "wal,DELETE,wal"]).expect("valid");
        assert_eq!(
            without_repetition(&args.journal),
            [Journal::Wal, Journal::Delete]
        );
    }

    #[test]
    fn contradictions_are_bad_usage() {
        for arguments in [
            &["a.db"][..],
            &["a.db", "SELECT 1", "--file", "x.sql"],
            &["a.db", "SELECT 1", "--in-place", "--journal", "wal"],
            &["a.db", "SELECT 1", "--in-place", "--keep"],
            &["a.db", "SELECT 1", "--journal", "walrus"],
            &["a.db", "SELECT 1", "--sync", "most"],
            &["a.db", "SELECT 1", "--timeout", "soon"],
            &["a.db", "SELECT 1", "--fs", "xfs"],
            &["a.db", "SELECT 1", "--on", "loop", "--keep"],
        ] {
            assert!(parsed::<Args>(arguments).is_err(), "{arguments:?}");
        }
    }
}
