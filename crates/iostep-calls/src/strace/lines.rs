//! A text's lines, without copies.

use std::io::{BufRead, Read};
use std::ops::Range;
use std::path::PathBuf;

use iostep_model::printable::BYTE_ORDER_MARK;

use crate::error::{Error, Result};
use crate::input::Input;

/// The longest line that is read, bytes: strace -v -s 65536 of a large vector stays below. Longer
/// ones are counted, and their memory is bounded by this.
pub(super) const MAX_LINE_BYTES: usize = 1 << 20;
/// Bytes that are asked for at once, of one text, and at most of all together: strace -ff makes a
/// text for each of thousands of threads.
const READ_BYTES: usize = 128 << 10;
const ALL_READ_BYTES: usize = 32 << 20;
const LEAST_READ_BYTES: usize = 4 << 10;

/// A text as a window that moves over it.
pub(super) struct Lines<'a> {
    pub(super) path: PathBuf,
    text: Box<dyn BufRead + 'a>,
    buffer: Vec<u8>,
    /// What of the buffer is text and not yet told.
    rest: Range<usize>,
    ended: bool,
    read_bytes: usize,
    /// The number of the line told last, from 1.
    pub(super) number: u64,
}

/// Where a line is in the window.
#[derive(Clone, Debug)]
pub(super) enum Line {
    /// Its bytes, without the end.
    Whole(Range<usize>),
    /// Longer than [`MAX_LINE_BYTES`].
    TooLong,
}

impl<'a> Lines<'a> {
    /// A window over one of `texts`.
    pub(super) fn new(input: Input<'a>, texts: usize) -> Lines<'a> {
        let share = ALL_READ_BYTES / texts.max(1);
        Lines {
            read_bytes: share.clamp(LEAST_READ_BYTES, READ_BYTES),
            path: input.path,
            text: input.text,
            buffer: Vec::new(),
            rest: 0..0,
            ended: false,
            number: 0,
        }
    }

    /// The bytes of a line, as long as no other was asked for.
    pub(super) fn bytes(&self, line: &Range<usize>) -> &[u8] {
        &self.buffer[line.clone()]
    }

    /// The text's first bytes: whole lines, or the beginning of a long one. To be asked for before
    /// the first line.
    ///
    /// Errors: `Io`.
    pub(super) fn start(&mut self) -> Result<&[u8]> {
        let is_little = |text: &[u8], read_bytes| {
            text.len() < read_bytes
                || text.len() < READ_BYTES && memchr::memchr(b'\n', text).is_none()
        };
        while is_little(&self.buffer[self.rest.clone()], self.read_bytes) && !self.ended {
            self.fill()?;
        }
        if self.number == 0 && self.buffer[self.rest.clone()].starts_with(BYTE_ORDER_MARK) {
            self.rest.start += BYTE_ORDER_MARK.len();
        }
        Ok(&self.buffer[self.rest.clone()])
    }

    /// The next line.
    ///
    /// Errors: `Io`.
    pub(super) fn next(&mut self) -> Result<Option<Line>> {
        let mut searched = 0;
        let mut too_long = false;
        loop {
            let window = &self.buffer[self.rest.clone()];
            if let Some(found) = memchr::memchr(b'\n', &window[searched..]) {
                let start = self.rest.start;
                let end = start + searched + found;
                self.rest.start = end + 1;
                self.number += 1;
                return Ok(Some(match too_long || end - start > MAX_LINE_BYTES {
                    true => Line::TooLong,
                    false => Line::Whole(start..end),
                }));
            }
            searched = window.len();
            if searched > MAX_LINE_BYTES {
                too_long = true;
                self.rest.start = self.rest.end;
                searched = 0;
            }
            if self.ended {
                let line = std::mem::replace(&mut self.rest, 0..0);
                if line.is_empty() && !too_long {
                    return Ok(None);
                }
                self.number += 1;
                return Ok(Some(match too_long {
                    true => Line::TooLong,
                    false => Line::Whole(line),
                }));
            }
            self.fill()?;
        }
    }

    /// Moves what is left to the front and reads more behind it.
    fn fill(&mut self) -> Result<()> {
        self.buffer.copy_within(self.rest.clone(), 0);
        self.rest = 0..self.rest.len();
        let wanted = self.rest.end + self.read_bytes;
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        loop {
            match self.text.read(&mut self.buffer[self.rest.end..]) {
                Ok(0) => self.ended = true,
                Ok(bytes) => self.rest.end += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    return Err(Error::Io {
                        path: self.path.clone(),
                        what: "read",
                        source,
                    });
                }
            }
            return Ok(());
        }
    }
}
