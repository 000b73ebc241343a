//! What a call touches: the resources, and whether it commutes with others on them.

use iostep_model::syscall::{
    Call, Direction, HandleId, OpenFlags, Operation, Outcome, PathId, Paths, Recording, Syscall,
    Target, ThreadId, Whence,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Something that calls are ordered on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Resource {
    /// That an open file exists.
    Handle(HandleId),
    /// An open file's own position.
    Position(HandleId),
    /// What a name stands for.
    Name(PathId),
    /// A file's size. Files are numbered by [`Files`].
    Size(u32),
    /// A file's content, as a sync call sees it: writes commute, syncs do not.
    Content(u32),
    /// A file's locks.
    Locks(u32),
    /// That a thread was born.
    Birth(ThreadId),
}

/// How a call uses a resource: shared uses commute with each other, exclusive ones with none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Shared,
    Exclusive,
}

use Use::{Exclusive, Shared};

/// Finds what calls touch, in the order of the recording: which file a name or an open file
/// stands for depends on the calls before.
pub(super) struct Touches<'a> {
    recording: &'a Recording,
    files: Files,
    parents: FxHashMap<PathId, Vec<PathId>>,
    /// Names that others are below.
    directories: FxHashSet<PathId>,
    by_bytes: FxHashMap<&'a [u8], PathId>,
    born: Vec<bool>,
}

