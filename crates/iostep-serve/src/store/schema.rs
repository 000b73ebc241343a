//! The tables, and how those of earlier programs become them.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::{Error, Result};

/// Each makes the next version of what the one before it left. What stands here is never changed,
/// only added to: stores of earlier programs have gone that way.
const MIGRATIONS: [&str; 1] = ["
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Who sends: a public key, and nothing else.
CREATE TABLE installation (
    number INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    since INTEGER NOT NULL
) STRICT;

-- '' and 0 are not known.
CREATE TABLE device (
    number INTEGER PRIMARY KEY,
    vendor TEXT NOT NULL,
    model TEXT NOT NULL,
    part TEXT NOT NULL,
    firmware TEXT NOT NULL,
    capacity_bytes INTEGER NOT NULL,
    android TEXT NOT NULL,
    kernel TEXT NOT NULL,
    UNIQUE (vendor, model, part, firmware, capacity_bytes, android, kernel)
) STRICT;

CREATE TABLE test (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- id is SHA-256 of the result, body the result, as JSON in zstd; received in seconds since 1970.
CREATE TABLE submission (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    received INTEGER NOT NULL,
    state TEXT NOT NULL,
    reasons TEXT NOT NULL,
    test INTEGER NOT NULL REFERENCES test,
    filesystem TEXT NOT NULL,
    device INTEGER NOT NULL REFERENCES device,
    installation INTEGER NOT NULL REFERENCES installation,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX submission_by_test ON submission (test, number);
CREATE INDEX submission_by_state ON submission (state, number);
CREATE INDEX submission_by_device ON submission (device);
CREATE INDEX submission_by_installation ON submission (installation);

-- In the order in which a ranking reads them. counts is 1 for those of valid submissions.
CREATE TABLE metric (
    test INTEGER NOT NULL,
    measure TEXT NOT NULL,
    device INTEGER NOT NULL,
    installation INTEGER NOT NULL,
    submission INTEGER NOT NULL REFERENCES submission ON DELETE CASCADE,
    value REAL NOT NULL,
    low REAL,
    high REAL,
    counts INTEGER NOT NULL,
    PRIMARY KEY (test, measure, device, installation, submission)
) STRICT, WITHOUT ROWID;
CREATE INDEX metric_by_submission ON metric (submission);

-- What its sender took back.
CREATE TABLE gone (
    id BLOB PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"];

/// The name of the secret in `meta`.
pub(super) const SECRET: &str = "secret";

/// Brings a database to this program's schema: each step is there whole or not at all.
///
/// Errors: `Refused` for a newer program's; `Database`, `Full`, `Io` if the system has no random
/// numbers.
pub(super) fn migrate(db: &mut Connection, path: &Path) -> Result<()> {
    let failed = |error| Error::database(path)(error);
    let version = |db: &Connection| -> rusqlite::Result<usize> {
        let version: u32 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        Ok(version as usize)
    };
    let mut from = version(db).map_err(failed)?;
    while from < MIGRATIONS.len() {
        let transaction = db
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        // Another process may have done it meanwhile.
        from = version(&transaction).map_err(failed)?;
        if let Some(step) = MIGRATIONS.get(from) {
            transaction.execute_batch(step).map_err(failed)?;
            if from == 0 {
                make_secret(&transaction, path)?;
            }
            transaction
                .pragma_update(None, "user_version", from as u32 + 1)
                .map_err(failed)?;
            transaction.commit().map_err(failed)?;
            from += 1;
        }
    }
    if from > MIGRATIONS.len() {
        return Err(Error::Refused {
            path: path.to_owned(),
            what: format!(
                "its schema is {from}, and this program knows {} at most",
                MIGRATIONS.len()
            ),
            hint: "use the iostep that made it, or a newer one",
        });
    }
    Ok(())
}

fn make_secret(db: &Connection, path: &Path) -> Result<()> {
    let mut secret = [0; 32];
    getrandom(&mut secret, GetRandomFlags::empty())
        .map_err(Error::io(path, "make a secret for"))?;
    db.execute(
        "INSERT INTO meta (name, value) VALUES (?1, ?2)",
        params![SECRET, secret],
    )
    .map_err(Error::database(path))?;
    Ok(())
}
