//! Jobs that make no sense are refused before anything is touched. The range of a single option
//! stands at the option, in [`FileJob`]; here are the rules between them.

use iostep_model::bench::{
    Access, Engine, FileJob, Files, InitialContent, PayloadKind, Sharing, Sync, Target, Transfer,
};

use super::stamp::LEAST_BYTES;
use super::sync;
use crate::error::{Error, Result};

/// More does not fit into one system call without being cut.
const MOST_RECORD_BYTES: u64 = 1 << 30;
const MOST_DEPTH: u32 = 4096;
/// 146 years, which added to a clock still is a time.
const MOST_NS: u64 = 1 << 62;

/// Says whether a job can be done at all; not whether this machine can do it.
///
/// Errors: `Usage`, which names the option that mends it; `Refused` for more buffers than memory.
pub fn check(job: &FileJob) -> Result<()> {
    numbers(job)?;
    sizes(job)?;
    limits(job)?;
    access(job)?;
    syncs(job)?;
    engine(job)?;
    initial(job)?;
    if job.measurement.verify {
        verify(job)?;
    }
    if let Target::BlockDevice(_) = job.target {
        device(job)?;
    }
    memory(job)
}

fn refuse(what: impl Into<String>, hint: impl Into<String>) -> Result<()> {
    Err(Error::Usage {
        what: what.into(),
        hint: hint.into(),
    })
}

fn numbers(job: &FileJob) -> Result<()> {
    if job.record_bytes == 0 || job.record_bytes > MOST_RECORD_BYTES {
        let what = format!("records of {} bytes", job.record_bytes);
        return refuse(what, "choose --record from 1 byte to 1GiB");
    }
    if job.file_bytes == 0 {
        return refuse("files of 0 bytes", "choose a --size");
    }
    if !(1..=MOST_DEPTH).contains(&job.depth) {
        let what = format!("a depth of {}", job.depth);
        return refuse(what, format!("choose --depth from 1 to {MOST_DEPTH}"));
    }
    Ok(())
}

fn sizes(job: &FileJob) -> Result<()> {
    let whole = |part_bytes: u64, parts: &str| {
        let (below, above) = neighbours(job.file_bytes, part_bytes);
        let below = below.map_or(String::new(), |bytes| format!("{bytes} or "));
        refuse(
            format!("{} bytes are no multiple of {parts}", job.file_bytes),
            format!("choose --size {below}{above}"),
        )
    };
    if !job.file_bytes.is_multiple_of(job.record_bytes) {
        return whole(
            job.record_bytes,
            &format!("the record's {} bytes", job.record_bytes),
        );
    }
    // Cannot overflow: 1 GiB and 1024.
    let round_bytes = job.record_bytes * u64::from(job.threads);
    let parted = job.sharing == Sharing::SharedFile && !job.access.random();
    if parted && !job.file_bytes.is_multiple_of(round_bytes) {
        let parts = format!(
            "{} threads' records of {} bytes",
            job.threads, job.record_bytes
        );
        return whole(round_bytes, &parts);
    }
    let files = u64::from(job.files());
    let total_bytes = job.file_bytes.checked_mul(files);
    if total_bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
        let what = format!(
            "{files} times {} bytes are more than a filesystem holds",
            job.file_bytes
        );
        return refuse(what, "choose a smaller --size");
    }
    Ok(())
}

/// The multiples of `part` around `whole`; the lower one only if it is not 0.
fn neighbours(whole: u64, part: u64) -> (Option<u64>, u64) {
    let below = whole / part * part;
    ((below > 0).then_some(below), below.saturating_add(part))
}

fn limits(job: &FileJob) -> Result<()> {
    let time_ns = job.measurement.limits.time_ns;
    let total_ns = time_ns
        .unwrap_or(0)
        .checked_add(job.measurement.limits.ramp_ns);
    if total_ns.is_none_or(|ns| ns > MOST_NS) || job.measurement.pace.think_ns > MOST_NS {
        return refuse(
            "a time of more than 146 years",
            "choose a shorter --time, --ramp or --think",
        );
    }
    Ok(())
}

