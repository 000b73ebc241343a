//! blktrace's own files, `DEVICE.blktrace.CPU`, and the same records from the kernel's tracer `blk`.
//!
//! A record is `struct blk_io_trace` (include/uapi/linux/blktrace_api.h), 48 bytes in the order of
//! bytes of the machine that wrote it, and what follows it. blkparse's actions and letters are
//! made of it as `blkparse.c` and `fill_rwbs` do, so that both ways lead to the same trace.

use std::io::{ErrorKind, Read};

use iostep_model::Error as ModelError;
use iostep_model::{Flags, Operation};

use super::line::{self, Action, Line, UNNAMED};
use super::reader::Reader;
use super::{LeftOut, ZERO_NS};
use crate::error::{Error, Result};

/// `BLK_IO_TRACE_MAGIC`; the lowest byte is the version.
const MAGIC: u32 = 0x6561_7400;
/// `BLK_IO_TRACE_VERSION`.
const VERSION: u32 = 7;
const RECORD_BYTES: usize = 48;
/// `BLK_TC_SHIFT`: the categories are the upper half of an action.
const CATEGORIES: u32 = 16;

// Categories.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const SYNC: u32 = 1 << 3;
const DRIVER_COMMAND: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const AHEAD: u32 = 1 << 11;
const META: u32 = 1 << 12;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;

/// `__BLK_TA_CGROUP`: eight bytes that name the control group come first.
const CGROUP: u32 = 1 << 8;
const CGROUP_BYTES: usize = 8;
/// `__BLK_TN_PROCESS`: what follows is the name of the thread.
const PROCESS: u32 = 0;

/// True if a file begins with a record.
pub(super) fn looks_like(start: &[u8]) -> bool {
    start
        .first_chunk()
        .is_some_and(|magic| order(*magic).is_some())
}

/// Whether the bytes of numbers are swapped: big endian; `None` for what is no record.
fn order(magic: [u8; 4]) -> Option<bool> {
    let is = |magic: u32| magic & !0xFF == MAGIC;
    match (is(u32::from_le_bytes(magic)), is(u32::from_be_bytes(magic))) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    }
}

/// A record's numbers.
struct Record {
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    error: u16,
    more_bytes: u16,
}

impl Record {
    fn read(bytes: &[u8; RECORD_BYTES], big: bool) -> Record {
        let number = |at: usize, length: usize| {
            let field = bytes[at..at + length].iter();
            let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
            match big {
                true => field.fold(0, add),
                false => field.rev().fold(0, add),
            }
        };
        Record {
            time_ns: number(8, 8),
            sector: number(16, 8),
            bytes: number(24, 4) as u32,
            action: number(28, 4) as u32,
            pid: number(32, 4) as u32,
            device: number(36, 4) as u32,
            error: number(44, 2) as u16,
            more_bytes: number(46, 2) as u16,
        }
    }

    fn is(&self, category: u32) -> bool {
        self.action >> CATEGORIES & category != 0
    }

    fn kind(&self) -> u32 {
        self.action & ((1 << CATEGORIES) - 1) & !CGROUP
    }

    /// blkparse's letters mean the same.
    fn operation(&self) -> (Operation, Flags) {
        let operation = match (self.is(DISCARD), self.is(WRITE), self.bytes > 0) {
            (true, ..) => Operation::Discard,
            (_, true, _) => Operation::Write,
            (_, _, true) => Operation::Read,
            // `FN`.
            _ if self.is(FLUSH) => Operation::Flush,
            _ => Operation::Other,
        };
        let flags = [
            (FUA, Flags::FUA),
            (AHEAD, Flags::READAHEAD),
            (SYNC, Flags::SYNC),
            (META, Flags::META),
            (FLUSH, Flags::PREFLUSH),
        ];
        let set = flags.iter().filter(|(category, _)| self.is(*category));
        let flags = set.fold(Flags::default(), |flags, (_, flag)| flags.with(*flag));
        match operation {
            Operation::Flush => (operation, Flags(flags.0 & !Flags::PREFLUSH.0)),
            operation => (operation, flags),
        }
    }

