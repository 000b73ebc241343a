//! Events of block I/O that somebody else recorded: blkparse's default text, blktrace's own files,
//! the kernel's block events as text, and fio's log of I/O. All of them become lines of blkparse's
//! kind; [`Format`] says where each comes from.
//!
//! A line of blkparse:
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

mod actions;
mod binary;
mod collect;
mod ftrace;
mod iolog;
mod line;
mod reader;

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use iostep_model::event::Event;

use crate::error::Result;
use reader::Reader;

/// The time that blkparse's 0 becomes: a queue time of 0 would mean that nobody saw it.
pub const ZERO_NS: u64 = 1_000_000_000;

/// A block device by its numbers.
pub type Device = (u32, u32);

/// What a text held.
#[derive(Debug)]
pub struct Recording {
    /// The events, in the order of time; with the issues of requests where the text has none.
    pub events: Vec<Event>,
    /// The time that counts as the start.
    pub start_ns: u64,
    /// The device that they belong to; 0,0 where it has a name only.
    pub device: Device,
    /// Its name, where the recording has that.
    pub device_name: Option<String>,
    /// Events that the recording says were lost.
    pub skipped: u64,
    /// What became of every line.
    pub ledger: Ledger,
    /// What the text has no lines of, and what is not known by that, in words.
    pub unrecorded: Vec<String>,
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
    /// What tells of no bio and no request: other events of the kernel, opens and closes of fio.
    OtherEvent,
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
            LeftOut::OtherEvent => "other event",
            LeftOut::OtherDevice => "other device",
            LeftOut::CutOff => "cut off",
        }
    }

    /// True for lines that only a device with requests has.
    fn is_of_requests(self) -> bool {
        matches!(self, LeftOut::Merge | LeftOut::Plug | LeftOut::Scheduler)
    }
}

/// What became of every line: `lines` is `kept` and the sum of `left_out`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Lines read; of a binary file records.
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

/// What somebody else recorded block I/O with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// blkparse's default text.
    Blkparse,
    /// blktrace's own files, `DEVICE.blktrace.CPU`, and what the kernel's tracer `blk` gives with
    /// its option `bin`.
    Blktrace,
    /// The kernel's block events as text: of tracefs, `trace-cmd report` or `perf script`.
    Ftrace,
    /// fio's log of I/O on a block device, versions 2 and 3.
    Iolog,
}

impl Format {
    /// What a file that begins with `start` is; `None` for what is none of these, and for
    /// [`Format::Blkparse`].
    pub fn guess(start: &[u8]) -> Option<Format> {
        if binary::looks_like(start) {
            return Some(Format::Blktrace);
        }
        if iolog::looks_like(start) {
            return Some(Format::Iolog);
        }
        let mut lines = start.split(|byte| *byte == b'\n');
        lines.any(ftrace::is_line).then_some(Format::Ftrace)
    }
}

/// Reads files of one recording, each with its name for errors; several are those that blktrace
/// wrote, one for each CPU.
///
/// Errors: as [`parse_as`].
pub fn read<R: BufRead>(
    files: impl IntoIterator<Item = (PathBuf, R)>,
    format: Format,
    device: Option<Device>,
) -> Result<Recording> {
    let mut reader = Reader::new(Path::new(""), format, device);
    for (name, file) in files {
        reader.name = name;
        read_one(&mut reader, format, file)?;
    }
    reader.finish()
}

/// Reads one text or file of a recording.
fn read_one(reader: &mut Reader, format: Format, input: impl BufRead) -> Result<()> {
    match format {
        Format::Blkparse => reader.lines(input, &mut Reader::line),
        Format::Blktrace => binary::read(reader, input),
        Format::Ftrace => reader.lines(input, &mut ftrace::line),
        Format::Iolog => iolog::read(reader, input),
    }
}

/// Reads blkparse text. `name` is for errors; `device` chooses one if the text has several.
///
/// Errors: as [`parse_as`].
pub fn parse(input: impl BufRead, name: &Path, device: Option<Device>) -> Result<Recording> {
    parse_as(Format::Blkparse, input, name, device)
}

/// Reads a text or file. `name` is for errors; `device` chooses one if there are several.
///
/// Memory: the events, and one line of at most 4096 bytes.
/// Errors: `Io`; `Usage` if the text has several devices and none was chosen, or not the chosen one;
/// `Trace` for text that is not in this format, and, with its number, for a line that does not
/// decode.
pub fn parse_as(
    format: Format,
    input: impl BufRead,
    name: &Path,
    device: Option<Device>,
) -> Result<Recording> {
    let mut reader = Reader::new(name, format, device);
    read_one(&mut reader, format, input)?;
    reader.finish()
}

#[cfg(test)]
mod tests;
