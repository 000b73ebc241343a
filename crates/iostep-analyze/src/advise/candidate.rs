//! The settings that are worth measuring.

use iostep_model::bench::WaldioSync;
use iostep_model::durability::Loss;
use iostep_model::pragma::{Journal, Synchronous};
use serde::Serialize;

use super::mount_option::MountOption;
use super::setting::Setting;
use super::workload::Workload;

/// Sizes of a log that are tried beside SQLite's own, pages.
const CHECKPOINT_PAGES: [u32; 2] = [250, 4000];

/// A setting to measure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// What `--candidates` names it by.
    pub key: String,
    /// Its name for people.
    pub name: String,
    pub setting: Setting,
    /// Shown for what it would give, and never recommended.
    pub only_shown: bool,
}

impl Candidate {
    fn new(setting: Setting) -> Candidate {
        let name = setting.name();
        Candidate {
            key: name.replace(", ", "-").replace(' ', "-"),
            name,
            setting,
            only_shown: setting.durability().worst() >= Loss::Database,
        }
    }

    fn named(name: String, key: String, setting: Setting) -> Candidate {
        Candidate {
            key,
            name,
            ..Candidate::new(setting)
        }
    }
}

/// What is worth measuring against the present setting: every journal mode, with less than
/// `synchronous=full` where that means something; sizes of the log; other pages where they promise
/// anything; and the options that the filesystem can be mounted with. What is the present setting
/// is left out.
pub fn candidates(
    present: &Setting,
    workload: &Workload,
    options: &[MountOption],
) -> Vec<Candidate> {
    let of = |journal, synchronous| Setting::new(journal, synchronous, present.page_bytes);
    let full = |journal| of(journal, Synchronous::Full);
    let wal = full(Journal::Wal);
    let waldio = full(Journal::Waldio);
    let mut settings = vec![
        full(Journal::Delete),
        full(Journal::Truncate),
        full(Journal::Persist),
        wal,
    ];
    settings.extend(CHECKPOINT_PAGES.map(|checkpoint_pages| Setting {
        checkpoint_pages,
        ..wal
    }));
    settings.push(of(Journal::Wal, Synchronous::Normal));
    settings.push(waldio);
    settings.extend(
        [
            WaldioSync::Persistent,
            WaldioSync::Group,
            WaldioSync::Normal,
        ]
        .map(|sync| Setting {
            waldio_sync: Some(sync),
            ..waldio
        }),
    );
    let own = rollback(present);
    settings.push(of(own, Synchronous::Normal));
    settings.push(of(present.journal, Synchronous::Off));
    let mut candidates: Vec<Candidate> = settings.into_iter().map(Candidate::new).collect();
    candidates.extend(page_sizes(present, workload));
    candidates.extend(options.iter().map(|option| {
        let setting = Setting {
            mount: Some(*option),
            ..*present
        };
        let name = format!("present, mounted with {}", option.option);
        Candidate::named(name, format!("mount-{}", option.option), setting)
    }));
    candidates.retain(|candidate| !candidate.setting.is_same(present));
    candidates
}

/// The rollback journal that is in use, or the one that costs least of those that lose nothing.
fn rollback(present: &Setting) -> Journal {
    match present.journal {
        Journal::Delete | Journal::Truncate | Journal::Persist => present.journal,
        _ => Journal::Persist,
    }
}

/// SQLite's own size where the database has another; and pages that hold four rows, where rows are
/// so long that most of a page is a part of one.
fn page_sizes(present: &Setting, workload: &Workload) -> Vec<Candidate> {
    const OWN: u32 = 4096;
    let roomy = workload
        .record_bytes
        .saturating_mul(4)
        .checked_next_power_of_two()
        .unwrap_or(65536)
        .clamp(OWN, 65536);
    let mut sizes = vec![OWN, roomy];
    sizes.dedup();
    sizes.retain(|size| *size != present.page_bytes);
    sizes
        .into_iter()
        .map(|page_bytes| {
            let setting = Setting {
                page_bytes,
                ..*present
            };
            let name = format!("present, pages of {page_bytes}");
            Candidate::named(name, format!("page-size-{page_bytes}"), setting)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::mount_option::mount_options;
    use super::*;

    fn keys(present: Setting) -> Vec<String> {
        let options = mount_options("ext4", "rw");
        let all = candidates(&present, &Workload::like(None, None), &options);
        all.into_iter().map(|candidate| candidate.key).collect()
    }

    #[test]
    fn everything_but_the_present_setting_is_a_candidate() {
        let of_delete = keys(Setting::new(Journal::Delete, Synchronous::Full, 4096));
        assert_eq!(
            of_delete,
            [
                "truncate-full",
                "persist-full",
                "wal-full",
                "wal-full-checkpoint-250",
                "wal-full-checkpoint-4000",
                "wal-normal",
                "waldio-full",
                "waldio-persistent",
                "waldio-group",
                "waldio-normal",
                "delete-normal",
                "delete-off",
                "mount-barrier=0",
                "mount-data=writeback",
            ]
        );
        let of_wal = keys(Setting::new(Journal::Wal, Synchronous::Normal, 4096));
        assert!(of_wal.contains(&"wal-full".into()) && of_wal.contains(&"delete-full".into()));
        assert!(!of_wal.contains(&"wal-normal".into()));
        assert!(of_wal.contains(&"wal-off".into()) && of_wal.contains(&"persist-normal".into()));
    }

    #[test]
    fn no_two_candidates_have_one_key() {
        for journal in Journal::ALL {
            for synchronous in Synchronous::ALL {
                let mut keys = keys(Setting::new(journal, synchronous, 1024));
                let count = keys.len();
                keys.sort();
                keys.dedup();
                assert_eq!(keys.len(), count, "{journal} {synchronous}");
            }
        }
    }

    #[test]
    fn pages_follow_long_rows() {
        let sizes = |page_bytes, record_bytes| -> Vec<u32> {
            let present = Setting::new(Journal::Wal, Synchronous::Full, page_bytes);
            let workload = Workload {
                record_bytes,
                ..Workload::like(None, None)
            };
            let all = page_sizes(&present, &workload);
            all.iter()
                .map(|candidate| candidate.setting.page_bytes)
                .collect()
        };
        assert_eq!(sizes(4096, 100), [0; 0]);
        assert_eq!(sizes(1024, 100), [4096]);
        assert_eq!(sizes(4096, 3000), [16384]);
        assert_eq!(sizes(1024, u32::MAX), [4096, 65536]);
    }

    #[test]
    fn what_can_damage_something_is_only_shown() {
        let options = mount_options("ext4", "rw");
        let all = candidates(
            &Setting::new(Journal::Delete, Synchronous::Full, 4096),
            &Workload::like(None, None),
            &options,
        );
        let shown = all.iter().filter(|candidate| candidate.only_shown);
        let keys: Vec<&str> = shown.map(|candidate| candidate.key.as_str()).collect();
        assert_eq!(keys, ["delete-normal", "delete-off", "mount-barrier=0"]);
    }
}
