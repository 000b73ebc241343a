//! What changes a store.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::outlier;
use super::schema::{LAKE, SECRET};
use super::state::State;
use crate::check::Reason;
use crate::error::{Error, Result};
use crate::packing::pack;
use crate::subject::Device;
use crate::upload::{Id, Upload};

/// Something that makes a store another one.
#[derive(Clone, Debug)]
pub enum Change {
    /// A result comes from an installation, named by its public key.
    Add {
        /// Without its body: many may wait.
        upload: Box<Upload>,
        /// What is kept of it, in zstd.
        packed: Vec<u8>,
        key: [u8; 32],
    },
    /// Whoever sent a result takes it back.
    Remove { id: Id, key_may: KeyMay },
    /// An operator decides about a result.
    Decide {
        id: Id,
        state: State,
        reason: String,
    },
    /// The store fills no lake until it fills one anew.
    FillNone,
    /// The store fills a lake from now on, named by whatever is its own, unless it fills another one;
    /// `anew` after [`Change::FillNone`] alone.
    FillLake { lake: String, anew: bool },
    /// No lake is known to have any of these submissions.
    ForgetLake { first: i64, below: i64 },
    /// This lake has these submissions, if the store still fills it.
    InLake { numbers: Vec<i64>, lake: String },
}

/// Who may take a result back: whose key makes this token.
#[derive(Clone)]
pub struct KeyMay {
    pub secret: Secret,
    pub token: [u8; 32],
}

impl std::fmt::Debug for KeyMay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyMay")
    }
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was added, or removed, or decided.
    Done,
    /// It was added, and is not ranked for this until an operator restores it.
    Doubted(Reason),
    /// It was added again, and is what an operator had said of it before its sender took it back.
    Decided { state: State, reasons: Vec<Reason> },
    /// The result is there already; it is the same installation's, or another one's.
    Known { is_own: bool, state: State },
    /// There is no such result.
    Missing,
    /// The token is that of another result, or the lake is another one.
    Forbidden,
}

/// Of what delete tokens are made, so that none has to be kept, and the same upload has the same.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    pub(super) fn read(db: &Connection, path: &Path) -> Result<Secret> {
        let sql = "SELECT value FROM meta WHERE name = ?1";
        let found = db.query_row(sql, [SECRET], |row| row.get(0));
        found.map(Secret).map_err(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => Error::Damaged {
                path: path.to_owned(),
                place: "meta".into(),
                reason: "the secret is missing".into(),
            },
            error => Error::database(path)(error),
        })
    }

    /// What the sender of a result shows to take it back.
    pub fn token(&self, id: &Id, key: &[u8; 32]) -> [u8; 32] {
        // All three have a length that is always the same, so nothing can be put behind them.
        let parts = [&self.0[..], id, key];
        Sha256::digest(parts.concat()).into()
    }
}

impl Change {
    /// An upload, packed.
    ///
    /// Errors: out of memory.
    pub fn add(mut upload: Upload, key: [u8; 32]) -> std::io::Result<Change> {
        let body = std::mem::take(&mut upload.body);
        Ok(Change::Add {
            packed: pack(&body)?,
            upload: Box::new(upload),
            key,
        })
    }

    /// Makes the change within the transaction under way.
    pub(super) fn apply(&self, db: &Connection) -> rusqlite::Result<Outcome> {
        match self {
            Change::Add {
                upload,
                packed,
                key,
            } => add(db, upload, packed, key),
            Change::Remove { id, key_may } => remove(db, id, key_may),
            Change::Decide { id, state, reason } => decide(db, id, *state, reason),
            Change::FillNone => set_lake(db, ""),
            Change::FillLake { lake, anew } => fill_lake(db, lake, *anew),
            Change::ForgetLake { first, below } => forget_lake(db, *first, *below),
            Change::InLake { numbers, lake } => in_lake(db, numbers, lake),
        }
    }
}

/// What names the lake that the store fills, if it has filled one.
pub(super) fn lake(db: &Connection) -> rusqlite::Result<Option<String>> {
    db.prepare_cached("SELECT value FROM meta WHERE name = ?1")?
        .query_row([LAKE], |row| {
            Ok(String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?).into())
        })
        .optional()
}

fn fill_lake(db: &Connection, lake: &str, anew: bool) -> rusqlite::Result<Outcome> {
    let known = self::lake(db)?;
    let may = match anew {
        true => known.as_deref() == Some(""),
        false => known.is_none_or(|known| known == lake),
    };
    match may {
        true => set_lake(db, lake),
        false => Ok(Outcome::Forbidden),
    }
}

