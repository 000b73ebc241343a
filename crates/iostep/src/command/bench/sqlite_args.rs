//! Flags of `iostep bench sqlite`.

use std::path::PathBuf;

use iostep_load::Result;
use iostep_model::bench::{
    CheckpointMode, CheckpointPolicy, KeyOrder, Mix, SqliteJob, SqliteOperation, WalFile,
    WaldioOptions, WaldioSync,
};
use iostep_model::pragma::{Journal, Synchronous};
use iostep_model::units;

use super::measure_args::{MeasureArgs, OutputArgs, usage};
use super::value;

/// Rows of a table that is not only inserted into: enough that a transaction seldom finds its
/// page in the one before.
const ROWS: u64 = 10_000;
/// The weights of a mix that names none.
const MIX: Mix = Mix {
    insert: 40,
    update: 30,
    delete: 10,
    read: 20,
};

/// Run transactions of SQLite
///
/// Databases are made in DIR/iostep-bench and removed at the end.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep bench sqlite /mnt --journal wal --transactions 5000
  iostep bench sqlite /mnt --operation update --keys random --repeat 5
  iostep bench sqlite /mnt --operation mix --mix insert=1,read=9 --time 10
  iostep bench sqlite /mnt --sqlite-lib /usr/lib/libsqlite3.so.0

docs/bench-sqlite.md explains the numbers.")]
pub struct SqliteArgs {
    /// Directory that the databases are made in
    directory: PathBuf,

    /// What each statement does
    #[arg(long, value_enum, ignore_case = true, default_value_t = Operation::Insert)]
    operation: Operation,

    /// Weights of a mix [default: insert=40,update=30,delete=10,read=20]
    #[arg(long, value_name = "WEIGHTS", value_parser = value::mix)]
    mix: Option<Mix>,

    /// delete, truncate, persist, wal, waldio, memory, off
    #[arg(long, value_name = "MODE", default_value = "delete")]
    journal: Journal,

    /// off, normal, full, extra
    #[arg(long, value_name = "SETTING", default_value = "full")]
    synchronous: Synchronous,

    /// Transactions of each thread; with --time, that ends it instead
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..))]
    transactions: u64,

    /// Bytes of a row's value
    #[arg(long, value_name = "SIZE", default_value = "100", value_parser = units::parse_bytes)]
    record: u64,

    /// Rows of each table before [default: 0 for insert, as many as are
    /// deleted for delete, 10000 else]
    #[arg(long, value_name = "N")]
    rows: Option<u64>,

    /// Tables that a transaction touches in each database
    #[arg(long, value_name = "N", default_value_t = 1)]
    tables: u32,

    /// Databases that a transaction touches: main, and attached ones
    #[arg(long, value_name = "N", default_value_t = 1)]
    databases: u32,

    /// Statements of a transaction for each table
    #[arg(long, value_name = "N", default_value_t = 1)]
    statements: u32,

    /// sequential, random
    #[arg(long, value_name = "ORDER", default_value = "sequential")]
    keys: KeyOrder,

    /// Threads, 1 to 1024, each with a connection
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,

    /// All threads on the same databases, instead of their own each
    #[arg(long)]
    shared: bool,

    /// How long a writer waits for another's lock
    #[arg(long, value_name = "DURATION", default_value = "10s",
          value_parser = units::parse_duration_ns)]
    busy_timeout: u64,

    /// PRAGMA page_size [default: SQLite's]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    page_size: Option<u64>,

    /// PRAGMA cache_size: pages, or KiB if negative [default: SQLite's]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    cache_size: Option<i64>,

    /// PRAGMA mmap_size [default: SQLite's]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    mmap_size: Option<u64>,

    /// When a WAL is checkpointed: PAGES, never, every:TRANSACTIONS
    #[arg(long, value_name = "WHEN", default_value = "1000", value_parser = value::checkpoint)]
    checkpoint: CheckpointPolicy,

    /// passive, full, restart, truncate
    #[arg(long, value_name = "MODE", default_value = "passive")]
    checkpoint_mode: CheckpointMode,

    /// A WAL's file before each run: fresh, steady (as long as it gets)
    #[arg(long, value_name = "STATE", default_value = "fresh")]
    wal_file: WalFile,

    #[command(flatten)]
    waldio: WaldioArgs,

    /// Commit by f2fs's batch atomic writes in place of a journal
    #[arg(long)]
    batch_atomic: bool,

    /// Call fsync where SQLite would call fdatasync
    #[arg(long)]
    fsync: bool,

    /// Use this SQLite instead of the one inside
    #[arg(long, value_name = "FILE")]
    sqlite_lib: Option<PathBuf>,

    #[command(flatten)]
    pub measure: MeasureArgs,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// Options of waldio.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Options of --journal waldio")]
struct WaldioArgs {
    /// When a commit is durable: full, persistent, normal, group
    #[arg(long, value_name = "MODE")]
    waldio_sync: Option<WaldioSync>,

