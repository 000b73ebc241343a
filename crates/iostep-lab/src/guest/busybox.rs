//! The one program of the guest's first root: busybox, linked statically.

use std::path::{Path, PathBuf};

use super::architecture::Architecture;
use crate::error::{Error, Result};

/// Where distributions put it, below the root.
const PLACES: [&str; 3] = ["bin/busybox", "usr/bin/busybox", "bin/busybox.static"];

/// Offsets in an ELF file of 64 bits (elf(5)).
mod elf {
    pub const HEADERS_AT: usize = 32;
    pub const HEADER_BYTES: usize = 54;
    pub const HEADERS: usize = 56;
    pub const INTERPRETER: u32 = 3;
}

/// The one below a guest's root.
///
/// Errors: `Unsupported` if there is none for this architecture, or only one that needs libraries.
pub(super) fn find(root: &Path, architecture: Architecture) -> Result<PathBuf> {
    let is_it =
        |path: &PathBuf| std::fs::read(path).is_ok_and(|file| is_static(&file, architecture));
    let mut places = PLACES.iter().map(|place| root.join(place));
    places.find(is_it).ok_or_else(|| Error::Unsupported {
        what: format!(
            "{}: no static busybox for {}, which starts the guest",
            root.display(),
            architecture.name()
        ),
        hint: match architecture {
            Architecture::HOST => "on Debian and Ubuntu: apt install busybox-static".into(),
            _ => "name a root with its programs by --root; scripts/setup guest-arm64 makes one"
                .into(),
        },
    })
}

/// True for a program for this architecture that asks for no loader.
fn is_static(file: &[u8], architecture: Architecture) -> bool {
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
    Architecture::of_elf(file) == Some(architecture)
        && types().is_some_and(|types| !types.contains(&interpreter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_a_loader_is_not_static() {
        let own = std::env::current_exe().and_then(std::fs::read);
        let own = own.expect("this test can be read");
        assert!(!is_static(&own, Architecture::HOST));
        assert!(!is_static(b"#!/bin/sh\n", Architecture::HOST));
        assert!(!is_static(b"\x7fELF\x02", Architecture::HOST));
    }

    #[test]
    fn a_program_without_one_is() {
        let mut file = vec![0; 64 + 56];
        file[..5].copy_from_slice(b"\x7fELF\x02");
        file[18] = 183;
        file[elf::HEADERS_AT] = 64;
        file[elf::HEADER_BYTES] = 56;
        file[elf::HEADERS] = 1;
        file[64] = 1;
        assert!(is_static(&file, Architecture::Aarch64));
        assert!(!is_static(&file, Architecture::X86_64));
        file[64] = elf::INTERPRETER as u8;
        assert!(!is_static(&file, Architecture::Aarch64));
        file[elf::HEADERS_AT] = 255;
        assert!(!is_static(&file, Architecture::Aarch64));
    }
}