fn set_lake(db: &Connection, lake: &str) -> rusqlite::Result<Outcome> {
    db.prepare_cached(
        "INSERT INTO meta (name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    )?
    .execute(params![LAKE, lake.as_bytes()])?;
    Ok(Outcome::Done)
}

fn forget_lake(db: &Connection, first: i64, below: i64) -> rusqlite::Result<Outcome> {
    db.prepare_cached(
        "UPDATE submission SET in_lake = 0 WHERE number >= ?1 AND number < ?2 AND in_lake = 1",
    )?
    .execute([first, below])?;
    Ok(Outcome::Done)
}

fn in_lake(db: &Connection, numbers: &[i64], lake: &str) -> rusqlite::Result<Outcome> {
    if self::lake(db)?.as_deref() != Some(lake) {
        return Ok(Outcome::Forbidden);
    }
    let mut update = db.prepare_cached("UPDATE submission SET in_lake = 1 WHERE number = ?1")?;
    for number in numbers {
        update.execute([number])?;
    }
    Ok(Outcome::Done)
}

/// Seconds since 1970; 0 for a clock before that.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs().min(i64::MAX as u64) as i64)
}

fn add(
    db: &Connection,
    upload: &Upload,
    packed: &[u8],
    key: &[u8; 32],
) -> rusqlite::Result<Outcome> {
    let known: Option<([u8; 32], State)> = db
        .prepare_cached(
            "SELECT key, state FROM submission JOIN installation ON installation.number = installation
             WHERE id = ?1",
        )?
        .query_row([upload.id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((known, state)) = known {
        let is_own = known == *key;
        return Ok(Outcome::Known { is_own, state });
    }
    let installation = installation(db, key)?;
    let test = test(db, &upload.test)?;
    let device = device(db, &upload.device)?;
    let mut reasons = upload.reasons.clone();
    let doubt = match reasons.is_empty() {
        true => outlier::doubt(db, upload, test, installation)?,
        false => None,
    };
    let state = match (&doubt, reasons.is_empty()) {
        (Some(_), _) => State::Quarantined,
        (None, true) => State::Valid,
        (None, false) => State::Invalid,
    };
    reasons.extend(doubt.clone());
    let decided = decided_before(db, &upload.id)?;
    let is_decided = decided.is_some();
    let state = match decided {
        Some((state, said)) => {
            reasons.retain(|fresh| said.iter().all(|it| it.code != fresh.code));
            reasons.extend(said);
            state
        }
        None => state,
    };
    db.prepare_cached("DELETE FROM gone WHERE id = ?1")?
        .execute([upload.id])?;
    db.prepare_cached(
        "INSERT INTO submission
            (id, received, state, reasons, test, filesystem, device, installation, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        upload.id,
        now(),
        state,
        reasons_text(&reasons),
        test,
        upload.filesystem,
        device,
        installation,
        packed
    ])?;
    let rows = Rows {
        test,
        device,
        installation,
        submission: db.last_insert_rowid(),
        counts: state == State::Valid,
    };
    rows.insert(db, upload)?;
    Ok(match doubt {
        _ if is_decided => Outcome::Decided { state, reasons },
        Some(doubt) => Outcome::Doubted(doubt),
        None => Outcome::Done,
    })
}

/// What the rows of a result's figures share.
struct Rows {
    test: i64,
    device: i64,
    installation: i64,
    submission: i64,
    counts: bool,
}

impl Rows {
    fn insert(&self, db: &Connection, upload: &Upload) -> rusqlite::Result<()> {
        let mut insert = db.prepare_cached(
            "INSERT INTO metric
                (test, measure, device, installation, submission, value, low, high, counts,
                 filesystem)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        for figure in &upload.figures {
            let (low, high) = figure.interval.unzip();
            insert.execute(params![
                self.test,
                figure.measure,
                self.device,
                self.installation,
                self.submission,
                figure.value,
                low,
                high,
                self.counts,
                upload.filesystem
            ])?;
        }
        Ok(())
    }
}

/// What was said of a result that was doubted or found to be wrong, and then taken back.
fn decided_before(db: &Connection, id: &Id) -> rusqlite::Result<Option<(State, Vec<Reason>)>> {
    let mut statement = db.prepare_cached("SELECT state, reasons FROM gone WHERE id = ?1")?;
    let said = statement
        .query_row([id], |row| {
            let (state, reasons): (Option<State>, Option<String>) = (row.get(0)?, row.get(1)?);
            Ok(state.zip(reasons))
        })
        .optional()?;
    Ok(said
        .flatten()
        .map(|(state, reasons)| (state, reasons_of(&reasons))))
}

fn installation(db: &Connection, key: &[u8; 32]) -> rusqlite::Result<i64> {
    let find = "SELECT number FROM installation WHERE key = ?1";
    let found = db
        .prepare_cached(find)?
        .query_row([key], |row| row.get(0))
        .optional()?;
    if let Some(number) = found {
        return Ok(number);
    }
    db.prepare_cached("INSERT INTO installation (key, since) VALUES (?1, ?2)")?
        .execute(params![key, now()])?;
    Ok(db.last_insert_rowid())
}

fn test(db: &Connection, name: &str) -> rusqlite::Result<i64> {
    let found = db
        .prepare_cached("SELECT number FROM test WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    if let Some(number) = found {
        return Ok(number);
    }
    db.prepare_cached("INSERT INTO test (name) VALUES (?1)")?
        .execute([name])?;
    Ok(db.last_insert_rowid())
}

fn device(db: &Connection, device: &Device) -> rusqlite::Result<i64> {
    let parameters = params![
        device.vendor,
        device.model,
        device.part,
        device.firmware,
        device.capacity_bytes as i64,
        device.android,
        device.kernel
    ];
    let found = db
        .prepare_cached(
            "SELECT number FROM device WHERE vendor = ?1 AND model = ?2 AND part = ?3
             AND firmware = ?4 AND capacity_bytes = ?5 AND android = ?6 AND kernel = ?7",
        )?
        .query_row(parameters, |row| row.get(0))
        .optional()?;
    if let Some(number) = found {
        return Ok(number);
    }
    db.prepare_cached(
        "INSERT INTO device (vendor, model, part, firmware, capacity_bytes, android, kernel)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(parameters)?;
    Ok(db.last_insert_rowid())
}

fn remove(db: &Connection, id: &Id, key_may: &KeyMay) -> rusqlite::Result<Outcome> {
    let mut find = db.prepare_cached(
        "SELECT submission.number, key, installation.number, state, reasons FROM submission
         JOIN installation ON installation.number = installation WHERE id = ?1",
    )?;
    type Found = (i64, [u8; 32], i64, State, String);
    let found: Option<Found> = find
        .query_row([id], |row| {
            let (number, key, installation) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((number, key, installation, row.get(3)?, row.get(4)?))
        })
        .optional()?;
    let Some((number, key, installation, state, reasons)) = found else {
        return Ok(Outcome::Missing);
    };
    if !are_same(&key_may.secret.token(id, &key), &key_may.token) {
        return Ok(Outcome::Forbidden);
    }
    db.prepare_cached("DELETE FROM submission WHERE number = ?1")?
        .execute([number])?;
    // A key that nothing is left of is not kept.
    db.prepare_cached(
        "DELETE FROM installation WHERE number = ?1
         AND NOT EXISTS (SELECT 1 FROM submission WHERE installation = ?1)",
    )?
    .execute([installation])?;
    // Whoever takes it back and brings it again does not get rid of what was said of it.
    let is_decided = matches!(state, State::Quarantined | State::Delisted);
    let decided = is_decided.then_some((state, reasons)).unzip();
    db.prepare_cached(
        "INSERT OR REPLACE INTO gone (id, since, state, reasons) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![id, now(), decided.0, decided.1])?;
    Ok(Outcome::Done)
}

/// Compares in a time that does not depend on where they differ.
fn are_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let differ = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differ) == 0
}

fn decide(db: &Connection, id: &Id, state: State, reason: &str) -> rusqlite::Result<Outcome> {
    let found: Option<(i64, String)> = db
        .prepare_cached("SELECT number, reasons FROM submission WHERE id = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((number, reasons)) = found else {
        return Ok(Outcome::Missing);
    };
    // What its figures say stays beside what the operator said last.
    let mut reasons = reasons_of(&reasons);
    reasons.retain(|reason| reason.code != OPERATOR);
    if state == State::Valid {
        // Who restores a result has looked at it.
        reasons.retain(|reason| reason.code != outlier::CODE);
    }
    let state = match state {
        State::Valid if !reasons.is_empty() => State::Invalid,
        state => state,
    };
    if !reason.is_empty() {
        reasons.push(Reason {
            code: OPERATOR.into(),
            text: reason.to_owned(),
        });
    }
    db.prepare_cached("UPDATE submission SET state = ?2, reasons = ?3 WHERE number = ?1")?
        .execute(params![number, state, reasons_text(&reasons)])?;
    db.prepare_cached("UPDATE metric SET counts = ?2 WHERE submission = ?1")?
        .execute(params![number, state == State::Valid])?;
    Ok(Outcome::Done)
}

/// The code of the reason that an operator gives.
const OPERATOR: &str = "operator";

fn reasons_of(text: &str) -> Vec<Reason> {
    serde_json::from_str(text).unwrap_or_default()
}

fn reasons_text(reasons: &[Reason]) -> String {
    serde_json::to_string(reasons).unwrap_or_else(|_| "[]".into())
}