    /// Frames that wait before Group Sync flushes
    #[arg(long, value_name = "N")]
    waldio_group_frames: Option<u32>,

    /// How long they wait at most, in milliseconds
    #[arg(long, value_name = "N")]
    waldio_group_ms: Option<u32>,

    /// Where frames are in the log: auto, P, W, T
    #[arg(long, value_name = "LAYOUT", default_value = "auto", value_parser = value::layout)]
    waldio_layout: value::Layout,

    /// Pad frames of layout P to a multiple: 512, 4096, 8192
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    waldio_padding: Option<u64>,

    /// First step by which the log is extended ahead; 0: never
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    waldio_prealloc: Option<u64>,

    /// Load this waldio.so instead of the one inside
    #[arg(long, value_name = "FILE")]
    waldio_lib: Option<PathBuf>,
}

impl WaldioArgs {
    fn options(&self) -> Result<WaldioOptions> {
        let bytes = |flag, size: Option<u64>| size.map(|size| narrow(flag, size)).transpose();
        Ok(WaldioOptions {
            sync: self.waldio_sync,
            group_frames: self.waldio_group_frames,
            group_ms: self.waldio_group_ms,
            layout: self.waldio_layout.0,
            padding_bytes: bytes("--waldio-padding", self.waldio_padding)?,
            prealloc_bytes: bytes("--waldio-prealloc", self.waldio_prealloc)?,
            library: self.waldio_lib.clone(),
        })
    }
}

/// What each statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Operation {
    Insert,
    Update,
    Delete,
    Read,
    Mix,
}

impl SqliteArgs {
    /// The job that the flags ask for.
    ///
    /// Errors: `Usage` for what no SQLite takes.
    pub fn job(&self) -> Result<SqliteJob> {
        Ok(SqliteJob {
            directory: self.directory.clone(),
            operation: self.operation()?,
            journal: self.journal,
            synchronous: self.synchronous,
            transactions: self.transactions,
            record_bytes: narrow("--record", self.record)?,
            rows: self.rows.unwrap_or_else(|| self.default_rows()),
            tables: self.tables,
            databases: self.databases,
            statements: self.statements,
            keys: self.keys,
            threads: self.threads,
            shared: self.shared,
            busy_timeout_ns: self.busy_timeout,
            page_bytes: self
                .page_size
                .map(|size| narrow("--page-size", size))
                .transpose()?,
            cache_size: self.cache_size,
            mmap_bytes: self.mmap_size,
            checkpoint: self.checkpoint,
            checkpoint_mode: self.checkpoint_mode,
            wal_file: self.wal_file,
            waldio: self.waldio.options()?,
            batch_atomic: self.batch_atomic,
            fsync: self.fsync,
            library: self.sqlite_lib.clone(),
            reuse: self.measure.reuse,
            keep: self.measure.keep,
            verify: self.measure.verify,
            seed: self.measure.seed,
            cpus: self.measure.cpus(),
            limits: self.measure.limits()?,
            pace: self.measure.pace(None)?,
        })
    }

    fn operation(&self) -> Result<SqliteOperation> {
        if self.mix.is_some() && self.operation != Operation::Mix {
            return Err(usage(
                "--mix: the operation is no mix",
                "pass --operation mix",
            ));
        }
        Ok(match self.operation {
            Operation::Insert => SqliteOperation::Insert,
            Operation::Update => SqliteOperation::Update,
            Operation::Delete => SqliteOperation::Delete,
            Operation::Read => SqliteOperation::Read,
            Operation::Mix => SqliteOperation::Mix(self.mix.unwrap_or(MIX)),
        })
    }

    fn default_rows(&self) -> u64 {
        let deleters = if self.shared { self.threads } else { 1 };
        match self.operation {
            Operation::Insert => 0,
            Operation::Delete => self
                .transactions
                .saturating_mul(u64::from(self.statements))
                .saturating_mul(u64::from(deleters)),
            Operation::Update | Operation::Read | Operation::Mix => ROWS,
        }
    }
}

