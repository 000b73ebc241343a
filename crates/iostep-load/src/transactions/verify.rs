//! Whether the databases hold what was committed.

use iostep_model::bench::{SqliteJob, Verification};

use super::connection::{Connection, Sql};
use super::databases::Databases;
use super::plan::{Action, Plan, Share};
use super::row::Version;
use super::{settings, waldio};
use crate::error::Result;
use crate::library::Library;

const EXAMPLES: usize = 10;
/// No such row.
const ABSENT: u64 = u64::MAX;
/// A row of an earlier run, of unknown value.
const UNKNOWN: u64 = u64::MAX - 1;

/// What the rows of one thread have to be: by row the transaction that wrote it last.
struct Expected {
    share: Share,
    writers: Vec<u64>,
}

impl Expected {
    /// Goes through the thread's committed transactions once more.
    fn after(job: &SqliteJob, thread: u32, committed: u64, initial: u64) -> Expected {
        let mut plan = Plan::new(job, thread);
        let share = plan.share();
        let mut writers = vec![initial; share.rows as usize];
        let mut rows = Vec::new();
        for number in 1..=committed {
            let Some(action) = plan.next(&mut rows) else {
                break;
            };
            let writer = match action {
                Action::Read => continue,
                Action::Insert | Action::Update => number,
                Action::Delete => ABSENT,
            };
            for &row in &rows {
                let row = row as usize;
                if writers.len() <= row {
                    writers.resize(row + 1, ABSENT);
                }
                writers[row] = writer;
            }
        }
        Expected { share, writers }
    }

    fn count(&self) -> u64 {
        self.writers.iter().filter(|&&w| w != ABSENT).count() as u64
    }

    /// Who wrote a key last; `None` if it is another thread's, or has no business to be there.
    fn writer(&self, key: i64) -> Option<u64> {
        let writer = *self.writers.get(self.share.row(key)? as usize)?;
        (writer != ABSENT).then_some(writer)
    }
}

/// Compares every database with what the threads committed, by `committed`, thread by thread.
/// Rows of an earlier run, where `pristine` is false, only have to be there.
///
/// Errors: `Database`.
pub(super) fn verify(
    job: &SqliteJob,
    library: Library,
    databases: &Databases,
    committed: &[u64],
    pristine: bool,
) -> Result<Verification> {
    let initial = if pristine { 0 } else { UNKNOWN };
    let mut verification = Verification::default();
    for set in 0..databases.sets() {
        let threads = match job.shared {
            true => 0..committed.len(),
            false => set..set + 1,
        };
        let expected: Vec<_> = threads
            .map(|thread| Expected::after(job, thread as u32, committed[thread], initial))
            .collect();
        let mut db = databases.connect(job, (library, waldio::name_for(job)), set)?;
        let paths = databases.set(set);
        for (number, path) in paths.into_iter().enumerate() {
            let mut look = Look {
                job,
                database: databases.number(set, number),
                name: path.display().to_string(),
                verification: &mut verification,
            };
            let schema = settings::schema(number);
            look.integrity(&mut db, &schema)
                .and_then(|()| look.tables(&mut db, &schema, &expected))
                .map_err(|error| error.at(path))?;
        }
    }
    Ok(verification)
}

/// One database being looked through.
struct Look<'a> {
    job: &'a SqliteJob,
    database: u64,
    name: String,
    verification: &'a mut Verification,
}

impl Look<'_> {
    fn wrong(&mut self, rows: u64, what: impl FnOnce() -> String) {
        self.verification.wrong += rows;
        if rows > 0 && self.verification.examples.len() < EXAMPLES {
            let example = format!("{}: {}", self.name, what());
            self.verification.examples.push(example);
        }
    }

    fn integrity(&mut self, db: &mut Connection, schema: &str) -> Sql<()> {
        for line in db.texts(&format!("PRAGMA {schema}.integrity_check"))? {
            if line != "ok" {
                self.wrong(1, || line);
            }
        }
        Ok(())
    }

    fn tables(&mut self, db: &mut Connection, schema: &str, expected: &[Expected]) -> Sql<()> {
        let wanted: u64 = expected.iter().map(Expected::count).sum();
        let mut value = vec![0; self.job.record_bytes as usize];
        for table in 0..self.job.tables {
            let mut present = 0;
            let sql = format!("SELECT key, value FROM {schema}.t{table} ORDER BY key");
            db.pairs(&sql, |key, found| {
                self.verification.compared += 1;
                let Some(writer) = expected.iter().find_map(|e| e.writer(key)) else {
                    self.wrong(1, || {
                        format!("t{table} has a row {key} that was not committed")
                    });
                    return;
                };
                present += 1;
                let version = Version {
                    database: self.database,
                    table,
                    key,
                    transaction: writer,
                };
                version.fill(self.job.measurement.seed, &mut value);
                if writer != UNKNOWN && found != value {
                    self.wrong(1, || {
                        format!("row {key} of t{table} is not as transaction {writer} wrote it")
                    });
                }
            })?;
            let missing = wanted - present;
            self.wrong(missing, || format!("t{table} lacks {missing} rows"));
        }
        Ok(())
    }
}
