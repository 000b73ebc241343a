//! What is in a lake, and what stays true of it.

#[path = "lake/volumes.rs"]
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use iostep_analyze::stats::Summary;
use iostep_fleet::{Lake, Options, Sizes, Table, identity};
use iostep_model::class::Layer;
use iostep_model::operation::Flags;
use iostep_model::table::{ProcessRow, Segment, Trace};
use iostep_model::{fixture, store};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::Field;
use tempfile::TempDir;

type Row = BTreeMap<String, Field>;

/// All rows of a table, as a reader finds them that lists directories.
fn rows(lake: &Path, table: Table) -> Vec<Row> {
    let mut rows = Vec::new();
    let Ok(dates) = fs::read_dir(lake.join(table.name())) else {
        return rows;
    };
    for date in dates {
        for file in fs::read_dir(date.expect("an entry").path()).expect("a directory") {
            let file = fs::File::open(file.expect("an entry").path()).expect("it opens");
            let reader = SerializedFileReader::new(file).expect("Parquet");
            for row in reader.get_row_iter(None).expect("rows") {
                let row = row.expect("a row");
                let fields = row.get_column_iter();
                rows.push(
                    fields
                        .map(|(name, field)| (name.clone(), field.clone()))
                        .collect(),
                );
            }
        }
    }
    rows
}

fn int(row: &Row, name: &str) -> i64 {
    match &row[name] {
        Field::Long(value) => *value,
        other => panic!("{name} is {other:?}"),
    }
}

fn text<'a>(row: &'a Row, name: &str) -> &'a str {
    match &row[name] {
        Field::Str(value) => value,
        other => panic!("{name} is {other:?}"),
    }
}

fn sum(rows: &[Row], name: &str, which: impl Fn(&Row) -> bool) -> u64 {
    rows.iter()
        .filter(|row| which(row))
        .map(|row| int(row, name) as u64)
        .sum()
}

/// A trace in a directory of its own.
fn stored(trace: &Trace) -> TempDir {
    let dir = TempDir::new().expect("a directory");
    store::write(dir.path(), trace).expect("written");
    dir
}

fn add(lake: &Path, id: &str, trace: &Trace, options: &Options) -> bool {
    let lake = Lake::create(lake).expect("a lake");
    lake.add_trace(stored(trace).path(), id, options, &|| Ok(()))
        .expect("it is added")
        .new
}

fn id(number: usize) -> String {
    format!("{number:064x}")
}

#[test]
fn sums_over_rows_are_those_of_the_report() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    let trace = fixture::sqlite_on_ext4(600);
    assert!(add(&lake, &id(1), &trace, &Options::default()));
    let summary = Summary::of(&trace);
    let segments = rows(&lake, Table::Segments);
    let is_write = |row: &Row| text(row, "operation") == "write" && int(row, "by_tracer") == 0;
    for share in &summary.classes {
        let class = share.of.name();
        let bytes = sum(&segments, "bytes", |row| {
            is_write(row) && text(row, "class") == class
        });
        assert_eq!(bytes, share.amounts.write.bytes, "{class}");
    }
    let joj = sum(&segments, "bytes", |row| {
        is_write(row) && text(row, "layer") == "journal" && int(row, "cause_is_database_log") == 1
    });
    assert_eq!(joj, summary.joj.joj_bytes);
    let syncs = rows(&lake, Table::Syncs);
    assert_eq!(syncs.len(), summary.sync_calls.len());
    for call in &summary.sync_calls {
        let row = syncs
            .iter()
            .find(|row| int(row, "sync_id") == i64::from(call.sync));
        let row = row.expect("a row");
        assert_eq!(int(row, "journal_bytes") as u64, call.caused.journal_bytes);
        assert_eq!(int(row, "flushes") as u64, call.caused.flushes);
        assert_eq!(text(row, "kind"), call.kind.name());
    }
    let requests = rows(&lake, Table::Requests);
    assert_eq!(requests.len(), trace.requests.len());
    let flushes = sum(&requests, "executed_flush", |row| {
        int(row, "by_tracer") == 0
    });
    assert_eq!(flushes, summary.barriers.flushes);
    let traces = rows(&lake, Table::Traces);
    assert_eq!(traces.len(), 1);
    assert_eq!(
        int(&traces[0], "write_bytes") as u64,
        summary.all().write.bytes
    );
    assert_eq!(int(&traces[0], "segments") as usize, segments.len());
}

