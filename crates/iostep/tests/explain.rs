//! `iostep explain` and `iostep demo` on real filesystems. Needs root and BTF; without them every
//! test is reported as ignored, with the reason, or fails if `IOSTEP_REQUIRE` names what is
//! missing.
//!
//! Ground truth: `/sys/block/loopN/stat`, and the files themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use iostep_lab::image::Options;
use iostep_lab::{Kind, LoopImage, Mount, mkfs};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(120);
const INSERT: &str = "INSERT INTO t VALUES (printf('%.100c', 'x'))";
const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
/// A page and at most a sector of padding.
const WALDIO_COMMIT_BYTES: u64 = 4096 + 512;
const MODES: [&str; 7] = [
    "delete", "truncate", "persist", "wal", "waldio", "memory", "off",
];

fn main() -> ExitCode {
    let tests = vec![
        trial("each_mode_costs_what_the_kernel_counted_on_ext4", ext4),
        trial("each_mode_costs_what_the_kernel_counted_on_xfs", xfs),
        trial(
            "the_demo_shows_the_shape_of_the_papers_table_and_cleans_up",
            demo,
        ),
        trial("reads_are_a_statements_cost_with_a_cold_cache", reads),
        trial("a_mode_that_cannot_be_used_is_a_marked_row", not_here),
        trial(
            "the_original_stays_as_it_is_and_in_place_changes_it",
            original,
        ),
        trial(
            "every_bad_input_has_its_error_and_leaves_nothing",
            bad_input,
        ),
        trial(
            "a_database_that_waldio_has_in_use_or_left_in_a_crash_is_explained",
            in_use_by_waldio,
        ),
        trial(
            "hostile_sql_and_names_steer_no_terminal_and_forge_no_line",
            hostile,
        ),
        trial("a_full_disk_is_an_error_and_leaves_nothing", full_disk),
        trial("a_signal_ends_it_and_leaves_nothing", signals),
    ];
    let mut arguments = Arguments::from_args();
    // They count what a device does, and the machine has few of everything.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, tests).exit_code()
}

fn trial(name: &str, test: fn() -> Result<(), Failed>) -> Trial {
    Trial::ignorable_test(name, move || {
        let missing = missing();
        let required = std::env::var("IOSTEP_REQUIRE").unwrap_or_default();
        if missing.is_empty() {
            return test().map(|()| Completion::Completed);
        }
        if required.split(',').any(|what| missing.contains(&what)) {
            return Err(format!("needs {}", missing.join(", ")).into());
        }
        Ok(Completion::ignored_with(format!(
            "needs {}",
            missing.join(", ")
        )))
    })
}

fn missing() -> Vec<&'static str> {
    let mut missing = Vec::new();
    if !rustix::process::geteuid().is_root() {
        missing.push("root");
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        missing.push("btf");
    }
    missing
}

/// A filesystem of its own with a database on it.
struct Lab {
    mount: Mount,
    image: LoopImage,
    /// Where explain keeps its recording.
    temporary: TempDir,
}

impl Lab {
    /// On one block group: with several, ext4 spreads directories over them by their names, and
    /// then two runs need not touch as many bitmaps.
    fn new(kind: Kind, megabytes: u64) -> Result<Lab, Failed> {
        let image = LoopImage::create(&Options {
            bytes: megabytes << 20,
            ..Options::default()
        })?;
        let options: &[&str] = match kind {
            Kind::Ext4 => &["-b", "4096"],
            _ => &[],
        };
        mkfs(kind, &image, options)?;
        let mount = Mount::new(kind, &image, "")?;
        let lab = Lab {
            mount,
            image,
            temporary: TempDir::new_in("/dev/shm")?,
        };
        lab.connect()?.execute_batch("CREATE TABLE t (v)")?;
        Ok(lab)
    }

    fn database(&self) -> PathBuf {
        self.mount.path().join("app.db")
    }

    fn connect(&self) -> Result<Connection, Failed> {
        Ok(Connection::open(self.database())?)
    }

    fn rows(&self) -> Result<i64, Failed> {
        Ok(self
            .connect()?
            .query_row("SELECT count(*) FROM t", [], |row| row.get(0))?)
    }

