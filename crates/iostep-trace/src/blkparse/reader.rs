//! What all formats have in common: lines, devices, and the account of lines.

use std::collections::BTreeSet;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use iostep_model::Error as ModelError;
use iostep_model::event::Event;
use iostep_model::printable::BYTE_ORDER_MARK;

use super::collect::Collector;
use super::line::{self, Line};
use super::{Device, Format, Ledger, LeftOut, Recording, ZERO_NS};
use crate::error::{Error, Result};

/// blkparse's lines are about 80 bytes; messages of I/O schedulers are longer.
const MAX_LINE_BYTES: u64 = 4096;

/// How many of a text's devices an error names.
const MAX_NAMED_DEVICES: usize = 8;

/// Takes a line, or tells the reason if it is none to keep.
type Take<'a> = dyn FnMut(&mut Reader, &[u8]) -> Result<Option<LeftOut>> + 'a;

/// Reads recordings of one format, and counts what becomes of their lines.
pub(super) struct Reader {
    /// For errors.
    pub(super) name: PathBuf,
    format: Format,
    wanted: Option<Device>,
    /// The first device in the text.
    found: Option<Device>,
    /// The devices in the text, as many as are worth a message.
    devices: BTreeSet<Device>,
    pub(super) device_name: Option<String>,
    pub(super) ledger: Ledger,
    collector: Collector,
    pub(super) skipped: u64,
    /// Lines of files that are one recording, to be put in the order of time.
    pub(super) later: Vec<Line<'static>>,
    /// Events of requests, and not of bios alone, were there.
    pub(super) has_requests: bool,
}

impl Reader {
    pub(super) fn new(name: &Path, format: Format, device: Option<Device>) -> Reader {
        Reader {
            name: name.to_owned(),
            format,
            wanted: device,
            found: None,
            devices: BTreeSet::new(),
            device_name: None,
            ledger: Ledger::default(),
            collector: Collector::default(),
            skipped: 0,
            later: Vec::new(),
            has_requests: false,
        }
    }

