//! blktrace's letters, read back.

use iostep_model::{Flags, Operation};

/// Decodes RWBS letters (`blk_fill_rwbs`, kernel/trace/blktrace.c).
///
/// Older kernels write `N` for write-zeroes as for everything that has no letter; of these
/// only write-zeroes covers sectors of the filesystem, so `sectors` tells them apart.
pub(crate) fn parse(letters: &[u8], sectors: u32) -> (Operation, Flags) {
    let end = letters.iter().position(|&b| b == 0);
    let mut letters = &letters[..end.unwrap_or(letters.len())];
    let mut flags = Flags::default();
    // Before an operation `F` is a preflush; alone or last it is the flush itself.
    if let [b'F', b'R' | b'W' | b'F' | b'D' | b'N' | b'Z', ..] = letters {
        flags = Flags::PREFLUSH;
        letters = &letters[1..];
    }
    let (operation, rest) = match letters {
        [b'W', b'Z', rest @ ..] => (Operation::WriteZeroes, rest),
        [b'Z', b'A', rest @ ..] => (Operation::ZoneAppend, rest),
        [b'Z', _, rest @ ..] => (Operation::Other, rest),
        [b'D', b'E', rest @ ..] => (Operation::SecureErase, rest),
        [b'D', rest @ ..] => (Operation::Discard, rest),
        [b'W', rest @ ..] => (Operation::Write, rest),
        [b'R', rest @ ..] => (Operation::Read, rest),
        [b'F', rest @ ..] => (Operation::Flush, rest),
        [b'N', rest @ ..] if sectors > 0 => (Operation::WriteZeroes, rest),
        [_, rest @ ..] => (Operation::Other, rest),
        [] => (Operation::Other, letters),
    };
    (operation, rest.iter().fold(flags, |f, l| f.with(flag(*l))))
}

fn flag(letter: u8) -> Flags {
    match letter {
        b'F' => Flags::FUA,
        b'A' => Flags::READAHEAD,
        b'S' => Flags::SYNC,
        b'M' => Flags::META,
        b'U' => Flags::ATOMIC,
        _ => Flags::default(),
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
