//! The recording that a cell replays: a file, or one that iostep brings along.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use iostep_model::lab::Cell;
use iostep_model::syscall::{Syscall, kept, text};

use crate::error::{Error, Result};

/// A recording that is built in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Builtin {
    /// As in `builtin:NAME`.
    name: &'static str,
    /// Its file, compressed with zstd (docs/format-syscalls.md).
    pub content: &'static [u8],
}

/// Every one. labs/recordings/record says how they were made.
const BUILTIN: &[Builtin] = &[Builtin {
    name: "timeline",
    content: include_bytes!("../labs/recordings/timeline.trace.zst"),
}];

/// The name of a built-in recording in `recording = "builtin:NAME"`; `None` for a file's path.
pub(crate) fn builtin_name(value: &str) -> Option<&str> {
    value.strip_prefix("builtin:")
}

/// The built-in recording with this name.
pub(crate) fn builtin(name: &str) -> Option<Builtin> {
    BUILTIN
        .iter()
        .copied()
        .find(|recording| recording.name == name)
}

/// The file for `iostep replay`: the cell's own, or one made in `scratch` where it is built in, or
/// where switch F changes its calls.
///
/// Errors: `Usage` for a name that is not built in; those of reading the recording and of writing
/// the other.
pub(crate) fn prepare(cell: &Cell, scratch: &Path) -> Result<PathBuf> {
    let arguments = &cell.workload.arguments;
    let value = arguments.first().map_or("", String::as_str);
    let path = match builtin_name(value) {
        Some(name) => unpack(name, scratch)?,
        None => PathBuf::from(value),
    };
    match cell.switches.fdatasync {
        true => with_fdatasync(&path, scratch),
        false => Ok(path),
    }
}

fn unpack(name: &str, scratch: &Path) -> Result<PathBuf> {
    let found = builtin(name).ok_or_else(|| Error::Usage {
        what: format!("no recording {name} is built in"),
        hint: "run the lab with the iostep that wrote it".into(),
    })?;
    let path = scratch.join(format!("{name}.trace.zst"));
    std::fs::write(&path, found.content).map_err(Error::io(&path, "write"))?;
    Ok(path)
}

/// A copy whose fsync calls are fdatasync: what ATC'13 section 6.5 replays as F.
fn with_fdatasync(path: &Path, scratch: &Path) -> Result<PathBuf> {
    let recording = text::read(path)?;
    let copy = scratch.join("fdatasync.trace");
    let mut writer = text::Writer::create(&copy, recording.header)?;
    for thread in &recording.threads {
        writer.thread(thread);
    }
    for mut call in recording.calls {
        call.syscall = match call.syscall {
            Syscall::Fsync => Syscall::Fdatasync,
            Syscall::UringFsync => Syscall::UringFdatasync,
            other => other,
        };
        writer.call(&call, &recording.paths)?;
    }
    writer.finish(&recording.initial, &recording.ledger, &recording.paths)?;
    let data = kept::directory_of(path);
    if data.is_dir() {
        let link = kept::directory_of(&copy);
        symlink(&data, &link).map_err(Error::io(&link, "make"))?;
    }
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use iostep_model::fixture;
    use iostep_model::lab::{Filesystem, WorkloadKind};

    use super::*;

    fn cell(recording: &str, switches: &str) -> Cell {
        let arguments = [recording, "--timing=fast"];
        Cell {
            switches: switches.parse().expect("switches"),
            ..fixture::cell(Filesystem::Ext4, WorkloadKind::Replay, &arguments)
        }
    }

    fn counts(path: &Path) -> [usize; 3] {
        let calls = text::read(path).expect("a recording").calls;
        let of = |syscall| calls.iter().filter(|call| call.syscall == syscall).count();
        [calls.len(), of(Syscall::Fsync), of(Syscall::Fdatasync)]
    }

    #[test]
    fn what_is_built_in_is_whole_and_syncs_as_the_papers_phone() {
        let scratch = tempfile::tempdir().expect("a directory");
        for recording in BUILTIN {
            let name = format!("builtin:{}", recording.name);
            let path = prepare(&cell(&name, ""), scratch.path()).expect("it is there");
            let whole = text::read(&path).expect("a recording");
            assert_eq!((whole.cut_at_line, whole.ledger.lost), (None, 0));
            let [_, fsync, fdatasync] = counts(&path);
            assert!(fsync > 0 && fdatasync == 0, "{fsync} and {fdatasync}");
        }
    }

    #[test]
    fn f_makes_every_fsync_an_fdatasync_and_changes_nothing_else() {
        let scratch = tempfile::tempdir().expect("a directory");
        let prepared = |switches| prepare(&cell("builtin:timeline", switches), scratch.path());
        let baseline = counts(&prepared("").expect("it is there"));
        let changed = counts(&prepared("F").expect("it is there"));
        assert_eq!(changed, [baseline[0], 0, baseline[1]]);
    }

    #[test]
    fn a_file_is_replayed_as_it_is_and_its_kept_data_follow_a_copy() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = unpack("timeline", scratch.path()).expect("it is there");
        let shown = path.to_string_lossy();
        assert_eq!(
            prepare(&cell(&shown, "E"), scratch.path()).ok(),
            Some(path.clone())
        );
        std::fs::create_dir(kept::directory_of(&path)).expect("made");
        let copy = prepare(&cell(&shown, "F"), scratch.path()).expect("a copy");
        assert!(kept::directory_of(&copy).is_dir());
    }

    #[test]
    fn a_recording_of_another_version_is_named() {
        let error = prepare(&cell("builtin:none", ""), Path::new("/")).expect_err("unknown");
        assert!(matches!(error, Error::Usage { .. }), "{error}");
    }
}