/// A trace of two apps, whose database's blocks one dirtied and the other waited for.
fn two_apps(requests: usize) -> Trace {
    let mut trace = fixture::sqlite_on_ext4(requests);
    let other = ProcessRow {
        pid: 5_001,
        tgid: 5_001,
        comm: "mail".into(),
        ..trace.processes[0].clone()
    };
    let thread = ProcessRow {
        pid: 5_002,
        comm: "writer".into(),
        ..other.clone()
    };
    trace.processes.extend([thread, other]);
    trace.files[3].path = Some("/data/com.example.photos/files/1.jpg".into());
    trace.files[1].deleted_ns = Some(7);
    let syncs = trace.syncs.iter_mut();
    syncs
        .skip(1)
        .step_by(3)
        .for_each(|sync| sync.process = Some(3));
    let segments = trace.segments.iter_mut();
    segments
        .skip(2)
        .step_by(5)
        .for_each(|segment| segment.dirtier = Some(4));
    trace.requests[0].by_tracer = true;
    trace
}

/// What a row of `segments` says, as a join of the trace's tables says it.
fn expected_segment(trace: &Trace, row: &Row) {
    let own = &trace.segments[int(row, "segment_id") as usize];
    let request = &trace.requests[own.request as usize];
    let cause = own.cause.map(|sync| &trace.syncs[sync as usize]);
    let path = |file: Option<u32>| {
        let path = file.and_then(|file| trace.files[file as usize].path.clone());
        path.unwrap_or_default()
    };
    let kind =
        |file: Option<u32>| file.map_or("", |file| trace.files[file as usize].file_type.name());
    let program = |thread: Option<u32>| match thread {
        Some(thread) if !trace.processes[thread as usize].kernel => trace.program(thread),
        _ => "",
    };
    let wall_ns = request.queue_ns - trace.manifest.clocks.mono_ns + trace.manifest.clocks.wall_ns;
    for (column, expected) in [
        ("request_id", u64::from(own.request)),
        ("wall_ns", wall_ns),
        ("day", wall_ns / 86_400_000_000_000),
        ("by_tracer", request.by_tracer.into()),
        ("sector", own.sector),
        ("bytes", own.bytes.into()),
        ("request_bytes", request.bytes.into()),
        ("synchronous", request.flags.has(Flags::SYNC).into()),
        ("wait_ns", request.issue_ns - request.queue_ns),
    ] {
        assert_eq!(int(row, column) as u64, expected, "{column} of {row:?}");
    }
    let device_ns = request
        .complete_ns
        .map(|end_ns| (end_ns - request.issue_ns) as i64);
    for (column, expected) in [
        ("sync_id", own.cause.map(i64::from)),
        ("file_id", own.file.map(i64::from)),
        ("device_ns", device_ns),
    ] {
        let expected = expected.map_or(Field::Null, Field::Long);
        assert_eq!(row[column], expected, "{column} of {row:?}");
    }
    let cause_file = cause.and_then(|sync| sync.file);
    for (column, expected) in [
        ("operation", request.operation.name()),
        ("phase", request.phase.name()),
        ("layer", own.class.layer().name()),
        ("class", own.class.name()),
        ("evidence", own.evidence.name()),
        ("file_type", kind(own.file)),
        ("file", &path(own.file)),
        ("dirtier", program(own.dirtier)),
        ("submitter", program(request.submitter)),
        ("cause_kind", cause.map_or("", |sync| sync.kind.name())),
        ("cause_file_type", kind(cause_file)),
        ("cause_file", &path(cause_file)),
        ("filesystem", "ext4"),
    ] {
        assert_eq!(text(row, column), expected, "{column} of {row:?}");
    }
    let (dirtier, waiting) = (
        program(own.dirtier),
        program(cause.and_then(|sync| sync.process)),
    );
    let app = expected_app(own, dirtier, waiting);
    assert!(app.is_empty() || text(row, "app") == app, "{row:?}");
}