fn access(job: &FileJob) -> Result<()> {
    if job.overlap_percent > 0.0 && !job.access.random() {
        return refuse(
            format!("access {} does not overlap", job.access),
            "choose --access random-write or random-read, or --overlap 0",
        );
    }
    if job.access == Access::Append && job.transfer == Transfer::Mmap {
        return refuse(
            "a mapping cannot append",
            "choose --access write or another --transfer",
        );
    }
    // One thread would empty the file under the others.
    if job.access == Access::Append
        && job.threads_share()
        && job.measurement.limits.time_ns.is_some()
    {
        return refuse(
            "threads that append to one file cannot start over",
            "leave out --time or --shared",
        );
    }
    Ok(())
}

fn syncs(job: &FileJob) -> Result<()> {
    if !job.access.writes() && (job.sync != Sync::None || job.end_sync) {
        return refuse(
            format!("access {} has nothing to sync", job.access),
            "choose --sync none without --end-sync, or an --access that writes",
        );
    }
    match sync::conflict(job.sync, job.transfer) {
        Some((what, hint)) => refuse(what, hint),
        None => Ok(()),
    }
}

fn engine(job: &FileJob) -> Result<()> {
    match job.engine {
        Engine::Psync if job.depth > 1 => refuse(
            format!(
                "engine psync does one operation at a time, not {}",
                job.depth
            ),
            "choose --engine uring or --depth 1",
        ),
        Engine::Uring if job.transfer == Transfer::Mmap => refuse(
            "engine uring has no mappings",
            "choose --engine psync or another --transfer",
        ),
        _ => Ok(()),
    }
}

fn initial(job: &FileJob) -> Result<()> {
    if job.initial == InitialContent::Written {
        return Ok(());
    }
    if job.access == Access::Append {
        return refuse("appends begin with an empty file", "leave out --initial");
    }
    if job.files == Files::Reuse {
        let what = format!("files of an earlier run are not {}", job.initial);
        return refuse(what, "leave out --reuse or choose --initial written");
    }
    Ok(())
}

fn verify(job: &FileJob) -> Result<()> {
    if let PayloadKind::Constant(_) = job.payload {
        return refuse(
            "with a constant payload a lost write looks like one that was done",
            "choose --payload incompressible or leave out --verify",
        );
    }
    if job.record_bytes < LEAST_BYTES as u64 {
        return refuse(
            format!(
                "records of {} bytes have no room for a stamp",
                job.record_bytes
            ),
            format!("choose --record {LEAST_BYTES} or more, or leave out --verify"),
        );
    }
    if job.transfer == Transfer::Mmap && job.access == Access::RandomWrite && job.threads_share() {
        return refuse(
            "threads that copy to the same place of a mapping mix their bytes",
            "leave out --shared or --verify",
        );
    }
    if job.files == Files::Reuse {
        return refuse(
            "what files of an earlier run should hold is not known",
            "leave out --reuse or --verify",
        );
    }
    Ok(())
}

fn device(job: &FileJob) -> Result<()> {
    if job.access == Access::Append {
        return refuse(
            "a block device has no end to append at",
            "choose --access write",
        );
    }
    if job.initial != InitialContent::Written {
        return refuse(
            format!("a block device cannot be made {}", job.initial),
            "choose --initial written, or --reuse to take it as it is",
        );
    }
    if job.measurement.verify && !job.access.writes() {
        return refuse(
            "what a block device should hold is not known",
            "leave out --verify or choose an --access that writes",
        );
    }
    Ok(())
}

fn memory(job: &FileJob) -> Result<()> {
    let buffers_bytes = u128::from(job.record_bytes) * u128::from(job.depth * job.threads);
    let machine = rustix::system::sysinfo();
    let machine_bytes = machine.totalram as u128 * u128::from(machine.mem_unit);
    if buffers_bytes > machine_bytes / 2 {
        return Err(Error::Refused {
            what: format!(
                "buffers take {buffers_bytes} bytes of the machine's {machine_bytes} bytes of memory"
            ),
            hint: "choose a smaller --record, --depth or --threads".into(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
