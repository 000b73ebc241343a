//! Trace directories as they are found: whole, or left by a recorder that was killed.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use iostep_model::directory::Directory;
use iostep_model::manifest::{FILE_NAME, Manifest, State};
use iostep_model::table::Trace;
use iostep_model::{spool, store};

use crate::error::bad_input;
use crate::recording;
use crate::terminal::say;

/// Opens a trace directory. If its recorder was killed, the tables are made first.
///
/// Errors: no trace directory; one that is still being recorded; a damaged one; a newer schema;
/// a killed recording in a directory that cannot be written to.
pub fn open(directory: &Path) -> anyhow::Result<Trace> {
    if !directory.join(FILE_NAME).exists() {
        return Err(bad_input(anyhow!(
            "{}: no trace directory: it has no {FILE_NAME}",
            directory.display()
        )));
    }
    let manifest = Manifest::read(directory)?;
    if manifest.state != State::Recording {
        return Ok(store::read(directory)?);
    }
    if is_recorder(&manifest) {
        bail!(
            "{}: still being recorded by process {}; stop it with Ctrl-C first",
            directory.display(),
            manifest.tracer_tgid
        );
    }
    say!(
        "note: {}: its recorder was killed; making the tables of {}",
        directory.display(),
        spool::FILE_NAME
    );
    recording::complete(&Directory::open(directory)?, manifest, State::Recovered).with_context(
        || {
            format!(
                "{}: cannot finish a recording that was killed",
                directory.display()
            )
        },
    )
}

/// True if the process that the manifest names is the recorder. Process ids are used again, but
/// whoever got this one later started after the recording.
fn is_recorder(manifest: &Manifest) -> bool {
    started_wall_ns(manifest.tracer_tgid).is_some_and(|started| started <= manifest.clocks.wall_ns)
}

/// When a process started, to a clock tick; nothing if there is no such process.
///
/// Source: proc_pid_stat(5), field 22, in ticks since boot, and proc_stat(5), `btime`.
fn started_wall_ns(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, blanks and parentheses too; fields are counted from its end.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    let ticks: u64 = fields.nth(18)?.parse().ok()?;
    let boot = std::fs::read_to_string("/proc/stat").ok()?;
    let boot_s: u64 = boot
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .parse()
        .ok()?;
    let ticks_per_s = rustix::param::clock_ticks_per_second();
    Some(boot_s * 1_000_000_000 + ticks * 1_000_000_000 / ticks_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_started_before_now_and_after_boot() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now_ns = now.expect("after 1970").as_nanos() as u64;
        let started_ns = started_wall_ns(std::process::id()).expect("it runs");
        // `btime` has whole seconds and may be rounded up.
        assert!(started_ns < now_ns + 2_000_000_000);
        assert!(started_ns > started_wall_ns(1).expect("init runs") - 1);
        assert_eq!(started_wall_ns(u32::MAX), None);
    }
}
