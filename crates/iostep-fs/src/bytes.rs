//! Fields of an on-disk structure.
//!
//! Bytes past the end of the slice read as zero: that is what a field means which an older or
//! shorter structure (128-byte inode, 32-byte group descriptor) does not have.

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    for (to, from) in field.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *from;
    }
    field
}

pub(crate) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

pub(crate) fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(crate) fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(crate) fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// A 64-bit number kept in two halves.
pub(crate) fn le32_pair(bytes: &[u8], low_at: usize, high_at: usize) -> u64 {
    u64::from(le32(bytes, low_at)) | u64::from(le32(bytes, high_at)) << 32
}

pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

/// The kernel's `crc32c(seed, data)`, which inverts neither at the start nor at the end.
pub(crate) fn kernel_crc32c(seed: u32, data: &[u8]) -> u32 {
    !crc32c::crc32c_append(!seed, data)
}

/// The kernel's `crc32_le(seed, data)`, which inverts neither at the start nor at the end.
pub(crate) fn kernel_crc32(seed: u32, data: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!seed);
    hasher.update(data);
    !hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_past_the_end_reads_as_zero() {
        assert_eq!(le32(&[1, 2], 0), 0x0201);
        assert_eq!(le64(&[1], 9), 0);
        assert_eq!(be16(&[0x12, 0x34], 0), 0x1234);
    }

    #[test]
    fn the_kernels_crc_can_be_continued() {
        let whole = kernel_crc32c(!0, b"123456789");
        assert_eq!(whole, !0xE306_9283);
        assert_eq!(kernel_crc32c(kernel_crc32c(!0, b"1234"), b"56789"), whole);
        let whole = kernel_crc32(!0, b"123456789");
        assert_eq!(whole, !0xCBF4_3926);
        assert_eq!(kernel_crc32(kernel_crc32(!0, b"1234"), b"56789"), whole);
    }
}