    /// What happened; `None` for a number that no version has.
    fn what(&self, more: &[u8]) -> Option<Action> {
        Some(match self.kind() {
            _ if self.is(NOTIFY) => Action::LeftOut(LeftOut::Message),
            1 => Action::Queue,
            2 | 3 => Action::LeftOut(LeftOut::Merge),
            4 | 5 | 12 => Action::LeftOut(LeftOut::Scheduler),
            6 => Action::Requeue,
            7 => Action::Issue,
            8 => Action::Complete {
                status: line::status_of(i64::from(self.error)),
            },
            9..=11 => Action::LeftOut(LeftOut::Plug),
            // A number that is big endian on every machine.
            13 => Action::Split {
                sector: u64::from_be_bytes(*more.first_chunk()?),
            },
            14 | 15 => Action::LeftOut(LeftOut::Remap),
            16 => Action::LeftOut(LeftOut::OtherEvent),
            17 => Action::LeftOut(LeftOut::DriverCommand),
            _ => return None,
        })
    }
}

/// Reads one file; the reader puts those of one recording together.
pub(super) fn read(reader: &mut Reader, mut input: impl Read) -> Result<()> {
    let mut bytes = [0; RECORD_BYTES];
    let mut more = Vec::new();
    loop {
        let read = fill(reader, &mut input, &mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        reader.ledger.lines += 1;
        if read < RECORD_BYTES {
            reader.account(Some(LeftOut::CutOff));
            return Ok(());
        }
        let magic = [bytes[0], bytes[1], bytes[2], bytes[3]];
        let Some(big) = order(magic) else {
            let found = format!("{magic:02x?}, expected the magic of blktrace");
            return Err(reader.damage("magic", found));
        };
        let version = u32::from(if big { magic[3] } else { magic[0] });
        if version != VERSION {
            return Err(Error::Trace(ModelError::Unsupported {
                path: reader.name.clone(),
                found: format!("blktrace's version {version}"),
                expected: format!("version {VERSION}; run blkparse, and import its text"),
            }));
        }
        let record = Record::read(&bytes, big);
        more.resize(usize::from(record.more_bytes), 0);
        if fill(reader, &mut input, &mut more)? < more.len() {
            reader.account(Some(LeftOut::CutOff));
            return Ok(());
        }
        let taken = take(reader, &record, &more)?;
        reader.account(taken);
    }
}

/// Reads as much as there is; less only at the end.
fn fill(reader: &Reader, input: &mut impl Read, bytes: &mut [u8]) -> Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match input.read(&mut bytes[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io(&reader.name, "read")(error)),
        }
    }
    Ok(read)
}

fn take(reader: &mut Reader, record: &Record, more: &[u8]) -> Result<Option<LeftOut>> {
    let more = match record.action & CGROUP != 0 {
        true => more.get(CGROUP_BYTES..).unwrap_or(&[]),
        false => more,
    };
    if record.is(NOTIFY) {
        if record.kind() == PROCESS {
            let end = more.iter().position(|byte| *byte == 0);
            reader.name_thread(record.pid, &more[..end.unwrap_or(more.len())]);
        }
        return Ok(Some(LeftOut::Message));
    }
    let device = (record.device >> 20, record.device & 0xF_FFFF);
    if !reader.is_ours(device)? {
        return Ok(Some(LeftOut::OtherDevice));
    }
    let Some(action) = record.what(more) else {
        let found = format!("{}, expected at most 17", record.kind());
        return Err(reader.damage("action", found));
    };
    // A boot's time, whose nanoseconds since are not 584 years.
    let mono_ns = ZERO_NS + record.time_ns.min(line::MAX_SECONDS * 1_000_000_000);
    let (operation, flags) = record.operation();
    let mut line = Line {
        mono_ns,
        pid: record.pid,
        action,
        operation,
        flags,
        sector: record.sector,
        // blkparse prints whole sectors.
        bytes: record.bytes & !511,
        command: UNNAMED,
    };
    let is_kept = !matches!(line.action, Action::LeftOut(_));
    if is_kept && record.is(DRIVER_COMMAND) {
        line.action = Action::LeftOut(LeftOut::DriverCommand);
    }
    if is_kept {
        let checked = line.check_place();
        checked.map_err(|(field, reason)| reader.damage(field, reason))?;
        line.settle_operation();
    }
    Ok(match line.action {
        Action::LeftOut(_) => reader.take(&line),
        _ => {
            reader.later.push(line);
            None
        }
    })
}

#[cfg(test)]
mod tests;