/// Whose doing a part of a request of [`two_apps`] is; empty for that of whoever submitted it.
fn expected_app<'a>(segment: &Segment, dirtier: &'a str, waiting: &'a str) -> &'a str {
    match (segment.file, segment.class.layer() == Layer::Data) {
        (Some(3), true) => "com.example.photos",
        (_, true) => dirtier,
        // Nobody waits for what is written back.
        (_, false) if waiting.is_empty() => dirtier,
        (_, false) => waiting,
    }
}

#[test]
fn every_row_says_what_the_tables_of_the_trace_say() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    let trace = two_apps(900);
    let keep = Options {
        keep_paths: true,
        ..Options::default()
    };
    add(&lake, &id(1), &trace, &keep);
    let segments = rows(&lake, Table::Segments);
    let ids: BTreeSet<i64> = segments.iter().map(|row| int(row, "segment_id")).collect();
    assert_eq!(
        (ids.len(), segments.len()),
        (trace.segments.len(), ids.len())
    );
    segments
        .iter()
        .for_each(|row| expected_segment(&trace, row));
    let apps: BTreeSet<&str> = segments.iter().map(|row| text(row, "app")).collect();
    assert_eq!(apps, BTreeSet::from(["app", "com.example.photos", "mail"]));

    let requests = rows(&lake, Table::Requests);
    assert_eq!(requests.len(), trace.requests.len());
    for row in &requests {
        let own = &trace.requests[int(row, "request_id") as usize];
        assert_eq!(int(row, "segments"), i64::from(own.segments));
        assert_eq!(int(row, "sector") as u64, own.sector);
        let first = int(row, "request_id");
        let first = segments
            .iter()
            .filter(|part| int(part, "request_id") == first);
        let first = first.min_by_key(|part| int(part, "segment_id"));
        if let Some(part) = first {
            assert_eq!(text(row, "app"), text(part, "app"));
        }
    }
    let deleted = rows(&lake, Table::Syncs);
    let deleted = deleted.iter().filter(|row| int(row, "file_deleted") == 1);
    let on_journal = trace.syncs.iter().filter(|sync| sync.file == Some(1));
    assert_eq!(deleted.count(), on_journal.count());
}

/// The table that is to be named, and what is done to a trace.
type Edit = (&'static str, fn(&mut Trace));

#[test]
fn a_trace_that_does_not_fit_together_is_refused_and_leaves_nothing() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    let opened = Lake::create(&lake).expect("a lake");
    let edits: [Edit; 9] = [
        ("segments.parquet", |t| {
            t.segments.last_mut().expect("a row").file = Some(99)
        }),
        ("segments.parquet", |t| {
            t.segments.last_mut().expect("a row").cause = Some(u32::MAX)
        }),
        ("segments.parquet", |t| {
            t.segments.last_mut().expect("a row").dirtier = Some(9)
        }),
        ("segments.parquet", |t| t.requests.truncate(199)),
        ("requests.parquet", |t| {
            t.segments.last_mut().expect("a row").request = 0
        }),
        ("requests.parquet", |t| {
            t.segments.truncate(t.segments.len() - 1)
        }),
        ("requests.parquet", |t| {
            t.requests.last_mut().expect("a row").sync = Some(u32::MAX)
        }),
        ("syncs.parquet", |t| {
            t.syncs.last_mut().expect("a row").process = Some(99)
        }),
        ("commits.parquet", |t| {
            t.commits.last_mut().expect("a row").cause = Some(u32::MAX)
        }),
    ];
    for (number, (table, edit)) in edits.into_iter().enumerate() {
        let mut trace = fixture::sqlite_on_ext4(200);
        assert_eq!(trace.segments.last().expect("a row").request, 199);
        edit(&mut trace);
        let directory = stored(&trace);
        let added = opened.add_trace(directory.path(), &id(number), &Options::default(), &|| {
            Ok(())
        });
        let error = added.expect_err("refused").to_string();
        assert!(
            error.contains(table) && error.contains("damaged at row"),
            "{error}"
        );
    }
    expect_nothing(&lake);
}

