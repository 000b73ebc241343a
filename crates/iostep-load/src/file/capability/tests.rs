use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use iostep_model::bench::Access;

use super::*;
use crate::file::sample::job;

const TMPFS: &str = "/dev/shm";

/// A scratch file in a directory, and a /sys where its device has the given queue.
struct Fixture {
    sysfs: tempfile::TempDir,
    file: File,
}

impl Fixture {
    fn new(below: &Path) -> Fixture {
        let place = tempfile::tempdir_in(below).expect("a directory");
        let directory = File::open(place.path()).expect("it is there");
        let file = scratch(directory.as_fd(), place.path()).expect("a scratch file");
        let left = std::fs::read_dir(place.path()).expect("a directory");
        assert_eq!(left.count(), 0, "the scratch file has no name");
        Fixture {
            sysfs: tempfile::tempdir().expect("a directory"),
            file,
        }
    }

    fn with_queue(self, attribute: &str, text: &str) -> Fixture {
        let number = self.file.metadata().expect("an open file").dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let queue = self
            .sysfs
            .path()
            .join(format!("dev/block/{major}:{minor}/queue"));
        std::fs::create_dir_all(&queue).expect("directories");
        std::fs::write(queue.join(attribute), text).expect("a file");
        self
    }

    fn target(&self) -> Probe<'_> {
        Probe {
            file: &self.file,
            path: Path::new("/mnt/x"),
            sysfs: self.sysfs.path(),
        }
    }
}

fn direct() -> FileJob {
    let mut job = job("/mnt/x");
    job.transfer = Transfer::Direct;
    job
}

#[test]
fn direct_transfers_are_refused_where_nothing_is_below_the_page_cache() {
    let error = Fixture::new(Path::new(TMPFS))
        .target()
        .check(&direct())
        .expect_err("tmpfs");
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "/mnt/x: O_DIRECT is not supported by tmpfs; choose --transfer buffered"
    );
}

#[test]
fn dropping_the_cache_is_refused_by_a_filesystem_that_is_nothing_else() {
    let mut job = job("/mnt/x");
    job.transfer = Transfer::DontCache;
    let error = Fixture::new(Path::new(TMPFS))
        .target()
        .check(&job)
        .expect_err("tmpfs");
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("RWF_DONTCACHE is not supported by tmpfs"),
        "{text}"
    );
    assert!(text.contains("6.14"), "{text}");
}

#[test]
fn through_the_page_cache_anything_goes() {
    let fixture = Fixture::new(&std::env::temp_dir());
    assert_eq!(fixture.target().check(&job("/mnt/x")), Ok(Alignment::ANY));
}

#[test]
fn polling_takes_a_device_with_poll_queues() {
    let asked = |io_poll: Option<&str>| {
        let fixture = Fixture::new(&std::env::temp_dir());
        let fixture = match io_poll {
            Some(text) => fixture.with_queue("io_poll", text),
            None => fixture,
        };
        fixture.target().polled(&direct())
    };
    assert_eq!(asked(Some("1\n")), Ok(()));
    let error = asked(Some("0\n")).expect_err("no poll queues");
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("nvme.poll_queues"), "{error}");
    for no_answer in [asked(None), asked(Some("\u{fffd}"))] {
        assert!(matches!(no_answer, Err(Error::Unsupported { .. })));
    }
}

#[test]
fn what_only_direct_transfers_can_is_refused_for_others() {
    let fixture = Fixture::new(&std::env::temp_dir()).with_queue("io_poll", "1");
    let mut polled = job("/mnt/x");
    polled.polled = true;
    let mut atomic = job("/mnt/x");
    atomic.atomic = true;
    let mut reads = direct();
    reads.access = Access::Read;
    reads.atomic = true;
    assert!(matches!(
        fixture.target().check(&polled),
        Err(Error::Usage { .. })
    ));
    assert!(matches!(
        fixture.target().check(&atomic),
        Err(Error::Usage { .. })
    ));
    assert!(matches!(
        fixture.target().atomic(&reads),
        Err(Error::Usage { .. })
    ));
}

#[test]
fn atomic_writes_are_refused_where_nothing_guarantees_them() {
    let mut job = direct();
    job.atomic = true;
    let error = Fixture::new(Path::new(TMPFS))
        .target()
        .atomic(&job)
        .expect_err("tmpfs");
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[test]
fn alignment_is_presumed_from_the_device_or_else_the_filesystem() {
    let presumed = |text: Option<&str>| {
        let fixture = Fixture::new(&std::env::temp_dir());
        let fixture = match text {
            Some(text) => fixture.with_queue("logical_block_size", text),
            None => fixture,
        };
        fixture.target().presumed_alignment(4096).offset_bytes
    };
    assert_eq!(presumed(Some("512\n")), 512);
    assert_eq!(presumed(Some("4096")), 4096);
    for senseless in [None, Some("0"), Some("-512"), Some("513"), Some("many")] {
        assert_eq!(presumed(senseless), 4096);
    }
}
