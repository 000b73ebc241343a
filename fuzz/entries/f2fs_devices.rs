//! The devices that a superblock of f2fs names, over any bytes.

use std::os::unix::ffi::OsStrExt;

use iostep_trace::f2fs::{self, SUPERBLOCK_BYTES};

/// Takes the names out of a superblock, which zeros make whole.
pub fn run(bytes: &[u8]) {
    let mut superblock = [0; SUPERBLOCK_BYTES];
    let whole = bytes.len().min(SUPERBLOCK_BYTES);
    superblock[..whole].copy_from_slice(&bytes[..whole]);
    let named = f2fs::named_devices(&superblock);
    assert!(named.len() != 1 && named.len() <= 8, "{named:?}");
    for device in named {
        let path = device.path.as_os_str().as_bytes();
        assert!(
            (1..=64).contains(&path.len()) && !path.contains(&0),
            "{device:?}"
        );
    }
}