fn narrow(flag: &str, bytes: u64) -> Result<u32> {
    u32::try_from(bytes).map_err(|_| {
        usage(
            format!("{flag} {bytes}: SQLite takes nothing so large"),
            "choose less than 1 GiB",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use iostep_model::bench::WaldioLayout;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: SqliteArgs,
    }

    fn parse(arguments: &[&str]) -> std::result::Result<SqliteArgs, clap::Error> {
        let all = ["sqlite", "/mnt"].iter().chain(arguments);
        Command::try_parse_from(all).map(|command| command.args)
    }

    fn job(arguments: &[&str]) -> Result<SqliteJob> {
        parse(arguments).expect("valid flags").job()
    }

    #[test]
    fn without_flags_it_inserts_with_the_settings_of_sqlite() {
        let job = job(&[]).expect("a job");
        assert_eq!(job.operation, SqliteOperation::Insert);
        assert_eq!(
            (job.journal, job.synchronous),
            (Journal::Delete, Synchronous::Full)
        );
        assert_eq!(
            (job.transactions, job.rows, job.record_bytes),
            (1000, 0, 100)
        );
        assert_eq!((job.tables, job.databases, job.statements), (1, 1, 1));
        assert_eq!(job.checkpoint, CheckpointPolicy::Pages(1000));
        assert_eq!(
            (job.page_bytes, job.cache_size, job.mmap_bytes),
            (None, None, None)
        );
        assert_eq!(job.busy_timeout_ns, 10_000_000_000);
        assert_eq!(
            (job.wal_file, job.waldio),
            (WalFile::Fresh, WaldioOptions::default())
        );
    }

    #[test]
    fn every_flag_reaches_its_field() {
        let flags = "--operation=mix --mix=insert=1,read=9 --journal=WAL --synchronous=extra \
             --transactions=7 --record=1k --rows=50 --tables=3 --databases=2 --statements=4 \
             --keys=random --threads=5 --shared --busy-timeout=1s --page-size=8k \
             --cache-size=-2000 --mmap-size=1MiB --checkpoint=every:9 \
             --checkpoint-mode=truncate --wal-file=steady --waldio-sync=group --waldio-layout=p \
             --waldio-group-frames=9 --waldio-group-ms=7 \
             --waldio-padding=8k --waldio-prealloc=0 \
             --waldio-lib=/lib/w.so --batch-atomic --fsync --sqlite-lib=/lib/x.so --reuse --keep \
             --verify --seed=2 --cpus=1 --time=2 --ramp=1 --rate=100 --think=1ms";
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let job = job(&flags).expect("a job");
        let expected = SqliteJob {
            directory: "/mnt".into(),
            operation: SqliteOperation::Mix(Mix {
                insert: 1,
                read: 9,
                ..Mix::default()
            }),
            journal: Journal::Wal,
            synchronous: Synchronous::Extra,
            transactions: 7,
            record_bytes: 1024,
            rows: 50,
            tables: 3,
            databases: 2,
            statements: 4,
            keys: KeyOrder::Random,
            threads: 5,
            shared: true,
            busy_timeout_ns: 1_000_000_000,
            page_bytes: Some(8192),
            cache_size: Some(-2000),
            mmap_bytes: Some(1 << 20),
            checkpoint: CheckpointPolicy::Transactions(9),
            checkpoint_mode: CheckpointMode::Truncate,
            wal_file: WalFile::Steady,
            waldio: WaldioOptions {
                sync: Some(WaldioSync::Group),
                group_frames: Some(9),
                group_ms: Some(7),
                layout: Some(WaldioLayout::P),
                padding_bytes: Some(8192),
                prealloc_bytes: Some(0),
                library: Some("/lib/w.so".into()),
            },
            batch_atomic: true,
            fsync: true,
            library: Some("/lib/x.so".into()),
            reuse: true,
            keep: true,
            verify: true,
            seed: 2,
            cpus: vec![1],
            limits: iostep_model::bench::Limits {
                time_ns: Some(2_000_000_000),
                ramp_ns: 1_000_000_000,
            },
            pace: iostep_model::bench::Pace {
                operations_per_second: Some(100.0),
                think_ns: 1_000_000,
            },
        };
        assert_eq!(job, expected);
    }

    #[test]
    fn there_are_as_many_rows_as_will_be_deleted() {
        let rows = |arguments: &[&str]| job(arguments).expect("a job").rows;
        let delete = ["--operation=delete", "--transactions=20", "--statements=3"];
        assert_eq!(rows(&delete), 60);
        assert_eq!(rows(&[&delete[..], &["--threads=2"]].concat()), 60);
        assert_eq!(
            rows(&[&delete[..], &["--threads=2", "--shared"]].concat()),
            120
        );
        assert_eq!(rows(&["--operation=read"]), ROWS);
        let most = [
            "--operation=delete",
            "--transactions=18446744073709551615",
            "--statements=9",
        ];
        assert_eq!(rows(&most), u64::MAX);
    }

    #[test]
    fn what_no_job_can_mean_is_bad_usage() {
        for arguments in [
            &["--operation=upsert"][..],
            &["--journal=walrus"],
            &["--waldio-layout=Q"],
            &["--transactions=0"],
            &["--mix=insert=0"],
            &["--checkpoint=often"],
            &["--cache-size=big"],
        ] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
        for arguments in [
            &["--mix=insert=1"][..],
            &["--record=8GiB"],
            &["--page-size=4GiB"],
            &["--rate=1MiB/s"],
            &["--time=0"],
        ] {
            let error = job(arguments).expect_err("no job");
            assert!(matches!(error, iostep_load::Error::Usage { .. }), "{error}");
        }
    }
}
