//! `iostep lab run`: the cells of a lab, each on storage of its own, going on where it was.

mod here;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use iostep_lab::batch::Guests;
use iostep_lab::environment::{Choice, Host, On, polled_blocks};
use iostep_lab::guest::Device;
use iostep_lab::plan::{self, Shard};
use iostep_lab::results::Results;
use iostep_lab::{Error, GivenDevice, enter_private_mounts};
use iostep_model::lab::{Cell, CellResult, State};
use iostep_model::units;

use super::{report, source};
use crate::command::bench;
use crate::interrupt::Interrupt;
use crate::terminal;
use here::Here;

/// Run the cells of a lab that have no result yet.
///
/// LAB is the name of a built-in lab, a TOML file, or the lab.json of a directory of results. Each
/// cell leaves its result in DIR as soon as it is done, so the same command goes on after a kill.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep lab run matrix --results matrix --html matrix.html
  iostep lab run my.toml --results my --on /dev/sdb --destroy-data
  iostep lab run table1 --results here --on /mnt/phone

Cells whose filesystem this kernel lacks run in a guest under QEMU. Needs root,
but for --on guest and a directory. docs/lab.md has the format of a lab and what
the results mean.")]
pub struct Args {
    /// Name or file
    lab: String,

    /// Directory for the results; made if it is not there
    #[arg(long, value_name = "DIR")]
    results: PathBuf,

    /// Where: auto, loop, tmpfs, guest, a block device, or a directory
    #[arg(long, value_name = "PLACE", default_value = "auto")]
    on: String,

    /// Allow overwriting the block devices
    #[arg(long)]
    destroy_data: bool,

    /// Second block device, for external journals
    #[arg(long, value_name = "DEVICE")]
    journal_device: Option<PathBuf>,

    /// Device of guests: virtio, nvme, sd [default: what the cell needs]
    #[arg(long, value_name = "KIND")]
    device: Option<Device>,

    /// Run this share of the cells: 2/8
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,

    /// Run each cell this often, whatever the lab says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: Option<u32>,

    /// Run the cells with these keys
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    cells: Vec<String>,

    /// What a cell may take
    #[arg(long, value_name = "DURATION", default_value = "10m",
          value_parser = units::parse_duration_ns)]
    time_limit: u64,

    /// Write the report as one page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,

    /// Print the key of each cell when its result is there, and no report: how a guest tells
    #[arg(long, hide = true)]
    announce: bool,
}

/// Runs the command.
///
/// Errors: `Usage` for anything wrong in the lab, and for a device that must not be overwritten,
/// before anything runs; `Refused` if another process uses the directory of results.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut lab = source::load(&args.lab)?;
    if let Some(repeat) = args.repeat {
        lab = plan::with_repeat(lab, repeat);
    }
    let cells: Vec<Cell> = plan::select(&lab, args.shard, &args.cells)?
        .into_iter()
        .cloned()
        .collect();
    let on: On = args.on.parse()?;
    check(args, &on, &cells)?;
    let polled = polled_blocks(&lab);
    let schedule = Schedule::of(cells, &on, args.journal_device.is_some(), polled);
    if schedule.needs_mounts(&on) {
        // Before any thread is started: only what comes later is inside.
        enter_private_mounts()?;
    }
    let interrupt = Interrupt::install()?;
    let results = Results::open(&args.results, &lab)?;
    let outcome = Session::new(args, &on, &results, &interrupt)?.run(&schedule)?;
    let all = results.finish()?;
    if !args.announce {
        report::show(results.lab(), &all, args.html.as_deref(), args.json)?;
    }
    outcome.tell(&schedule);
    Ok(ExitCode::from(u8::from(!outcome.is_whole(&schedule))))
}

/// What can be wrong before anything is done.
fn check(args: &Args, on: &On, cells: &[Cell]) -> anyhow::Result<()> {
    if let Some(path) = &args.html {
        bench::check_parent(path)?;
    }
    let On::Device(device) = on else {
        return match &args.journal_device {
            Some(journal) => Err(Error::Usage {
                what: format!("--journal-device {}: no --on device", journal.display()),
                hint: "name the device of the filesystem with --on".into(),
            }
            .into()),
            None => Ok(()),
        };
    };
    if !args.destroy_data {
        return Err(Error::Usage {
            what: format!(
                "{}: every cell would destroy what it holds",
                device.display()
            ),
            hint: "pass --destroy-data if that is meant".into(),
        }
        .into());
    }
    let largest = cells.iter().map(|cell| cell.storage.device_bytes).max();
    GivenDevice::take(device)?.check_holds(largest.unwrap_or(0))?;
    if let Some(journal) = &args.journal_device {
        GivenDevice::take(journal)?;
    }
    Ok(())
}

/// Every cell with what is to be done with it, in the order of the lab.
struct Schedule {
    cells: Vec<(Cell, Choice)>,
    /// Blocks whose cells need a device that can be polled.
    polled: BTreeSet<String>,
}

impl Schedule {
    fn of(cells: Vec<Cell>, on: &On, journal: bool, polled: BTreeSet<String>) -> Schedule {
        let mut host = Host::new();
        let chosen = cells.into_iter().map(|cell| {
            let choice = host.choose(&cell, on, journal, &polled);
            (cell, choice)
        });
        Schedule {
            cells: chosen.collect(),
            polled,
        }
    }

