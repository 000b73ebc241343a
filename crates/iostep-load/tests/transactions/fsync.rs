//! Which sync calls reach the kernel, as strace sees them.

use std::process::Command;

use super::*;

const JOURNAL: &str = "IOSTEP_TEST_JOURNAL";
const FSYNC: &str = "IOSTEP_TEST_FSYNC";

#[test]
#[ignore = "runs under strace, started by the test below"]
fn traced_job() {
    let directory = directory();
    let journal = std::env::var(JOURNAL).expect("set by the test below");
    let journal: Journal = journal.parse().expect("a journal mode");
    let run = run_well(&SqliteJob {
        journal,
        synchronous: Synchronous::Extra,
        fsync: std::env::var_os(FSYNC).is_some(),
        databases: 2,
        threads: 2,
        // Whether a checkpoint can restart a shared WAL depends on the other thread.
        shared: journal != Journal::Wal,
        checkpoint: CheckpointPolicy::Transactions(7),
        ..job(directory.path())
    });
    assert!(steps(&run, Step::Sync) > 0);
}

/// Calls of fsync and of fdatasync by a job.
fn calls(journal: Journal, fsync: bool) -> [usize; 2] {
    let log = tempfile::NamedTempFile::new().expect("a log");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"]);
    strace.arg(log.path());
    strace.arg(std::env::current_exe().expect("this program"));
    strace.args(["--exact", "--ignored", "fsync::traced_job"]);
    strace.env(JOURNAL, journal.name());
    if fsync {
        strace.env(FSYNC, "1");
    }
    let output = strace.output().expect("strace is installed");
    assert!(output.status.success(), "{output:?}");
    let log = std::fs::read_to_string(log.path()).expect("a log");
    // A call that another thread interrupts in the log has a second line without a parenthesis.
    ["fsync(", "fdatasync("].map(|call| log.lines().filter(|line| line.contains(call)).count())
}

#[test]
fn with_fsync_every_sync_call_is_an_fsync_and_there_are_as_many() {
    // Waldio flushes by itself, and refuses.
    for &journal in Journal::ALL.iter().filter(|j| **j != Journal::Waldio) {
        let [plain_fsync, plain_fdatasync] = calls(journal, false);
        let [fsync, fdatasync] = calls(journal, true);
        assert_eq!(fdatasync, 0, "{journal}");
        assert_eq!(fsync, plain_fsync + plain_fdatasync, "{journal}");
        assert!(plain_fdatasync > 0, "{journal}");
    }
}
