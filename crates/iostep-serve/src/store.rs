//! Results in a directory: SQLite through waldio, so that whatever was acknowledged survives a power
//! loss.
//!
//! One thread writes ([`Writer`]), and commits what waits for it at once; each change is answered
//! only after the COMMIT that holds it. Readers have connections of their own ([`Readers`]). Other
//! processes, as those of an operator's commands, may do both meanwhile.

mod change;
mod outlier;
mod place;
mod query;
mod rankings;
mod schema;
mod state;
mod survey;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

pub use change::{Change, KeyMay, Outcome, Secret};
pub use query::{Filter, ForLake, Page, Record, Submission};
pub use rankings::Ranked;
pub use schema::SCHEMA_VERSION;
pub use state::State;
pub use survey::{Dated, Found, Sample};
pub use writer::{Counts, Reply, Writer};

use crate::error::{Error, Result};
use crate::new_file;
use crate::ranking::{Better, Conditions};
use crate::upload::Id;
use rankings::Rankings;

/// How long a change waits for that of another process.
const BUSY: Duration = Duration::from_secs(10);

/// A directory of results.
#[derive(Clone, Debug)]
pub struct Store {
    database: PathBuf,
    log: Log,
}

/// How commits are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Log {
    Waldio,
    /// SQLite's own, to compare with.
    Stock,
}

/// Keeps a second server away as long as it lives.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "it is the descriptor that holds the lock")] File);

impl Store {
    /// Takes a directory, or makes it, for its owner alone, with a store in it that has this
    /// program's schema.
    ///
    /// Errors: `Refused` if others may read or write the directory, if something in it is no regular
    /// file, or for the schema of a newer program; `Io`, `Database`, `Full`.
    pub fn create(directory: &Path) -> Result<Store> {
        Store::create_with(directory, Log::Waldio)
    }

    /// The same with SQLite's own log, for `bench/serve` to compare with. No command makes one.
    ///
    /// Errors: as of [`Store::create`].
    #[doc(hidden)]
    pub fn create_stock(directory: &Path) -> Result<Store> {
        Store::create_with(directory, Log::Stock)
    }

    fn create_with(directory: &Path, log: Log) -> Result<Store> {
        let store = Store {
            database: place::create(directory)?,
            log,
        };
        schema::migrate(&mut store.connect()?, &store.database)?;
        Ok(store)
    }

    /// Takes a store that is there.
    ///
    /// Errors: as of [`Store::create`], and `Io` if there is none.
    pub fn open(directory: &Path) -> Result<Store> {
        let store = Store {
            database: place::find(directory)?,
            log: Log::Waldio,
        };
        schema::migrate(&mut store.connect()?, &store.database)?;
        Ok(store)
    }

    /// Keeps other servers away until the lock is dropped.
    ///
    /// Errors: `Refused` if there is one; `Io`.
    pub fn lock(&self) -> Result<Lock> {
        place::lock(&self.database).map(Lock)
    }

    /// The database's file.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// A secret of this store, of which delete tokens are made.
    ///
    /// Errors: `Database`, `Damaged`.
    pub fn secret(&self) -> Result<Secret> {
        let db = self.connect()?;
        Secret::read(&db, &self.database)
    }

    /// True if the store has filled a lake.
    ///
    /// Errors: `Database`.
    pub fn fills_a_lake(&self) -> Result<bool> {
        let known = change::lake(&self.connect()?);
        Ok(known.map_err(Error::database(&self.database))?.is_some())
    }

