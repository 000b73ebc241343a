//! Flags of `iostep bench file`.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use iostep_load::Result;
use iostep_model::bench::{
    Access, Engine, FileJob, Files, InitialContent, PageCache, PayloadKind, Sharing, Sync, Target,
    Transfer,
};
use iostep_model::units;

use super::measure_args::{MeasureArgs, OutputArgs, usage};
use super::value;

/// Read and write files or a block device
///
/// Work files are made in TARGET/iostep-bench and removed at the end.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep bench file /mnt --access random-write --sync fdatasync --time 10
  iostep bench file /mnt --access read --transfer direct --size 1GiB
  iostep bench file /mnt --engine uring --depth 32 --transfer direct --repeat 5
  iostep bench file /dev/nvme0n1 --access random-read --time 10

Sizes: 4k and 4KiB are 4096 bytes, 4kB is 4000. Times without a unit are
seconds. docs/bench-file.md explains the numbers.")]
pub struct FileArgs {
    /// Directory, or block device
    target: PathBuf,

    /// write, random-write, read, random-read, append
    #[arg(long, value_name = "ACCESS", default_value = "write")]
    access: Access,

    /// Bytes of one operation
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = units::parse_bytes)]
    record: u64,

    /// Bytes of each file
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = units::parse_bytes)]
    size: u64,

    /// Threads, 1 to 1024
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,

    /// All threads on one file, instead of a file each
    #[arg(long)]
    shared: bool,

    /// buffered, direct, dontcache, mmap
    #[arg(long, value_name = "HOW", default_value = "buffered")]
    transfer: Transfer,

    /// none, osync, odsync, rwf-dsync, fsync, fdatasync, sync-file-range,
    /// msync, msync-async
    #[arg(long, value_name = "MODE", default_value = "none")]
    sync: Sync,

    /// Sync after every so many writes of a thread
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..))]
    sync_every: u64,

    /// Sync once more at the end, inside the measured time
    #[arg(long)]
    end_sync: bool,

    /// All of a record or nothing: RWF_ATOMIC
    #[arg(long)]
    atomic: bool,

    /// Poll for completions: RWF_HIPRI, or IORING_SETUP_IOPOLL
    #[arg(long)]
    polled: bool,

    /// psync (pread, pwrite) or uring (io_uring)
    #[arg(long, value_name = "ENGINE", default_value = "psync")]
    engine: Engine,

    /// Operations under way at once in each thread; needs uring
    #[arg(long, value_name = "N", default_value_t = 1)]
    depth: u32,

    /// Share of random operations that go where an earlier one went
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = value::percent)]
    overlap: f64,

    /// What the files hold before: written, allocated, sparse
    #[arg(long, value_name = "CONTENT", default_value = "written")]
    initial: InitialContent,

    /// incompressible, constant (0xfe), constant:BYTE
    #[arg(long, value_name = "KIND", default_value = "incompressible",
          value_parser = value::payload)]
    payload: PayloadKind,

    /// Page cache of the files at the start: drop, warm, as-is
    #[arg(long, value_name = "STATE", default_value = "drop")]
    cache: PageCache,

    /// Allow writing to a block device, which destroys what it holds
    #[arg(long)]
    destroy_data: bool,

    #[command(flatten)]
    pub measure: MeasureArgs,

    #[command(flatten)]
    pub output: OutputArgs,
}

impl FileArgs {
    /// The job that the flags ask for.
    ///
    /// Errors: `Usage` if the target is neither a directory nor a block device, or a device that
    /// would be written to without `--destroy-data`.
    pub fn job(&self) -> Result<FileJob> {
        Ok(FileJob {
            target: self.target()?,
            access: self.access,
            record_bytes: self.record,
            file_bytes: self.size,
            threads: self.threads,
            sharing: if self.shared {
                Sharing::SharedFile
            } else {
                Sharing::OwnFile
            },
            transfer: self.transfer,
            sync: self.sync,
            sync_every: self.sync_every,
            end_sync: self.end_sync,
            atomic: self.atomic,
            polled: self.polled,
            engine: self.engine,
            depth: self.depth,
            overlap_percent: self.overlap,
            initial: self.initial,
            files: if self.measure.reuse {
                Files::Reuse
            } else {
                Files::Fresh
            },
            keep: self.measure.keep,
            payload: self.payload,
            page_cache: self.cache,
            verify: self.measure.verify,
            seed: self.measure.seed,
            cpus: self.measure.cpus(),
            limits: self.measure.limits()?,
            pace: self.measure.pace(Some(self.record))?,
        })
    }

    fn target(&self) -> Result<Target> {
        let path = &self.target;
        let hint = "name a directory for the files, or a block device";
        let metadata = std::fs::metadata(path)
            .map_err(|error| usage(format!("{}: {error}", path.display()), hint))?;
        if metadata.is_dir() {
            return Ok(Target::Directory(path.clone()));
        }
        if !metadata.file_type().is_block_device() {
            return Err(usage(
                format!("{}: neither a directory nor a block device", path.display()),
                hint,
            ));
        }
        self.check_destruction(path)?;
        Ok(Target::BlockDevice(path.clone()))
    }