impl<'a> Touches<'a> {
    pub(super) fn new(recording: &'a Recording) -> Touches<'a> {
        let count = recording.paths.len() as u32;
        let paths = (0..count).map(|id| (recording.paths.get(PathId(id)), PathId(id)));
        Touches {
            recording,
            files: Files::default(),
            parents: FxHashMap::default(),
            directories: FxHashSet::default(),
            by_bytes: paths.collect(),
            born: vec![false; recording.threads.len() + 1],
        }
    }

    /// Replaces `found` by what a call touches.
    pub(super) fn of(&mut self, call: &Call, found: &mut Vec<(Resource, Use)>) {
        found.clear();
        let thread = call.thread;
        if let Some(born) = self.born.get_mut(thread.0 as usize)
            && !std::mem::replace(born, true)
        {
            found.push((Resource::Birth(thread), Shared));
        }
        match &call.operation {
            Operation::Open { path, flags, .. } => self.open(call, *path, *flags, found),
            Operation::Reopen { handle, flags, .. } => {
                found.push((Resource::Handle(*handle), Shared));
                let file = self.files.by_handle(*handle);
                self.opened(call, file, *flags, found);
            }
            Operation::CloseMany { handles } => {
                found.extend(handles.iter().map(|h| (Resource::Handle(*h), Exclusive)));
            }
            Operation::Inherit { child, handles } => {
                found.extend(handles.iter().map(|h| (Resource::Handle(*h), Shared)));
                found.push((Resource::Birth(*child), Exclusive));
            }
            Operation::Close { handle } => found.push((Resource::Handle(*handle), Exclusive)),
            Operation::Duplicate { handle, replaces } => {
                found.push((Resource::Handle(*handle), Shared));
                found.extend(replaces.map(|h| (Resource::Handle(h), Exclusive)));
            }
            Operation::Transfer { .. } | Operation::Copy { .. } | Operation::Reflink { .. } => {
                self.data(call, found);
            }
            Operation::Rename { .. } | Operation::Link { .. } => self.names(call, found),
            Operation::Symlink { path, .. }
            | Operation::Unlink { path }
            | Operation::MakeDirectory { path, .. }
            | Operation::MakeNode { path, .. }
            | Operation::RemoveDirectory { path } => {
                self.name(*path, changes(call), found);
                if changes(call) == Exclusive {
                    self.files.forget(*path);
                }
            }
            Operation::ReadLink { path, .. } => self.name(*path, Shared, found),
            _ => self.rest(call, found),
        }
        self.look(call);
    }

    /// What a call's end tells of the names that it looked at.
    fn look(&mut self, call: &Call) {
        let name = match call.operation {
            Operation::Open { path, .. }
            | Operation::Symlink { path, .. }
            | Operation::MakeDirectory { path, .. }
            | Operation::MakeNode { path, .. }
            | Operation::ReadLink { path, .. } => path,
            Operation::Rename { from, to, .. } => {
                if changes(call) == Exclusive {
                    self.files.there.remove(&from);
                    // All that is below it has another name.
                    if self.directories.contains(&from) || self.directories.contains(&to) {
                        self.files.there.clear();
                    }
                }
                to
            }
            Operation::Link { to, .. } => to,
            Operation::Stat {
                target: Target::Path(path),
                ..
            }
            | Operation::Access {
                target: Target::Path(path),
                ..
            }
            | Operation::Truncate {
                target: Target::Path(path),
                ..
            } => path,
            _ => return,
        };
        match call.outcome {
            Outcome::Value(_) | Outcome::Handle(_) => drop(self.files.there.insert(name)),
            Outcome::Failed(_) => {}
            Outcome::Unfinished | Outcome::Unknown => drop(self.files.there.remove(&name)),
        }
    }

    fn open(
        &mut self,
        call: &Call,
        path: PathId,
        flags: OpenFlags,
        found: &mut Vec<(Resource, Use)>,
    ) {
        let makes = flags.has(OpenFlags::O_CREAT) && !self.files.there.contains(&path);
        self.name(path, if makes { changes(call) } else { Shared }, found);
        if let Outcome::Handle(_) = call.outcome {
            let file = self.files.by_path(path);
            self.opened(call, file, flags, found);
        }
    }

    /// What an open of a file gave. With `O_TMPFILE` the file is a directory, and gives another.
    fn opened(
        &mut self,
        call: &Call,
        mut file: u32,
        flags: OpenFlags,
        found: &mut Vec<(Resource, Use)>,
    ) {
        let Outcome::Handle(handle) = call.outcome else {
            return;
        };
        found.push((Resource::Handle(handle), Exclusive));
        if flags.has(OpenFlags::O_TMPFILE) {
            file = self.files.new_file();
        }
        self.files.opened.insert(handle, file);
        if flags.has(OpenFlags::O_TRUNC) {
            found.push((Resource::Size(file), Exclusive));
        }
        if flags.has(OpenFlags::O_APPEND) {
            self.files.appends.insert(handle, ());
        }
    }

    /// A name, and the directories on its way: a call below a directory commutes with others
    /// there, not with what makes, moves or removes the directory.
    fn name(&mut self, path: PathId, how: Use, found: &mut Vec<(Resource, Use)>) {
        found.push((Resource::Name(path), how));
        let by_bytes = &self.by_bytes;
        let paths = &self.recording.paths;
        let parents = self.parents.entry(path);
        let directories = &mut self.directories;
        let parents = parents.or_insert_with(|| {
            let parents = parents_of(path, paths, by_bytes);
            directories.extend(&parents);
            parents
        });
        found.extend(parents.iter().map(|p| (Resource::Name(*p), Shared)));
    }

    fn names(&mut self, call: &Call, found: &mut Vec<(Resource, Use)>) {
        let how = changes(call);
        match call.operation {
            Operation::Rename { from, to, flags } => {
                self.name(from, how, found);
                self.name(to, how, found);
                if how == Exclusive {
                    self.files
                        .rename(from, to, flags & libc::RENAME_EXCHANGE != 0);
                }
            }
            Operation::Link { from, to, .. } => {
                if let Target::Handle(handle) = from {
                    found.push((Resource::Handle(handle), Shared));
                }
                let file = self.target(from, found);
                self.name(to, how, found);
                if how == Exclusive {
                    self.files.by_name.insert(to, file);
                }
            }
            _ => {}
        }
    }

    /// Transfers and copies.
    fn data(&mut self, call: &Call, found: &mut Vec<(Resource, Use)>) {
        match call.operation {
            Operation::Transfer {
                direction,
                handle,
                offset,
                size,
                ..
            } => {
                let writes = direction == Direction::Write;
                self.transfer(handle, writes, offset, done(call, size), found);
            }
            Operation::Copy {
                from,
                from_offset,
                to,
                to_offset,
                size,
            } => {
                let size = done(call, size);
                self.transfer(from, false, from_offset, size, found);
                self.transfer(to, true, to_offset, size, found);
            }
            Operation::Reflink { from, to, .. } => {
                let (from_file, to_file) = (self.files.by_handle(from), self.files.by_handle(to));
                found.extend([
                    (Resource::Handle(from), Shared),
                    (Resource::Size(from_file), Shared),
                    (Resource::Handle(to), Shared),
                    (Resource::Content(to_file), Shared),
                    (Resource::Size(to_file), Exclusive),
                ]);
            }
            _ => {}
        }
    }

    fn transfer(
        &mut self,
        handle: HandleId,
        writes: bool,
        offset: Option<i64>,
        size: u64,
        found: &mut Vec<(Resource, Use)>,
    ) {
        found.push((Resource::Handle(handle), Shared));
        if offset.is_none() {
            found.push((Resource::Position(handle), Exclusive));
        }
        let file = self.files.by_handle(handle);
        if !writes {
            found.push((Resource::Size(file), Shared));
            return;
        }
        found.push((Resource::Content(file), Shared));
        let appends = self.files.appends.contains_key(&handle);
        let end = offset.and_then(|at| u64::try_from(at).ok());
        let end = end.map(|at| at.saturating_add(size));
        // Where it writes is not known without an offset; it may make the file longer.
        let grows = match end {
            Some(end) if !appends => self.files.grows_to(file, end),
            _ => true,
        };
        found.push((Resource::Size(file), if grows { Exclusive } else { Shared }));
    }

    fn rest(&mut self, call: &Call, found: &mut Vec<(Resource, Use)>) {
        for handle in call.operation.handles() {
            found.push((Resource::Handle(handle), Shared));
        }
        match call.operation {
            Operation::Seek { handle, whence, .. } => {
                found.push((Resource::Position(handle), Exclusive));
                if !matches!(whence, Whence::Start | Whence::Current) {
                    found.push((Resource::Size(self.files.by_handle(handle)), Shared));
                }
            }
            Operation::ReadDirectory { handle, .. } => {
                found.push((Resource::Position(handle), Exclusive));
            }
            Operation::Truncate { target, size } => {
                let file = self.target(target, found);
                self.files.truncate(file, size);
                found.push((Resource::Size(file), Exclusive));
            }
            Operation::Allocate { handle, .. } => {
                let file = self.files.by_handle(handle);
                found.push((Resource::Size(file), Exclusive));
            }
            Operation::Sync { .. } if call.syscall == Syscall::Syncfs => {}
            Operation::Sync { handle }
            | Operation::SyncRange { handle, .. }
            | Operation::SyncMap { handle, .. } => {
                found.push((Resource::Content(self.files.by_handle(handle)), Exclusive));
            }
            Operation::Map { handle, .. } | Operation::Remap { handle, .. } => {
                found.push((Resource::Size(self.files.by_handle(handle)), Shared));
            }
            Operation::Lock { handle, .. } => {
                found.push((Resource::Locks(self.files.by_handle(handle)), Exclusive));
            }
            Operation::Stat { target, .. }
            | Operation::Access { target, .. }
            | Operation::StatFilesystem { target }
            | Operation::SetMode { target, .. }
            | Operation::SetOwner { target, .. }
            | Operation::SetTimes { target } => {
                self.target(target, found);
            }
            _ => {}
        }
    }

    /// The file of a target; its name is touched if it has one.
    fn target(
        &mut self,
        target: Target<HandleId, PathId>,
        found: &mut Vec<(Resource, Use)>,
    ) -> u32 {
        match target {
            Target::Handle(handle) => self.files.by_handle(handle),
            Target::Path(path) => {
                self.name(path, Shared, found);
                self.files.by_path(path)
            }
        }
    }
}

/// The known paths of the directories above a path.
fn parents_of(path: PathId, paths: &Paths, by_bytes: &FxHashMap<&[u8], PathId>) -> Vec<PathId> {
    let bytes = paths.get(path);
    let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let above = slashes.filter_map(|(at, _)| by_bytes.get(&bytes[..at]).copied());
    above.filter(|above| *above != path).collect()
}

/// A call on a name that failed has only looked at it.
fn changes(call: &Call) -> Use {
    match call.outcome {
        Outcome::Failed(_) => Shared,
        _ => Exclusive,
    }
}

/// Bytes that were transferred; those asked for, if that is not known.
fn done(call: &Call, asked: u64) -> u64 {
    match call.outcome {
        Outcome::Value(done) => u64::try_from(done).unwrap_or(0),
        Outcome::Failed(_) => 0,
        _ => asked,
    }
}

/// Which file a name or an open file stands for, and how large it is known to be.
#[derive(Default)]
struct Files {
    by_name: FxHashMap<PathId, u32>,
    /// Names of which a call told that something is there, whatever a call thought before that failed.
    there: FxHashSet<PathId>,
    opened: FxHashMap<HandleId, u32>,
    appends: FxHashMap<HandleId, ()>,
    /// Bytes that are known to be there, by file.
    sizes: Vec<u64>,
}

impl Files {
    fn new_file(&mut self) -> u32 {
        self.sizes.push(0);
        self.sizes.len() as u32 - 1
    }

