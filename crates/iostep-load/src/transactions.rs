//! Transactions of SQLite.
//!
//! ```text
//! check        what is refused beforehand; space: how much room is needed
//! vfs          over the library's VFS: times syncs, makes them fsync(2)
//! waldio       the extension, over such a VFS, and what it counts
//! connection   the only caller of SQLite, safe for everybody else
//! wait         what SQLite calls back: busy handler, checkpoints
//! settings     pragmas, set and read back for every database
//! databases    the files: made, reused, removed
//! plan, row    which keys and values come next, from the seed alone
//! worker       one thread's transactions and their steps
//! verify       the databases against the plan
//! facts        what a database of the user's is like
//! ```
//!
//! A transaction of one statement runs without BEGIN and COMMIT. Others begin with BEGIN, or with
//! BEGIN IMMEDIATE if threads share databases and the transaction writes: then nobody finds in the
//! middle of a transaction that another was faster. Before the measured part each connection
//! commits once without touching a row, so that making a journal or WAL for the first time is not
//! measured. With a time limit a run of deletes is over when no rows are left.

mod check;
mod connection;
mod databases;
pub mod facts;
mod plan;
mod row;
mod settings;
mod space;
mod verify;
mod vfs;
mod wait;
mod waldio;
mod worker;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use iostep_model::bench::{
    CheckpointPolicy, Failure, Latency, LatencyRecorder, Run, RunState, SqliteJob, SqliteLibrary,
    SqliteOperation, Step, Verification, WalFile,
};
use iostep_model::pragma::{Journal, Synchronous};

use self::connection::Connection;
use self::databases::{Databases, Making};
use self::vfs::Vfs;
use self::wait::Hooks;
use self::worker::Writer;
use crate::batch_atomic;
use crate::engine::{Observer, Pool};
use crate::error::{Error, Result};
use crate::library::Library;

/// What the databases hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// The rows that were made for this job.
    Pristine,
    /// As many rows, but some of their values are an earlier run's.
    Reused,
    /// What a run left.
    Spent,
}

/// A job that is ready to run: its databases are there.
#[derive(Debug)]
pub struct Bench<'a> {
    job: SqliteJob,
    interrupted: &'a AtomicBool,
    library: Library,
    vfs: Vfs,
    description: SqliteLibrary,
    databases: Databases,
    content: Content,
}

