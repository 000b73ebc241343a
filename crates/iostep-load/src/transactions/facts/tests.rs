use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::OsString;

const BUDGET: Duration = Duration::from_secs(60);

/// Rows of both kinds of table, some with overflow pages, and two indexes.
const CONTENT: &str = "
    CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT, body BLOB);
    CREATE INDEX note_text ON note(text);
    CREATE INDEX note_body ON note(length(body));
    CREATE TABLE tag(name TEXT PRIMARY KEY, uses INTEGER) WITHOUT ROWID;
    CREATE TABLE void(x);
    CREATE VIEW few AS SELECT * FROM note LIMIT 3;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO note SELECT i, 'note ' || i, zeroblob(i % 6000) FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO tag SELECT 'tag ' || i, i FROM n;
";

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().expect("a temporary directory"))
    }

    fn database(&self) -> PathBuf {
        self.0.path().join("app database?.db")
    }

    fn connect(&self) -> Connection {
        Connection::open(self.database()).expect("it opens")
    }

    /// Every file with its content, but shared memory, in which connections of one process have
    /// their marks together.
    fn files(&self) -> BTreeMap<OsString, Vec<u8>> {
        let entries = std::fs::read_dir(self.0.path()).expect("a directory");
        let entries = entries.map(|entry| entry.expect("an entry"));
        entries
            .filter(|entry| !entry.path().to_string_lossy().ends_with("-shm"))
            .map(|entry| {
                (
                    entry.file_name(),
                    std::fs::read(entry.path()).expect("a file"),
                )
            })
            .collect()
    }

    fn facts(&self) -> DatabaseFacts {
        let before = self.files();
        let facts = read(&self.database(), BUDGET).expect("a database");
        assert!(before == self.files(), "something was changed");
        facts
    }
}

fn rows(facts: &DatabaseFacts) -> BTreeMap<&str, u64> {
    let tables = facts.tables.iter();
    tables
        .map(|table| (table.name.as_str(), table.rows))
        .collect()
}

fn expected() -> BTreeMap<&'static str, u64> {
    BTreeMap::from([("note", 3000), ("tag", 5000), ("void", 0)])
}

#[test]
fn tables_are_counted_in_every_page_size() {
    for page_bytes in [512, 4096, 65536] {
        let place = Scratch::new();
        let connection = place.connect();
        connection
            .execute_batch(&format!("PRAGMA page_size = {page_bytes}; {CONTENT}"))
            .expect("tables");
        let pages: i64 = connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .expect("a number");
        drop(connection);
        let facts = place.facts();
        assert_eq!((facts.page_bytes, facts.pages), (page_bytes, pages as u64));
        assert_eq!(facts.journal, Journal::Delete);
        assert_eq!(rows(&facts), expected());
        assert_eq!(facts.unread, None);
        let note = &facts.tables[0];
        assert_eq!((note.name.as_str(), note.indexes), ("note", 2));
        // The blobs are 1500.5 bytes on average; text and headers are a few bytes more.
        let mean = note.mean_row_bytes().expect("rows");
        assert!((1510.0..1520.0).contains(&mean), "{mean}");
    }
}

#[test]
fn a_log_in_use_is_read_through_shared_memory() {
    let place = Scratch::new();
    let writer = place.connect();
    writer
        .execute_batch(&format!("PRAGMA journal_mode = wal; {CONTENT}"))
        .expect("tables");
    let facts = place.facts();
    assert_eq!(facts.journal, Journal::Wal);
    assert!(facts.log_bytes > 0, "{facts:?}");
    assert_eq!((rows(&facts), &facts.unread), (expected(), &None));
    drop(writer);
    assert_eq!(rows(&place.facts()), expected());
}

#[test]
fn the_log_of_a_crash_is_left_alone_and_told() {
    let running = Scratch::new();
    let writer = running.connect();
    writer
        .execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t(v); INSERT INTO t VALUES (1)")
        .expect("a table");
    let crashed = Scratch::new();
    for (name, content) in running.files() {
        std::fs::write(crashed.0.path().join(name), content).expect("a copy");
    }
    let facts = crashed.facts();
    let told = facts.unread.expect("the log was not read");
    assert!(
        told.ends_with("bytes of its log") || told.starts_with("its tables"),
        "{told}"
    );
}

#[test]
fn a_writer_is_neither_waited_for_nor_kept_waiting() {
    let place = Scratch::new();
    let writer = place.connect();
    writer.execute_batch(CONTENT).expect("tables");
    writer.execute_batch("BEGIN EXCLUSIVE").expect("the lock");
    assert_eq!(rows(&place.facts()), expected());
    writer.execute_batch("COMMIT").expect("still its lock");
}

#[test]
fn of_what_is_too_large_a_part_is_read() {
    let place = Scratch::new();
    place
        .connect()
        .execute_batch(&format!("PRAGMA page_size = 512; {CONTENT}"))
        .expect("tables");
    let facts = read(&place.database(), Duration::ZERO).expect("a database");
    let note = &facts.tables[0];
    assert_eq!((note.pages, note.whole), (LEAST_PAGES, false));
    assert!(facts.unread.is_some());
}

#[test]
fn an_empty_file_is_an_empty_database() {
    let place = Scratch::new();
    std::fs::write(place.database(), b"").expect("a file");
    let facts = place.facts();
    assert_eq!((facts.page_bytes, facts.pages), (4096, 0));
    assert_eq!((facts.tables.len(), facts.unread), (0, None));
}

#[test]
fn other_files_are_bad_usage_and_damage_is_told() {
    let place = Scratch::new();
    std::fs::write(place.database(), [b'x'; 5000]).expect("a file");
    let error = read(&place.database(), BUDGET).expect_err("no database");
    assert!(matches!(error, Error::Usage { .. }), "{error}");
    assert!(
        error.to_string().contains("not a SQLite database"),
        "{error}"
    );
    let directory = read(place.0.path(), BUDGET).expect_err("a directory");
    assert!(matches!(directory, Error::Usage { .. }), "{directory}");
    std::fs::remove_file(place.database()).expect("it is there");
    place.connect().execute_batch(CONTENT).expect("tables");
    let mut bytes = std::fs::read(place.database()).expect("a file");
    bytes[100..4000].fill(0xee);
    std::fs::write(place.database(), bytes).expect("a file");
    let told = place.facts().unread.expect("page 1 is damaged");
    assert!(told.starts_with("its tables: "), "{told}");
}

/// A database of 512-byte pages, as a file has it.
fn small_pages() -> Vec<u8> {
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    let made = BYTES.get_or_init(|| {
        let place = Scratch::new();
        let script = format!("PRAGMA page_size = 512; {CONTENT}");
        place.connect().execute_batch(&script).expect("tables");
        std::fs::read(place.database()).expect("a file")
    });
    made.clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damage_anywhere_is_told_or_harmless(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        in_first_pages: bool,
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = small_pages();
        for (place, byte) in changes {
            let end = if in_first_pages { 2048 } else { bytes.len() };
            bytes[place.index(end)] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let place = Scratch::new();
        std::fs::write(place.database(), &bytes).expect("a file");
        match read(&place.database(), Duration::from_millis(50)) {
            Ok(facts) => prop_assert!(facts.tables.len() < 100),
            Err(error) => prop_assert!(matches!(error, Error::Usage { .. }), "{error}"),
        }
        prop_assert_eq!(std::fs::read(place.database()).expect("a file"), bytes);
    }
}
