//! fio's log of I/O (`--write_iolog`), versions 2 and 3, on a block device.
//!
//! ```text
//! fio version 3 iolog                fio version 2 iolog
//! 19 /dev/sdb add                    /dev/sdb add
//! 122 /dev/sdb open                  /dev/sdb open
//! 126 /dev/sdb write 12288 4096      /dev/sdb write 12288 4096
//! 345 /dev/sdb sync 0 0              /dev/sdb wait 200 0
//! ```
//!
//! Times are microseconds since the start; in version 2 `wait` is what passes. The log has what fio
//! asked of the device: each line is a bio, and a sync asks for a flush.
//! Source: fio's HOWTO, "Trace file format".

use std::io::BufRead;

use iostep_model::Error as ModelError;
use iostep_model::{Flags, Operation, SECTOR_BYTES};

use super::line::{self, Action, Line, Wrong, number, wrong};
use super::reader::Reader;
use super::{LeftOut, ZERO_NS};
use crate::error::{Error, Result};

/// How a log begins; the version follows.
const START: &[u8] = b"fio version ";
/// Where block devices are.
const DEVICES: &[u8] = b"/dev/";

/// What was read of a log so far.
#[derive(Debug, Default)]
struct Iolog {
    version: u8,
    /// Microseconds since the start.
    now_us: u64,
}

/// True if a file is a log.
pub(super) fn looks_like(start: &[u8]) -> bool {
    start.starts_with(START)
}

/// Reads a log.
pub(super) fn read(reader: &mut Reader, input: impl BufRead) -> Result<()> {
    let mut log = Iolog::default();
    reader.lines(input, &mut |reader, text| line(&mut log, reader, text))?;
    if log.version != 0 {
        return Ok(());
    }
    Err(Error::Trace(ModelError::Unsupported {
        path: reader.name.clone(),
        found: "no line like `fio version 3 iolog`".to_owned(),
        expected: "fio's log of I/O".to_owned(),
    }))
}

/// Takes a line; the reason if it is none to keep.
fn line(log: &mut Iolog, reader: &mut Reader, text: &[u8]) -> Result<Option<LeftOut>> {
    let text = text.trim_ascii();
    if let Some(rest) = text.strip_prefix(START) {
        let version = rest.strip_suffix(b" iolog").and_then(number);
        log.version = version.unwrap_or(0);
        if !matches!(log.version, 2 | 3) {
            return Err(Error::Trace(ModelError::Unsupported {
                path: reader.name.clone(),
                found: String::from_utf8_lossy(text).into_owned(),
                expected: "version 2 or 3 of fio's log".to_owned(),
            }));
        }
        return Ok(Some(LeftOut::Notice));
    }
    if text.is_empty() {
        return Ok(Some(LeftOut::Notice));
    }
    let mut words: Vec<&[u8]> = text
        .split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty())
        .collect();
    let decoded = decode(log, &mut words);
    let (file, line) = decoded.map_err(|(field, reason)| reader.damage(field, reason))?;
    name(reader, file)?;
    reader.is_ours((0, 0))?;
    Ok(match line {
        Some(line) => reader.take(&line),
        None => Some(LeftOut::OtherEvent),
    })
}

/// The file that a line is of, and what it asks for; nothing for an open and the like.
fn decode<'a>(
    log: &mut Iolog,
    words: &mut Vec<&'a [u8]>,
) -> std::result::Result<(&'a [u8], Option<Line<'static>>), Wrong> {
    if log.version == 3 {
        let time = words.remove(0);
        log.now_us = number(time)
            .filter(|micros| *micros <= line::MAX_SECONDS * 1_000_000)
            .ok_or_else(|| wrong("time", time, "microseconds"))?;
    }
    let mut words = words.iter();
    let mut next = |field| words.next().copied().ok_or((field, "missing".to_owned()));
    let (file, action) = (next("file")?, next("action")?);
    let mut bytes = |field| -> std::result::Result<u64, Wrong> {
        let word = next(field)?;
        number(word).ok_or_else(|| wrong(field, word, "bytes"))
    };
    let (operation, flags) = match action {
        b"add" | b"open" | b"close" => return Ok((file, None)),
        b"wait" if log.version == 2 => {
            let most = line::MAX_SECONDS * 1_000_000;
            log.now_us = log.now_us.saturating_add(bytes("time")?).min(most);
            return Ok((file, None));
        }
        b"read" => (Operation::Read, Flags::default()),
        b"write" => (Operation::Write, Flags::default()),
        b"trim" => (Operation::Discard, Flags::default()),
        b"sync" | b"datasync" => (Operation::Write, Flags::PREFLUSH.with(Flags::SYNC)),
        _ => {
            return Err(wrong(
                "action",
                action,
                "read, write, trim, sync or datasync",
            ));
        }
    };
    let mut asked = Line {
        mono_ns: ZERO_NS + log.now_us * 1000,
        pid: 0,
        action: Action::Queue,
        operation,
        flags,
        sector: 0,
        bytes: 0,
        command: b"fio",
    };
    if !flags.has(Flags::PREFLUSH) {
        let (offset, length) = (bytes("offset")?, bytes("length")?);
        asked.sector = offset / SECTOR_BYTES;
        // As the kernel would: whole sectors that hold it.
        let last = offset.saturating_add(length).div_ceil(SECTOR_BYTES);
        let whole = last
            .saturating_sub(asked.sector)
            .saturating_mul(SECTOR_BYTES);
        asked.bytes = u32::try_from(whole)
            .map_err(|_| ("length", format!("{length}, expected less than 4 GiB")))?;
        asked.check_place()?;
    }
    Ok((file, Some(asked)))
}

/// Sees to it that the log is of one block device.
fn name(reader: &mut Reader, file: &[u8]) -> Result<()> {
    let shown = String::from_utf8_lossy(file).into_owned();
    let Some(device) = file.strip_prefix(DEVICES) else {
        return Err(Error::Trace(ModelError::Unsupported {
            path: reader.name.clone(),
            found: format!(
                "fio's log of the file {shown}: an offset in a file is no place on a device"
            ),
            expected:
                "a log of a block device below /dev; fio --read_iolog does this one again, and \
                       iostep trace records what comes of it"
                    .to_owned(),
        }));
    };
    let device = String::from_utf8_lossy(device).into_owned();
    let known = reader.device_name.get_or_insert_with(|| device.clone());
    if *known == device {
        return Ok(());
    }
    let reason = format!("fio's log of /dev/{known} and {shown}; leave the lines of one");
    Err(Error::usage(reader.name.display(), reason))
}

#[cfg(test)]
mod tests;
