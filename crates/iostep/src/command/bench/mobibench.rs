//! `iostep bench --profile mobibench`: the four buttons of Mobibench's Android application.
//!
//! Source of the tests, their order, their defaults and their table:
//! github.com/ESOS-Lab/Mobibench at f56ea5e, MobiBench/src/esos/MobiBench/MobiBenchExe.java
//! (`RunMobibench`, `RunFileIO`, `RunSqlite`, `SendResult`), TabMain.java (`set_default`) and
//! MobiBench/jni/mobibench.c (`main`, `thread_main`, `thread_main_db`).
//!
//! What was wrong there is not repeated: the payload is not one byte over and over, updates do not
//! hit the same row twice, and deletes find theirs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use iostep_analyze::bench::{RunSummary, Summary};
use iostep_load::Error;
use iostep_model::bench::{Document, Sync, Transfer};
use iostep_model::pragma::{Journal, Synchronous};
use iostep_model::units;
use iostep_report::text::Style;
use iostep_report::text::grid::Grid;
use serde::Serialize;

use super::generator::Generator;
use super::measure_args::usage;
use super::session::{self, Measured, Output};
use crate::interrupt::Interrupt;
use crate::terminal;

const HEADER: [&str; 7] = [
    "test",
    "throughput",
    "CPU active",
    "iowait",
    "idle",
    "switches",
    "voluntary",
];

/// What the command is asked to do with a profile.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Profile")]
pub struct ProfileArgs {
    /// Run the tests of another tool with its defaults
    #[arg(long, value_enum, value_name = "NAME")]
    profile: Profile,

    /// Directory for the profile's files and databases
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Which tests; custom: those of --tests
    #[arg(long, value_enum, default_value_t = Button::All)]
    button: Button,

    /// seq-write, seq-read, rand-write, rand-read, insert, update, delete
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "LIST",
        value_delimiter = ','
    )]
    tests: Vec<Test>,

    /// Threads of the file tests, which share the sizes
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,

    /// Bytes that the writing tests write
    #[arg(long, value_name = "SIZE", default_value = "10MiB",
          value_parser = units::parse_bytes)]
    write_size: u64,

    /// Bytes that the reading tests read
    #[arg(long, value_name = "SIZE", default_value = "32MiB",
          value_parser = units::parse_bytes)]
    read_size: u64,

    /// Bytes of one operation
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = units::parse_bytes)]
    record: u64,

    /// buffered, direct, dontcache, mmap; for writing, reads are direct
    #[arg(long, value_name = "HOW", default_value = "direct")]
    transfer: Transfer,

    /// As in bench file; for writing
    #[arg(long, value_name = "MODE", default_value = "none")]
    sync: Sync,

    /// Transactions of each SQLite test
    #[arg(long, value_name = "N", default_value_t = 100)]
    transactions: u64,

    /// delete, truncate, persist, wal, memory, off
    #[arg(long, value_name = "MODE", default_value = "truncate")]
    journal: Journal,

    /// off, normal, full, extra
    #[arg(long, value_name = "SETTING", default_value = "full")]
    synchronous: Synchronous,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Profile {
    Mobibench,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Button {
    All,
    File,
    Sqlite,
    Custom,
}

/// A test, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Test {
    SeqWrite,
    SeqRead,
    RandWrite,
    RandRead,
    Insert,
    Update,
    Delete,
}

impl Test {
    /// What the application calls it, and what `iostep bench` does for it.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Test::SeqWrite => ("Seq.Write", "write"),
            Test::SeqRead => ("Seq.Read", "read"),
            Test::RandWrite => ("Rand.Write", "random-write"),
            Test::RandRead => ("Rand.Read", "random-read"),
            Test::Insert => ("SQLite.Insert", "insert"),
            Test::Update => ("SQLite.Update", "update"),
            Test::Delete => ("SQLite.Delete", "delete"),
        }
    }
}

/// A test's result.
#[derive(Serialize)]
struct Entry {
    test: Test,
    result: Document,
    summary: Summary,
}

