//! The driver and its child, as two processes. This binary is both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iostep_load::Error;
use iostep_load::script::{Database, Driver, Settings, serve};
use iostep_model::directory::Temporary;
use libtest_mimic::{Arguments, Failed, Trial};

/// What this binary is to be instead of a test runner: `server`, or a `driver` to be killed.
const ROLE: &str = "IOSTEP_LOAD_TEST_ROLE";
const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    match std::env::var(ROLE).as_deref() {
        Ok("server") => {
            serve(std::io::stdin(), std::io::stdout()).expect("the driver speaks properly");
            return ExitCode::SUCCESS;
        }
        Ok("driver") => return drive_until_killed(),
        _ => {}
    }
    let tests = vec![
        Trial::test("transactions_come_one_by_one", one_by_one),
        Trial::test("errors_cross_the_pipe_as_they_are", errors),
        Trial::test("an_interrupt_ends_a_statement_that_never_would", interrupt),
        Trial::test("a_child_that_dies_is_reported", dead_child),
        Trial::test("what_a_killed_driver_made_is_removed", killed_driver),
        Trial::test("even_from_an_endless_statement", killed_in_a_statement),
        Trial::test("what_iostep_did_not_make_is_never_removed", other_directory),
        Trial::test(
            "a_driver_that_ends_in_order_cleans_up_itself",
            ends_in_order,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

fn role(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.env(ROLE, name);
    command
}

fn database(directory: &Path) -> Database {
    Database {
        path: directory.join("app.db"),
        settings: Settings {
            create: true,
            ..Settings::default()
        },
    }
}

fn check(fact: bool, otherwise: &str) -> Result<(), Failed> {
    fact.then_some(()).ok_or_else(|| otherwise.into())
}

fn one_by_one() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let never = AtomicBool::new(false);
    let mut driver = Driver::start(role("server"), &never)?;
    let opened = driver.open(&database(directory.path()))?;
    check(
        opened.pid != std::process::id(),
        "SQLite runs in the driver's process",
    )?;
    let statements =
        driver.load("CREATE TABLE t (v); BEGIN; INSERT INTO t VALUES ('x'); COMMIT")?;
    check(statements == 4, "wrong number of statements")?;
    let first = driver.step()?.ok_or("no first transaction")?;
    let second = driver.step()?.ok_or("no second transaction")?;
    check(driver.step()?.is_none(), "a third transaction")?;
    check(
        second.statements.len() == 3,
        "the second is not BEGIN to COMMIT",
    )?;
    check(first.end_ns <= second.start_ns, "the clock ran backwards")?;
    let closed = driver.close()?;
    check(second.end_ns <= closed.start_ns, "the clock ran backwards")?;
    drop(driver);
    check(
        directory.path().join("app.db").exists(),
        "the database is gone",
    )
}

fn errors() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let never = AtomicBool::new(false);
    let mut driver = Driver::start(role("server"), &never)?;
    let error = driver.load("SELECT 1").expect_err("nothing is open");
    check(
        error.to_string().contains("no database is open"),
        "wrong error",
    )?;
    driver.open(&database(directory.path()))?;
    let error = driver.load(" ; ").expect_err("nothing to run");
    check(matches!(error, Error::Usage { .. }), "not bad usage")?;
    driver.load("SELECT 1; SELECT nothing")?;
    driver.step()?;
    let error = driver.step().expect_err("no such column");
    check(
        matches!(
            error,
            Error::Statement {
                number: 2,
                total: 2,
                ..
            }
        ),
        "wrong error",
    )
}

fn interrupt() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let flag = AtomicBool::new(false);
    let mut driver = Driver::start(role("server"), &flag)?;
    driver.open(&database(directory.path()))?;
    driver.load(ENDLESS)?;
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            flag.store(true, Ordering::Relaxed);
        });
        let outcome = driver.step();
        drop(driver);
        outcome
    });
    check(outcome == Err(Error::Interrupted), "it was not interrupted")
}

