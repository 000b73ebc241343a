//! A job for tests to change.

use std::path::Path;

use iostep_model::bench::{
    Access, Engine, FileJob, Files, InitialContent, Limits, Pace, PageCache, PayloadKind, Sharing,
    Sync, Target, Transfer,
};

/// Eight records of 4 KiB, written in order by one thread.
pub fn job(directory: impl AsRef<Path>) -> FileJob {
    FileJob {
        target: Target::Directory(directory.as_ref().to_owned()),
        access: Access::Write,
        record_bytes: 4096,
        file_bytes: 8 * 4096,
        threads: 1,
        sharing: Sharing::OwnFile,
        transfer: Transfer::Buffered,
        sync: Sync::None,
        sync_every: 1,
        end_sync: false,
        atomic: false,
        polled: false,
        engine: Engine::Psync,
        depth: 1,
        overlap_percent: 0.0,
        initial: InitialContent::Written,
        files: Files::Fresh,
        keep: false,
        payload: PayloadKind::Incompressible,
        page_cache: PageCache::Drop,
        verify: false,
        seed: 1,
        cpus: Vec::new(),
        limits: Limits::default(),
        pace: Pace::default(),
    }
}
