//! What the descriptors and paths of a call mean.

use iostep_model::syscall::raw::{
    CURRENT_DIRECTORY, Descriptor, DescriptorKind, Known, Path, Returned, Seen,
};
use iostep_model::syscall::{
    Errno, HandleId, OpenFlags, Operation, Outcome, PathId, Syscall, Target, Translate,
};

use super::descriptors::{Entry, Lookup, Opened, STANDARD_STREAMS};
use super::initial::Ended;
use super::{At, Step, Stop, Tracker, UNKNOWN_DIRECTORY, UNNAMED_DIRECTORY, place};
use crate::error::Result;
use crate::sink::Sink;

/// A position cannot be set or asked for: include/uapi/asm-generic/errno-base.h.
const ESPIPE: Errno = Errno(29);

/// What an open that nobody saw is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    File,
    Directory,
}

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    /// To a name: `Tracker::text`.
    Name,
    /// To what is open.
    Open(HandleId),
}

/// A descriptor that is there without an open in the recording.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) number: i32,
    pub(super) path: Option<&'a [u8]>,
    pub(super) flags: OpenFlags,
    /// Bytes.
    pub(super) position: i64,
}

/// Translates one call's descriptors and paths.
pub(super) struct Resolve<'t, S> {
    pub(super) tracker: &'t mut Tracker<S>,
    pub(super) at: At,
    pub(super) wanted: Wanted,
    /// A link at the end of the path that the call is about is followed.
    pub(super) follow: bool,
}

impl<S: Sink> Translate<Descriptor<'_>, Path<'_>, HandleId, PathId> for Resolve<'_, S> {
    type Error = Stop;

    fn handle(&mut self, descriptor: Descriptor<'_>) -> std::result::Result<HandleId, Stop> {
        self.tracker.descriptor(&self.at, &descriptor, self.wanted)
    }

    /// No call on names follows a link at the end.
    fn path(&mut self, path: Path<'_>) -> std::result::Result<PathId, Stop> {
        match self.tracker.target(&self.at, &path, false)? {
            Target::Path(path) => Ok(path),
            Target::Handle(handle) => self.tracker.path_of(handle),
        }
    }

    fn target(
        &mut self,
        target: Target<Descriptor<'_>, Path<'_>>,
    ) -> std::result::Result<Target<HandleId, PathId>, Stop> {
        match target {
            Target::Handle(handle) => self.handle(handle).map(Target::Handle),
            Target::Path(path) => self.tracker.target(&self.at, &path, self.follow),
        }
    }

    fn content(&mut self, content: Path<'_>) -> std::result::Result<PathId, Stop> {
        if content.truncated {
            return Err(Stop::LeftOut(CUT_OFF));
        }
        Ok(self.tracker.paths.intern(&content.text))
    }
}

pub(super) const CUT_OFF: &str = "path cut off";

impl<S: Sink> Tracker<S> {
    /// The open file of a descriptor. One that was never opened gets an open.
    pub(super) fn descriptor(
        &mut self,
        at: &At,
        descriptor: &Descriptor<'_>,
        wanted: Wanted,
    ) -> std::result::Result<HandleId, Stop> {
        let number = descriptor.number;
        let other = descriptor.known.as_ref().and_then(no_file);
        let table = self.task(at.tid).descriptors;
        let lookup = self.tasks.descriptors[table].get(number, at.start_ns);
        match lookup {
            Lookup::Is(Opened::File(handle)) => match other {
                None => Ok(handle),
                // A FIFO, or a device outside of /dev.
                Some(reason) => Err(Stop::LeftOut(reason)),
            },
            Lookup::Is(Opened::LeftOut(reason)) => Err(Stop::LeftOut(reason)),
            Lookup::Closed | Lookup::Never => {
                let failed = matches!(at.returned, Returned::Failed(_));
                let reason = match at.returned {
                    _ if number < 0 => return Err(Stop::LeftOut("no descriptor")),
                    Returned::Failed(Errno::EBADF) => {
                        return Err(Stop::LeftOut("closed descriptor"));
                    }
                    _ if descriptor.known.is_some() => other,
                    _ if lookup == Lookup::Never && STANDARD_STREAMS.contains(&number) => {
                        Some("standard stream")
                    }
                    Returned::Failed(ESPIPE) => Some(place::reason(DescriptorKind::Pipe)),
                    _ => None,
                };
                if let Some(reason) = reason {
                    self.insert_left_out(at, number, reason, false);
                    return Err(Stop::LeftOut(reason));
                }
                if failed && descriptor.known.is_none() {
                    return Err(Stop::LeftOut("failed on a descriptor never opened"));
                }
                self.made_up = true;
                Ok(self.make_up_open(at, descriptor, wanted)?)
            }
        }
    }

