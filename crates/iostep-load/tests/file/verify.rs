//! What reading back finds, and what it must not overlook.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use iostep_load::engine::{Observer, Progress};
use iostep_model::bench::{
    Access, Engine, FileJob, InitialContent, RunState, Sharing, Transfer, Verification,
};
use iostep_model::manifest::Counters;

use super::bench::{file, job, run, run_watched};

/// Does something to the files at a reading of the device: the first is before the threads
/// begin, the next after they ended.
struct Meddler<F: FnMut(u32)> {
    readings: u32,
    meddle: F,
}

impl<F: FnMut(u32)> Observer for Meddler<F> {
    fn device(&mut self) -> Option<Counters> {
        (self.meddle)(self.readings);
        self.readings += 1;
        None
    }

    fn progress(&mut self, _: Progress) {}
}

/// Runs a job and does `meddle` to its first file at reading number `at`.
fn verify_meddled(job: &FileJob, at: u32, meddle: impl Fn(&std::fs::File)) -> Verification {
    let dir = tempfile::tempdir().expect("a directory");
    let mut job = job.clone();
    job.measurement.verify = true;
    job.target = iostep_model::bench::Target::Directory(dir.path().to_owned());
    let name = match job.sharing {
        Sharing::OwnFile => "file-0",
        Sharing::SharedFile => "file-shared",
    };
    let path = file(dir.path(), name);
    let mut meddler = Meddler {
        readings: 0,
        meddle: |reading| {
            if reading == at {
                let file = OpenOptions::new().write(true).open(&path);
                meddle(&file.expect("the file"));
            }
        },
    };
    let run = run_watched(&job, &mut meddler).expect("a run");
    run.verification.expect("it was asked for")
}

/// Every way of working that can be verified.
fn all_ways() -> Vec<FileJob> {
    let base = job("/nowhere".as_ref());
    let ways = [
        (Transfer::Buffered, Engine::Psync, 1),
        (Transfer::Mmap, Engine::Psync, 1),
        (Transfer::Buffered, Engine::Uring, 4),
    ];
    let mut jobs = Vec::new();
    for access in Access::ALL.iter().copied() {
        for (threads, sharing) in [
            (1, Sharing::OwnFile),
            (4, Sharing::OwnFile),
            (4, Sharing::SharedFile),
        ] {
            for (transfer, engine, depth) in ways {
                let tears = access == Access::RandomWrite && sharing == Sharing::SharedFile;
                if transfer == Transfer::Mmap && (tears || access == Access::Append) {
                    continue;
                }
                jobs.push(FileJob {
                    access,
                    threads,
                    sharing,
                    transfer,
                    engine,
                    depth,
                    ..base.clone()
                });
            }
        }
    }
    jobs
}

#[test]
fn what_nobody_touched_is_right_in_every_way_of_working() {
    for job in all_ways() {
        for record_bytes in [64, 1000, 4096, 4100, 12288, 1 << 18] {
            let job = FileJob {
                record_bytes,
                file_bytes: record_bytes * 16,
                ..job.clone()
            };
            let found = verify_meddled(&job, u32::MAX, |_| {});
            assert_eq!((found.wrong, found.examples), (0, vec![]), "{job:?}");
            assert!(found.compared >= 16);
        }
    }
}

#[test]
fn one_changed_bit_anywhere_is_found() {
    for job in all_ways() {
        for at in [0, 17, 4095, 5 * 4096 + 2000, 65535] {
            let found = verify_meddled(&job, 1, |file| {
                let mut byte = [0];
                let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
                let again = std::fs::File::open(path).expect("the file");
                again.read_exact_at(&mut byte, at).expect("a byte");
                file.write_all_at(&[byte[0] ^ 4], at).expect("a write");
            });
            assert_eq!(found.wrong, 1, "{job:?}");
            let place = format!(" at {}: expected ", at / 4096 * 4096);
            assert!(found.examples[0].contains(&place), "{:?}", found.examples);
        }
    }
}

