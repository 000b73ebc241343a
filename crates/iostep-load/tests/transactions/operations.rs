//! What is in the databases afterwards.

use iostep_model::bench::Mix;

use super::*;

#[test]
fn every_operation_in_every_mode_does_what_it_says() {
    let directory = directory();
    let mix = Mix {
        insert: 1,
        update: 1,
        delete: 1,
        read: 1,
    };
    let operations = [
        (SqliteOperation::Insert, Some(70)),
        (SqliteOperation::Update, Some(50)),
        (SqliteOperation::Delete, Some(30)),
        (SqliteOperation::Read, Some(50)),
        (SqliteOperation::Mix(mix), None),
    ];
    for journal in Journal::ALL {
        for synchronous in Synchronous::ALL {
            // More of everything where no sync takes its time.
            let (each, keys) = match synchronous {
                Synchronous::Off => (2, KeyOrder::Random),
                _ => (1, KeyOrder::Sequential),
            };
            for (operation, left) in operations {
                let job = SqliteJob {
                    operation,
                    journal,
                    synchronous,
                    rows: 50,
                    tables: each,
                    databases: each,
                    keys,
                    ..job(directory.path())
                };
                let run = run_well(&job);
                assert_eq!(run.operations, 20, "{job:?}");
                let found = rows(&job, 0, 0, 0);
                assert_eq!(found, left.unwrap_or(found), "{job:?}");
                let verification = run.verification.expect("verified");
                let tables = u64::from(each * each);
                assert_eq!(verification.compared, tables * found as u64, "{job:?}");
            }
        }
    }
}

#[test]
fn a_transaction_touches_every_table_of_every_database_with_every_statement() {
    let directory = directory();
    for keys in [KeyOrder::Sequential, KeyOrder::Random] {
        let job = SqliteJob {
            tables: 3,
            databases: 3,
            statements: 4,
            keys,
            ..job(directory.path())
        };
        let run = run_well(&job);
        assert_eq!((run.operations, run.bytes), (20, 20 * 36 * 100));
        assert_eq!(steps(&run, Step::Commit), 20);
        for database in 0..3 {
            for table in 0..3 {
                assert_eq!(rows(&job, 0, database, table), 80);
            }
        }
    }
}

#[test]
fn attached_databases_have_the_modes_too() {
    let directory = directory();
    for synchronous in [Synchronous::Off, Synchronous::Full] {
        let job = SqliteJob {
            databases: 3,
            journal: Journal::Wal,
            synchronous,
            ..job(directory.path())
        };
        let run = run_well(&job);
        for number in 0..3 {
            let mode: String = ask(&path(&job, 0, number), "PRAGMA journal_mode");
            assert_eq!(mode, "wal");
        }
        // In a WAL each commit with FULL syncs each of the three.
        let syncs = steps(&run, Step::Sync);
        let least = if synchronous == Synchronous::Off {
            0
        } else {
            60
        };
        assert!(syncs >= least && (least > 0 || syncs == 0), "{syncs}");
    }
}

#[test]
fn thirty_one_databases_fit_into_a_transaction_and_one_more_is_refused() {
    let directory = directory();
    let job = SqliteJob {
        databases: 31,
        transactions: 3,
        ..job(directory.path())
    };
    run_well(&job);
    for number in 0..31 {
        assert_eq!(rows(&job, 0, number, 0), 3);
    }
    let error = refusal(&SqliteJob {
        databases: 32,
        ..job
    });
    assert!(matches!(error, Error::Usage { .. }), "{error}");
    assert!(error.to_string().contains("at most 31"), "{error}");
}

#[test]
fn random_inserts_fill_the_range_and_random_updates_meet_each_row_once() {
    let directory = directory();
    let insert = SqliteJob {
        keys: KeyOrder::Random,
        transactions: 300,
        journal: Journal::Off,
        synchronous: Synchronous::Off,
        ..job(directory.path())
    };
    run_well(&insert);
    let place = path(&insert, 0, 0);
    let whole: bool = ask(
        &place,
        "SELECT count(*) = 300 AND min(key) = 1 AND max(key) = 300 FROM t0",
    );
    assert!(whole);
    let values = |job: &SqliteJob| -> Vec<Vec<u8>> {
        run_well(job);
        let db = Connection::open(&place).expect("open");
        let mut all = db
            .prepare("SELECT value FROM t0 ORDER BY key")
            .expect("sql");
        let values = all.query_map([], |row| row.get(0)).expect("rows");
        values.map(|value| value.expect("a value")).collect()
    };
    let update = |transactions| SqliteJob {
        operation: SqliteOperation::Update,
        rows: 300,
        transactions,
        ..insert.clone()
    };
    let (half, whole) = (values(&update(150)), values(&update(300)));
    let unchanged = half.iter().zip(&whole).filter(|(a, b)| a == b).count();
    // 150 were met in both runs by the same transaction, the others only in the second.
    assert_eq!(unchanged, 150);
}

