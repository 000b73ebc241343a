//! Tests that run in the guest: filesystems that this machine's own kernel may lack, and the others
//! by a kernel whose types are laid out otherwise.

use crate::case::Case;
use crate::recording::Scenario;
use crate::{advise, attribution, batch_atomic, devices, disks, f2fs, fat, nilfs2, variants};

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

/// Every mode of the workload on each filesystem that this machine's own kernel may lack. Not f2fs
/// with fscrypt: on a small device its image tells too little of what encrypted blocks were.
pub const OTHERS: [Scenario; 3] = [f2fs::ALL, nilfs2::ALL, fat::ALL];

/// Every test of this file; with `IOSTEP_VARIANTS=all` those of every variant, too.
pub fn cases() -> Vec<Case> {
    let mut all = f2fs::cases();
    all.extend(devices::cases_of_f2fs());
    all.extend(batch_atomic::cases());
    all.extend(nilfs2::cases());
    all.extend(fat::cases());
    all.extend(advise::cases_for_guests());
    all.extend(disks::cases_for_guests());
    for whole in attribution::WHOLE {
        all.extend(attribution::cases_of(Scenario {
            modes: MODES,
            ..whole
        }));
    }
    if variants::are_all_wanted() {
        let variants = attribution::BY_BPF
            .into_iter()
            .chain(variants::all())
            .chain([variants::QUOTA]);
        all.extend(variants.flat_map(attribution::cases_of));
        all.extend(devices::cases());
    }
    all
}
