//! What an application does to a database.

use iostep_model::pragma::{Journal, Synchronous};
use serde::Serialize;

/// The transactions of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Habit {
    /// The database, as the recording names it.
    pub database: String,
    /// The journal mode; `None` if no transaction shows it.
    pub journal: Option<Journal>,
    /// `PRAGMA synchronous`, concluded from when files are synced.
    pub synchronous: Option<Synchronous>,
    /// Transactions that changed something.
    pub transactions: u64,
    /// Pages that half of them changed at most.
    pub pages_per_transaction: Option<u64>,
    /// Bytes written to the database and its journal or log for each.
    pub written_bytes_per_transaction: f64,
    /// Sync calls for each.
    pub syncs_per_transaction: f64,
    /// Threads that wrote, of all processes.
    pub threads: u32,
}

impl Habit {
    /// The same in a line.
    pub fn words(&self) -> String {
        let mode = |journal: Journal| format!("journal {journal}");
        let setting = |synchronous: Synchronous| format!("synchronous {synchronous}");
        let settings = [self.journal.map(mode), self.synchronous.map(setting)];
        let settings: Vec<String> = settings.into_iter().flatten().collect();
        format!(
            "the recording of {}: {} transactions by {} threads; each {} pages, {:.0} B written, \
             {:.2} syncs; {}",
            self.database,
            self.transactions,
            self.threads,
            self.pages_per_transaction.unwrap_or(0),
            self.written_bytes_per_transaction,
            self.syncs_per_transaction,
            settings.join(", ")
        )
    }
}