    fn by_path(&mut self, path: PathId) -> u32 {
        if let Some(file) = self.by_name.get(&path) {
            return *file;
        }
        let file = self.new_file();
        self.by_name.insert(path, file);
        file
    }

    fn by_handle(&mut self, handle: HandleId) -> u32 {
        if let Some(file) = self.opened.get(&handle) {
            return *file;
        }
        let file = self.new_file();
        self.opened.insert(handle, file);
        file
    }

    fn forget(&mut self, path: PathId) {
        self.by_name.remove(&path);
        self.there.remove(&path);
    }

    fn rename(&mut self, from: PathId, to: PathId, exchange: bool) {
        let moved = self.by_path(from);
        let replaced = self.by_name.insert(to, moved);
        match replaced.filter(|_| exchange) {
            Some(other) => self.by_name.insert(from, other),
            None => self.by_name.remove(&from),
        };
    }

    /// True if a write up to `end` may make the file longer; it is that long from now on.
    fn grows_to(&mut self, file: u32, end: u64) -> bool {
        let known = &mut self.sizes[file as usize];
        let grows = end > *known;
        *known = end.max(*known);
        grows
    }

    fn truncate(&mut self, file: u32, size: i64) {
        self.sizes[file as usize] = u64::try_from(size).unwrap_or(0);
    }
}