#[test]
fn a_trace_with_a_table_that_was_cut_is_refused_and_leaves_nothing() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    let opened = Lake::create(&lake).expect("a lake");
    let directory = stored(&fixture::sqlite_on_ext4(200));
    for table in [
        "segments",
        "requests",
        "files",
        "processes",
        "syncs",
        "commits",
        "markers",
    ] {
        let path = directory.path().join(format!("{table}.parquet"));
        let whole = fs::read(&path).expect("read");
        fs::write(&path, &whole[..whole.len() - 9]).expect("written");
        let added = opened.add_trace(directory.path(), &id(1), &Options::default(), &|| Ok(()));
        let error = added.expect_err("refused").to_string();
        assert!(error.contains(table), "{error}");
        fs::write(&path, &whole).expect("written");
    }
    expect_nothing(&lake);
}

/// Nothing is in a lake, and nothing is on its way into it.
fn expect_nothing(lake: &Path) {
    assert_eq!(
        fs::read_dir(lake).expect("listed").count(),
        1,
        "only _iostep"
    );
    for name in ["tmp", "commit"] {
        let left = fs::read_dir(lake.join("_iostep").join(name));
        assert_eq!(left.expect("listed").count(), 0);
    }
}

#[test]
fn paths_and_commands_are_there_only_if_they_are_asked_for() {
    let dir = TempDir::new().expect("a directory");
    let (hidden, open) = (dir.path().join("hidden"), dir.path().join("open"));
    let trace = fixture::sqlite_on_ext4(60);
    let path = trace.files[0].path.clone().expect("a path");
    let keep = Options {
        keep_paths: true,
        ..Options::default()
    };
    add(&hidden, &id(1), &trace, &Options::default());
    add(&open, &id(1), &trace, &keep);
    let files = |lake: &Path| -> BTreeSet<String> {
        rows(lake, Table::Segments)
            .iter()
            .map(|row| text(row, "file").to_owned())
            .collect()
    };
    assert!(files(&open).contains(&path));
    assert!(!files(&hidden).contains(&path));
    assert_eq!(files(&hidden).len(), files(&open).len());
    let other = dir.path().join("other");
    add(&other, &id(1), &trace, &Options::default());
    let shared = files(&hidden).intersection(&files(&other)).count();
    assert_eq!(shared, usize::from(files(&hidden).contains("")));
}

#[test]
fn the_same_content_is_added_once_before_and_after_it_is_compacted() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    for (number, new) in [(1, true), (2, true), (1, false), (2, false)] {
        let trace = fixture::sqlite_on_ext4(100 + number);
        assert_eq!(add(&lake, &id(number), &trace, &Options::default()), new);
    }
    let before: Vec<usize> = Table::ALL.map(|table| rows(&lake, table).len()).into();
    compact(&lake);
    for number in [1, 2] {
        let trace = fixture::sqlite_on_ext4(100 + number);
        assert!(!add(&lake, &id(number), &trace, &Options::default()));
    }
    let after: Vec<usize> = Table::ALL.map(|table| rows(&lake, table).len()).into();
    assert_eq!(before, after);
}

fn compact(lake: &Path) {
    let lake = Lake::open(lake).expect("a lake");
    for date in lake.dates().expect("dates") {
        for table in Table::ALL {
            let done = lake.compact(table, date, Sizes::default(), &|| Ok(()));
            done.expect("it is compacted");
        }
    }
}

