//! The tables, and how those of earlier programs become them.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::{Error, Result};

/// Each makes the next version of what the one before it left. What stands here is never changed,
/// only added to: stores of earlier programs have gone that way.
const MIGRATIONS: [&str; 5] = [FIRST, SECOND, THIRD, FOURTH, FIFTH];

/// The version of a store that this program leaves.
pub const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;

const FIRST: &str = "
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
";

const SECOND: &str = "
-- A ranking of one filesystem needs no submission.
ALTER TABLE metric ADD COLUMN filesystem TEXT NOT NULL DEFAULT '';
UPDATE metric SET filesystem =
    (SELECT filesystem FROM submission WHERE submission.number = metric.submission);

-- Whatever makes the values of a test and a device others gives this row a higher number than any of
-- the test has: rankings in memory read again what has one above theirs.
CREATE TABLE changed (
    test INTEGER NOT NULL,
    device INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (test, device)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX changed_by_number ON changed (test, number);
INSERT INTO changed
    SELECT test, device, row_number() OVER (PARTITION BY test ORDER BY device)
    FROM (SELECT DISTINCT test, device FROM submission);
CREATE TRIGGER submission_added AFTER INSERT ON submission BEGIN
    INSERT INTO changed VALUES (new.test, new.device,
        (SELECT coalesce(max(number), 0) + 1 FROM changed WHERE test = new.test))
    ON CONFLICT (test, device) DO UPDATE SET number = excluded.number;
END;
CREATE TRIGGER submission_decided AFTER UPDATE OF state ON submission BEGIN
    INSERT INTO changed VALUES (new.test, new.device,
        (SELECT coalesce(max(number), 0) + 1 FROM changed WHERE test = new.test))
    ON CONFLICT (test, device) DO UPDATE SET number = excluded.number;
END;
CREATE TRIGGER submission_removed AFTER DELETE ON submission BEGIN
    INSERT INTO changed VALUES (old.test, old.device,
        (SELECT coalesce(max(number), 0) + 1 FROM changed WHERE test = old.test))
    ON CONFLICT (test, device) DO UPDATE SET number = excluded.number;
END;

-- What a new result is compared with, the newest of a test and a device.
CREATE INDEX metric_compared
    ON metric (test, device, filesystem, submission, installation, value)
    WHERE measure = 'operations_per_second' AND counts = 1;

-- Lists of a kind, without a look at results of other kinds. Each ends with the number.
CREATE INDEX submission_by_test_and_state ON submission (test, state);
CREATE INDEX submission_by_filesystem ON submission (filesystem);
DROP INDEX submission_by_device;
CREATE INDEX submission_by_device ON submission (device, number, state, test, filesystem);
";

const THIRD: &str = "
-- Whether the lake has it, and those that it has yet to get.
ALTER TABLE submission ADD COLUMN in_lake INTEGER NOT NULL DEFAULT 0;
CREATE INDEX submission_for_lake ON submission (number) WHERE state = 'valid' AND in_lake = 0;
";

const FOURTH: &str = "
-- When a device's results came, without a look at their bodies, between which the rows lie.
DROP INDEX submission_by_device;
CREATE INDEX submission_by_device
    ON submission (device, number, state, test, filesystem, received);

-- How many results of each kind there are: to count a million takes longer than all else of a page.
CREATE TABLE tally (
    test INTEGER NOT NULL,
    state TEXT NOT NULL,
    results INTEGER NOT NULL,
    PRIMARY KEY (test, state)
) STRICT, WITHOUT ROWID;
INSERT INTO tally SELECT test, state, count(*) FROM submission GROUP BY test, state;
CREATE TRIGGER tally_added AFTER INSERT ON submission BEGIN
    INSERT INTO tally VALUES (new.test, new.state, 1)
    ON CONFLICT (test, state) DO UPDATE SET results = results + 1;
END;
CREATE TRIGGER tally_decided AFTER UPDATE OF state ON submission BEGIN
    UPDATE tally SET results = results - 1 WHERE test = old.test AND state = old.state;
    INSERT INTO tally VALUES (new.test, new.state, 1)
    ON CONFLICT (test, state) DO UPDATE SET results = results + 1;
END;
CREATE TRIGGER tally_removed AFTER DELETE ON submission BEGIN
    UPDATE tally SET results = results - 1 WHERE test = old.test AND state = old.state;
END;

-- What was said of a result that its sender took back.
ALTER TABLE gone ADD COLUMN state TEXT;
ALTER TABLE gone ADD COLUMN reasons TEXT;
";

const FIFTH: &str = "
-- As metric_compared, of the tail.
CREATE INDEX metric_compared_tail
    ON metric (test, device, filesystem, submission, installation, value)
    WHERE measure = 'total_p99_ns' AND counts = 1;
";

/// The name of the secret in `meta`.
pub(super) const SECRET: &str = "secret";

/// The name of the lake in `meta`.
pub(super) const LAKE: &str = "lake";

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

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use super::*;
    use crate::store::Store;

    /// Makes a store of the first schema with what another one holds.
    pub fn make_first(of: &Store, directory: &Path) {
        std::fs::create_dir(directory).expect("a directory");
        rustix::fs::chmod(directory, rustix::fs::Mode::RWXU).expect("changed");
        let db = Connection::open(directory.join("store.db")).expect("a database");
        db.execute_batch(FIRST).expect("the first schema");
        let from = of.database().to_str().expect("UTF-8");
        db.execute("ATTACH ?1 AS other", [format!("file:{from}?vfs=waldio")])
            .expect("attached");
        for (table, columns) in [
            ("meta", "*"),
            ("installation", "*"),
            ("device", "*"),
            ("test", "*"),
            (
                "submission",
                "number, id, received, state, reasons, test, filesystem, device, installation, body",
            ),
            (
                "metric",
                "test, measure, device, installation, submission, value, low, high, counts",
            ),
        ] {
            let sql = format!("INSERT INTO {table} SELECT {columns} FROM other.{table}");
            db.execute_batch(&sql).expect(table);
        }
        db.pragma_update(None, "user_version", 1).expect("set");
    }
}