    /// True if anything will be mounted by this process.
    fn needs_mounts(&self, on: &On) -> bool {
        let mut cells = self.cells.iter();
        let here = cells.any(|(_, choice)| *choice == Choice::Here);
        here && !matches!(on, On::Directory(_))
    }

    fn len(&self) -> usize {
        self.cells.len()
    }
}

/// What became of the cells that were asked for.
#[derive(Default)]
struct Outcome {
    /// How many are done, those of earlier runs included.
    done: usize,
    /// Why others are not, by label.
    failures: Vec<(String, String)>,
}

impl Outcome {
    fn is_whole(&self, schedule: &Schedule) -> bool {
        self.done == schedule.len()
    }

    /// Says on standard error why the exit status will not be 0.
    fn tell(&self, schedule: &Schedule) {
        for (label, reason) in &self.failures {
            eprintln!("iostep: {label}: {reason}");
        }
        let missing = schedule.len() - self.done;
        if missing > 0 {
            eprintln!(
                "iostep: {missing} of {} cells have no complete result; the same command runs them",
                schedule.len()
            );
        }
    }
}

/// One run of the command.
struct Session<'a> {
    args: &'a Args,
    results: &'a Results,
    interrupt: &'a Interrupt,
    here: Here<'a>,
    bar: ProgressBar,
    outcome: Outcome,
}

impl<'a> Session<'a> {
    fn new(
        args: &'a Args,
        on: &'a On,
        results: &'a Results,
        interrupt: &'a Interrupt,
    ) -> anyhow::Result<Session<'a>> {
        Ok(Session {
            args,
            results,
            interrupt,
            here: Here::new(args, on, interrupt)?,
            bar: bench::bar(),
            outcome: Outcome::default(),
        })
    }

    fn run(mut self, schedule: &Schedule) -> anyhow::Result<Outcome> {
        let template = "{bar:20} {pos} of {len} cells, {eta} left: {wide_msg}";
        let style = ProgressStyle::with_template(template).expect("the template is a constant");
        self.bar.set_style(style);
        self.bar.set_length(schedule.len() as u64);
        let mut ahead = Vec::new();
        for (cell, choice) in &schedule.cells {
            let before = self.results.get(cell)?;
            match before.is_some_and(|result| result.state.is_final()) {
                true => self.outcome.done += 1,
                false => ahead.push((cell, choice)),
            }
        }
        self.bar.set_position(self.outcome.done as u64);
        self.bar.reset_eta();
        self.bar.enable_steady_tick(Duration::from_millis(500));
        for (cell, choice) in &ahead {
            match choice {
                _ if self.interrupt.came() => break,
                Choice::Here => self.here(cell)?,
                Choice::NotApplicable(reason) => self.not_applicable(cell, reason)?,
                Choice::Guest => {}
            }
        }
        self.guests(schedule, &ahead)?;
        self.bar.finish_and_clear();
        Ok(self.outcome)
    }

    fn here(&mut self, cell: &Cell) -> anyhow::Result<()> {
        self.bar.set_message(plan::label(cell));
        let result = self.here.run(cell);
        self.keep(&result)
    }

    fn not_applicable(&mut self, cell: &Cell, reason: &str) -> anyhow::Result<()> {
        self.keep(&CellResult {
            cell: cell.clone(),
            state: State::NotApplicable {
                reason: reason.to_owned(),
            },
            environment: None,
            runs: Vec::new(),
        })
    }

    /// After the cells of this machine, since a guest leaves it less quiet.
    fn guests(&mut self, schedule: &Schedule, ahead: &[(&Cell, &Choice)]) -> anyhow::Result<()> {
        let cells: Vec<&Cell> = ahead
            .iter()
            .filter(|(_, choice)| **choice == Choice::Guest)
            .map(|(cell, _)| *cell)
            .collect();
        if cells.is_empty() || self.interrupt.came() {
            return Ok(());
        }
        self.bar
            .set_message(format!("{} cells in a guest", cells.len()));
        let guests = Guests {
            program: std::env::current_exe().context("cannot find iostep itself")?,
            device: self.args.device,
            polled: schedule.polled.clone(),
            time_limit: Duration::from_nanos(self.args.time_limit),
            interrupted: self.interrupt.flag(),
        };
        let (results, name) = (self.results, self.results.lab().name.clone());
        let mut keep = |result: CellResult| {
            self.count(&result);
            results.put(&result)
        };
        Ok(guests.run(&name, &cells, results.directory(), &mut keep)?)
    }

    fn keep(&mut self, result: &CellResult) -> anyhow::Result<()> {
        self.results.put(result)?;
        if self.args.announce {
            terminal::print(&format!("{}\n", result.cell.key))?;
        }
        self.count(result);
        Ok(())
    }

    fn count(&mut self, result: &CellResult) {
        self.bar.inc(1);
        if result.state.is_final() {
            self.outcome.done += 1;
        } else if let Some(reason) = result.state.reason() {
            let label = plan::label(&result.cell);
            self.outcome.failures.push((label, reason.to_owned()));
        }
    }
}
