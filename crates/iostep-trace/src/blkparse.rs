//! Events from blkparse's default text: what somebody else recorded with blktrace.
//!
//! | field | form |
//! |---|---|
//! | device | `major,minor` |
//! | CPU | number |
//! | sequence | number |
//! | time | seconds `.` nanoseconds |
//! | process | id |
//! | action | `Q` queued, `D` issued, `C` complete, `R` requeued, `X` split, ... |
//! | operation | [`iostep_model::operation::rwbs`] |
//! | place | first sector, `+` sectors; `/` second sector for a split |
//! | end | `[command]`, or `[error]` of a completion |
//!
//! Source: blktrace 1.2.0, `blkparse_fmt.c`, `process_default`, and blkparse(1).
//!
//! Every line is either kept as an event or counted under the reason why it is not.

mod line;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use iostep_model::event::{Completion, Content, Event, Process, Queue, Segment, Transfer};
use iostep_model::{Error as ModelError, Flags, Operation};

use crate::error::{Error, Result};
use line::{Action, Line};

/// blkparse's lines are about 80 bytes; messages of I/O schedulers are longer.
const MAX_LINE_BYTES: u64 = 4096;

/// The time that blkparse's 0 becomes: a queue time of 0 would mean that nobody saw it.
pub const ZERO_NS: u64 = 1_000_000_000;

/// A block device by its numbers.
pub type Device = (u32, u32);

/// What a text held.
#[derive(Debug)]
pub struct Recording {
    /// The events, in the order of the text.
    pub events: Vec<Event>,
    /// The device that they belong to.
    pub device: Device,
    /// Events that blkparse says it had to skip.
    pub skipped: u64,
    /// What became of every line.
    pub ledger: Ledger,
}

/// Why a line is not an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LeftOut {
    /// Empty, a `#` comment, or blkparse's own notice before the first event.
    Notice,
    /// The summary behind the last event.
    Summary,
    /// A merge (`M`, `F`): the bio has its own queue line.
    Merge,
    /// A plug or unplug (`P`, `U`, `UT`).
    Plug,
    /// A request got, waited for or put into the scheduler (`G`, `S`, `I`).
    Scheduler,
    /// A bio on its way from a partition or an upper device (`A`), or a bounce (`B`).
    Remap,
    /// A message (`m`).
    Message,
    /// A driver's own command: it moves no sectors.
    DriverCommand,
    /// Another device than the one asked for.
    OtherDevice,
    /// The last line, which ends in the middle.
    CutOff,
}

impl LeftOut {
    /// The name shown to people.
    pub fn name(self) -> &'static str {
        match self {
            LeftOut::Notice => "notice",
            LeftOut::Summary => "summary",
            LeftOut::Merge => "merge",
            LeftOut::Plug => "plug",
            LeftOut::Scheduler => "scheduler",
            LeftOut::Remap => "remap",
            LeftOut::Message => "message",
            LeftOut::DriverCommand => "driver command",
            LeftOut::OtherDevice => "other device",
            LeftOut::CutOff => "cut off",
        }
    }
}

/// What became of every line: `lines` is `kept` and the sum of `left_out`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Lines read.
    pub lines: u64,
    /// Lines that are events now.
    pub kept: u64,
    /// The others, by reason.
    pub left_out: BTreeMap<LeftOut, u64>,
}

impl Ledger {
    /// How many lines were left out for one reason.
    pub fn left_out(&self, reason: LeftOut) -> u64 {
        self.left_out.get(&reason).copied().unwrap_or(0)
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines = {} kept", self.lines, self.kept)?;
        for (reason, lines) in &self.left_out {
            write!(f, " + {lines} {}", reason.name())?;
        }
        Ok(())
    }
}

/// Reads a file of blkparse text.
///
/// Errors: as [`parse`], and `Io` if the file cannot be opened.
pub fn read(path: &Path, device: Option<Device>) -> Result<Recording> {
    let file = std::fs::File::open(path).map_err(Error::io(path, "open"))?;
    parse(std::io::BufReader::new(file), path, device)
}

/// Reads blkparse text. `name` is for errors; `device` chooses one if the text has several.
///
/// Memory: the events, and one line of at most 4096 bytes.
/// Errors: `Io`; `Usage` if the text has several devices and none was chosen, or not the chosen one;
/// `Trace` for text that is not in blkparse's default format, and, with its number, for a line that
/// does not decode.
pub fn parse(input: impl BufRead, name: &Path, device: Option<Device>) -> Result<Recording> {
    let mut reader = Reader {
        name: name.to_owned(),
        wanted: device,
        found: None,
        ledger: Ledger::default(),
        events: Vec::new(),
        threads: HashMap::new(),
        skipped: 0,
        flushes: Flushes::default(),
    };
    reader.read(input)?;
    reader.finish()
}