#[test]
fn compacting_leaves_every_row_once_and_sorts_them() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    let model = |number: usize| Options {
        model: Some(["zeta", "alpha", "mu"][number % 3].into()),
        ..Options::default()
    };
    // More than are read at once, so that some are merged twice.
    for number in 0..40 {
        add(
            &lake,
            &id(number),
            &fixture::sqlite_on_ext4(20 + number),
            &model(number),
        );
    }
    let key = |row: &Row| format!("{row:?}");
    let mut before: Vec<String> = rows(&lake, Table::Segments).iter().map(key).collect();
    compact(&lake);
    let merged = rows(&lake, Table::Segments);
    let order = |row: &Row| ["model", "app", "trace_id"].map(|column| text(row, column).to_owned());
    assert!(merged.iter().map(order).is_sorted());
    let mut after: Vec<String> = merged.iter().map(key).collect();
    before.sort();
    after.sort();
    assert!(
        before == after,
        "{} rows, then {}",
        before.len(),
        after.len()
    );
    let lake = Lake::open(&lake).expect("a lake");
    assert_eq!(lake.totals(Table::Segments).expect("totals").files, 1);
}

#[test]
fn the_identity_of_a_trace_is_its_content() {
    let dir = TempDir::new().expect("a directory");
    let [one, two, other] = ["one", "two", "other"].map(|name| dir.path().join(name));
    for (path, requests) in [(&one, 60), (&two, 60), (&other, 61)] {
        fs::create_dir(path).expect("a directory");
        store::write(path, &fixture::sqlite_on_ext4(requests)).expect("written");
    }
    let of = |path: &PathBuf| identity(path).expect("a trace");
    assert_eq!(of(&one), of(&two));
    assert_ne!(of(&one), of(&other));
    fs::remove_file(two.join("syncs.parquet")).expect("removed");
    assert!(identity(&two).is_err());
}

#[test]
fn what_is_no_lake_or_a_newer_one_is_refused_and_left_alone() {
    let dir = TempDir::new().expect("a directory");
    let home = dir.path().join("home");
    fs::create_dir(&home).expect("a directory");
    fs::write(home.join("letter"), "dear").expect("written");
    assert!(Lake::create(&home).is_err());
    assert!(Lake::open(&home).is_err());
    assert_eq!(fs::read_dir(&home).expect("listed").count(), 1);
    let lake = dir.path().join("lake");
    Lake::create(&lake).expect("a lake");
    let head = lake.join("_iostep/lake.json");
    fs::write(&head, r#"{"lake_version": 2, "iostep_version": "9.0"}"#).expect("written");
    let error = Lake::open(&lake).err().expect("refused").to_string();
    assert!(
        error.contains("version 2") && error.contains("9.0"),
        "{error}"
    );
    fs::write(&head, "{").expect("written");
    assert!(Lake::open(&lake).is_err());
}

#[test]
fn links_in_a_lake_are_not_followed() {
    let dir = TempDir::new().expect("a directory");
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    let trace = fixture::sqlite_on_ext4(20);
    let directory = stored(&trace);
    for name in ["segments", "traces"] {
        let lake = dir.path().join(format!("lake-{name}"));
        let opened = Lake::create(&lake).expect("a lake");
        symlink(&elsewhere, lake.join(name)).expect("a link");
        let added = opened.add_trace(directory.path(), &id(1), &Options::default(), &|| Ok(()));
        let error = added.expect_err("refused").to_string();
        assert!(error.contains("symbolic link"), "{error}");
        assert_eq!(fs::read_dir(&elsewhere).expect("listed").count(), 0);
    }
    let lake = dir.path().join("lake");
    add(&lake, &id(1), &trace, &Options::default());
    fs::rename(lake.join("_iostep"), dir.path().join("control")).expect("renamed");
    symlink(dir.path().join("control"), lake.join("_iostep")).expect("a link");
    assert!(Lake::open(&lake).is_err());
}

#[test]
fn a_damaged_file_of_a_lake_is_an_error_and_nothing_is_lost() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    for number in 0..3 {
        add(
            &lake,
            &id(number),
            &fixture::sqlite_on_ext4(50),
            &Options::default(),
        );
    }
    let opened = Lake::open(&lake).expect("a lake");
    let date = opened.dates().expect("dates")[0];
    let file = lake.join(format!("segments/date={date}/{}.parquet", id(1)));
    let whole = fs::read(&file).expect("read");
    for at in (0..whole.len()).step_by(whole.len() / 60) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        fs::write(&file, &damaged).expect("written");
        // Parquet notices some of them; none may panic, and no file may be lost.
        let done = opened.compact(Table::Segments, date, Sizes::default(), &|| Ok(()));
        if done.is_ok() {
            // It was taken for rows, so the lake is made anew.
            fs::remove_dir_all(lake.join("segments")).expect("removed");
            fs::create_dir_all(file.parent().expect("a parent")).expect("made");
            for number in [0, 2] {
                let name = file.with_file_name(format!("{}.parquet", id(number)));
                fs::write(name, &whole).expect("written");
            }
        }
        let names = fs::read_dir(file.parent().expect("a parent"))
            .expect("listed")
            .count();
        assert_eq!(names, if done.is_ok() { 2 } else { 3 });
    }
    fs::write(&file, &whole[..whole.len() / 2]).expect("written");
    let done = opened.compact(Table::Segments, date, Sizes::default(), &|| Ok(()));
    assert!(done.is_err());
}

