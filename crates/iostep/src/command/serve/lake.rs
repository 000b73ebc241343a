//! `iostep serve lake`, and what `iostep serve --lake` does each night: valid results become rows of
//! a lake.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{anyhow, bail};
use iostep_fleet::{Date, Lake, Options, Sizes, Table};
use iostep_model::bench::Document;
use iostep_model::hex;
use iostep_serve::log;
use iostep_serve::store::{Change, Filter, ForLake, Outcome, Readers, Record, State, Store};

use super::{expect_elsewhere, line, open};
use crate::command::fleet::go_on;
use crate::error::bad_input;
use crate::interrupt::Interrupt;
use crate::terminal;

/// Results that the store is told of at once.
const BATCH: u32 = 500;
/// Results of which the store forgets at once that a lake has them.
const FORGOTTEN: usize = 1000;
/// New files of a date, one for each result, that are merged before there are more.
const MOST_SMALL: u64 = 1000;
/// Results are of days on which there was a phone that runs this, and of none to come.
const FIRST_DAY: &str = "2015-01-01";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How often somebody looks whether it is night, or the end.
const TICK: Duration = Duration::from_millis(200);

/// Put the valid results that a lake has not got into it.
///
/// Once, as iostep serve --lake does each night.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep serve lake --data results /srv/lake
  iostep serve lake --data results /srv/another --anew")]
pub struct LakeArgs {
    /// Directory of the results
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// The lake; made if it is not there
    #[arg(value_name = "LAKE")]
    lake: PathBuf,

    /// Put all of them there, as into a lake that this store has not filled before
    #[arg(long)]
    anew: bool,

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
    /// Results that were not put into it.
    left: u64,
}

pub fn put(args: &LakeArgs) -> anyhow::Result<ExitCode> {
    let store = open(&args.data)?;
    let interrupt = Interrupt::install()?;
    let lake = of_store(&args.lake, &store, args.anew)?;
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
        left => bail!("{left} results were not added; the lines above say why"),
    }
}

/// Opens the lake that a store fills, or makes it if the store has none.
///
/// Errors: of bad usage for one among the store's files, and, unless the store is to fill it `anew`,
/// for another lake than the one it has filled; those of [`Lake::create`].
pub fn of_store(path: &Path, store: &Store, anew: bool) -> anyhow::Result<Lake> {
    expect_elsewhere(path, store)?;
    // Of a disk that is not mounted, or a name that is mistyped, no new lake is made.
    let lake = match store.fills_a_lake()? && !anew {
        true => Lake::open(path)?,
        false => Lake::create(path)?,
    };
    if anew {
        forget(store)?;
    }
    let fill = Change::FillLake {
        lake: lake.identity(),
        anew,
    };
    match store.change(&fill)? {
        Outcome::Done => Ok(lake),
        _ => Err(bad_input(anyhow!(
            "{}: the store fills another lake, or was about to when that was ended; name that one, or fill \
             this one from the start with iostep serve lake --anew",
            path.display()
        ))),
    }
}

/// Has the store forget what its lake has, a part at a time, so that uploads go on meanwhile. Until
/// all of it is, it fills none.
///
/// Errors: those of the store.
fn forget(store: &Store) -> anyhow::Result<()> {
    store.change(&Change::FillNone)?;
    let newest = Filter {
        limit: 1,
        ..Filter::default()
    };
    let newest = Readers::new(store.clone()).list(&newest)?;
    let newest = newest.results.first().map_or(0, |it| it.number);
    for first in (0..=newest).step_by(FORGOTTEN) {
        let below = first.saturating_add(FORGOTTEN as i64);
        store.change(&Change::ForgetLake { first, below })?;
    }
    Ok(())
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
    since.map_or(0, |since| since.as_secs() / DAY.as_secs())
}

