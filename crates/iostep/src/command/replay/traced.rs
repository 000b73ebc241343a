//! Block I/O of one replay.

use std::fs::File;
use std::path::Path;

use anyhow::Context;
use iostep_analyze::replay::BlockIo;
use iostep_analyze::stats::Summary;
use iostep_model::event::Marker;

use crate::recording;
use crate::terminal::say;

/// Records the device below `directory` from before `work` until everything is on the device.
///
/// Errors: those of the recording and of `work`.
pub fn record<T>(
    directory: &Path,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<(T, BlockIo)> {
    let scratch = recording::scratch(directory)?;
    let mut done = None;
    let trace = recording::record_own_load(directory, &scratch.path().join("trace"), |session| {
        session.mark(Marker::CommandStart)?;
        done = Some(work()?);
        session.mark(Marker::CommandEnd)?;
        session.mark(Marker::SettleStart)?;
        let filesystem = File::open(directory)
            .with_context(|| format!("{}: cannot open", directory.display()))?;
        // A device that fails has told so by the replay's results already, which must not be lost.
        if let Err(errno) = rustix::fs::syncfs(&filesystem) {
            let directory = directory.display();
            say!("warning: {directory}: cannot sync: {errno}; some block I/O is missing");
        }
        session.mark(Marker::SettleEnd)?;
        Ok(())
    })?;
    let done = done.context("the recording ended before the replay")?;
    let manifest = &trace.manifest;
    let block = BlockIo::of(
        &manifest.device_label(),
        manifest.check.passed(),
        &Summary::of(&trace),
    );
    Ok((done, block))
}
