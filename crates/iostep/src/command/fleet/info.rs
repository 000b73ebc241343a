//! `iostep fleet info`.

use std::path::PathBuf;
use std::process::ExitCode;

use iostep_fleet::{Lake, Table};

use crate::terminal;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let lake = Lake::open(&args.lake)?;
    let mut text = String::new();
    let mut all = serde_json::Map::new();
    for table in Table::ALL {
        let totals = lake.totals(table)?;
        text += &format!(
            "{}: {} rows, {} bytes in {} files of {} dates\n",
            table.name(),
            totals.rows,
            totals.bytes,
            totals.files,
            totals.dates
        );
        all.insert(table.name().into(), serde_json::json!(totals));
    }
    match args.json {
        true => terminal::print_json(&terminal::json(&all))?,
        false => terminal::print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}