    fn check_destruction(&self, device: &Path) -> Result<()> {
        if self.destroy_data || !self.access.writes() {
            return Ok(());
        }
        Err(usage(
            format!(
                "{}: {} would destroy what the device holds",
                device.display(),
                self.access
            ),
            "pass --destroy-data if that is meant",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: FileArgs,
    }

    fn parse(arguments: &[&str]) -> std::result::Result<FileArgs, clap::Error> {
        let all = ["file", "/"].iter().chain(arguments);
        Command::try_parse_from(all).map(|command| command.args)
    }

    fn job(arguments: &[&str]) -> Result<FileJob> {
        parse(arguments).expect("valid flags").job()
    }

    #[test]
    fn without_flags_it_is_the_plain_job() {
        let job = job(&[]).expect("a job");
        assert_eq!(job, FileJob::new(Target::Directory("/".into())));
    }

    #[test]
    fn every_flag_reaches_its_field() {
        let flags = "--access=random-write --record=16k --size=1MiB --threads=8 --shared \
             --transfer=direct --sync=fdatasync --sync-every=4 --end-sync --atomic --polled \
             --engine=uring --depth=32 --overlap=25% --initial=sparse --reuse --keep \
             --payload=constant:7 --cache=as-is --verify --seed=9 --cpus=0-1,3 --time=1.5 \
             --ramp=200ms --rate=1MiB/s --think=3us";
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let job = job(&flags).expect("a job");
        let expected = FileJob {
            target: Target::Directory("/".into()),
            access: Access::RandomWrite,
            record_bytes: 16 << 10,
            file_bytes: 1 << 20,
            threads: 8,
            sharing: Sharing::SharedFile,
            transfer: Transfer::Direct,
            sync: Sync::Fdatasync,
            sync_every: 4,
            end_sync: true,
            atomic: true,
            polled: true,
            engine: Engine::Uring,
            depth: 32,
            overlap_percent: 25.0,
            initial: InitialContent::Sparse,
            files: Files::Reuse,
            keep: true,
            payload: PayloadKind::Constant(7),
            page_cache: PageCache::AsIs,
            verify: true,
            seed: 9,
            cpus: vec![0, 1, 3],
            limits: iostep_model::bench::Limits {
                time_ns: Some(1_500_000_000),
                ramp_ns: 200_000_000,
            },
            pace: iostep_model::bench::Pace {
                operations_per_second: Some(64.0),
                think_ns: 3_000,
            },
        };
        assert_eq!(job, expected);
    }

    #[test]
    fn what_no_job_can_mean_is_bad_usage() {
        for arguments in [
            &["--access", "sideways"][..],
            &["--sync", "fbarrier"],
            &["--record", "4q"],
            &["--threads", "0"],
            &["--threads", "1025"],
            &["--sync-every", "0"],
            &["--overlap", "101"],
            &["--json", "--csv"],
            &["--json", "--quiet"],
            &["--repeat", "0"],
        ] {
            assert!(parse(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn a_target_that_is_no_directory_is_refused() {
        for path in ["/nowhere", "/dev/null", "/proc/self/status"] {
            let args = Command::try_parse_from(["file", path]).expect("valid").args;
            let error = args.job().expect_err(path);
            assert!(matches!(error, iostep_load::Error::Usage { .. }), "{error}");
        }
    }

    #[test]
    fn a_device_is_written_to_only_if_its_data_may_be_destroyed() {
        let check = |arguments: &[&str]| {
            let args = parse(arguments).expect("valid");
            args.check_destruction(Path::new("/dev/sda"))
        };
        let error = check(&[]).expect_err("a write");
        assert!(error.to_string().contains("--destroy-data"), "{error}");
        assert!(check(&["--access", "append"]).is_err());
        assert!(check(&["--access", "read"]).is_ok());
        assert!(check(&["--destroy-data"]).is_ok());
    }

    #[test]
    fn a_spread_needs_three_repetitions() {
        let repetition = |arguments: &[&str]| {
            let args = parse(arguments).expect("valid");
            args.measure
                .repetition()
                .map(|r| (r.least, r.most, r.spread_bound))
        };
        assert_eq!(repetition(&[]), Ok((1, 1, None)));
        assert_eq!(repetition(&["--repeat=5"]), Ok((5, 5, None)));
        assert_eq!(repetition(&["--until-spread=2"]), Ok((3, 30, Some(0.02))));
        let both = ["--until-spread=2", "--repeat=4"];
        assert_eq!(repetition(&both), Ok((3, 4, Some(0.02))));
        assert!(repetition(&["--until-spread=2", "--repeat=2"]).is_err());
    }
}
