//! What the runner says about transactions and about databases it cannot use. The judge is a
//! second connection, or the `sqlite3` format itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use iostep_load::Error;
use iostep_load::script::{Outcome, Runner, Settings, Transaction, held_path};
use iostep_model::directory::Directory;
use iostep_model::pragma::{Journal, Synchronous};
use rusqlite::Connection;
use rustix::fs::IFlags;
use tempfile::TempDir;

struct Fixture {
    _directory: TempDir,
    path: PathBuf,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("app.db");
        let fixture = Fixture {
            _directory: directory,
            path,
        };
        fixture
            .other()
            .execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
            .expect("a table");
        fixture
    }

    /// A connection that is not the runner's.
    fn other(&self) -> Connection {
        Connection::open(&self.path).expect("it opens")
    }

    fn runner(&self) -> Runner {
        self.runner_with(&Settings::default()).expect("it opens")
    }

    fn runner_with(&self, settings: &Settings) -> Result<Runner, Error> {
        Runner::open(&self.path, settings)
    }

    fn rows(&self) -> i64 {
        self.other()
            .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
            .expect("a count")
    }

    fn run(&self, script: &str) -> (Vec<Transaction>, Option<Error>) {
        let mut runner = self.runner();
        runner.load(script).expect("statements");
        let mut transactions = Vec::new();
        loop {
            match runner.step() {
                Ok(Some(transaction)) => transactions.push(transaction),
                Ok(None) => return (transactions, None),
                Err(error) => return (transactions, Some(error)),
            }
        }
    }
}

fn sizes(transactions: &[Transaction]) -> Vec<usize> {
    transactions.iter().map(|t| t.statements.len()).collect()
}

fn user_bytes(transaction: &Transaction) -> Option<u64> {
    transaction.statements.iter().map(|s| s.user_bytes).sum()
}

#[test]
fn statements_are_grouped_as_sqlite_commits_them() {
    let fixture = Fixture::new();
    let (transactions, error) = fixture.run(
        "INSERT INTO t VALUES (1, 'a'); BEGIN; INSERT INTO t VALUES (2, 'b'); COMMIT; \
         SAVEPOINT s; INSERT INTO t VALUES (3, 'c'); RELEASE s; \
         BEGIN; INSERT INTO t VALUES (4, 'd'); ROLLBACK; SELECT * FROM t; \
         BEGIN; INSERT INTO t VALUES (5, 'e')",
    );
    assert_eq!(error, None);
    assert_eq!(sizes(&transactions), [1, 3, 3, 3, 1, 2]);
    let outcomes: Vec<_> = transactions.iter().map(|t| t.outcome).collect();
    use Outcome::{Committed, Open, RolledBack};
    assert_eq!(
        outcomes,
        [Committed, Committed, Committed, RolledBack, Committed, Open]
    );
    assert_eq!(transactions[4].statements[0].rows_returned, 3);
    assert_eq!(fixture.rows(), 3);
}

#[test]
fn user_bytes_are_the_new_values_and_of_an_update_only_the_changed_ones() {
    let fixture = Fixture::new();
    let (transactions, error) = fixture.run(
        "INSERT INTO t VALUES (300, 'seven..');
         UPDATE t SET v = 'eight...', id = 300;
         UPDATE t SET v = 'eight...';
         DELETE FROM t;
         INSERT INTO t SELECT NULL, zeroblob(100) FROM (VALUES (1), (2))",
    );
    assert_eq!(error, None);
    // 300 takes two bytes; the key of the last two rows is chosen by SQLite: 1 and 2, of which
    // the constant 1 takes none.
    let bytes: Vec<_> = transactions.iter().map(user_bytes).collect();
    assert_eq!(bytes, [9, 8, 0, 0, 201].map(Some));
    let rows: Vec<_> = transactions
        .iter()
        .map(|t| t.statements[0].rows_changed)
        .collect();
    assert_eq!(rows, [1, 1, 1, 1, 2]);
}

#[test]
fn tables_without_row_ids_count_and_rows_of_triggers_do_not() {
    let fixture = Fixture::new();
    let (transactions, error) = fixture.run(
        "CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
         CREATE TABLE audit (note);
         CREATE TRIGGER r AFTER INSERT ON w BEGIN INSERT INTO audit VALUES (zeroblob(500)); END;
         INSERT INTO w VALUES ('key', 'value')",
    );
    assert_eq!(error, None);
    assert_eq!(user_bytes(&transactions[3]), Some(8));
    assert_eq!(transactions[3].statements[0].rows_changed, 1);
}

