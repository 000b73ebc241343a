//! One system call after the other.

use iostep_model::bench::{Access, FileJob, RunState, Sharing, Step, Sync};

use super::bench::{count, file, job, run, stamps};

const WRITES: [Access; 3] = [Access::Write, Access::RandomWrite, Access::Append];

#[test]
fn every_access_does_each_record_once_and_the_file_holds_it() {
    for access in WRITES {
        let dir = tempfile::tempdir().expect("a directory");
        let job = FileJob {
            access,
            ..job(dir.path())
        };
        let run = run(&job).expect("a run");
        assert_eq!(run.state, RunState::Complete);
        assert_eq!((run.operations, run.bytes), (16, 65536), "{access}");
        assert_eq!(count(&run, Step::Write), 16);
        assert_eq!(count(&run, Step::Total), 16);
        let content = std::fs::read(file(dir.path(), "file-0")).expect("the file");
        let found = stamps(&content, 4096);
        assert_eq!(found.len(), 16);
        let mut sequences: Vec<_> = found.iter().map(|stamp| stamp.1).collect();
        if access == Access::RandomWrite {
            assert!(!sequences.is_sorted());
            sequences.sort_unstable();
        }
        assert_eq!(sequences, Vec::from_iter(1..=16));
        for (number, (offset, _, file, thread)) in found.into_iter().enumerate() {
            assert_eq!((offset, file, thread), (number as u64 * 4096, 0, 0));
        }
    }
}

#[test]
fn reads_leave_the_file_as_it_was_made() {
    for access in [Access::Read, Access::RandomRead] {
        let dir = tempfile::tempdir().expect("a directory");
        let job = FileJob {
            access,
            ..job(dir.path())
        };
        let run = run(&job).expect("a run");
        assert_eq!((run.operations, run.bytes), (16, 65536));
        assert_eq!(count(&run, Step::Read), 16);
        let content = std::fs::read(file(dir.path(), "file-0")).expect("the file");
        assert!(stamps(&content, 4096).iter().all(|stamp| stamp.1 == 0));
    }
}

#[test]
fn every_thread_writes_all_of_its_own_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let job = FileJob {
        threads: 8,
        ..job(dir.path())
    };
    let run = run(&job).expect("a run");
    assert_eq!((run.operations, run.bytes), (128, 8 * 65536));
    assert!(run.threads.iter().all(|thread| thread.operations == 16));
    for thread in 0..8 {
        let content = std::fs::read(file(dir.path(), &format!("file-{thread}"))).expect("a file");
        let found = stamps(&content, 4096);
        let expected = (0..16).map(|i| (i * 4096, i + 1, thread, thread));
        assert_eq!(found, Vec::from_iter(expected));
    }
}

#[test]
fn threads_that_share_a_file_write_all_of_it_between_them() {
    for access in WRITES {
        let dir = tempfile::tempdir().expect("a directory");
        let job = FileJob {
            access,
            threads: 4,
            sharing: Sharing::SharedFile,
            ..job(dir.path())
        };
        let run = run(&job).expect("a run");
        let each = if access == Access::RandomWrite { 16 } else { 4 };
        assert!(run.threads.iter().all(|thread| thread.operations == each));
        let content = std::fs::read(file(dir.path(), "file-shared")).expect("the file");
        let found = stamps(&content, 4096);
        assert_eq!(found.len(), 16);
        for (number, stamp) in found.into_iter().enumerate() {
            assert_eq!(stamp.0, number as u64 * 4096);
            assert!((1..=each).contains(&stamp.1) && stamp.3 < 4);
        }
    }
}

#[test]
fn a_sync_follows_every_so_many_writes_and_the_last_group_is_synced_too() {
    let modes = [
        (Sync::None, 0),
        (Sync::OSync, 0),
        (Sync::ODsync, 0),
        (Sync::RwfDsync, 0),
        (Sync::Fsync, 1),
        (Sync::Fdatasync, 1),
        (Sync::SyncFileRange, 1),
    ];
    for (sync, calls) in modes {
        for (sync_every, groups) in [(1, 16), (5, 4), (16, 1), (u64::MAX, 1)] {
            let dir = tempfile::tempdir().expect("a directory");
            let job = FileJob {
                sync,
                sync_every,
                end_sync: true,
                ..job(dir.path())
            };
            let run = run(&job).expect("a run");
            assert_eq!(run.state, RunState::Complete, "{:?}", run.failures);
            assert_eq!(run.operations, 16);
            assert_eq!(count(&run, Step::Sync), calls * groups, "{sync}");
            assert_eq!(count(&run, Step::EndSync), 1);
            assert_eq!(count(&run, Step::Total), 16);
        }
    }
}
