//! The two generators as a command line names them: the one way to a job, also for the cells of a
//! matrix and for profiles.

use std::ffi::OsString;

use clap::Parser;
use iostep_load::Result;
use iostep_model::bench::Job;

use super::file_args::FileArgs;
use super::measure_args::{MeasureArgs, OutputArgs};
use super::sqlite_args::SqliteArgs;

/// What is generated.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Generator {
    /// Read and write files or a block device
    File(Box<FileArgs>),
    /// Run transactions of SQLite
    Sqlite(Box<SqliteArgs>),
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
    /// Errors: `Io` and `Usage`.
    pub fn job(&self) -> Result<Job> {
        match self {
            Generator::File(args) => args.job().map(Job::File),
            Generator::Sqlite(args) => args.job().map(Job::Sqlite),
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