    /// Reads a text line by line: `take` takes one, or tells the reason if it is none to keep.
    pub(super) fn lines(&mut self, mut input: impl BufRead, take: &mut Take<'_>) -> Result<()> {
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
            if self.ledger.lines == 1 && text.starts_with(BYTE_ORDER_MARK) {
                text.drain(..BYTE_ORDER_MARK.len());
            }
            let whole = text.pop_if(|last| *last == b'\n').is_some();
            let taken = take(self, &text);
            match taken {
                Ok(taken) => self.account(taken),
                Err(Error::Trace(ModelError::Corrupt { .. })) if !whole => {
                    self.leave_out(LeftOut::CutOff)
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Counts a line as kept, or as left out for a reason.
    pub(super) fn account(&mut self, taken: Option<LeftOut>) {
        match taken {
            None => self.ledger.kept += 1,
            Some(reason) => self.leave_out(reason),
        }
    }

    fn leave_out(&mut self, reason: LeftOut) {
        *self.ledger.left_out.entry(reason).or_default() += 1;
    }

    /// Takes a line of blkparse; the reason if it is none to keep.
    pub(super) fn line(&mut self, text: &[u8]) -> Result<Option<LeftOut>> {
        let Some(device) = line::device(text) else {
            return self.no_event(text).map(Some);
        };
        if !self.is_ours(device)? {
            return Ok(Some(LeftOut::OtherDevice));
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
        Ok(self.collector.take(&line))
    }

    /// True for the device that was chosen, or the only one.
    pub(super) fn is_ours(&mut self, device: Device) -> Result<bool> {
        let (major, minor) = *self.found.get_or_insert(device);
        if self.devices.len() < MAX_NAMED_DEVICES {
            self.devices.insert(device);
        }
        match self.wanted {
            Some(wanted) if wanted != device => return Ok(false),
            None if (major, minor) != device => {
                let second = format!("{},{}", device.0, device.1);
                let reason = format!("devices {major},{minor} and {second}; choose with --device");
                return Err(Error::usage(self.name.display(), reason));
            }
            _ => {}
        }
        Ok(true)
    }

    /// Takes a decoded line; the reason if it is none to keep.
    pub(super) fn take(&mut self, line: &Line<'_>) -> Option<LeftOut> {
        self.collector.take(line)
    }

    /// A thread has a name.
    pub(super) fn name_thread(&mut self, pid: u32, name: &[u8]) {
        self.collector.name_thread(pid, name);
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

    pub(super) fn damage(&self, field: &str, reason: String) -> Error {
        let unit = match self.format {
            Format::Blktrace => "record",
            _ => "line",
        };
        let place = format!("{unit} {}, {field}", self.ledger.lines);
        Error::Trace(ModelError::corrupt(&self.name, place, reason))
    }

    /// The recording of what was read.
    pub(super) fn finish(mut self) -> Result<Recording> {
        let mut later = std::mem::take(&mut self.later);
        later.sort_by_key(|line| line.mono_ns);
        for line in &later {
            self.collector.take(line);
        }
        let other = self.ledger.left_out(LeftOut::OtherDevice);
        let lines = self.ledger.lines;
        let Some(device) = self.wanted.or(self.found) else {
            let found = match lines {
                0 => "an empty text, no event".to_owned(),
                _ => format!("{lines} lines and no event"),
            };
            return Err(match self.format {
                Format::Blkparse => not_default(&self.name, found),
                _ => self.no_request(found),
            });
        };
        if !self.collector.actions().is_empty() {
            let (events, unrecorded) = self.collector.finish();
            // blkparse counts from the first event; the others from the machine's start.
            let first_ns = events.iter().find(|event| event.io().is_some());
            let start_ns = match self.format {
                Format::Blkparse | Format::Iolog => ZERO_NS,
                Format::Blktrace | Format::Ftrace => first_ns.map_or(ZERO_NS, Event::mono_ns),
            };
            return Ok(Recording {
                events,
                start_ns,
                device,
                device_name: self.device_name,
                skipped: self.skipped,
                ledger: self.ledger,
                unrecorded,
            });
        }
        let (major, minor) = device;
        if other > 0 && other + self.ledger.left_out(LeftOut::Notice) == lines - self.summary() {
            let devices = self.devices.iter();
            let devices: Vec<String> = devices.map(|(a, b)| format!("{a},{b}")).collect();
            let devices = devices.join(", ");
            return Err(Error::usage(
                self.name.display(),
                format!(
                    "no event of device {major},{minor}, but {other} of others; see --device: {devices}"
                ),
            ));
        }
        let found = format!(
            "no request of device {major},{minor}: no line is Q (queue), D (issue) or C (complete); {}",
            self.ledger
        );
        Err(self.no_request(found))
    }

    fn no_request(&self, found: String) -> Error {
        let expected = match self.format {
            Format::Blkparse | Format::Blktrace => {
                "these actions; run blktrace without -a and -A, or with -a queue -a issue -a complete"
            }
            Format::Ftrace => {
                "the events block_bio_queue, block_rq_issue and block_rq_complete, or \
                 block_bio_complete on a device without requests"
            }
            Format::Iolog => "reads, writes, syncs and trims of a block device",
        };
        Error::Trace(ModelError::Unsupported {
            path: self.name.clone(),
            found,
            expected: expected.to_owned(),
        })
    }

    fn summary(&self) -> u64 {
        self.ledger.left_out(LeftOut::Summary)
    }
}

fn not_default(name: &Path, found: String) -> Error {
    Error::Trace(ModelError::Unsupported {
        path: name.to_owned(),
        found,
        expected: "blkparse's default format (blkparse without -f and -F), files of blktrace, the \
                   kernel's block events as text, or fio's log; docs/import.md names them"
            .to_owned(),
    })
}
