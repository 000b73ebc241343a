//! How much room the databases take.

use std::os::fd::OwnedFd;
use std::path::Path;

use iostep_model::bench::{CheckpointPolicy, KeyOrder, SqliteJob, SqliteOperation};
use iostep_model::pragma::Journal;

use super::check::touched_pages;
use crate::error::{Error, Result};

/// A page's header, in a leaf and in an interior page; a pointer to a cell; the number of a page.
const LEAF_BYTES: u128 = 8;
const INTERIOR_BYTES: u128 = 12;
const POINTER_BYTES: u128 = 2;
const NUMBER_BYTES: u128 = 4;
/// What waldio reserves of each page.
const RESERVED_BYTES: u128 = 24;

/// Bytes of a number of SQLite's variable length.
fn varint_bytes(value: u128) -> u128 {
    (1..9).find(|&bytes| value >> (7 * bytes) == 0).unwrap_or(9)
}

/// Pages that one table takes with rows that come in order, which fill them to the last row that
/// fits, and then with `scattered` ones, which leave a third of a page empty
/// (sqlite.org/fileformat2.html, sections 1.5 and 1.6).
fn table_pages(job: &SqliteJob, ordered: u128, scattered: u128) -> u128 {
    let reserved = match job.journal {
        Journal::Waldio => RESERVED_BYTES,
        _ => 0,
    };
    let usable = page_bytes(job) - reserved;
    let value = u128::from(job.record_bytes);
    // The header has its own length, the key's type and the value's.
    let payload = 2 + varint_bytes(2 * value + 12) + value;
    let (local, overflow) = split(payload, usable);
    let link = if overflow > 0 { NUMBER_BYTES } else { 0 };
    let key = varint_bytes((ordered + scattered) * u128::from(job.threads));
    let cell = POINTER_BYTES + varint_bytes(payload) + key + local + link;
    let fitting = (usable - LEAF_BYTES) / cell;
    let mut level = ordered.div_ceil(fitting) + (scattered * 3).div_ceil(fitting * 2);
    let mut pages = level + (ordered + scattered) * overflow;
    // Interior pages are at least half full.
    let fanout = (usable - INTERIOR_BYTES) / (POINTER_BYTES + NUMBER_BYTES + key) / 2;
    while level > 1 {
        level = level.div_ceil(fanout);
        pages += level;
    }
    // A page that is split, and one that is not full yet.
    pages + 2
}

/// How much of a payload is in the leaf, in bytes, and how many overflow pages the rest takes.
fn split(payload: u128, usable: u128) -> (u128, u128) {
    if payload <= usable - 35 {
        return (payload, 0);
    }
    let least = (usable - 12) * 32 / 255 - 23;
    let wanted = least + (payload - least) % (usable - NUMBER_BYTES);
    let local = if wanted <= usable - 35 { wanted } else { least };
    (local, (payload - local).div_ceil(usable - NUMBER_BYTES))
}

fn page_bytes(job: &SqliteJob) -> u128 {
    u128::from(job.page_bytes.unwrap_or(4096))
}

/// Bytes of a page, its header and padding in waldio's log.
fn slot_bytes(job: &SqliteJob) -> u128 {
    let frame = page_bytes(job) + 24;
    frame.next_multiple_of(u128::from(job.waldio.padding_bytes.unwrap_or(512).max(512)))
}

/// Bytes that all databases take in the end, with their journals.
fn bytes_needed(job: &SqliteJob) -> u128 {
    let sets = u128::from(if job.shared { 1 } else { job.threads });
    let writers = u128::from(if job.shared { job.threads } else { 1 });
    let transactions = u128::from(job.transactions) * writers;
    let grows = match job.operation {
        SqliteOperation::Insert => true,
        SqliteOperation::Mix(mix) => mix.insert > 0,
        _ => false,
    };
    let inserted = match grows {
        true => transactions * u128::from(job.statements),
        false => 0,
    };
    let rows = u128::from(job.rows);
    // Threads that share a table get in each other's order.
    let pages = match job.keys {
        KeyOrder::Sequential if writers == 1 => table_pages(job, rows + inserted, 0),
        _ => table_pages(job, rows, inserted),
    };
    let page = page_bytes(job);
    let touched = touched_pages(job);
    let log = match (job.journal.is_log(), job.checkpoint) {
        (true, CheckpointPolicy::Never) => transactions * touched * page,
        (true, CheckpointPolicy::Pages(pages)) => (u128::from(pages) + touched) * page,
        (true, CheckpointPolicy::Transactions(every)) => {
            u128::from(every).min(transactions) * touched * page
        }
        _ => touched * page,
    };
    let journal = match job.journal {
        // Files are extended ahead by at most half of this.
        Journal::Waldio => log / page * slot_bytes(job) + (8 << 20),
        _ => log,
    };
    let schema = page;
    let each = schema + u128::from(job.tables) * pages * page + journal;
    sets * u128::from(job.databases) * each
}

