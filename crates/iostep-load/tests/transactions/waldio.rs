//! The extension waldio below the generator.

use std::process::Command;

use iostep_model::bench::{WaldioLayout, WaldioRun, WaldioSync};

use super::*;

fn waldio_job(directory: &Path) -> SqliteJob {
    SqliteJob {
        journal: Journal::Waldio,
        ..job(directory)
    }
}

/// True if waldio helps there, by its manual.
fn helps(directory: &Path) -> bool {
    const EXT4_XFS_F2FS: [i64; 3] = [0xef53, 0x5846_5342, 0xf2f5_2010];
    let status = rustix::fs::statfs(directory).expect("statfs");
    EXT4_XFS_F2FS.contains(&status.f_type)
}

fn said(run: &Run) -> &WaldioRun {
    run.waldio.as_ref().expect("waldio says what it did")
}

fn counted(run: &Run, name: &str) -> i64 {
    let counters = &said(run).counters;
    let found = counters.iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("{name}: {counters:?}")).1
}

#[test]
fn a_run_tells_the_layout_and_what_was_counted_or_why_the_log_is_stock() {
    let directory = directory();
    let run = run_well(&waldio_job(directory.path()));
    if helps(directory.path()) {
        assert_eq!(said(&run).reasons, [""; 0]);
        assert_eq!(counted(&run, "commits"), 20);
        // The first 12 frames extend the log, which is flushed for each.
        assert!(counted(&run, "durable_writes") >= 8);
        // What waldio writes durably by itself is a sync that was timed.
        assert!(steps(&run, Step::Sync) >= 20);
    } else {
        assert_eq!(said(&run).layouts, ["stock"]);
        assert_eq!(said(&run).reasons.len(), 1);
    }
    assert_eq!(said(&run).sync, "full");
}

#[test]
fn every_option_and_shape_leaves_the_rows_that_were_committed() {
    let shapes: [&dyn Fn(&mut SqliteJob); 9] = [
        &|job| (job.threads, job.shared) = (4, true),
        &|job| (job.threads, job.databases, job.tables) = (2, 2, 2),
        &|job| job.waldio.sync = Some(WaldioSync::Normal),
        &|job| job.waldio.sync = Some(WaldioSync::Persistent),
        &|job| {
            (job.waldio.sync, job.threads) = (Some(WaldioSync::Group), 2);
            (job.waldio.group_frames, job.waldio.group_ms) = (Some(7), Some(3));
        },
        &|job| job.waldio.layout = Some(WaldioLayout::T),
        &|job| job.waldio.padding_bytes = Some(8192),
        &|job| (job.waldio.layout, job.page_bytes) = (Some(WaldioLayout::P), Some(1024)),
        &|job| {
            job.waldio.layout = Some(WaldioLayout::W);
            job.waldio.prealloc_bytes = Some(0);
            job.checkpoint = CheckpointPolicy::Transactions(3);
        },
    ];
    for shape in shapes {
        let directory = directory();
        let mut job = waldio_job(directory.path());
        shape(&mut job);
        let run = run_well(&job);
        let wanted = job.waldio.layout.map(WaldioLayout::name);
        if let Some(wanted) = wanted.filter(|_| helps(directory.path())) {
            assert_eq!(said(&run).layouts, [wanted]);
        }
        let sync = job.waldio.sync.unwrap_or(WaldioSync::Full);
        assert_eq!(said(&run).sync, sync.name());
        let writers = if job.shared { job.threads } else { 1 };
        assert_eq!(rows(&job, 0, 0, 0), 20 * i64::from(writers));
    }
}

#[test]
fn a_steady_log_does_not_grow() {
    for journal in [Journal::Wal, Journal::Waldio] {
        let lengths = [WalFile::Fresh, WalFile::Steady].map(|wal_file| {
            let directory = directory();
            let job = SqliteJob {
                journal,
                wal_file,
                transactions: 300,
                checkpoint: CheckpointPolicy::Pages(100),
                ..job(directory.path())
            };
            let log = format!("{}-wal", path(&job, 0, 0).display());
            // The ramp's end is the first thing that an observer hears after the warm-up.
            let mut watch = Lengths {
                log: log.into(),
                before: None,
                after: 0,
            };
            let mut bench = open(&job).expect("open");
            let run = bench.run(&mut watch).expect("a run");
            assert_eq!(run.verification.map(|found| found.wrong), Some(0));
            (watch.before.expect("it was watched"), watch.after)
        });
        let [(fresh, grown), (steady, same)] = lengths;
        assert!(fresh < grown, "{journal}: {lengths:?}");
        assert_eq!(steady, same, "{journal}");
    }
}

/// How long the log is when an observer is asked for the device's counters: before the threads
/// begin, and when they have ended.
struct Lengths {
    log: PathBuf,
    before: Option<u64>,
    after: u64,
}

impl Observer for Lengths {
    fn device(&mut self) -> Option<Counters> {
        self.after = std::fs::metadata(&self.log).expect("the log").len();
        self.before.get_or_insert(self.after);
        None
    }

    fn progress(&mut self, _: Progress) {}
}

/// Builds waldio.so, as its users do.
fn extension() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../waldio");
    let mut make = Command::new("make");
    make.arg("--no-print-directory").arg("-C").arg(&source);
    let output = make.output().expect("make is installed (scripts/setup)");
    assert!(output.status.success(), "{output:?}");
    source.join("waldio.so")
}

/// A process has waldio over one SQLite only, and the other tests have it over the one inside.
#[test]
#[ignore = "runs in a process of its own, started by the test below"]
fn job_of_another_library() {
    let directory = directory();
    let mut job = waldio_job(directory.path());
    job.library = Some(super::other_library::system_library());
    job.waldio.library = Some("/nonexistent/waldio.so".into());
    let error = refusal(&job).to_string();
    assert!(
        error.contains("cannot load waldio: /nonexistent/waldio.so"),
        "{error}"
    );
    job.waldio.library = Some(extension());
    let run = run_well(&job);
    assert_eq!(said(&run).reasons.is_empty(), helps(directory.path()));
    let inside = waldio_job(directory.path());
    let error = refusal(&inside).to_string();
    assert!(error.contains("another SQLite library"), "{error}");
}

#[test]
fn another_library_loads_the_extension() {
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again.args(["--exact", "--ignored", "waldio::job_of_another_library"]);
    let output = again.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("1 passed"), "{text}");
}
