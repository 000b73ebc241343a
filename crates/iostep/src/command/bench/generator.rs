//! The two generators as a command line names them: the one way to a job, also for the cells of a
//! matrix and for profiles.

use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

use clap::Parser;
use iostep_load::Result;
use iostep_model::bench::{FileJob, Job, Measurement, SqliteJob, Sync, Target};

use super::measure_args::{Arguments, MeasureArgs, OutputArgs, usage};

/// What is generated.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Generator {
    /// Read and write files or a block device
    #[command(after_help = "\
Without an option: writes of 4 KiB in order, each with fdatasync, for 5 s.

Examples:
  iostep bench file /mnt
  iostep bench file /mnt --access random-write --sync fdatasync --time 10
  iostep bench file /mnt --access read --transfer direct --size 1GiB
  iostep bench file /mnt --engine uring --depth 32 --transfer direct --repeat 5
  iostep bench file /dev/nvme0n1 --access random-read --time 10

Sizes: 4k and 4KiB are 4096 bytes, 4kB is 4000. Times without a unit are
seconds. docs/bench-file.md explains the numbers.")]
    File(Box<Arguments<FileJob>>),
    /// Run transactions of SQLite
    #[command(after_help = "\
Examples:
  iostep bench sqlite /mnt --journal wal --transactions 5000
  iostep bench sqlite /mnt --operation update --keys random --repeat 5
  iostep bench sqlite /mnt --operation mix --mix insert=1,read=9 --time 10
  iostep bench sqlite /mnt --sqlite-lib /usr/lib/libsqlite3.so.0

docs/bench-sqlite.md explains the numbers.")]
    Sqlite(Box<Arguments<SqliteJob>>),
}

#[derive(Debug, Parser)]
#[command(name = "iostep bench", no_binary_name = true)]
struct CommandLine {
    #[command(subcommand)]
    generator: Generator,
}

impl Generator {
    /// Reads the arguments behind `iostep bench`.
    ///
    /// Errors: those of a command line.
    pub fn parse<A>(
        arguments: impl IntoIterator<Item = A>,
    ) -> std::result::Result<Self, clap::Error>
    where
        A: Into<OsString> + Clone,
    {
        CommandLine::try_parse_from(arguments).map(|line| line.generator)
    }

    /// The job that is asked for.
    ///
    /// Errors: `Usage` for what no job can mean, for a target that is neither a directory nor a
    /// block device, and for a device that would be written to without `--destroy-data`.
    pub fn job(&self) -> Result<Job> {
        match self {
            Generator::File(args) => file(args.job.clone()).map(Job::File),
            Generator::Sqlite(args) => sqlite(args.job.clone()).map(Job::Sqlite),
        }
    }

    /// How it is measured.
    pub fn measure(&self) -> &MeasureArgs {
        match self {
            Generator::File(args) => &args.measure,
            Generator::Sqlite(args) => &args.measure,
        }
    }

    /// Where results go.
    pub fn output(&self) -> &OutputArgs {
        match self {
            Generator::File(args) => &args.output,
            Generator::Sqlite(args) => &args.output,
        }
    }
}

/// How long a job without any option is measured.
const DEFAULT_NS: u64 = 5_000_000_000;

/// A job that says nothing but where measures the device: what is neither synced nor given a time is
/// in memory when it ends, and that soon. `--sync none` as such asks for just that.
fn by_default(job: FileJob, names_sync: bool) -> FileJob {
    let nothing_said = FileJob {
        destroy_data: job.destroy_data,
        ..FileJob::new(job.target.clone())
    };
    if job != nothing_said || names_sync {
        return job;
    }
    let mut job = FileJob {
        sync: Sync::Fdatasync,
        ..job
    };
    job.measurement.limits.time_ns = Some(DEFAULT_NS);
    job
}

fn file(job: FileJob) -> Result<FileJob> {
    let arguments = crate::command::arguments();
    let mut arguments = arguments.iter();
    let names_sync = arguments.any(|argument| argument.starts_with("--sync"));
    let mut job = by_default(job, names_sync);
    check_time(&job.measurement)?;
    job.measurement.pace.settle(Some(job.record_bytes));
    let (Target::Directory(path) | Target::BlockDevice(path)) = job.target.clone();
    let bad = |what: String| {
        let hint = "name a directory for the files, or a block device";
        usage(format!("{}: {what}", path.display()), hint)
    };
    let metadata = std::fs::metadata(&path).map_err(|error| bad(error.to_string()))?;
    if metadata.is_dir() {
        return Ok(job);
    }
    if !metadata.file_type().is_block_device() {
        return Err(bad("neither a directory nor a block device".into()));
    }
    on_device(job, path)
}