/// Checks that the filesystem has room, counting what earlier runs left there as room.
///
/// Errors: `Io`, `Refused`.
pub(super) fn check(job: &SqliteJob, directory: &OwnedFd, path: &Path) -> Result<()> {
    let stat = rustix::fs::fstatvfs(directory)
        .map_err(|errno| Error::io(path, "ask the free space of")(errno.into()))?;
    let free = u128::from(stat.f_bavail) * u128::from(stat.f_frsize);
    let needed = bytes_needed(job);
    // A filesystem without blocks, as ramfs, does not say.
    if needed <= free || stat.f_blocks == 0 {
        return Ok(());
    }
    const MIB: u128 = 1 << 20;
    Err(Error::Refused {
        what: format!(
            "{}: the databases may take {} MiB, but {} MiB are free",
            path.display(),
            needed.div_ceil(MIB),
            free / MIB
        ),
        hint: "choose fewer --rows or --transactions, or another directory".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::plan::Plan;
    use super::super::plan::tests::job as sample;
    use super::super::row::definition;
    use super::*;
    use crate::library::Library;
    use crate::transactions::connection::Connection;

    /// The pages of a database that a job's inserts filled, but for the schema's.
    fn pages_taken(job: &SqliteJob) -> u128 {
        let library = Library::load(None).expect("inside");
        let mut db = Connection::open(library, Path::new(":memory:"), None, true).expect("open");
        let page = page_bytes(job);
        let sql = format!("PRAGMA page_size = {page}; {}; BEGIN", definition(0));
        db.execute_batch(&sql).expect("a table");
        let sql = "INSERT INTO t0 (key, value) VALUES (?1, ?2)";
        let insert = db.prepare(sql).expect("a statement");
        let value = vec![1; job.record_bytes as usize];
        let mut plan = Plan::new(job, 0);
        let mut rows = Vec::new();
        while plan.next(&mut rows).is_some() {
            for &row in &rows {
                let key = plan.share().key(row);
                db.change(insert, key, Some(&value)).expect("a row");
            }
        }
        let pages = db.first_text("PRAGMA page_count").expect("a number");
        pages
            .and_then(|pages| pages.parse::<u128>().ok())
            .expect("a number")
            - 1
    }

    fn job(keys: KeyOrder, page_bytes: u32, record_bytes: u32) -> SqliteJob {
        SqliteJob {
            page_bytes: Some(page_bytes),
            record_bytes,
            threads: 1,
            // Some hundred pages of whatever size.
            transactions: u64::from(page_bytes) * 100 / u64::from(record_bytes.max(20)) + 100,
            statements: 1,
            ..sample(SqliteOperation::Insert, keys, 0)
        }
    }

    #[test]
    fn rows_in_order_take_what_is_asked_for_to_two_percent() {
        for page in [512, 4096, 65536] {
            for record in [100, 126, 127, 450, 1000, 2030, 3000, 4061, 4062, 10_000] {
                let job = job(KeyOrder::Sequential, page, record);
                let taken = pages_taken(&job);
                let asked = table_pages(&job, job.transactions.into(), 0);
                // Interior pages of 512 bytes are many, and not all half empty.
                let spare = 4 + taken / if page == 512 { 16 } else { 50 };
                assert!(
                    (taken..=taken + spare).contains(&asked),
                    "{asked} for {taken}: {job:?}"
                );
            }
        }
    }

    #[test]
    fn rows_in_any_order_take_no_more_than_is_asked_for() {
        for page in [512, 4096, 65536] {
            for record in [1, 100, 450, 1000, 2030, 3000, 10_000] {
                let job = job(KeyOrder::Random, page, record);
                let taken = pages_taken(&job);
                let asked = table_pages(&job, 0, job.transactions.into());
                assert!(
                    (taken..2 * taken).contains(&asked),
                    "{asked} for {taken}: {job:?}"
                );
            }
        }
    }
}
