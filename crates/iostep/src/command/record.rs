//! `iostep record`: the system calls of a program on files become a trace.

use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use iostep_calls::{Finished, Tracker};
use iostep_model::syscall::text::Writer;
use iostep_model::syscall::{Clock, Header};
use iostep_model::units;
use iostep_trace::rights;
use iostep_trace::syscalls::file_data::FileData;
use iostep_trace::syscalls::{Recorded, Subject, bpf, ptrace, spool};
use iostep_trace::user::User;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::filter_args::FilterArgs;
use crate::child::Child;
use crate::interrupt::Interrupt;
use crate::terminal::{self, say};
use crate::version;

mod summary;

use summary::{Counted, Summary};

/// How often Ctrl-C and the end of the program are looked for.
const TICK: Duration = Duration::from_millis(50);
const RECORDING: &str = "recording {spinner} {elapsed}, {human_pos} calls; Ctrl-C ends it";
const RECORDING_UNCOUNTED: &str = "recording {spinner} {elapsed}; Ctrl-C ends it";

/// Record every system call of a program that touches files.
///
/// All threads and all children are recorded, with the times at which calls began and ended, what
/// they asked for and what they returned, and what the files were before: enough for `iostep
/// replay` to do the same again. The data itself is recorded only with --with-data.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep record -o app.trace -- ./app --once
  iostep record -o app.trace.zst -p $(pidof app)
  iostep record --with-data -o app.trace -- ./app --once
  sudo iostep record -o pg.trace --user postgres -- psql -c 'select 1'

docs/record.md says what is recorded and what cannot be seen.
Needs root, or CAP_BPF and CAP_PERFMON; -p also CAP_SYS_PTRACE. --via ptrace needs
no rights for a command, and for -p those that a debugger needs.")]
#[command(group(clap::ArgGroup::new("subject").required(true).args(["pid", "command"])))]
pub struct Args {
    /// File to write; compressed if its name ends in .zst
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// How to see the calls [default: bpf; with --with-data: ptrace]
    #[arg(long, value_enum)]
    via: Option<Via>,

    /// Keep the data that files held before their first open, in the directory FILE.data: the
    /// program is stopped for that, by ptrace
    #[arg(long)]
    with_data: bool,

    /// Keep at most this much data; files that do not fit are counted
    #[arg(long, value_name = "SIZE", default_value = "1GiB", requires = "with_data", value_parser = units::parse_bytes)]
    data_limit: u64,

    /// Record a process that runs already, and what it starts from now on
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,