fn on_device(job: FileJob, path: PathBuf) -> Result<FileJob> {
    if job.access.writes() && !job.destroy_data {
        let (path, access) = (path.display(), job.access);
        return Err(usage(
            format!("{path}: {access} would destroy what the device holds"),
            "pass --destroy-data if that is meant",
        ));
    }
    Ok(FileJob {
        target: Target::BlockDevice(path),
        ..job
    })
}

fn sqlite(mut job: SqliteJob) -> Result<SqliteJob> {
    check_time(&job.measurement)?;
    if !job.measurement.pace.settle(None) {
        return Err(usage(
            "--rate in bytes: a transaction has no length",
            "name transactions a second, as 500",
        ));
    }
    if !job.settle() {
        return Err(usage(
            "--mix: the operation is no mix",
            "pass --operation mix",
        ));
    }
    Ok(job)
}

fn check_time(measurement: &Measurement) -> Result<()> {
    match measurement.limits.time_ns {
        Some(0) => Err(usage("--time 0: nothing would be measured", "name a time")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use iostep_model::bench::Access;
    use serde_json::{Value, json};

    use super::*;

    fn job(arguments: &[&str]) -> Result<Job> {
        Generator::parse(arguments).expect("valid flags").job()
    }

    /// A job as results keep it.
    fn kept(line: &str) -> Value {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        serde_json::to_value(job(&arguments).expect("a job")).expect("JSON")
    }

    #[test]
    fn without_any_option_the_device_is_measured_and_with_one_what_is_asked_for() {
        let plain = || FileJob::new(Target::Directory("/".into()));
        let default = by_default(plain(), false);
        assert_eq!(default.sync, Sync::Fdatasync);
        assert_eq!(default.measurement.limits.time_ns, Some(DEFAULT_NS));
        assert_eq!(by_default(plain(), true), plain());
        let asked = FileJob {
            file_bytes: 4096,
            ..plain()
        };
        assert_eq!(by_default(asked.clone(), false), asked);
    }

    #[test]
    fn without_flags_it_is_the_plain_job() {
        let file = by_default(FileJob::new(Target::Directory("/".into())), false);
        assert_eq!(job(&["file", "/"]), Ok(Job::File(file)));
        assert_eq!(job(&["sqlite", "/"]), Ok(Job::Sqlite(SqliteJob::new("/"))));
        let plain = json!({
            "kind": "sqlite", "directory": "/", "operation": "insert", "journal": "delete",
            "synchronous": "full", "transactions": 1000, "record_bytes": 100, "rows": 0,
            "tables": 1, "databases": 1, "statements": 1, "keys": "sequential", "threads": 1,
            "shared": false, "busy_timeout_ns": 10_000_000_000u64, "page_bytes": null,
            "cache_size": null, "mmap_bytes": null, "checkpoint": {"pages": 1000},
            "checkpoint_mode": "passive", "wal_file": "fresh",
            "waldio": {
                "sync": null, "group_frames": null, "group_ms": null, "layout": null,
                "padding_bytes": null, "prealloc_bytes": null, "library": null,
            },
            "batch_atomic": false, "fsync": false, "library": null, "reuse": false,
            "keep": false, "verify": false, "seed": 1, "cpus": [],
            "limits": {"time_ns": null, "ramp_ns": 0},
            "pace": {"operations_per_second": null, "think_ns": 0},
        });
        assert_eq!(kept("sqlite /"), plain);
    }

    #[test]
    fn every_flag_reaches_the_result() {
        let file = kept(
            "file / --access=random-write --record=16k --size=1MiB --threads=8 --shared \
             --transfer=direct --sync=fdatasync --sync-every=4 --end-sync --atomic --polled \
             --engine=uring --depth=32 --overlap=25% --initial=sparse --reuse --keep \
             --payload=constant:7 --cache=as-is --verify --seed=9 --cpus=0-1,3 --time=1.5 \
             --ramp=200ms --rate=1MiB/s --think=3us",
        );
        let expected = json!({
            "kind": "file", "target": {"directory": "/"}, "access": "random-write",
            "record_bytes": 16384, "file_bytes": 1 << 20, "threads": 8,
            "sharing": "shared_file", "transfer": "direct", "sync": "fdatasync",
            "sync_every": 4, "end_sync": true, "atomic": true, "polled": true,
            "engine": "uring", "depth": 32, "overlap_percent": 25.0, "initial": "sparse",
            "files": "reuse", "keep": true, "payload": {"constant": 7},
            "page_cache": "as-is", "verify": true, "seed": 9, "cpus": [0, 1, 3],
            "limits": {"time_ns": 1_500_000_000, "ramp_ns": 200_000_000},
            "pace": {"operations_per_second": 64.0, "think_ns": 3000},
        });
        assert_eq!(file, expected);
        let sqlite = kept(
            "sqlite / --operation=MIX --mix=insert=1,read=9 --journal=WAL --synchronous=extra \
             --transactions=7 --record=1k --rows=50 --tables=3 --databases=2 --statements=4 \
             --keys=random --threads=5 --shared --busy-timeout=1s --page-size=8k \
             --cache-size=-2000 --mmap-size=1MiB --checkpoint=every:9 \
             --checkpoint-mode=truncate --wal-file=steady --waldio-sync=group \
             --waldio-layout=p --waldio-group-frames=9 --waldio-group-ms=7 \
             --waldio-padding=8k --waldio-prealloc=0 --waldio-lib=/lib/w.so --batch-atomic \
             --fsync --sqlite-lib=/lib/x.so --reuse --keep --verify --seed=2 --cpus=1 --time=2 \
             --ramp=1 --rate=100 --think=1ms",
        );
        let expected = json!({
            "kind": "sqlite", "directory": "/",
            "operation": {"mix": {"insert": 1, "update": 0, "delete": 0, "read": 9}},
            "journal": "wal", "synchronous": "extra", "transactions": 7, "record_bytes": 1024,
            "rows": 50, "tables": 3, "databases": 2, "statements": 4, "keys": "random",
            "threads": 5, "shared": true, "busy_timeout_ns": 1_000_000_000,
            "page_bytes": 8192, "cache_size": -2000, "mmap_bytes": 1 << 20,
            "checkpoint": {"transactions": 9}, "checkpoint_mode": "truncate",
            "wal_file": "steady",
            "waldio": {
                "sync": "group", "group_frames": 9, "group_ms": 7, "layout": "P",
                "padding_bytes": 8192, "prealloc_bytes": 0, "library": "/lib/w.so",
            },
            "batch_atomic": true, "fsync": true, "library": "/lib/x.so", "reuse": true,
            "keep": true, "verify": true, "seed": 2, "cpus": [1],
            "limits": {"time_ns": 2_000_000_000, "ramp_ns": 1_000_000_000},
            "pace": {"operations_per_second": 100.0, "think_ns": 1_000_000},
        });
        assert_eq!(sqlite, expected);
    }

    #[test]
    fn there_are_as_many_rows_as_will_be_deleted() {
        let rows = |flags: &str| kept(&format!("sqlite / {flags}"))["rows"].as_u64();
        let delete = "--operation=delete --transactions=20 --statements=3";
        assert_eq!(rows(delete), Some(60));
        assert_eq!(rows(&format!("{delete} --threads=2")), Some(60));
        assert_eq!(rows(&format!("{delete} --threads=2 --shared")), Some(120));
        assert_eq!(rows("--operation=read"), Some(10_000));
        let most = "--operation=delete --transactions=18446744073709551615 --statements=9";
        assert_eq!(rows(most), Some(u64::MAX));
    }

    #[test]
    fn a_device_is_written_to_only_if_its_data_may_be_destroyed() {
        let check = |change: fn(&mut FileJob)| {
            let mut job = FileJob::new(Target::Directory("/".into()));
            change(&mut job);
            on_device(job, "/dev/sda".into())
        };
        let error = check(|_| {}).expect_err("a write");
        assert!(error.to_string().contains("--destroy-data"), "{error}");
        assert!(check(|job| job.access = Access::Append).is_err());
        assert!(check(|job| job.access = Access::Read).is_ok());
        let device = check(|job| job.destroy_data = true).expect("agreed");
        assert_eq!(device.target, Target::BlockDevice("/dev/sda".into()));
    }

    #[test]
    fn a_spread_needs_three_repetitions() {
        let repetition = |arguments: &[&str]| {
            let all = [&["file", "/"], arguments].concat();
            let generator = Generator::parse(all).expect("valid");
            let found = generator.measure().repetition();
            found.map(|r| (r.least, r.most, r.spread_bound))
        };
        assert_eq!(repetition(&[]), Ok((1, 1, None)));
        assert_eq!(repetition(&["--repeat=5"]), Ok((5, 5, None)));
        assert_eq!(repetition(&["--until-spread=2"]), Ok((3, 30, Some(0.02))));
        let both = ["--until-spread=2", "--repeat=4"];
        assert_eq!(repetition(&both), Ok((3, 4, Some(0.02))));
    }
}
