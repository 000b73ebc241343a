//! What is refused, and what fails in the middle.

use std::os::unix::fs::{PermissionsExt, symlink};

use iostep_model::bench::{FileJob, RunState, Target};

use super::*;

#[test]
fn batch_atomic_writes_are_refused_where_there_are_none() {
    let directory = directory();
    for journal in [Journal::Delete, Journal::Truncate, Journal::Persist] {
        let error = refusal(&SqliteJob {
            batch_atomic: true,
            journal,
            ..job(directory.path())
        });
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        let expected = "only f2fs has batch atomic writes";
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(!directory.path().join("iostep-bench").exists());
}

#[test]
fn more_than_there_is_room_for_is_refused_before_a_row_is_written() {
    let directory = directory();
    let mut job = job(directory.path());
    (job.rows, job.measurement.verify) = (1 << 40, false);
    let error = refusal(&job);
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(error.to_string().contains("MiB are free"), "{error}");
    assert!(!directory.path().join("iostep-bench").exists());
}

/// MiB that a job is refused for on a filesystem without any room.
fn mebibytes_wanted(job: &SqliteJob) -> u64 {
    let error = refusal(job).to_string();
    let (_, wanted) = error.split_once("may take ").expect("no room");
    let digits: String = wanted.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn the_room_that_is_asked_for_is_enough_and_not_far_too_much() {
    let directory = directory();
    // As many statements as no disk holds, by a factor that is known.
    const FACTOR: u64 = 1 << 26;
    for record_bytes in [10, 100, 1000, 3000, 10_000] {
        for keys in [KeyOrder::Sequential, KeyOrder::Random] {
            let small = SqliteJob {
                record_bytes,
                keys,
                transactions: 20,
                statements: 100,
                tables: 2,
                synchronous: Synchronous::Off,
                measurement: Measurement::default(),
                ..job(directory.path())
            };
            let huge = SqliteJob {
                transactions: small.transactions * FACTOR,
                ..small.clone()
            };
            run(&small);
            let taken = path(&small, 0, 0).metadata().expect("there").len();
            let wanted = mebibytes_wanted(&huge) * (1 << 20) / FACTOR;
            // Twenty transactions leave the last pages half empty.
            assert!(
                (taken..3 * taken).contains(&(wanted + 8192)),
                "{taken} {wanted} {small:?}"
            );
        }
    }
}

#[test]
fn a_directory_that_is_missing_a_link_or_open_to_others_is_refused() {
    let directory = directory();
    let missing = refusal(&job(&directory.path().join("missing")));
    assert!(
        missing.to_string().contains("no such directory"),
        "{missing}"
    );

    let elsewhere = super::directory();
    let link = directory.path().join("iostep-bench");
    symlink(elsewhere.path(), &link).expect("a link");
    for reuse in [false, true] {
        let error = refusal(&SqliteJob {
            reuse,
            ..job(directory.path())
        });
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert_eq!(elsewhere.path().read_dir().expect("a directory").count(), 0);
    }

    std::fs::remove_file(&link).expect("gone");
    std::fs::create_dir(&link).expect("a directory");
    std::fs::set_permissions(&link, PermissionsExt::from_mode(0o777)).expect("open");
    let error = refusal(&job(directory.path()));
    assert!(
        error.to_string().contains("somebody else can write"),
        "{error}"
    );
}

#[test]
fn a_link_in_the_place_of_a_database_is_not_followed() {
    let directory = directory();
    let victim = directory.path().join("victim");
    std::fs::write(&victim, b"precious").expect("written");
    let job = job(directory.path());
    let place = path(&job, 0, 0);
    std::fs::create_dir(place.parent().expect("a parent")).expect("a directory");
    symlink(&victim, &place).expect("a link");
    run_well(&job);
    run_well(&SqliteJob { reuse: true, ..job });
    assert_eq!(std::fs::read(&victim).expect("there"), b"precious");
}

#[test]
fn one_directory_has_one_run_at_a_time() {
    let directory = directory();
    let job = job(directory.path());
    let bench = open(&job).expect("open");
    let error = refusal(&job);
    assert!(error.to_string().contains("another run uses it"), "{error}");
    let files = FileJob::new(Target::Directory(directory.path().to_owned()));
    let run_of_files = || iostep_load::file::Bench::open(&files, &GO_ON, &mut Quiet).map(|_| ());
    let error = run_of_files().expect_err("it is taken");
    assert!(error.to_string().contains("another run uses it"), "{error}");
    drop(bench);
    run_of_files().expect("nobody else");
    run_well(&job);
}

#[test]
fn an_error_in_the_loop_ends_the_run_with_sqlites_words() {
    let directory = directory();
    for journal in [Journal::Delete, Journal::Wal] {
        let job = SqliteJob {
            journal,
            statements: 2,
            shared: true,
            threads: 2,
            measurement: with_gaps(60_000_000_000),
            ..job(directory.path())
        };
        let mut bench = open(&job).expect("open");
        let run = run_and(&mut bench, |running| {
            let db = Connection::open(path(&job, 0, 0)).expect("open");
            db.busy_timeout(std::time::Duration::from_secs(10))
                .expect("set");
            let rows = || db.query_row("SELECT count(*) FROM t0", [], |row| row.get(0));
            running.until(|| rows().unwrap_or(0i64) > 0);
            running.until(|| db.execute_batch("DROP TABLE t0").is_ok());
        });
        let run = run.expect("a run");
        assert_eq!(run.state, RunState::Failed);
        let failure = &run.failures[0];
        assert!(
            failure.attempt.starts_with("INSERT INTO main.t0"),
            "{failure:?}"
        );
        assert!(
            failure.reason.contains("no such table: main.t0"),
            "{failure:?}"
        );
        assert!(run.operations > 0);
    }
}

#[test]
fn a_row_that_is_not_there_is_a_failure() {
    let directory = directory();
    for operation in [
        SqliteOperation::Update,
        SqliteOperation::Delete,
        SqliteOperation::Read,
    ] {
        let job = SqliteJob {
            operation,
            rows: 20,
            ..job(directory.path())
        };
        let mut bench = open(&job).expect("open");
        let db = Connection::open(path(&job, 0, 0)).expect("open");
        db.execute_batch("DELETE FROM t0 WHERE key = 11")
            .expect("gone");
        drop(db);
        let run = bench.run(&mut Quiet).expect("a run");
        assert_eq!((run.state, run.operations), (RunState::Failed, 10));
        let failure = &run.failures[0];
        assert_eq!(failure.operation, 11);
        assert!(failure.attempt.contains("with key 11"), "{failure:?}");
        assert!(failure.reason.contains("no such row"), "{failure:?}");
    }
}

#[test]
fn a_setting_that_sqlite_does_not_keep_is_an_error() {
    let directory = directory();
    let error = refusal(&SqliteJob {
        mmap_bytes: Some(1 << 50),
        ..job(directory.path())
    });
    assert!(
        error.to_string().contains("SQLite keeps main.mmap_size at"),
        "{error}"
    );
}

#[test]
fn an_interrupted_preparation_ends_and_leaves_nothing() {
    let directory = directory();
    let interrupted = AtomicBool::new(true);
    let job = SqliteJob {
        rows: 20_000,
        ..job(directory.path())
    };
    let result = Bench::open(&job, &interrupted, &mut Quiet);
    assert_eq!(
        result.map(|_| ()).expect_err("interrupted"),
        Error::Interrupted
    );
    assert!(!directory.path().join("iostep-bench").exists());
}

#[test]
fn an_interrupted_run_is_consistent() {
    let directory = directory();
    let interrupted = AtomicBool::new(false);
    let job = SqliteJob {
        measurement: timed(60_000_000_000),
        statements: 2,
        ..job(directory.path())
    };
    let mut bench = Bench::open(&job, &interrupted, &mut Quiet).expect("open");
    interrupted.store(true, std::sync::atomic::Ordering::Relaxed);
    let run = bench.run(&mut Quiet).expect("a run");
    assert_eq!(run.state, RunState::Interrupted);
    assert_eq!(run.verification.map(|v| v.wrong), Some(0));
}
