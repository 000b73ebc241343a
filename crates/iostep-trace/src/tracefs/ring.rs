//! Pages of the kernel's trace ring buffer, as `trace_pipe_raw` gives them.
//!
//! A page begins with what `events/header_page` describes: a time stamp, and the length of the
//! data with flags above it. Then come entries, each with a 4-byte header in the machine's byte
//! order (bit fields, so the low bits come first on little-endian machines and last on others):
//!
//! | bits | field |
//! |---|---|
//! | 5 | `type_len`: 0 long data, 1..28 data of 4 x `type_len` bytes, 29 padding, 30 time extend, 31 time stamp |
//! | 27 | `time_delta`: ns since the entry before it |
//!
//! Source: include/linux/ring_buffer.h, `rb_update_event` and `ring_buffer_read_page` in
//! kernel/trace/ring_buffer.c.

use crate::tracefs::format::Format;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
const LENGTH_MASK: u64 = (1 << 27) - 1;

/// The shape of a page, from `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageShape {
    commit_offset: usize,
    commit_bytes: usize,
    data_offset: usize,
    /// Length of a page: what to read at once.
    pub page_bytes: usize,
}

impl PageShape {
    /// Reads the shape out of `events/header_page`; `None` if it says too little or nonsense.
    pub fn parse(header_page: &str) -> Option<PageShape> {
        let format = Format::parse(header_page);
        let (commit, data) = (format.field("commit")?, format.field("data")?);
        let page_bytes = data.offset.checked_add(data.size)?;
        let plausible = format.field("timestamp")?.size == 8
            && matches!(commit.size, 4 | 8)
            && commit.offset >= 8
            && commit.offset.checked_add(commit.size)? <= data.offset
            && (64..=1 << 20).contains(&page_bytes);
        plausible.then_some(PageShape {
            commit_offset: commit.offset,
            commit_bytes: commit.size,
            data_offset: data.offset,
            page_bytes,
        })
    }

    /// The records of a page; whatever is cut or garbled ends the iteration.
    pub fn records(self, page: &[u8]) -> Records<'_> {
        let header = page
            .split_at_checked(self.data_offset)
            .and_then(|(h, data)| {
                let time = u64::from_ne_bytes(h.get(..8)?.try_into().ok()?);
                let commit = h.get(self.commit_offset..)?.get(..self.commit_bytes)?;
                let commit = match commit.len() {
                    4 => u64::from(u32::from_ne_bytes(commit.try_into().ok()?)),
                    _ => u64::from_ne_bytes(commit.try_into().ok()?),
                };
                Some((time, commit, data))
            });
        let Some((mono_ns, commit, data)) = header else {
            return Records::default();
        };
        let length = usize::try_from(commit & LENGTH_MASK).unwrap_or(usize::MAX);
        Records {
            data: &data[..length.min(data.len())],
            mono_ns,
            damaged: length > data.len(),
        }
    }
}

/// Iterates over the data entries of a page: the time in ns of the trace clock, and the record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records<'a> {
    data: &'a [u8],
    mono_ns: u64,
    /// True once an entry did not fit the page.
    pub damaged: bool,
}

impl<'a> Records<'a> {
    fn take_u32(&mut self) -> Option<u32> {
        let (word, rest) = self.data.split_first_chunk::<4>()?;
        self.data = rest;
        Some(u32::from_ne_bytes(*word))
    }

