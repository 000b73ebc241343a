//! The thread that writes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

use super::change::{Change, Outcome};
use super::{Error, Result, Store, query};
use crate::log;

/// Changes that wait for the thread: so many uploads are what a second brings.
const WAITING: usize = 1024;
/// Changes of one commit.
const TOGETHER: usize = 256;

/// Called with what came of a change, once that is durable.
pub type Reply = Box<dyn FnOnce(std::result::Result<Outcome, Arc<Error>>) + Send>;

/// A connection that writes.
///
/// Errors: `Database`.
fn connect(store: &Store) -> Result<Connection> {
    let db = store.connect()?;
    // A plan for each value would be made for each upload.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(Error::database(store.database()))?;
    // What savepoints may have to take back is written to a file of its own otherwise, and so is, twice,
    // what a large commit changes.
    db.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768")
        .map_err(Error::database(store.database()))?;
    Ok(db)
}

/// Changes a store in a thread of its own: whatever waits for it is one commit.
#[derive(Debug)]
pub struct Writer {
    sender: Option<SyncSender<(Change, Reply)>>,
    thread: Option<JoinHandle<()>>,
    counts: Arc<Counts>,
}

/// What the thread did.
#[derive(Debug, Default)]
pub struct Counts {
    /// Transactions that were committed.
    pub commits: AtomicU64,
    /// Changes in them.
    pub changes: AtomicU64,
    /// Transactions that failed.
    pub failures: AtomicU64,
    /// Changes that SQLite refused, without those of transactions that failed.
    pub refused: AtomicU64,
}

impl Writer {
    /// Starts the thread.
    ///
    /// Errors: as of [`Store::change`]; `Io` if there can be no thread.
    pub fn start(store: Store) -> Result<Writer> {
        let database = store.database().to_owned();
        // Whoever reads first where no room is left finds the log's index, as it is there only as long as
        // somebody has it open.
        let keeper = store.connect()?;
        query::touch(&keeper).map_err(Error::database(&database))?;
        let db = connect(&store)?;
        let (sender, receiver) = sync_channel(WAITING);
        let counts = Arc::new(Counts::default());
        let thread = Thread {
            store,
            db: Some(db),
            database: database.clone(),
            counts: Arc::clone(&counts),
        };
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || {
                thread.run(&receiver);
                drop(keeper);
            })
            .map_err(Error::io(database, "start a thread for"))?;
        Ok(Writer {
            sender: Some(sender),
            thread: Some(thread),
            counts,
        })
    }

    /// Gives the thread a change. The answer is false, and `reply` is not called, if too many wait.
    pub fn change(&self, change: Change, reply: Reply) -> bool {
        let Some(sender) = &self.sender else {
            return false;
        };
        match sender.try_send((change, reply)) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Drop for Writer {
    /// Waits until everything that the thread was given is done.
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // Whatever it died of was said by the panic.
            let _ = thread.join();
        }
    }
}

struct Thread {
    store: Store,
    /// `None` after an error: the log of a connection that failed to write takes no further commit.
    db: Option<Connection>,
    database: PathBuf,
    counts: Arc<Counts>,
}

/// A server that cannot write any more is of no use, and whoever watches it starts another.
struct EndIfPanicking;

impl Drop for EndIfPanicking {
    fn drop(&mut self) {
        if std::thread::panicking() {
            log::line("error: the thread that writes died; nothing that was acknowledged is lost");
            std::process::abort();
        }
    }
}

impl Thread {
    fn run(mut self, receiver: &Receiver<(Change, Reply)>) {
        let _end = EndIfPanicking;
        while let Ok(first) = receiver.recv() {
            let mut batch = vec![first];
            batch.extend(receiver.try_iter().take(TOGETHER - 1));
            let (changes, replies): (Vec<Change>, Vec<Reply>) = batch.into_iter().unzip();
            match self.commit(&changes) {
                Ok(outcomes) => {
                    self.counts.commits.fetch_add(1, Ordering::Relaxed);
                    let done = outcomes.iter().filter(|it| it.is_ok()).count() as u64;
                    self.counts.changes.fetch_add(done, Ordering::Relaxed);
                    let refused = outcomes.len() as u64 - done;
                    self.counts.refused.fetch_add(refused, Ordering::Relaxed);
                    for (reply, outcome) in replies.into_iter().zip(outcomes) {
                        reply(outcome.map_err(Arc::new));
                    }
                }
                Err(error) => {
                    self.counts.failures.fetch_add(1, Ordering::Relaxed);
                    self.db = None;
                    let error = Arc::new(error);
                    for reply in replies {
                        reply(Err(Arc::clone(&error)));
                    }
                }
            }
        }
    }

    /// What came of each change, once all that were made are durable. One that SQLite refuses for
    /// what it is leaves the others as they are.
    ///
    /// Errors: none was made.
    fn commit(&mut self, changes: &[Change]) -> Result<Vec<Result<Outcome>>> {
        let db = match &mut self.db {
            Some(db) => db,
            empty => empty.insert(connect(&self.store)?),
        };
        let failed = |error| Error::database(&self.database)(error);
        let mut transaction = db
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let mut outcomes = Vec::with_capacity(changes.len());
        for change in changes {
            // One that is dropped is rolled back.
            let savepoint = transaction.savepoint().map_err(failed)?;
            outcomes.push(match change.apply(&savepoint) {
                Ok(outcome) => {
                    savepoint.commit().map_err(failed)?;
                    Ok(outcome)
                }
                Err(error) if is_of_the_change(&error) => Err(failed(error)),
                Err(error) => return Err(failed(error)),
            });
        }
        transaction.commit().map_err(failed)?;
        Ok(outcomes)
    }
}

