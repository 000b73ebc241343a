//! What is refused before anything is made. The range of a single option stands at the option, in
//! [`SqliteJob`]; here are the rules between them, and SQLite's own limits.

use iostep_model::bench::{
    CheckpointPolicy, KeyOrder, SqliteJob, SqliteOperation, WalFile, WaldioLayout, WaldioOptions,
    WaldioSync,
};
use iostep_model::pragma::Journal;
use rusqlite::ffi;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::connection::Connection;
use super::plan::{Plan, Share};
use crate::batch_atomic;
use crate::error::{Error, Result};
use crate::library::Library;

const MAX_TABLES: u32 = 1000;
const MAX_STATEMENTS: u32 = 1_000_000;
/// Keys stay far below 2^63 even if every one is multiplied by the threads.
const MAX_KEYS: u64 = 1 << 50;
/// Rows that may be kept in mind, eight bytes each: 2 GiB.
const MAX_REMEMBERED_ROWS: u64 = 1 << 28;
/// Transactions that may be gone through beforehand: a few seconds.
const MAX_FORESEEN: u64 = 1 << 28;
/// A database, its journal or WAL, and the WAL's index.
const FILES_PER_DATABASE: u64 = 3;
/// Whatever else the process has open.
const OTHER_FILES: u64 = 128;

fn usage(what: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::Usage {
        what: what.into(),
        hint: hint.into(),
    }
}

/// Checks everything that follows from the job alone.
///
/// Errors: `Usage`.
pub(super) fn job(job: &SqliteJob) -> Result<()> {
    let counts = [
        ("transactions", job.transactions, MAX_KEYS),
        ("tables", job.tables.into(), MAX_TABLES.into()),
        ("statements", job.statements.into(), MAX_STATEMENTS.into()),
        ("databases", job.databases.into(), u32::MAX.into()),
        ("record bytes", job.record_bytes.into(), i32::MAX as u64),
    ];
    for (what, count, most) in counts {
        if count == 0 || count > most {
            let hint = format!("choose 1 to {most}");
            return Err(usage(format!("{count} {what}"), hint));
        }
    }
    if job
        .page_bytes
        .is_some_and(|bytes| !(512..=65536).contains(&bytes) || !bytes.is_power_of_two())
    {
        let what = format!("a page of {} bytes", job.page_bytes.unwrap_or(0));
        return Err(usage(what, "choose a power of two from 512 to 65536"));
    }
    wal_file(job)?;
    waldio(job)?;
    batch_atomic::check_job(job)?;
    rows(job)
}

/// Checks that there is a log, and that it ends, where its file is to have its length beforehand.
fn wal_file(job: &SqliteJob) -> Result<()> {
    if job.wal_file == WalFile::Fresh {
        return Ok(());
    }
    if !job.journal.is_log() {
        let what = format!("a steady log in journal mode {}", job.journal);
        return Err(usage(what, "choose journal mode wal or waldio"));
    }
    if job.checkpoint == CheckpointPolicy::Never && job.measurement.limits.time_ns.is_some() {
        let what = "a steady log that is never checkpointed and grows until the time is over";
        return Err(usage(
            what,
            "give the number of --transactions, or checkpoint",
        ));
    }
    Ok(())
}

/// Frames that a log has before it starts over.
pub(super) fn wal_frames(job: &SqliteJob) -> u64 {
    let touched = u64::try_from(touched_pages(job)).unwrap_or(u64::MAX);
    let writers = u64::from(if job.shared { job.threads } else { 1 });
    match job.checkpoint {
        CheckpointPolicy::Pages(pages) => u64::from(pages).saturating_add(touched),
        CheckpointPolicy::Transactions(every) => every
            .min(job.transactions)
            .saturating_mul(touched)
            .saturating_mul(writers),
        CheckpointPolicy::Never => job
            .transactions
            .saturating_mul(touched)
            .saturating_mul(writers),
    }
}

/// Checks the options of waldio against each other.
fn waldio(job: &SqliteJob) -> Result<()> {
    let options = &job.waldio;
    if job.journal != Journal::Waldio {
        return match *options == WaldioOptions::default() {
            true => Ok(()),
            false => Err(usage(
                format!("options of waldio in journal mode {}", job.journal),
                "choose journal mode waldio, or leave them out",
            )),
        };
    }
    if job.fsync {
        let what = "fsync in place of waldio's own flushes";
        return Err(usage(what, "leave --fsync out"));
    }
    if job.library.is_some() && options.library.is_none() {
        let what = "waldio inside of iostep belongs to the SQLite inside";
        let hint = "name a waldio.so for that library with --waldio-lib (make -C waldio)";
        return Err(usage(what, hint));
    }
    let bounds_groups = options.group_frames.is_some() || options.group_ms.is_some();
    if bounds_groups && options.sync != Some(WaldioSync::Group) {
        let what = "a bound of groups in a sync mode without groups";
        return Err(usage(what, "choose --waldio-sync group"));
    }
    if let (Some(bytes), Some(layout)) = (options.padding_bytes, options.layout)
        && layout != WaldioLayout::P
    {
        let what = format!("a padding of {bytes} bytes in layout {layout}");
        return Err(usage(what, "only layout P has a padding"));
    }
    Ok(())
}