/// The bytes of the last statement of a script.
fn last_bytes(script: &str) -> Option<u64> {
    let (transactions, error) = Fixture::new().run(script);
    assert_eq!(error, None, "{script}");
    let last = transactions.last().expect("a transaction");
    last.statements.last().expect("a statement").user_bytes
}

#[test]
fn only_the_rows_of_the_named_table_at_the_top_level_were_asked_for() {
    let index = "CREATE VIRTUAL TABLE f USING fts5(v, content = t, content_rowid = id);
        CREATE TRIGGER r AFTER INSERT ON t BEGIN
            INSERT INTO f (rowid, v) VALUES (new.id, new.v);
        END;";
    let cascade = "PRAGMA foreign_keys = 1;
        CREATE TABLE p (k TEXT PRIMARY KEY);
        CREATE TABLE c (k TEXT REFERENCES p ON UPDATE CASCADE, v);
        INSERT INTO p VALUES ('one'); INSERT INTO c VALUES ('one', 'x'), ('one', 'y');";
    let without = "CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID; \
        INSERT INTO w VALUES ('a', 'bc');";
    let full = "INSERT INTO t VALUES (300, 'abc'), (301, 'de');";
    for (setup, statement, bytes) in [
        (index, "INSERT INTO t VALUES (300, 'ten bytes.')", 12),
        (cascade, "UPDATE p SET k = 'three'", 5),
        (without, "UPDATE w SET v = 'def'", 3),
        (without, "UPDATE w SET k = 'de'", 2),
        (
            without,
            "CREATE TABLE x (k TEXT PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO x SELECT * FROM w",
            3,
        ),
        (full, "UPDATE t SET id = id + 300", 4),
        (full, "REPLACE INTO t VALUES (300, 'x')", 3),
        (
            full,
            "INSERT INTO t VALUES (300, 'four') ON CONFLICT (id) DO UPDATE SET v = excluded.v",
            4,
        ),
        (full, "INSERT OR IGNORE INTO t VALUES (300, 'x')", 0),
        (full, "UPDATE t SET v = 'none' WHERE id = 7", 0),
        (
            full,
            "CREATE TABLE u (id INTEGER PRIMARY KEY, v); INSERT INTO u SELECT * FROM t",
            9,
        ),
        (full, "VACUUM", 0),
        (full, "ALTER TABLE t ADD COLUMN more DEFAULT 'much'", 0),
        (full, "ALTER TABLE t RENAME COLUMN v TO w", 0),
        (full, "CREATE INDEX i ON t (v)", 0),
        (full, "ANALYZE", 0),
        ("", "CREATE VIRTUAL TABLE f USING fts5(v)", 0),
        (full, "CREATE VIEW v AS SELECT * FROM t", 0),
        (full, "CREATE TABLE u (v)", 0),
        (full, "SELECT * FROM t", 0),
        (
            "CREATE VIRTUAL TABLE f USING fts5(v); INSERT INTO f VALUES ('x');",
            "DELETE FROM f",
            0,
        ),
    ] {
        assert_eq!(
            last_bytes(&format!("{setup}{statement}")),
            Some(bytes),
            "{statement}"
        );
    }
}

#[test]
fn what_sqlite_does_not_tell_is_not_known() {
    let view = "CREATE VIEW v AS SELECT * FROM t;
        CREATE TRIGGER i INSTEAD OF INSERT ON v BEGIN INSERT INTO t VALUES (new.id, new.v); END;
        CREATE TRIGGER u INSTEAD OF UPDATE ON v BEGIN UPDATE t SET v = new.v; END;
        INSERT INTO t VALUES (1, 'a');";
    for (setup, statement) in [
        (
            "CREATE VIRTUAL TABLE f USING fts5(v);",
            "INSERT INTO f VALUES ('ten bytes.')",
        ),
        (
            "CREATE VIRTUAL TABLE f USING fts5(v); INSERT INTO f VALUES ('x');",
            "UPDATE f SET v = 'y'",
        ),
        (
            "CREATE VIRTUAL TABLE r USING rtree(id, a, b);",
            "INSERT INTO r VALUES (1, 2, 3)",
        ),
        (view, "INSERT INTO v VALUES (2, 'b')"),
        (view, "UPDATE v SET v = 'c'"),
        (
            "INSERT INTO t VALUES (1, 'a');",
            "CREATE TABLE u AS SELECT * FROM t",
        ),
    ] {
        assert_eq!(
            last_bytes(&format!("{setup}{statement}")),
            None,
            "{statement}"
        );
    }
}

