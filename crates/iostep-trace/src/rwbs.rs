//! blktrace's letters, read back: those of the kernel's tracepoints (`blk_fill_rwbs`,
//! kernel/trace/blktrace.c) and those of blkparse (`fill_rwbs`, `blkparse_fmt.c`), of every version.
//!
//! | letters | meaning |
//! |---|---|
//! | `R`, `W`, `D` | read, write, discard |
//! | `F` before the operation | preflush, since 2.6.37 |
//! | `F` alone, `FF`, blkparse's `FN` | the flush itself, since 4.8 |
//! | `DE`, or `E` behind the flags (3.6 to 4.7) | secure erase |
//! | `WZ` | write zeroes, of tools that tell it from a write |
//! | `ZA` | zone append; `ZR`, `ZRA`, `ZF`, `ZO`, `ZC` manage zones; since 6.17 |
//! | `N`, `-` | none of these: a driver's command, and what a version has no letter for |
//! | `F`, `A`, `S`, `M`, `U` behind the operation | FUA, readahead, sync, metadata, atomic |
//! | `B` behind the operation | barrier; blkparse before 1.2 writes a preflush so |

use iostep_model::{Flags, Operation};

/// Decodes letters of the kernel's tracepoints, whatever they are.
///
/// The kernel writes `N` for write-zeroes as for everything that has no letter; of these only
/// write-zeroes covers sectors of the filesystem, so `sectors` tells them apart.
pub(crate) fn parse(letters: &[u8], sectors: u32) -> (Operation, Flags) {
    let end = letters.iter().position(|&b| b == 0);
    let letters = &letters[..end.unwrap_or(letters.len())];
    let (preflush, name, rest) = split(letters);
    let operation = match name {
        [b'N'] if sectors > 0 => Operation::WriteZeroes,
        name => operation(name).unwrap_or(Operation::Other),
    };
    let flags = rest.iter().fold(preflush, |flags, letter| {
        flags.with(flag(*letter).unwrap_or_default())
    });
    finish(operation, flags, rest)
}

/// Decodes letters of a text; `None` if one of them is none of blktrace's.
pub(crate) fn read(letters: &[u8]) -> Option<(Operation, Flags)> {
    let (preflush, name, rest) = split(letters);
    let operation = match name {
        // blkparse has no letter for a flush.
        [b'N'] if preflush.has(Flags::PREFLUSH) => return flush(rest),
        name => operation(name)?,
    };
    let flags = rest.iter().try_fold(preflush, |flags, letter| {
        Some(flags.with(flag(*letter).or((*letter == b'E').then_some(Flags::default()))?))
    })?;
    Some(finish(operation, flags, rest))
}

fn flush(rest: &[u8]) -> Option<(Operation, Flags)> {
    let flags = rest.iter().try_fold(Flags::default(), |flags, letter| {
        Some(flags.with(flag(*letter)?))
    })?;
    Some((Operation::Flush, flags))
}

/// The preflush, the operation's letters, and the flags' letters.
fn split(letters: &[u8]) -> (Flags, &[u8], &[u8]) {
    // Before an operation `F` is a preflush; alone or last it is the flush itself.
    let (preflush, letters) = match letters {
        [b'F', rest @ ..] if rest.first().is_some_and(|l| b"RWDNFZ".contains(l)) => {
            (Flags::PREFLUSH, rest)
        }
        _ => (Flags::default(), letters),
    };
    let length = match letters {
        [b'Z', b'R', b'A', ..] => 3,
        [b'W', b'Z', ..] | [b'D', b'E', ..] | [b'Z', _, ..] => 2,
        [] => 0,
        _ => 1,
    };
    let (name, rest) = letters.split_at(length);
    (preflush, name, rest)
}

fn operation(name: &[u8]) -> Option<Operation> {
    Some(match name {
        b"R" => Operation::Read,
        b"W" => Operation::Write,
        b"WZ" => Operation::WriteZeroes,
        b"D" => Operation::Discard,
        b"DE" => Operation::SecureErase,
        b"F" => Operation::Flush,
        b"ZA" => Operation::ZoneAppend,
        b"ZR" | b"ZRA" | b"ZF" | b"ZO" | b"ZC" | b"N" | b"-" => Operation::Other,
        _ => return None,
    })
}

fn flag(letter: u8) -> Option<Flags> {
    Some(match letter {
        b'F' => Flags::FUA,
        b'A' => Flags::READAHEAD,
        b'S' => Flags::SYNC,
        b'M' => Flags::META,
        b'U' => Flags::ATOMIC,
        b'B' => Flags::PREFLUSH,
        _ => return None,
    })
}

