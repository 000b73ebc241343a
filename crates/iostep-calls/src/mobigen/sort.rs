//! Lines in the order of their times, however many there are: what does not fit into memory lies
//! sorted in a file without a name, part by part, and the parts are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::error::{Error, Result};

/// What is sorted in memory at once, bytes.
pub(super) const PART_BYTES: usize = 16 << 20;
/// What is read of a part at once, bytes.
const WINDOW_BYTES: usize = 64 << 10;
/// The length of a line that is too long, of which nothing is kept.
const TOO_LONG: u32 = u32::MAX;

/// A line's text; none if it is too long.
type Text<'t> = Option<&'t [u8]>;

/// Takes lines.
#[derive(Debug)]
pub(super) struct Sorter {
    part_bytes: usize,
    part: Part,
    spool: Option<BufWriter<File>>,
    /// Where the parts in the spool end.
    ends: Vec<u64>,
}

/// Lines in memory.
#[derive(Debug, Default)]
struct Part {
    text: Vec<u8>,
    lines: Vec<LineSpan>,
}

/// A line of a part.
#[derive(Clone, Copy, Debug)]
struct LineSpan {
    start_ns: u64,
    begin: u32,
    bytes: u32,
}

/// Gives lines in order; those of one time as they came.
#[derive(Debug)]
pub(super) struct Sorted(Lines);

#[derive(Debug)]
enum Lines {
    /// All of them were in memory. The next one's number.
    InMemory(Part, usize),
    /// Parts by their next line.
    InFile(Vec<Stored>, BinaryHeap<Reverse<(u64, usize)>>, Vec<u8>),
}

/// A part in the file: it gives its lines in order.
#[derive(Debug)]
struct Stored {
    section: BufReader<Section>,
    bytes: u32,
}

/// A range of a file, read from its begin.
#[derive(Debug)]
struct Section {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Part {
    fn bytes(&self) -> usize {
        self.text.len() + self.lines.len() * size_of::<LineSpan>()
    }

    fn sort(&mut self) {
        // Stable.
        self.lines.sort_by_key(|line| line.start_ns);
    }

    fn line(&self, place: LineSpan) -> Text<'_> {
        let begin = place.begin as usize;
        (place.bytes != TOO_LONG).then(|| &self.text[begin..begin + place.bytes as usize])
    }
}

impl Sorter {
    /// Sorts so many bytes in memory.
    pub(super) fn new(part_bytes: usize) -> Sorter {
        Sorter {
            part_bytes,
            part: Part::default(),
            spool: None,
            ends: Vec::new(),
        }
    }

    /// Adds a line.
    ///
    /// Errors: `Io` if it has to go to a file and cannot.
    pub(super) fn push(&mut self, start_ns: u64, text: Text<'_>) -> Result<()> {
        let bytes = self.part.bytes() + text.map_or(0, <[u8]>::len);
        if bytes > self.part_bytes && !self.part.lines.is_empty() {
            self.store().map_err(spool_error)?;
        }
        let number = |length| u32::try_from(length).unwrap_or(TOO_LONG);
        self.part.lines.push(LineSpan {
            start_ns,
            begin: number(self.part.text.len()),
            bytes: text.map_or(TOO_LONG, |text| number(text.len())),
        });
        self.part.text.extend_from_slice(text.unwrap_or_default());
        Ok(())
    }

    /// Moves what is in memory to the file.
    fn store(&mut self) -> std::io::Result<()> {
        let spool = match &mut self.spool {
            Some(spool) => spool,
            None => {
                let file = tempfile::tempfile()?;
                let capacity = WINDOW_BYTES;
                self.spool.insert(BufWriter::with_capacity(capacity, file))
            }
        };
        self.part.sort();
        let mut end = self.ends.last().copied().unwrap_or(0);
        for place in &self.part.lines {
            let text = self.part.line(*place).unwrap_or_default();
            spool.write_all(&place.start_ns.to_ne_bytes())?;
            spool.write_all(&place.bytes.to_ne_bytes())?;
            spool.write_all(text)?;
            end += HEAD_BYTES + text.len() as u64;
        }
        self.ends.push(end);
        self.part.lines.clear();
        self.part.text.clear();
        Ok(())
    }

