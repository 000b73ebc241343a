//! Open files, by their number in the recording.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iostep_model::syscall::HandleId;
use rustix::io::Errno;

/// The open files of a replay. A number may have several descriptors, as dup and fork made them;
/// they are closed one by one, as in the recording.
///
/// A call keeps its file open while it runs, even if another thread closes it meanwhile: the
/// descriptor's number must not become that of another file under it.
#[derive(Debug)]
pub(super) struct Handles {
    files: Vec<Mutex<File>>,
}

#[derive(Debug, Default)]
struct File {
    descriptors: Vec<Arc<OwnedFd>>,
    mappings: Vec<Mapping>,
}

/// The smallest page of a machine that is recorded on.
const SMALL_PAGE: u64 = 4096;

/// A part of a file in memory, which nobody touches.
#[derive(Debug)]
struct Mapping {
    offset: i64,
    /// In small pages.
    size: u64,
    address: usize,
    /// Bytes before it that are mapped with it, where this machine's pages are larger.
    lead: usize,
    /// The same behind it.
    rest: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Of a part whose page others share the page stays.
        let page = rustix::param::page_size();
        let begin = (self.address - self.lead).next_multiple_of(page);
        let end = (self.address + self.size as usize + self.rest) / page * page;
        if begin < end {
            // SAFETY: the memory was mapped by `map`, and no reference into it was ever made.
            let _ = unsafe { rustix::mm::munmap(begin as *mut _, end - begin) };
        }
    }
}

impl Handles {
    /// For files numbered up to `last`.
    pub(super) fn up_to(last: u32) -> Handles {
        let files = (0..=last).map(|_| Mutex::default());
        Handles {
            files: files.collect(),
        }
    }

