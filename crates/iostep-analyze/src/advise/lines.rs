//! What to put into the application, or to type, for a setting.

use std::path::Path;

use iostep_model::bench::WaldioSync;
use iostep_model::database::uri;
use iostep_model::pragma::Journal;

use super::setting::{DEFAULT_CHECKPOINT_PAGES, Setting};

/// The lines, as the sqlite3 shell takes them; an application takes the PRAGMAs for each of its
/// connections. Those of a mount option are a shell's.
pub(super) fn lines(
    setting: &Setting,
    present: &Setting,
    database: &Path,
    mount: &Path,
) -> Vec<String> {
    if let Some(option) = setting.mount {
        return vec![mounting(&option, mount)];
    }
    let mut lines = Vec::new();
    let is_waldio = setting.journal == Journal::Waldio;
    if is_waldio {
        lines.push(".load ./waldio".to_owned());
        lines.push(format!(".open \"{}\"", uri(database, "vfs=waldio")));
    }
    if setting.page_bytes != present.page_bytes {
        // A database with a log keeps its page size, even over a VACUUM.
        lines.push("PRAGMA journal_mode=delete;".into());
        lines.push(format!("PRAGMA page_size={};", setting.page_bytes));
        lines.push("VACUUM;".into());
    }
    lines.push(format!("PRAGMA journal_mode={};", setting.journal));
    lines.push(format!("PRAGMA synchronous={};", setting.synchronous));
    match setting.waldio_sync {
        Some(WaldioSync::Group) => lines.push("PRAGMA waldio_sync='group';".into()),
        Some(sync) if is_waldio => lines.push(format!("PRAGMA waldio_sync={sync};")),
        _ => {}
    }
    let differs = |setting: &Setting| setting.checkpoint_pages != DEFAULT_CHECKPOINT_PAGES;
    if setting.journal.is_log() && (differs(setting) || differs(present)) {
        let pages = setting.checkpoint_pages;
        lines.push(format!("PRAGMA wal_autocheckpoint={pages};"));
    }
    lines
}

fn mounting(option: &super::MountOption, mount: &Path) -> String {
    let words = match option.undo {
        Some(_) => format!("remount,{}", option.option),
        // Only a mount from the beginning takes it.
        None => option.option.to_owned(),
    };
    let point = mount.display().to_string().replace('\'', "'\\''");
    match option.undo {
        Some(_) => format!("mount -o {words} '{point}'"),
        None => format!("umount '{point}' && mount -o {words} '{point}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::mount_option::mount_options;
    use super::*;
    use iostep_model::pragma::Synchronous;

    fn of(setting: &Setting) -> Vec<String> {
        let present = Setting::new(Journal::Delete, Synchronous::Full, 4096);
        lines(
            setting,
            &present,
            Path::new("/mnt/a b.db"),
            Path::new("/mnt"),
        )
    }

    #[test]
    fn waldio_is_loaded_before_the_database_is_opened() {
        let setting = Setting {
            waldio_sync: Some(WaldioSync::Group),
            ..Setting::new(Journal::Waldio, Synchronous::Full, 4096)
        };
        assert_eq!(
            of(&setting),
            [
                ".load ./waldio",
                ".open \"file:/mnt/a%20b.db?vfs=waldio\"",
                "PRAGMA journal_mode=waldio;",
                "PRAGMA synchronous=full;",
                "PRAGMA waldio_sync='group';",
            ]
        );
    }

    #[test]
    fn pages_are_changed_outside_of_a_log() {
        let setting = Setting::new(Journal::Wal, Synchronous::Normal, 8192);
        assert_eq!(
            of(&setting),
            [
                "PRAGMA journal_mode=delete;",
                "PRAGMA page_size=8192;",
                "VACUUM;",
                "PRAGMA journal_mode=wal;",
                "PRAGMA synchronous=normal;",
            ]
        );
    }

    #[test]
    fn a_checkpoint_size_is_named_where_it_is_not_sqlites_own() {
        let of_size = |checkpoint_pages| {
            let wal = Setting::new(Journal::Wal, Synchronous::Full, 4096);
            let lines = of(&Setting {
                checkpoint_pages,
                ..wal
            });
            lines.last().cloned().expect("lines")
        };
        assert_eq!(of_size(4000), "PRAGMA wal_autocheckpoint=4000;");
        assert_eq!(of_size(1000), "PRAGMA synchronous=full;");
    }

    #[test]
    fn an_option_is_set_by_a_remount_where_that_works() {
        let lines: Vec<String> = mount_options("ext4", "rw")
            .into_iter()
            .flat_map(|option| {
                let present = Setting::new(Journal::Wal, Synchronous::Full, 4096);
                of(&Setting {
                    mount: Some(option),
                    ..present
                })
            })
            .collect();
        assert_eq!(
            lines,
            [
                "mount -o remount,barrier=0 '/mnt'",
                "umount '/mnt' && mount -o data=writeback '/mnt'",
            ]
        );
    }
}
