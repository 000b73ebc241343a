//! A connection with its prepared statements: the only place that calls SQLite.

use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};

use rusqlite::ffi;

use super::wait::Hooks;
use crate::error::{Error, Result};
use crate::library::{Library, text};

/// Why a statement failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SqlError {
    /// SQLite's extended result code.
    pub code: c_int,
    /// SQLite's words.
    pub message: String,
    /// The statement.
    pub sql: String,
}

impl SqlError {
    /// True if another connection's lock stood against it.
    pub fn is_busy(&self) -> bool {
        matches!(self.code & 0xff, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED)
    }

    /// As an error of the database at `path`.
    pub fn at(self, path: &Path) -> Error {
        Error::Database {
            path: path.to_owned(),
            what: format!("{} ({}): {}", self.message, self.code, self.sql),
            hint: match self.is_busy() {
                true => "close whoever else uses the database".into(),
                false => "see the result codes at sqlite.org/rescode.html".into(),
            },
        }
    }
}

/// What came of a statement.
pub(super) type Sql<T> = std::result::Result<T, SqlError>;

/// A prepared statement of the connection that made it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepared(usize);

/// A connection of one thread at a time, with its statements and what its hooks measure.
#[derive(Debug)]
pub(super) struct Connection {
    library: Library,
    db: NonNull<ffi::sqlite3>,
    statements: Vec<NonNull<ffi::sqlite3_stmt>>,
    hooks: Option<NonNull<Hooks>>,
    path: PathBuf,
}

// SAFETY: SQLite lets a connection go from thread to thread (its library is threadsafe, or there is
// one thread), and everything that belongs to it is inside and reached only through `&mut self`.
unsafe impl Send for Connection {}