/// The name of the variable that makes [`child`] work in a lake instead of testing.
const CHILD: &str = "IOSTEP_TEST_FLEET_CHILD";
const CHILD_TRACES: usize = 12;

/// What is killed: adds the same traces each time, and compacts.
#[test]
fn child() {
    let Some(lake) = std::env::var_os(CHILD) else {
        return;
    };
    let lake = Path::new(&lake);
    for number in 0..CHILD_TRACES {
        let trace = lake.with_file_name(format!("trace-{number}"));
        let lake = Lake::create(lake).expect("a lake");
        let added = lake.add_trace(&trace, &id(number), &Options::default(), &|| Ok(()));
        added.expect("it is added");
        if number % 4 == 3 {
            compact(lake.root());
        }
    }
}

fn start(lake: &Path) -> Child {
    let program = std::env::current_exe().expect("a program");
    let mut command = Command::new(program);
    command.args(["child", "--exact"]).env(CHILD, lake);
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

fn expect_whole(lake: &Path) {
    let traces = rows(lake, Table::Traces);
    let of: BTreeSet<&str> = traces.iter().map(|row| text(row, "trace_id")).collect();
    assert_eq!(of.len(), traces.len(), "a trace is there twice");
    for (table, column) in [
        (Table::Segments, "segments"),
        (Table::Requests, "requests"),
        (Table::Syncs, "syncs"),
    ] {
        let all = rows(lake, table);
        for trace in &traces {
            let id = text(trace, "trace_id");
            let count = all.iter().filter(|row| text(row, "trace_id") == id).count();
            assert_eq!(count as i64, int(trace, column), "{} of {id}", table.name());
        }
    }
}

#[test]
fn a_writer_that_is_killed_at_any_moment_leaves_a_whole_lake() {
    let kills = std::env::var("IOSTEP_KILLS").ok();
    let kills: u64 = kills.and_then(|kills| kills.parse().ok()).unwrap_or(30);
    let dir = TempDir::new().expect("a directory");
    let mut lake = dir.path().join("lake-0");
    for number in 0..CHILD_TRACES {
        let trace = dir.path().join(format!("trace-{number}"));
        fs::create_dir(&trace).expect("a directory");
        store::write(&trace, &fixture::sqlite_on_ext4(30 + number)).expect("written");
    }
    for kill in 0..kills {
        let mut child = start(&lake);
        // Moments that spread over the child's life, whatever its speed: each life is longer.
        std::thread::sleep(Duration::from_millis(5 + kill * 37 % 400));
        let _ = child.kill();
        let ended = child.wait().expect("it ends").success();
        // A reader finds whole traces even before anybody has tidied.
        expect_whole(&lake);
        if ended {
            lake = dir.path().join(format!("lake-{}", kill + 1));
        }
    }
    assert!(start(&lake).wait().expect("it ends").success());
    expect_whole(&lake);
    assert_eq!(rows(&lake, Table::Traces).len(), CHILD_TRACES);
    let left = |name: &str| {
        fs::read_dir(lake.join("_iostep").join(name))
            .expect("listed")
            .count()
    };
    assert_eq!((left("tmp"), left("commit")), (0, 0));
}

#[test]
fn several_writers_at_once_add_each_trace_once() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    let add_all = || {
        for number in 0..CHILD_TRACES {
            add(
                &lake,
                &id(number),
                &fixture::sqlite_on_ext4(30 + number),
                &Options::default(),
            );
        }
    };
    let news: usize = std::thread::scope(|scope| {
        let one = || {
            let trace = fixture::sqlite_on_ext4(50);
            usize::from(add(&lake, &id(99), &trace, &Options::default()))
        };
        let same: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        scope.spawn(add_all);
        scope.spawn(add_all);
        same.into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    assert_eq!(news, 1);
    expect_whole(&lake);
    assert_eq!(rows(&lake, Table::Traces).len(), CHILD_TRACES + 1);
}

/// A small filesystem of its own, gone in the end.
struct Mount(TempDir);

impl Mount {
    fn of(bytes: u32) -> Mount {
        let dir = TempDir::new().expect("a directory");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "none"])
            .arg(dir.path());
        let done = mount.status().expect("mount runs");
        assert!(done.success(), "a process with mounts of its own may mount");
        Mount(dir)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// Set in a process that has mounts of its own.
const OWN_MOUNTS: &str = "IOSTEP_FLEET_MOUNTS";

/// Runs a test of this file in mounts of its own, which a user has, too, where the kernel's owner does
/// not forbid it.
fn in_own_mounts(test: &str) {
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--mount"]);
        unshare
    };
    if !unshare()
        .arg("true")
        .status()
        .is_ok_and(|done| done.success())
    {
        eprintln!("skipped: {test}: no user namespaces here");
        return;
    }
    let mut again = unshare();
    again.arg(std::env::current_exe().expect("this program"));
    again.args(["--exact", test]).env(OWN_MOUNTS, "1");
    assert!(again.status().expect("it runs").success(), "{test}");
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    if std::env::var_os(OWN_MOUNTS).is_none() {
        return in_own_mounts("a_full_disk_is_an_error_and_loses_nothing");
    }
    let mount = Mount::of(640 << 10);
    let lake = mount.0.path().join("lake");
    let opened = Lake::create(&lake).expect("a lake");
    let mut added = 0;
    let error = loop {
        let trace = stored(&fixture::sqlite_on_ext4(200 + added));
        match opened.add_trace(trace.path(), &id(added), &Options::default(), &|| Ok(())) {
            Ok(_) => added += 1,
            Err(error) => break error.to_string(),
        }
        assert!(added < 1000, "640 KiB do not fill up");
    };
    assert!(error.contains("No space left"), "{error}");
    expect_whole(&lake);
    assert_eq!(rows(&lake, Table::Traces).len(), added);
    let date = opened.dates().expect("dates")[0];
    // It needs as much again.
    let _ = opened.compact(Table::Segments, date, Sizes::default(), &|| Ok(()));
    expect_whole(&lake);
    let left = fs::read_dir(lake.join("_iostep/tmp"))
        .expect("listed")
        .count();
    assert_eq!(left, 0);
}