    /// Opens what was never opened: for reading and writing, since what will be done with it is
    /// not known yet, and without changing what is there.
    fn make_up_open(
        &mut self,
        at: &At,
        descriptor: &Descriptor<'_>,
        wanted: Wanted,
    ) -> Result<HandleId> {
        let known = descriptor.known.as_ref();
        let is_directory = known.is_some_and(|known| known.kind == DescriptorKind::Directory);
        let flags = if is_directory || wanted == Wanted::Directory {
            OpenFlags::O_DIRECTORY
        } else {
            OpenFlags::O_RDWR
        };
        let found = Found {
            number: descriptor.number,
            path: known.and_then(|known| known.path.as_deref()),
            flags,
            position: 0,
        };
        let handle = self.open_found(at, &found, None)?;
        if let Some(file) = self.files.get_mut(&handle) {
            file.sure = false;
            file.position_unknown = true;
        }
        Ok(handle)
    }

    /// Records the open of something that is open already.
    pub(super) fn open_found(
        &mut self,
        at: &At,
        found: &Found<'_>,
        seen: Option<&Seen>,
    ) -> Result<HandleId> {
        let usable = |path: &&[u8]| path.starts_with(b"/") && path.len() <= place::MAX_PATH_BYTES;
        let path = match found.path.filter(usable) {
            Some(path) => self.paths.intern(path),
            None => {
                let mut path = UNNAMED_DIRECTORY.to_vec();
                path.extend_from_slice(format!("/{}-{}", at.tid, self.handles + 1).as_bytes());
                self.paths.intern(&path)
            }
        };
        let made = OpenFlags::O_CREAT
            .with(OpenFlags::O_EXCL)
            .with(OpenFlags::O_TRUNC)
            .with(OpenFlags::O_TMPFILE);
        let flags = found.flags.without(made);
        let inode = self
            .initial
            .open(self.paths.get(path), flags, Ended::Worked, seen);
        let appends = flags.has(OpenFlags::O_APPEND);
        let handle = self.add_file(path, inode, appends)?;
        let entry = Entry {
            is: Opened::File(handle),
            close_on_exec: flags.has(OpenFlags::O_CLOEXEC),
            // It was there before the call that told of it.
            since_ns: at.start_ns,
        };
        let table = self.task(at.tid).descriptors;
        self.tasks.descriptors[table].insert(found.number, entry);
        let at = At {
            duration_ns: Some(0),
            ..*at
        };
        let open = Operation::Open {
            path,
            flags,
            mode: 0,
        };
        self.call(&at, Syscall::Present, open, Outcome::Handle(handle))?;
        if let Ok(position @ 1..) = u64::try_from(found.position) {
            self.present_at(&at, handle, position)?;
        }
        Ok(handle)
    }

    /// Descriptors of something that is no file. Two whose numbers the source does not say, as strace
    /// does not with `-s 0`, are the lowest that are free (pipe(2), socketpair(2)).
    pub(super) fn make_other(
        &mut self,
        at: &At,
        name: &str,
        (kind, mut descriptors): (DescriptorKind, Vec<i32>),
        close_on_exec: bool,
    ) -> Step {
        let are_two = matches!(name, "pipe" | "pipe2" | "socketpair");
        if descriptors.is_empty() && are_two && matches!(at.returned, Returned::Value(_)) {
            let table = self.task(at.tid).descriptors;
            let two = self.tasks.descriptors[table].two_free();
            descriptors.extend(two.into_iter().flatten());
        }
        let reason = place::reason(kind);
        for number in descriptors {
            self.insert_left_out(at, number, reason, close_on_exec);
        }
        Err(Stop::LeftOut(reason))
    }

