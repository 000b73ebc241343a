//! Inodes.
//!
//! Source: fs/ext4/ext4.h, `struct ext4_inode`; `ext4_inode_csum` in fs/ext4/inode.c.

use super::superblock::Superblock;
use crate::bytes::{kernel_crc32c, le16, le32, le32_pair};
use crate::error::{DiskField, Result};

const FLAG_ENCRYPT: u32 = 0x800;
const FLAG_EXTENTS: u32 = 0x8_0000;
const FLAG_EA_INODE: u32 = 0x20_0000;
const FLAG_INLINE_DATA: u32 = 0x1000_0000;

const S_IFMT: u16 = 0o170_000;
const S_IFREG: u16 = 0o100_000;
const S_IFDIR: u16 = 0o040_000;
const S_IFLNK: u16 = 0o120_000;

const BASE_BYTES: usize = 128;
const I_BLOCK: std::ops::Range<usize> = 0x28..0x64;
/// Shorter targets of symbolic links are kept in `i_block` itself.
const FAST_SYMLINK_BYTES: u64 = 60;

/// What is read of an inode.
#[derive(Clone, Debug)]
pub struct Inode {
    pub number: u32,
    /// `i_mode`.
    pub mode: u16,
    /// `i_generation`.
    pub generation: u32,
    /// `i_size`, bytes.
    pub size_bytes: u64,
    /// `i_crtime`, ns since the epoch, where the inode is large enough to have one.
    pub birth_wall_ns: Option<i64>,
    /// `i_file_acl`: the block of extended attributes; 0 if there is none.
    pub attribute_block: u64,
    flags: u32,
    /// The whole inode, for `i_block` and what is kept behind the fields.
    bytes: Vec<u8>,
}

/// How an inode keeps its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// An extent tree.
    Extents,
    /// Direct and indirect blocks.
    Indirect,
    /// In the inode itself, or nowhere (device nodes).
    None,
}

impl Inode {
    /// Decodes and, where the filesystem keeps checksums, verifies an inode.
    ///
    /// Errors: `Corrupt`.
    pub(crate) fn decode(superblock: &Superblock, number: u32, bytes: &[u8]) -> Result<Inode> {
        let extra_bytes = usize::from(le16(bytes, 0x80));
        let most = bytes.len().saturating_sub(BASE_BYTES);
        let place = DiskField::superblock(superblock.kind, "i_extra_isize").of_inode(number.into());
        if bytes.len() > BASE_BYTES && extra_bytes > most {
            return Err(place.corrupt(extra_bytes, format!("at most {most}")));
        }
        // A field behind `i_extra_isize` is somebody else's.
        let fields = &bytes[..bytes.len().min(BASE_BYTES + extra_bytes)];
        let inode = Inode {
            number,
            mode: le16(fields, 0x0),
            generation: le32(fields, 0x64),
            size_bytes: le32_pair(fields, 0x4, 0x6C),
            birth_wall_ns: birth(fields),
            attribute_block: u64::from(le32(fields, 0x68)) | u64::from(le16(fields, 0x76)) << 32,
            flags: le32(fields, 0x20),
            bytes: bytes.to_vec(),
        };
        if let Some(seed) = inode.checksum_seed(superblock) {
            let (stored, computed) = checksums(seed, bytes, extra_bytes);
            let field = "i_checksum";
            DiskField { field, ..place }.check_checksum(stored, computed)?;
        }
        Ok(inode)
    }

    /// The seed of this inode's checksums and of its blocks'.
    pub(crate) fn checksum_seed(&self, superblock: &Superblock) -> Option<u32> {
        superblock.checksum_seed.map(|seed| {
            let seed = kernel_crc32c(seed, &self.number.to_le_bytes());
            kernel_crc32c(seed, &self.generation.to_le_bytes())
        })
    }

    /// True for a directory.
    pub fn is_directory(&self) -> bool {
        self.mode & S_IFMT == S_IFDIR
    }

    /// True if names in this directory are ciphertext.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.flags & FLAG_ENCRYPT != 0
    }

    /// True if the content lies in the inode.
    pub(crate) fn has_inline_data(&self) -> bool {
        self.flags & FLAG_INLINE_DATA != 0
    }

    /// True if the inode holds the value of an extended attribute.
    pub(crate) fn is_attribute_value(&self) -> bool {
        self.flags & FLAG_EA_INODE != 0
    }

    /// How the content is found.
    pub fn storage(&self) -> Storage {
        let kind = self.mode & S_IFMT;
        // Reserved inodes (resize, bad blocks) have no mode but do have blocks.
        let has_blocks = matches!(kind, S_IFREG | S_IFDIR | S_IFLNK | 0);
        if !has_blocks || self.has_inline_data() {
            Storage::None
        } else if self.flags & FLAG_EXTENTS != 0 {
            Storage::Extents
        } else if kind == S_IFLNK && self.size_bytes < FAST_SYMLINK_BYTES {
            Storage::None
        } else {
            Storage::Indirect
        }
    }

    /// `i_block`: the root of the extent tree, block numbers, or inline data.
    pub(crate) fn i_block(&self) -> &[u8] {
        &self.bytes[I_BLOCK]
    }

    /// What lies behind the fields: extended attributes.
    pub(crate) fn behind_fields(&self) -> &[u8] {
        let start = BASE_BYTES + usize::from(le16(&self.bytes, 0x80));
        self.bytes.get(start..).unwrap_or(&[])
    }
}

/// Seconds are signed; the extra word holds two more bits of them and the nanoseconds.
fn birth(fields: &[u8]) -> Option<i64> {
    const I_CRTIME: usize = 0x90;
    const I_CRTIME_EXTRA: usize = 0x94;
    fields.get(I_CRTIME..I_CRTIME_EXTRA + 4)?;
    let extra = le32(fields, I_CRTIME_EXTRA);
    let seconds = i64::from(le32(fields, I_CRTIME) as i32) + (i64::from(extra & 3) << 32);
    seconds
        .checked_mul(1_000_000_000)
        .map(|ns| ns + i64::from(extra >> 2))
        .filter(|&ns| ns != 0)
}

/// The stored and the computed checksum; in a 128-byte inode, only the low half of each.
fn checksums(seed: u32, bytes: &[u8], extra_bytes: usize) -> (u32, u32) {
    const LOW: usize = 0x7C;
    const HIGH: usize = 0x82;
    let has_high = bytes.len() > BASE_BYTES && extra_bytes >= HIGH + 2 - BASE_BYTES;
    let mut blank = bytes.to_vec();
    blank[LOW..LOW + 2].fill(0);
    if has_high {
        blank[HIGH..HIGH + 2].fill(0);
    }
    let computed = kernel_crc32c(seed, &blank);
    let low = u32::from(le16(bytes, LOW));
    match has_high {
        true => (low | u32::from(le16(bytes, HIGH)) << 16, computed),
        false => (low, computed & 0xFFFF),
    }
}
