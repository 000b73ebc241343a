//! Tests that run in the guest: filesystems that this machine's own kernel may lack, and the others
//! by a kernel whose types are laid out otherwise.

use crate::attribution;
use crate::case::Case;
use crate::recording::Scenario;

/// What is found in another way on another kernel: direct I/O, io_uring, the log, the trees.
pub const MODES: &[&str] = &[
    "append-fsync",
    "direct-4k",
    "direct-big",
    "mmap-msync",
    "mmap-unsynced",
    "uring-fsync",
    "fsync-unlink",
    "concurrent-fsync",
    "freeze",
];

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut all = crate::f2fs::cases();
    all.extend(crate::batch_atomic::cases());
    all.extend(crate::nilfs2::cases());
    all.extend(crate::fat::cases());
    for whole in attribution::WHOLE {
        all.extend(attribution::cases_of(Scenario {
            modes: MODES,
            ..whole
        }));
    }
    all
}