    /// A descriptor whose calls are left out.
    pub(super) fn insert_left_out(
        &mut self,
        at: &At,
        number: i32,
        reason: &'static str,
        close_on_exec: bool,
    ) {
        let entry = Entry {
            is: Opened::LeftOut(reason),
            close_on_exec,
            since_ns: at.end_ns(),
        };
        let table = self.task(at.tid).descriptors;
        self.tasks.descriptors[table].insert(number, entry);
    }

    /// What a call's path leads to. Left out: what is in no filesystem with data.
    pub(super) fn target(
        &mut self,
        at: &At,
        path: &Path<'_>,
        follow: bool,
    ) -> std::result::Result<Target<HandleId, PathId>, Stop> {
        if let Lead::Open(handle) = self.lead(at, path, follow)? {
            return Ok(Target::Handle(handle));
        }
        match place::left_out(&self.text) {
            Some(reason) => Err(Stop::LeftOut(reason)),
            None => Ok(Target::Path(self.paths.intern(&self.text))),
        }
    }

    /// Puts the absolute form of a call's path into `self.text`, no link followed.
    pub(super) fn absolute(&mut self, at: &At, path: &Path<'_>) -> std::result::Result<(), Stop> {
        if path.truncated {
            return Err(Stop::LeftOut(CUT_OFF));
        }
        if let Some(here) = path.directory.as_ref().and_then(current_directory) {
            self.is_at(at, here);
        }
        let relative = !path.text.starts_with(b"/");
        let mut text = std::mem::take(&mut self.text);
        match &path.directory {
            Some(directory) if relative && directory.number != CURRENT_DIRECTORY => {
                let directory = self.directory_of(at, directory)?;
                place::join(self.paths.get(directory), &path.text, &mut text);
            }
            _ if path.text.is_empty() => return Err(Stop::LeftOut("empty path")),
            _ => {
                let slot = self.task(at.tid).directory;
                let directories = &self.tasks.directories[slot];
                match relative || directories.root.is_empty() {
                    true => place::join(&directories.current, &path.text, &mut text),
                    false => place::join_below(&directories.root, &path.text, &mut text),
                }
            }
        }
        let slot = self.task(at.tid).directory;
        place::without_root(&self.tasks.directories[slot].root, &mut text);
        self.text = text;
        if self.text.len() > place::MAX_PATH_BYTES {
            return Err(Stop::LeftOut("path too long"));
        }
        Ok(())
    }

    /// The source says where the thread is, beside a path. What chdir said is better: it is the
    /// name that the program knows, and this one may be behind a symbolic link.
    fn is_at(&mut self, at: &At, directory: &[u8]) {
        let slot = self.task(at.tid).directory;
        let known = !self.tasks.directories[slot]
            .current
            .starts_with(UNKNOWN_DIRECTORY);
        let usable = directory.starts_with(b"/") && directory.len() <= place::MAX_PATH_BYTES;
        if known || !usable {
            return;
        }
        if place::left_out(directory).is_none() {
            self.initial.is_directory(directory);
        }
        self.tasks.directories[slot].current = directory.into();
    }

    /// The path of the directory that a descriptor points to.
    fn directory_of(
        &mut self,
        at: &At,
        directory: &Descriptor<'_>,
    ) -> std::result::Result<PathId, Stop> {
        let handle = self.descriptor(at, directory, Wanted::Directory)?;
        self.path_of(handle)
    }
}

/// The path of a directory that is the current one.
fn current_directory<'d>(directory: &'d Descriptor<'_>) -> Option<&'d [u8]> {
    let known = directory.known.as_ref()?;
    let path = known.path.as_deref()?;
    (directory.number == CURRENT_DIRECTORY).then_some(path)
}

/// Why what a descriptor is known to be is left out, if it is.
pub(super) fn no_file(known: &Known<'_>) -> Option<&'static str> {
    if !known.kind.is_kept() {
        return Some(place::reason(known.kind));
    }
    known.path.as_deref().and_then(place::left_out)
}
