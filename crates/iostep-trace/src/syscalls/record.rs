//! A recorded call, as it lies in the spool. bpf/wire.h defines the layout.

use iostep_model::syscall::Errno;
use iostep_model::syscall::raw::Returned;

use super::programs::types::{
    wire_flags as Flag, wire_note as Note, wire_record, wire_size as Size,
};

pub const WORDS: usize = Size::WIRE_WORDS.0 as usize;
/// Where the lengths of the two texts are.
const TEXTS: usize = Size::WIRE_TEXTS.0 as usize;
/// The NUL included.
pub const TEXT_BYTES: usize = Size::WIRE_TEXT_BYTES.0 as usize;
const HEADER_BYTES: usize = size_of::<wire_record>() - WORDS * 8;
/// The longest record.
pub const MAX_BYTES: usize = HEADER_BYTES + WORDS * 8 + 2 * TEXT_BYTES;

/// `number` of what is no system call; wire.h says what each is.
macro_rules! notes {
    ($($name:ident = $wire:ident,)*) => { $(pub const $name: u16 = Note::$wire.0 as u16;)* };
}
notes!(
    FORK = WIRE_FORK,
    EXEC = WIRE_EXEC,
    EXIT = WIRE_EXIT,
    NAME = WIRE_NAME,
    FOREIGN = WIRE_FOREIGN,
    REQUEST = WIRE_REQUEST,
    REQUEST_NAMES = WIRE_REQUEST_NAMES,
    RECEIVED = WIRE_RECEIVED,
    UNRECORDED = WIRE_UNRECORDED,
    SUBMITTED = WIRE_SUBMITTED,
    COMPLETED = WIRE_COMPLETED,
);

/// `flags`, which wire.h explains.
macro_rules! flags {
    ($($name:ident = $wire:ident,)*) => { $(pub const $name: u8 = Flag::$wire.0 as u8;)* };
}
flags!(
    UNFINISHED = FLAG_UNFINISHED,
    TEXT_1_LOST = FLAG_TEXT_1_LOST,
    TEXT_2_LOST = FLAG_TEXT_2_LOST,
    EXTRA_LOST = FLAG_EXTRA_LOST,
    SEEN = FLAG_SEEN,
    UNTOLD = FLAG_UNTOLD,
);

const ENAMETOOLONG: i64 = 36;
/// `ERESTARTSYS` to `ERESTART_RESTARTBLOCK` (include/linux/errno.h): no program ever sees them.
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// `CLOCK_MONOTONIC` when the call began, nanoseconds.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// What it returned, a negative error number if it failed.
    pub result: i64,
    pub tid: u32,
    /// The system call's number on this architecture, or one of the constants above.
    pub number: u16,
    /// The constants above.
    pub flags: u8,
    /// Six arguments, four words that were read from memory; what was not recorded is 0.
    pub word: [u64; TEXTS],
    /// The strings, without their NUL.
    pub text: [&'a [u8]; 2],
}

impl<'a> Record<'a> {
    /// Takes a record apart. None if it is shorter than it says.
    pub fn parse(bytes: &'a [u8]) -> Option<Record<'a>> {
        let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let words = usize::from(*bytes.get(30)?);
        let mut all = [0; WORDS];
        for (index, value) in all.iter_mut().enumerate().take(words) {
            *value = word(HEADER_BYTES + 8 * index)?;
        }
        let mut text = [&bytes[..0]; 2];
        let mut at = HEADER_BYTES + 8 * words;
        for (text, length) in text.iter_mut().zip(&all[TEXTS..]) {
            let length = usize::try_from(*length).ok()?;
            let string = bytes.get(at..at.checked_add(length)?)?;
            *text = string.strip_suffix(&[0]).unwrap_or(string);
            at += length;
        }
        Some(Record {
            start_ns: word(0)?,
            duration_ns: word(8)?,
            result: word(16)? as i64,
            tid: u32::from_ne_bytes(bytes.get(24..28)?.try_into().ok()?),
            number: u16::from_ne_bytes(bytes.get(28..30)?.try_into().ok()?),
            flags: *bytes.get(31)?,
            word: all[..TEXTS].try_into().ok()?,
            text,
        })
    }

    /// The bytes that [`Record::parse`] takes: for recorders in user space.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + WORDS * 8);
        bytes.extend_from_slice(&self.start_ns.to_ne_bytes());
        bytes.extend_from_slice(&self.duration_ns.to_ne_bytes());
        bytes.extend_from_slice(&self.result.to_ne_bytes());
        bytes.extend_from_slice(&self.tid.to_ne_bytes());
        bytes.extend_from_slice(&self.number.to_ne_bytes());
        bytes.extend_from_slice(&[WORDS as u8, self.flags]);
        let texts = self.text.map(|text| &text[..text.len().min(TEXT_BYTES)]);
        let lengths = texts.map(|text| text.len() as u64);
        for word in self.word.iter().chain(&lengths) {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.extend(texts.iter().copied().flatten());
        bytes
    }

    /// True if any of these flags is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// True if the kernel will make the call again, after a signal.
    pub fn is_restarted(&self) -> bool {
        RESTARTS.contains(&self.result)
    }

    /// True if a text is not the whole of what the program passed.
    pub fn is_cut_off(&self, text: usize) -> bool {
        let lost = [TEXT_1_LOST, TEXT_2_LOST][text];
        let full = self.text[text].len() + 1 >= TEXT_BYTES;
        self.has(lost) || (full && self.result == -ENAMETOOLONG)
    }

    /// How the call ended.
    pub fn returned(&self) -> Returned {
        if self.has(UNFINISHED) {
            return Returned::Unfinished;
        }
        if self.has(UNTOLD) {
            return Returned::Unknown;
        }
        match self.result {
            error @ -4095..=-1 => Returned::Failed(Errno(-error as i32)),
            value => Returned::Value(value as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Record<'static> {
        Record {
            start_ns: 1,
            duration_ns: 2,
            result: -2,
            tid: 4711,
            number: 257,
            flags: SEEN,
            word: [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
            text: [b"/first", b"second"],
        }
    }

    #[test]
    fn a_record_reads_back_and_every_shorter_one_is_refused() {
        let bytes = sample().bytes();
        assert_eq!(Record::parse(&bytes), Some(sample()));
        for length in 0..bytes.len() {
            assert_eq!(Record::parse(&bytes[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        let mut bytes = sample().bytes();
        bytes[HEADER_BYTES + 8 * TEXTS..][..8].fill(0xff);
        assert_eq!(Record::parse(&bytes), None);
    }

    #[test]
    fn errors_are_told_from_addresses() {
        let of = |result| Record { result, ..sample() }.returned();
        assert_eq!(of(-4095), Returned::Failed(Errno(4095)));
        assert_eq!(of(-4096), Returned::Value(-4096_i64 as u64));
        let killed = Record {
            flags: UNFINISHED,
            ..sample()
        };
        assert_eq!(killed.returned(), Returned::Unfinished);
        let untold = Record {
            flags: UNTOLD,
            ..sample()
        };
        assert_eq!(untold.returned(), Returned::Unknown);
    }
}
