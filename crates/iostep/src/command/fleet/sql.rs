//! `iostep fleet sql`.

use std::path::PathBuf;
use std::process::ExitCode;

use iostep_report::document::{Block, Detail, Document, Section};

use super::query::{self, QueryArgs};
use crate::terminal;

/// Ask a lake in SQL, which reads it and nothing else.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep fleet sql lake 'SELECT model, count(*) FROM traces GROUP BY model ORDER BY model'
  iostep fleet sql lake 'DESCRIBE segments'")]
pub struct Args {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: PathBuf,

    /// One query; the tables are segments, requests, syncs, traces and results
    // A file's text may begin with a comment.
    #[arg(value_name = "SQL", allow_hyphen_values = true)]
    sql: String,

    #[command(flatten)]
    query: QueryArgs,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let answer = query::ask(&args.lake, &args.sql, &args.query)?;
    if args.query.json {
        terminal::print_json(&terminal::json(&answer.json()))?;
    } else if args.query.csv {
        answer.print_csv()?;
    } else {
        let mut section = Section::default();
        section.push(Block::Table(answer.table(None)));
        let text = Document::of(section).text(Detail::Full, terminal::style());
        terminal::print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}
