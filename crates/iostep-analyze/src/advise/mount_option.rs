//! Options of mounted filesystems that change what a commit costs, and need no mkfs.

use iostep_model::durability::Loss;
use serde::Serialize;

/// An option of `mount -o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MountOption {
    /// The filesystem, as the kernel names it.
    pub filesystem: &'static str,
    pub option: &'static str,
    /// What takes it back: the option that says what is in force without it. `None` if a remount
    /// does not change it.
    pub undo: Option<&'static str>,
    /// What it does, in words.
    pub effect: &'static str,
    /// What a crash can cost with it.
    pub loss: Loss,
}

/// Something that options of a filesystem decide.
struct Property {
    filesystem: &'static str,
    /// What it can be, each with its spellings, the one to give first. The first is in force where
    /// the options say nothing.
    values: &'static [&'static [&'static str]],
}

impl Property {
    /// The value that an option stands for, in the spelling to give.
    fn value(&self, option: &str) -> Option<&'static str> {
        let found = self.values.iter().find(|value| value.contains(&option))?;
        found.first().copied()
    }
}

const BARRIER: &[&[&str]] = &[&["barrier"], &["nobarrier"]];
const DISCARD: &[&[&str]] = &[&["nodiscard"], &["discard"]];

/// Sources: the parameters of each filesystem's `fs_parameter_spec` or `match_table_t`, and what its
/// `show_options` prints.
const PROPERTIES: [Property; 9] = [
    Property {
        filesystem: "ext4",
        values: &[&["barrier=1", "barrier"], &["barrier=0", "nobarrier"]],
    },
    Property {
        filesystem: "ext4",
        values: DISCARD,
    },
    Property {
        filesystem: "ext4",
        values: &[&["data=ordered"], &["data=writeback"], &["data=journal"]],
    },
    Property {
        filesystem: "xfs",
        values: DISCARD,
    },
    Property {
        filesystem: "xfs",
        values: &[
            &["logbsize=32k", "logbsize=32768"],
            &["logbsize=16k", "logbsize=16384"],
            &["logbsize=64k", "logbsize=65536"],
            &["logbsize=128k", "logbsize=131072"],
            &["logbsize=256k", "logbsize=262144"],
        ],
    },
    Property {
        filesystem: "btrfs",
        values: &[
            &["nodiscard"],
            &["discard", "discard=sync"],
            &["discard=async"],
        ],
    },
    Property {
        filesystem: "f2fs",
        values: BARRIER,
    },
    Property {
        filesystem: "f2fs",
        values: &[
            &["fsync_mode=posix"],
            &["fsync_mode=strict"],
            &["fsync_mode=nobarrier"],
        ],
    },
    Property {
        filesystem: "nilfs2",
        values: BARRIER,
    },
];

/// What is worth measuring.
struct Offer {
    filesystem: &'static str,
    option: &'static str,
    /// A remount changes it.
    remounts: bool,
    /// It is only of use while this is in force.
    wants: Option<&'static str>,
    effect: &'static str,
    loss: Loss,
}

const NO_DISCARD: Offer = Offer {
    filesystem: "ext4",
    option: "nodiscard",
    remounts: true,
    wants: Some("discard"),
    effect: "freed blocks are not discarded with each commit; run fstrim now and then",
    loss: Loss::Nothing,
};
const NO_BARRIER: Offer = Offer {
    filesystem: "ext4",
    option: "barrier=0",
    remounts: true,
    wants: None,
    effect: "the device is never flushed: only for one whose cache survives a power loss",
    loss: Loss::Filesystem,
};

const OFFERS: [Offer; 8] = [
    NO_DISCARD,
    NO_BARRIER,
    // ext4_remount refuses another data= (fs/ext4/super.c).
    Offer {
        filesystem: "ext4",
        option: "data=writeback",
        remounts: false,
        wants: None,
        effect: "commits of the journal do not wait for file data; SQLite syncs its files itself",
        loss: Loss::Nothing,
    },
    // xfs_fs_reconfigure takes inode32, inode64, ro and rw only (fs/xfs/xfs_super.c).
    Offer {
        filesystem: "xfs",
        remounts: false,
        ..NO_DISCARD
    },
    Offer {
        filesystem: "xfs",
        option: "logbsize=256k",
        remounts: false,
        wants: None,
        effect: "larger buffers of the log, for many writers at once",
        loss: Loss::Nothing,
    },
    Offer {
        filesystem: "btrfs",
        ..NO_DISCARD
    },
    Offer {
        filesystem: "f2fs",
        option: "fsync_mode=nobarrier",
        wants: Some("barrier"),
        effect: "fsync does not flush the device: only for one whose cache survives a power loss",
        ..NO_BARRIER
    },
    Offer {
        filesystem: "nilfs2",
        option: "nobarrier",
        ..NO_BARRIER
    },
];

