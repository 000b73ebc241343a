//! Copies to and from mappings.

use iostep_load::engine::{Observer, Progress};
use iostep_model::bench::{
    Access, FileJob, InitialContent, RunState, Sharing, Step, Sync, Transfer,
};
use iostep_model::manifest::Counters;

use super::bench::{count, file, job, run, run_watched, stamps};

#[test]
fn eight_threads_write_eight_files_through_mappings_of_their_own() {
    for (access, initial) in [
        (Access::Write, InitialContent::Written),
        (Access::Write, InitialContent::Allocated),
        (Access::Write, InitialContent::Sparse),
        (Access::RandomWrite, InitialContent::Sparse),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let job = FileJob {
            access,
            transfer: Transfer::Mmap,
            threads: 8,
            initial,
            ..job(dir.path())
        };
        let run = run(&job).expect("a run");
        assert_eq!(run.state, RunState::Complete, "{:?}", run.failures);
        assert_eq!((run.operations, run.bytes), (128, 8 * 65536));
        for thread in 0..8 {
            let path = file(dir.path(), &format!("file-{thread}"));
            let found = stamps(&std::fs::read(path).expect("a file"), 4096);
            let mut writes: Vec<u64> = found.iter().map(|stamp| stamp.1).collect();
            if access == Access::RandomWrite {
                writes.sort_unstable();
            }
            assert_eq!(writes, Vec::from_iter(1..=16));
            for (number, stamp) in (0..).zip(found) {
                assert_eq!((stamp.0, stamp.2, stamp.3), (number * 4096, thread, thread));
            }
        }
    }
}

#[test]
fn random_access_by_eight_threads_to_one_mapping_each_of_one_file_ends() {
    for access in [Access::RandomRead, Access::RandomWrite] {
        let dir = tempfile::tempdir().expect("a directory");
        let job = FileJob {
            access,
            transfer: Transfer::Mmap,
            threads: 8,
            sharing: Sharing::SharedFile,
            ..job(dir.path())
        };
        let run = run(&job).expect("a run");
        assert_eq!(run.state, RunState::Complete);
        assert_eq!(run.operations, 128);
    }
}

#[test]
fn every_sync_of_a_mapping_is_called_after_each_group() {
    let modes = [
        (Sync::None, 0),
        (Sync::MsSync, 1),
        (Sync::MsAsync, 1),
        (Sync::Fsync, 1),
        (Sync::Fdatasync, 1),
        (Sync::SyncFileRange, 1),
    ];
    for (sync, calls) in modes {
        for record_bytes in [1000, 4096] {
            let dir = tempfile::tempdir().expect("a directory");
            let job = FileJob {
                transfer: Transfer::Mmap,
                access: Access::RandomWrite,
                record_bytes,
                file_bytes: 16 * record_bytes,
                sync,
                sync_every: 5,
                end_sync: true,
                ..job(dir.path())
            };
            let run = run(&job).expect("a run");
            assert_eq!(run.state, RunState::Complete, "{:?}", run.failures);
            assert_eq!(count(&run, Step::Sync), calls * 4, "{sync}");
            assert_eq!(count(&run, Step::EndSync), 1);
        }
    }
}

/// Cuts the file off below its mapping.
struct Cutter(std::path::PathBuf);

impl Observer for Cutter {
    fn device(&mut self) -> Option<Counters> {
        let file = std::fs::OpenOptions::new().write(true).open(&self.0);
        file.expect("the file").set_len(8 * 4096).expect("a cut");
        None
    }

    fn progress(&mut self, _: Progress) {}
}

#[test]
fn a_page_that_is_not_there_is_a_failed_operation_and_not_the_end_of_the_process() {
    for (access, what) in [(Access::Read, "read"), (Access::Write, "write")] {
        let dir = tempfile::tempdir().expect("a directory");
        let job = FileJob {
            access,
            transfer: Transfer::Mmap,
            ..job(dir.path())
        };
        let path = file(dir.path(), "file-0");
        let run = run_watched(&job, &mut Cutter(path.clone())).expect("a run");
        assert_eq!(run.state, RunState::Failed);
        assert_eq!(run.operations, 8);
        let failure = &run.failures[0];
        assert_eq!(failure.operation, 9);
        let attempt = format!("{what} of 4096 bytes at 32768 of {}", path.display());
        assert_eq!(failure.attempt, attempt);
        assert!(failure.reason.starts_with("SIGBUS"), "{}", failure.reason);
    }
}