/// Runs the tests of a button and prints the table. A test that fails ends it, as there.
pub fn run(args: &ProfileArgs) -> anyhow::Result<ExitCode> {
    let Profile::Mobibench = args.profile;
    let mut planned = Vec::new();
    for test in args.tests()? {
        let generator = Generator::parse(args.arguments(test)?)?;
        planned.push((test, generator.job()?, generator.measure().repetition()?));
    }
    let interrupt = Interrupt::install()?;
    let mut entries = Vec::new();
    let mut whole = true;
    for (test, job, repetition) in planned {
        let measured = session::run(job, repetition, None, &interrupt, Output::default())?;
        whole = measured.is_whole();
        measured.tell();
        let Measured(result) = measured;
        entries.push(Entry {
            test,
            summary: Summary::of(&result),
            result,
        });
        if !whole {
            break;
        }
    }
    if args.json {
        terminal::print_json(&terminal::json(&entries))?;
    } else {
        terminal::print(&args.table(&entries))?;
    }
    Ok(ExitCode::from(u8::from(!whole)))
}

impl ProfileArgs {
    fn tests(&self) -> Result<Vec<Test>, Error> {
        if (self.button == Button::Custom) == self.tests.is_empty() {
            return Err(usage(
                "--tests and --button custom: one without the other",
                "name the tests of the custom button, as --tests seq-write,insert",
            ));
        }
        let mut tests = match self.button {
            Button::Custom => self.tests.clone(),
            _ => Test::value_variants().to_vec(),
        };
        tests.retain(|test| match self.button {
            Button::File => *test < Test::Insert,
            Button::Sqlite => *test >= Test::Insert,
            Button::All | Button::Custom => true,
        });
        tests.sort();
        tests.dedup();
        Ok(tests)
    }

    /// The command line of `iostep bench` for a test.
    fn arguments(&self, test: Test) -> Result<Vec<OsString>, Error> {
        let mut arguments = match test {
            Test::SeqWrite | Test::RandWrite => {
                let mut arguments = self.file(test, self.write_size)?;
                arguments.push(format!("--transfer={}", self.transfer));
                arguments.push(format!("--sync={}", self.sync));
                // The last fsync or msync is within the time.
                arguments.push("--end-sync".into());
                arguments
            }
            Test::SeqRead | Test::RandRead => {
                let mut arguments = self.file(test, self.read_size)?;
                arguments.push("--transfer=direct".into());
                arguments
            }
            Test::Insert | Test::Update | Test::Delete => self.sqlite(test),
        }
        .into_iter()
        .map(OsString::from)
        .collect::<Vec<_>>();
        arguments.push("--".into());
        arguments.push(self.directory.clone().into_os_string());
        Ok(arguments)
    }

    /// Threads share the size, and what is no whole record is left out.
    fn file(&self, test: Test, size: u64) -> Result<Vec<String>, Error> {
        let records = (size / u64::from(self.threads)).checked_div(self.record);
        let Some(records) = records.filter(|records| *records > 0) else {
            return Err(usage(
                format!(
                    "{size} bytes for {} threads: less than a record of {} bytes each",
                    self.threads, self.record
                ),
                "choose a larger size or a smaller record",
            ));
        };
        Ok(vec![
            "file".into(),
            format!("--access={}", test.words().1),
            format!("--size={}", records * self.record),
            format!("--record={}", self.record),
            format!("--threads={}", self.threads),
        ])
    }

    fn sqlite(&self, test: Test) -> Vec<String> {
        let mut arguments = vec![
            "sqlite".into(),
            format!("--operation={}", test.words().1),
            format!("--transactions={}", self.transactions),
            format!("--journal={}", self.journal),
            format!("--synchronous={}", self.synchronous),
            "--record=100".into(),
            "--page-size=4096".into(),
        ];
        if test == Test::Update {
            arguments.push(format!("--rows={}", self.transactions));
            arguments.push("--keys=random".into());
        }
        arguments
    }

    fn table(&self, entries: &[Entry]) -> String {
        let columns = HEADER.map(|name| (name, name != HEADER[0], false));
        let mut grid = Grid::new(Style::default(), columns);
        for entry in entries {
            if let Some(run) = entry.summary.runs.first() {
                grid.row(self.row(entry.test, run));
            }
        }
        // It is not below a title.
        let lines = grid.fitting_lines();
        lines.split_inclusive('\n').map(|line| &line[1..]).collect()
    }