/// Those of a filesystem that are worth measuring. `present` are the options in force, separated by
/// commas or semicolons; of two that contradict each other the last one counts.
pub fn mount_options(filesystem: &str, present: &str) -> Vec<MountOption> {
    let offers = OFFERS.iter().filter(|offer| offer.filesystem == filesystem);
    offers
        .filter_map(|offer| {
            let (own, before) = own_and_in_force(filesystem, present, offer.option)?;
            let wants = offer.wants;
            let is_of_use = wants.is_none_or(|wants| is_in_force(filesystem, present, wants));
            (own != before && is_of_use).then_some(MountOption {
                filesystem: offer.filesystem,
                option: offer.option,
                undo: offer.remounts.then_some(before),
                effect: offer.effect,
                loss: offer.loss,
            })
        })
        .collect()
}

/// True if an option changes nothing, since what it says is in force: in whatever words, or because
/// the filesystem does so by itself. False for one that is not known.
pub fn is_in_force(filesystem: &str, present: &str, option: &str) -> bool {
    own_and_in_force(filesystem, present, option).is_some_and(|(own, before)| own == before)
}

/// The value that an option gives to its property, and the one that the property has.
fn own_and_in_force(
    filesystem: &str,
    present: &str,
    option: &str,
) -> Option<(&'static str, &'static str)> {
    let mut properties = PROPERTIES
        .iter()
        .filter(|property| property.filesystem == filesystem);
    let (property, own) =
        properties.find_map(|property| Some((property, property.value(option)?)))?;
    let mut last_first = present.split([',', ';']).rev();
    let said = last_first.find_map(|option| property.value(option));
    let default = *property.values.first()?.first()?;
    Some((own, said.unwrap_or(default)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(filesystem: &str, present: &str) -> Vec<&'static str> {
        let found = mount_options(filesystem, present);
        found.iter().map(|option| option.option).collect()
    }

    fn undo(filesystem: &str, present: &str, option: &str) -> Option<&'static str> {
        let found = mount_options(filesystem, present);
        found.iter().find(|found| found.option == option)?.undo
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
    fn options_are_compared_by_what_they_mean() {
        for off in ["nobarrier", "barrier=0"] {
            assert_eq!(names("ext4", off), ["data=writeback"], "{off}");
        }
        for on in ["barrier", "barrier=1", ""] {
            assert_eq!(names("ext4", on), ["barrier=0", "data=writeback"], "{on}");
        }
        assert_eq!(names("nilfs2", "nobarrier"), [""; 0]);
        assert_eq!(names("nilfs2", "barrier"), ["nobarrier"]);
        for large in ["logbsize=256k", "logbsize=262144"] {
            assert_eq!(names("xfs", large), [""; 0], "{large}");
        }
        assert_eq!(names("xfs", "logbsize=32k,discard").len(), 2);
        assert_eq!(names("btrfs", "discard=sync"), ["nodiscard"]);
        // That discards later, and no commit waits for it.
        assert_eq!(names("btrfs", "discard=async"), [""; 0]);
        // Without any flush there is none to leave out of fsync.
        assert_eq!(names("f2fs", "nobarrier,fsync_mode=posix"), [""; 0]);
        assert_eq!(names("f2fs", "fsync_mode=nobarrier"), [""; 0]);
    }

    #[test]
    fn the_last_of_two_options_counts() {
        assert!(is_in_force("ext4", "nobarrier;rw,barrier", "barrier=1"));
        assert!(is_in_force("ext4", "barrier,barrier=0", "nobarrier"));
        assert_eq!(
            names("ext4", "discard,nodiscard,nobarrier"),
            ["data=writeback"]
        );
        assert!(!is_in_force("ext4", "walrus", "walrus"));
    }

    #[test]
    fn what_was_in_force_takes_an_option_back() {
        assert_eq!(undo("ext4", "rw", "barrier=0"), Some("barrier=1"));
        assert_eq!(undo("ext4", "discard", "nodiscard"), Some("discard"));
        assert_eq!(undo("btrfs", "discard=sync", "nodiscard"), Some("discard"));
        let of = |mode| undo("f2fs", mode, "fsync_mode=nobarrier");
        assert_eq!(of("fsync_mode=strict"), Some("fsync_mode=strict"));
        assert_eq!(of("rw"), Some("fsync_mode=posix"));
        assert_eq!(undo("nilfs2", "rw", "nobarrier"), Some("barrier"));
        assert_eq!(undo("ext4", "rw", "data=writeback"), None);
    }

    #[test]
    fn every_offer_says_something_that_is_known() {
        for offer in OFFERS {
            for option in [Some(offer.option), offer.wants].into_iter().flatten() {
                let found = own_and_in_force(offer.filesystem, "", option);
                assert!(found.is_some(), "{}: {option}", offer.filesystem);
            }
        }
    }

    #[test]
    fn what_risks_the_filesystem_says_so() {
        for offer in OFFERS {
            let risks = offer.effect.contains("flush");
            assert_eq!(risks, offer.loss == Loss::Filesystem, "{}", offer.option);
        }
    }
}