#[test]
fn an_error_in_statement_3_of_5_names_it_and_says_what_became_of_the_others() {
    let fixture = Fixture::new();
    let (transactions, error) = fixture.run(
        "INSERT INTO t VALUES (1, 'a'); INSERT INTO t VALUES (2, 'b'); INSERT INTO nope VALUES (1); \
         INSERT INTO t VALUES (3, 'c'); INSERT INTO t VALUES (4, 'd')",
    );
    assert_eq!(sizes(&transactions), [1, 1]);
    assert_eq!(
        error.expect("an error").to_string(),
        "statement 3 of 5: no such table: nope: INSERT INTO nope VALUES (1); \
         statements 1 to 2 are committed"
    );
    assert_eq!(fixture.rows(), 2);
}

#[test]
fn an_error_inside_a_transaction_rolls_it_back_and_says_so() {
    let fixture = Fixture::new();
    let (transactions, error) = fixture.run(
        "BEGIN; INSERT INTO t VALUES (1, 'a'); INSERT INTO t VALUES (1, 'twice'); COMMIT; SELECT 1",
    );
    assert!(transactions.is_empty());
    assert_eq!(
        error.expect("an error").to_string(),
        "statement 3 of 5: UNIQUE constraint failed: t.id: INSERT INTO t VALUES (1, 'twice'); \
         statements 1 to 2 are rolled back"
    );
    assert_eq!(fixture.rows(), 0);
}

#[test]
fn a_full_disk_is_an_error_of_the_statement() {
    let fixture = Fixture::new();
    let (_, error) = fixture.run(
        "INSERT INTO t VALUES (1, 'a'); PRAGMA max_page_count = 3; \
         INSERT INTO t VALUES (2, zeroblob(100000))",
    );
    let error = error.expect("an error").to_string();
    assert!(
        error.starts_with("statement 3 of 3: database or disk is full: "),
        "{error}"
    );
    assert_eq!(fixture.rows(), 1);
}

#[test]
fn a_locked_database_is_named() {
    let fixture = Fixture::new();
    let other = fixture.other();
    other.execute_batch("BEGIN EXCLUSIVE").expect("the lock");
    let error = fixture
        .runner_with(&Settings::default())
        .expect_err("it is locked");
    assert!(matches!(error, Error::Database { .. }));
    let text = error.to_string();
    assert!(
        text.contains("app.db: database is locked; another process uses it"),
        "{text}"
    );
}

#[test]
fn a_read_only_database_is_named() {
    let fixture = Fixture::new();
    let file = fs::File::open(&fixture.path).expect("it opens");
    if rustix::process::geteuid().is_root() {
        // Root may write in spite of the mode.
        rustix::fs::ioctl_setflags(&file, IFlags::IMMUTABLE).expect("an immutable file");
    } else {
        file.set_permissions(fs::Permissions::from_mode(0o444))
            .expect("the mode");
    }
    let opened = fixture.runner_with(&Settings::default());
    if rustix::process::geteuid().is_root() {
        rustix::fs::ioctl_setflags(&file, IFlags::empty()).expect("as it was");
    }
    let text = opened.expect_err("it is read-only").to_string();
    assert!(text.contains("app.db: read-only; "), "{text}");
}

#[test]
fn what_is_encrypted_or_no_database_is_named() {
    let fixture = Fixture::new();
    fs::write(&fixture.path, vec![0x5a; 8192]).expect("write");
    let text = fixture
        .runner_with(&Settings::default())
        .expect_err("it is no database")
        .to_string();
    assert!(text.contains("app.db: file is not a database"), "{text}");
    assert!(text.contains("encrypted"), "{text}");
}

