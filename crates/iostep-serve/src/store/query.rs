//! What is asked of a store.

use std::path::Path;

use iostep_model::hex;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

use super::state::State;
use crate::check::Reason;
use crate::error::{Error, Result};
use crate::packing::unpack;
use crate::subject::{Device, Product};
use crate::upload::{Id, MOST_BODY_BYTES};

/// What is known of a submission without its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Submission {
    /// Its place in the order in which they came.
    pub number: i64,
    /// SHA-256 of the result, in hexadecimal digits.
    pub id: String,
    /// Seconds since 1970.
    pub received: i64,
    pub state: State,
    pub reasons: Vec<Reason>,
    pub test: String,
    /// Empty for a device without one.
    pub filesystem: String,
    pub device: Device,
}

/// A valid result that the lake has not got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForLake {
    /// As [`Submission::number`].
    pub number: i64,
    pub id: Id,
    /// The public key of its installation.
    pub key: [u8; 32],
}

/// What there is of a result's name.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A submission, and what is kept of its result.
    Kept(Box<Submission>, Vec<u8>),
    /// Its sender took it back.
    Gone,
    Missing,
}

/// Which submissions are listed.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub state: Option<State>,
    pub test: Option<String>,
    pub filesystem: Option<String>,
    /// The name of the storage or of the phone.
    pub device: Option<String>,
    /// Those with lower numbers.
    pub before: Option<i64>,
    /// How many at most.
    pub limit: u32,
}

/// A part of a list, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Page {
    pub results: Vec<Submission>,
    /// What the next page is before; `None` on the last one.
    pub next_before: Option<i64>,
}

const COLUMNS: &str = "submission.number, id, received, state, reasons, test.name, filesystem,
    vendor, model, part, firmware, capacity_bytes, android, kernel";
const TABLES: &str = "submission JOIN test ON test.number = submission.test
    JOIN device ON device.number = submission.device";

fn submission(row: &Row<'_>) -> rusqlite::Result<Submission> {
    let reasons: String = row.get(4)?;
    Ok(Submission {
        number: row.get(0)?,
        id: hex::encode(&row.get::<_, [u8; 32]>(1)?),
        received: row.get(2)?,
        state: row.get(3)?,
        reasons: serde_json::from_str(&reasons).unwrap_or_default(),
        test: row.get(5)?,
        filesystem: row.get(6)?,
        device: device(row, 7)?,
    })
}

/// From seven columns, of which `first` is the first.
pub(super) fn device(row: &Row<'_>, first: usize) -> rusqlite::Result<Device> {
    Ok(Device {
        vendor: row.get(first)?,
        model: row.get(first + 1)?,
        part: row.get(first + 2)?,
        firmware: row.get(first + 3)?,
        capacity_bytes: row.get::<_, i64>(first + 4)?.unsigned_abs(),
        android: row.get(first + 5)?,
        kernel: row.get(first + 6)?,
    })
}

/// A submission with its body as it is stored.
pub(super) fn record(db: &Connection, id: &Id) -> rusqlite::Result<Record> {
    let sql = format!("SELECT {COLUMNS}, body FROM {TABLES} WHERE id = ?1");
    let found = db
        .prepare_cached(&sql)?
        .query_row([id], |row| Ok((submission(row)?, row.get(14)?)))
        .optional()?;
    if let Some((submission, body)) = found {
        return Ok(Record::Kept(Box::new(submission), body));
    }
    let gone = db
        .prepare_cached("SELECT 1 FROM gone WHERE id = ?1")?
        .exists([id])?;
    Ok(if gone { Record::Gone } else { Record::Missing })
}

/// The first of those after a number. Without its index SQLite would visit every valid result.
pub(super) fn for_lake(db: &Connection, after: i64, limit: u32) -> rusqlite::Result<Vec<ForLake>> {
    let mut statement = db.prepare_cached(
        "SELECT submission.number, id, key
         FROM submission INDEXED BY submission_for_lake
            JOIN installation ON installation.number = installation
         WHERE state = 'valid' AND in_lake = 0 AND submission.number > ?1
         ORDER BY submission.number LIMIT ?2",
    )?;
    let rows = statement.query_map(params![after, limit], |row| {
        Ok(ForLake {
            number: row.get(0)?,
            id: row.get(1)?,
            key: row.get(2)?,
        })
    })?;
    rows.collect()
}

