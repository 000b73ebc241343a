use iostep_model::bench::{Limits, Pace};

use super::*;
use crate::file::sample;

/// What is refused of a job that `change` was made to; `None` if it is taken.
fn refusal(change: impl FnOnce(&mut FileJob)) -> Option<String> {
    let mut job = sample::job("/x");
    change(&mut job);
    match check(&job) {
        Ok(()) => None,
        Err(error @ (Error::Usage { .. } | Error::Refused { .. })) => Some(error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

fn assert_refused(change: impl FnOnce(&mut FileJob), expected: &str) {
    let found = refusal(change).unwrap_or_else(|| panic!("taken, and not: {expected}"));
    assert_eq!(found, expected);
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    assert_refused(
        |job| job.record_bytes = 0,
        "records of 0 bytes; choose --record from 1 byte to 1GiB",
    );
    assert_refused(
        |job| job.record_bytes = u64::MAX,
        "records of 18446744073709551615 bytes; choose --record from 1 byte to 1GiB",
    );
    assert_refused(
        |job| job.file_bytes = 0,
        "files of 0 bytes; choose a --size",
    );
    assert_refused(
        |job| job.threads = 0,
        "0 threads; choose --threads from 1 to 1024",
    );
    assert_refused(
        |job| job.threads = 1025,
        "1025 threads; choose --threads from 1 to 1024",
    );
    assert_refused(
        |job| job.sync_every = 0,
        "a sync after every 0 writes; choose --sync-every 1 or more",
    );
    assert_refused(
        |job| job.depth = 0,
        "a depth of 0; choose --depth from 1 to 4096",
    );
    for percent in [-0.1, 100.1, f64::NAN, f64::INFINITY] {
        assert_refused(
            |job| job.overlap_percent = percent,
            &format!("an overlap of {percent} percent; choose --overlap from 0 to 100"),
        );
    }
    for percent in [0.0, 100.0] {
        let taken = refusal(|job| {
            job.access = Access::RandomWrite;
            job.overlap_percent = percent;
        });
        assert_eq!(taken, None);
    }
}

#[test]
fn a_size_that_does_not_divide_is_refused_with_its_neighbours() {
    let sized = |bytes: u64| {
        move |job: &mut FileJob| {
            job.record_bytes = 300 << 10;
            job.file_bytes = bytes;
        }
    };
    assert_refused(
        sized(1000 << 10),
        "1024000 bytes are no multiple of the record's 307200 bytes; choose --size 921600 or 1228800",
    );
    assert_refused(
        sized(1),
        "1 bytes are no multiple of the record's 307200 bytes; choose --size 307200",
    );
    let shared = |access: Access| {
        move |job: &mut FileJob| {
            job.access = access;
            job.sharing = Sharing::SharedFile;
            job.threads = 3;
        }
    };
    assert_refused(
        shared(Access::Write),
        "32768 bytes are no multiple of 3 threads' records of 4096 bytes; choose --size 24576 or 36864",
    );
    assert_eq!(refusal(shared(Access::RandomWrite)), None);
}

#[test]
fn sizes_that_no_filesystem_holds_are_refused() {
    for (bytes, threads) in [(1 << 63, 1), (1 << 62, 2), (1 << 60, 1024)] {
        let found = refusal(|job| {
            job.file_bytes = bytes;
            job.threads = threads;
        });
        let found = found.expect("a refusal");
        assert!(found.ends_with("choose a smaller --size"), "{found}");
    }
    let found = refusal(|job| {
        job.record_bytes = 1 << 30;
        job.file_bytes = 1 << 30;
        job.threads = 1024;
    });
    assert!(
        found
            .expect("a refusal")
            .starts_with("buffers take 1099511627776 bytes")
    );
}

#[test]
fn times_and_rates_without_a_meaning_are_refused() {
    let limits = |time_ns, ramp_ns| Limits { time_ns, ramp_ns };
    assert!(refusal(|job| job.limits = limits(Some(0), 0)).is_some());
    assert!(refusal(|job| job.limits = limits(Some(u64::MAX), u64::MAX)).is_some());
    assert!(refusal(|job| job.limits = limits(None, u64::MAX)).is_some());
    assert_eq!(refusal(|job| job.limits = limits(Some(1), 1)), None);
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let pace = Pace {
            operations_per_second: Some(rate),
            think_ns: 0,
        };
        assert!(refusal(|job| job.pace = pace).is_some(), "{rate}");
    }
}

/// Which sync modes go with a transfer, by hand from what the kernel does.
#[test]
fn sync_modes_go_with_the_transfers_that_they_mean_something_for() {
    let calls = [Sync::None, Sync::Fsync, Sync::Fdatasync];
    let flags = [Sync::OSync, Sync::ODsync, Sync::RwfDsync];
    let expected = |transfer| match transfer {
        Transfer::Direct => [&calls[..], &flags].concat(),
        Transfer::Mmap => {
            let more = [Sync::SyncFileRange, Sync::MsSync, Sync::MsAsync];
            [&calls[..], &more].concat()
        }
        Transfer::Buffered | Transfer::DontCache => {
            [&calls[..], &flags, &[Sync::SyncFileRange]].concat()
        }
    };
    for transfer in Transfer::ALL {
        for sync in Sync::ALL {
            let taken = refusal(|job| (job.transfer, job.sync) = (transfer, sync)).is_none();
            assert_eq!(
                taken,
                expected(transfer).contains(&sync),
                "{transfer} {sync}"
            );
        }
    }
}

#[test]
fn reads_have_nothing_to_sync() {
    for access in [Access::Read, Access::RandomRead] {
        for sync in Sync::ALL {
            let taken = refusal(|job| (job.access, job.sync) = (access, sync)).is_none();
            assert_eq!(taken, sync == Sync::None);
        }
        assert!(refusal(|job| (job.access, job.end_sync) = (access, true)).is_some());
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let refused: [fn(&mut FileJob); 7] = [
        |job| (job.access, job.transfer) = (Access::Append, Transfer::Mmap),
        |job| job.overlap_percent = 1.0,
        |job| job.depth = 2,
        |job| (job.engine, job.transfer) = (Engine::Uring, Transfer::Mmap),
        |job| (job.initial, job.files) = (InitialContent::Sparse, Files::Reuse),
        |job| (job.initial, job.access) = (InitialContent::Allocated, Access::Append),
        |job| {
            (job.access, job.sharing, job.threads) = (Access::Append, Sharing::SharedFile, 2);
            job.limits.time_ns = Some(1);
        },
    ];
    for (number, change) in refused.into_iter().enumerate() {
        assert!(refusal(change).is_some(), "{number}");
    }
}

#[test]
fn verification_is_refused_where_nobody_knows_what_is_right() {
    let refused: [fn(&mut FileJob); 4] = [
        |job| job.payload = PayloadKind::Constant(0xfe),
        |job| job.record_bytes = 32,
        |job| job.files = Files::Reuse,
        |job| {
            (job.access, job.transfer) = (Access::RandomWrite, Transfer::Mmap);
            (job.sharing, job.threads) = (Sharing::SharedFile, 2);
        },
    ];
    for (number, change) in refused.into_iter().enumerate() {
        let verify = |verify| {
            refusal(|job| {
                change(job);
                job.verify = verify;
            })
        };
        assert!(verify(true).is_some(), "{number}");
        assert_eq!(verify(false), None, "{number}");
    }
}

#[test]
fn a_device_has_neither_an_end_nor_holes() {
    let device = |change: fn(&mut FileJob)| {
        refusal(|job| {
            job.target = Target::BlockDevice("/dev/null".into());
            change(job);
        })
    };
    assert_eq!(device(|_| {}), None);
    assert!(device(|job| job.access = Access::Append).is_some());
    assert!(device(|job| job.initial = InitialContent::Sparse).is_some());
    assert!(device(|job| (job.access, job.verify) = (Access::Read, true)).is_some());
}
