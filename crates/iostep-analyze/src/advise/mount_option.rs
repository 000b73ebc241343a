//! Options of mounted filesystems that change what a commit costs, and need no mkfs.

use iostep_model::durability::Loss;
use serde::Serialize;

/// An option of `mount -o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MountOption {
    /// The filesystem, as the kernel names it.
    pub filesystem: &'static str,
    /// The option.
    pub option: &'static str,
    /// What takes it back; `None` if a remount does not change it.
    pub undo: Option<&'static str>,
    /// It is only of use if this is among the options; empty for always.
    #[serde(skip)]
    wants: &'static str,
    /// What it does, in words.
    pub effect: &'static str,
    /// What a crash can cost with it.
    pub loss: Loss,
}

const OPTIONS: [MountOption; 8] = [
    MountOption {
        filesystem: "ext4",
        option: "nodiscard",
        undo: Some("discard"),
        wants: "discard",
        effect: "freed blocks are not discarded with each commit; run fstrim now and then",
        loss: Loss::Nothing,
    },
    MountOption {
        filesystem: "ext4",
        option: "barrier=0",
        undo: Some("barrier=1"),
        wants: "",
        effect: "the device is never flushed: only for one whose cache survives a power loss",
        loss: Loss::Filesystem,
    },
    // ext4_remount refuses another data= (fs/ext4/super.c).
    MountOption {
        filesystem: "ext4",
        option: "data=writeback",
        undo: None,
        wants: "",
        effect: "commits of the journal do not wait for file data; SQLite syncs its files itself",
        loss: Loss::Nothing,
    },
    // xfs_fs_reconfigure takes inode32, inode64, ro and rw only (fs/xfs/xfs_super.c).
    MountOption {
        filesystem: "xfs",
        option: "nodiscard",
        undo: None,
        wants: "discard",
        effect: "freed blocks are not discarded with each commit; run fstrim now and then",
        loss: Loss::Nothing,
    },
    MountOption {
        filesystem: "xfs",
        option: "logbsize=256k",
        undo: None,
        wants: "",
        effect: "larger buffers of the log, for many writers at once",
        loss: Loss::Nothing,
    },
    MountOption {
        filesystem: "btrfs",
        option: "nodiscard",
        undo: Some("discard"),
        wants: "discard",
        effect: "freed blocks are not discarded with each commit; run fstrim now and then",
        loss: Loss::Nothing,
    },
    MountOption {
        filesystem: "f2fs",
        option: "fsync_mode=nobarrier",
        undo: Some("fsync_mode=posix"),
        wants: "",
        effect: "fsync does not flush the device: only for one whose cache survives a power loss",
        loss: Loss::Filesystem,
    },
    MountOption {
        filesystem: "nilfs2",
        option: "nobarrier",
        undo: Some("barrier"),
        wants: "",
        effect: "the device is never flushed: only for one whose cache survives a power loss",
        loss: Loss::Filesystem,
    },
];

/// Those of a filesystem that are not in force. `present` are its options, separated by commas or
/// semicolons.
pub fn mount_options(filesystem: &str, present: &str) -> Vec<&'static MountOption> {
    let present: Vec<&str> = present.split([',', ';']).collect();
    let of_use = |option: &&MountOption| {
        option.filesystem == filesystem
            && !present.contains(&option.option)
            && (option.wants.is_empty() || present.contains(&option.wants))
    };
    OPTIONS.iter().filter(of_use).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(filesystem: &str, present: &str) -> Vec<&'static str> {
        let found = mount_options(filesystem, present);
        found.iter().map(|option| option.option).collect()
    }

    #[test]
    fn only_what_changes_something_is_offered() {
        assert_eq!(
            names("ext4", "rw,relatime;rw"),
            ["barrier=0", "data=writeback"]
        );
        assert_eq!(
            names("ext4", "rw;rw,discard,data=writeback"),
            ["nodiscard", "barrier=0"]
        );
        assert_eq!(names("tmpfs", "rw"), [""; 0]);
    }

    #[test]
    fn what_risks_the_filesystem_says_so() {
        for option in OPTIONS {
            let risks = option.effect.contains("flush");
            assert_eq!(risks, option.loss == Loss::Filesystem, "{}", option.option);
        }
    }
}
