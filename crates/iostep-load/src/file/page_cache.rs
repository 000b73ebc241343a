//! What of the files is in memory when the measured part begins.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use iostep_model::bench::{PageCache, PageCacheState};
use rustix::fs::Advice;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::error::{Error, Result};
use crate::sandbox;

/// Same number on every architecture (include/uapi/asm-generic/unistd.h, Linux 6.5).
const SYS_CACHESTAT: libc::c_long = 451;
/// mincore(2) answers with a byte for each page: 256 KiB for this much.
const MINCORE_BYTES: u64 = 1 << 30;

/// Brings a file's pages into the wanted state, as far as the kernel follows.
///
/// Errors: `Interrupted`; `Io`.
pub fn prepare(
    file: &File,
    path: &Path,
    wanted: PageCache,
    interrupted: &AtomicBool,
) -> Result<()> {
    match wanted {
        PageCache::Drop => drop(file, path),
        PageCache::Warm => warm(file, path, interrupted),
        PageCache::AsIs => Ok(()),
    }
}

/// Writes a file's pages back and drops them, and no others.
///
/// Errors: `Io`.
pub fn drop(file: &File, path: &Path) -> Result<()> {
    // Dirty pages cannot be dropped.
    rustix::fs::fsync(file).map_err(|errno| Error::io(path, "sync")(errno.into()))?;
    rustix::fs::fadvise(file, 0, None, Advice::DontNeed)
        .map_err(|errno| Error::io(path, "drop the cached pages of")(errno.into()))
}

/// Reads a file page by page, without reading ahead. That makes folios of up to a megabyte, and a
/// dirty page is written back with all of its folio, so that what is measured would depend on how
/// the pages came into the cache.
fn warm(file: &File, path: &Path, interrupted: &AtomicBool) -> Result<()> {
    drop(file, path)?;
    let advise = |advice| {
        rustix::fs::fadvise(file, 0, None, advice)
            .map_err(|errno| Error::io(path, "say how to read")(errno.into()))
    };
    advise(Advice::Random)?;
    let mut page = vec![0; rustix::param::page_size()];
    let mut offset_bytes = 0;
    loop {
        let count = match file.read_at(&mut page, offset_bytes) {
            Ok(0) => return advise(Advice::Normal),
            Ok(count) => count as u64,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(Error::io(path, "read")(error)),
        };
        offset_bytes += count;
        if interrupted.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
    }
}

/// Adds what of a file is in memory: by cachestat(2), or mincore(2), which does not know dirty
/// pages, on older kernels and in Android's sandbox.
///
/// Errors: `Io`.
pub fn add_state(file: &File, path: &Path, sum: &mut PageCacheState) -> Result<()> {
    let page_bytes = rustix::param::page_size() as u64;
    let file_bytes = file.metadata().map_err(Error::io(path, "look at"))?.len();
    sum.pages += file_bytes.div_ceil(page_bytes);
    match cachestat(file) {
        Ok(found) => {
            sum.resident_pages += found.cached;
            sum.dirty_pages = sum.dirty_pages.map(|pages| pages + found.dirty);
        }
        Err(_) => {
            let resident = resident_by_mincore(file, file_bytes, page_bytes as usize);
            sum.resident_pages += resident
                .map_err(|errno| Error::io(path, "count the cached pages of")(errno.into()))?;
            sum.dirty_pages = None;
        }
    }
    Ok(())
}

/// `struct cachestat` of include/uapi/linux/mman.h, all in pages.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

fn cachestat(file: &File) -> rustix::io::Result<Cachestat> {
    if sandbox::is_entered() {
        return Err(Errno::NOSYS);
    }
    // `struct cachestat_range`: from byte 0, to the end.
    let range = [0u64; 2];
    let mut found = Cachestat::default();
    // SAFETY: the kernel reads one range and writes one cachestat, which live through the call.
    let result = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            range.as_ptr(),
            &raw mut found,
            0,
        )
    };
    match result {
        0 => Ok(found),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::NOSYS)),
    }
}

fn resident_by_mincore(file: &File, file_bytes: u64, page: usize) -> rustix::io::Result<u64> {
    let mut resident = 0;
    let mut answers = Vec::new();
    for start_bytes in (0..file_bytes).step_by(MINCORE_BYTES as usize) {
        let length = MINCORE_BYTES.min(file_bytes - start_bytes) as usize;
        answers.resize(length.div_ceil(page), 0);
        // SAFETY: a new mapping wherever the kernel likes, which is never read or written.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                start_bytes,
            )?
        };
        // SAFETY: the mapping has `length` bytes and the answers a byte for each of its pages.
        let result = unsafe { libc::mincore(start, length, answers.as_mut_ptr()) };
        let error = std::io::Error::last_os_error();
        // SAFETY: mapped above, and nothing refers to it.
        unsafe { rustix::mm::munmap(start, length)? };
        if result != 0 {
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::NOSYS));
        }
        // Only the lowest bit has a meaning.
        resident += answers.iter().filter(|&&answer| answer & 1 == 1).count() as u64;
    }
    Ok(resident)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_count_find_every_page_that_was_just_written() {
        let file = tempfile::tempfile().expect("a file");
        let page_bytes = rustix::param::page_size();
        file.write_all_at(&vec![1; page_bytes * 10 + 1], 0)
            .expect("a write");
        let bytes = page_bytes as u64 * 10 + 1;
        let mut state = PageCacheState::default();
        add_state(&file, Path::new("/x"), &mut state).expect("a state");
        assert_eq!((state.pages, state.resident_pages), (11, 11));
        assert_eq!(resident_by_mincore(&file, bytes, page_bytes), Ok(11));
        assert_eq!(resident_by_mincore(&file, 0, page_bytes), Ok(0));
    }
}
