//! What a device has to have done for what was measured.

use iostep_model::bench::{
    Access, Document, InitialContent, Job, Run, SqliteOperation, Step, Sync, Transfer, Warning,
};
use iostep_model::pragma::{Journal, Synchronous};

use super::{at_once, histogram};

/// No device answers faster: a request crosses PCIe and an interrupt comes back.
const FASTEST_NS: u64 = 1_000;
/// The first kernel that counts flushes (`/sys/block/X/stat`).
const COUNTS_FLUSHES: (u32, u32) = (5, 5);

/// Transfers without a page cache move at least the payload.
pub(super) fn bytes(document: &Document, run: &Run) -> Option<String> {
    let Job::File(job) = &document.job else {
        return None;
    };
    let is_compressed = document
        .warnings
        .iter()
        .any(|warning| matches!(warning, Warning::Compression { .. }));
    if job.transfer != Transfer::Direct || is_compressed {
        return None;
    }
    let counters = run.device?;
    let moved = match job.access.writes() {
        true => counters.write.bytes,
        // Holes and blocks that were never written are read without the device.
        false if job.initial == InitialContent::Written => counters.read.bytes,
        false => return None,
    };
    // What was under way when the run began may have moved before.
    let edge = at_once(&document.job) * u128::from(job.record_bytes);
    (u128::from(moved) + edge < u128::from(run.bytes)).then(|| {
        format!(
            "{} bytes went past the page cache, and the device moved {moved}",
            run.bytes
        )
    })
}

/// One thread that waits for each of its syncs makes as many flushes.
pub(super) fn flushes(document: &Document, run: &Run) -> Option<String> {
    if document.job.threads() != 1 || !flushes_are_counted(document) {
        return None;
    }
    let syncs = syncs(&document.job, run)?;
    let done = run.device?.flush.ios;
    // The first of them may have been done when the run began.
    (done + 1 < syncs).then(|| format!("{syncs} syncs one after the other, and {done} flushes"))
}

/// How many syncs, one after the other, each needed a flush of a volatile cache.
fn syncs(job: &Job, run: &Run) -> Option<u64> {
    match job {
        Job::File(job) => {
            let waits = matches!(job.sync, Sync::Fsync | Sync::Fdatasync)
                && matches!(job.transfer, Transfer::Buffered | Transfer::Direct)
                && job.access.writes()
                && job.depth <= 1;
            waits.then(|| run.operations / job.sync_every.max(1))
        }
        Job::Sqlite(job) => {
            let writes = matches!(
                job.operation,
                SqliteOperation::Insert | SqliteOperation::Update | SqliteOperation::Delete
            );
            let syncs = matches!(
                job.journal,
                Journal::Delete | Journal::Truncate | Journal::Persist | Journal::Wal
            ) && matches!(job.synchronous, Synchronous::Full | Synchronous::Extra);
            (writes && syncs && !job.batch_atomic).then_some(run.operations)
        }
    }
}

/// True where a flush means something, nobody turned it off, and the kernel counts it: for disks,
/// not for what is made of them, and not for partitions, whose disk's are in no older result.
fn flushes_are_counted(document: &Document) -> bool {
    let environment = &document.environment;
    let Some(device) = &environment.device else {
        return false;
    };
    let options = environment.filesystem.as_ref().map(|it| &it.options[..]);
    let mut options = options.unwrap_or_default().split(',');
    let is_off = options.any(|it| matches!(it, "nobarrier" | "barrier=0" | "fsync_mode=nobarrier"));
    let is_disk = ["sd", "nvme", "mmcblk", "vd", "loop"]
        .iter()
        .any(|kind| device.name.starts_with(kind));
    let is_counted = !device.is_partition() || !environment.flushes_of.is_empty();
    is_disk
        && is_counted
        && !is_off
        && device.volatile_write_cache == Some(true)
        && version(&environment.host.kernel).is_some_and(|it| it >= COUNTS_FLUSHES)
}

/// Major and minor number of a kernel's release: `6.18.0-rc1`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

/// What cannot end without the device takes as long as the fastest one.
pub(super) fn floor(document: &Document, run: &Run) -> Option<String> {
    let device = document.environment.device.as_ref()?;
    let step = match &document.job {
        Job::File(job) if job.transfer == Transfer::Direct => match job.access {
            Access::Read | Access::RandomRead if job.initial != InitialContent::Written => None,
            Access::Read | Access::RandomRead => Some(Step::Read),
            _ => Some(Step::Write),
        },
        job if device.volatile_write_cache == Some(true) => {
            syncs(job, run).map(|_| Step::Total).filter(|_| each(job))
        }
        _ => None,
    }?;
    let p50_ns = histogram(run, step)?.quantile_ns(0.5)?;
    (p50_ns < FASTEST_NS).then(|| {
        format!(
            "half of its {} took at most {p50_ns} ns, and no device answers within {FASTEST_NS}",
            step.name()
        )
    })
}

/// True if every operation has a sync of its own.
fn each(job: &Job) -> bool {
    !matches!(job, Job::File(job) if job.sync_every > 1)
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn a_release_begins_with_two_numbers() {
        assert_eq!(version("6.18.0-rc1+"), Some((6, 18)));
        assert_eq!(version("5.4-android"), Some((5, 4)));
        assert_eq!(version("six"), None);
        assert_eq!(version(""), None);
    }
}
