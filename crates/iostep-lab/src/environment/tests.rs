use iostep_model::fixture;
use iostep_model::lab::WorkloadKind;

use super::*;

fn cell(filesystem: Filesystem, switches: &str, kind: WorkloadKind) -> Cell {
    let mut cell = fixture::cell(filesystem, kind, &[]);
    cell.switches = switches.parse().expect("switches");
    cell.storage.external_journal = cell.switches.external_journal;
    cell
}

#[test]
fn a_cell_runs_in_a_guest_only_where_this_kernel_lacks_something() {
    let mut mountable = Mountable::with(&[
        (Filesystem::Ext4, true),
        (Filesystem::Ext4Writeback, true),
        (Filesystem::Ext4FastCommit, false),
        (Filesystem::F2fs, false),
    ]);
    let mut choose = |filesystem, switches, kind| {
        let cell = cell(filesystem, switches, kind);
        mountable.choose(&cell, &On::Auto, false, &BTreeSet::new())
    };
    let sqlite = WorkloadKind::Sqlite;
    assert_eq!(choose(Filesystem::Ext4, "", sqlite), Choice::Here);
    assert_eq!(
        choose(Filesystem::Ext4Writeback, "F+E", sqlite),
        Choice::Here
    );
    assert_eq!(choose(Filesystem::F2fs, "", sqlite), Choice::Guest);
    assert_eq!(
        choose(Filesystem::Ext4FastCommit, "", sqlite),
        Choice::Guest
    );
}

#[test]
fn what_means_nothing_is_told_with_its_reason_wherever_it_would_run() {
    let mut mountable = Mountable::new();
    for (filesystem, switches, kind, reason) in [
        (
            Filesystem::F2fs,
            "E",
            WorkloadKind::Sqlite,
            "f2fs has no journal",
        ),
        (
            Filesystem::Btrfs,
            "F+E",
            WorkloadKind::File,
            "btrfs has no journal",
        ),
        (
            Filesystem::Ext4NoJournal,
            "E",
            WorkloadKind::File,
            "no journal",
        ),
        (Filesystem::Ext4, "P", WorkloadKind::Sqlite, "direct I/O"),
        (Filesystem::Ext4, "W", WorkloadKind::File, "SQLite"),
        (Filesystem::Ext4, "F+A", WorkloadKind::Sqlite, "ext4 has no"),
        (Filesystem::F2fs, "A", WorkloadKind::File, "SQLite"),
        (Filesystem::F2fs, "A+P", WorkloadKind::Sqlite, "direct I/O"),
        (Filesystem::Ext4, "W", WorkloadKind::Replay, "recorded"),
    ] {
        for on in [On::Auto, On::Guest, On::Loop, On::Directory("/".into())] {
            match mountable.choose(
                &cell(filesystem, switches, kind),
                &on,
                true,
                &BTreeSet::new(),
            ) {
                Choice::NotApplicable(found) => assert!(found.contains(reason), "{found}"),
                other => panic!("{filesystem} {switches}: {other:?}"),
            }
        }
    }
}

#[test]
fn batch_atomic_writes_replace_a_rollback_journal() {
    let reason = |journal: &str| {
        let mut cell = cell(Filesystem::F2fs, "A", WorkloadKind::Sqlite);
        cell.workload.arguments = vec![format!("--journal={journal}")];
        not_applicable(&cell)
    };
    for journal in ["delete", "truncate", "PERSIST"] {
        assert_eq!(reason(journal), None);
    }
    for journal in ["wal", "waldio", "memory", "off"] {
        let reason = reason(journal).expect(journal);
        assert!(reason.contains("no rollback journal"), "{reason}");
    }
}

#[test]
fn a_directory_takes_only_cells_of_its_own_filesystem() {
    let mut mountable = Mountable::new();
    let on = On::Directory("/proc".into());
    let found = mountable.choose(
        &cell(Filesystem::Xfs, "", WorkloadKind::File),
        &on,
        false,
        &BTreeSet::new(),
    );
    let expected = "/proc is not on xfs".to_owned();
    assert_eq!(found, Choice::NotApplicable(expected));
}

#[test]
fn a_device_without_a_second_one_has_no_external_journal() {
    let mut mountable = Mountable::new();
    let on = On::Device("/dev/null".into());
    let cell = cell(Filesystem::Xfs, "E", WorkloadKind::File);
    assert!(matches!(
        mountable.choose(&cell, &on, false, &BTreeSet::new()),
        Choice::NotApplicable(_)
    ));
    assert_eq!(
        mountable.choose(&cell, &on, true, &BTreeSet::new()),
        Choice::Here
    );
}

#[test]
fn places_are_words_directories_and_block_devices() {
    assert_eq!("auto".parse::<On>().expect("a word"), On::Auto);
    assert_eq!(
        "/".parse::<On>().expect("a directory"),
        On::Directory("/".into())
    );
    for text in ["", "/dev/null", "/no/such/place", "looped"] {
        assert!(text.parse::<On>().is_err(), "{text}");
    }
}

#[test]
fn cells_that_are_compared_with_polled_ones_run_on_the_same_device() {
    let in_block = |block: &str, switches, kind| Cell {
        block: block.into(),
        ..cell(Filesystem::Ext4, switches, kind)
    };
    let (file, sqlite) = (WorkloadKind::File, WorkloadKind::Sqlite);
    let lab = Lab {
        name: "polling".into(),
        title: "Polling".into(),
        cells: vec![
            in_block("a", "", file),
            in_block("a", "P", file),
            in_block("b", "P", sqlite),
            in_block("b", "", sqlite),
        ],
        analysis: Default::default(),
    };
    let polled = polled_blocks(&lab);
    let mut mountable = Mountable::with(&[(Filesystem::Ext4, true)]);
    let mut chosen = lab
        .cells
        .iter()
        .map(|cell| mountable.choose(cell, &On::Auto, false, &polled));
    assert_eq!(chosen.next(), Some(Choice::Guest));
    assert_eq!(chosen.next(), Some(Choice::Guest));
    assert!(matches!(chosen.next(), Some(Choice::NotApplicable(_))));
    assert_eq!(chosen.next(), Some(Choice::Here));
}