impl<'a> Bench<'a> {
    /// Checks everything, and makes the databases in `iostep-bench` below the job's directory.
    ///
    /// Errors: `Usage` for a job that makes no sense; `Unsupported` for what the library or the
    /// VFS cannot do; `Refused` without room; `Database` and `Io` while databases are made, also
    /// if SQLite keeps another setting than the one asked for; `Interrupted`.
    pub fn open(
        job: &SqliteJob,
        interrupted: &'a AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Bench<'a>> {
        check::job(job)?;
        let library = Library::load(job.library.as_deref())?;
        let mut probe = Connection::open(library, Path::new(":memory:"), None, true)?;
        check::library(job, library, &probe)?;
        let options = settings::compile_options(&mut probe)?;
        drop(probe);
        batch_atomic::check_place(job, &options)?;
        batch_atomic::allow(library, job.batch_atomic);
        let syncs_directories = !options.iter().any(|option| option == "DISABLE_DIRSYNC");
        let vfs = Vfs::register(library, job.fsync, syncs_directories)?;
        check::descriptors(job)?;
        let is_waldio = job.journal == Journal::Waldio;
        if is_waldio {
            waldio::register(library, job)?;
        }
        let databases = Databases::open(job)?;
        let mut bench = Bench {
            description: SqliteLibrary {
                path: job.library.as_ref().map(|path| path.display().to_string()),
                version: library.version(),
                source_id: library.source_id(),
                vfs: match is_waldio {
                    true => format!("waldio over {}", vfs.below()),
                    false => vfs.below(),
                },
                ..SqliteLibrary::default()
            },
            job: job.clone(),
            interrupted,
            library,
            vfs,
            databases,
            content: Content::Spent,
        };
        bench.prepare(observer)?;
        let mut first = bench.connect(0)?;
        settings::describe(&mut first, &mut bench.description)?;
        if job.batch_atomic && !bench.vfs.has_batch_atomic() {
            return Err(batch_atomic::unsupported(&job.directory));
        }
        Ok(bench)
    }

    /// The library and the settings as they really are.
    pub fn library(&self) -> &SqliteLibrary {
        &self.description
    }

    /// One repetition: the databases are made anew if an earlier one changed them, written back,
    /// and warmed up; then all threads begin at once. WALs are checkpointed once more after the
    /// end, as a [`Step::Checkpoint`] outside of every transaction, unless the policy is `never`.
    ///
    /// Errors: from before the measured part, as those of [`Bench::open`]. What fails later is in
    /// the run; databases that cannot be read for the verification count as one wrong row.
    pub fn run(&mut self, observer: &mut dyn Observer) -> Result<Run> {
        self.prepare(observer)?;
        let pristine = self.content == Content::Pristine;
        self.databases.sync()?;
        let mut writers = self.writers()?;
        if self.job.operation != SqliteOperation::Read {
            self.content = Content::Spent;
            for writer in &mut writers {
                let warmed = writer.warm_up();
                warmed.map_err(|error| error.at(writer.path()))?;
            }
            self.lengthen_wals(&mut writers)?;
        }
        let counted = self.count_waldio(&mut writers)?;
        let atomic_before = self.vfs.atomic_commits();
        let pool = Pool {
            measurement: &self.job.measurement,
            interrupted: self.interrupted,
        };
        let result = pool.run(&mut writers, observer);
        writers.iter().for_each(Writer::leave);
        let mut run = result?;
        let atomic_commits = self.vfs.atomic_commits() - atomic_before;
        run.atomic_commits = self.job.batch_atomic.then_some(atomic_commits);
        if let (Some(start), [first, ..]) = (counted, &mut writers[..]) {
            let said = start.run(first.connection());
            run.waldio = Some(said.map_err(|error| error.at(first.path()))?);
        }
        let before = observer.device();
        if self.checkpoint_rest(&mut writers, &mut run) {
            let after = observer.device();
            run.last_checkpoint = after.zip(before).map(|(after, before)| after.since(before));
        }
        let committed: Vec<u64> = writers.iter().map(|writer| writer.committed).collect();
        drop(writers);
        run.verification = self.verify(&run, &committed, pristine);
        Ok(run)
    }

    /// Brings the databases into the state from which a run starts.
    fn prepare(&mut self, observer: &mut dyn Observer) -> Result<()> {
        if self.content != Content::Spent {
            return Ok(());
        }
        if self.job.reuse && self.databases.are_right(self.library, &self.job) {
            self.content = Content::Reused;
        } else {
            // Half-made ones are of no use to anybody.
            self.databases.remove = true;
            self.databases.clear();
            let path = &self.job.directory;
            space::check(&self.job, self.databases.directory(), path)?;
            self.databases.make(&mut Making {
                library: self.library,
                vfs: waldio::maker_for(&self.job),
                job: &self.job,
                interrupted: self.interrupted,
                observer,
            })?;
            self.content = Content::Pristine;
        }
        self.databases.remove = !self.job.keep;
        Ok(())
    }

    /// A connection to a set, with its hooks.
    fn connect(&self, set: usize) -> Result<Connection> {
        // Where nothing is synced there is nothing to time: SQLite then runs as it is.
        let syncs = self.job.synchronous != Synchronous::Off;
        let extension = waldio::name_for(&self.job);
        let vfs = extension.or_else(|| syncs.then(|| self.vfs.name()));
        let library = (self.library, vfs);
        let mut db = self.databases.connect(&self.job, library, set)?;
        let pages = match (self.job.journal.is_log(), self.job.checkpoint) {
            (true, CheckpointPolicy::Pages(pages)) => Some(pages),
            _ => None,
        };
        let mut hooks = Hooks::new(
            self.library,
            self.job.busy_timeout_ns,
            pages,
            self.job.checkpoint_mode,
        );
        if let Some(vfs) = extension.and_then(|_| waldio::find(self.library)) {
            // SAFETY: waldio stays registered for good.
            hooks = unsafe { hooks.sleep_in(vfs) };
        }
        db.install(hooks);
        Ok(db)
    }

    fn writers(&self) -> Result<Vec<Writer>> {
        (0..self.job.threads)
            .map(|thread| {
                let set = if self.job.shared { 0 } else { thread as usize };
                let number = self.databases.number(set, 0);
                Writer::new(&self.job, self.connect(set)?, thread, number)
                    .map_err(|error| error.at(self.databases.set(set)[0]))
            })
            .collect()
    }

    /// Makes the files of WALs as long as they get, if that is asked for, and starts them over.
    fn lengthen_wals(&self, writers: &mut [Writer]) -> Result<()> {
        const COMMITS: u64 = 1000;
        if self.job.wal_file == WalFile::Fresh {
            return Ok(());
        }
        for writer in writers.iter_mut().take(self.databases.sets()) {
            let mut left = check::wal_frames(&self.job);
            while left > 0 {
                if self.interrupted.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                let now = left.min(COMMITS);
                let filled = writer.fill_wal(now, self.job.synchronous);
                filled.map_err(|error| error.at(writer.path()))?;
                left -= now;
            }
            // The commit after a checkpoint is the first of the log again.
            let restarted = writer.checkpoint(|_| ()).and_then(|()| writer.warm_up());
            restarted.map_err(|error| error.at(writer.path()))?;
        }
        Ok(())
    }

    fn count_waldio(&self, writers: &mut [Writer]) -> Result<Option<waldio::Start>> {
        let [first, ..] = writers else {
            return Ok(None);
        };
        if self.job.journal != Journal::Waldio {
            return Ok(None);
        }
        let directory = self.databases.path();
        waldio::Start::take(&self.job, directory, first.connection()).map(Some)
    }

    /// Checkpoints what the run left in the WALs. The answer is false if nothing is to be.
    fn checkpoint_rest(&self, writers: &mut [Writer], run: &mut Run) -> bool {
        let wanted = self.job.journal.is_log()
            && self.job.checkpoint != CheckpointPolicy::Never
            && self.job.operation != SqliteOperation::Read
            && run.state != RunState::Failed;
        if !wanted {
            return false;
        }
        let mut rest = LatencyRecorder::new();
        for (thread, writer) in (0..).zip(writers).take(self.databases.sets()) {
            if let Err(error) = writer.checkpoint(|checkpoint_ns| rest.record(checkpoint_ns)) {
                run.state = RunState::Failed;
                run.failures.push(Failure {
                    thread,
                    operation: writer.committed,
                    attempt: format!("{} in {}", error.sql, writer.path().display()),
                    reason: format!("{} (code {})", error.message, error.code),
                });
            }
        }
        let rest = rest.into();
        let checkpoints = run.latencies.iter_mut();
        match checkpoints.into_iter().find(|l| l.step == Step::Checkpoint) {
            Some(latency) => latency.histogram.merge(&rest),
            None => run.latencies.push(Latency {
                step: Step::Checkpoint,
                histogram: rest,
            }),
        }
        run.latencies.sort_by_key(|latency| latency.step);
        true
    }

    fn verify(&self, run: &Run, committed: &[u64], pristine: bool) -> Option<Verification> {
        // What fails without a journal cannot be rolled back: anything may be there.
        let broken = run.state == RunState::Failed && self.job.journal == Journal::Off;
        if !self.job.measurement.verify || broken {
            return None;
        }
        let (job, databases) = (&self.job, &self.databases);
        let verification = verify::verify(job, self.library, databases, committed, pristine);
        // What was measured is not lost with a database that cannot be read.
        Some(verification.unwrap_or_else(|error| Verification {
            compared: 0,
            wrong: 1,
            examples: vec![error.to_string()],
        }))
    }
}
