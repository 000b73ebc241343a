//! `iostep lab run`: the cells of a lab, each on storage of its own, going on where it was.

mod check;
mod here;
mod outcome;
mod schedule;

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use iostep_lab::batch::{Guests, Listener};
use iostep_lab::environment::{Choice, On, polled_blocks};
use iostep_lab::guest::Device;
use iostep_lab::plan::{self, Shard};
use iostep_lab::results::Results;
use iostep_lab::{LoopImage, Measured, enter_private_mounts, is_of_bench_alone};
use iostep_model::lab::{Cell, CellResult, State};
use iostep_model::printable;
use iostep_model::units;

use super::{report, source};
use crate::command::outbox::{Outbox, OutboxArgs};
use crate::command::{bench, elsewhere};
use crate::interrupt::Interrupt;
use crate::shell::shown;
use crate::terminal::{self, say};
use check::check;
use here::Here;
use outcome::Outcome;
use schedule::Schedule;

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
  iostep lab run my.toml --results my --submit http://results.example:7370

Cells whose filesystem this kernel lacks run in a guest under QEMU, and all do
without root. --on loop and a device need root. docs/lab.md has the format of a
lab and what the results mean.")]
pub struct Args {
    /// Name or file
    lab: String,

    /// Directory for the results; made if it is not there
    #[arg(long, value_name = "DIR")]
    results: PathBuf,

    /// Where: auto, loop, tmpfs, guest, a block device, or a directory
    #[arg(
        long,
        visible_alias = "in",
        value_name = "PLACE",
        default_value = "auto"
    )]
    on: String,

    /// Allow overwriting the block devices
    #[arg(long)]
    destroy_data: bool,

    /// Allow a lab of yours to run programs of its own, and to set variables
    #[arg(long)]
    allow_commands: bool,

    /// Second block device, for external journals
    #[arg(long, value_name = "DEVICE")]
    journal_device: Option<PathBuf>,

    /// Device of guests: virtio, nvme, scsi, sd [default: what the cell needs]
    #[arg(long, value_name = "KIND")]
    device: Option<Device>,

    /// Kernel image of guests [default: as iostep lab guest]
    #[arg(long, value_name = "FILE")]
    kernel: Option<PathBuf>,

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

    #[command(flatten)]
    outbox: OutboxArgs,

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
    terminal::check_results(args.json, &args.html)?;
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
    let outbox = args.outbox.open()?;
    let polled = polled_blocks(&lab);
    let mut schedule = Schedule::of(cells, &on, args.journal_device.is_some(), polled);
    if schedule.needs_mounts(&on) {
        // Before any thread is started: only what comes later is inside.
        match check_can_mount(&on).map_err(anyhow::Error::from) {
            Err(refusal) if on == On::Auto && elsewhere::is_for_a_guest(&refusal) => {
                elsewhere::tell(&refusal, "--on loop");
                schedule.move_to_guests();
            }
            checked => checked?,
        }
    }
    let interrupt = Interrupt::install()?;
    let results = Results::open(&args.results, &lab)?;
    tell_of_what_stays(&outbox, &schedule);
    let session = Session::new(args, &on, &results, &interrupt, outbox)?;
    let (outcome, outbox) = session.run(&schedule)?;
    let all = results.finish()?;
    if !args.announce {
        report::show(results.lab(), &all, args.html.as_deref(), args.json)?;
    }
    for line in outcome.lines() {
        say!("iostep: {line}");
    }
    let all_taken = outbox.finish(&interrupt, &shown(&results.directory().to_string_lossy()));
    Ok(ExitCode::from(u8::from(!outcome.is_whole() || !all_taken)))
}

/// Enters mounts of its own, and makes a loop device if cells lie on such. A container may allow
/// the one without the other.
///
/// Errors: `Unsupported`, before any cell fails for it.
fn check_can_mount(on: &On) -> iostep_lab::Result<()> {
    enter_private_mounts()?;
    if matches!(on, On::Auto | On::Loop | On::Tmpfs) {
        LoopImage::create(&iostep_lab::image::Options::default())?;
    }
    Ok(())
}

