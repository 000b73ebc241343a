//! Writing a trace file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use super::super::recording::{Call, Header, InitialFile, Ledger, Paths, Thread};
use super::head::Head;
use super::{MAGIC, write_call};
use crate::error::{Error, Result};
use crate::publish;

/// Calls held back, so that one that began early and ended late finds its place.
const WINDOW_CALLS: usize = 1 << 14;

/// Writes a trace file from calls in the order in which they end.
///
/// The lines lie in an unnamed temporary file beside the target until [`Writer::finish`] puts the
/// declarations before them: what they say is known only then. Calls that began longer ago than
/// the window are kept in memory, since there are few.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    spool: BufWriter<File>,
    head: Head,
    /// By when they began, then by when they came: nearly all come in this order.
    window: VecDeque<Line>,
    late: Vec<Line>,
    spooled_to_ns: u64,
    calls: u64,
}

/// A line to be sorted.
#[derive(Debug)]
struct Line {
    start_ns: u64,
    text: String,
}

impl Writer {
    /// Begins a file. Nothing is seen at `path` before [`Writer::finish`].
    ///
    /// Errors: `Io` where no temporary file can be made.
    pub fn create(path: &Path, header: Header) -> Result<Writer> {
        let directory = publish::spool_directory(path);
        let spool = tempfile::tempfile_in(&directory);
        let spool = spool.map_err(Error::io(&directory, "create a file in"))?;
        Ok(Writer {
            path: path.to_owned(),
            spool: BufWriter::with_capacity(1 << 18, spool),
            head: Head {
                header,
                ..Head::default()
            },
            window: VecDeque::with_capacity(WINDOW_CALLS + 1),
            late: Vec::new(),
            spooled_to_ns: 0,
            calls: 0,
        })
    }

    /// Declares a thread. They come in the order of their numbers.
    pub fn thread(&mut self, thread: &Thread) {
        self.head.threads.push(thread.clone());
    }

    /// Says a name or number of a thread anew.
    pub fn change_thread(&mut self, thread: &Thread) {
        // They are numbered from 1 as they come.
        let index = (thread.id.0 as usize).wrapping_sub(1);
        if let Some(known) = self.head.threads.get_mut(index) {
            known.name.clone_from(&thread.name);
            known.tid = thread.tid;
        }
    }

    /// Adds a call.
    ///
    /// Errors: `Io` where the temporary file cannot take it.
    pub fn call(&mut self, call: &Call, paths: &Paths) -> Result<()> {
        let mut text = String::with_capacity(96);
        write_call(call, paths, &mut text);
        text.push('\n');
        self.calls += 1;
        let start_ns = call.start_ns;
        let line = Line { start_ns, text };
        let at = match self.window.back() {
            Some(last) if last.start_ns > start_ns => {
                let window = &self.window;
                window.partition_point(|before| before.start_ns <= start_ns)
            }
            _ => self.window.len(),
        };
        self.window.insert(at, line);
        if self.window.len() > WINDOW_CALLS {
            self.spool_first()?;
        }
        Ok(())
    }

    /// Moves the earliest call out of the window.
    fn spool_first(&mut self) -> Result<()> {
        let Some(line) = self.window.pop_front() else {
            return Ok(());
        };
        if line.start_ns < self.spooled_to_ns {
            self.late.push(line);
            return Ok(());
        }
        self.spooled_to_ns = line.start_ns;
        let written = self.spool.write_all(line.text.as_bytes());
        written.map_err(Error::io(&self.path, "write"))
    }

    /// Writes the file: under a temporary name, then renamed.
    ///
    /// Errors: `Io`; `path` is then as it was.
    pub fn finish(mut self, initial: &[InitialFile], ledger: &Ledger, paths: &Paths) -> Result<()> {
        while !self.window.is_empty() {
            self.spool_first()?;
        }
        self.head.initial = initial.to_vec();
        self.head.ledger = ledger.clone();
        let mut head = format!("{MAGIC}\n");
        self.head.write(paths, &mut head);
        let path = self.path.clone();
        let whole = |out: &mut dyn Write| self.write_all(&head, out);
        publish::write_private_with(&path, |file| -> Result<()> {
            if !is_compressed(&path) {
                return whole(file).map_err(Error::io(&path, "write"));
            }
            let mut encoder = zstd::Encoder::new(file, 0).map_err(Error::io(&path, "compress"))?;
            whole(&mut encoder).map_err(Error::io(&path, "write"))?;
            encoder
                .finish()
                .map(drop)
                .map_err(Error::io(&path, "write"))
        })
    }

    fn write_all(mut self, head: &str, out: &mut dyn Write) -> std::io::Result<()> {
        out.write_all(head.as_bytes())?;
        let mut spool = self.spool.into_inner().map_err(|e| e.into_error())?;
        spool.rewind()?;
        // Stable: they come in the order in which they came.
        self.late.sort_by_key(|line| line.start_ns);
        let mut late = self.late.iter().peekable();
        let mut lines = BufReader::with_capacity(1 << 18, spool);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            let start_ns = leading_number(&line);
            // A late call came after those that began with it.
            while let Some(before) = late.next_if(|before| before.start_ns < start_ns) {
                out.write_all(before.text.as_bytes())?;
            }
            out.write_all(&line)?;
            line.clear();
        }
        for rest in late {
            out.write_all(rest.text.as_bytes())?;
        }
        writeln!(out, "@end calls={}", self.calls)
    }
}

/// True for a name that ends in `.zst`.
pub(super) fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

fn leading_number(line: &[u8]) -> u64 {
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}
