//! What a statement itself asks to store.
//!
//! SQLite tells each row that changes, those too that nobody asked for: of triggers and foreign key
//! actions, of the tables behind an FTS5 or R*Tree index, and of a `VACUUM`. The statement's own
//! rows are those of the tables that it names, at the top level. Rows of views and virtual tables,
//! and of `CREATE TABLE ... AS SELECT`, are not told at all, so nobody knows their bytes.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::hooks::{
    Action, AuthAction, AuthContext, Authorization, PreUpdateCase, PreUpdateNewValueAccessor,
    PreUpdateOldValueAccessor,
};
use rusqlite::{Connection, Statement};

use crate::script::size::stored_bytes;

/// Changed by whatever changes the schema, which is cost, not request.
const SCHEMA_TABLES: [&str; 2] = ["sqlite_master", "sqlite_temp_master"];

/// What a statement names.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    /// Schemas and names of the tables, views and virtual tables that get rows or values.
    targets: Vec<(String, String)>,
    creates_table: bool,
    selects: bool,
}

/// The rows that SQLite counter.
#[derive(Debug)]
pub(super) struct RowCounter {
    request: Arc<Request>,
    /// Their number and bytes.
    rows: Arc<Mutex<(u64, u64)>>,
}

impl Request {
    /// Prepares a statement and notes what it names. `hooks` is the same database handle.
    ///
    /// Errors: those of SQLite.
    pub(super) fn prepare<'c>(
        connection: &'c Connection,
        hooks: &mut Connection,
        sql: &str,
    ) -> rusqlite::Result<(Statement<'c>, Request)> {
        let request = Arc::new(Mutex::new(Request::default()));
        let noted = Arc::clone(&request);
        hooks.authorizer(Some(move |context: AuthContext<'_>| {
            let mut request = noted.lock().unwrap_or_else(PoisonError::into_inner);
            request.note(&context);
            Authorization::Allow
        }))?;
        let prepared = connection.prepare(sql);
        hooks.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
        let request = request.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((prepared?, request.clone()))
    }

    fn note(&mut self, context: &AuthContext<'_>) {
        // The body of a trigger or a view.
        if context.accessor.is_some() {
            return;
        }
        match context.action {
            AuthAction::Insert { table_name } | AuthAction::Update { table_name, .. } => {
                let schema = context.database_name.unwrap_or("main");
                if !SCHEMA_TABLES.contains(&table_name) && !self.has(schema, table_name) {
                    self.targets.push((schema.into(), table_name.into()));
                }
            }
            AuthAction::CreateTable { .. } | AuthAction::CreateTempTable { .. } => {
                self.creates_table = true;
            }
            AuthAction::Select => self.selects = true,
            _ => {}
        }
    }

    fn has(&self, schema: &str, table: &str) -> bool {
        let mut targets = self.targets.iter();
        targets.any(|(of, name)| of == schema && name == table)
    }

    /// Counts the rows that the prepared statement changes.
    ///
    /// Errors: those of SQLite.
    pub(super) fn listen(self, hooks: &mut Connection) -> rusqlite::Result<RowCounter> {
        let counter = RowCounter {
            request: Arc::new(self),
            rows: Arc::default(),
        };
        let (request, rows) = (Arc::clone(&counter.request), Arc::clone(&counter.rows));
        hooks.preupdate_hook(Some(
            move |_: Action, schema: &str, table: &str, case: &PreUpdateCase| {
                if let Some(bytes) = asked_bytes(case).filter(|_| request.has(schema, table)) {
                    let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
                    rows.0 += 1;
                    rows.1 += bytes;
                }
            },
        ))?;
        Ok(counter)
    }
}

impl RowCounter {
    /// Ends the counting.
    ///
    /// Errors: those of SQLite.
    pub(super) fn stop(&self, hooks: &mut Connection) -> rusqlite::Result<()> {
        hooks.preupdate_hook(None::<fn(Action, &str, &str, &PreUpdateCase)>)
    }

    /// Bytes that the statement asked to store; `None` if SQLite has not told all. `changed` is
    /// how many rows it has changed itself, by SQLite's count.
    ///
    /// Errors: those of SQLite.
    pub(super) fn user_bytes(
        &self,
        connection: &Connection,
        changed: u64,
    ) -> rusqlite::Result<Option<u64>> {
        let (rows, bytes) = *self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let request = &self.request;
        if request.creates_table && request.selects {
            return Ok(None);
        }
        if request.targets.is_empty() {
            return Ok(Some(0));
        }
        if rows != changed {
            return Ok(None);
        }
        // A view counts no rows.
        let is_view = rows == 0 && request.targets_a_view(connection)?;
        Ok((!is_view).then_some(bytes))
    }
}

impl Request {
    fn targets_a_view(&self, connection: &Connection) -> rusqlite::Result<bool> {
        let sql = "SELECT count(*) FROM pragma_table_list(?2) WHERE schema = ?1 AND type = 'view'";
        for (schema, name) in &self.targets {
            let views: i64 = connection.query_row(sql, (schema, name), |row| row.get(0))?;
            if views > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Bytes of an inserted or updated row; `None` below the top level, where rows of triggers and of
/// foreign key actions are, and for what is removed.
fn asked_bytes(case: &PreUpdateCase) -> Option<u64> {
    match case {
        PreUpdateCase::Insert(new) if new.get_query_depth() == 0 => Some(inserted_bytes(new)),
        PreUpdateCase::Update {
            old_value_accessor: old,
            new_value_accessor: new,
        } if new.get_query_depth() == 0 => Some(updated_bytes(old, new)),
        _ => None,
    }
}

fn inserted_bytes(new: &PreUpdateNewValueAccessor) -> u64 {
    (0..new.get_column_count())
        .filter_map(|column| new.get_new_column_value(column).ok())
        .map(stored_bytes)
        .sum()
}

fn updated_bytes(old: &PreUpdateOldValueAccessor, new: &PreUpdateNewValueAccessor) -> u64 {
    (0..new.get_column_count())
        .filter_map(|column| {
            let after = new.get_new_column_value(column).ok()?;
            let before = old.get_old_column_value(column).ok()?;
            (after != before).then(|| stored_bytes(after))
        })
        .sum()
}
