//! The commands, one file each.

#[cfg(feature = "trace")]
mod advise;
mod bench;
#[cfg(feature = "trace")]
mod clean;
mod compare;
#[cfg(feature = "trace")]
mod demo;
#[cfg(feature = "trace")]
mod doctor;
#[cfg(feature = "trace")]
mod elsewhere;
#[cfg(feature = "trace")]
mod explain;
#[cfg(feature = "trace")]
mod filter_args;
#[cfg(feature = "many-devices")]
mod fleet;
#[cfg(feature = "trace")]
mod import;
#[cfg(feature = "trace")]
mod lab;
#[cfg(feature = "trace")]
mod manual;
mod outbox;
#[cfg(feature = "many-devices")]
mod phone;
#[cfg(feature = "trace")]
mod record;
#[cfg(feature = "trace")]
mod replay;
#[cfg(feature = "trace")]
mod report;
#[cfg(feature = "many-devices")]
mod serve;
#[cfg(feature = "trace")]
mod sql_child;
#[cfg(feature = "many-devices")]
mod submit;
#[cfg(feature = "trace")]
mod trace;
#[cfg(feature = "trace")]
mod trace_info;

use std::process::ExitCode;

/// What `iostep` does.
#[cfg(feature = "trace")]
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Find the settings that make a database faster here
    Advise(Box<advise::Args>),
    /// Generate file and SQLite workloads and measure them
    Bench(Box<bench::Args>),
    /// Make a trace of system calls of another tool's trace
    Clean(clean::Args),
    /// Tell whether two results of bench differ, and by how much
    Compare(compare::Args),
    /// Show the journaling of journal on a filesystem of its own
    Demo(demo::Args),
    /// Say what this machine allows, and what to do about the rest
    Doctor(doctor::Args),
    /// Run SQL and explain what each transaction cost
    Explain(explain::Args),
    /// Gather traces and results of many devices as tables for SQL
    #[cfg(feature = "many-devices")]
    Fleet(fleet::Args),
    /// Make a trace of blkparse text and an image of the filesystem
    Import(import::Args),
    /// Run a matrix of experiments, each on storage of its own
    Lab(lab::Args),
    /// Run bench, trace or record on a phone that adb reaches
    #[cfg(feature = "many-devices")]
    Phone(phone::Args),
    /// Record the system calls of a program on files
    Record(record::Args),
    /// Record every block I/O of a device
    Trace(trace::Args),
    /// Show what a trace of system calls holds
    TraceInfo(trace_info::Args),
    /// Perform a recording's system calls again, and compare
    Replay(Box<replay::Args>),
    /// Show what a trace says, or two traces side by side
    Report(report::Args),
    /// Collect results of many devices, and rank them
    #[cfg(feature = "many-devices")]
    Serve(serve::Args),
    /// Bring results of bench to a server
    #[cfg(feature = "many-devices")]
    Submit(submit::Args),
    /// Write the manual pages and the shells' completions for a package
    #[command(name = "__manual", hide = true)]
    Manual(manual::Args),
    /// The process that asks disks for their wear after a recording
    #[command(name = crate::disk_health::COMMAND, hide = true)]
    DiskHealth(crate::disk_health::Args),
    /// The first process of a guest
    #[command(name = iostep_lab::guest::agent::COMMAND, hide = true)]
    GuestAgent,
    /// The process that takes a mount option back
    #[command(name = advise::guard::COMMAND, hide = true)]
    MountGuard(advise::guard::Args),
    /// The process in which `explain` and `demo` run SQL
    #[command(name = "__sql-child", hide = true)]
    SqlChild(sql_child::Args),
}

/// Runs a command of `iostep`.
#[cfg(feature = "trace")]
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Advise(args) => advise::run(&args),
        Command::Bench(args) => bench::run(*args),
        Command::Clean(args) => clean::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Demo(args) => demo::run(args),
        Command::Doctor(args) => doctor::run(&args),
        Command::DiskHealth(args) => crate::disk_health::run(&args),
        Command::Explain(args) => explain::run(args),
        #[cfg(feature = "many-devices")]
        Command::Fleet(args) => fleet::run(&args),
        Command::GuestAgent => match iostep_lab::guest::agent::main()? {},
        Command::Import(args) => import::run(args),
        Command::Lab(args) => lab::run(args),
        Command::Manual(args) => manual::run(&args),
        Command::MountGuard(args) => advise::guard::run(&args),
        #[cfg(feature = "many-devices")]
        Command::Phone(args) => phone::run(args),
        Command::Replay(args) => replay::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Report(args) => report::run(args),
        #[cfg(feature = "many-devices")]
        Command::Serve(args) => serve::run(args),
        #[cfg(feature = "many-devices")]
        Command::Submit(args) => submit::run(&args),
        Command::Trace(args) => trace::run(args),
        Command::TraceInfo(args) => trace_info::run(&args),
        Command::SqlChild(args) => sql_child::run(args),
    }
}

/// What `iostep-bench` does.
#[derive(Debug, clap::Subcommand)]
pub enum OfBench {
    /// Generate file and SQLite workloads and measure them
    Bench(Box<bench::Args>),
    /// Tell whether two results of bench differ, and by how much
    Compare(compare::Args),
}

/// Runs a command of `iostep-bench`.
pub fn run_of_bench(command: OfBench) -> anyhow::Result<ExitCode> {
    match command {
        OfBench::Bench(args) => bench::run(*args),
        OfBench::Compare(args) => compare::run(&args),
    }
}

/// What the user wrote after `iostep`.
fn arguments() -> Vec<String> {
    let all = std::env::args_os().skip(1);
    all.map(|argument| argument.to_string_lossy().into_owned())
        .collect()
}

/// A command's arguments, from what stands behind its name.
#[cfg(test)]
fn parsed<A: clap::Args>(arguments: &[&str]) -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("iostep").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(arguments)?)
}