impl Record {
    /// With the body as it was before it was packed.
    pub(super) fn unpacked(self, path: &Path) -> Result<Record> {
        let Record::Kept(submission, body) = self else {
            return Ok(self);
        };
        let body = unpack(&body, MOST_BODY_BYTES).map_err(|error| Error::Damaged {
            path: path.to_owned(),
            place: format!("submission {}", submission.number),
            reason: error.to_string(),
        })?;
        Ok(Record::Kept(submission, body))
    }
}

pub(super) fn list(db: &Connection, filter: &Filter) -> rusqlite::Result<Page> {
    // Written out by what is asked for, so that SQLite can choose the index; the rows of the
    // results themselves are long.
    let mut kind = String::from("SELECT number FROM submission WHERE number < ?1");
    if filter.state.is_some() {
        kind += " AND state = ?2";
    }
    if filter.test.is_some() {
        kind += " AND test = (SELECT number FROM test WHERE name = ?3)";
    }
    if filter.filesystem.is_some() {
        kind += " AND filesystem = ?4";
    }
    if filter.device.is_some() {
        kind += " AND device IN (SELECT number FROM device WHERE part = ?5 OR model = ?5)";
    }
    // One more tells whether there is another page.
    let sql = format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE submission.number IN
            ({kind} AND ?2 IS ?2 AND ?3 IS ?3 AND ?4 IS ?4 AND ?5 IS ?5
             ORDER BY number DESC LIMIT ?6)
         ORDER BY submission.number DESC"
    );
    let limit = i64::from(filter.limit);
    let parameters = params![
        filter.before.unwrap_or(i64::MAX),
        filter.state,
        filter.test,
        filter.filesystem,
        filter.device,
        limit + 1
    ];
    let mut statement = db.prepare_cached(&sql)?;
    let rows = statement.query_map(parameters, submission)?;
    Ok(page(rows.collect::<rusqlite::Result<_>>()?, filter.limit))
}

/// A page of what may be one more than fits on it.
fn page(mut results: Vec<Submission>, limit: u32) -> Page {
    let is_last = results.len() <= limit as usize;
    results.truncate(limit as usize);
    let next_before = results.last().filter(|_| !is_last).map(|last| last.number);
    Page {
        results,
        next_before,
    }
}

/// The newest submissions of a product, whose devices `devices` selects.
pub(super) fn list_of(
    db: &Connection,
    (devices, product): (&str, &Product),
    before: Option<i64>,
    limit: u32,
) -> rusqlite::Result<Page> {
    let mut statement = db.prepare_cached(&of_devices(devices))?;
    let parameters = params![
        product.vendor,
        product.model,
        product.part,
        product.capacity_bytes.min(i64::MAX as u64) as i64,
        before.unwrap_or(i64::MAX),
        i64::from(limit) + 1
    ];
    let rows = statement.query_map(parameters, submission)?;
    Ok(page(rows.collect::<rusqlite::Result<_>>()?, limit))
}

/// Finds the numbers by the index; the rows themselves are long.
pub(super) fn of_devices(devices: &str) -> String {
    format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE submission.number IN
            (SELECT number FROM submission INDEXED BY submission_by_device
             WHERE device IN ({devices}) AND number < ?5 ORDER BY number DESC LIMIT ?6)
         ORDER BY submission.number DESC"
    )
}

pub(super) fn tests(db: &Connection) -> rusqlite::Result<Vec<(String, u64)>> {
    let mut statement = db.prepare_cached(
        "SELECT name, results FROM tally JOIN test ON test.number = tally.test
         WHERE state = 'valid' AND results > 0 ORDER BY results DESC, name",
    )?;
    let rows = statement.query_map([], |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
    })?;
    rows.collect()
}

pub(super) fn states(db: &Connection) -> rusqlite::Result<Vec<(State, u64)>> {
    let mut statement = db.prepare_cached(
        "SELECT state, sum(results) FROM tally GROUP BY state
             HAVING sum(results) > 0 ORDER BY state",
    )?;
    let rows = statement.query_map([], |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
    })?;
    rows.collect()
}

/// Reads something that every store has.
pub(super) fn touch(db: &Connection) -> rusqlite::Result<()> {
    let mut statement = db.prepare_cached("SELECT count(*) FROM meta")?;
    statement.query_row([], |_| Ok(()))
}
