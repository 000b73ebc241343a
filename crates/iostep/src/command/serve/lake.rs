//! `iostep serve lake`, and what `iostep serve --lake` does each night: valid results become rows of
//! a lake.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use iostep_fleet::{Date, Lake, Options, Sizes, Table};
use iostep_model::bench::Document;
use iostep_model::error::Error;
use iostep_model::hex;
use iostep_serve::log;
use iostep_serve::store::{Change, ForLake, Readers, Store};

use super::{expect_elsewhere, line, open};
use crate::interrupt::Interrupt;
use crate::terminal;

/// Results that are held at once, and become files of their own until they are merged.
const BATCH: u32 = 500;
/// How often somebody looks whether it is night, or the end.
const TICK: Duration = Duration::from_millis(200);

/// Put the valid results that a lake has not got into it.
///
/// Once, as iostep serve --lake does each night. A store has one lake: what was put into it is not
/// put into another one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  iostep serve lake --data results /srv/lake")]
pub struct LakeArgs {
    /// Directory of the results
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// The lake; made if it is not there
    #[arg(value_name = "LAKE")]
    lake: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a lake got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
struct Added {
    /// Results that it had not.
    results: u64,
    /// Their runs.
    runs: u64,
    /// Results that could not be put into it; they are tried again.
    left: u64,
}

pub fn put(args: &LakeArgs) -> anyhow::Result<ExitCode> {
    let store = open(&args.data)?;
    expect_elsewhere(&args.lake, &store)?;
    let interrupt = Interrupt::install()?;
    let lake = Lake::create(&args.lake)?;
    let bar = terminal::working(format!("adding to {}", args.lake.display()));
    let added = add_all(&store, &lake, &|| interrupt.came());
    bar.finish_and_clear();
    let added = added?;
    match args.json {
        true => terminal::print_json(&terminal::json(&added))?,
        false => terminal::print(&line(&format!(
            "{}: {} results of {} runs were added",
            args.lake.display(),
            added.results,
            added.runs
        )))?,
    }
    match added.left {
        0 => Ok(ExitCode::SUCCESS),
        left => bail!("{left} results could not be added; the lines above say why"),
    }
}

/// Opens, or makes, the lake of a server.
///
/// Errors: of bad usage for one among the store's files; those of [`Lake::create`].
pub fn open_lake(path: &Path, store: &Store) -> anyhow::Result<Lake> {
    expect_elsewhere(path, store)?;
    Ok(Lake::create(path)?)
}

/// Puts results into the lake, now and after each midnight of UTC, until `stop` says so.
pub fn each_night(store: &Store, lake: &Lake, stop: &dyn Fn() -> bool) {
    let mut done = None;
    while !stop() {
        let day = day();
        if done != Some(day) {
            let shown = lake.root().display();
            match add_all(store, lake, stop) {
                Ok(Added { results: 0, .. }) => {}
                Ok(added) => log::line(&format!(
                    "{shown}: {} results of {} runs were added",
                    added.results, added.runs
                )),
                Err(_) if stop() => {}
                Err(error) => {
                    log::line(&format!("error: {error:#}; the next night tries again"));
                }
            }
            done = Some(day);
        }
        thread::sleep(TICK);
    }
}

/// Days since 1970.
fn day() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() / (24 * 60 * 60))
}

/// Adds what is missing, merges the small files of its dates, and has the store know of it. Whatever
/// is killed in between is done again, and adds nothing twice.
fn add_all(store: &Store, lake: &Lake, stop: &dyn Fn() -> bool) -> anyhow::Result<Added> {
    let readers = Readers::new(store.clone());
    let mut added = Added::default();
    let mut after = 0;
    loop {
        let found = readers.for_lake(after, BATCH)?;
        let Some(last) = found.last() else {
            return Ok(added);
        };
        after = last.number;
        let (mut numbers, mut dates) = (Vec::new(), BTreeSet::new());
        for one in &found {
            if stop() {
                bail!("interrupted: {} results were added", added.results);
            }
            match add(lake, one) {
                Ok(done) => {
                    numbers.push(one.number);
                    dates.insert(done.date);
                    added.results += u64::from(done.new);
                    added.runs += done.results;
                }
                // What is wrong with the lake is not wrong with this result alone.
                Err(error) if is_io(&error) => return Err(error),
                Err(error) => {
                    log::line(&format!("error: result {}: {error:#}", one.number));
                    added.left += 1;
                }
            }
        }
        store.change(&Change::InLake { numbers })?;
        for date in &dates {
            let date: Date = date.parse().map_err(anyhow::Error::msg)?;
            lake.compact(Table::Results, date, Sizes::default(), &|| {
                go_on(lake, stop)
            })?;
        }
    }
}

fn add(lake: &Lake, one: &ForLake) -> anyhow::Result<iostep_fleet::Added> {
    let path = PathBuf::from(format!("result {}", one.number));
    let body = match &one.body {
        Ok(body) => body,
        Err(error) => bail!("{error}"),
    };
    let document = Document::parse(&path, body)?;
    let options = Options {
        // The lake has a hash of it under its own key.
        device: Some(hex::encode(&one.key)),
        ..Options::default()
    };
    Ok(lake.add_result(&path, &document, &options)?)
}

fn is_io(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Io { .. }))
}

/// Errors: the end was asked for.
fn go_on(lake: &Lake, stop: &dyn Fn() -> bool) -> iostep_model::Result<()> {
    match stop() {
        true => Err(Error::io(lake.root(), "go on")(std::io::Error::other(
            "interrupted; what was being merged is as it was",
        ))),
        false => Ok(()),
    }
}