#[test]
fn a_mix_ends_with_what_its_plan_says() {
    let directory = directory();
    for keys in [KeyOrder::Sequential, KeyOrder::Random] {
        for shared in [false, true] {
            let job = SqliteJob {
                operation: SqliteOperation::Mix(Mix {
                    insert: 30,
                    update: 30,
                    delete: 30,
                    read: 10,
                }),
                rows: 40,
                transactions: 200,
                tables: 2,
                statements: 3,
                threads: 2,
                journal: Journal::Wal,
                synchronous: Synchronous::Off,
                keys,
                shared,
                ..job(directory.path())
            };
            let run = run_well(&job);
            assert_eq!(run.operations, 400, "{job:?}");
            assert!(run.verification.expect("verified").compared > 0);
        }
    }
}

#[test]
fn values_are_all_different_and_do_not_compress() {
    let directory = directory();
    let job = SqliteJob {
        tables: 2,
        databases: 2,
        record_bytes: 4096,
        ..job(directory.path())
    };
    run_well(&job);
    let mut values = std::collections::HashSet::new();
    for (database, table) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let db = Connection::open(path(&job, 0, database)).expect("open");
        let mut all = db
            .prepare(&format!("SELECT value FROM t{table}"))
            .expect("sql");
        let rows = all
            .query_map([], |row| row.get::<_, Vec<u8>>(0))
            .expect("rows");
        for value in rows {
            let value = value.expect("a value");
            let kinds: std::collections::HashSet<_> =
                value.chunks_exact(8).map(<[_]>::to_vec).collect();
            assert_eq!(kinds.len(), 512);
            values.insert(value);
        }
    }
    assert_eq!(values.len(), 80);
}

#[test]
fn a_checkpoint_stands_apart_and_comes_as_often_as_asked() {
    let directory = directory();
    let wal = |checkpoint| SqliteJob {
        journal: Journal::Wal,
        checkpoint,
        statements: 2,
        ..job(directory.path())
    };
    let run = run_well(&wal(CheckpointPolicy::Transactions(5)));
    // And one for the rest at the end.
    assert_eq!(steps(&run, Step::Checkpoint), 4 + 1);
    let run = run_well(&wal(CheckpointPolicy::Pages(1)));
    assert_eq!(steps(&run, Step::Checkpoint), 20 + 1);
    assert_eq!(steps(&run, Step::Transaction), 20);
    let run = run_well(&wal(CheckpointPolicy::Pages(100_000)));
    assert!(steps(&run, Step::Checkpoint) <= 1);
    let run = run_well(&wal(CheckpointPolicy::Never));
    assert_eq!(steps(&run, Step::Checkpoint), 0);
    let times = |step| {
        let found = run.latencies.iter().find(|latency| latency.step == step);
        found.expect("timed").histogram.sum_ns()
    };
    assert_eq!(times(Step::Total), times(Step::Transaction));
    assert!(times(Step::Commit) < times(Step::Transaction));
}

#[test]
fn settings_are_those_that_were_asked_for() {
    let directory = directory();
    let job = SqliteJob {
        page_bytes: Some(8192),
        cache_size: Some(-500),
        mmap_bytes: Some(1 << 20),
        synchronous: Synchronous::Extra,
        ..job(directory.path())
    };
    let bench = open(&job).expect("open");
    let library = bench.library();
    assert_eq!(library.version, rusqlite::version());
    assert_eq!(library.vfs, "unix");
    assert!(library.compile_options.iter().any(|o| o == "THREADSAFE=1"));
    let wanted = [
        ("journal_mode", "delete"),
        ("synchronous", "3"),
        ("page_size", "8192"),
        ("cache_size", "-500"),
        ("mmap_size", "1048576"),
        ("wal_autocheckpoint", "0"),
    ];
    for (name, value) in wanted {
        let setting = (name.to_owned(), value.to_owned());
        assert!(
            library.settings.contains(&setting),
            "{:?}",
            library.settings
        );
    }
    drop(bench);
    assert_eq!(ask::<u32>(&path(&job, 0, 0), "PRAGMA page_size"), 8192);
}

