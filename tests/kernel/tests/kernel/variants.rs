//! The ways to make and mount a filesystem that change what its bios carry.

use iostep_lab::Kind;

use crate::attribution::scenario;
use crate::recording::{FoundBy, Scenario};

/// Data by write-back and past the cache, with and without sync calls, mapped, shared, deleted and
/// fragmented; and everything in its place at the end.
const MODES: &[&str] = &[
    "append-fsync",
    "overwrite-fdatasync",
    "direct-4k",
    "mmap-msync",
    "writeback",
    "fsync-unlink",
    "create-rename",
    "concurrent-fsync",
    "fragments",
    "freeze",
];

/// Enough to fill a log of 4 MiB several times.
const FILLING: &[&str] = &[
    "append-fsync",
    "overwrite-fdatasync",
    "mmap-msync",
    "buffered-big",
    "fsync-unlink",
    "shared-file",
    "concurrent-fsync",
    "fragments",
    "freeze",
];

/// Files that are deleted while they are open, and what comes and goes beside them.
const ORPHANS: &[&str] = &["fsync-unlink", "append-fsync", "create-rename", "freeze"];

const SMALL_LOG: &[&str] = &["-J", "size=4"];

/// Where data have to be found in a way of their own.
const OWN_WAY: [Scenario; 6] = [
    Scenario {
        mount: "data=journal",
        modes: FILLING,
        ..scenario("ext4 data=journal, small log", Kind::Ext4, SMALL_LOG)
    },
    Scenario {
        modes: MODES,
        found: FoundBy::Files,
        ..scenario("ext4 1 KiB blocks", Kind::Ext4, &["-b", "1024"])
    },
    Scenario {
        modes: MODES,
        ..scenario("ext4 as ext2", Kind::Ext4, &["-t", "ext2"])
    },
    Scenario {
        mount: "test_dummy_encryption",
        modes: MODES,
        found: FoundBy::Files,
        ..scenario("ext4 fscrypt", Kind::Ext4, &["-O", "encrypt"])
    },
    Scenario {
        modes: ORPHANS,
        ..scenario("ext4 orphan_file", Kind::Ext4, &["-O", "orphan_file"])
    },
    Scenario {
        mount: "nodiscard,compress-force=zstd",
        modes: &["buffered-big", "mmap-unsynced", "writeback", "directories"],
        found: FoundBy::CompressedFiles,
        ..scenario("btrfs zstd", Kind::Btrfs, &["-d", "single"])
    },
];

/// Where they should not. `IOSTEP_VARIANTS=all` runs these too: a minute.
const SAME_WAY: [Scenario; 7] = [
    Scenario {
        modes: FILLING,
        ..scenario("ext4 small log", Kind::Ext4, SMALL_LOG)
    },
    Scenario {
        mount: "data=writeback",
        modes: MODES,
        ..scenario("ext4 data=writeback", Kind::Ext4, &["-J", "size=64"])
    },
    Scenario {
        mount: "nodelalloc",
        modes: MODES,
        ..scenario("ext4 nodelalloc", Kind::Ext4, &[])
    },
    Scenario {
        modes: MODES,
        ..scenario(
            "ext4 bigalloc",
            Kind::Ext4,
            &["-O", "bigalloc", "-C", "65536"],
        )
    },
    Scenario {
        modes: MODES,
        ..scenario("ext4 inline_data", Kind::Ext4, &["-O", "inline_data"])
    },
    Scenario {
        modes: MODES,
        ..scenario(
            "ext4 without a journal",
            Kind::Ext4,
            &["-O", "^has_journal"],
        )
    },
    Scenario {
        mount: "nodiscard",
        modes: &["append-fsync", "direct-4k", "subvolumes"],
        ..scenario("btrfs subvolumes", Kind::Btrfs, &[])
    },
];

/// In guests: not every kernel counts for quotas. Their files are longer at the end.
pub const QUOTA: Scenario = Scenario {
    modes: &["fsync-unlink", "append-fsync", "create-rename", "owners"],
    ..scenario("ext4 quota", Kind::Ext4, &["-O", "quota,orphan_file"])
};

/// True if every scenario is to run, however long it takes.
pub fn are_all_wanted() -> bool {
    std::env::var("IOSTEP_VARIANTS").is_ok_and(|which| which == "all")
}

/// The scenarios to run.
pub fn all() -> Vec<Scenario> {
    let mut all = OWN_WAY.to_vec();
    if are_all_wanted() {
        all.extend(SAME_WAY);
    }
    all
}