/// True for what SQLite says of the values that it is given, and not of its files.
fn is_of_the_change(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{ConstraintViolation, ParameterOutOfRange, TooBig, TypeMismatch};
    match error.sqlite_error_code() {
        Some(code) => matches!(
            code,
            ConstraintViolation | ParameterOutOfRange | TooBig | TypeMismatch
        ),
        // A value that has no form in SQL.
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::upload::Upload;

    fn change(share: f64) -> Change {
        let document = fixture::scaled(fixture::file(1), share);
        let text = serde_json::to_vec(&document).expect("JSON");
        let upload = Upload::read(&text).expect("a result");
        Change::add(upload, [1; 32]).expect("packed")
    }

    fn store() -> (tempfile::TempDir, Store) {
        let place = tempfile::tempdir().expect("a directory");
        let store = Store::create(&place.path().join("data")).expect("a store");
        (place, store)
    }

    #[test]
    fn what_waits_is_one_commit_and_each_is_answered() {
        let (_place, store) = store();
        let writer = Writer::start(store.clone()).expect("a thread");
        let mut other = store.connect().expect("a connection");
        let held = other
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .expect("the lock");
        let (sender, answers) = std::sync::mpsc::channel();
        for number in 0..50_u32 {
            let sender = sender.clone();
            let reply: Reply = Box::new(move |outcome| {
                sender.send(outcome.expect("done")).expect("somebody waits");
            });
            assert!(writer.change(change(1.0 - f64::from(number) / 100.0), reply));
        }
        drop(held);
        let outcomes: Vec<Outcome> = answers.iter().take(50).collect();
        assert_eq!(outcomes, vec![Outcome::Done; 50]);
        assert_eq!(writer.counts().changes.load(Ordering::Relaxed), 50);
        // The first may have been alone, since the thread took it before the others came.
        assert!(writer.counts().commits.load(Ordering::Relaxed) <= 2);
    }

    #[test]
    fn the_end_waits_for_what_was_taken() {
        let (_place, store) = store();
        let writer = Writer::start(store.clone()).expect("a thread");
        let (sender, answers) = std::sync::mpsc::channel();
        let reply: Reply = Box::new(move |outcome| {
            let _ = sender.send(outcome.is_ok());
        });
        assert!(writer.change(change(1.0), reply));
        drop(writer);
        assert_eq!(answers.try_recv(), Ok(true));
    }

    #[test]
    fn without_room_nothing_is_kept_and_the_next_change_is_as_if_nothing_was() {
        let (_place, store) = store();
        let db = store.connect().expect("a connection");
        let pages: i64 = db
            .query_row("PRAGMA page_count", [], |row| row.get(0))
            .expect("a number");
        db.pragma_update(None, "max_page_count", pages)
            .expect("set");
        let mut thread = Thread {
            database: store.database().to_owned(),
            store,
            db: Some(db),
            counts: Arc::default(),
        };
        // More than the pages that are there take.
        let changes: Vec<Change> = (0..20)
            .map(|number| change(1.0 - f64::from(number) / 100.0))
            .collect();
        let error = thread.commit(&changes).expect_err("no room");
        assert!(matches!(error, Error::Full { .. }), "{error}");
        thread.db = None;
        let outcomes = thread.commit(&changes).expect("room");
        let outcomes: Vec<Outcome> = outcomes.into_iter().map(|it| it.expect("done")).collect();
        assert_eq!(outcomes, vec![Outcome::Done; 20]);
    }

    #[test]
    fn a_change_that_sqlite_refuses_fails_alone() {
        let (_place, store) = store();
        let mut thread = Thread {
            database: store.database().to_owned(),
            db: None,
            counts: Arc::default(),
            store: store.clone(),
        };
        let mut changes: Vec<Change> = (0..5)
            .map(|number| change(1.0 - f64::from(number) / 100.0))
            .collect();
        let Change::Add { upload, .. } = &mut changes[2] else {
            panic!("an upload")
        };
        // NULL, as SQLite has it, for a column that takes none.
        upload.figures[1].value = f64::NAN;
        let outcomes = thread.commit(&changes).expect("a commit");
        let kept: Vec<bool> = outcomes.iter().map(|it| it.is_ok()).collect();
        assert_eq!(kept, [true, true, false, true, true]);
        let db = store.connect().expect("a connection");
        let count = |sql: &str| -> i64 { db.query_row(sql, [], |row| row.get(0)).expect(sql) };
        assert_eq!(count("SELECT count(*) FROM submission"), 4);
        let of_none = "SELECT count(*) FROM metric
            WHERE submission NOT IN (SELECT number FROM submission)";
        assert_eq!(count(of_none), 0);
    }
}
