//! What makes a result one of something else than a device, as far as the result itself shows it.

use super::{FileJob, PageCache, Run, Transfer, Warning};
use crate::manifest::Filesystem;

/// As much of a file in the page cache as a readahead or two leave behind.
const RESIDENT: f64 = 0.1;

/// There is no device below a filesystem.
pub fn in_memory(filesystem: &Filesystem) -> Option<Warning> {
    let kind = filesystem.kind.as_str();
    matches!(kind, "tmpfs" | "ramfs").then(|| Warning::InMemory {
        filesystem: kind.to_owned(),
    })
}

/// The option by which files without an attribute of their own are compressed. f2fs has
/// `compress_algorithm` whenever it could compress; it does so for the extensions named (Linux:
/// Documentation/filesystems/f2fs.rst).
pub fn compressing_option(filesystem: &Filesystem) -> Option<Warning> {
    let keys: &[&str] = match filesystem.kind.as_str() {
        "btrfs" => &["compress", "compress-force"],
        "bcachefs" => &["compression", "background_compression"],
        "ubifs" => &["compr"],
        "f2fs" => &["compress_extension"],
        _ => return None,
    };
    let is_one = |word: &&str| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let is_off = matches!(value, "no" | "none");
        let is_ours = filesystem.kind != "f2fs" || value == "*";
        keys.contains(&key) && !is_off && is_ours
    };
    let mut words = filesystem.options.split([',', ';', ' ']);
    words.find(is_one).map(|word| Warning::Compression {
        by: word.to_owned(),
    })
}

/// Reads come out of memory if they find the file there, or read it more than once.
pub fn fits_in_page_cache(job: &FileJob, memory_bytes: u64, runs: &[Run]) -> Option<Warning> {
    if job.access.writes() || job.transfer == Transfer::Direct {
        return None;
    }
    let file_bytes = job.file_bytes.saturating_mul(job.files().into());
    let keeps = job.transfer != Transfer::DontCache;
    let hits = |run: &Run| {
        let was_there = match run.page_cache {
            Some(found) => found.resident_pages as f64 > found.pages as f64 * RESIDENT,
            None => job.page_cache != PageCache::Drop,
        };
        was_there || (keeps && run.bytes > file_bytes)
    };
    let fits = file_bytes <= memory_bytes && runs.iter().any(hits);
    fits.then_some(Warning::FitsInPageCache {
        file_bytes,
        memory_bytes,
    })
}