    /// The next entry: `Some(None)` for one that only carries time or padding.
    fn entry(&mut self) -> Option<Option<(u64, &'a [u8])>> {
        let header = self.take_u32()?;
        let (type_len, delta) = if cfg!(target_endian = "little") {
            (header & 31, header >> 5)
        } else {
            (header >> DELTA_BITS, header & ((1 << DELTA_BITS) - 1))
        };
        let delta = u64::from(delta);
        match type_len {
            PADDING if delta == 0 => {
                self.data = &[];
                Some(None)
            }
            PADDING => {
                self.mono_ns = self.mono_ns.wrapping_add(delta);
                let bytes = self.take_u32()? as usize;
                self.data = self.data.get(bytes.checked_sub(4)?..)?;
                Some(None)
            }
            TIME_EXTEND => {
                let high = u64::from(self.take_u32()?) << DELTA_BITS;
                self.mono_ns = self.mono_ns.wrapping_add(high + delta);
                Some(None)
            }
            TIME_STAMP => {
                // An absolute stamp has 59 bits; the top five stay (`rb_fix_abs_ts`).
                let high = u64::from(self.take_u32()?) << DELTA_BITS;
                self.mono_ns = self.mono_ns & (31 << 59) | high | delta;
                Some(None)
            }
            _ => {
                self.mono_ns = self.mono_ns.wrapping_add(delta);
                let bytes = match type_len {
                    0 => (self.take_u32()? as usize).checked_sub(4)?,
                    words => words as usize * 4,
                };
                let (record, rest) = self.data.split_at_checked(bytes)?;
                // Entries are aligned to four bytes whatever their length says.
                self.data = rest.get(bytes.next_multiple_of(4) - bytes..)?;
                Some(Some((self.mono_ns, record)))
            }
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.data.is_empty() {
            match self.entry() {
                Some(Some(record)) => return Some(record),
                Some(None) => {}
                None => {
                    self.damaged = true;
                    self.data = &[];
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = include_str!("../../testdata/tracefs/header_page");
    const PAGE: &[u8] = include_bytes!("../../testdata/tracefs/page.bin");

    fn shape() -> PageShape {
        PageShape::parse(HEADER).expect("a recorded header")
    }

    fn word(type_len: u32, delta: u32) -> [u8; 4] {
        if cfg!(target_endian = "little") {
            (type_len | delta << 5).to_ne_bytes()
        } else {
            (type_len << DELTA_BITS | delta).to_ne_bytes()
        }
    }

    fn page(time: u64, words: &[[u8; 4]]) -> Vec<u8> {
        let mut page = time.to_ne_bytes().to_vec();
        page.extend((words.len() as u64 * 4).to_ne_bytes());
        page.extend(words.concat());
        page
    }

    #[test]
    fn a_recorded_page_holds_records_of_known_types_in_the_order_of_time() {
        let mut records = shape().records(PAGE);
        let all: Vec<_> = records.by_ref().collect();
        assert!(!records.damaged);
        assert_eq!(all.len(), 19);
        assert!(all.is_sorted_by_key(|(mono_ns, _)| *mono_ns));
        assert!(all.iter().all(|(_, record)| record.len() >= 8));
    }

    #[test]
    fn every_kind_of_entry_moves_the_clock_as_the_kernel_says() {
        let words = [
            word(1, 5),
            *b"aaaa",
            word(TIME_EXTEND, 7),
            2u32.to_ne_bytes(),
            word(0, 1),
            8u32.to_ne_bytes(),
            *b"bbbb",
            word(PADDING, 3),
            8u32.to_ne_bytes(),
            *b"skip",
            word(TIME_STAMP, 9),
            1u32.to_ne_bytes(),
            word(1, 0),
            *b"cccc",
        ];
        let bytes = page(1000, &words);
        let records: Vec<_> = shape().records(&bytes).collect();
        let extended = 1005 + 7 + (2 << 27) + 1;
        let expected: [(u64, &[u8]); 3] = [
            (1005, b"aaaa"),
            (extended, b"bbbb"),
            ((1 << 27) + 9, b"cccc"),
        ];
        assert_eq!(records, expected);
    }

    #[test]
    fn the_flags_above_the_length_are_no_length() {
        let mut bytes = page(0, &[word(1, 0), *b"aaaa"]);
        // RB_MISSED_EVENTS and RB_MISSED_STORED.
        bytes[8..16].copy_from_slice(&(8u64 | 3 << 30).to_ne_bytes());
        assert_eq!(shape().records(&bytes).count(), 1);
    }

    #[test]
    fn nonsense_headers_are_refused() {
        for text in ["", "field: u64 timestamp;\toffset:0;\tsize:8;"] {
            assert_eq!(PageShape::parse(text), None);
        }
        let huge = HEADER.replace("size:4080", "size:18446744073709551615");
        assert_eq!(PageShape::parse(&huge), None);
    }

    #[test]
    fn a_page_cut_anywhere_gives_a_prefix_of_its_records() {
        let whole: Vec<_> = shape().records(PAGE).collect();
        for length in 0..PAGE.len() {
            let cut: Vec<_> = shape().records(&PAGE[..length]).collect();
            assert_eq!(cut[..], whole[..cut.len()]);
        }
    }

    proptest! {
        #[test]
        fn corrupt_pages_end_without_a_panic(
            changes in prop::collection::vec((0..PAGE.len(), any::<u8>()), 1..40),
        ) {
            let mut bytes = PAGE.to_vec();
            for (at, value) in changes {
                bytes[at] = value;
            }
            let records: usize = shape().records(&bytes).map(|(_, record)| record.len()).sum();
            prop_assert!(records <= bytes.len());
        }
    }
}
