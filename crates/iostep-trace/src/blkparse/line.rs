//! One line of blkparse text.

use iostep_model::{Flags, Operation, SECTOR_BYTES};

use super::{Device, LeftOut, ZERO_NS};
use crate::rwbs;

/// The last sector whose end in bytes still is an offset (`loff_t`).
const MAX_SECTOR: u64 = (i64::MAX as u64 - u32::MAX as u64) / SECTOR_BYTES;
/// Some 30 years: no machine is up longer, and sums of times stay in range.
pub(super) const MAX_SECONDS: u64 = 1_000_000_000;

/// The name of a thread that has none.
pub(super) const UNNAMED: &[u8] = b"?";

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// `Q`.
    Queue,
    /// `D`.
    Issue,
    /// `C`, with the `blk_status_t` that the printed errno stands for.
    Complete { status: u8 },
    /// `R`.
    Requeue,
    /// `X`: where the second part starts.
    Split { sector: u64 },
    /// Known, and not kept.
    LeftOut(LeftOut),
}

/// A line, decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) mono_ns: u64,
    pub(super) pid: u32,
    pub(super) action: Action,
    pub(super) operation: Operation,
    pub(super) flags: Flags,
    pub(super) sector: u64,
    pub(super) bytes: u32,
    /// The thread's name; `?` where blkparse had none.
    pub(super) command: &'a [u8],
}

/// The field that is wrong, and why.
pub(super) type Wrong = (&'static str, String);

pub(super) fn wrong(field: &'static str, text: &[u8], expected: &str) -> Wrong {
    let text = String::from_utf8_lossy(text).into_owned();
    (field, format!("{text:?}, expected {expected}"))
}

/// The device that a line begins with; `None` if it begins otherwise, so is no event.
pub(super) fn device(text: &[u8]) -> Option<Device> {
    let first = text
        .split(u8::is_ascii_whitespace)
        .find(|w| !w.is_empty())?;
    let comma = first.iter().position(|byte| *byte == b',')?;
    let (major, minor) = first.split_at(comma);
    Some((number(major)?, number(&minor[1..])?))
}

/// The events in `2 forward (1,234 -   0.1%)`; 0 if there is no such number.
pub(super) fn skipped(text: &[u8]) -> u64 {
    let inside = text.split(|byte| *byte == b'(').nth(1).unwrap_or(&[]);
    let count = inside.split(|byte| *byte == b'-').next().unwrap_or(&[]);
    let digits: Vec<u8> = count.iter().copied().filter(u8::is_ascii_digit).collect();
    number(&digits).unwrap_or(0)
}

pub(super) fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    // `parse` would take a sign.
    let digits = text.first()?.is_ascii_digit();
    digits.then(|| std::str::from_utf8(text).ok()?.parse().ok())?
}

/// The rest of a line, word by word.
struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    fn next(&mut self, field: &'static str) -> Result<&'a [u8], Wrong> {
        let rest = self.rest.trim_ascii_start();
        let end = rest.iter().position(u8::is_ascii_whitespace);
        let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.rest = rest;
        if word.is_empty() {
            return Err((field, "missing".to_owned()));
        }
        Ok(word)
    }

    fn number<T: std::str::FromStr>(&mut self, field: &'static str) -> Result<T, Wrong> {
        let word = self.next(field)?;
        number(word).ok_or_else(|| wrong(field, word, "a number"))
    }

    fn begins_with(&self, start: u8) -> bool {
        self.rest.trim_ascii_start().first() == Some(&start)
    }

    /// What stands between `(` and `)`.
    fn in_parentheses(&mut self) -> Option<&'a [u8]> {
        let inside = self.rest.trim_ascii_start().strip_prefix(b"(")?;
        let end = inside.iter().position(|byte| *byte == b')')?;
        self.rest = &inside[end + 1..];
        Some(inside[..end].trim_ascii())
    }

    /// What stands between `[` and the line's last `]`: a command may hold brackets itself.
    fn in_brackets(&self, field: &'static str) -> Result<&'a [u8], Wrong> {
        let rest = self.rest.trim_ascii();
        rest.strip_prefix(b"[")
            .and_then(|rest| rest.strip_suffix(b"]"))
            .ok_or_else(|| wrong(field, rest, "something in square brackets"))
    }
}

