//! `bench/waldio`: waldio beside stock SQLite, the device's floor and other stores, on the same
//! filesystems by turns. The script of that name compiles the drivers and starts this.

mod bench;
mod goal;
mod ground;
mod others;
mod page;
mod report;
mod sample;
mod stats;
mod table;
mod tables;
mod volume;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use clap::Parser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use bench::{Bench, Pace, Programs};
use others::Ticks;
use report::Measured;
use table::{Place, Table};

/// Measure waldio beside stock SQLite, the device's floor and other stores.
///
/// Every table is measured by turns: a round is each of its rows once, every round in another
/// order. Ratios are those within a round; all figures are medians of the rounds.
#[derive(Parser)]
#[command(name = "bench/waldio")]
struct Arguments {
    /// The command iostep
    iostep: PathBuf,
    /// Where the script has put the drivers
    #[arg(long, value_name = "DIR", hide = true)]
    drivers: PathBuf,
    /// Only these tables
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tables: Vec<String>,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// A third of the time for each run
    #[arg(long)]
    quick: bool,
    /// Directory of the filesystems' images
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    images: PathBuf,
    /// Write all figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put the tables into this page, between their marks
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// List the tables
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench/waldio: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let tables = chosen(&arguments.tables)?;
    if arguments.list {
        println!("{:16} {}", volume::NAME, volume::TITLE);
        for table in tables::all() {
            println!("{:16} {}", table.name, table.title);
        }
        return Ok(());
    }
    iostep_lab::enter_private_mounts()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .context("cannot catch signals")?;
    }
    let mut bench = new_bench(arguments, interrupted);
    let about = prepare(&mut bench, &tables)?;
    println!("{about}");
    let volumes = match wanted(&arguments.tables, volume::NAME) {
        true => Some(explain(&mut bench)?),
        false => None,
    };
    let measured = measure_all(&mut bench, &tables)?;
    println!("## Goals\n\n{}", report::summary(&measured));
    if let Some(path) = &arguments.json {
        let text = serde_json::json!({ "about": about, "table1": volumes, "tables": measured });
        std::fs::write(path, format!("{text:#}\n")).with_context(|| path.display().to_string())?;
    }
    let Some(path) = &arguments.markdown else {
        return Ok(());
    };
    let mut blocks: Vec<(&str, String)> = Vec::new();
    blocks.extend(volumes.map(|volumes| (volume::NAME, volume::markdown(&volumes))));
    blocks.extend(measured.iter().map(|t| (t.name.as_str(), t.markdown())));
    // With fewer tables the summary would forget goals.
    if blocks.len() == tables::all().len() + 1 {
        blocks.push(("about", about));
        blocks.push(("goals", report::summary(&measured)));
    } else {
        eprintln!("bench/waldio: not all tables were measured; the summary stays as it is");
    }
    write_page(path, &blocks)
}

fn wanted(names: &[String], name: &str) -> bool {
    names.is_empty() || names.iter().any(|wanted| wanted == name)
}

fn chosen(names: &[String]) -> Result<Vec<Table>> {
    let all = tables::all();
    for name in names {
        if name != volume::NAME && all.iter().all(|table| table.name != *name) {
            bail!("{name}: no such table; see --list");
        }
    }
    let chosen = |table: &Table| wanted(names, &table.name);
    Ok(all.into_iter().filter(chosen).collect())
}

fn new_bench(arguments: &Arguments, interrupted: Arc<AtomicBool>) -> Bench {
    let (ms, long_ms) = if arguments.quick {
        (70, 140)
    } else {
        (200, 400)
    };
    let pace = Pace {
        rounds: arguments.rounds as usize,
        ms,
        long_ms,
        count: 100,
    };
    let programs = Programs {
        iostep: arguments.iostep.clone(),
        drivers: arguments.drivers.clone(),
    };
    Bench::new(programs, pace, &arguments.images, interrupted)
}

/// Makes all filesystems, and measures the floor, for the number of transactions of a run; the
/// answer is a line about all.
fn prepare(bench: &mut Bench, tables: &[Table]) -> Result<String> {
    for table in tables {
        bench.make_ground(table.place)?;
    }
    let floor_us = bench.steady_floor(Place::Image(iostep_lab::Kind::Ext4))?;
    bench.pace.count = Pace::count_for(floor_us);
    let Pace {
        rounds,
        ms,
        long_ms,
        count,
    } = bench.pace;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    Ok(format!(
        "Linux {}, {cpus} CPUs; filesystems on loop devices, whose images are in {}; {rounds} \
         rounds; {ms} ms a run, {long_ms} ms with several writers, or {count} transactions. A \
         write of 4 KiB with its flush took {:.0} µs at the start.\n",
        release.trim().split('-').next().unwrap_or_default(),
        bench.images().display(),
        floor_us
    ))
}

fn measure_all(bench: &mut Bench, tables: &[Table]) -> Result<Vec<Measured>> {
    let mut all = Vec::new();
    for table in tables {
        println!("## {} ({})\n", table.title, table.name);
        if !bench.can_measure(table) {
            println!("Left out: LMDB and RocksDB are not installed.\n");
            continue;
        }
        let before = Ticks::now()?;
        let samples = bench.measure(table)?;
        let mut measured = Measured::new(table, samples, &bench.pace);
        measured.others_percent = Ticks::now()?.others_since(before);
        println!("{}", measured.markdown());
        all.push(measured);
    }
    Ok(all)
}

fn explain(bench: &mut Bench) -> Result<Vec<volume::Volume>> {
    println!("## {} ({})\n", volume::TITLE, volume::NAME);
    let volumes = bench.explain(Place::Image(iostep_lab::Kind::Ext4))?;
    println!("{}", volume::markdown(&volumes));
    Ok(volumes)
}

fn write_page(path: &Path, blocks: &[(&str, String)]) -> Result<()> {
    let name = || path.display().to_string();
    let mut page = std::fs::read_to_string(path).with_context(name)?;
    for (block, text) in blocks {
        page = page::replace(&page, block, text).with_context(name)?;
    }
    std::fs::write(path, page).with_context(name)
}
