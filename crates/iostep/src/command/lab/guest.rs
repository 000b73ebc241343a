//! `iostep lab guest`: any command in a kernel of its own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use iostep_lab::guest::{
    self, Accelerator, Backing, Command, Device, Exit, Options, Output, Status,
};
use iostep_model::units;
use serde::Serialize;

use crate::interrupt::Interrupt;
use crate::passing;
use crate::terminal;

/// Run a command as root in a stock kernel under QEMU, on this machine's files.
///
/// The guest sees this machine's root read-only; /tmp, /var/tmp and /run are memory of its own.
/// Its devices are empty and go with it. Times taken in an emulated guest are not those of
/// hardware; counts, bytes and orders are exact.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep lab guest -- uname -a
  iostep lab guest --rw results -- sh -c 'mkfs.f2fs -q /dev/vda &&
    mount /dev/vda /mnt &&
    iostep trace /mnt --settle -o results/f2fs -- cp -r /etc /mnt'
  iostep lab guest --device nvme --size 2GiB --journal-size 128MiB -- lsblk

Devices: virtio /dev/vda (journal /dev/vdb), nvme /dev/nvme0n1 (nvme0n2),
sd /dev/mmcblk0 (mmcblk1). Exit status: the command's; 128 + N if signal N ended
it; 1 the guest failed, 2 bad usage, 4 this machine cannot do it.
Needs QEMU, a kernel and busybox-static, which scripts/setup installs; no root.")]
pub struct Args {
    /// Kind of the storage device: virtio, nvme, scsi, sd
    #[arg(long, value_name = "KIND", default_value = "virtio")]
    device: Device,

    /// Size of the device
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = units::parse_bytes)]
    size: u64,

    /// Use this image file as the device, and keep what is written
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    image: Option<PathBuf>,

    /// Add a second device of this size, for a journal
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    journal_size: Option<u64>,

    /// Let the guest write to this directory (may be repeated)
    #[arg(long, value_name = "DIR")]
    rw: Vec<PathBuf>,

    /// Set a variable for the command, or pass on this one's (may be repeated)
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,

    /// Memory
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = units::parse_bytes)]
    memory: u64,

    /// Processors
    #[arg(long, value_name = "N", default_value = "2")]
    cpus: u32,

    /// Kernel image [default: this machine's, the newest in /boot, or the one of scripts/setup]
    #[arg(long, value_name = "FILE")]
    kernel: Option<PathBuf>,

    /// The guest's root, with programs for its kernel's processor
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,

    /// iostep for that processor, a static one: /iostep in the guest
    #[arg(long, value_name = "FILE", requires = "root")]
    agent: Option<PathBuf>,

    /// Who executes it
    #[arg(long, value_enum, default_value_t = Kvm::Auto)]
    kvm: Kvm,

    /// End it after this time
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration_ns)]
    time_limit: Option<u64>,

    /// Print JSON, with what the command printed
    #[arg(long)]
    json: bool,

    /// Command to run, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kvm {
    /// The processor where a guest comes up on it, else emulation
    Auto,
    /// The processor
    On,
    /// Emulation
    Off,
}

impl From<Kvm> for Accelerator {
    fn from(kvm: Kvm) -> Accelerator {
        match kvm {
            Kvm::Auto => Accelerator::Auto,
            Kvm::On => Accelerator::Kvm,
            Kvm::Off => Accelerator::None,
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let command = Command {
        words: args.command.clone(),
        environment: passing::environment(&args.env),
        directory: std::env::current_dir().context("cannot find the working directory")?,
    };
    let stop = interrupt.flag();
    if args.json {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut output = Output {
            stdout: &mut stdout,
            stderr: &mut stderr,
        };
        let exit = guest::run(&args.options(), &command, &mut output, stop)?;
        let outcome = Outcome::new(&exit, &stdout, &stderr);
        terminal::print_json(&terminal::json(&outcome))?;
        return Ok(passing::status(exit.status));
    }
    passing::pass_on(&args.options(), &command, stop)
}

impl Args {
    fn options(&self) -> Options {
        let device = match &self.image {
            Some(path) => Backing::Image(path.clone()),
            None => Backing::New(self.size),
        };
        Options {
            kernel: self.kernel.clone(),
            agent: self.agent.clone(),
            root: self.root.clone(),
            accelerator: self.kvm.into(),
            memory_bytes: self.memory,
            cpus: self.cpus,
            device: self.device,
            backings: [device]
                .into_iter()
                .chain(self.journal_size.map(Backing::New))
                .collect(),
            shares: self.rw.clone(),
            time_limit: self.time_limit.map(Duration::from_nanos),
            ..Options::default()
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Outcome<'a> {
    /// The command's exit status; `null` if a signal ended it.
    status: Option<u8>,
    signal: Option<u8>,
    kernel: &'a str,
    emulated: bool,
    restarts: u32,
    boot_seconds: f64,
    run_seconds: f64,
    stdout: String,
    stderr: String,
}

impl<'a> Outcome<'a> {
    fn new(exit: &'a Exit, stdout: &[u8], stderr: &[u8]) -> Outcome<'a> {
        let (status, signal) = match exit.status {
            Status::Exited(status) => (Some(status), None),
            Status::Killed(signal) => (None, Some(signal)),
        };
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Outcome {
            status,
            signal,
            kernel: &exit.kernel,
            emulated: exit.emulated,
            restarts: exit.restarts,
            boot_seconds: exit.boot.as_secs_f64(),
            run_seconds: exit.run.as_secs_f64(),
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }
}
