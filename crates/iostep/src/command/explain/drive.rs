//! Runs a script under each journal mode, with a milestone before and after every transaction.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use iostep_analyze::explain::{Asked, Edge, Experiment, NotRun, Run, Step, Subject};
use iostep_load::script::{
    Database, Driver, Opened, Outcome, Settings, Transaction, copy, exchanged, held_path, own_mode,
};
use iostep_model::directory::{Directory, Temporary, give_to_caller};
use iostep_model::durability::Durability;
use iostep_model::event::Marker;
use iostep_model::pragma::{Journal, Synchronous};
use iostep_model::printable::name_text;

use crate::terminal::say;

/// Of directories with copies.
pub const PREFIX: &str = ".iostep-explain-";

/// What to run.
#[derive(Debug)]
pub struct Plan {
    /// The database, as an absolute path.
    pub database: PathBuf,
    /// The SQL.
    pub script: String,
    /// Journal modes to run it under; empty for the database's own.
    pub modes: Vec<Journal>,
    /// Synchronous setting; `None` for SQLite's own.
    pub synchronous: Option<Synchronous>,
    /// Commit one transaction without changes first, so that no mode pays for its first file.
    pub warm_up: bool,
    /// Read every page that a transaction needs from the device.
    pub cold_cache: bool,
    /// How long to wait for somebody else's lock on the database.
    pub timeout: Duration,
    /// What to work on.
    pub on: On,
    /// Directories and mount points that are to go even if iostep is killed.
    pub disposable: Vec<PathBuf>,
}

/// What a script works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Copies that are removed afterwards.
    Copy,
    /// Copies that stay.
    KeptCopy,
    /// The database itself.
    Original,
}

/// A plan with the state that every run starts from.
#[derive(Debug)]
pub struct Prepared<'a> {
    plan: &'a Plan,
    driver: Driver<'a>,
    interrupted: &'a AtomicBool,
    original: Original,
    start: Option<Copy>,
    own_mode: Journal,
}