struct Reader {
    name: PathBuf,
    wanted: Option<Device>,
    /// The first device in the text.
    found: Option<Device>,
    ledger: Ledger,
    events: Vec<Event>,
    /// The last name of every thread.
    threads: HashMap<u32, Vec<u8>>,
    skipped: u64,
    flushes: Flushes,
}

impl Reader {
    fn read(&mut self, mut input: impl BufRead) -> Result<()> {
        let mut text = Vec::new();
        loop {
            text.clear();
            let bytes = input
                .by_ref()
                .take(MAX_LINE_BYTES + 1)
                .read_until(b'\n', &mut text)
                .map_err(Error::io(&self.name, "read"))?;
            if bytes == 0 {
                return Ok(());
            }
            self.ledger.lines += 1;
            if bytes as u64 > MAX_LINE_BYTES {
                let reason = format!("longer than {MAX_LINE_BYTES} bytes");
                return Err(self.damage("length", reason));
            }
            let whole = text.pop_if(|last| *last == b'\n').is_some();
            match self.line(&text) {
                Ok(None) => self.ledger.kept += 1,
                Ok(Some(reason)) => self.leave_out(reason),
                Err(Error::Trace(ModelError::Corrupt { .. })) if !whole => {
                    self.leave_out(LeftOut::CutOff)
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn leave_out(&mut self, reason: LeftOut) {
        *self.ledger.left_out.entry(reason).or_default() += 1;
    }

    /// Takes a line; the reason if it is none to keep.
    fn line(&mut self, text: &[u8]) -> Result<Option<LeftOut>> {
        let Some(device) = line::device(text) else {
            return self.no_event(text).map(Some);
        };
        let (major, minor) = *self.found.get_or_insert(device);
        match self.wanted {
            Some(wanted) if wanted != device => return Ok(Some(LeftOut::OtherDevice)),
            None if (major, minor) != device => {
                let second = format!("{},{}", device.0, device.1);
                let reason = format!("devices {major},{minor} and {second}; choose with --device");
                return Err(Error::usage(self.name.display(), reason));
            }
            _ => {}
        }
        let line = Line::decode(text).map_err(|(field, reason)| {
            if self.ledger.kept == 0 {
                return not_default(
                    &self.name,
                    format!("line {} is no event", self.ledger.lines),
                );
            }
            self.damage(field, reason)
        })?;
        self.event(&line)
    }

    /// A line that does not begin with a device's numbers.
    fn no_event(&mut self, text: &[u8]) -> Result<LeftOut> {
        let text = text.trim_ascii();
        let notice = [&b"#"[..], b"Input file "];
        if text.is_empty() || notice.iter().any(|start| text.starts_with(start)) {
            return Ok(LeftOut::Notice);
        }
        if self.found.is_none() {
            return Err(not_default(
                &self.name,
                format!("line {} is no event", self.ledger.lines),
            ));
        }
        if let Some(skips) = text.strip_prefix(b"Skips: ") {
            self.skipped = self.skipped.saturating_add(line::skipped(skips));
        }
        Ok(LeftOut::Summary)
    }

    fn event(&mut self, line: &Line<'_>) -> Result<Option<LeftOut>> {
        let transfer = match line.action {
            Action::LeftOut(reason) => return Ok(Some(reason)),
            Action::Split { sector } => {
                let mono_ns = line.mono_ns;
                self.events.push(Event::Split { mono_ns, sector });
                return Ok(None);
            }
            _ => Transfer {
                mono_ns: line.mono_ns,
                sector: line.sector,
                bytes: line.bytes,
                operation: line.operation,
                flags: line.flags,
            },
        };
        match line.action {
            Action::Queue => {
                self.process(line);
                self.flushes.queued(&transfer);
                self.events.push(Event::Queue(queue(line, &transfer)));
            }
            Action::Issue => {
                self.flushes.issued(&transfer);
                self.events.push(Event::Issue(transfer));
            }
            Action::Requeue => self.events.push(Event::Requeue(transfer)),
            Action::Complete { status } => self.complete(transfer, status),
            Action::Split { .. } | Action::LeftOut(_) => {}
        }
        Ok(None)
    }

    fn complete(&mut self, transfer: Transfer, status: u8) {
        let held = self.flushes.completed(&transfer, self.events.len());
        if let Some(Event::Complete(first)) = held.and_then(|at| self.events.get_mut(at)) {
            first.in_flush_sequence = true;
        }
        self.events.push(Event::Complete(Completion {
            // The flush machinery's own request is counted apart.
            in_flush_sequence: transfer.operation == Operation::Flush,
            transfer,
            status,
        }));
    }

    /// blkparse names the thread on every line, so only changes are worth an event.
    fn process(&mut self, line: &Line<'_>) {
        let known = self.threads.get(&line.pid);
        if known.is_some_and(|known| known == line.command) {
            return;
        }
        self.threads.insert(line.pid, line.command.to_vec());
        let comm = String::from_utf8_lossy(line.command).into_owned();
        self.events.push(Event::Process(Process {
            mono_ns: line.mono_ns,
            pid: line.pid,
            // The text has no process id: every thread stands for itself.
            tgid: line.pid,
            parent_tgid: 0,
            kernel: is_kernel_thread(&comm),
            comm,
            command_line: None,
        }));
    }

    fn damage(&self, field: &str, reason: String) -> Error {
        let place = format!("line {}, {field}", self.ledger.lines);
        Error::Trace(ModelError::corrupt(&self.name, place, reason))
    }

    fn finish(self) -> Result<Recording> {
        let other = self.ledger.left_out(LeftOut::OtherDevice);
        match self.wanted.or(self.found) {
            Some(device) if self.ledger.kept > 0 => Ok(Recording {
                events: self.events,
                device,
                skipped: self.skipped,
                ledger: self.ledger,
            }),
            Some((major, minor)) if other > 0 => Err(Error::usage(
                self.name.display(),
                format!("no event of device {major},{minor}, but {other} of others; see --device"),
            )),
            _ => Err(not_default(
                &self.name,
                format!("{} lines and no event", self.ledger.lines),
            )),
        }
    }
}

fn not_default(name: &Path, found: String) -> Error {
    Error::Trace(ModelError::Unsupported {
        path: name.to_owned(),
        found,
        expected: "blkparse's default format; run blkparse without -f and -F".to_owned(),
    })
}

fn queue(line: &Line<'_>, transfer: &Transfer) -> Queue {
    let segment = Segment {
        bytes: transfer.bytes,
        content: Content::Unknown,
        dirtier: None,
    };
    Queue {
        mono_ns: transfer.mono_ns,
        sector: transfer.sector,
        bytes: transfer.bytes,
        operation: transfer.operation,
        flags: transfer.flags,
        pid: line.pid,
        tgid: line.pid,
        sync: None,
        segments: Vec::from_iter((transfer.bytes > 0).then_some(segment)),
    }
}

/// The names of the threads that submit most of a filesystem's I/O.
fn is_kernel_thread(comm: &str) -> bool {
    ["kworker/", "jbd2/", "kswapd", "ksoftirqd/", "kcompactd"]
        .iter()
        .any(|start| comm.starts_with(start))
}

/// Finds the completions that the kernel's counters ignore.
///
/// A write that the flush machinery takes apart (fs/blk-flush.c) completes twice: when its data is
/// written, and, with no bytes left, when the flush behind it is done. The text has no mark for
/// the first, so it is known by the second.
#[derive(Debug, Default)]
struct Flushes {
    /// The writes with data that were queued with a flush, by first sector.
    queued: HashMap<u64, Flags>,
    /// Where in the events their first completion is.
    data_done: HashMap<u64, usize>,
}

impl Flushes {
    fn queued(&mut self, bio: &Transfer) {
        let flush = bio.flags.has(Flags::PREFLUSH) || bio.flags.has(Flags::FUA);
        if flush && bio.bytes > 0 {
            self.queued.insert(bio.sector, bio.flags);
        }
    }

    /// A device that does FUA itself needs no flush behind the data, and so no second completion.
    fn issued(&mut self, request: &Transfer) {
        let bio = self.queued.get(&request.sector);
        let preflush = bio.is_some_and(|flags| flags.has(Flags::PREFLUSH));
        if request.flags.has(Flags::FUA) && !preflush {
            self.queued.remove(&request.sector);
        }
    }

    /// Where the first completion is, if this is the second.
    fn completed(&mut self, request: &Transfer, at: usize) -> Option<usize> {
        if request.bytes == 0 {
            let first = self.data_done.remove(&request.sector)?;
            self.queued.remove(&request.sector);
            return Some(first);
        }
        if self.queued.contains_key(&request.sector) {
            self.data_done.insert(request.sector, at);
        }
        None
    }
}

#[cfg(test)]
mod tests;
