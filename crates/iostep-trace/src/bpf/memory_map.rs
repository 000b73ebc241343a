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
/// No kernel has that much to say; behind it is its memory, which is not read.
const MOST: u64 = 1 << 16;
/// Bytes of an ELF file's own header.
const HEADER: u64 = 64;

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
    let mut read = |offset: u64, length: u64| {
        let mut bytes = Vec::new();
        core.seek(SeekFrom::Start(offset)).ok()?;
        let found = core.by_ref().take(length.min(MOST)).read_to_end(&mut bytes);
        found.ok().map(|_| bytes)
    };
    let header = read(0, HEADER)?;
    let (first, bytes, count) = headers_at(&header)?;
    let (offset, length) = notes_at(&read(first, bytes.checked_mul(count)?)?, bytes)?;
    let notes = read(offset, length)?;
    let text = String::from_utf8_lossy(&notes);
    Some(Bases {
        vmemmap: hexadecimal(value(&text, "NUMBER(VMEMMAP_START)=")?)?,
        linear: match value(&text, "NUMBER(VA_BITS)=")?.parse().ok()? {
            bits @ 32..64 => u64::MAX << bits,
            _ => return None,
        },
    })
}

/// Where the headers of segments lie in an ELF file, the bytes of one, and how many there are.
fn headers_at(header: &[u8]) -> Option<(u64, u64, u64)> {
    let is_elf = header.starts_with(b"\x7fELF\x02\x01");
    is_elf.then_some(())?;
    Some((
        number(header, 32, 8)?,
        number(header, 54, 2)?,
        number(header, 56, 2)?,
    ))
}

/// Where the notes lie, and their bytes: the first header of type `PT_NOTE`.
fn notes_at(headers: &[u8], bytes: u64) -> Option<(u64, u64)> {
    let mut all = headers.chunks(usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)?);
    let notes = all.find(|header| number(header, 0, 4) == Some(4))?;
    Some((number(notes, 8, 8)?, number(notes, 32, 8)?))
}

/// A field of an ELF file (elf(5)).
fn number(of: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let field = of.get(at..at + bytes)?;
    Some(field.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
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
