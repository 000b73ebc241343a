//! The kernel inside an image that packs it, unpacked by the host.
//!
//! A bzImage unpacks itself, which takes an emulated processor longer than the rest of the boot.
//! QEMU also boots the ELF file within, at the entry that kernels have for Xen's PVH. An image for
//! arm64 that unpacks itself is a program for EFI, which QEMU's machine has not.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

/// Fields of a bzImage's header (Documentation/arch/x86/boot.rst of Linux).
const SETUP_SECTORS_AT: u64 = 0x1f1;
const PAYLOAD_OFFSET_AT: u64 = 0x248;
const PAYLOAD_LENGTH_AT: u64 = 0x24c;
/// The header of an Image for arm64 (Documentation/arch/arm64/booting.rst of Linux).
const ARM64_MAGIC_AT: usize = 56;
const ARM64_MAGIC: &[u8] = b"ARM\x64";
/// Fields of one that EFI unpacks (drivers/firmware/efi/libstub/zboot-header.S of Linux).
const ZBOOT_MAGIC: &[u8] = b"zimg";
const ZBOOT_MAGIC_AT: usize = 4;
const ZBOOT_OFFSET_AT: usize = 8;
const ZBOOT_LENGTH_AT: usize = 12;
/// No kernel is longer, packed or not.
const LONGEST: u64 = 512 << 20;

/// The beginnings of packed kernels and what unpacks them. Behind the packed bytes there are four
/// with their unpacked length (scripts/Makefile.lib of Linux), which gzip has of its own.
const PACKED: [(&[u8], &str, u64); 3] = [
    (b"\xfd7zXZ\0", "xz", 4),
    (b"\x28\xb5\x2f\xfd", "zstd", 4),
    (b"\x1f\x8b", "gzip", 0),
];

/// An ELF note: the lengths of its name and content, its type, its name. This one names the entry
/// for PVH (include/xen/interface/elfnote.h of Linux).
const PVH_NOTES: [&[u8]; 2] = [
    b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0",
    b"\x04\0\0\0\x04\0\0\0\x12\0\0\0Xen\0",
];

/// The kernel within an image, as a nameless file; `None` if it is better left to unpack itself:
/// nothing here packs it that way, the program for it is missing, or it has no entry for QEMU.
pub(super) fn unpacked(image: &File) -> Option<File> {
    let (program, packed) = find(image)?;
    let kernel = unpack(program, &packed).ok()?;
    let bootable = kernel.starts_with(b"\x7fELF") && has_pvh_entry(&kernel);
    bootable.then(|| write(&kernel).ok()).flatten()
}

/// The packed kernel, and the program that unpacks it.
fn find(image: &File) -> Option<(&'static str, Vec<u8>)> {
    let mut sectors = [0];
    image.read_exact_at(&mut sectors, SETUP_SECTORS_AT).ok()?;
    let number = |at| {
        let mut field = [0; 4];
        image.read_exact_at(&mut field, at).ok()?;
        Some(u64::from(u32::from_le_bytes(field)))
    };
    let begin = (u64::from(sectors[0]) + 1) * 512 + number(PAYLOAD_OFFSET_AT)?;
    let length = number(PAYLOAD_LENGTH_AT)?.min(LONGEST);
    let mut file = image.try_clone().ok()?;
    file.seek(SeekFrom::Start(begin)).ok()?;
    let mut packed = Vec::new();
    file.take(length).read_to_end(&mut packed).ok()?;
    let (program, behind) = packer(&packed)?;
    packed.truncate(packed.len() - behind as usize);
    Some((program, packed))
}

/// What unpacks this, and how many bytes a bzImage has behind it.
fn packer(packed: &[u8]) -> Option<(&'static str, u64)> {
    let mut all = PACKED.iter();
    let (_, program, behind) = all.find(|(magic, ..)| packed.starts_with(magic))?;
    Some((program, *behind))
}

/// The Image for arm64 in a file, which is one, is packed as a whole, or unpacks itself; `None` if
/// there is none.
pub(super) fn arm64(image: &File) -> Option<Vec<u8>> {
    let mut file = image.try_clone().ok()?;
    file.rewind().ok()?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    let number = |at: usize| {
        let field = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(field) as usize)
    };
    let is_zboot = bytes
        .get(ZBOOT_MAGIC_AT..)
        .is_some_and(|at| at.starts_with(ZBOOT_MAGIC));
    let packed = match is_zboot {
        true => bytes
            .get(number(ZBOOT_OFFSET_AT)?..)?
            .get(..number(ZBOOT_LENGTH_AT)?)?,
        false => &bytes,
    };
    let kernel = match packer(packed) {
        Some((program, _)) => unpack(program, packed).ok()?,
        None => bytes,
    };
    let magic = kernel.get(ARM64_MAGIC_AT..)?;
    magic.starts_with(ARM64_MAGIC).then_some(kernel)
}