    fn row(&self, test: Test, run: &RunSummary) -> Vec<String> {
        let rate = run.throughput;
        let operations = rate.map_or(0.0, |rate| rate.operations_per_second);
        let (value, unit) = match test {
            Test::SeqWrite | Test::SeqRead => (
                rate.map_or(0.0, |rate| rate.kib_per_second()),
                "KB/s".into(),
            ),
            Test::RandWrite | Test::RandRead => (
                operations,
                format!("IOPS({}KB)", self.record as f64 / 1024.0),
            ),
            Test::Insert | Test::Update | Test::Delete => (operations, "TPS".to_owned()),
        };
        let percent = |share: Option<f64>| {
            share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0))
        };
        let machine = run.cpu.machine.as_ref();
        vec![
            test.words().0.into(),
            format!("{value:.0} {unit}"),
            percent(machine.map(|shares| shares.active)),
            percent(machine.map(|shares| shares.iowait)),
            percent(machine.map(|shares| shares.idle)),
            (run.cpu.voluntary_switches + run.cpu.involuntary_switches).to_string(),
            run.cpu.voluntary_switches.to_string(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::parsed;
    use iostep_model::bench::{Access, FileJob, Job, KeyOrder, SqliteJob, SqliteOperation};

    fn profile(arguments: &[&str]) -> ProfileArgs {
        let all = [&["--profile", "mobibench", "/"], arguments].concat();
        parsed(&all).expect("valid flags")
    }

    fn job(args: &ProfileArgs, test: Test) -> Job {
        let arguments = args.arguments(test).expect("arguments");
        Generator::parse(arguments)
            .expect("valid")
            .job()
            .expect("a job")
    }

    fn file(args: &ProfileArgs, test: Test) -> FileJob {
        match job(args, test) {
            Job::File(job) => job,
            Job::Sqlite(job) => panic!("{job:?}"),
        }
    }

    fn sqlite(test: Test) -> SqliteJob {
        match job(&profile(&[]), test) {
            Job::Sqlite(job) => job,
            Job::File(job) => panic!("{job:?}"),
        }
    }

    #[test]
    fn the_buttons_run_the_tests_of_the_application() {
        let tests = |arguments: &[&str]| profile(arguments).tests().expect("tests").len();
        assert_eq!(tests(&[]), 7);
        assert_eq!(tests(&["--button=file"]), 4);
        assert_eq!(tests(&["--button=sqlite"]), 3);
        let custom = profile(&["--button=custom", "--tests=delete,seq-write,delete"]);
        assert_eq!(custom.tests(), Ok(vec![Test::SeqWrite, Test::Delete]));
        assert!(profile(&["--button=custom"]).tests().is_err());
        assert!(profile(&["--tests=insert"]).tests().is_err());
    }

    #[test]
    fn the_defaults_are_those_of_the_application() {
        let write = file(&profile(&[]), Test::RandWrite);
        assert_eq!(
            (write.access, write.transfer),
            (Access::RandomWrite, Transfer::Direct)
        );
        assert_eq!((write.file_bytes, write.record_bytes), (10 << 20, 4096));
        assert_eq!((write.sync, write.end_sync), (Sync::None, true));
        let read = file(&profile(&["--transfer=mmap"]), Test::SeqRead);
        assert_eq!(
            (read.file_bytes, read.transfer),
            (32 << 20, Transfer::Direct)
        );
        let update = sqlite(Test::Update);
        assert_eq!(
            (update.journal, update.synchronous),
            (Journal::Truncate, Synchronous::Full)
        );
        assert_eq!((update.transactions, update.rows), (100, 100));
        assert_eq!((update.keys, update.record_bytes), (KeyOrder::Random, 100));
        let delete = sqlite(Test::Delete);
        assert_eq!(
            (delete.operation, delete.rows),
            (SqliteOperation::Delete, 100)
        );
        assert_eq!(sqlite(Test::Insert).rows, 0);
    }

    #[test]
    fn threads_share_the_size_and_only_whole_records_count() {
        let args = profile(&["--threads=3", "--write-size=1000KiB", "--record=300KiB"]);
        let job = file(&args, Test::SeqWrite);
        assert_eq!((job.threads, job.file_bytes), (3, 300 << 10));
        let args = profile(&["--threads=4", "--write-size=1000KiB", "--record=300KiB"]);
        assert!(args.arguments(Test::SeqWrite).is_err());
        assert!(profile(&["--record=0"]).arguments(Test::SeqRead).is_err());
    }
}