/// Checks that there are rows for what is done with them.
fn rows(job: &SqliteJob) -> Result<()> {
    let written = job.transactions.saturating_mul(job.statements.into());
    if job.rows.max(written) > MAX_KEYS {
        let what = format!("{} rows in a table", job.rows.max(written));
        return Err(usage(what, format!("choose at most {MAX_KEYS}")));
    }
    let needs_rows = match job.operation {
        SqliteOperation::Insert => false,
        SqliteOperation::Mix(mix) => mix.insert == 0,
        _ => true,
    };
    // The last share is the smallest.
    let least = Share::of(job, job.threads - 1).rows;
    if needs_rows && least == 0 {
        let what = format!(
            "{} rows in each table for {} threads",
            job.rows, job.threads
        );
        return Err(usage(
            what,
            "choose at least a row for each thread with --rows",
        ));
    }
    remembered(job, written)?;
    if only_deletes(job.operation) && least < u64::from(job.statements) {
        let what = format!(
            "{} deletes in a transaction, of {least} rows of a thread",
            job.statements
        );
        return Err(usage(what, "choose more --rows or fewer --statements"));
    }
    match job.operation {
        _ if job.measurement.limits.time_ns.is_some() => Ok(()),
        SqliteOperation::Delete if written > least => {
            let wanted = match job.shared {
                true => written.saturating_mul(job.threads.into()),
                false => written,
            };
            let what = format!("{wanted} deletes of {} rows in each table", job.rows);
            Err(usage(
                what,
                format!("choose --rows {wanted} or fewer --transactions"),
            ))
        }
        SqliteOperation::Mix(mix) if mix.insert == 0 && mix.delete > 0 && written > least => {
            mix_lasts(job)
        }
        _ => Ok(()),
    }
}

/// Checks that what has to be kept in memory of the rows fits there.
fn remembered(job: &SqliteJob, written: u64) -> Result<()> {
    let mixes = matches!(job.operation, SqliteOperation::Mix(_));
    let shuffles = mixes && job.keys == KeyOrder::Random;
    let threads = u64::from(job.threads);
    let rows = match job.shared {
        true => job.rows.saturating_add(written.saturating_mul(threads)),
        false => job.rows.saturating_add(written).saturating_mul(threads),
    };
    if rows <= MAX_REMEMBERED_ROWS || !(shuffles || job.measurement.verify) {
        return Ok(());
    }
    Err(usage(
        format!("a random mix, or a verification, of {rows} rows"),
        format!("choose at most {MAX_REMEMBERED_ROWS} with --rows and --transactions"),
    ))
}

fn only_deletes(operation: SqliteOperation) -> bool {
    match operation {
        SqliteOperation::Mix(mix) => [mix.insert, mix.update, mix.read] == [0; 3],
        other => other == SqliteOperation::Delete,
    }
}

/// A mix without inserts runs out of rows sooner or later: finds out when.
fn mix_lasts(job: &SqliteJob) -> Result<()> {
    if job.transactions.saturating_mul(job.threads.into()) > MAX_FORESEEN {
        let what = format!(
            "{} transactions that may delete every row",
            job.transactions
        );
        return Err(usage(what, "choose fewer, or give insert a weight"));
    }
    let mut rows = Vec::new();
    for thread in 0..job.threads {
        let mut plan = Plan::new(job, thread);
        for number in 1..=job.transactions {
            if plan.next(&mut rows).is_none() {
                let what = format!("no rows are left for transaction {number} of thread {thread}");
                return Err(usage(what, "choose more --rows, or give insert a weight"));
            }
        }
    }
    Ok(())
}

/// Checks what the library can do.
///
/// Errors: `Usage` beyond its limits; `Unsupported` for threads without its locks.
pub(super) fn library(job: &SqliteJob, library: Library, probe: &Connection) -> Result<()> {
    if job.threads > 1 && !library.threadsafe() {
        return Err(Error::Unsupported {
            what: format!("SQLite {} was built for one thread", library.version()),
            hint: "choose --threads 1, or a library with SQLITE_THREADSAFE".into(),
        });
    }
    let databases = probe.limit(ffi::SQLITE_LIMIT_ATTACHED).max(0) as u32 + 1;
    if job.databases > databases {
        return Err(usage(
            format!("{} databases in a transaction", job.databases),
            format!("this SQLite takes at most {databases}, attached ones included"),
        ));
    }
    // The row's header and key take a few bytes of it, too.
    let bytes = (probe.limit(ffi::SQLITE_LIMIT_LENGTH).max(0) as u32).saturating_sub(64);
    if job.record_bytes > bytes {
        return Err(usage(
            format!("a record of {} bytes", job.record_bytes),
            format!("this SQLite takes at most {bytes} in a row"),
        ));
    }
    Ok(())
}

/// Pages of a database that a transaction writes, with some to spare.
pub(super) fn touched_pages(job: &SqliteJob) -> u128 {
    let page = u128::from(job.page_bytes.unwrap_or(4096));
    let each = 2 + u128::from(job.record_bytes) / page;
    u128::from(job.tables) * u128::from(job.statements) * each
}

/// Makes room for every thread's descriptors.
///
/// Errors: `Refused` if the hard limit is too low.
pub(super) fn descriptors(job: &SqliteJob) -> Result<()> {
    let databases = u64::from(job.threads) * u64::from(job.databases);
    let needed = databases * FILES_PER_DATABASE + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).map_err(|_| Error::Refused {
        what: format!("{databases} connections' databases need {needed} open files"),
        hint: "raise the limit (ulimit -n), or choose fewer --threads or --databases".into(),
    })
}
