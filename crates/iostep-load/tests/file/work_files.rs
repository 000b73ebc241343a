//! How work files come and go.

use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use iostep_load::Error;
use iostep_load::engine::{Observer, Progress};
use iostep_load::file::Bench;
use iostep_model::bench::{
    Access, Engine, FileJob, Files, InitialContent, PageCache, PayloadKind, Sharing, Transfer,
};
use iostep_model::manifest::Counters;

use super::bench::{Nobody, file, job, run, stamps};

fn refusal(job: &FileJob) -> String {
    let error = run(job).expect_err("a refusal");
    assert!(!matches!(error, Error::Io { .. }), "{error}");
    error.to_string()
}

#[test]
fn nothing_is_left_behind_unless_it_is_to_be_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut job = FileJob {
        threads: 3,
        ..job(dir.path())
    };
    run(&job).expect("a run");
    let kept = std::fs::read_dir(dir.path().join("iostep-bench")).expect("the directory");
    assert_eq!(kept.count(), 3);
    job.keep = false;
    run(&job).expect("a run");
    assert_eq!(std::fs::read_dir(dir.path()).expect("a listing").count(), 0);
}

#[test]
fn work_files_and_their_directory_are_nobody_elses() {
    let dir = tempfile::tempdir().expect("a directory");
    run(&job(dir.path())).expect("a run");
    let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&dir.path().join("iostep-bench")), 0o700);
    assert_eq!(mode(&file(dir.path(), "file-0")), 0o600);
}

#[test]
fn a_link_in_place_of_the_directory_is_refused() {
    let (dir, elsewhere) = (tempfile::tempdir(), tempfile::tempdir());
    let (dir, elsewhere) = (dir.expect("a directory"), elsewhere.expect("a directory"));
    let link = dir.path().join("iostep-bench");
    symlink(elsewhere.path(), &link).expect("a link");
    let victim = elsewhere.path().join("file-0");
    std::fs::write(&victim, vec![7; 65536]).expect("a file");
    for files in [Files::Fresh, Files::Reuse] {
        let refusal = refusal(&FileJob {
            files,
            ..job(dir.path())
        });
        let expected = "iostep-bench: it is not a directory of ours";
        assert!(refusal.contains(expected), "{refusal}");
        assert_eq!(std::fs::read(&victim).expect("the victim"), vec![7; 65536]);
        assert_eq!(std::fs::read_dir(&elsewhere).expect("a listing").count(), 1);
        assert!(link.is_symlink());
    }
}

#[test]
fn a_link_in_place_of_a_file_is_replaced_and_not_followed() {
    for files in [Files::Fresh, Files::Reuse] {
        let dir = tempfile::tempdir().expect("a directory");
        let victim = dir.path().join("victim");
        std::fs::write(&victim, vec![7; 65536]).expect("a file");
        std::fs::create_dir(dir.path().join("iostep-bench")).expect("a directory");
        symlink(&victim, file(dir.path(), "file-0")).expect("a link");
        let job = FileJob {
            files,
            ..job(dir.path())
        };
        run(&job).expect("a run");
        assert_eq!(std::fs::read(&victim).expect("the victim"), vec![7; 65536]);
        let made = file(dir.path(), "file-0")
            .symlink_metadata()
            .expect("the file");
        assert!(made.is_file());
    }
}

#[test]
fn another_name_of_a_file_is_not_written_through() {
    let dir = tempfile::tempdir().expect("a directory");
    let victim = dir.path().join("victim");
    std::fs::write(&victim, vec![7; 65536]).expect("a file");
    std::fs::create_dir(dir.path().join("iostep-bench")).expect("a directory");
    std::fs::hard_link(&victim, file(dir.path(), "file-0")).expect("a link");
    let job = FileJob {
        files: Files::Reuse,
        ..job(dir.path())
    };
    run(&job).expect("a run");
    assert_eq!(std::fs::read(&victim).expect("the victim"), vec![7; 65536]);
}

#[test]
fn a_directory_that_cannot_be_is_named_with_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let missing = dir.path().join("missing");
    let found = refusal(&job(&missing));
    let expected = format!(
        "{}: there is no such directory; make it or name another",
        missing.display()
    );
    assert_eq!(found, expected);
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "").expect("a file");
    assert!(refusal(&job(&plain)).ends_with("plain: it is not a directory; name a directory"));
}