impl<'a> Prepared<'a> {
    /// Looks at the database, starts the process that runs SQL, and sets a copy aside.
    ///
    /// Errors: what [`own_mode`], [`Driver`] and [`copy`] return.
    pub fn new(plan: &'a Plan, interrupted: &'a AtomicBool) -> anyhow::Result<Prepared<'a>> {
        let original = Original::hold(&plan.database)?;
        let own_mode =
            own_mode(&original.database).map_err(|error| original.named(error.into()))?;
        let mut driver = Driver::start(child_command()?, interrupted)?;
        for directory in &plan.disposable {
            driver.dispose_of(directory)?;
        }
        let start = match plan.on {
            On::Original => None,
            On::Copy | On::KeptCopy => {
                let mut start = Copy::beside(&original)?;
                driver.dispose_of(start.directory.directory().name())?;
                let filled = start.fill(&original.database, plan.timeout, interrupted);
                filled.map_err(|error| original.named(error))?;
                if own_mode == Journal::Waldio {
                    let plain = make_plain(&mut driver, &start.database);
                    plain.map_err(|error| start.named(error))?;
                }
                Some(start)
            }
        };
        Ok(Prepared {
            plan,
            driver,
            interrupted,
            original,
            start,
            own_mode,
        })
    }

    /// Adds a directory that is to go even if iostep is killed.
    ///
    /// Errors: those of [`Driver`].
    pub fn dispose_of(&mut self, directory: &Path) -> anyhow::Result<()> {
        Ok(self.driver.dispose_of(directory)?)
    }

    /// Runs the script under each mode. `mark` sets a milestone in the recording.
    ///
    /// Errors: those of [`Driver`], of `mark`, and of making copies.
    pub fn run(
        &mut self,
        mut mark: impl FnMut(Marker) -> anyhow::Result<()>,
    ) -> anyhow::Result<Experiment> {
        let modes: Vec<_> = match self.plan.modes.as_slice() {
            [] => vec![None],
            modes => modes.iter().copied().map(Some).collect(),
        };
        let mut sql_tgid = 0;
        let mut runs = Vec::new();
        let mut not_run = Vec::new();
        let is_alone = modes.len() == 1;
        for mode in modes {
            match (self.run_mode(mode, &mut mark), mode) {
                (Ok((opened, run)), _) => {
                    sql_tgid = opened.pid;
                    runs.push(run);
                }
                (Err(error), Some(mode)) if !is_alone => not_run.push(NotRun {
                    mode: mode.name().into(),
                    reason: unsupported(error).map_err(|error| self.on_what(error))?,
                }),
                (Err(error), _) => return Err(self.on_what(error)),
            }
        }
        let name = self.plan.database.file_name().unwrap_or_default();
        Ok(Experiment {
            database: name_text(name.as_bytes()),
            sql_tgid,
            own_mode: self.own_mode.name().into(),
            cold_cache: self.plan.cold_cache,
            runs,
            not_run,
        })
    }

    /// Says that what a failed script has changed is not the user's own database.
    fn on_what(&self, error: anyhow::Error) -> anyhow::Error {
        let failed = error.downcast_ref::<iostep_load::Error>();
        match failed {
            Some(iostep_load::Error::Statement { .. }) if self.plan.on != On::Original => {
                error.context(format!("on a copy of {}", self.plan.database.display()))
            }
            _ => error,
        }
    }

    /// A copy of the start to work on; `None` in place.
    fn work(&mut self) -> anyhow::Result<Option<Copy>> {
        let Some(start) = &self.start else {
            return Ok(None);
        };
        let mut work = Copy::beside(&self.original)?;
        if self.plan.on == On::Copy {
            self.driver.dispose_of(work.directory.directory().name())?;
        }
        let filled = work.fill(&start.database, self.plan.timeout, self.interrupted);
        filled.map_err(|error| start.named(error))?;
        Ok(Some(work))
    }

    fn run_mode(
        &mut self,
        mode: Option<Journal>,
        mark: &mut dyn FnMut(Marker) -> anyhow::Result<()>,
    ) -> anyhow::Result<(Opened, Run)> {
        let Some(work) = self.work()? else {
            let path = self.original.database.clone();
            let ran = self.run_on(&path, mode, mark);
            return ran.map_err(|error| self.original.named(error));
        };
        let (opened, run) = self
            .run_on(&work.database, mode, mark)
            .map_err(|error| work.named(error))?;
        if self.plan.on == On::KeptCopy {
            let kept = work.keep(&self.original.database)?;
            say!("{}: {}", opened.journal.name(), kept.display());
        }
        Ok((opened, run))
    }

    fn run_on(
        &mut self,
        path: &Path,
        mode: Option<Journal>,
        mark: &mut dyn FnMut(Marker) -> anyhow::Result<()>,
    ) -> anyhow::Result<(Opened, Run)> {
        let database = self.database(path, mode);
        let driver = &mut self.driver;
        let opened = driver.open(&database)?;
        if self.plan.on == On::Original {
            self.original.check()?;
        }
        if self.plan.warm_up {
            driver.warm_up()?;
        }
        let mut steps = Steps {
            mode: opened.journal.name().into(),
            cool: self.plan.cold_cache.then_some(path),
            mark,
        };
        let transactions = steps.run_script(driver, &self.plan.script)?;
        steps.step(driver, Subject::Close, |driver| Ok(driver.close()?))?;
        let run = Run {
            mode: opened.journal.name().into(),
            synchronous: opened.synchronous.name().into(),
            durability: Durability::of(opened.journal, opened.synchronous, None),
            transactions,
        };
        Ok((opened, run))
    }

    fn database(&self, path: &Path, mode: Option<Journal>) -> Database {
        Database {
            path: path.to_owned(),
            settings: Settings {
                journal: mode,
                synchronous: self.plan.synchronous,
                busy_timeout_ms: milliseconds(self.plan.timeout),
                ..Settings::default()
            },
        }
    }
}

/// As SQLite takes it.
fn milliseconds(timeout: Duration) -> u32 {
    timeout.as_millis().min(i32::MAX as u128) as u32
}

/// Why a mode cannot be used here, if that is what went wrong.
fn unsupported(error: anyhow::Error) -> anyhow::Result<String> {
    match error.downcast_ref::<iostep_load::Error>() {
        Some(iostep_load::Error::Unsupported { what, .. }) => Ok(what.clone()),
        _ => Err(error),
    }
}

/// The milestones of a run under one mode.
struct Steps<'a> {
    mode: String,
    /// The database, if no page of it is to be in memory before a transaction.
    cool: Option<&'a Path>,
    mark: &'a mut dyn FnMut(Marker) -> anyhow::Result<()>,
}

impl Steps<'_> {
    fn run_script(&mut self, driver: &mut Driver<'_>, script: &str) -> anyhow::Result<Vec<Asked>> {
        let mut left = driver.load(script)?;
        let mut transactions = Vec::new();
        while left > 0 {
            let subject = Subject::Transaction(transactions.len() + 1);
            let done = self.step(driver, subject, |driver| Ok(driver.step()?))?;
            let done = done.context("the SQL process ended its script early")?;
            left = left.saturating_sub(done.statements.len());
            transactions.push(asked(&done));
        }
        Ok(transactions)
    }

    /// Does something on a settled filesystem, and settles it again.
    fn step<T>(
        &mut self,
        driver: &mut Driver<'_>,
        subject: Subject,
        action: impl FnOnce(&mut Driver<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let step = Step {
            mode: self.mode.clone(),
            subject,
        };
        driver.settle()?;
        if let (Some(database), Subject::Transaction(_)) = (self.cool, step.subject) {
            driver.cool(database)?;
        }
        (self.mark)(step.marker(Edge::Start))?;
        let done = action(driver)?;
        (self.mark)(step.marker(Edge::End))?;
        driver.settle()?;
        (self.mark)(step.marker(Edge::Settled))?;
        Ok(done)
    }
}

