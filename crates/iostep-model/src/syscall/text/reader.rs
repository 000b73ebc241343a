//! Reading a trace file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::super::Operation;
use super::super::identity::HandleId;
use super::super::recording::{Call, Header, InitialFile, Ledger};
use super::super::recording::{Outcome, Paths, Recording, Thread};
use super::fields::Fields;
use super::head::Head;
use super::line::read_call;
use super::writer::is_compressed;
use super::{MAGIC, MAX_LINE_BYTES, VERSION, version};
use crate::error::{Error, Result};

/// Reads a trace file call by call.
pub struct Reader {
    lines: Lines,
    head: Head,
    paths: Paths,
    first: Option<String>,
    last_start_ns: u64,
    calls: u64,
    end: End,
}

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Not reached yet.
    Ahead,
    /// `@end` was there.
    Whole,
    /// The file stops at this line.
    Cut(u64),
}

impl Reader {
    /// Opens a file and reads its declarations.
    ///
    /// Errors: `Io`, `Unsupported` (no trace file of this version), `Corrupt` with the line.
    pub fn open(path: &Path) -> Result<Reader> {
        let file = File::open(path).map_err(Error::io(path, "open"))?;
        let input: Box<dyn Read + Send> = if is_compressed(path) {
            Box::new(zstd::Decoder::new(file).map_err(Error::io(path, "decompress"))?)
        } else {
            Box::new(file)
        };
        Reader::new(path, input)
    }

    /// Reads `input`, which is called `path` in errors.
    ///
    /// Errors: as those of [`Reader::open`].
    pub fn new(path: &Path, input: Box<dyn Read + Send>) -> Result<Reader> {
        let mut lines = Lines {
            path: path.to_owned(),
            input: BufReader::with_capacity(1 << 18, input),
            number: 0,
            buffer: Vec::new(),
        };
        let magic = lines.next()?.map(|(line, _)| line).unwrap_or_default();
        let newest = u64::from(VERSION);
        if let Some(found) = version(&magic).filter(|found| *found > newest) {
            return Err(Error::newer(path, "system calls", found, newest, None));
        }
        if magic != MAGIC {
            return Err(Error::Unsupported {
                path: path.to_owned(),
                found: format!(
                    "begins with {:?}",
                    magic.chars().take(40).collect::<String>()
                ),
                expected: format!("{MAGIC:?} (make one with iostep record or iostep clean)"),
            });
        }
        let mut reader = Reader {
            lines,
            head: Head::default(),
            paths: Paths::default(),
            first: None,
            last_start_ns: 0,
            calls: 0,
            end: End::Ahead,
        };
        reader.read_head()?;
        Ok(reader)
    }

    fn read_head(&mut self) -> Result<()> {
        while let Some((line, _)) = self.lines.next()? {
            match line.strip_prefix('@') {
                Some(rest) if !rest.starts_with("end ") => {
                    let read = self.head.read(rest, &mut self.paths);
                    read.map_err(|fault| self.lines.corrupt(fault))?;
                }
                _ if line.starts_with('#') || line.is_empty() => {}
                _ => {
                    self.first = Some(line);
                    break;
                }
            }
        }
        Ok(())
    }

    /// What made the recording.
    pub fn header(&self) -> &Header {
        &self.head.header
    }

    /// The threads, by their number from 1.
    pub fn threads(&self) -> &[Thread] {
        &self.head.threads
    }

    /// What was there before.
    pub fn initial(&self) -> &[InitialFile] {
        &self.head.initial
    }

    /// Where everything of the source went.
    pub fn ledger(&self) -> &Ledger {
        &self.head.ledger
    }

    /// All declarations again, as they stand in a file: a line each, from `@lost` on.
    pub fn declarations(&self) -> String {
        let mut text = String::new();
        self.head.write(&self.paths, &mut text);
        text
    }

    /// The paths of what was read so far.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The line at which the file stops without an end, once all calls were read.
    pub fn cut_at_line(&self) -> Option<u64> {
        match self.end {
            End::Cut(line) => Some(line),
            _ => None,
        }
    }

    /// The next call; none at the end.
    ///
    /// Errors: `Io`, `Corrupt` with the line.
    pub fn next_call(&mut self) -> Result<Option<Call>> {
        while self.end == End::Ahead {
            let (line, ended) = match self.first.take() {
                Some(line) => (line, true),
                None => match self.lines.next()? {
                    Some(line) => line,
                    None => {
                        self.end = End::Cut(self.lines.number + 1);
                        break;
                    }
                },
            };
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(rest) = line.strip_prefix("@end ") {
                self.read_end(rest)?;
                break;
            }
            match read_call(&line, &mut self.paths) {
                Ok(call) => return self.check(call).map(Some),
                // The last line of a file that was cut.
                Err(_) if !ended => self.end = End::Cut(self.lines.number),
                Err(fault) => return Err(self.lines.corrupt(fault)),
            }
        }
        Ok(None)
    }