impl Connection {
    /// Opens a database, or `:memory:`. `vfs` is `None` for the default one.
    ///
    /// Errors: `Database`.
    pub fn open(library: Library, path: &Path, vfs: Option<&CStr>, create: bool) -> Result<Self> {
        let failed = |message: String| Error::Database {
            path: path.to_owned(),
            what: format!("cannot open it: {message}"),
            hint: "look at the directory and its permissions".into(),
        };
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| failed("its name has a NUL".into()))?;
        let mut flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_NOMUTEX;
        // Unknown to older versions, which ignore it (3.31).
        flags |= ffi::SQLITE_OPEN_NOFOLLOW;
        if create {
            flags |= ffi::SQLITE_OPEN_CREATE;
        }
        let vfs = vfs.map_or(ptr::null(), CStr::as_ptr);
        let mut db = ptr::null_mut();
        let sqlite = &library.functions;
        // SAFETY: both names are C strings that outlive the call.
        let code = unsafe { (sqlite.sqlite3_open_v2)(name.as_ptr(), &mut db, flags, vfs) };
        let Some(db) = NonNull::new(db) else {
            return Err(failed("no memory".into()));
        };
        let connection = Connection {
            library,
            db,
            statements: Vec::new(),
            hooks: None,
            path: path.to_owned(),
        };
        if code != ffi::SQLITE_OK {
            return Err(failed(connection.message()));
        }
        // SAFETY: the connection is open.
        unsafe { (sqlite.sqlite3_extended_result_codes)(db.as_ptr(), 1) };
        Ok(connection)
    }

    /// The main database's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Loads an extension by one of its entry points.
    ///
    /// Errors: SQLite's; `SQLITE_MISUSE` if this library takes no extensions.
    pub fn load_extension(&mut self, path: &Path, entry: &str) -> Sql<()> {
        let quoted = path.to_string_lossy().replace('\'', "''");
        let sql = format!("SELECT load_extension('{quoted}', '{entry}')");
        let Some(enable) = self.library.functions.sqlite3_enable_load_extension else {
            return Err(SqlError {
                code: ffi::SQLITE_MISUSE,
                message: "this SQLite takes no extensions".into(),
                sql,
            });
        };
        // SAFETY: the connection is open.
        match unsafe { enable(self.db.as_ptr(), 1) } {
            ffi::SQLITE_OK => self.texts(&sql).map(drop),
            code => Err(self.error(code, &sql)),
        }
    }

    /// `sqlite3_limit`: the limit as it is.
    pub fn limit(&self, which: c_int) -> c_int {
        // SAFETY: the connection is open; -1 changes nothing.
        unsafe { (self.library.functions.sqlite3_limit)(self.db.as_ptr(), which, -1) }
    }

    /// Installs busy handler and WAL hook.
    pub fn install(&mut self, hooks: Hooks) {
        let sqlite = &self.library.functions;
        let hooks = NonNull::from(Box::leak(Box::new(hooks)));
        let argument: *mut c_void = hooks.as_ptr().cast();
        // SAFETY: the connection is open, and the hooks live until it is closed.
        unsafe {
            (sqlite.sqlite3_busy_handler)(self.db.as_ptr(), Some(super::wait::on_busy), argument);
            if hooks.as_ref().watches_wal() {
                (sqlite.sqlite3_wal_hook)(self.db.as_ptr(), Some(super::wait::on_wal), argument);
            }
        }
        if let Some(old) = self.hooks.replace(hooks) {
            // SAFETY: SQLite has the new ones now; the old came from a box.
            drop(unsafe { Box::from_raw(old.as_ptr()) });
        }
    }

    /// What the hooks measure; `None` before [`Connection::install`].
    pub fn hooks(&self) -> Option<&Hooks> {
        // SAFETY: they live as long as the connection, and are only shared.
        self.hooks.as_ref().map(|hooks| unsafe { hooks.as_ref() })
    }

    /// Checkpoints one database. A lock in the way is not an error: what could not be done stays.
    pub fn checkpoint(&mut self, schema: &CStr) -> Sql<()> {
        let Some(hooks) = self.hooks() else {
            return Ok(());
        };
        // SAFETY: the connection is open.
        match unsafe { hooks.checkpoint(self.db.as_ptr(), schema.as_ptr()) } {
            ffi::SQLITE_OK => Ok(()),
            code => Err(self.error(code, &format!("checkpoint of {}", schema.to_string_lossy()))),
        }
    }

    /// Prepares a statement for as long as the connection lives.
    pub fn prepare(&mut self, sql: &str) -> Sql<Prepared> {
        let statement = self.compile(sql)?;
        self.statements.push(statement);
        Ok(Prepared(self.statements.len() - 1))
    }

    /// Runs SQL that returns nothing of interest.
    pub fn execute_batch(&mut self, sql: &str) -> Sql<()> {
        let text = self.c_string(sql)?;
        let exec = self.library.functions.sqlite3_exec;
        // SAFETY: the connection is open and the text is a C string.
        let code = unsafe {
            let (db, null) = (self.db.as_ptr(), ptr::null_mut());
            exec(db, text.as_ptr(), None, null, ptr::null_mut())
        };
        match code {
            ffi::SQLITE_OK => Ok(()),
            code => Err(self.error(code, sql)),
        }
    }

    /// Runs a statement without parameters or rows.
    #[inline]
    pub fn run(&mut self, prepared: Prepared) -> Sql<()> {
        self.step_once(prepared).map(drop)
    }

    /// Runs a statement of one key and perhaps a value; the answer is how many rows it changed.
    #[inline]
    pub fn change(&mut self, prepared: Prepared, key: i64, value: Option<&[u8]>) -> Sql<u64> {
        self.bind(prepared, key, value)?;
        self.step_once(prepared)?;
        // SAFETY: the connection is open.
        let changed = unsafe { (self.library.functions.sqlite3_changes)(self.db.as_ptr()) };
        Ok(changed.max(0) as u64)
    }

    /// Runs a query of one key; the answer is the length of the first column of its first row.
    #[inline]
    pub fn read(&mut self, prepared: Prepared, key: i64) -> Sql<Option<usize>> {
        self.bind(prepared, key, None)?;
        self.step_once(prepared)
    }

    /// Every row of a query, first column as text.
    pub fn texts(&mut self, sql: &str) -> Sql<Vec<String>> {
        let sqlite = self.library.functions;
        let mut texts = Vec::new();
        self.each_row(sql, |statement| {
            // SAFETY: the statement is at a row; the text lives until the next step.
            texts.push(unsafe { text((sqlite.sqlite3_column_text)(statement, 0).cast()) });
        })?;
        Ok(texts)
    }

    /// The first column of the first row of a query, as text.
    pub fn first_text(&mut self, sql: &str) -> Sql<Option<String>> {
        Ok(self.texts(sql)?.into_iter().next())
    }

    /// Shows every row of a query of a key and a value.
    pub fn pairs(&mut self, sql: &str, mut show: impl FnMut(i64, &[u8])) -> Sql<()> {
        let sqlite = self.library.functions;
        self.each_row(sql, |statement| {
            // SAFETY: the statement is at a row; the value lives until the next step.
            unsafe {
                let key = (sqlite.sqlite3_column_int64)(statement, 0);
                let value = (sqlite.sqlite3_column_blob)(statement, 1).cast::<u8>();
                let length = (sqlite.sqlite3_column_bytes)(statement, 1).max(0) as usize;
                match value.is_null() {
                    true => show(key, &[]),
                    false => show(key, std::slice::from_raw_parts(value, length)),
                }
            }
        })
    }

    /// An error of ours with a statement of the connection.
    pub fn complaint(&self, prepared: Prepared, message: &str) -> SqlError {
        SqlError {
            message: message.into(),
            ..self.error_of(prepared, ffi::SQLITE_NOTFOUND)
        }
    }

    /// Ends a transaction that failed; whatever comes of it, the first error counts.
    pub fn roll_back(&mut self) {
        // SAFETY: the connection is open.
        let open =
            unsafe { (self.library.functions.sqlite3_get_autocommit)(self.db.as_ptr()) } == 0;
        if open {
            let _ = self.execute_batch("ROLLBACK");
        }
    }

    #[inline]
    fn bind(&mut self, prepared: Prepared, key: i64, value: Option<&[u8]>) -> Sql<()> {
        let sqlite = &self.library.functions;
        let statement = self.statements[prepared.0].as_ptr();
        // SAFETY: the statement is reset. SQLite reads the value in the step that follows before
        // the borrow ends; every other step is preceded by another bind.
        let code = unsafe {
            let mut code = (sqlite.sqlite3_bind_int64)(statement, 1, key);
            if let (ffi::SQLITE_OK, Some(value)) = (code, value) {
                let length = c_int::try_from(value.len()).unwrap_or(c_int::MAX);
                code =
                    (sqlite.sqlite3_bind_blob)(statement, 2, value.as_ptr().cast(), length, None);
            }
            code
        };
        match code {
            ffi::SQLITE_OK => Ok(()),
            code => Err(self.error_of(prepared, code)),
        }
    }

    /// Steps to the end, or to the first row and then resets: the length of its first column.
    #[inline]
    fn step_once(&mut self, prepared: Prepared) -> Sql<Option<usize>> {
        let sqlite = &self.library.functions;
        let statement = self.statements[prepared.0].as_ptr();
        // SAFETY: the statement belongs to this open connection.
        unsafe {
            let length = match (sqlite.sqlite3_step)(statement) {
                ffi::SQLITE_DONE => None,
                ffi::SQLITE_ROW => {
                    // Only asking for the bytes reads the pages beyond the first.
                    std::hint::black_box((sqlite.sqlite3_column_blob)(statement, 0));
                    Some((sqlite.sqlite3_column_bytes)(statement, 0).max(0) as usize)
                }
                code => {
                    let error = self.error_of(prepared, code);
                    (sqlite.sqlite3_reset)(statement);
                    return Err(error);
                }
            };
            match (sqlite.sqlite3_reset)(statement) {
                ffi::SQLITE_OK => Ok(length),
                code => Err(self.error_of(prepared, code)),
            }
        }
    }

    fn each_row(&mut self, sql: &str, mut show: impl FnMut(*mut ffi::sqlite3_stmt)) -> Sql<()> {
        let statement = self.compile(sql)?;
        let sqlite = self.library.functions;
        let result = loop {
            // SAFETY: the statement belongs to this open connection.
            match unsafe { (sqlite.sqlite3_step)(statement.as_ptr()) } {
                ffi::SQLITE_ROW => show(statement.as_ptr()),
                ffi::SQLITE_DONE => break Ok(()),
                code => break Err(self.error(code, sql)),
            }
        };
        // SAFETY: nobody else knows the statement.
        unsafe { (sqlite.sqlite3_finalize)(statement.as_ptr()) };
        result
    }

    fn compile(&mut self, sql: &str) -> Sql<NonNull<ffi::sqlite3_stmt>> {
        let text = self.c_string(sql)?;
        let mut statement = ptr::null_mut();
        let prepare = self.library.functions.sqlite3_prepare_v2;
        // SAFETY: the connection is open and the text is a C string.
        let code = unsafe {
            let db = self.db.as_ptr();
            prepare(db, text.as_ptr(), -1, &mut statement, ptr::null_mut())
        };
        NonNull::new(statement).ok_or_else(|| self.error(code, sql))
    }

    fn c_string(&self, sql: &str) -> Sql<CString> {
        CString::new(sql).map_err(|_| SqlError {
            code: ffi::SQLITE_MISUSE,
            message: "a NUL in the statement".into(),
            sql: sql.into(),
        })
    }

    #[cold]
    fn error_of(&self, prepared: Prepared, code: c_int) -> SqlError {
        let statement = self.statements[prepared.0].as_ptr();
        // SAFETY: the statement is alive, and so is its text.
        let sql = unsafe { text((self.library.functions.sqlite3_sql)(statement)) };
        self.error(code, &sql)
    }

    #[cold]
    fn error(&self, code: c_int, sql: &str) -> SqlError {
        SqlError {
            code,
            message: self.message(),
            sql: sql.into(),
        }
    }

    fn message(&self) -> String {
        // SAFETY: the connection is open; the text lives until the next call on it.
        unsafe { text((self.library.functions.sqlite3_errmsg)(self.db.as_ptr())) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let sqlite = &self.library.functions;
        // SAFETY: nothing of the connection is used any more: statements first, then itself, then
        // what its hooks point to.
        unsafe {
            for statement in self.statements.drain(..) {
                (sqlite.sqlite3_finalize)(statement.as_ptr());
            }
            (sqlite.sqlite3_close)(self.db.as_ptr());
            if let Some(hooks) = self.hooks {
                drop(Box::from_raw(hooks.as_ptr()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Connection {
        let library = Library::load(None).expect("inside");
        Connection::open(library, Path::new(":memory:"), None, true).expect("open")
    }

    #[test]
    fn rows_go_in_and_come_out() {
        let mut db = memory();
        db.execute_batch("CREATE TABLE t (key INTEGER PRIMARY KEY, value BLOB)")
            .expect("a table");
        let insert = db.prepare("INSERT INTO t VALUES (?1, ?2)").expect("insert");
        let read = db
            .prepare("SELECT value FROM t WHERE key = ?1")
            .expect("select");
        assert_eq!(db.change(insert, 7, Some(b"\0seven")), Ok(1));
        assert_eq!(db.change(insert, 8, Some(b"")), Ok(1));
        assert_eq!(db.read(read, 7), Ok(Some(6)));
        assert_eq!(db.read(read, 9), Ok(None));
        let mut rows = Vec::new();
        db.pairs("SELECT key, value FROM t ORDER BY key", |key, value| {
            rows.push((key, value.to_vec()));
        })
        .expect("rows");
        assert_eq!(rows, [(7, b"\0seven".to_vec()), (8, Vec::new())]);
    }

    #[test]
    fn an_error_has_sqlites_words_its_extended_code_and_the_statement() {
        let mut db = memory();
        db.execute_batch("CREATE TABLE t (key INTEGER PRIMARY KEY, value BLOB)")
            .expect("a table");
        let sql = "INSERT INTO t VALUES (?1, ?2)";
        let insert = db.prepare(sql).expect("insert");
        db.change(insert, 1, Some(b"a")).expect("a row");
        let error = db.change(insert, 1, Some(b"a")).expect_err("twice");
        assert_eq!(error.code, ffi::SQLITE_CONSTRAINT_PRIMARYKEY);
        assert_eq!(error.message, "UNIQUE constraint failed: t.key");
        assert_eq!(error.sql, sql);
        assert_eq!(db.change(insert, 2, Some(b"a")), Ok(1));
    }

    #[test]
    fn a_database_in_a_missing_directory_is_an_error() {
        let library = Library::load(None).expect("inside");
        let error = Connection::open(library, Path::new("/nonexistent/db"), None, true);
        let error = error.expect_err("missing").to_string();
        assert!(error.contains("unable to open database file"), "{error}");
    }
}
