//! Threads, and what stands in a writer's way.

use iostep_model::bench::RunState;

use super::*;

#[test]
fn transactions_of_threads_add_up() {
    let directory = directory();
    for journal in [Journal::Delete, Journal::Wal] {
        for (shared, statements) in [(false, 1), (true, 1), (true, 3)] {
            let job = SqliteJob {
                journal,
                synchronous: Synchronous::Off,
                threads: 4,
                shared,
                statements,
                rows: 10,
                transactions: 50,
                ..job(directory.path())
            };
            let run = run_well(&job);
            assert_eq!(run.operations, 200);
            let each: Vec<_> = run.threads.iter().map(|thread| thread.operations).collect();
            assert_eq!(each, [50; 4]);
            let sets = if shared { 1 } else { 4 };
            let all: i64 = (0..sets).map(|set| rows(&job, set, 0, 0)).sum();
            assert_eq!(all, i64::from(sets * 10 + 200 * statements));
        }
    }
}

#[test]
fn a_lock_that_is_held_too_long_ends_the_run_and_names_the_wait() {
    let directory = directory();
    let job = SqliteJob {
        shared: true,
        statements: 2,
        threads: 1,
        busy_timeout_ns: 300_000_000,
        measurement: with_gaps(60_000_000_000),
        ..job(directory.path())
    };
    let mut bench = open(&job).expect("open");
    let holder = Connection::open(path(&job, 0, 0)).expect("open");
    let rows = || -> i64 {
        let rows = holder.query_row("SELECT count(*) FROM t0", [], |row| row.get(0));
        rows.unwrap_or(0)
    };
    let run = run_and(&mut bench, |running| {
        // Only once it has begun to insert.
        running.until(|| rows() > 0);
        running.until(|| holder.execute_batch("BEGIN EXCLUSIVE").is_ok());
        running.until(|| false);
    });
    let held = rows();
    let run = run.expect("a run");
    let failure = run.failures.first().expect("a failure");
    assert!(
        failure.attempt.starts_with("BEGIN IMMEDIATE in "),
        "{failure:?}"
    );
    let wanted = "database is locked (code 5); thread 0 waited 0.3 s";
    assert!(failure.reason.contains(wanted), "{failure:?}");
    assert_eq!(held, 2 * run.operations as i64);
    assert_eq!(steps(&run, Step::Transaction), run.operations);
}

#[test]
fn a_writer_that_waited_says_how_long_and_one_that_is_interrupted_waits_no_longer() {
    let directory = directory();
    let interrupted = AtomicBool::new(false);
    let job = SqliteJob {
        shared: true,
        statements: 2,
        busy_timeout_ns: 3_600_000_000_000,
        measurement: with_gaps(3_600_000_000_000),
        ..job(directory.path())
    };
    let mut bench = Bench::open(&job, &interrupted, &mut Quiet).expect("open");
    let holder = Connection::open(path(&job, 0, 0)).expect("open");
    let rows = || -> i64 {
        let rows = holder.query_row("SELECT count(*) FROM t0", [], |row| row.get(0));
        rows.unwrap_or(0)
    };
    let lock = |running: &Running, rows_before: i64| {
        running.until(|| rows() > rows_before && holder.execute_batch("BEGIN EXCLUSIVE").is_ok());
        // Longer than the pause between two transactions: the writer comes and waits.
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let run = run_and(&mut bench, |running| {
        lock(running, 0);
        let rows_before = rows();
        holder.execute_batch("COMMIT").expect("unlocked");
        lock(running, rows_before);
        interrupted.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let run = run.expect("a run");
    assert_eq!(
        (run.state, run.failures.as_slice()),
        (RunState::Interrupted, &[][..])
    );
    assert!(steps(&run, Step::BusyWait) > 0);
    assert_eq!(rows(), 2 * run.operations as i64);
}