fn finish(operation: Operation, flags: Flags, rest: &[u8]) -> (Operation, Flags) {
    match operation {
        Operation::Discard if rest.contains(&b'E') => (Operation::SecureErase, flags),
        operation => (operation, flags),
    }
}

/// A request that moves nothing and asks for a flush is the flush: kernels before 4.8 issue an
/// empty write (`FWS`), and a device without requests completes the empty bio itself.
pub(crate) fn of_request(operation: Operation, flags: Flags, bytes: u32) -> (Operation, Flags) {
    let is_empty = bytes == 0 && flags.has(Flags::PREFLUSH);
    match is_empty && operation != Operation::Flush {
        true => (Operation::Flush, Flags(flags.0 & !Flags::PREFLUSH.0)),
        false => (operation, flags),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_model::operation::rwbs;

    #[test]
    fn letters_read_back_what_was_written() {
        use Operation::*;
        let bits = [Flags::FUA, Flags::READAHEAD, Flags::SYNC, Flags::META];
        for operation in [Read, Write, Discard, SecureErase, WriteZeroes] {
            for set in 0..1u32 << bits.len() {
                let chosen = bits.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
                let flags = chosen.fold(Flags::default(), |f, (_, bit)| f.with(*bit));
                for flags in [flags, flags.with(Flags::PREFLUSH)] {
                    let letters = rwbs(operation, flags);
                    assert_eq!(
                        parse(letters.as_bytes(), 8),
                        (operation, flags),
                        "{letters}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_text_has_the_letters_of_every_version() {
        use Operation::*;
        let none = Flags::default();
        let (fua, sync, meta) = (Flags::FUA, Flags::SYNC, Flags::META);
        let (flush, ahead) = (Flags::PREFLUSH, Flags::READAHEAD);
        for (letters, operation, flags) in [
            ("WBS", Write, flush.with(sync)),
            ("WB", Write, flush),
            ("WABSM", Write, flush.with(ahead).with(sync).with(meta)),
            ("RB", Read, flush),
            ("NB", Other, flush),
            ("DS", Discard, sync),
            ("DE", SecureErase, none),
            ("DES", SecureErase, sync),
            ("DSE", SecureErase, sync),
            ("FN", Flush, none),
            ("FNS", Flush, sync),
            ("FF", Flush, flush),
            ("F", Flush, none),
            ("FWFSM", Write, flush.with(fua).with(sync).with(meta)),
            ("WFS", Write, fua.with(sync)),
            ("RAM", Read, ahead.with(meta)),
            ("WZS", WriteZeroes, sync),
            ("WSU", Write, sync.with(Flags::ATOMIC)),
            ("ZAS", ZoneAppend, sync),
            ("ZR", Other, none),
            ("ZRA", Other, none),
            ("ZRAS", Other, sync),
            ("ZF", Other, none),
            ("ZO", Other, none),
            ("ZCS", Other, sync),
            ("N", Other, none),
            ("-", Other, none),
        ] {
            assert_eq!(
                read(letters.as_bytes()),
                Some((operation, flags)),
                "{letters}"
            );
        }
        for letters in ["", "X", "RX", "S", "ZX", "B", "FNE"] {
            assert_eq!(read(letters.as_bytes()), None, "{letters}");
        }
    }

    #[test]
    fn an_empty_request_with_a_preflush_is_the_flush() {
        let of = |letters: &[u8], bytes| {
            let (operation, flags) = read(letters).expect("letters");
            of_request(operation, flags, bytes)
        };
        for letters in [&b"FWS"[..], b"WBS", b"NBS"] {
            assert_eq!(of(letters, 0), (Operation::Flush, Flags::SYNC));
        }
        assert_eq!(of(b"FWS", 4096).0, Operation::Write);
        assert_eq!(of(b"WS", 0).0, Operation::Write);
    }

    #[test]
    fn flushes_are_told_from_preflushes() {
        assert_eq!(parse(b"FF\0\0", 0), (Operation::Flush, Flags::PREFLUSH));
        assert_eq!(parse(b"F\0", 0), (Operation::Flush, Flags::default()));
        assert_eq!(parse(b"FWS\0", 0).0, Operation::Write);
    }

    #[test]
    fn write_zeroes_of_old_kernels_is_known_by_its_sectors() {
        assert_eq!(parse(b"NS", 16).0, Operation::WriteZeroes);
        assert_eq!(parse(b"N", 0).0, Operation::Other);
    }

    #[test]
    fn any_bytes_decode_to_something() {
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                parse(&[a, b], 1);
                parse(&[b'F', a, b], 1);
            }
        }
        assert_eq!(parse(b"", 0).0, Operation::Other);
    }
}
