//! Rules that a command line cannot be asked for one by one: those of a device, of every sync mode,
//! and of the machine. The others are in the table of the command's own tests.

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

#[test]
fn what_is_next_to_a_refusal_is_taken() {
    let taken: [fn(&mut FileJob); 4] = [
        |job| (job.access, job.overlap_percent) = (Access::RandomWrite, 100.0),
        |job| {
            (job.access, job.sharing, job.threads) = (Access::RandomWrite, Sharing::SharedFile, 3);
        },
        |job| {
            (
                job.measurement.limits.time_ns,
                job.measurement.limits.ramp_ns,
            ) = (Some(1), 1)
        },
        |job| (job.engine, job.depth) = (Engine::Uring, MOST_DEPTH),
    ];
    for (number, change) in taken.into_iter().enumerate() {
        assert_eq!(refusal(change), None, "{number}");
    }
}

#[test]
fn more_buffers_than_memory_are_refused() {
    let found = refusal(|job| {
        (job.record_bytes, job.file_bytes, job.threads) = (1 << 30, 1 << 30, 1024);
    });
    let found = found.expect("a refusal");
    assert!(
        found.starts_with("buffers take 1099511627776 bytes"),
        "{found}"
    );
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
    assert!(device(|job| (job.access, job.measurement.verify) = (Access::Read, true)).is_some());
}
