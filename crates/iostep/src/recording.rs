//! Recordings, from the target to the finished trace directory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use iostep_analyze::attribute;
use iostep_fs::Found as Layout;
use iostep_model::directory::{Directory, Temporary};
use iostep_model::manifest::{Filesystem, Manifest, State};
use iostep_model::spool;
use iostep_model::store;
use iostep_model::table::Trace;
use iostep_trace::fault::Fault;
use iostep_trace::session::{BackendChoice, Options, Session};
use iostep_trace::target::{Mount, Target};

use crate::disk_health;
use crate::terminal::say;
use crate::version;

/// Directories in memory, where a recording does not write to the device that it records.
const MEMORY: [&str; 2] = ["/dev/shm", "/run"];

/// Records into `directory` while `body` runs, and makes the tables.
///
/// Errors: those of the recording and of `body`; what was recorded until then stays, as after a
/// kill, and `iostep report` makes the tables of it.
pub fn record(
    target: &Path,
    directory: &Path,
    body: impl FnOnce(&mut Session) -> anyhow::Result<()>,
) -> anyhow::Result<Trace> {
    let mut session = start(target, directory, BackendChoice::Auto, None)?;
    body(&mut session)?;
    finish(session)
}

/// As [`record`], where the load is this process itself: its I/O is the load's, not the tracer's.
/// `directory` must not be on the device.
///
/// Errors: as [`record`].
pub fn record_own_load(
    target: &Path,
    directory: &Path,
    body: impl FnOnce(&mut Session) -> anyhow::Result<()>,
) -> anyhow::Result<Trace> {
    let mut session = start(target, directory, BackendChoice::Auto, None)?;
    let held = Arc::clone(session.directory());
    body(&mut session)?;
    let mut manifest = stop(session)?;
    // No process has this number.
    manifest.tracer_tgid = u32::MAX;
    complete(&held, manifest, State::Complete)
}

/// A directory for a recording that nobody keeps: in memory, so as not to write to the device of
/// `target`, unless the user wants temporary files elsewhere.
pub fn scratch(target: &Path) -> anyhow::Result<Temporary> {
    Temporary::new(&memory_directory(target), "iostep-trace-")
        .context("cannot make a directory for the recording")
}

/// Where the user wants temporary files; else in memory.
fn memory_directory(target: &Path) -> PathBuf {
    let device = |path: &Path| rustix::fs::stat(path).map(|stat| stat.st_dev).ok();
    if std::env::var_os("TMPDIR").is_some_and(|directory| !directory.is_empty()) {
        return std::env::temp_dir();
    }
    MEMORY
        .iter()
        .map(PathBuf::from)
        .find(|path| path.is_dir() && device(path) != device(target))
        .unwrap_or_else(std::env::temp_dir)
}

/// Starts a recording of the device that `target` names.
///
/// `fault` is one to make on purpose.
pub fn start(
    target: &Path,
    directory: &Path,
    backend: BackendChoice,
    fault: Option<Fault>,
) -> anyhow::Result<Session> {
    let target = Target::resolve(target)?;
    let (filesystem, volumes) = filesystems(&target);
    Ok(Session::start(Options {
        target,
        volumes,
        directory: directory.to_owned(),
        iostep_version: version::NUMBER.into(),
        filesystem,
        backend,
        fault,
    })?)
}

/// Stops a recording and makes its tables.
pub fn finish(session: Session) -> anyhow::Result<Trace> {
    let directory = Arc::clone(session.directory());
    complete(&directory, stop(session)?, State::Complete)
}

/// Stops a recording.
fn stop(session: Session) -> anyhow::Result<Manifest> {
    let mut target = session.target().clone();
    let mut manifest = session.finish()?;
    disk_health::ask_again(&mut manifest.disks);
    target.look_for_mounts();
    if manifest.volumes.is_empty() {
        look_again(
            &mut manifest.filesystem,
            &target.node(),
            target.mount.as_ref(),
        );
    }
    for (described, volume) in manifest.volumes.iter_mut().zip(&target.volumes) {
        if volume.described.part_of.is_none() {
            let mount = volume.mount.as_ref();
            look_again(&mut described.filesystem, &volume.node(), mount);
        }
    }
    Ok(manifest)
}