impl<'a> Line<'a> {
    /// Decodes a line that begins with a device.
    pub(super) fn decode(text: &'a [u8]) -> Result<Line<'a>, Wrong> {
        let mut words = Words { rest: text };
        words.next("device")?;
        words.number::<u32>("CPU")?;
        words.number::<u64>("sequence")?;
        let mono_ns = time(words.next("time")?)?;
        let pid = words.number("process")?;
        let name = words.next("action")?;
        let mut line = Line {
            mono_ns,
            pid,
            action: action(name).ok_or_else(|| wrong("action", name, "a letter like Q"))?,
            operation: Operation::Other,
            flags: Flags::default(),
            sector: 0,
            bytes: 0,
            command: UNNAMED,
        };
        if let Action::LeftOut(_) = line.action {
            return Ok(line);
        }
        let letters = words.next("operation")?;
        (line.operation, line.flags) =
            rwbs::read(letters).ok_or_else(|| wrong("operation", letters, "letters like WS"))?;
        line.place(&mut words)?;
        line.settle_operation();
        Ok(line)
    }

    /// Tells a request that is a flush from a bio that asks for one.
    pub(super) fn settle_operation(&mut self) {
        if let Action::Issue | Action::Requeue | Action::Complete { .. } = self.action {
            (self.operation, self.flags) = rwbs::of_request(self.operation, self.flags, self.bytes);
        }
    }

    /// What follows the operation: `sector + sectors (elapsed) [end]`. An empty flush has neither
    /// sector nor sectors, a request's last completion no sectors, and `(elapsed)` is there only
    /// with `-t`.
    fn place(&mut self, words: &mut Words<'a>) -> Result<(), Wrong> {
        let is_number = words
            .rest
            .trim_ascii_start()
            .first()
            .is_some_and(u8::is_ascii_digit);
        if is_number {
            self.sector = words.number("sector")?;
        }
        if let Action::Split { .. } = self.action {
            separator(words, b"/")?;
            let sector = words.number("second sector")?;
            self.action = Action::Split { sector };
            return self.check_place();
        }
        if is_number && words.begins_with(b'+') {
            separator(words, b"+")?;
            self.bytes = length(words)?;
        }
        self.check_place()?;
        if let Some(inside) = words.in_parentheses()
            && inside.contains(&b' ')
        {
            // Several numbers are the bytes of a command for the driver.
            self.action = Action::LeftOut(LeftOut::DriverCommand);
            return Ok(());
        }
        self.end(words)
    }

    /// A flush has no place, and the kernel may show the one at -1.
    pub(super) fn check_place(&mut self) -> Result<(), Wrong> {
        if self.sector <= MAX_SECTOR {
            return Ok(());
        }
        if self.bytes > 0 {
            let reason = format!("{}, expected at most {MAX_SECTOR}", self.sector);
            return Err(("sector", reason));
        }
        self.sector = 0;
        Ok(())
    }

    fn end(&mut self, words: &Words<'a>) -> Result<(), Wrong> {
        match &mut self.action {
            Action::Complete { status } => {
                let text = words.in_brackets("error")?;
                *status = block_status(text).ok_or_else(|| wrong("error", text, "a number"))?;
            }
            Action::Requeue => {}
            _ => {
                let command = words.in_brackets("command")?;
                // What blkparse prints for a thread whose name it was not told.
                if !matches!(command, b"(null)" | b"") {
                    self.command = command;
                }
            }
        }
        Ok(())
    }
}

fn separator(words: &mut Words<'_>, expected: &'static [u8]) -> Result<(), Wrong> {
    let word = words.next("separator")?;
    if word == expected {
        return Ok(());
    }
    Err(wrong("separator", word, "+ or /"))
}

fn length(words: &mut Words<'_>) -> Result<u32, Wrong> {
    bytes_of(words.next("sectors")?)
}

/// The bytes of a number of sectors.
pub(super) fn bytes_of(word: &[u8]) -> Result<u32, Wrong> {
    number::<u64>(word)
        .and_then(|sectors| sectors.checked_mul(SECTOR_BYTES))
        .and_then(|bytes| u32::try_from(bytes).ok())
        .ok_or_else(|| wrong("sectors", word, "at most 8388607 sectors"))
}

/// `seconds.nanoseconds` after [`ZERO_NS`], always with nine digits behind the point.
fn time(text: &[u8]) -> Result<u64, Wrong> {
    let point = text.iter().position(|byte| *byte == b'.');
    point
        .and_then(|point| {
            let (seconds, fraction) = (&text[..point], &text[point + 1..]);
            let fraction: u64 = number(fraction).filter(|_| fraction.len() == 9)?;
            let seconds: u64 = number(seconds).filter(|s| *s <= MAX_SECONDS)?;
            Some(ZERO_NS + seconds * 1_000_000_000 + fraction)
        })
        .ok_or_else(|| wrong("time", text, "seconds.nanoseconds"))
}

fn action(name: &[u8]) -> Option<Action> {
    Some(match name {
        b"Q" => Action::Queue,
        b"D" => Action::Issue,
        b"C" => Action::Complete { status: 0 },
        b"R" => Action::Requeue,
        b"X" => Action::Split { sector: 0 },
        b"M" | b"F" => Action::LeftOut(LeftOut::Merge),
        b"P" | b"U" | b"UT" => Action::LeftOut(LeftOut::Plug),
        b"G" | b"S" | b"I" => Action::LeftOut(LeftOut::Scheduler),
        b"A" | b"B" | b"W" => Action::LeftOut(LeftOut::Remap),
        b"m" => Action::LeftOut(LeftOut::Message),
        _ => return None,
    })
}

/// The `blk_status_t` behind an errno (block/blk-core.c, `blk_errors`). blktrace keeps the errno in
/// 16 bits without a sign, so -5 is printed as 65531.
pub(super) fn block_status(text: &[u8]) -> Option<u8> {
    let errno: i64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    Some(status_of(errno))
}

/// The `blk_status_t` behind an errno of either sign.
pub(super) fn status_of(errno: i64) -> u8 {
    const IO_ERROR: u8 = 10;
    let errno = if errno > 0x7FFF {
        errno - 0x1_0000
    } else {
        errno
    };
    match errno.unsigned_abs() {
        0 => 0,
        95 => 1,
        110 => 2,
        28 => 3,
        67 => 4,
        121 => 5,
        52 => 6,
        61 => 7,
        84 => 8,
        12 => 9,
        _ => IO_ERROR,
    }
}
