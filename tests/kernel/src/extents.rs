//! Where a mounted filesystem says that its files lie (`FS_IOC_FIEMAP`), and what is in them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use iostep_model::SECTOR_BYTES;

use crate::image::{BLOCK_SECTORS, le};
use crate::stamp::{BLOCK_BYTES, Found, Stamp};

/// include/uapi/linux/fiemap.h.
const FS_IOC_FIEMAP: u32 = 0xc020_660b;
const FLAG_SYNC: u32 = 1;
const HEADER_BYTES: usize = 32;
const EXTENT_BYTES: usize = 56;
const MAX_EXTENTS: usize = 512;
const LAST: u64 = 1;
const ENCODED: u64 = 8;
/// Without blocks of their own, or with blocks that hold nothing: UNKNOWN, DELALLOC, NOT_ALIGNED,
/// UNWRITTEN.
const WITHOUT_CONTENT: u64 = 2 | 4 | 0x100 | 0x800;

/// A run of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where in the file, bytes.
    pub logical: u64,
    /// Where on the device, bytes; btrfs: its logical address.
    pub physical: u64,
    /// How long, bytes in the file.
    pub bytes: u64,
    /// True if what is stored is not the file's bytes one by one (compressed).
    pub encoded: bool,
}

/// The runs of a file that hold content, after it was written out.
///
/// Errors: the filesystem does not know the call.
pub fn of(file: &File) -> io::Result<Vec<Extent>> {
    let mut extents = Vec::new();
    let mut start = 0u64;
    loop {
        let answer = ask(file, start)?;
        let count = le(&answer, 20, 4) as usize;
        let mut flags = LAST;
        for entry in answer[HEADER_BYTES..]
            .chunks_exact(EXTENT_BYTES)
            .take(count)
        {
            let [logical, physical, bytes] = [0, 8, 16].map(|at| le(entry, at, 8));
            flags = le(entry, 40, 4);
            start = logical + bytes;
            if flags & WITHOUT_CONTENT == 0 {
                extents.push(Extent {
                    logical,
                    physical,
                    bytes,
                    encoded: flags & ENCODED != 0,
                });
            }
        }
        if flags & LAST != 0 {
            return Ok(extents);
        }
    }
}

fn ask(file: &File, start: u64) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0u8; HEADER_BYTES + MAX_EXTENTS * EXTENT_BYTES];
    buffer[..8].copy_from_slice(&start.to_le_bytes());
    buffer[8..16].copy_from_slice(&(u64::MAX - start).to_le_bytes());
    buffer[16..20].copy_from_slice(&FLAG_SYNC.to_le_bytes());
    buffer[24..28].copy_from_slice(&(MAX_EXTENTS as u32).to_le_bytes());
    // SAFETY: the buffer has room for the header and as many extents as it says.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, buffer.as_mut_ptr()) };
    match result {
        0 => Ok(buffer),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A stamped block that a file holds, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Where on the device, as in [`Extent::physical`].
    pub physical: u64,
    /// How many sectors.
    pub sectors: u64,
    pub found: Found,
}

/// Every stamped block of all files below a directory, read through the filesystem. Of a compressed
/// extent, only its first block: nobody tells where the others are in it.
///
/// Errors: a file that cannot be read, or whose place is not told.
pub fn stamps_below(directory: &Path) -> anyhow::Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            pieces.extend(stamps_below(&entry.path())?);
        } else if kind.is_file() {
            stamps_in(&File::open(entry.path())?, &mut pieces)?;
        }
    }
    Ok(pieces)
}

fn stamps_in(file: &File, pieces: &mut Vec<Piece>) -> anyhow::Result<()> {
    let length = file.metadata()?.len();
    for extent in of(file)? {
        let end = (extent.logical + extent.bytes).min(length);
        let mut at = extent.logical;
        while at < end {
            let block = at - at % BLOCK_BYTES as u64;
            let until = (block + BLOCK_BYTES as u64).min(end);
            if let Some(stamp) = stamp_at(file, block)? {
                pieces.push(Piece {
                    physical: extent.physical + (at - extent.logical),
                    sectors: ((until - at) / SECTOR_BYTES).min(BLOCK_SECTORS),
                    found: Found {
                        stamp,
                        from: (at - block) / SECTOR_BYTES,
                    },
                });
            }
            if extent.encoded {
                break;
            }
            at = until;
        }
    }
    Ok(())
}

fn stamp_at(file: &File, offset: u64) -> io::Result<Option<Stamp>> {
    let mut block = [0; BLOCK_BYTES];
    let read = file.read_at(&mut block, offset)?;
    Ok((read == BLOCK_BYTES)
        .then(|| Stamp::decode(&block))
        .flatten())
}
