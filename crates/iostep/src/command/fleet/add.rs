//! `iostep fleet add`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use iostep_fleet::{Added, Lake, Options, identity};
use iostep_model::bench::Document;
use iostep_model::error::Error;
use iostep_model::manifest::{Manifest, State};
use iostep_model::printable;

use super::go_on;
use crate::error::bad_input;
use crate::input::{self, Kind};
use crate::interrupt::Interrupt;
use crate::terminal;
use crate::trace_dir;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Trace directories, and results of iostep bench -o
    #[arg(value_name = "TRACE|RESULT", required = true)]
    inputs: Vec<PathBuf>,

    /// The lake; made if it is not there
    #[arg(value_name = "LAKE")]
    lake: PathBuf,

    /// Which device they are of, in any words; the lake keeps only a keyed hash
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// The model, instead of what Android says
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// The release, instead of what Android says
    #[arg(long, value_name = "NAME")]
    release: Option<String>,

    /// How full the filesystem was
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    fill: Option<u8>,

    /// Keep paths and command lines, which are hashed otherwise
    #[arg(long)]
    keep_paths: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let kinds: Vec<Kind> = args
        .inputs
        .iter()
        .map(|input| input::expect(input, &[Kind::Trace, Kind::Bench]))
        .collect::<Result<_, _>>()?;
    let options = Options {
        device: args.device.clone(),
        model: args.model.clone(),
        release: args.release.clone(),
        fill_percent: args.fill,
        keep_paths: args.keep_paths,
    };
    let interrupt = Interrupt::install()?;
    let lake = Lake::create(&args.lake)?;
    let mut all = Vec::new();
    for (input, kind) in args.inputs.iter().zip(kinds) {
        if interrupt.came() {
            break;
        }
        let bar = terminal::working(format!(
            "adding {}",
            printable(&input.display().to_string())
        ));
        let stop = || go_on(&args.lake, interrupt.came());
        let added = add(&lake, input, kind, &options, &stop);
        bar.finish_and_clear();
        let added = match added {
            Err(_) if interrupt.came() => break,
            added => added?,
        };
        if !args.json {
            terminal::print(&line(input, &added))?;
        }
        all.push(serde_json::json!({ "file": input.display().to_string(), "added": added }));
    }
    if args.json {
        terminal::print_json(&terminal::json(&all))?;
    }
    if all.len() < args.inputs.len() {
        bail!(
            "interrupted: {} of {} are in the lake",
            all.len(),
            args.inputs.len()
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn add(
    lake: &Lake,
    input: &Path,
    kind: Kind,
    options: &Options,
    stop: &dyn Fn() -> Result<(), Error>,
) -> anyhow::Result<Added> {
    if kind != Kind::Trace && !input.is_dir() {
        let document = Document::read(input).map_err(bad_input)?;
        return Ok(lake.add_result(input, &document, options)?);
    }
    // The tables of a recording whose recorder was killed are made first.
    if Manifest::read(input).map_err(bad_input)?.state == State::Recording {
        drop(trace_dir::open(input)?);
    }
    let id = identity(input)?;
    match lake.find_trace(input, &id)? {
        Some(found) => Ok(found),
        None => Ok(lake.add_trace(input, &id, options, stop)?),
    }
}

fn line(input: &Path, added: &Added) -> String {
    let input = input.display().to_string();
    let date = &added.date;
    let line = match added {
        Added { new: false, .. } => format!("{input}: was there already, below date={date}"),
        Added { results: 0, .. } => format!(
            "{input}: added {} segments, {} requests, {} syncs below date={date}",
            added.segments, added.requests, added.syncs
        ),
        Added { results, .. } => format!("{input}: added {results} runs below date={date}"),
    };
    printable(&line).into_owned() + "\n"
}