    /// Run the command as this user, without any of root's rights
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    user: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Command to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Via {
    /// Programs in the kernel, on the raw tracepoints of system calls
    Bpf,
    /// A stop before and after each call, as slow as strace: without BTF, or without root
    Ptrace,
}

impl Args {
    /// How to see the calls. The data can only be kept by who stops the program before an open.
    fn way(&self) -> iostep_trace::Result<Via> {
        match (self.via, self.with_data) {
            (Some(Via::Bpf), true) => Err(iostep_trace::Error::Usage {
                object: "--via bpf".into(),
                reason: "it sees an open when it is over, and --with-data has to look before; \
                         use --via ptrace"
                    .into(),
            }),
            (None, false) => Ok(Via::Bpf),
            (None, true) => Ok(Via::Ptrace),
            (Some(via), _) => Ok(via),
        }
    }
}

impl Via {
    fn name(self) -> &'static str {
        match self {
            Via::Bpf => "bpf",
            Via::Ptrace => "ptrace",
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let via = args.way()?;
    terminal::check_results(args.json, [&args.output])?;
    args.pid.map_or(Ok(()), FilterArgs::check_process)?;
    let interrupt = Interrupt::install()?;
    let user = args.user.as_deref().map(User::named).transpose()?;
    let keep = || FileData::create(&args.output, args.data_limit);
    let data = args.with_data.then(keep).transpose()?;
    // Before anything is run: a name that cannot be written to is known now.
    let spool = spool::Writer::create(&args.output)?;
    let partial = spool.path().to_owned();
    if spool.is_taken_over() {
        let name = partial.display();
        say!(
            "iostep: {name}: a run that was killed before it recorded anything left it; used again"
        );
    }
    let output = (spool, header(args, via));
    let recorded = match via {
        Via::Bpf => record_bpf(args, user.as_ref(), output, &interrupt),
        Via::Ptrace => record_ptrace(args, user, output, data, &interrupt),
    };
    let written = recorded.and_then(|(recorded, ended)| write(args, recorded, ended));
    let summary = written.map_err(|error| kept(error, &partial, &args.output))?;
    let json = || summary.json(&args.output).to_string();
    let text = || summary.text(&args.output);
    terminal::print_either([&args.output], args.json, json, text)?;
    Ok(match summary.is_whole() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// How the recorded program was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It ended, or was let go as it was meant to be.
    Whole,
    /// It was ended by a signal to this process.
    Interrupted,
}

/// Says where the recording is that has no trace file, as on a full disk; if there is any.
fn kept(error: anyhow::Error, partial: &Path, output: &Path) -> anyhow::Error {
    if !partial.exists() {
        return error;
    }
    // What is no file has it elsewhere.
    let output = match partial.with_extension("") == output {
        true => output,
        false => Path::new("FILE"),
    };
    let (partial, output) = (partial.display(), output.display());
    error.context(format!(
        "the recording stopped early; what it has is kept, and `iostep clean {partial} -o {output}` \
         makes a trace of it where there is room"
    ))
}

/// What the trace says of its maker.
fn header(args: &Args, via: Via) -> Header {
    let system = rustix::system::uname();
    let words = args.command.iter();
    Header {
        recorder: format!("iostep {} {}", version::NUMBER, via.name()),
        machine: format!(
            "Linux {} {}",
            system.release().to_string_lossy(),
            system.machine().to_string_lossy()
        ),
        command: words.map(|word| word.clone().into_bytes()).collect(),
        clock: Clock::default(),
    }
}

fn record_bpf(
    args: &Args,
    user: Option<&User>,
    (spool, header): (spool::Writer, Header),
    interrupt: &Interrupt,
) -> anyhow::Result<(Recorded, End)> {
    let subject = args.pid.map_or(Subject::NextChild, Subject::Process);
    let recorder = bpf::Recorder::start(subject, spool, header)?;
    let bar = progress(RECORDING);
    let mut told = false;
    let mut go_on = || {
        bar.set_position(recorder.records());
        if !told && !recorder.is_recording() {
            told = true;
            bar.suspend(|| say!("iostep: recording stopped; the program goes on"));
        }
        !interrupt.came()
    };
    let end = match args.pid {
        Some(pid) => {
            rights::give_up();
            say!("iostep: recording process {pid}; its end or Ctrl-C ends the recording");
            watch(pid, &mut || go_on() && recorder.is_recording())
        }
        None => run_command(&args.command, user, &mut go_on),
    };
    bar.finish_and_clear();
    let end = match end {
        Ok(end) => end,
        // A recording whose command could not be run is worth nothing.
        Err(error) => {
            recorder.discard();
            return Err(error);
        }
    };
    Ok((recorder.finish()?, end))
}

fn record_ptrace(
    args: &Args,
    user: Option<User>,
    output: (spool::Writer, Header),
    data: Option<FileData>,
    interrupt: &Interrupt,
) -> anyhow::Result<(Recorded, End)> {
    let bar = progress(RECORDING_UNCOUNTED);
    tick(&bar);
    if let Some(pid) = args.pid {
        let recorded = ptrace::process(pid, output, data, interrupt.flag())?;
        bar.finish_and_clear();
        return Ok((recorded, End::Whole));
    }
    let words = args.command.iter().map(Into::into).collect();
    let command = ptrace::Command { words, user };
    let (recorded, status) = ptrace::command(&command, output, data, interrupt.flag())?;
    bar.finish_and_clear();
    if let Some(signal) = status.signal() {
        say!("iostep: {}: killed by signal {signal}", args.command[0]);
    }
    let end = match interrupt.came() {
        true => End::Interrupted,
        false => End::Whole,
    };
    Ok((recorded, end))
}

/// Moves a bar as long as it is there. Not as indicatif does, whose thread would keep all rights.
fn tick(bar: &ProgressBar) {
    let bar = bar.downgrade();
    std::thread::spawn(move || {
        rights::give_up();
        while let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
            bar.tick();
            drop(bar);
            std::thread::sleep(TICK);
        }
    });
}

/// Waits for a process that is not a child to end, or for Ctrl-C.
fn watch(pid: u32, go_on: &mut dyn FnMut() -> bool) -> anyhow::Result<End> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let number = number.with_context(|| format!("{pid}: no number of a process"))?;
    let handle = pidfd_open(number, PidfdFlags::empty());
    let handle = handle.with_context(|| format!("{pid}: cannot watch the process"))?;
    loop {
        let mut handles = [rustix::event::PollFd::new(
            &handle,
            rustix::event::PollFlags::IN,
        )];
        let tick = rustix::event::Timespec::try_from(TICK).context("a timeout out of range")?;
        match rustix::event::poll(&mut handles, Some(&tick)) {
            Ok(0) | Err(rustix::io::Errno::INTR) if go_on() => {}
            Ok(_) | Err(rustix::io::Errno::INTR) => return Ok(End::Whole),
            Err(error) => return Err(error).context("cannot wait for the process"),
        }
    }
}

/// Runs the command until it and what it started have ended.
fn run_command(
    command: &[String],
    user: Option<&User>,
    go_on: &mut dyn FnMut() -> bool,
) -> anyhow::Result<End> {
    let mut child = Child::spawn(command, user)?;
    rights::give_up();
    let mut end = End::Whole;
    while !child.wait(TICK)? {
        if !go_on() {
            end = End::Interrupted;
            child.terminate();
            break;
        }
    }
    while end == End::Whole && child.outlived_by_descendants() {
        if !go_on() {
            end = End::Interrupted;
        }
        std::thread::sleep(TICK);
    }
    if let Some(signal) = child.signal() {
        say!("iostep: {}: killed by signal {signal}", command[0]);
    }
    Ok(end)
}

fn progress(template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = terminal::bar_style(template);
    ProgressBar::new_spinner().with_style(style)
}

/// Makes the trace file of what was recorded.
fn write(args: &Args, mut recorded: Recorded, end: End) -> anyhow::Result<Summary> {
    let header = recorded.spool.beginning.header.clone();
    let writer = Writer::create(&args.output, header)?;
    let mut tracker = Tracker::new(Counted::new(writer));
    tracker.lost(recorded.lost);
    recorded.events::<anyhow::Error>(&mut |event| Ok(tracker.event(event)?))?;
    let Finished {
        sink,
        paths,
        initial,
        ledger,
    } = tracker.finish();
    let kept = recorded.kept.as_ref().map(FileData::counts);
    let summary = Summary::new(&sink, ledger, kept, end == End::Interrupted);
    // First the data: a trace must not name what is not there.
    recorded.kept.map_or(Ok(()), FileData::publish)?;
    sink.writer.finish(&initial, &summary.ledger, &paths)?;
    recorded.spool.remove();
    Ok(summary)
}
