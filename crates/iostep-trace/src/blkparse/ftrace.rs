//! The kernel's block events as text: what tracefs, `trace-cmd report` and `perf script` print.
//!
//! ```text
//!     kworker/0:1H-60   [001] d..2.   12.345678: block_rq_issue: 8,0 WS 4096 () 1024 + 8 be,0,4 [kworker/0:1H]
//!     kworker/0:1H 60   [001]         12.345678: block:block_rq_issue: 8,0 WS 4096 () 1024 + 8 [kworker/0:1H]
//! ```
//!
//! Source: include/trace/events/block.h, kernel/trace/trace_output.c, perf-script(1).

use super::line::{self, Action, Line, UNNAMED, Wrong, number, wrong};
use super::reader::Reader;
use super::{LeftOut, ZERO_NS};
use crate::error::Result;
use crate::rwbs;

/// What an event is, and what stands before its place: `bytes (command)`, `(command)`, or nothing.
enum Event {
    Queue,
    Issue,
    Complete,
    Requeue,
    Split,
    LeftOut(LeftOut),
}

fn event(name: &[u8]) -> Option<Event> {
    Some(match name {
        b"block_bio_queue" => Event::Queue,
        b"block_rq_issue" => Event::Issue,
        b"block_rq_complete" | b"block_bio_complete" => Event::Complete,
        b"block_rq_requeue" => Event::Requeue,
        b"block_split" => Event::Split,
        b"block_bio_backmerge" | b"block_bio_frontmerge" | b"block_rq_merge" => {
            Event::LeftOut(LeftOut::Merge)
        }
        b"block_getrq" | b"block_sleeprq" | b"block_rq_insert" => {
            Event::LeftOut(LeftOut::Scheduler)
        }
        b"block_plug" | b"block_unplug" => Event::LeftOut(LeftOut::Plug),
        b"block_bio_remap" | b"block_rq_remap" | b"block_bio_bounce" => {
            Event::LeftOut(LeftOut::Remap)
        }
        _ => return None,
    })
}

/// An event's line, in parts.
struct Parts<'a> {
    time: &'a [u8],
    /// Thread and CPU.
    before: &'a [u8],
    name: &'a [u8],
    rest: &'a [u8],
}

/// Takes a line; the reason if it is none to keep.
pub(super) fn line(reader: &mut Reader, text: &[u8]) -> Result<Option<LeftOut>> {
    let text = text.trim_ascii();
    if let Some(lost) = lost(text) {
        reader.skipped = reader.skipped.saturating_add(lost);
        return Ok(Some(LeftOut::Notice));
    }
    if text.is_empty() || text.starts_with(b"#") {
        return Ok(Some(LeftOut::Notice));
    }
    let Some(parts) = split(text) else {
        return Ok(Some(LeftOut::OtherEvent));
    };
    let event = match event(parts.name) {
        // Some kernels tell of the bios of a request, too, when it completes.
        Some(Event::Complete) if parts.name == b"block_bio_complete" && reader.has_requests => {
            return Ok(Some(LeftOut::OtherEvent));
        }
        None => return Ok(Some(LeftOut::OtherEvent)),
        // These have no device in front, or nothing that is kept.
        Some(Event::LeftOut(LeftOut::Plug)) => return Ok(Some(LeftOut::Plug)),
        Some(event) => event,
    };
    let Some(device) = line::device(parts.rest) else {
        let (field, reason) = wrong("device", parts.rest, "numbers like 8,0");
        return Err(reader.damage(field, reason));
    };
    if !reader.is_ours(device)? {
        return Ok(Some(LeftOut::OtherDevice));
    }
    reader.has_requests |= parts.name.starts_with(b"block_rq_");
    let line = decode(&parts, &event).map_err(|(field, reason)| reader.damage(field, reason))?;
    Ok(reader.take(&line))
}

/// Events that the text says are missing: `CPU:1 [LOST 27 EVENTS]`, and in tracefs' head how many
/// were written over.
fn lost(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some((_, rest)) = text.split_once("[LOST ") {
        return rest.split(' ').next()?.parse().ok();
    }
    let counts = text.strip_prefix("# entries-in-buffer/entries-written:")?;
    let (there, written) = counts.trim().split_once('/')?;
    let written = written.split_whitespace().next()?;
    let written: u64 = written.parse().ok()?;
    written.checked_sub(there.trim().parse().ok()?)
}

/// True if a line is a block event.
pub(super) fn is_line(text: &[u8]) -> bool {
    split(text.trim_ascii()).is_some_and(|parts| event(parts.name).is_some())
}

/// Finds time and name: `12.345678: block_rq_issue: ...`; a command may hold anything, so the
/// first that fits counts.
fn split(text: &[u8]) -> Option<Parts<'_>> {
    let mut from = 0;
    loop {
        let colon = from + text[from..].iter().position(|byte| *byte == b':')?;
        from = colon + 1;
        let begin = text[..colon].iter().rposition(|byte| *byte == b' ');
        let begin = begin.map_or(0, |at| at + 1);
        let time = &text[begin..colon];
        if !time.contains(&b'.') || !time.iter().all(|b| b.is_ascii_digit() || *b == b'.') {
            continue;
        }
        let rest = text[colon + 1..].trim_ascii_start();
        let rest = rest.strip_prefix(b"block:").unwrap_or(rest);
        let end = rest.iter().position(|byte| *byte == b':')?;
        return Some(Parts {
            time,
            before: &text[..begin],
            name: &rest[..end],
            rest: rest[end + 1..].trim_ascii(),
        });
    }
}

