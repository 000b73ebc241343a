//! `iostep lab list`: the labs that are built in, and the cells of one.

use std::process::ExitCode;

use iostep_lab::builtin::LABS;
use iostep_lab::plan;
use iostep_model::lab::{Cell, Lab};
use iostep_model::printable;

use super::source;
use crate::terminal;

/// Name the labs that are built in, or the cells of one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep lab list
  iostep lab list matrix")]
pub struct Args {
    /// A lab, by name or file: its cells are listed
    lab: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let labs = match &args.lab {
        Some(lab) => vec![source::load(lab)?],
        None => LABS
            .iter()
            .map(|lab| source::load(lab.name))
            .collect::<Result<_, _>>()?,
    };
    match (args.json, &args.lab) {
        (true, _) => terminal::print_json(&terminal::json(&labs)),
        (false, Some(_)) => terminal::print(&labs.iter().map(cells).collect::<String>()),
        (false, None) => terminal::print(&titles(&labs)),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn titles(labs: &[Lab]) -> String {
    let width = labs.iter().map(|lab| lab.name.len()).max().unwrap_or(0);
    let line = |lab: &Lab| {
        let (name, title, cells) = (&lab.name, &lab.title, lab.cells.len());
        format!("{name:width$}  {cells:>4} cells  {title}\n")
    };
    labs.iter().map(line).collect()
}

fn cells(lab: &Lab) -> String {
    let line = |cell: &Cell| {
        let line = format!("{}  {}", cell.key, plan::label(cell));
        printable(&line).into_owned() + "\n"
    };
    lab.cells.iter().map(line).collect()
}