    fn file(&self, handle: HandleId) -> Option<MutexGuard<'_, File>> {
        let file = self.files.get(handle.0 as usize)?;
        Some(file.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A descriptor of an open file; none if it is not open here.
    pub(super) fn get(&self, handle: HandleId) -> Option<Arc<OwnedFd>> {
        self.file(handle)?.descriptors.last().cloned()
    }

    pub(super) fn add(&self, handle: HandleId, descriptor: OwnedFd) {
        if let Some(mut file) = self.file(handle) {
            file.descriptors.push(Arc::new(descriptor));
        }
    }

    /// Duplicates a descriptor; none if the file is not open.
    pub(super) fn duplicate(&self, handle: HandleId) -> Option<Result<(), Errno>> {
        let descriptor = self.get(handle)?;
        let made = rustix::io::fcntl_dupfd_cloexec(&descriptor, 3);
        Some(made.map(|made| self.add(handle, made)))
    }

    /// Closes a descriptor; none if the file is not open. If another thread uses it right now, it
    /// is closed when that call ends, and this says success.
    pub(super) fn close(&self, handle: HandleId) -> Option<Result<(), Errno>> {
        let descriptor = self.file(handle)?.descriptors.pop()?;
        let Ok(descriptor) = Arc::try_unwrap(descriptor) else {
            return Some(Ok(()));
        };
        // SAFETY: the descriptor is owned, and not used after this.
        match unsafe { libc::close(descriptor.into_raw_fd()) } {
            0 => Some(Ok(())),
            _ => Some(Err(last_error())),
        }
    }

    /// Maps a part of an open file; the memory is never touched, so a file that becomes shorter
    /// does no harm.
    pub(super) fn map(
        &self,
        handle: HandleId,
        offset: i64,
        size: u64,
        protection: u32,
        flags: u32,
    ) -> Option<Result<(), Errno>> {
        let descriptor = self.get(handle)?;
        Some(
            map(descriptor.as_fd(), offset, size, protection, flags).map(|mapping| {
                if let Some(mut file) = self.file(handle) {
                    file.mappings.push(mapping);
                }
            }),
        )
    }

    /// Unmaps a part of a mapping; none if that part of the file is not mapped.
    pub(super) fn unmap(&self, handle: HandleId, offset: i64, size: u64) -> Option<()> {
        let mut file = self.file(handle)?;
        let found = file.mappings.iter().position(|m| m.has(offset, size))?;
        let whole = file.mappings.swap_remove(found);
        let head = (offset - whole.offset) as u64;
        // It may end in the rest, which is none of its own.
        let size = size
            .checked_next_multiple_of(SMALL_PAGE)
            .map_or(whole.size - head, |size| size.min(whole.size - head));
        let tail = whole.size - head - size;
        let part = |at: u64, size: u64| Mapping {
            offset: whole.offset + at as i64,
            size,
            address: whole.address + at as usize,
            lead: if at == 0 { whole.lead } else { 0 },
            rest: if at + size == whole.size {
                whole.rest
            } else {
                0
            },
        };
        file.mappings.extend((head > 0).then(|| part(0, head)));
        file.mappings
            .extend((tail > 0).then(|| part(head + size, tail)));
        drop(part(head, size));
        // Its parts own the memory now.
        std::mem::forget(whole);
        Some(())
    }

    /// Gives a whole mapping another size, wherever that has room; none if that part of the file is
    /// not mapped, or only as a part of a mapping.
    pub(super) fn remap(
        &self,
        handle: HandleId,
        offset: i64,
        size: u64,
        new_size: u64,
    ) -> Option<Result<(), Errno>> {
        let mut file = self.file(handle)?;
        let is_it = |m: &&mut Mapping| {
            let size = size.checked_next_multiple_of(SMALL_PAGE);
            let sizes = m.size..=m.size + m.rest as u64;
            m.offset == offset && size.is_some_and(|size| sizes.contains(&size))
        };
        let mapping = file.mappings.iter_mut().find(is_it)?;
        let Some(new) = whole_pages(mapping.lead, new_size) else {
            return Some(Err(Errno::NOMEM));
        };
        let old = mapping.lead + mapping.size as usize + mapping.rest;
        let begin = (mapping.address - mapping.lead) as *mut libc::c_void;
        // SAFETY: the mapping is this value's own, and no reference into it was ever made.
        let address = unsafe { libc::mremap(begin, old, new, libc::MREMAP_MAYMOVE) };
        if address == libc::MAP_FAILED {
            return Some(Err(last_error()));
        }
        mapping.address = address as usize + mapping.lead;
        mapping.size = new_size.next_multiple_of(SMALL_PAGE);
        mapping.rest = new - mapping.lead - mapping.size as usize;
        Some(Ok(()))
    }

    /// msync of a part of a mapping; none if that part of the file is not mapped.
    pub(super) fn sync_map(
        &self,
        handle: HandleId,
        offset: i64,
        size: u64,
        flags: u32,
    ) -> Option<Result<(), Errno>> {
        let file = self.file(handle)?;
        let found = file.mappings.iter().find(|m| m.has(offset, size))?;
        let address = found.address + (offset - found.offset) as usize;
        let into_page = match offset % SMALL_PAGE as i64 {
            0 => address % rustix::param::page_size(),
            // As it was: the kernel says what it says of that.
            _ => 0,
        };
        let (begin, bytes) = (address - into_page, size as usize + into_page);
        // SAFETY: the pages are those of a live mapping, which the lock keeps; msync changes no memory.
        let done = unsafe { libc::msync(begin as *mut _, bytes, flags as i32) };
        Some(if done == 0 { Ok(()) } else { Err(last_error()) })
    }
}

impl Mapping {
    fn has(&self, offset: i64, size: u64) -> bool {
        let end = |offset: i64, size: u64| i128::from(offset) + i128::from(size);
        let size_and_rest = self.size + self.rest as u64;
        (self.offset..self.offset + self.size as i64).contains(&offset)
            && end(offset, size) <= end(self.offset, size_and_rest)
    }
}

/// Memory is mapped in whole pages: how many bytes a mapping has with what leads to it; `None` for more
/// than there are.
fn whole_pages(lead: usize, size: u64) -> Option<usize> {
    let whole = usize::try_from(size).ok()?.checked_add(lead)?;
    whole.checked_next_multiple_of(rustix::param::page_size())
}

fn map(
    descriptor: BorrowedFd<'_>,
    offset: i64,
    size: u64,
    protection: u32,
    flags: u32,
) -> Result<Mapping, Errno> {
    // Nothing at an address of the caller's choice, nothing locked into or filled from memory.
    let kind = flags as i32 & (libc::MAP_SHARED | libc::MAP_PRIVATE);
    let protection = protection as i32 & (libc::PROT_READ | libc::PROT_WRITE);
    let lead = match offset % SMALL_PAGE as i64 {
        0 => offset.max(0) as usize % rustix::param::page_size(),
        _ => 0,
    };
    let bytes = whole_pages(lead, size).ok_or(Errno::NOMEM)?;
    // SAFETY: without MAP_FIXED the kernel chooses an address that nothing uses.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            lead + size as usize,
            protection,
            kind | libc::MAP_NORESERVE,
            descriptor.as_raw_fd(),
            offset - lead as i64,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(last_error());
    }
    Ok(Mapping {
        offset,
        size: size.next_multiple_of(SMALL_PAGE),
        address: address as usize + lead,
        lead,
        rest: bytes - lead - size.next_multiple_of(SMALL_PAGE) as usize,
    })
}

/// The error of the libc call just made.
pub(super) fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Raises this process's limit of open files to `wanted`, as far as it may: a recording may keep
/// more open than the 1024 that most systems begin with. Who may raise the hard limit does. What
/// does not fit fails with `EMFILE`, which is a result.
pub(super) fn allow_descriptors(wanted: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = wanted.saturating_add(1024);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raise_to = |current: u64, maximum: Option<u64>| {
        let current = Some(current);
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).is_ok()
    };
    let hard = limit.maximum.unwrap_or(u64::MAX);
    if wanted <= hard || !raise_to(wanted, Some(wanted)) {
        raise_to(wanted.min(hard), limit.maximum);
    }
}