#[test]
fn too_little_space_is_found_before_anything_is_written() {
    for (access, initial) in [
        (Access::Write, InitialContent::Written),
        (Access::Write, InitialContent::Allocated),
        (Access::Write, InitialContent::Sparse),
        (Access::Append, InitialContent::Written),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let job = FileJob {
            file_bytes: 1 << 60,
            threads: 4,
            access,
            initial,
            ..job(dir.path())
        };
        let error = run(&job).expect_err("no space");
        assert!(matches!(error, Error::Refused { .. }));
        let text = error.to_string();
        let expected = format!("{} bytes are needed and ", 1u64 << 62);
        assert!(text.contains(&expected), "{text}");
        assert!(text.contains(" bytes are free"), "{text}");
        assert_eq!(std::fs::read_dir(dir.path()).expect("a listing").count(), 0);
    }
}

#[test]
fn two_runs_at_once_do_not_share_a_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let job = job(dir.path());
    let interrupted = AtomicBool::new(false);
    let first = Bench::open(&job, &interrupted, &mut Nobody).expect("a bench");
    assert!(refusal(&job).contains("another run uses it"));
    drop(first);
    run(&job).expect("a run");
}

#[test]
fn a_reused_file_is_taken_if_it_has_the_right_length_and_no_holes() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut job = FileJob {
        access: Access::Read,
        ..job(dir.path())
    };
    let path = file(dir.path(), "file-0");
    let inode = || path.metadata().expect("the file").ino();
    run(&job).expect("a run");
    let first = inode();
    job.files = Files::Reuse;
    run(&job).expect("a run");
    assert_eq!(inode(), first);
    // Held open, so that no new file gets its number.
    let held = std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("the file");
    held.set_len(0).expect("a cut");
    held.set_len(65536).expect("a hole");
    run(&job).expect("a run");
    let second = inode();
    assert_ne!(second, first);
    let held_too = std::fs::File::open(&path).expect("the file");
    job.file_bytes = 2 * 65536;
    run(&job).expect("a run");
    assert_ne!(inode(), second);
    assert_eq!(path.metadata().expect("the file").len(), 2 * 65536);
    drop((held, held_too));
}

#[test]
fn files_hold_at_the_start_what_the_job_says() {
    for (initial, writes) in [
        (InitialContent::Written, true),
        (InitialContent::Allocated, false),
        (InitialContent::Sparse, false),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let job = FileJob {
            access: Access::Read,
            initial,
            ..job(dir.path())
        };
        run(&job).expect("a run");
        let path = file(dir.path(), "file-0");
        let content = std::fs::read(&path).expect("the file");
        assert_eq!(content.len(), 65536);
        assert_eq!(content.iter().any(|&byte| byte != 0), writes);
        let blocks = path.metadata().expect("the file").blocks();
        assert_eq!(blocks == 0, initial == InitialContent::Sparse, "{initial}");
    }
}

#[test]
fn a_second_run_finds_files_as_the_first_found_them() {
    let dir = tempfile::tempdir().expect("a directory");
    for access in [Access::Append, Access::RandomWrite] {
        let mut job = job(dir.path());
        (job.access, job.measurement.verify) = (access, true);
        let interrupted = AtomicBool::new(false);
        let mut bench = Bench::open(&job, &interrupted, &mut Nobody).expect("a bench");
        for _ in 0..3 {
            let run = bench.run(&mut Nobody).expect("a run");
            assert_eq!(run.operations, 16);
            assert_eq!(run.verification.expect("a verification").wrong, 0);
        }
        let length = file(dir.path(), "file-0")
            .metadata()
            .expect("the file")
            .len();
        assert_eq!(length, 65536);
    }
}

/// Asks for the end when some of the files is made.
struct Impatient<'a>(&'a AtomicBool);