/// Adds what is missing, has the store know of it, and merges small files. Whatever is killed in
/// between is done again, and adds nothing twice.
fn add_all(store: &Store, lake: &Lake, stop: &dyn Fn() -> bool) -> anyhow::Result<Added> {
    let readers = Readers::new(store.clone());
    let (mut added, mut after) = (Added::default(), 0);
    let mut small = BTreeMap::<String, u64>::new();
    loop {
        let found = readers.for_lake(after, BATCH)?;
        let Some(last) = found.last() else {
            break;
        };
        after = last.number;
        let mut numbers = Vec::new();
        for one in &found {
            if stop() {
                bail!("interrupted: {} results were added", added.results);
            }
            match add(&readers, lake, one)? {
                Ok(Some(done)) => {
                    added.results += u64::from(done.new);
                    added.runs += done.results;
                    *small.entry(done.date).or_default() += 1;
                }
                Ok(None) => continue,
                Err(why) => {
                    log::line(&format!("error: result {}: {why}", hex::encode(&one.id)));
                    added.left += 1;
                }
            }
            numbers.push(one.number);
        }
        let filled = Change::InLake {
            numbers,
            lake: lake.identity(),
        };
        if store.change(&filled)? != Outcome::Done {
            bail!("the store fills another lake by now");
        }
        for (date, files) in &mut small {
            if *files >= MOST_SMALL {
                merge(lake, date.parse().map_err(anyhow::Error::msg)?, stop)?;
                *files = 0;
            }
        }
    }
    // Of all dates: whoever was killed before may have left some.
    for date in lake.dates()? {
        merge(lake, date, stop)?;
    }
    Ok(added)
}

/// Adds a result, unless it was taken back meanwhile or is no longer valid; or why it is none for a
/// lake.
///
/// Errors: those of the store and of the lake.
fn add(
    readers: &Readers,
    lake: &Lake,
    one: &ForLake,
) -> anyhow::Result<Result<Option<iostep_fleet::Added>, String>> {
    let (submission, body) = match readers.submission(&one.id) {
        Ok(Record::Kept(submission, body)) if submission.state == State::Valid => {
            (submission, body)
        }
        Ok(_) => return Ok(Ok(None)),
        Err(error @ iostep_serve::Error::Damaged { .. }) => return Ok(Err(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    let path = PathBuf::from(format!("result {}", submission.id));
    let document = match Document::parse(&path, &body) {
        Ok(document) => document,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let Some(began) = document.runs.first().map(|run| run.start_wall_ns) else {
        return Ok(Err("it has no run".into()));
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let received = Duration::from_secs(submission.received.unsigned_abs());
    if !is_of_its_time(began, received, now.unwrap_or_default())? {
        return Ok(Err(format!(
            "its clock was wrong: it began on {}",
            date(began)
        )));
    }
    let options = Options {
        // The lake has a hash of it under its own key.
        device: Some(hex::encode(&one.key)),
        ..Options::default()
    };
    Ok(Ok(Some(lake.add_result(&path, &document, &options)?)))
}

fn date(wall_ns: u64) -> Date {
    Date::of_wall_ns(i64::try_from(wall_ns).unwrap_or(i64::MAX))
}

/// False for a result that began, in nanoseconds since 1970, before there were any, or a day after it
/// came. The server's own clock may have been wrong then, and be right now.
fn is_of_its_time(began: u64, received: Duration, now: Duration) -> anyhow::Result<bool> {
    let first: Date = FIRST_DAY.parse().map_err(anyhow::Error::msg)?;
    let last_ns = (received.max(now) + DAY).as_nanos();
    Ok(u128::from(began) <= last_ns && date(began) >= first)
}

/// Merges a date's small files. What keeps them from that keeps no result out of the lake.
///
/// Errors: the end was asked for.
fn merge(lake: &Lake, date: Date, stop: &dyn Fn() -> bool) -> anyhow::Result<()> {
    let go_on = || go_on(lake.root(), stop());
    match lake.compact(Table::Results, date, Sizes::default(), &go_on) {
        Err(error) if stop() => Err(error.into()),
        Err(error) => {
            log::line(&format!("error: {error}"));
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_of_its_time_also_if_the_servers_clock_was_not() {
        let at = |days: u64| Duration::from_secs(days * 86_400);
        let is = |began: u64, received: u64, now: u64| {
            let began = at(began).as_nanos() as u64;
            is_of_its_time(began, at(received), at(now)).expect("a day")
        };
        assert!(is(20_000, 20_000, 20_001));
        assert!(is(20_001, 20_000, 20_000));
        assert!(!is(20_002, 20_000, 20_000));
        assert!(!is(16_000, 20_000, 20_000));
        assert!(!is(0, 20_000, 20_000));
        // It began in 1970, until somebody set it.
        assert!(is(20_000, 0, 20_001));
        assert!(!is(20_003, 0, 20_001));
        assert!(!is_of_its_time(u64::MAX, at(20_000), at(20_000)).expect("a day"));
    }
}