/// Says which cells a server will not get, before an hour is spent on them.
fn tell_of_what_stays(outbox: &Outbox, schedule: &Schedule) {
    let Some(url) = outbox.url() else { return };
    let asked = schedule.cells.len();
    let cells = schedule.cells.iter();
    let stay = cells.filter(|(cell, _)| !is_of_bench_alone(cell)).count();
    if stay > 0 {
        say!(
            "iostep: {stay} of {asked} cells are not sent to {}: they are not of iostep bench alone, but \
             a replay, a command, or with trace, cpu-load, env or an external journal",
            printable(url)
        );
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
    outbox: Outbox,
}

impl<'a> Session<'a> {
    fn new(
        args: &'a Args,
        on: &'a On,
        results: &'a Results,
        interrupt: &'a Interrupt,
        outbox: Outbox,
    ) -> anyhow::Result<Session<'a>> {
        Ok(Session {
            args,
            results,
            interrupt,
            here: Here::new(args, on, interrupt)?,
            bar: bench::bar(),
            outcome: Outcome::default(),
            outbox,
        })
    }

    fn run(mut self, schedule: &Schedule) -> anyhow::Result<(Outcome, Outbox)> {
        let ahead = self.ahead(schedule)?;
        let asked = schedule.cells.len();
        let done = asked - ahead.len();
        self.outcome = Outcome::of(asked, done);
        self.begin_bar(asked, done);
        let guests = self.guests(schedule)?;
        let in_guests: Vec<&Cell> = ahead
            .iter()
            .filter(|(_, choice)| **choice == Choice::Guest)
            .map(|(cell, _)| *cell)
            .collect();
        if in_guests.len() == ahead.len() {
            // Otherwise the others are done first, and these fail one by one.
            guests.check_prerequisites(&in_guests)?;
        }
        let mut here = Vec::new();
        for (cell, choice) in &ahead {
            match choice {
                Choice::Here => here.push(*cell),
                Choice::NotApplicable(reason) => self.not_applicable(cell, reason)?,
                Choice::Guest => {}
            }
        }
        for cells in plan::in_turns(&here) {
            if !self.interrupt.came() {
                self.here(&cells)?;
            }
        }
        // After the cells of this machine, since a guest leaves it less quiet.
        if !in_guests.is_empty() && !self.interrupt.came() {
            self.bar
                .set_message(format!("{} cells in a guest", in_guests.len()));
            let (results, name) = (self.results, &self.results.lab().name);
            guests.run(name, &in_guests, results.directory(), &mut self)?;
        }
        self.bar.finish_and_clear();
        Ok((self.outcome, self.outbox))
    }

    /// Cells without a result, and all that take turns with one: theirs is of the same rounds.
    fn ahead<'s>(&self, schedule: &'s Schedule) -> anyhow::Result<Vec<(&'s Cell, &'s Choice)>> {
        let mut open = Vec::new();
        for (cell, _) in &schedule.cells {
            let before = self.results.get(cell)?;
            if !before.is_some_and(|result| result.state.is_final()) {
                open.push(cell);
            }
        }
        let keys: HashSet<&str> = open.iter().map(|cell| cell.key.as_str()).collect();
        let is_ahead = |cell: &Cell| {
            let with_open = || open.iter().any(|open| open.takes_turns_with(cell));
            keys.contains(cell.key.as_str()) || (!cell.turns.is_empty() && with_open())
        };
        let cells = schedule.cells.iter().filter(|(cell, _)| is_ahead(cell));
        Ok(cells.map(|(cell, choice)| (cell, choice)).collect())
    }

    fn begin_bar(&self, asked: usize, done: usize) {
        let template = "{bar:20} {pos} of {len} cells{left}: {wide_msg}";
        let style = terminal::bar_style(template);
        self.bar.set_style(style);
        self.bar.set_length(asked as u64);
        self.bar.set_position(done as u64);
        self.bar.reset_eta();
        self.bar.enable_steady_tick(Duration::from_millis(500));
    }

    fn here(&mut self, cells: &[&Cell]) -> anyhow::Result<()> {
        let label = match cells {
            [cell] => plan::label(cell),
            cells => format!("{}: {} cells by turns", cells[0].turns, cells.len()),
        };
        self.bar.set_message(printable(&label).into_owned());
        let results = self.here.run(cells);
        // All are on disk before the first is sent, which may take a minute where nobody answers.
        let files: Vec<Option<PathBuf>> = results
            .iter()
            .map(|measured| self.keep(measured))
            .collect::<anyhow::Result<_>>()?;
        for file in files.into_iter().flatten() {
            self.bar.suspend(|| self.outbox.bring(file));
        }
        Ok(())
    }

    fn not_applicable(&mut self, cell: &Cell, reason: &str) -> anyhow::Result<()> {
        let reason = reason.to_owned();
        let state = State::NotApplicable { reason };
        self.keep(&CellResult::without_runs(cell, state).into())?;
        Ok(())
    }

    fn guests(&self, schedule: &Schedule) -> anyhow::Result<Guests<'a>> {
        Ok(Guests {
            program: std::env::current_exe().context("cannot find iostep itself")?,
            kernel: self.args.kernel.clone(),
            device: self.args.device,
            polled: schedule.polled.clone(),
            time_limit: Duration::from_nanos(self.args.time_limit),
            interrupted: self.interrupt.flag(),
        })
    }

    /// The file that may be sent is returned.
    fn keep(&mut self, measured: &Measured) -> anyhow::Result<Option<PathBuf>> {
        let file = self.results.put(measured)?;
        if self.args.announce {
            terminal::print(&format!("{}\n", measured.result.cell.key))?;
        }
        self.count(&measured.result);
        Ok(file)
    }

    fn count(&mut self, result: &CellResult) {
        self.bar.inc(1);
        self.outcome.count(result);
    }
}

impl Listener for Session<'_> {
    fn result(&mut self, measured: Measured) -> iostep_lab::Result<()> {
        self.count(&measured.result);
        if let Some(file) = self.results.put(&measured)? {
            self.outbox.keep(file);
        }
        Ok(())
    }

    fn fault(&mut self, story: &str) {
        self.bar.suspend(|| say!("iostep: {story}"));
    }
}
