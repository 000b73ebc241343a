//! What a guest tells: the keys of the cells that it has done, and complaints.

use std::io::{self, Write};
use std::path::Path;

use iostep_model::lab::Cell;
use iostep_model::printable;

use super::watch::Watch;
use crate::error::{Error, Result};
use crate::measured::Measured;
use crate::results;

/// What is kept of complaints.
pub(super) const MAX_STDERR_BYTES: usize = 16 << 10;

/// Takes the results that the guest announces: it writes a cell's key as a line when its result is
/// there.
pub(super) struct Inbox<'a> {
    share: &'a Path,
    cells: &'a [Cell],
    watch: &'a Watch<'a>,
    line: Vec<u8>,
    taken: Vec<String>,
    done: &'a mut dyn FnMut(Measured) -> Result<()>,
    error: Option<Error>,
}

impl<'a> Inbox<'a> {
    /// For results of these cells in the directory `share`. `done` is given each once.
    pub fn new(
        share: &'a Path,
        cells: &'a [Cell],
        watch: &'a Watch<'a>,
        done: &'a mut dyn FnMut(Measured) -> Result<()>,
    ) -> Inbox<'a> {
        Inbox {
            share,
            cells,
            watch,
            line: Vec::new(),
            taken: Vec::new(),
            done,
            error: None,
        }
    }

    /// Takes every result that is there; the keys of all that were taken.
    ///
    /// Errors: the first of `done`.
    pub fn finish(mut self) -> Result<Vec<String>> {
        for cell in self.cells {
            self.take(&cell.key);
        }
        match self.error {
            None => Ok(self.taken),
            Some(error) => Err(error),
        }
    }

    /// Takes a result once. What cannot be read is as good as not there: the guest may have died
    /// of it.
    fn take(&mut self, key: &str) {
        let found = self.cells.iter().find(|cell| cell.key == key);
        let Some(cell) = found.filter(|cell| !self.taken.contains(&cell.key)) else {
            return;
        };
        let Ok(Some(measured)) = results::read_measured(self.share, cell) else {
            return;
        };
        self.taken.push(cell.key.clone());
        if let Err(error) = (self.done)(measured) {
            self.error.get_or_insert(error);
        }
    }
}

impl Write for Inbox<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.watch.heard();
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                // No key is longer.
                self.line.truncate(64);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            self.take(&String::from_utf8_lossy(&line));
        }
        match &self.error {
            Some(error) => Err(io::Error::other(error.to_string())),
            None => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The end of what a guest complained about.
#[derive(Default)]
pub(super) struct Tail(pub Vec<u8>);

impl Tail {
    pub fn last_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0);
        let line = text.lines().rfind(|line| !line.trim().is_empty())?;
        let line = line.strip_prefix("iostep: ").unwrap_or(line);
        Some(printable(line).into_owned())
    }
}

impl Write for Tail {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        let excess = self.0.len().saturating_sub(MAX_STDERR_BYTES);
        self.0.drain(..excess);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