#[test]
fn a_read_that_brings_another_record_is_found_at_once() {
    let is_random_read = |job: &FileJob| job.access == Access::RandomRead && job.threads == 1;
    for job in all_ways().into_iter().filter(is_random_read) {
        let found = verify_meddled(&job, 0, |file| {
            file.write_all_at(&(7 * 4096u64).to_le_bytes(), 3 * 4096 + 16)
                .expect("a write");
        });
        // Once by the thread and once in the end.
        assert_eq!((found.compared, found.wrong), (32, 2), "{job:?}");
        let expected =
            "at 12288: expected what was there before, found the stamp of file 0 at 28672";
        assert!(
            found.examples.iter().all(|e| e.contains(expected)),
            "{:?}",
            found.examples
        );
    }
}

#[test]
fn a_write_that_was_lost_is_found() {
    let before = std::cell::RefCell::new(Vec::new());
    let base = FileJob {
        keep: true,
        ..job("/nowhere".as_ref())
    };
    let dir = tempfile::tempdir().expect("a directory");
    let first = FileJob {
        access: Access::Read,
        target: iostep_model::bench::Target::Directory(dir.path().to_owned()),
        ..base.clone()
    };
    run(&first).expect("a run");
    *before.borrow_mut() = std::fs::read(file(dir.path(), "file-0")).expect("the file");
    let found = verify_meddled(&base, 1, |file| {
        file.write_all_at(&before.borrow()[8192..12288], 8192)
            .expect("a write");
    });
    assert_eq!(found.wrong, 1);
    let example = &found.examples[0];
    assert!(
        example.ends_with("at 8192: expected write 3 of thread 0, found what was there before"),
        "{example}"
    );
}

#[test]
fn a_file_of_another_length_is_found() {
    for access in [Access::Write, Access::Append] {
        let job = FileJob {
            access,
            ..job("/nowhere".as_ref())
        };
        let found = verify_meddled(&job, 1, |file| file.set_len(40_000).expect("a cut"));
        assert!(
            found.examples[0].ends_with("at 40000: expected 65536 bytes in all, found 40000"),
            "{:?}",
            found.examples
        );
        // The length, the record that is cut and the six after it.
        assert_eq!(found.wrong, 8);
        let longer = verify_meddled(&job, 1, |file| file.set_len(70_000).expect("a stretch"));
        assert_eq!(longer.wrong, 1);
    }
}

#[test]
fn overlaps_and_passes_leave_the_last_write_of_each_record() {
    for access in [Access::RandomWrite, Access::Write, Access::Append] {
        for overlap_percent in [0.0, 50.0, 100.0] {
            if access != Access::RandomWrite && overlap_percent > 0.0 {
                continue;
            }
            for sharing in [Sharing::OwnFile, Sharing::SharedFile] {
                let mut job = FileJob {
                    access,
                    overlap_percent,
                    sharing,
                    threads: if access == Access::Append { 1 } else { 2 },
                    ..job("/nowhere".as_ref())
                };
                job.measurement.limits.time_ns = Some(20_000_000);
                let found = verify_meddled(&job, u32::MAX, |_| {});
                assert_eq!((found.wrong, found.examples), (0, vec![]), "{job:?}");
            }
        }
    }
}

#[test]
fn what_was_not_written_to_a_hole_is_still_zeros() {
    for initial in [InitialContent::Sparse, InitialContent::Allocated] {
        let job = FileJob {
            access: Access::RandomWrite,
            overlap_percent: 50.0,
            initial,
            ..job("/nowhere".as_ref())
        };
        let found = verify_meddled(&job, u32::MAX, |_| {});
        assert_eq!((found.compared, found.wrong), (16, 0));
        let found = verify_meddled(&job, 1, |file| {
            file.write_all_at(&[1; 65536], 0).expect("a write");
        });
        assert_eq!(found.wrong, 16);
        assert_eq!(found.examples.len(), 10);
    }
}

#[test]
fn a_run_that_did_not_come_to_its_end_is_not_verified() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut job = job(dir.path());
    (job.access, job.measurement.verify) = (Access::Read, true);
    let path = file(dir.path(), "file-0");
    let mut meddler = Meddler {
        readings: 0,
        meddle: |_| {
            let file = OpenOptions::new().write(true).open(&path);
            file.expect("the file").set_len(0).expect("a cut");
        },
    };
    let run = run_watched(&job, &mut meddler).expect("a run");
    assert_eq!(run.state, RunState::Failed);
    assert_eq!(run.verification, None);
}