impl Observer for Impatient<'_> {
    fn device(&mut self) -> Option<Counters> {
        None
    }

    fn progress(&mut self, _: Progress) {}

    fn preparing(&mut self, done: u64, total: u64) {
        assert!(0 < done && done < total);
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn making_files_can_be_interrupted_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let job = FileJob {
        file_bytes: 64 << 20,
        keep: false,
        ..job(dir.path())
    };
    let interrupted = AtomicBool::new(false);
    let error = Bench::open(&job, &interrupted, &mut Impatient(&interrupted));
    assert_eq!(error.map(|_| ()), Err(Error::Interrupted));
    assert_eq!(std::fs::read_dir(dir.path()).expect("a listing").count(), 0);
}

#[test]
fn the_page_cache_is_as_the_job_says() {
    // tmpfs has nothing but the page cache.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let state = |page_cache| {
        let job = FileJob {
            page_cache,
            access: Access::Read,
            threads: 2,
            ..job(dir.path())
        };
        run(&job).expect("a run").page_cache.expect("a state")
    };
    let pages = 2 * 65536 / rustix::param::page_size() as u64;
    let dropped = state(PageCache::Drop);
    assert_eq!((dropped.pages, dropped.resident_pages), (pages, 0));
    let warm = state(PageCache::Warm);
    assert_eq!((warm.pages, warm.resident_pages), (pages, pages));
}

#[test]
fn a_constant_payload_is_one_byte_before_and_after() {
    let dir = tempfile::tempdir().expect("a directory");
    for access in [Access::Read, Access::Write] {
        let job = FileJob {
            access,
            payload: PayloadKind::Constant(0xfe),
            ..job(dir.path())
        };
        run(&job).expect("a run");
        let content = std::fs::read(file(dir.path(), "file-0")).expect("the file");
        assert_eq!(content, vec![0xfe; 65536]);
    }
}

#[test]
fn a_kept_file_of_one_seed_is_the_same_every_time() {
    let (one, other) = (tempfile::tempdir(), tempfile::tempdir());
    let content = |dir: &Path| {
        let job = FileJob {
            threads: 2,
            sharing: Sharing::SharedFile,
            ..job(dir)
        };
        run(&job).expect("a run");
        std::fs::read(file(dir, "file-shared")).expect("the file")
    };
    let one = content(one.expect("a directory").path());
    assert_eq!(one, content(other.expect("a directory").path()));
    assert_eq!(stamps(&one, 4096).len(), 16);
}

#[test]
fn direct_transfers_are_refused_where_there_is_nothing_but_memory() {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
    for (access, engine) in [
        (Access::Write, Engine::Psync),
        (Access::Read, Engine::Uring),
    ] {
        let job = FileJob {
            access,
            engine,
            transfer: Transfer::Direct,
            ..job(dir.path())
        };
        let error = run(&job).expect_err("a refusal");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        let expected = "O_DIRECT is not supported by tmpfs; choose --transfer buffered";
        assert!(error.to_string().ends_with(expected), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).expect("a listing").count(), 0);
    }
}

#[test]
fn a_thousand_threads_each_have_a_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let job = FileJob {
        threads: 1024,
        record_bytes: 512,
        file_bytes: 1024,
        ..job(dir.path())
    };
    let run = run(&job).expect("a run");
    assert_eq!((run.operations, run.bytes), (2048, 1 << 20));
    for thread in 0..1024 {
        let content = std::fs::read(file(dir.path(), &format!("file-{thread}"))).expect("a file");
        let found = stamps(&content, 512);
        assert_eq!(found, [(0, 1, thread, thread), (512, 2, thread, thread)]);
    }
}

#[test]
fn direct_transfers_write_and_read_what_buffered_ones_read() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    for access in [Access::RandomWrite, Access::RandomRead, Access::Append] {
        let mut job = FileJob {
            access,
            transfer: Transfer::Direct,
            threads: 2,
            ..job(dir.path())
        };
        job.measurement.verify = true;
        let run = run(&job).expect("a run");
        assert_eq!(run.operations, 32);
        assert_eq!(run.verification.expect("a verification").wrong, 0);
        let mut first = [0; 8];
        let content = std::fs::File::open(file(dir.path(), "file-1")).expect("the file");
        content.read_exact_at(&mut first, 4096).expect("a read");
        assert_eq!(&first, b"iostepB1");
    }
}