#[test]
fn a_missing_file_and_a_directory_are_bad_usage_and_nothing_is_made() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let missing = directory.path().join("missing.db");
    for (path, words) in [
        (missing.as_path(), "no such file"),
        (directory.path(), "is a directory"),
        (std::path::Path::new("/dev/null"), "is not a regular file"),
    ] {
        let error = Runner::open(path, &Settings::default()).expect_err("refused");
        assert!(matches!(error, Error::Usage { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(!missing.exists());
}

#[test]
fn a_damaged_database_is_an_error() {
    let fixture = Fixture::new();
    fixture
        .other()
        .execute_batch("INSERT INTO t SELECT NULL, zeroblob(3000) FROM (VALUES (1), (2), (3))")
        .expect("rows");
    let mut bytes = fs::read(&fixture.path).expect("read");
    for byte in &mut bytes[4096..] {
        *byte = 0xff;
    }
    fs::write(&fixture.path, bytes).expect("write");
    let (_, error) = fixture.run("UPDATE t SET v = 1");
    let error = error.expect("an error").to_string();
    assert!(
        error.contains("database disk image is malformed"),
        "{error}"
    );
}

#[test]
fn settings_are_what_sqlite_says_they_are() {
    // Where waldio can help depends on the filesystem: it is tested on images (tests/kernel).
    for journal in Journal::ALL.iter().filter(|j| **j != Journal::Waldio) {
        let fixture = Fixture::new();
        let settings = Settings {
            journal: Some(*journal),
            synchronous: Some(Synchronous::Extra),
            page_bytes: Some(1024),
            ..Settings::default()
        };
        let mut runner = fixture.runner_with(&settings).expect("it opens");
        let opened = runner.describe(&fixture.path).expect("it answers");
        assert_eq!(opened.journal, *journal);
        assert_eq!(opened.synchronous, Synchronous::Extra);
        assert_eq!(opened.page_bytes, 1024);
        runner.load("PRAGMA foreign_keys").expect("a statement");
        runner.step().expect("it runs");
        runner.close(&fixture.path).expect("it closes");
        let header = fs::read(&fixture.path).expect("read");
        assert_eq!(header[16..18], 1024u16.to_be_bytes());
    }
}

#[test]
fn warming_up_makes_the_modes_files_and_changes_no_row() {
    for (journal, suffix) in [
        (Journal::Truncate, "-journal"),
        (Journal::Persist, "-journal"),
        (Journal::Wal, "-wal"),
    ] {
        let fixture = Fixture::new();
        let mut runner = fixture
            .runner_with(&Settings {
                journal: Some(journal),
                ..Settings::default()
            })
            .expect("it opens");
        runner.warm_up(&fixture.path).expect("it warms up");
        let side_file = format!("{}{suffix}", fixture.path.display());
        assert!(fs::exists(&side_file).expect("a directory"), "{side_file}");
        assert_eq!(fixture.rows(), 0);
    }
}

#[test]
fn a_database_is_used_where_its_directory_is_held_whatever_is_put_at_its_name() {
    let place = tempfile::tempdir().expect("a directory");
    let of = |name: &str| place.path().join(name);
    for name in ["ours", "victim"] {
        fs::create_dir(of(name)).expect("a directory");
    }
    fs::write(of("victim/app.db"), "").expect("a file");
    let directory = Directory::open(&of("ours")).expect("a directory");
    let path = held_path(&directory, Path::new("app.db"));
    fs::write(&path, "").expect("a file");
    fs::rename(of("ours"), of("moved")).expect("a directory");
    std::os::unix::fs::symlink("victim", of("ours")).expect("a link");
    for (journal, files) in [("delete", 1), ("wal", 3), ("waldio", 2)] {
        let settings = Settings {
            journal: Some(journal.parse().expect("a mode")),
            ..Settings::default()
        };
        let mut runner = match Runner::open(&path, &settings) {
            Ok(runner) => runner,
            // Where waldio leaves the log to SQLite.
            Err(Error::Unsupported { .. }) if journal == "waldio" => continue,
            Err(error) => panic!("{journal}: {error}"),
        };
        let script = format!("CREATE TABLE {journal}_rows (v)");
        runner.load(&script).expect("a script");
        runner.step().expect("a table");
        let count = |name: &str| fs::read_dir(of(name)).expect("a directory").count();
        assert_eq!(count("victim"), 1, "{journal}");
        assert!(count("moved") >= files, "{journal}");
        runner.close(&path).expect("closed");
    }
    let bytes = |name: &str| fs::metadata(of(name)).expect("a file").len();
    assert_eq!(bytes("victim/app.db"), 0);
    assert_ne!(bytes("moved/app.db"), 0);
}