#[test]
fn databases_go_unless_they_are_kept() {
    let directory = directory();
    for journal in [Journal::Delete, Journal::Persist, Journal::Wal] {
        let job = SqliteJob {
            keep: false,
            journal,
            databases: 2,
            threads: 2,
            ..job(directory.path())
        };
        run_well(&job);
        assert!(!directory.path().join("iostep-bench").exists());
    }
}

#[test]
fn each_repetition_starts_from_the_same_rows() {
    let directory = directory();
    let job = SqliteJob {
        rows: 10,
        ..job(directory.path())
    };
    let mut bench = open(&job).expect("open");
    for _ in 0..3 {
        let run = bench.run(&mut Quiet).expect("a run");
        assert_eq!(
            run.verification.map(|v| (v.compared, v.wrong)),
            Some((30, 0))
        );
    }
}

#[test]
fn kept_databases_are_taken_again_if_they_have_the_right_shape() {
    let directory = directory();
    let job = SqliteJob {
        operation: SqliteOperation::Update,
        rows: 30,
        reuse: true,
        ..job(directory.path())
    };
    run_well(&job);
    let place = path(&job, 0, 0);
    let db = Connection::open(&place).expect("open");
    db.execute("UPDATE t0 SET value = zeroblob(100) WHERE key = 30", [])
        .expect("a mark");
    drop(db);
    run_well(&job);
    let marked = "SELECT value = zeroblob(100) FROM t0 WHERE key = 30";
    assert!(ask::<bool>(&place, marked), "made anew");
    run_well(&SqliteJob { rows: 31, ..job });
    assert!(!ask::<bool>(&place, marked), "has a row too few");
}

#[test]
fn verification_finds_what_is_wrong() {
    let directory = directory();
    let job = SqliteJob {
        operation: SqliteOperation::Read,
        rows: 50,
        ..job(directory.path())
    };
    let mut bench = open(&job).expect("open");
    let db = Connection::open(path(&job, 0, 0)).expect("open");
    db.execute_batch(
        "UPDATE t0 SET value = randomblob(100) WHERE key = 33; DELETE FROM t0 WHERE key = 44;
         INSERT INTO t0 VALUES (1000, zeroblob(100));",
    )
    .expect("spoilt");
    drop(db);
    let verification = bench.run(&mut Quiet).expect("a run").verification;
    let verification = verification.expect("verified");
    assert_eq!(verification.wrong, 3, "{:?}", verification.examples);
    assert!(
        verification.examples[0].contains("row 33 of t0"),
        "{:?}",
        verification.examples
    );
}

#[test]
fn with_a_time_work_goes_on_and_deletes_end_with_the_rows() {
    let directory = directory();
    let job = SqliteJob {
        operation: SqliteOperation::Delete,
        rows: 25,
        measurement: timed(60_000_000_000),
        ..job(directory.path())
    };
    assert_eq!(run_well(&job).operations, 25);
    let job = SqliteJob {
        operation: SqliteOperation::Insert,
        keys: KeyOrder::Random,
        transactions: 7,
        synchronous: Synchronous::Off,
        measurement: timed(200_000_000),
        ..job
    };
    let run = run_well(&job);
    assert!(run.operations > 7);
    assert_eq!(rows(&job, 0, 0, 0), 25 + run.operations as i64);
}

#[test]
fn a_database_that_cannot_be_read_is_wrong_but_the_run_is_kept() {
    let directory = directory();
    let job = SqliteJob {
        operation: SqliteOperation::Read,
        rows: 2000,
        ..job(directory.path())
    };
    let mut bench = open(&job).expect("open");
    let place = path(&job, 0, 0);
    let mut bytes = std::fs::read(&place).expect("there");
    // The last pages hold the last rows, which these twenty reads do not meet.
    let end = bytes.len();
    bytes[end - 8192..].fill(0x55);
    std::fs::write(&place, bytes).expect("spoilt");
    let run = bench.run(&mut Quiet).expect("a run");
    assert_eq!(run.operations, 20);
    assert!(run.verification.is_some_and(|v| v.wrong > 0));
}