/// Adds what became of a filesystem since the recording began: it may have been made, mounted, or
/// given more ranges of its own.
fn look_again(filesystem: &mut Option<Filesystem>, node: &Path, mount: Option<&Mount>) {
    // Where it cannot be read any more, what was known at the beginning stays.
    let layout = layout(node).ok().flatten();
    let Some(known) = filesystem else {
        *filesystem = describe(layout, mount);
        return;
    };
    let is_of = |known: &Filesystem, kind: &str| {
        let is_ext = |kind: &str| kind.starts_with("ext");
        kind == known.kind || is_ext(kind) && is_ext(&known.kind)
    };
    if known.mount_point.is_empty()
        && let Some(mount) = mount.filter(|mount| is_of(known, &mount.kind))
    {
        add_mount(known, mount);
    }
    if let Some(layout) = layout
        && is_of(known, layout.kind.name())
        && layout.block_bytes == known.block_bytes
    {
        add_new_ranges(known, &layout);
    }
}

/// What the filesystem has reserved since the recording began: more blocks for quotas, or the groups
/// that it has grown by.
fn add_new_ranges(filesystem: &mut Filesystem, found: &Layout) {
    if filesystem.layout.is_empty() {
        return;
    }
    filesystem.layout = iostep_fs::joined(&filesystem.layout, &found.layout);
    // What it had before it shrank was its own.
    filesystem.size_bytes = filesystem.size_bytes.max(Some(found.size_bytes));
}

/// Makes the tables of what a spool holds, and removes the spool.
///
/// Errors: those of reading and writing; the spool is then still there.
pub fn complete(
    directory: &Directory,
    mut manifest: Manifest,
    state: State,
) -> anyhow::Result<Trace> {
    let path = directory.path().join(spool::FILE_NAME);
    let contents = spool::read(&path).map_err(|error| directory.named(error))?;
    if let Some(cut) = contents.cut {
        manifest.check.differences.push(format!(
            "{}: the recording stops being whole at {cut}",
            spool::FILE_NAME
        ));
    }
    let events = contents.events.len() as u64;
    if let Some(recorded) = manifest.check.recorded_events.filter(|n| *n != events) {
        manifest.check.differences.push(format!(
            "{}: {recorded} events were recorded, it has {events}",
            spool::FILE_NAME
        ));
    }
    if state == State::Recovered {
        manifest.check.differences.push(
            "the recorder was killed: at most its last second is missing, and nothing could be compared with the device's counters"
                .into(),
        );
    }
    manifest.state = state;
    let trace = attribute::assemble(manifest, &contents.events);
    store::write(&directory.path(), &trace).map_err(|error| directory.named(error))?;
    std::fs::remove_file(&path).with_context(|| {
        let path = directory.name().join(spool::FILE_NAME);
        format!("{}: cannot remove", path.display())
    })?;
    Ok(trace)
}

/// The filesystem of a target, or that of each of its volumes.
fn filesystems(target: &Target) -> (Option<Filesystem>, Vec<Option<Filesystem>>) {
    if target.volumes.is_empty() {
        return (
            filesystem(&target.node(), target.mount.as_ref()),
            Vec::new(),
        );
    }
    let of_volumes = target.volumes.iter().map(|volume| {
        let begins_here = volume.described.part_of.is_none();
        let node = volume.node();
        begins_here
            .then(|| filesystem(&node, volume.mount.as_ref()))
            .flatten()
    });
    (None, of_volumes.collect())
}

/// The filesystem on a device with its layout. Without a layout the trace still names files
/// and processes, so trouble here is told and no more.
fn filesystem(node: &Path, mount: Option<&Mount>) -> Option<Filesystem> {
    let found = layout(node).unwrap_or_else(|error| {
        say!("warning: {error:#}; metadata is classed by its content only");
        None
    });
    describe(found, mount)
}

fn layout(node: &Path) -> anyhow::Result<Option<Layout>> {
    let device = File::open(node).with_context(|| format!("{}: cannot open", node.display()))?;
    Ok(iostep_fs::layout(&device)?)
}

/// A filesystem by its layout and its mount; `None` where there is neither.
fn describe(found: Option<Layout>, mount: Option<&Mount>) -> Option<Filesystem> {
    if found.is_none() && mount.is_none() {
        return None;
    }
    let mut filesystem = Filesystem {
        block_bytes: 4096,
        ..Filesystem::default()
    };
    if let Some(found) = found {
        filesystem.kind = found.kind.name().into();
        filesystem.block_bytes = found.block_bytes;
        filesystem.size_bytes = Some(found.size_bytes);
        filesystem.layout = found.layout;
    }
    if let Some(mount) = mount {
        add_mount(&mut filesystem, mount);
    }
    Some(filesystem)
}

fn add_mount(filesystem: &mut Filesystem, mount: &Mount) {
    filesystem.kind.clone_from(&mount.kind);
    filesystem.mount_point = mount.point.display().to_string();
    filesystem.mounts.clone_from(&mount.places);
    filesystem.options.clone_from(&mount.options);
}
