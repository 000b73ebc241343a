//! `iostep fleet compact`.

use std::path::PathBuf;
use std::process::ExitCode;

use iostep_fleet::{Compacted, Date, Lake, Sizes, Table};

use super::go_on;
use crate::interrupt::Interrupt;
use crate::terminal;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: PathBuf,

    /// Only this date, as 2026-11-27; repeat it for more
    #[arg(long = "date", value_name = "DATE")]
    dates: Vec<Date>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let lake = Lake::open(&args.lake)?;
    let dates = match args.dates.is_empty() {
        true => lake.dates()?,
        false => args.dates.clone(),
    };
    let stop = || go_on(&args.lake, interrupt.came());
    let mut all = Vec::new();
    for date in dates {
        for table in Table::ALL {
            stop()?;
            let what = format!("{} of {date}", table.name());
            let bar = terminal::working(format!("merging {what}"));
            let done = lake.compact(table, date, Sizes::default(), &stop);
            bar.finish_and_clear();
            let done = done?;
            if !args.json && done.merged_files > 0 {
                terminal::print(&line(&what, &done))?;
            }
            all.push(serde_json::json!({
                "table": table.name(), "date": date.to_string(), "compacted": done,
            }));
        }
    }
    if args.json {
        terminal::print_json(&terminal::json(&all))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(what: &str, done: &Compacted) -> String {
    format!(
        "{what}: {} files of {} bytes are now {} of {} bytes, {} rows\n",
        done.merged_files, done.merged_bytes, done.files, done.bytes, done.rows
    )
}
