//! Where a kernel function's code lies, to know a caller by its return address.

use std::ops::Range;

/// The addresses of `name`, up to the next symbol; `None` if there is no such function or the
/// kernel hides its addresses (`kernel.kptr_restrict`).
pub(crate) fn code_of(name: &str) -> Option<Range<u64>> {
    find(&std::fs::read("/proc/kallsyms").ok()?, name)
}

fn find(symbols: &[u8], name: &str) -> Option<Range<u64>> {
    let mut start = None;
    let mut addresses = Vec::new();
    for line in symbols.split(|&b| b == b'\n') {
        let mut words = line.split(|b| b.is_ascii_whitespace());
        let Some(address) = words.next().and_then(hex) else {
            continue;
        };
        addresses.push(address);
        if words.nth(1) == Some(name.as_bytes()) {
            start = Some(address);
        }
    }
    let start = start.filter(|&start| start != 0)?;
    let end = addresses
        .into_iter()
        .filter(|&address| address > start)
        .min()?;
    Some(start..end)
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_ends_where_the_next_symbol_begins_in_whatever_order_they_stand() {
        let symbols = b"0000000000001000 t ext4_dirty_inode\t[ext4]\n\
                        0000000000003000 T other\n\
                        0000000000001080 t ext4_next\t[ext4]\n";
        assert_eq!(find(symbols, "ext4_dirty_inode"), Some(0x1000..0x1080));
        assert_eq!(find(symbols, "missing"), None);
    }

    #[test]
    fn hidden_addresses_are_no_place() {
        let symbols = b"0000000000000000 t a\n0000000000000000 t b\n";
        assert_eq!(find(symbols, "a"), None);
    }
}