    /// Makes one change; it is durable when this returns.
    ///
    /// Errors: `Database`, `Full`.
    pub fn change(&self, change: &Change) -> Result<Outcome> {
        let mut db = self.connect()?;
        let failed = |error| Error::database(&self.database)(error);
        let transaction = db
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(failed)?;
        let outcome = change.apply(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(outcome)
    }

    /// Writes a copy of the store, as it is at one moment, to a new file: a plain SQLite database
    /// that its owner alone may read.
    ///
    /// Errors: `Io` if there is something of that name; `Database`, `Full`.
    pub fn back_up(&self, to: &Path) -> Result<()> {
        let bad_name = || Error::Refused {
            path: to.to_owned(),
            what: "the name is none of a file in UTF-8".into(),
            hint: "choose another",
        };
        // Early, for whoever would wait for a large copy.
        if to.symlink_metadata().is_ok() {
            let exists = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
            return Err(Error::io(to, "create")(exists));
        }
        let part = place::Part::create(to)?;
        let copied = part.path.to_str().ok_or_else(bad_name).and_then(|name| {
            let db = self.connect()?;
            db.execute("VACUUM INTO ?1", [name])
                .map_err(Error::database(to))
        });
        let synced = copied.and_then(|_| part.file.sync_all().map_err(Error::io(to, "sync")));
        // A part of a copy never has the name of one, and what has got the name meanwhile keeps it.
        let named = synced.and_then(|()| new_file::give_name(&part.path, to));
        if named.is_err() {
            let _ = std::fs::remove_file(&part.path);
        }
        named
    }

    /// A connection, each of whose commits is durable.
    fn connect(&self) -> Result<Connection> {
        let failed = |error| Error::database(&self.database)(error);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        place::keep_index_in_place(&self.database);
        let (db, mode) = match self.log {
            Log::Waldio => {
                waldio::register(false).map_err(|error| failed(error.into()))?;
                let db = Connection::open_with_flags_and_vfs(&self.database, flags, waldio::VFS);
                (db, "PRAGMA journal_mode = waldio")
            }
            Log::Stock => (
                Connection::open_with_flags(&self.database, flags),
                "PRAGMA journal_mode = wal",
            ),
        };
        let db = db.map_err(failed)?;
        db.busy_timeout(BUSY).map_err(failed)?;
        db.query_row(mode, [], |_| Ok(())).map_err(failed)?;
        db.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")
            .map_err(failed)?;
        Ok(db)
    }
}

/// Connections that read.
#[derive(Debug)]
pub struct Readers {
    store: Store,
    idle: Mutex<Vec<Connection>>,
    rankings: Rankings,
}

impl Readers {
    pub fn new(store: Store) -> Readers {
        Readers {
            store,
            idle: Mutex::default(),
            rankings: Rankings::default(),
        }
    }

    /// Asks the store something.
    fn ask<T>(&self, question: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error| Error::database(&self.store.database)(error);
        let free = idle().pop();
        let db = match free {
            Some(db) => db,
            None => {
                let db = self.store.connect()?;
                db.execute_batch("PRAGMA query_only = ON").map_err(failed)?;
                db
            }
        };
        let answer = question(&db).map_err(failed)?;
        // One that failed is closed instead.
        idle().push(db);
        Ok(answer)
    }

    /// A submission with what is kept of its result.
    ///
    /// Errors: `Database`; `Damaged` if that cannot be read.
    pub fn submission(&self, id: &Id) -> Result<Record> {
        let record = self.ask(|db| query::record(db, id))?;
        record.unpacked(&self.store.database)
    }

    /// The first `limit` valid results after a number that the lake has not got.
    ///
    /// Errors: `Database`.
    pub fn for_lake(&self, after: i64, limit: u32) -> Result<Vec<ForLake>> {
        self.ask(|db| query::for_lake(db, after, limit))
    }

    /// The newest submissions of a kind.
    ///
    /// Errors: `Database`.
    pub fn list(&self, filter: &Filter) -> Result<Page> {
        self.ask(|db| query::list(db, filter))
    }

    /// The devices of a test, ranked by a measure, by what was measured under these conditions.
    ///
    /// Errors: `Database`.
    pub fn ranking(
        &self,
        (test, measure): (&str, &str),
        conditions: &Conditions,
        better: Better,
    ) -> Result<Ranked> {
        self.ask(|db| {
            let key = rankings::key(db, (test, measure), conditions, better)?;
            key.map_or(Ok(Ranked::default()), |key| self.rankings.tell(db, key))
        })
    }

    /// The tests that there are results of, each with how many are ranked, those of most first.
    ///
    /// Errors: `Database`.
    pub fn tests(&self) -> Result<Vec<(String, u64)>> {
        self.ask(query::tests)
    }

    /// Finds out whether the store can be read.
    ///
    /// Errors: `Database`.
    pub fn touch(&self) -> Result<()> {
        self.ask(query::touch)
    }

    /// How many submissions there are in each state.
    ///
    /// Errors: `Database`.
    pub fn states(&self) -> Result<Vec<(State, u64)>> {
        self.ask(query::states)
    }
}

#[cfg(test)]
mod tests;