fn unpack(program: &str, packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut child = Command::new(program)
        .args(["-d", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let mut kernel = Vec::new();
    let read = std::thread::scope(|scope| {
        // Its end of the pipe closes with the thread.
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(packed)));
        stdout.map(|stdout| stdout.take(LONGEST).read_to_end(&mut kernel))
    });
    read.transpose()?;
    match child.wait()?.success() {
        true => Ok(kernel),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn has_pvh_entry(kernel: &[u8]) -> bool {
    // Notes are aligned to four bytes.
    let mut places = kernel.chunks_exact(4).enumerate();
    places.any(|(n, word)| {
        word == b"\x04\0\0\0"
            && PVH_NOTES
                .iter()
                .any(|note| kernel[n * 4..].starts_with(note))
    })
}

/// A kernel in a nameless file.
pub(super) fn write(kernel: &[u8]) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(kernel)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with a note, as far as it is looked at.
    fn kernel(note: &[u8]) -> Vec<u8> {
        let mut kernel = b"\x7fELF".to_vec();
        kernel.extend(vec![7; 100_000]);
        kernel.extend(note);
        kernel
    }

    fn packed(program: &str, kernel: &[u8]) -> Vec<u8> {
        let mut child = Command::new(program)
            .args((program != "cat").then_some("-c"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(kernel).expect("it reads");
        drop(stdin);
        child.wait_with_output().expect("it ends").stdout
    }

    /// A bzImage around a payload of this program's.
    fn image(program: &str, kernel: &[u8], behind: &[u8]) -> File {
        let mut payload = packed(program, kernel);
        payload.extend(behind);
        let mut bytes = vec![0; 2 * 512 + 64];
        bytes[0x1f1] = 1;
        bytes[0x248] = 64;
        bytes[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend(payload);
        write(&bytes).expect("written")
    }

    fn content(mut file: File) -> Vec<u8> {
        let mut bytes = Vec::new();
        file.rewind().expect("a file");
        file.read_to_end(&mut bytes).expect("read");
        bytes
    }

    #[test]
    fn a_packed_kernel_is_what_was_packed() {
        let kernel = kernel(PVH_NOTES[0]);
        for (program, behind) in [("xz", &[9; 4][..]), ("gzip", &[])] {
            let found = unpacked(&image(program, &kernel, behind)).expect("unpacked");
            assert!(content(found) == kernel, "{program}");
        }
    }

    #[test]
    fn what_qemu_could_not_boot_is_left_as_it_is() {
        assert!(unpacked(&image("xz", &kernel(b""), &[0; 4])).is_none());
        assert!(unpacked(&image("xz", b"no ELF", &[0; 4])).is_none());
        assert!(unpacked(&image("cat", &kernel(PVH_NOTES[1]), &[])).is_none());
        let broken = image("cat", b"\xfd7zXZ\0 and no more", &[]);
        assert!(unpacked(&broken).is_none());
        let nothing = image("cat", b"", &[]);
        nothing.set_len(0x24c).expect("cut");
        assert!(unpacked(&nothing).is_none());
    }

    #[test]
    fn an_image_for_arm64_is_found_in_each_of_its_forms() {
        let mut kernel = vec![7; 4096];
        kernel[56..60].copy_from_slice(b"ARM\x64");
        let mut efi = vec![0; 64];
        efi[..8].copy_from_slice(b"MZ\0\0zimg");
        let inside = packed("gzip", &kernel);
        efi[8..12].copy_from_slice(&64u32.to_le_bytes());
        efi[12..16].copy_from_slice(&(inside.len() as u32).to_le_bytes());
        efi.extend(&inside);
        efi.extend(b"more sections");
        for file in [&kernel, &inside, &efi] {
            let found = arm64(&write(file).expect("written"));
            assert!(found.is_some_and(|found| found == kernel));
        }
        let none = |file: &[u8]| arm64(&write(file).expect("written")).is_none();
        assert!(none(b"") && none(&inside[..200]) && none(&efi[..80]) && none(&[0; 4096]));
    }
}
