//! `iostep phone`: the commands of iostep on a phone that adb reaches.

mod adb;
mod device;
mod errand;
mod fetch;
mod program;
mod status;

use std::path::PathBuf;
use std::process::ExitCode;

use adb::Adb;
use errand::ErrandArgs;

/// Run bench, trace or record on a phone that adb reaches, and fetch the result.
///
/// adb of the PATH is what talks to the phone. Whatever is made there is removed, but for the
/// program.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep phone status
  iostep phone --program dist/iostep-0.1.0-aarch64-linux bench -o phone.json -- \\
      sqlite /data/local/tmp --journal wal --repeat 5
  iostep phone trace -o app.iostep --html app.html -- /data --duration 30s --settle
  iostep phone record -o app.trace -- -p 4711

Exit status: that of the command on the phone; 1 if adb or the phone fails, 2 bad usage,
4 the phone cannot do it.
docs/phone.md explains it.")]
pub struct Args {
    #[command(flatten)]
    phone: PhoneArgs,

    #[command(subcommand)]
    command: Command,
}

/// Which phone, and what of iostep is there.
#[derive(Debug, clap::Args)]
struct PhoneArgs {
    /// The phone, as adb devices has it [default: the only one]
    #[arg(short, long, value_name = "SERIAL", global = true)]
    serial: Option<String>,

    /// A static iostep for the phone's processor, which is pushed there if it is another one
    /// [default: what is there]
    #[arg(long, value_name = "FILE", global = true)]
    program: Option<PathBuf>,

    /// Where on the phone the program and its results are, without blanks
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/data/local/tmp/iostep",
        value_parser = adb::directory,
        global = true
    )]
    directory: String,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Say what the phone can do
    Status(status::Args),
    /// Run iostep bench there
    Bench(ErrandArgs),
    /// Run iostep trace there, as root
    Trace(ErrandArgs),
    /// Run iostep record there, as root
    Record(ErrandArgs),
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let adb = Adb::new(args.phone.serial.clone())?;
    match &args.command {
        Command::Status(status) => status::run(&adb, &args.phone, status),
        Command::Bench(errand) => errand::run(&adb, &args.phone, errand::Kind::Bench, errand),
        Command::Trace(errand) => errand::run(&adb, &args.phone, errand::Kind::Trace, errand),
        Command::Record(errand) => errand::run(&adb, &args.phone, errand::Kind::Record, errand),
    }
}