fn decode<'a>(parts: &Parts<'a>, event: &Event) -> std::result::Result<Line<'a>, Wrong> {
    let mut line = Line {
        mono_ns: time(parts.time)?,
        pid: thread(parts.before),
        action: Action::LeftOut(LeftOut::OtherEvent),
        operation: iostep_model::Operation::Other,
        flags: iostep_model::Flags::default(),
        sector: 0,
        bytes: 0,
        command: UNNAMED,
    };
    if let Event::LeftOut(reason) = event {
        line.action = Action::LeftOut(*reason);
        return Ok(line);
    }
    let mut words = parts
        .rest
        .split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty());
    let mut next = |field| words.next().ok_or((field, "missing".to_owned()));
    next("device")?;
    let letters = next("operation")?;
    let place = place(parts.rest);
    let Some((sector, sign, length)) = place else {
        return Err(wrong("sector", parts.rest, "a place like 8 + 8"));
    };
    line.sector = number(sector).ok_or_else(|| wrong("sector", sector, "a number"))?;
    let end = parts.rest.iter().rposition(|byte| *byte == b'[');
    let end = end.and_then(|at| parts.rest[at + 1..].strip_suffix(b"]"));
    let sectors;
    line.action = match event {
        Event::Split if sign == b'/' => {
            let sector =
                number(length).ok_or_else(|| wrong("second sector", length, "a number"))?;
            sectors = 0;
            Action::Split { sector }
        }
        _ => {
            line.bytes = line::bytes_of(length)?;
            sectors = line.bytes / 512;
            match event {
                Event::Queue | Event::Split | Event::LeftOut(_) => Action::Queue,
                Event::Issue => Action::Issue,
                Event::Requeue => Action::Requeue,
                Event::Complete => {
                    let error = end.unwrap_or(b"0");
                    let status = line::block_status(error)
                        .ok_or_else(|| wrong("error", error, "a number"))?;
                    Action::Complete { status }
                }
            }
        }
    };
    if is_command(parts.rest) {
        line.action = Action::LeftOut(LeftOut::DriverCommand);
        return Ok(line);
    }
    if matches!(event, Event::Queue | Event::Issue)
        && let Some(command) = end.filter(|command| !command.is_empty())
    {
        line.command = command;
    }
    if rwbs::read(letters).is_none() {
        return Err(wrong("operation", letters, "letters like WS"));
    }
    (line.operation, line.flags) = rwbs::parse(letters, sectors);
    line.check_place()?;
    line.settle_operation();
    Ok(line)
}

/// A command for the driver itself: its bytes stand in parentheses.
fn is_command(rest: &[u8]) -> bool {
    let place = rest.windows(3).position(|three| three == b" + ");
    let rest = &rest[..place.unwrap_or(rest.len())];
    let begin = rest.iter().position(|byte| *byte == b'(');
    let inside = begin.map(|at| &rest[at + 1..]).unwrap_or(&[]);
    let end = inside.iter().position(|byte| *byte == b')').unwrap_or(0);
    !inside[..end].trim_ascii().is_empty()
}

/// `sector + sectors`, or `sector / sector` of a split. What stands before has neither sign.
fn place(rest: &[u8]) -> Option<(&[u8], u8, &[u8])> {
    let mut words = rest
        .split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty());
    let mut last: &[u8] = b"";
    while let Some(word) = words.next() {
        if word == b"+" || word == b"/" {
            return Some((last, word[0], words.next()?));
        }
        last = word;
    }
    None
}

/// `seconds.micro- or nanoseconds`.
fn time(text: &[u8]) -> std::result::Result<u64, Wrong> {
    let point = text.iter().position(|byte| *byte == b'.');
    let parsed = point.and_then(|point| {
        let (seconds, fraction) = (&text[..point], &text[point + 1..]);
        let digits = u32::try_from(fraction.len())
            .ok()
            .filter(|digits| (1..=9).contains(digits))?;
        let fraction: u64 = number(fraction)?;
        let seconds: u64 = number(seconds).filter(|s| *s <= line::MAX_SECONDS)?;
        Some(ZERO_NS + seconds * 1_000_000_000 + fraction * 10u64.pow(9 - digits))
    });
    parsed.ok_or_else(|| wrong("time", text, "seconds.microseconds"))
}

/// The thread of `comm-12 [000]`, `comm-12 (12) [000]`, `comm 12 [000]` and `comm 12/12 [000]`; 0
/// where none is told.
fn thread(before: &[u8]) -> u32 {
    let cpu = before.iter().rposition(|byte| *byte == b'[');
    let mut text = before[..cpu.unwrap_or(before.len())].trim_ascii_end();
    if text.ends_with(b")")
        && let Some(group) = text.iter().rposition(|byte| *byte == b'(')
    {
        text = text[..group].trim_ascii_end();
    }
    let begin = text.iter().rposition(|byte| !byte.is_ascii_digit());
    let begin = begin.map_or(0, |at| at + 1);
    number(&text[begin..]).unwrap_or(0)
}

#[cfg(test)]
mod tests;