fn dead_child() -> Result<(), Failed> {
    let never = AtomicBool::new(false);
    let mut driver = Driver::start(Command::new("false"), &never)?;
    let error = driver.load("SELECT 1").expect_err("nobody is there");
    check(
        error.to_string().contains("exit status: 1"),
        &error.to_string(),
    )
}

/// Says of a directory that it was not made as temporary ones are.
const PRECIOUS: &str = "iostep-precious-";
const ENDLESS_NAME: &str = "iostep-endless-";

/// Opens a disposable database in a directory whose name begins as the second argument says, in the
/// one that the first names; says who serves it and where it is, and waits.
fn drive_until_killed() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let parent = PathBuf::from(arguments.next().expect("a directory"));
    let prefix = arguments.next().expect("a name");
    let never = AtomicBool::new(false);
    let mut driver = Driver::start(role("server"), &never).expect("it starts");
    let temporary = Temporary::new(&parent, &prefix).expect("a directory");
    let directory = match prefix == PRECIOUS {
        true => parent.join(PRECIOUS),
        false => temporary.directory().name().to_owned(),
    };
    fs::create_dir_all(&directory).expect("a directory");
    driver.dispose_of(&directory).expect("it is told");
    let opened = driver.open(&database(&directory)).expect("it opens");
    driver.load("CREATE TABLE t (v)").expect("a statement");
    driver.step().expect("it runs");
    let ready = format!("{}\n{}\n", opened.pid, directory.display());
    fs::write(parent.join("ready"), ready).expect("it can say so");
    if prefix == ENDLESS_NAME {
        driver.load(ENDLESS).expect("a statement");
        driver.step().expect("it never ends");
    }
    std::thread::sleep(PATIENCE);
    ExitCode::FAILURE
}

/// Kills a driver whose disposable directory has a name that begins so, and waits for its server to
/// end; gives the directory back.
fn kill_driver_with(parent: &Path, prefix: &str) -> Result<PathBuf, Failed> {
    let mut driver = role("driver").arg(parent).arg(prefix).spawn()?;
    let ready = || fs::read_to_string(parent.join("ready")).unwrap_or_default();
    wait_until(|| ready().lines().count() == 2 && ready().ends_with('\n'))?;
    let ready = ready();
    let (server, directory) = ready.split_once('\n').expect("two lines");
    let program = PathBuf::from(format!("/proc/{server}/exe"));
    let directory = PathBuf::from(directory.trim_end());
    check(directory.join("app.db").exists(), "there is no database")?;
    driver.kill()?;
    driver.wait()?;
    wait_until(|| fs::read_link(&program).is_err())?;
    Ok(directory)
}

fn killed_driver() -> Result<(), Failed> {
    let parent = tempfile::tempdir()?;
    let directory = kill_driver_with(parent.path(), "iostep-explain-")?;
    check(!directory.exists(), "it is still there")
}

fn killed_in_a_statement() -> Result<(), Failed> {
    let parent = tempfile::tempdir()?;
    let directory = kill_driver_with(parent.path(), ENDLESS_NAME)?;
    check(!directory.exists(), "it is still there")
}

fn other_directory() -> Result<(), Failed> {
    let parent = tempfile::tempdir()?;
    let directory = kill_driver_with(parent.path(), PRECIOUS)?;
    check(directory.join("app.db").exists(), "it is gone")
}

fn ends_in_order() -> Result<(), Failed> {
    let parent = tempfile::tempdir()?;
    let directory = parent.path().join("iostep-explain-1");
    fs::create_dir(&directory)?;
    let never = AtomicBool::new(false);
    let mut driver = Driver::start(role("server"), &never)?;
    driver.dispose_of(&directory)?;
    driver.open(&database(&directory))?;
    driver.settle()?;
    drop(driver);
    check(directory.join("app.db").exists(), "the child removed it")
}

fn wait_until(fact: impl Fn() -> bool) -> Result<(), Failed> {
    let deadline = Instant::now() + PATIENCE;
    while !fact() {
        check(Instant::now() < deadline, "waited in vain")?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