    fn names(&self) -> Result<Vec<String>, Failed> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.mount.path())? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn explain(&self, arguments: &[&str]) -> Result<Output, Failed> {
        run(self.command(arguments))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = iostep();
        command.arg("explain").arg(self.database()).args(arguments);
        command.env("TMPDIR", self.temporary.path());
        command
    }

    /// True if there is nothing but these beside the database, and no recording.
    fn has_only(&self, names: &[String]) -> Result<bool, Failed> {
        Ok(self.names()? == names && is_empty(self.temporary.path())?)
    }

    fn is_recording(&self) -> Result<bool, Failed> {
        let mut entries = fs::read_dir(self.temporary.path())?.flatten();
        Ok(entries.any(|entry| entry.path().join("trace/events.log").exists()))
    }

    fn settle(&self) -> Result<(), Failed> {
        rustix::fs::syncfs(fs::File::open(self.mount.path())?)?;
        Ok(())
    }

    /// Bytes written and flushes so far, by the kernel's count.
    fn counted(&self) -> Result<[u64; 2], Failed> {
        let device = self.image.device().file_name().unwrap_or_default();
        let stat = fs::read_to_string(Path::new("/sys/block").join(device).join("stat"))?;
        let fields: Vec<u64> = stat.split_whitespace().flat_map(str::parse).collect();
        Ok([fields[6] * 512, fields[15]])
    }

    /// What one insert costs in a mode by the kernel's count, done as explain does it: a copy to
    /// start from, and a copy of that to work on.
    fn count_insert(&self, mode: &str) -> Result<[u64; 2], Failed> {
        let (_start, start) = self.copy_of(&self.database())?;
        let (_work, work) = self.copy_of(&start)?;
        let connection = match mode {
            "waldio" => waldio::open(&work)?,
            _ => Connection::open(&work)?,
        };
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = {mode}; PRAGMA user_version = 0"
        ))?;
        self.settle()?;
        let before = self.counted()?;
        connection.execute_batch(INSERT)?;
        let after = self.counted()?;
        Ok([after[0] - before[0], after[1] - before[1]])
    }

    fn copy_of(&self, source: &Path) -> Result<(TempDir, PathBuf), Failed> {
        let directory = tempfile::Builder::new()
            .prefix(".iostep-explain-")
            .tempdir_in(self.mount.path())?;
        // As the command's own: what a commit has to write depends on what lies beside.
        fs::write(directory.path().join(".iostep-temporary"), "")?;
        let copy = directory.path().join("app.db");
        fs::write(&copy, fs::read(source)?)?;
        fs::File::open(&copy)?.sync_all()?;
        Ok((directory, copy))
    }
}

fn iostep() -> Command {
    Command::new(env!("CARGO_BIN_EXE_iostep"))
}

fn run(mut command: Command) -> Result<Output, Failed> {
    Ok(command.stdin(Stdio::null()).output()?)
}

