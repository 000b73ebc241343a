//! The engine as a process, on small lakes that are made here.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A lake with two dates of one table, and the columns of another that has no rows.
struct Lake {
    place: TempDir,
}

impl Lake {
    fn new() -> Lake {
        let lake = Lake {
            place: tempfile::tempdir().expect("a directory"),
        };
        fs::create_dir(lake.path().join("spill")).expect("a directory");
        lake.write("2026-11-01", &["a", "b"], &[Some(1), None]);
        lake.write("2026-11-02", &["a", "c"], &[Some(1 << 62), Some(-5)]);
        lake
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    fn write(&self, date: &str, names: &[&str], numbers: &[Option<i64>]) {
        let directory = self.path().join(format!("lake/things/date={date}"));
        fs::create_dir_all(&directory).expect("a directory");
        let names: ArrayRef = Arc::new(StringArray::from(names.to_vec()));
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
        let columns = [("name", names, false), ("number", numbers, true)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("a batch");
        let file = fs::File::create(directory.join("x.parquet")).expect("a file");
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
        writer.write(&batch).expect("written");
        writer.close().expect("written");
    }

    fn ask(&self, sql: &str) -> Output {
        let columns = json!([
            { "name": "name", "type": "text" },
            { "name": "number", "type": "optional_int" },
        ]);
        self.request(&json!({
            "lake": self.path().join("lake"),
            "spill": self.path().join("spill"),
            "memory_bytes": 64 << 20,
            "threads": 2,
            "tables": { "things": columns, "nothings": columns },
            "sql": sql,
        }))
    }

    fn request(&self, request: &Value) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_iostep-fleet-engine"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut input = child.stdin.take().expect("a pipe");
        input
            .write_all(request.to_string().as_bytes())
            .expect("asked");
        drop(input);
        child.wait_with_output().expect("its end")
    }

    /// The rows of an answer that is whole.
    fn rows(&self, sql: &str) -> Vec<Value> {
        let output = self.ask(sql);
        assert!(output.status.success(), "{sql}: {}", said(&output));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        let mut lines: Vec<Value> = lines.collect();
        let end = lines.pop().expect("an end");
        assert!(lines.remove(0)["columns"].is_array());
        assert_eq!(end["rows"], lines.len());
        lines
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn values_are_json_s() {
    let lake = Lake::new();
    let rows = lake.rows("SELECT * FROM things ORDER BY date, name");
    let expected = [
        json!(["a", 1, "2026-11-01"]),
        json!(["b", null, "2026-11-01"]),
        json!(["a", 1_i64 << 62, "2026-11-02"]),
        json!(["c", -5, "2026-11-02"]),
    ];
    assert_eq!(rows, expected);
    let rows = lake.rows("SELECT 1.5, 1e300 * 1e300, true, NULL, 'a\"b', avg(number), 7 / 2 FROM things WHERE number < 10");
    assert_eq!(rows, [json!([1.5, null, true, null, "a\"b", -2.0, 3])]);
    assert_eq!(lake.rows("SELECT count(*) FROM nothings"), [json!([0])]);
    assert_eq!(lake.rows("SELECT name FROM nothings"), [Value::Null; 0]);
    assert!(!lake.rows("EXPLAIN SELECT * FROM things").is_empty());
    assert_eq!(lake.rows("DESCRIBE things").len(), 3);
}

#[test]
fn a_query_reads_the_lake_and_nothing_else() {
    let lake = Lake::new();
    let outside = lake.path().join("outside.parquet");
    fs::copy(
        lake.path().join("lake/things/date=2026-11-01/x.parquet"),
        &outside,
    )
    .expect("a file");
    let outside = outside.display();
    let out = lake.path().join("out.parquet");
    for sql in [
        format!("SELECT * FROM '{outside}'"),
        format!("SELECT * FROM read_parquet('{outside}')"),
        format!("CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '{outside}'"),
        format!("COPY things TO '{}'", out.display()),
        "INSERT INTO things SELECT * FROM things".into(),
        "DELETE FROM things".into(),
        "UPDATE things SET number = 1".into(),
        "DROP TABLE things".into(),
        "CREATE TABLE x AS SELECT 1".into(),
        "CREATE VIEW x AS SELECT 1".into(),
        "SET datafusion.execution.target_partitions = 1".into(),
        "SELECT 1; SELECT 2".into(),
        "SELECT * FROM nowhere".into(),
        "SELEKT".into(),
        String::new(),
    ] {
        let output = lake.ask(&sql);
        assert_eq!(output.status.code(), Some(2), "{sql}: {}", said(&output));
        assert!(
            !output.stderr.is_empty() && output.stdout.is_empty(),
            "{sql}"
        );
    }
    assert!(!out.exists());
    assert_eq!(lake.rows("SELECT count(*) FROM things"), [json!([4])]);
}

/// A symbolic link is no way out: the kernel keeps the engine inside, where it has landlock.
#[test]
fn the_fence_stands_whatever_the_lake_holds() {
    let lake = Lake::new();
    let outside = lake.path().join("outside.parquet");
    let inside = lake.path().join("lake/things/date=2026-11-01/x.parquet");
    fs::copy(&inside, &outside).expect("a file");
    let link = lake.path().join("lake/things/date=2026-11-02/y.parquet");
    std::os::unix::fs::symlink(&outside, link).expect("a link");
    let has_landlock = fs::read_to_string("/sys/kernel/security/lsm")
        .is_ok_and(|all| all.split(',').any(|name| name.trim() == "landlock"));
    let output = lake.ask("SELECT sum(number) FROM things");
    match has_landlock {
        true => assert_eq!(output.status.code(), Some(1), "{}", said(&output)),
        false => println!("this kernel has no landlock"),
    }
}

#[test]
fn what_is_damaged_or_too_large_fails_with_a_reason() {
    let lake = Lake::new();
    // More than the memory holds: it goes to the disk.
    let sql = "SELECT n, count(*) FROM (SELECT repeat('ab', 500) || cast(x.value AS text) AS n
               FROM generate_series(1, 100000) x) GROUP BY n ORDER BY n LIMIT 1";
    assert_eq!(
        lake.rows(sql),
        [json!([format!("{}1", "ab".repeat(500)), 1])]
    );
    let file = lake.path().join("lake/things/date=2026-11-01/x.parquet");
    let content = fs::read(&file).expect("a file");
    fs::write(&file, &content[..content.len() / 2]).expect("cut");
    let output = lake.ask("SELECT sum(number) FROM things");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for request in [json!({}), json!([]), json!({ "lake": 1 })] {
        let output = lake.request(&request);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    }
    assert_eq!(
        fs::read_dir(lake.path().join("spill"))
            .expect("a directory")
            .count(),
        0
    );
}
