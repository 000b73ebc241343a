//! The one program of the guest's first root: busybox, linked statically.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Where distributions put it.
const PLACES: [&str; 3] = ["/bin/busybox", "/usr/bin/busybox", "/bin/busybox.static"];

/// Offsets in an ELF file of 64 bits (elf(5)).
mod elf {
    pub const MAGIC: &[u8] = b"\x7fELF\x02";
    pub const HEADERS_AT: usize = 32;
    pub const HEADER_BYTES: usize = 54;
    pub const HEADERS: usize = 56;
    pub const INTERPRETER: u32 = 3;
}

/// Errors: `Unsupported` if there is none, or only one that needs libraries.
pub(super) fn find() -> Result<PathBuf> {
    let is_static = |path: &Path| std::fs::read(path).is_ok_and(|file| is_static(&file));
    let mut places = PLACES.iter().map(PathBuf::from);
    places
        .find(|path| is_static(path))
        .ok_or_else(|| Error::Unsupported {
            what: "no static busybox, which starts the guest".into(),
            hint: "on Debian and Ubuntu: apt install busybox-static".into(),
        })
}

/// True for a program of 64 bits that asks for no loader.
fn is_static(file: &[u8]) -> bool {
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let field = file.get(at..at.checked_add(bytes)?)?;
        Some(field.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    };
    let types = || -> Option<Vec<u64>> {
        let first = number(elf::HEADERS_AT, 8)? as usize;
        let bytes = number(elf::HEADER_BYTES, 2)? as usize;
        let headers = number(elf::HEADERS, 2)? as usize;
        (0..headers)
            .map(|n| number(first.checked_add(n * bytes)?, 4))
            .collect()
    };
    let interpreter = u64::from(elf::INTERPRETER);
    file.starts_with(elf::MAGIC) && types().is_some_and(|types| !types.contains(&interpreter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_a_loader_is_not_static() {
        let own = std::env::current_exe().and_then(std::fs::read);
        assert!(!is_static(&own.expect("this test can be read")));
        assert!(!is_static(b"#!/bin/sh\n"));
        assert!(!is_static(elf::MAGIC));
    }

    #[test]
    fn a_program_without_one_is() {
        let mut file = vec![0; 64 + 56];
        file[..5].copy_from_slice(elf::MAGIC);
        file[elf::HEADERS_AT] = 64;
        file[elf::HEADER_BYTES] = 56;
        file[elf::HEADERS] = 1;
        file[64] = 1;
        assert!(is_static(&file));
        file[64] = elf::INTERPRETER as u8;
        assert!(!is_static(&file));
        file[elf::HEADERS_AT] = 255;
        assert!(!is_static(&file));
    }
}
