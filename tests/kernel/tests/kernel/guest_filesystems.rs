//! Tests that run in the guest: filesystems that this machine's own kernel may lack.

use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut all = crate::f2fs::cases();
    all.extend(crate::nilfs2::cases());
    all.extend(crate::fat::cases());
    all
}