fn json(output: &Output) -> Result<Value, Failed> {
    if !output.status.success() {
        return Err(stderr(output).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn check(fact: bool, otherwise: impl std::fmt::Display) -> Result<(), Failed> {
    fact.then_some(())
        .ok_or_else(|| otherwise.to_string().into())
}

fn ext4() -> Result<(), Failed> {
    costs_what_the_kernel_counted(Kind::Ext4, 64, 0)
}

fn xfs() -> Result<(), Failed> {
    // Two runs do not log the same: a record holds what changed until it is sealed.
    costs_what_the_kernel_counted(Kind::Xfs, 320, 4096)
}

fn costs_what_the_kernel_counted(
    kind: Kind,
    megabytes: u64,
    tolerance_bytes: u64,
) -> Result<(), Failed> {
    for mode in MODES {
        let lab = Lab::new(kind, megabytes)?;
        let explanation = json(&lab.explain(&[INSERT, "--json", "--journal", mode])?)?;
        let transaction = &explanation["runs"][0]["transactions"][0];
        let cost = &transaction["cost"];
        let explained = [&cost["bytes"], &cost["flushes"]].map(|v| v.as_u64().unwrap_or(0));
        // A filesystem in another state can need another bitmap.
        let counted = Lab::new(kind, megabytes)?.count_insert(mode)?;
        let off_by = explained[0].abs_diff(counted[0]);
        check(
            off_by <= tolerance_bytes && explained[1] == counted[1],
            format!("{mode}: explained {explained:?}, the kernel counted {counted:?}"),
        )?;
        check(transaction["asked"]["user_bytes"] == 100, "not 100 bytes")?;
        check(cost["background_bytes"] == 0, "somebody else wrote")?;
    }
    Ok(())
}

/// The files of a directory but for the shared memory, which holds locks and marks.
fn files(directory: &Path) -> Result<Vec<(String, Vec<u8>)>, Failed> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && !name.ends_with("-shm") {
            files.push((name, fs::read(entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}

fn in_use_by_waldio() -> Result<(), Failed> {
    let lab = Lab::new(Kind::Ext4, 64)?;
    let connection = waldio::open(lab.database())?;
    connection.execute_batch(INSERT)?;
    let crashed = tempfile::tempdir_in(lab.mount.path())?;
    for (name, bytes) in files(lab.mount.path())? {
        fs::write(crashed.path().join(name), bytes)?;
    }
    for directory in [lab.mount.path(), crashed.path()] {
        let before = files(directory)?;
        let mut command = iostep();
        command.env("TMPDIR", lab.temporary.path());
        command.arg("explain").arg(directory.join("app.db"));
        command.args([INSERT, "--json", "--journal", "delete,wal,waldio"]);
        let explanation = json(&run(command)?)?;
        let runs = explanation["runs"].as_array().ok_or("no runs")?;
        check(runs.len() == 3, "not every mode")?;
        for row in runs {
            let bytes = row["transactions"][0]["asked"]["user_bytes"].as_u64();
            check(bytes == Some(100), row)?;
        }
        check(files(directory)? == before, "the original has changed")?;
    }
    drop(connection);
    let left = waldio::open(crashed.path().join("app.db"))?;
    let rows: i64 = left.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?;
    check(rows == 1 && lab.rows()? == 1, format!("{rows} rows"))
}

fn demo() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let page = directory.path().join("report.html");
    let temporary = directory.path().join("tmp");
    fs::create_dir(&temporary)?;
    let mut command = iostep();
    command
        .args(["demo", "--json", "--keep"])
        .arg(&page)
        .env("TMPDIR", &temporary);
    let explanation = json(&run(command)?)?;
    let rows = explanation["comparison"].as_array().ok_or("no table")?;
    check(rows.len() == MODES.len(), "not every mode")?;
    for row in rows {
        let [data, journal, joj, total] =
            ["data_bytes", "journal_bytes", "joj_bytes", "total_bytes"]
                .map(|column| row[column].as_u64().unwrap_or(0));
        let mode = row["mode"].as_str().unwrap_or_default();
        check(
            data + journal == total && joj <= journal,
            format!("{mode}: {row}"),
        )?;
        match mode {
            "memory" | "off" => check(joj == 0, format!("{mode}: there is no SQLite journal"))?,
            "waldio" => check(
                journal == 0 && total <= WALDIO_COMMIT_BYTES && row["flushes"] == 1,
                format!("{mode}: {row}"),
            )?,
            // ATC'15 section 3: more than half of the I/O of these is the filesystem's journaling.
            "delete" | "truncate" | "wal" => check(2 * journal > total, format!("{mode}: {row}"))?,
            _ => check(joj > 0, format!("{mode}: {row}"))?,
        }
    }
    check(
        explanation["advice"]
            .as_str()
            .unwrap_or("")
            .starts_with("waldio instead of delete"),
        "advice",
    )?;
    let page = fs::read_to_string(&page)?;
    check(page.contains("Written under each journal mode"), "no page")?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    check(
        !mounts.contains(&*temporary.to_string_lossy()),
        "a mount is left",
    )?;
    check(is_empty(&temporary)?, "a directory is left")
}

fn is_empty(directory: &Path) -> Result<bool, Failed> {
    Ok(fs::read_dir(directory)?.next().is_none())
}

fn reads() -> Result<(), Failed> {
    let lab = Lab::new(Kind::Ext4, 64)?;
    lab.connect()?.execute_batch(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200) \
         INSERT INTO t SELECT zeroblob(3000) FROM n",
    )?;
    let select = "SELECT sum(length(v)) FROM t";
    let database_bytes = fs::metadata(lab.database())?.len();
    for mode in ["delete", "wal"] {
        let read = |more: &[&str]| -> Result<u64, Failed> {
            let arguments = [&[select, "--json", "--journal", mode], more].concat();
            let explanation = json(&lab.explain(&arguments)?)?;
            let cost = &explanation["runs"][0]["transactions"][0]["cost"];
            let reads = cost["reads"].as_u64().unwrap_or(0);
            let bytes = cost["read_bytes"].as_u64().unwrap_or(0);
            check((reads > 0) == (bytes > 0), "reads without bytes")?;
            Ok(bytes)
        };
        check(read(&[])? == 0, "the copy was in memory")?;
        let cold = read(&["--cold-cache"])?;
        check(
            // The WAL of the empty transaction is read too: a page with its frame.
            (600_000..=database_bytes + 8192).contains(&cold),
            format!("{mode}: read {cold} of {database_bytes} bytes"),
        )?;
    }
    Ok(())
}

fn not_here() -> Result<(), Failed> {
    let lab = Lab::new(Kind::Btrfs, 256)?;
    let explanation = json(&lab.explain(&[INSERT, "--json", "--journal", "delete,waldio,wal"])?)?;
    let modes = |list: &str| -> Vec<String> {
        let rows = explanation[list].as_array().cloned().unwrap_or_default();
        let names = rows.iter().filter_map(|row| row["mode"].as_str());
        names.map(str::to_owned).collect()
    };
    check(modes("runs") == ["delete", "wal"], "not both")?;
    check(modes("not_run") == ["waldio"], "not marked")?;
    let alone = lab.explain(&[INSERT, "--journal", "waldio"])?;
    expect_error(&alone, 4, "waldio leaves the log to SQLite: ")
}

fn original() -> Result<(), Failed> {
    let lab = Lab::new(Kind::Ext4, 64)?;
    let before = (fs::read(lab.database())?, lab.names()?);
    let output = lab.explain(&[INSERT, "--journal", "wal,delete"])?;
    check(output.status.success(), stderr(&output))?;
    check(
        (fs::read(lab.database())?, lab.names()?) == before,
        "the original changed",
    )?;
    let output = lab.explain(&[INSERT, "--in-place"])?;
    check(output.status.success(), stderr(&output))?;
    check(lab.rows()? == 1, "nothing was inserted")?;
    check(lab.names()? == before.1, "something was left beside it")
}

fn bad_input() -> Result<(), Failed> {
    let lab = Lab::new(Kind::Ext4, 64)?;
    let names = lab.names()?;
    let cases: [(&[&str], i32, &str); 4] = [
        (&[" ;; -- nothing"], 2, "the script has no statement"),
        (
            &["--file", "/nowhere.sql"],
            2,
            "/nowhere.sql: cannot read the script",
        ),
        (
            &["SELECT 1; SELECT 2; INSERT INTO nope VALUES (1); SELECT 4; SELECT 5"],
            1,
            "app.db: statement 3 of 5: no such table: nope: INSERT INTO nope VALUES (1); statements 1 to \
             2 are committed",
        ),
        (
            &["SELECT 1", "--journal", "walrus"],
            2,
            "walrus: no journal mode",
        ),
    ];
    for (arguments, status, words) in cases {
        expect_error(&lab.explain(arguments)?, status, words)?;
    }
    let locker = lab.connect()?;
    locker.execute_batch("BEGIN EXCLUSIVE")?;
    expect_error(
        &lab.explain(&["SELECT 1", "--timeout", "100ms"])?,
        1,
        "app.db: database is locked",
    )?;
    drop(locker);
    fs::write(lab.database(), vec![0x5a; 8192])?;
    expect_error(
        &lab.explain(&["SELECT 1"])?,
        2,
        "app.db: file is not a database",
    )?;
    expect_error(
        &lab.explain(&["SELECT 1", "--in-place"])?,
        2,
        "app.db: file is not a database",
    )?;
    fs::write(lab.database(), "8,0 1 2 0.000000001 7 Q W 8 + 8 [a]\n")?;
    expect_error(
        &lab.explain(&["SELECT 1"])?,
        2,
        "app.db: a text of blkparse; iostep import reads it",
    )?;
    fs::remove_file(lab.database())?;
    expect_error(&lab.explain(&["SELECT 1"])?, 2, "app.db: no such file")?;
    fs::create_dir(lab.database())?;
    expect_error(&lab.explain(&["SELECT 1"])?, 2, "app.db: is a directory")?;
    check(lab.has_only(&names)?, "something is left")
}

/// What a terminal obeys, what turns words around, and what is not seen.
const HOSTILE: &str = "evil\u{1b}[2J\u{7f}\u{9b}1m\u{202e}\u{2066}\u{200e}\u{2028}\u{200b}\nFORGED";

fn hostile() -> Result<(), Failed> {
    let lab = Lab::new(Kind::Ext4, 64)?;
    let database = lab.mount.path().join(HOSTILE);
    fs::copy(lab.database(), &database)?;
    let explain = |arguments: &[&str]| {
        let mut command = iostep();
        command.arg("explain").arg(&database).args(arguments);
        command.env("TMPDIR", lab.temporary.path());
        run(command)
    };
    let good = format!("INSERT INTO t VALUES ('{HOSTILE}')");
    let page = lab.temporary.path().join("page.html");
    let page_name = page.to_string_lossy();
    for (arguments, status) in [
        (&[good.as_str()][..], 0),
        (&[&good, "--journal", "wal,waldio,delete"], 0),
        (&[&good, "--keep"], 0),
        (&[&good, "--html", &page_name], 0),
        (&[&format!("INSERT INTO \"{HOSTILE}\" VALUES (1)")], 1),
        (&[HOSTILE], 1),
    ] {
        let output = explain(arguments)?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text)?;
        check(
            output.status.code() == Some(status),
            format!("{arguments:?}: {text}"),
        )?;
        check(
            text.contains("evil\\x1b[2J"),
            format!("{arguments:?}: {text}"),
        )?;
        is_harmless(&text)?;
    }
    is_harmless(&fs::read_to_string(&page)?.replace('\t', " "))?;
    // JSON has escapes of its own, and is what it was.
    let output = explain(&[&good, "--json"])?;
    is_harmless(std::str::from_utf8(&output.stdout)?)?;
    let statement = &json(&output)?["runs"][0]["transactions"][0]["asked"]["statements"][0];
    let said = statement.as_str().unwrap_or_default();
    check(said.contains("evil\u{1b}[2J\u{7f}"), format!("{statement}"))
}

fn is_harmless(text: &str) -> Result<(), Failed> {
    let steers = |c: char| c.is_control() && c != '\n';
    let turns = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let found = text.chars().find(|c| steers(*c) || turns(*c));
    check(found.is_none(), format!("{found:?} in {text:?}"))?;
    let forged = text
        .lines()
        .any(|line| line.trim_start().starts_with("FORGED"));
    check(!forged, format!("forged: {text}"))
}

fn expect_error(output: &Output, status: i32, words: &str) -> Result<(), Failed> {
    let text = stderr(output);
    check(
        output.status.code() == Some(status),
        format!("{}: {text}", output.status),
    )?;
    check(text.contains(words), format!("{text}\nlacks: {words}"))
}

fn full_disk() -> Result<(), Failed> {
    let lab = Lab::new(Kind::Ext4, 16)?;
    let names = lab.names()?;
    let output = lab.explain(&["INSERT INTO t VALUES (zeroblob(100000000))"])?;
    expect_error(&output, 1, "statement 1 of 1: database or disk is full")?;
    check(lab.has_only(&names)?, "something is left")?;
    lab.connect()?
        .execute_batch("INSERT INTO t VALUES (zeroblob(8000000))")?;
    expect_error(&lab.explain(&["SELECT 1"])?, 1, "No space left on device")?;
    check(lab.has_only(&names)?, "something is left")
}

fn signals() -> Result<(), Failed> {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let lab = Lab::new(Kind::Ext4, 64)?;
        let names = lab.names()?;
        let mut command = lab.command(&[ENDLESS]);
        let mut running = Running(command.stderr(Stdio::null()).spawn()?);
        wait_until("the recording", || {
            check(running.0.try_wait()?.is_none(), "it ended early")?;
            // The state that every run starts from, and the copy that this one works on.
            Ok(lab.names()?.len() == names.len() + 2 && lab.is_recording()?)
        })?;
        kill_process(Pid::from_child(&running.0), signal)?;
        let status = running.0.wait()?;
        check(!status.success(), "it says that all is well")?;
        let gone = wait_until("what it left to go", || lab.has_only(&names));
        gone.map_err(|failed| {
            let left =
                fs::read_dir(lab.temporary.path()).map(|all| all.flatten().collect::<Vec<_>>());
            format!(
                "{failed:?} after {signal:?} ({status}): {:?}, {left:?}",
                lab.names()
            )
        })?;
    }
    Ok(())
}

/// A process that does not outlive a failed test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_until(what: &str, fact: impl FnMut() -> Result<bool, Failed>) -> Result<(), Failed> {
    let mut fact = fact;
    let deadline = Instant::now() + PATIENCE;
    while !fact()? {
        check(
            Instant::now() < deadline,
            format_args!("waited in vain for {what}"),
        )?;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