    fn check(&mut self, call: Call) -> Result<Call> {
        let thread = call.thread.0;
        if thread as usize > self.head.threads.len() {
            let fault = format!("t{thread} is not declared (\"@thread t{thread} ...\")");
            return Err(self.lines.corrupt(fault));
        }
        if call.start_ns < self.last_start_ns {
            let fault = "begins before the call of the line above; sort the calls by time";
            return Err(self.lines.corrupt(fault));
        }
        self.last_start_ns = call.start_ns;
        self.calls += 1;
        Ok(call)
    }

    fn read_end(&mut self, rest: &str) -> Result<()> {
        let counted = Fields::split(rest).and_then(|mut fields| fields.number::<u64>("calls"));
        let counted = counted.map_err(|fault| self.lines.corrupt(fault))?;
        if counted != self.calls {
            let fault = format!("@end counts {counted} calls, {} are there", self.calls);
            return Err(self.lines.corrupt(fault));
        }
        self.end = End::Whole;
        Ok(())
    }
}

/// Reads a whole file.
///
/// Errors: those of [`Reader`], and `Corrupt` where a call uses an open file that no call opens or
/// a thread is born that is not declared.
pub fn read(path: &Path) -> Result<Recording> {
    let mut reader = Reader::open(path)?;
    let mut calls = Vec::new();
    while let Some(call) = reader.next_call()? {
        calls.push(call);
    }
    let cut_at_line = reader.cut_at_line();
    let recording = Recording {
        header: reader.head.header,
        paths: reader.paths,
        threads: reader.head.threads,
        calls,
        initial: reader.head.initial,
        ledger: reader.head.ledger,
        cut_at_line,
    };
    check_identities(&recording)
        .map_err(|(call, fault)| Error::corrupt(path, format!("call {}", call + 1), fault))?;
    Ok(recording)
}

/// Open files are numbered without gaps, so that a replay may use the number as an index; threads
/// that are born are declared.
fn check_identities(recording: &Recording) -> std::result::Result<(), (usize, String)> {
    let mut opened = Vec::new();
    for call in &recording.calls {
        let opens = matches!(
            call.operation,
            Operation::Open { .. } | Operation::Reopen { .. }
        );
        if let Outcome::Handle(handle) = call.outcome
            && opens
        {
            opened.push(handle);
        }
    }
    opened.sort();
    opened.dedup();
    let known = |handle: &HandleId| opened.binary_search(handle).is_ok();
    if let Some(last) = opened
        .last()
        .filter(|last| last.0 as usize > 2 * opened.len() + 1024)
    {
        return Err((
            0,
            format!("h{}: open files are numbered from h1 without gaps", last.0),
        ));
    }
    for (index, call) in recording.calls.iter().enumerate() {
        if let Operation::Inherit { child, .. } = &call.operation
            && child.0 as usize > recording.threads.len()
        {
            return Err((index, format!("t{} is not declared", child.0)));
        }
        if let Some(unknown) = call
            .operation
            .handles()
            .iter()
            .find(|handle| !known(handle))
        {
            return Err((index, format!("no call opens h{}", unknown.0)));
        }
        if let Outcome::Handle(handle) = call.outcome
            && !known(&handle)
        {
            return Err((index, format!("no call opens h{}", handle.0)));
        }
    }
    Ok(())
}

/// Lines of bounded length, counted.
struct Lines {
    path: PathBuf,
    input: BufReader<Box<dyn Read + Send>>,
    number: u64,
    buffer: Vec<u8>,
}

impl Lines {
    /// The next line without its end, and whether it had one.
    fn next(&mut self) -> Result<Option<(String, bool)>> {
        self.buffer.clear();
        let mut input = (&mut self.input).take(MAX_LINE_BYTES as u64 + 1);
        let read = input.read_until(b'\n', &mut self.buffer);
        if read.map_err(Error::io(&self.path, "read"))? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let ended = self.buffer.last() == Some(&b'\n');
        if ended {
            self.buffer.pop();
        } else if self.buffer.len() > MAX_LINE_BYTES {
            return Err(self.corrupt(format!("longer than {MAX_LINE_BYTES} bytes")));
        }
        match std::str::from_utf8(&self.buffer) {
            Ok(line) => Ok(Some((line.to_owned(), ended))),
            // Half a character at a file's end: it was cut.
            Err(_) if !ended => Ok(Some((String::from("?"), false))),
            Err(_) => Err(self.corrupt("not UTF-8; other bytes are written \\xNN")),
        }
    }

    fn corrupt(&self, fault: impl ToString) -> Error {
        Error::corrupt(&self.path, format!("line {}", self.number), fault)
    }
}
