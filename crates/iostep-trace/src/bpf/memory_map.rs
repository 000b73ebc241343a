//! Where the kernel has the bytes of a page that its `struct page` stands for: the bases of the
//! array of these and of the map of all memory, in which both have the same order.
//!
//! x86-64 has them in two symbols, or without KASLR at fixed places. arm64's depend on how the
//! kernel was configured (`page_to_virt`, arch/arm64/include/asm/memory.h); it tells them to
//! debuggers, in a note of `/proc/kcore` (Documentation/admin-guide/kdump/vmcoreinfo.rst).

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Addresses in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bases {
    /// Of the `struct page` that [`Bases::linear`] belongs to.
    pub vmemmap: u64,
    /// Of that page's bytes.
    pub linear: u64,
}

/// x86-64 without KASLR of the memory map, four-level page tables
/// (Documentation/arch/x86/x86_64/mm.rst).
const X86_64: Bases = Bases {
    vmemmap: 0xffff_ea00_0000_0000,
    linear: 0xffff_8880_0000_0000,
};
const CORE: &str = "/proc/kcore";
/// No kernel has that much to say before its memory begins.
const MOST: u64 = 1 << 20;

/// What holds where no symbol says otherwise; `None` if this kernel does not tell.
pub(super) fn fixed() -> Option<Bases> {
    match cfg!(target_arch = "x86_64") {
        true => Some(X86_64),
        false => File::open(CORE).ok().and_then(told_by),
    }
}

/// What a trace does not tell without them, a sentence.
pub(super) fn note(bases: Option<Bases>, kernel: &str) -> Option<String> {
    bases.is_none().then(|| {
        format!(
            "not known: what metadata blocks say of themselves, as whose an f2fs or btrfs node is; \
             Linux {kernel} does not tell debuggers where its pages are ({CORE})"
        )
    })
}

/// Of the ELF file of a kernel's memory.
fn told_by(mut core: impl Read + Seek) -> Option<Bases> {
    let mut headers = Vec::new();
    core.by_ref().take(MOST).read_to_end(&mut headers).ok()?;
    let (offset, length) = notes_at(&headers)?;
    core.seek(SeekFrom::Start(offset)).ok()?;
    let mut notes = Vec::new();
    core.take(length.min(MOST)).read_to_end(&mut notes).ok()?;
    let text = String::from_utf8_lossy(&notes);
    Some(Bases {
        vmemmap: hexadecimal(value(&text, "NUMBER(VMEMMAP_START)=")?)?,
        linear: match value(&text, "NUMBER(VA_BITS)=")?.parse().ok()? {
            bits @ 32..64 => u64::MAX << bits,
            _ => return None,
        },
    })
}

/// Where the notes lie (elf(5)): the first header of this type.
fn notes_at(file: &[u8]) -> Option<(u64, u64)> {
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let field = file.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    };
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (first, bytes, count) = (number(32, 8)? as usize, number(54, 2)?, number(56, 2)?);
    let mut headers = (0..count).filter_map(|n| first.checked_add((n * bytes) as usize));
    let notes = headers.find(|at| number(*at, 4) == Some(4))?;
    Some((number(notes + 8, 8)?, number(notes + 32, 8)?))
}

/// The rest of the line that begins so.
fn value<'a>(text: &'a str, begin: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(begin))
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// The memory of a kernel that tells debuggers this.
    fn core(told: &str) -> Vec<u8> {
        let mut file = vec![0; 64 + 2 * 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (file[32], file[54], file[56]) = (64, 56, 2);
        file[64] = 1;
        let notes = &mut file[64 + 56..];
        (notes[0], notes[8], notes[33]) = (4, 176, 1);
        file.extend(b"VMCOREINFO\0\0");
        file.extend(told.as_bytes());
        file.resize(176 + 256, 0);
        file
    }

    fn told(text: &str) -> Option<Bases> {
        told_by(Cursor::new(core(text)))
    }

    #[test]
    fn a_kernel_of_arm64_tells_both() {
        let text =
            "\nPAGESIZE=4096\nNUMBER(VA_BITS)=48\nNUMBER(VMEMMAP_START)=0xfffffc0000000000\n";
        let expected = Bases {
            vmemmap: 0xffff_fc00_0000_0000,
            linear: 0xffff_0000_0000_0000,
        };
        assert_eq!(told(text), Some(expected));
    }

    #[test]
    fn what_is_not_told_is_not_guessed() {
        assert_eq!(told("\nNUMBER(VA_BITS)=48\n"), None);
        assert_eq!(told("\nNUMBER(VMEMMAP_START)=0xfffffc0000000000\n"), None);
        let wrong = "\nNUMBER(VMEMMAP_START)=0xfffffc0000000000\nNUMBER(VA_BITS)=200\n";
        assert_eq!(told(wrong), None);
        let whole = core("");
        for length in 0..whole.len() {
            assert_eq!(told_by(Cursor::new(&whole[..length])), None, "{length}");
        }
    }
}