/// The database in its directory, which is held: neither another directory at its name nor a symbolic
/// link in it leads anywhere else.
#[derive(Debug)]
struct Original {
    directory: Directory,
    /// Wherever somebody moves the directory.
    database: PathBuf,
    /// The path that people know.
    name: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl Original {
    fn hold(name: &Path) -> anyhow::Result<Original> {
        let parent = name.parent().unwrap_or(Path::new("/"));
        let directory = Directory::open(parent)?;
        let database = held_path(&directory, Path::new(name.file_name().unwrap_or_default()));
        let identity =
            identity(&database).with_context(|| format!("{}: cannot open", name.display()))?;
        Ok(Original {
            directory,
            database,
            name: name.to_owned(),
            identity,
        })
    }

    /// Errors: another file has come to its name.
    fn check(&self) -> anyhow::Result<()> {
        match identity(&self.database).ok() == Some(self.identity) {
            true => Ok(()),
            false => Err(exchanged(&self.name).into()),
        }
    }

    /// An error about the database, told with the path that people know.
    fn named(&self, error: anyhow::Error) -> anyhow::Error {
        named(error, &self.database, &self.name)
    }
}

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn named(error: anyhow::Error, path: &Path, name: &Path) -> anyhow::Error {
    match error.downcast::<iostep_load::Error>() {
        Ok(failed) => failed.named(path, name).into(),
        Err(other) => other,
    }
}

/// A copy of a database in a directory of its own. The drop removes both.
#[derive(Debug)]
struct Copy {
    directory: Temporary,
    /// Wherever somebody moves the directory.
    database: PathBuf,
}

impl Copy {
    /// An empty place in the directory, so on the filesystem, of `original`.
    fn beside(original: &Original) -> anyhow::Result<Copy> {
        let parent = &original.directory;
        let directory = Temporary::within(parent, PREFIX)
            .with_context(|| format!("{}: cannot put a copy here", parent.name().display()))?;
        Ok(Copy {
            directory,
            database: PathBuf::new(),
        })
    }

    fn fill(
        &mut self,
        source: &Path,
        timeout: Duration,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<()> {
        let made = copy(source, &self.directory.path(), timeout, interrupted)?;
        let name = made.file_name().unwrap_or_default();
        self.database = held_path(self.directory.directory(), Path::new(name));
        Ok(())
    }

    /// An error about the copy, told with the name that it had.
    fn named(&self, error: anyhow::Error) -> anyhow::Error {
        let name = self.database.file_name().unwrap_or_default();
        let name = self.directory.directory().name().join(name);
        named(error, &self.database, &name)
    }

    /// Leaves the files to whoever called sudo, with no right that the original's owner lacks.
    fn keep(self, original: &Path) -> anyhow::Result<PathBuf> {
        let cannot = || format!("{}: cannot keep it", self.database.display());
        let mode = fs::symlink_metadata(original).with_context(cannot)?.mode();
        for entry in fs::read_dir(self.directory.path()).with_context(cannot)? {
            let path = entry.with_context(cannot)?.path();
            let file = File::open(&path).with_context(cannot)?;
            give_to_caller(&file).with_context(cannot)?;
            let allowed = fs::Permissions::from_mode(mode & 0o600);
            file.set_permissions(allowed).with_context(cannot)?;
        }
        let name = self.database.file_name().unwrap_or_default();
        Ok(self.directory.keep()?.join(name))
    }
}

/// Ends the use of waldio's log in a copy: until then no other mode can be set.
fn make_plain(driver: &mut Driver<'_>, database: &Path) -> anyhow::Result<()> {
    driver.open(&Database {
        path: database.to_owned(),
        settings: Settings::default(),
    })?;
    driver.close()?;
    Ok(())
}

/// The process that runs SQL: this program in another role.
pub fn child_command() -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("cannot find iostep's own program")?;
    let mut command = Command::new(program);
    command.arg("__sql-child");
    Ok(command)
}

fn asked(transaction: &Transaction) -> Asked {
    let statements = &transaction.statements;
    Asked {
        statements: statements.iter().map(|s| s.text.clone()).collect(),
        outcome: match transaction.outcome {
            Outcome::Committed => "committed",
            Outcome::RolledBack => "rolled back",
            Outcome::Open => "left open",
        }
        .into(),
        rows: statements.iter().map(|s| s.rows_changed).sum(),
        user_bytes: statements.iter().map(|s| s.user_bytes).sum(),
        elapsed_ns: transaction.end_ns - transaction.start_ns,
    }
}