    /// All lines were added.
    ///
    /// Errors: `Io` of the file.
    pub(super) fn finish(mut self) -> Result<Sorted> {
        if self.spool.is_none() {
            self.part.sort();
            return Ok(Sorted(Lines::InMemory(self.part, 0)));
        }
        self.merge().map_err(spool_error)
    }

    fn merge(mut self) -> std::io::Result<Sorted> {
        self.store()?;
        let Some(spool) = self.spool else {
            return Ok(Sorted(Lines::InMemory(self.part, 0)));
        };
        let file = Arc::new(spool.into_inner().map_err(|error| error.into_error())?);
        let (mut parts, mut next) = (Vec::new(), BinaryHeap::new());
        let mut at = 0;
        for end in self.ends {
            let file = Arc::clone(&file);
            let section = Section { file, at, end };
            let mut part = Stored {
                section: BufReader::with_capacity(WINDOW_BYTES, section),
                bytes: 0,
            };
            next.extend(
                part.head()?
                    .map(|start_ns| Reverse((start_ns, parts.len()))),
            );
            parts.push(part);
            at = end;
        }
        Ok(Sorted(Lines::InFile(parts, next, Vec::new())))
    }
}

/// A stored line's time and length.
const HEAD_BYTES: u64 = 12;

impl Stored {
    /// Goes to the next line: its time.
    fn head(&mut self) -> std::io::Result<Option<u64>> {
        let Section { at, end, .. } = *self.section.get_ref();
        if at == end && self.section.buffer().is_empty() {
            return Ok(None);
        }
        let (mut start_ns, mut bytes) = ([0; 8], [0; 4]);
        self.section.read_exact(&mut start_ns)?;
        self.section.read_exact(&mut bytes)?;
        self.bytes = u32::from_ne_bytes(bytes);
        Ok(Some(u64::from_ne_bytes(start_ns)))
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let rest = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let room = buffer.len().min(rest);
        let read = self.file.read_at(&mut buffer[..room], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Sorted {
    /// The next line; nothing after the last one.
    ///
    /// Errors: `Io` of the file.
    pub(super) fn next(&mut self) -> Result<Option<Text<'_>>> {
        match &mut self.0 {
            Lines::InMemory(part, number) => {
                let place = part.lines.get(*number).copied();
                *number += 1;
                Ok(place.map(|place| part.line(place)))
            }
            Lines::InFile(parts, next, text) => {
                let Some(Reverse((_, number))) = next.pop() else {
                    return Ok(None);
                };
                let part = &mut parts[number];
                let too_long = part.bytes == TOO_LONG;
                text.resize(if too_long { 0 } else { part.bytes as usize }, 0);
                part.section.read_exact(text).map_err(spool_error)?;
                let head = part.head().map_err(spool_error)?;
                next.extend(head.map(|start_ns| Reverse((start_ns, number))));
                Ok(Some((!too_long).then_some(&text[..])))
            }
        }
    }
}

fn spool_error(source: std::io::Error) -> Error {
    Error::Io {
        path: std::env::temp_dir(),
        what: "sort a script in a file in",
        source,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_come_by_time_and_then_as_they_were(
            lines in proptest::collection::vec(
                (0_u64..50, proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40))),
                0..200,
            ),
            part_bytes in prop_oneof![Just(0_usize), 1_usize..2000, Just(PART_BYTES)],
        ) {
            let mut sorter = Sorter::new(part_bytes);
            for (start_ns, text) in &lines {
                sorter.push(*start_ns, text.as_deref()).expect("room");
            }
            let mut expected = lines;
            expected.sort_by_key(|line| line.0);
            let mut sorted = sorter.finish().expect("room");
            for (_, text) in expected {
                let told = sorted.next().expect("readable");
                prop_assert_eq!(told, Some(text.as_deref()));
            }
            prop_assert_eq!(sorted.next().expect("readable"), None);
        }
    }
}
