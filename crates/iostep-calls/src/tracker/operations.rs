//! Calls on files: what they mean, what they change, what they tell of the beginning.

use iostep_model::syscall::constants::AT_SYMLINK_FOLLOW;
use iostep_model::syscall::raw::{Action, Descriptor, Path, Returned, Seen};
use iostep_model::syscall::{
    Errno, HandleId, OpenFlags, Operation, Outcome, PathId, Syscall, Target,
};

use super::descriptors::{Entry, Opened};
use super::initial::Ended;
use super::mapping::Part;
use super::pool::Slot;
use super::resolve::{Found, Lead, Resolve, Wanted, no_file};
use super::{At, Kept, MOST_HANDLES, Step, Stop, Tracker, place, plain};
use crate::sink::Sink;

impl<S: Sink> Tracker<S> {
    pub(super) fn operation(
        &mut self,
        at: &At,
        syscall: Syscall,
        operation: Operation<Descriptor<'_>, Path<'_>>,
        seen: Option<&Seen>,
    ) -> Step {
        let operation = match operation {
            Operation::Open { path, flags, mode } => {
                return self.open(at, syscall, &path, (flags, mode), seen);
            }
            Operation::Close { handle } => return self.close(at, syscall, &handle),
            copy @ Operation::Copy { .. } => return self.copied(at, syscall, copy),
            other => by_handle(other),
        };
        let wanted = match operation {
            Operation::ReadDirectory { .. } => Wanted::Directory,
            _ => Wanted::File,
        };
        let follow = match operation {
            Operation::Stat { follow, .. } => follow,
            Operation::Link { flags, .. } => flags & AT_SYMLINK_FOLLOW != 0,
            _ => syscall != Syscall::Lchown,
        };
        let mut resolve = Resolve {
            tracker: self,
            at: *at,
            wanted,
            follow,
        };
        let operation = operation.translate(&mut resolve)?;
        self.conclude(at, &operation, seen)?;
        let outcome = match operation {
            Operation::Map { .. } if matches!(at.returned, Returned::Value(_)) => Outcome::Value(0),
            _ => plain(at.returned),
        };
        self.call(at, syscall, operation, outcome)?;
        Ok(Kept::Call)
    }

    fn open(
        &mut self,
        at: &At,
        syscall: Syscall,
        path: &Path<'_>,
        (flags, mode): (OpenFlags, u32),
        seen: Option<&Seen>,
    ) -> Step {
        let number = match at.returned {
            Returned::Value(number) => i32::try_from(number).ok(),
            _ => None,
        };
        let close_on_exec = flags.has(OpenFlags::O_CLOEXEC);
        // One that shall make the file takes no link for it (open(2), `O_EXCL`).
        let exclusive = flags.has(OpenFlags::O_CREAT) && flags.has(OpenFlags::O_EXCL);
        let follow = !flags.has(OpenFlags::O_NOFOLLOW) && !exclusive;
        let target = match self.target(at, path, follow) {
            Ok(target) => target,
            Err(Stop::LeftOut(reason)) => {
                if let Some(number) = number {
                    self.insert_left_out(at, number, reason, close_on_exec);
                }
                return Err(Stop::LeftOut(reason));
            }
            Err(failed) => return Err(failed),
        };
        let ended = Ended::from(at.returned);
        self.has_data(
            at,
            target,
            follow,
            number.map(|number| (number, close_on_exec)),
        )?;
        let (path, inode) = match target {
            Target::Path(path) => {
                let initial = &mut self.initial;
                let inode = initial.open(self.paths.get(path), flags, ended, seen);
                (path, inode)
            }
            Target::Handle(of) => {
                let inode = self.files.get(&of).and_then(|file| file.inode);
                (
                    self.path_of(of)?,
                    self.initial.reopen(inode, flags, ended, seen),
                )
            }
        };
        let outcome = match number {
            Some(number) => {
                let handle = self.add_file(path, inode, flags.has(OpenFlags::O_APPEND))?;
                if let Some(open_file) = seen.map(|seen| seen.open_file).filter(|file| *file != 0) {
                    self.same_files.insert(open_file, handle);
                }
                let entry = Entry {
                    is: Opened::File(handle),
                    close_on_exec,
                    since_ns: at.end_ns(),
                };
                let table = self.task(at.tid).descriptors;
                self.tasks.descriptors[table].insert(number, entry);
                Outcome::Handle(handle)
            }
            None => plain(at.returned),
        };
        let operation = match target {
            Target::Path(path) => Operation::Open { path, flags, mode },
            Target::Handle(handle) => Operation::Reopen {
                handle,
                flags,
                mode,
            },
        };
        self.call(at, syscall, operation, outcome)?;
        Ok(Kept::Call)
    }

    /// Leaves out an open of what a call said is no file, with the descriptor that it gave.
    fn has_data(
        &mut self,
        at: &At,
        target: Target<HandleId, PathId>,
        follow: bool,
        opened: Option<(i32, bool)>,
    ) -> std::result::Result<(), Stop> {
        let Target::Path(path) = target else {
            return Ok(());
        };
        let kind = self.initial.is_without_data(self.paths.get(path), follow);
        let Some(reason) = kind.map(place::reason) else {
            return Ok(());
        };
        if let Some((number, close_on_exec)) = opened {
            self.insert_left_out(at, number, reason, close_on_exec);
        }
        Err(Stop::LeftOut(reason))
    }

    /// A close takes the descriptor away, whatever it returned (close(2)), `EBADF` apart.
    fn close(&mut self, at: &At, syscall: Syscall, descriptor: &Descriptor<'_>) -> Step {
        if at.returned == Returned::Failed(Errno::EBADF) {
            return Err(Stop::LeftOut("closed descriptor"));
        }
        let table = self.task(at.tid).descriptors;
        let table = &mut self.tasks.descriptors[table];
        match table.close(descriptor.number, at.start_ns, at.end_ns()) {
            Some(Opened::File(handle)) => {
                self.drop_references(&[handle]);
                self.call(at, syscall, Operation::Close { handle }, plain(at.returned))?;
                Ok(Kept::Call)
            }
            Some(Opened::LeftOut(reason)) => Err(Stop::LeftOut(reason)),
            None => {
                let known = descriptor.known.as_ref().and_then(no_file);
                Err(Stop::LeftOut(
                    known.unwrap_or("close of what was never opened"),
                ))
            }
        }
    }

    pub(super) fn close_range(
        &mut self,
        at: &At,
        first: u32,
        last: u32,
        on_exec_only: bool,
    ) -> Step {
        if matches!(at.returned, Returned::Failed(_)) {
            return Ok(Kept::Followed);
        }
        let table = self.task(at.tid).descriptors;
        let table = &mut self.tasks.descriptors[table];
        let mut closed = Vec::new();
        for number in table.numbers(first, last) {
            if !on_exec_only {
                let was = table.close(number, at.start_ns, at.end_ns());
                closed.extend(was.and_then(Opened::file));
            } else if let Some(entry) = table.entry(number) {
                entry.close_on_exec = true;
            }
        }
        self.close_many(at, Syscall::CloseRange, closed.into())
    }

    /// Records that several descriptors were closed at once.
    pub(super) fn close_many(
        &mut self,
        at: &At,
        syscall: Syscall,
        handles: Box<[HandleId]>,
    ) -> Step {
        if handles.is_empty() {
            return Ok(Kept::Followed);
        }
        self.drop_references(&handles);
        for handles in handles.chunks(MOST_HANDLES) {
            let handles = handles.into();
            let operation = Operation::CloseMany { handles };
            self.call(at, syscall, operation, plain(at.returned))?;
        }
        Ok(Kept::Call)
    }

    pub(super) fn set_close_on_exec(&mut self, at: &At, number: i32, on: bool) -> Kept {
        let table = self.task(at.tid).descriptors;
        if let Some(entry) = self.tasks.descriptors[table].entry(number)
            && !matches!(at.returned, Returned::Failed(_))
        {
            entry.close_on_exec = on;
        }
        Kept::Followed
    }

    pub(super) fn duplicate(
        &mut self,
        at: &At,
        syscall: Syscall,
        from: Descriptor<'_>,
        close_on_exec: bool,
    ) -> Step {
        let number = match at.returned {
            Returned::Value(number) => i32::try_from(number).ok(),
            _ => None,
        };
        if number == Some(from.number) {
            return Ok(Kept::Followed);
        }
        let is = match self.descriptor(at, &from, Wanted::File) {
            Ok(handle) => Opened::File(handle),
            Err(Stop::LeftOut(reason)) => Opened::LeftOut(reason),
            Err(failed) => return Err(failed),
        };
        let table = self.task(at.tid).descriptors;
        let table = &mut self.tasks.descriptors[table];
        let mut replaces = None;
        if let Some(number) = number {
            // dup and fcntl take a free number: what is there is still being closed.
            if matches!(syscall, Syscall::Dup2 | Syscall::Dup3) {
                replaces = table.replace(number, at.end_ns()).and_then(Opened::file);
            }
            let entry = Entry {
                is,
                close_on_exec,
                since_ns: at.end_ns(),
            };
            table.insert(number, entry);
        }
        let outcome = plain(at.returned);
        let replaced = replaces.as_slice();
        match is {
            Opened::File(handle) => {
                let mut outcome = outcome;
                if number.is_some() {
                    self.add_references(&[handle]);
                    outcome = Outcome::Handle(handle);
                }
                self.drop_references(replaced);
                let operation = Operation::Duplicate { handle, replaces };
                self.call(at, syscall, operation, outcome)?;
                Ok(Kept::Call)
            }
            Opened::LeftOut(reason) => match replaces {
                Some(handle) => {
                    self.drop_references(replaced);
                    self.call(at, syscall, Operation::Close { handle }, outcome)?;
                    Ok(Kept::Call)
                }
                None => Err(Stop::LeftOut(reason)),
            },
        }
    }

    pub(super) fn unmap(&mut self, at: &At, address: u64, size: u64) -> Step {
        let process = self.task(at.tid).process;
        let mappings = &mut self.tasks.processes[process].mappings;
        let parts = match at.returned {
            Returned::Failed(_) => mappings.parts(address, size),
            _ => mappings.remove(address, size),
        };
        self.each_part(at, Syscall::Munmap, &parts, |part| Operation::Unmap {
            handle: part.handle,
            offset: part.offset,
            size: part.size,
        })
    }

    /// A mapping is somewhere else, or longer, from now on.
    pub(super) fn remap(&mut self, at: &At, address: u64, size: u64, new_size: u64) -> Step {
        let process = self.task(at.tid).process;
        let mappings = &mut self.tasks.processes[process].mappings;
        let parts = mappings.parts(address, size);
        if let Returned::Value(new_address) = at.returned
            && let [part] = parts[..]
        {
            mappings.remove(address, size);
            let part = Part {
                size: new_size,
                ..part
            };
            mappings.add(new_address, part);
        }
        let returned = match at.returned {
            // The address means nothing in a recording.
            Returned::Value(_) => Returned::Value(0),
            other => other,
        };
        let at = At { returned, ..*at };
        self.each_part(&at, Syscall::Mremap, &parts, |part| Operation::Remap {
            handle: part.handle,
            offset: part.offset,
            size: part.size,
            new_size,
        })
    }

    pub(super) fn sync_map(&mut self, at: &At, address: u64, size: u64, flags: u32) -> Step {
        let process = self.task(at.tid).process;
        let parts = self.tasks.processes[process].mappings.parts(address, size);
        self.each_part(at, Syscall::Msync, &parts, |part| Operation::SyncMap {
            handle: part.handle,
            offset: part.offset,
            size: part.size,
            flags,
        })
    }

    /// One call of the program, one of the recording for each file that lies there.
    fn each_part(
        &mut self,
        at: &At,
        syscall: Syscall,
        parts: &[Part],
        operation: impl Fn(&Part) -> Operation<HandleId, PathId>,
    ) -> Step {
        if parts.is_empty() {
            return Err(Stop::LeftOut("memory without a file"));
        }
        for part in parts {
            self.call(at, syscall, operation(part), plain(at.returned))?;
        }
        Ok(Kept::Call)
    }

    pub(super) fn present(&mut self, at: &At, action: Action<'_>, seen: Option<&Seen>) -> Step {
        let Action::Present {
            number,
            is,
            flags,
            position,
            same_as,
            received,
        } = action
        else {
            return Ok(Kept::Note);
        };
        let kept = match received {
            true => Kept::Received,
            false => Kept::Present,
        };
        let close_on_exec = flags.has(OpenFlags::O_CLOEXEC);
        if let Some(reason) = no_file(&is) {
            self.insert_left_out(at, number, reason, close_on_exec);
            return Err(Stop::LeftOut(reason));
        }
        let shared = self.same_files.get(&same_as).copied();
        let shared = shared.filter(|handle| same_as != 0 && self.files.contains_key(handle));
        if let Some(handle) = shared {
            let entry = Entry {
                is: Opened::File(handle),
                close_on_exec,
                since_ns: at.start_ns,
            };
            let table = self.task(at.tid).descriptors;
            self.tasks.descriptors[table].insert(number, entry);
            self.add_references(&[handle]);
            let replaces = None;
            let operation = Operation::Duplicate { handle, replaces };
            self.call(at, Syscall::Present, operation, Outcome::Handle(handle))?;
            return Ok(kept);
        }
        let found = Found {
            number,
            path: is.path.as_deref(),
            flags,
            position,
        };
        let handle = self.open_found(at, &found, seen)?;
        if same_as != 0 {
            self.same_files.insert(same_as, handle);
        }
        Ok(kept)
    }

    pub(super) fn change_directory(&mut self, at: &At, path: Path<'_>) -> Step {
        let Some(slot) = self.enter(at, &path)? else {
            return Ok(Kept::Followed);
        };
        self.tasks.directories[slot].current = self.text.as_slice().into();
        Ok(Kept::Followed)
    }

    /// chroot: absolute paths begin there from now on.
    pub(super) fn change_root(&mut self, at: &At, path: Path<'_>) -> Step {
        let Some(slot) = self.enter(at, &path)? else {
            return Ok(Kept::Followed);
        };
        let root = trimmed(&self.text);
        self.tasks.directories[slot].root = match root {
            b"/." => Box::default(),
            root => root.into(),
        };
        Ok(Kept::Followed)
    }

    /// Follows a path to a directory, which `text` then is. The slot of the task's own directories;
    /// `None` if the call failed.
    fn enter(&mut self, at: &At, path: &Path<'_>) -> std::result::Result<Option<Slot>, Stop> {
        if let Returned::Failed(errno) = at.returned {
            self.failed_to_enter(at, path, errno)?;
            return Ok(None);
        }
        if let Lead::Open(handle) = self.lead(at, path, true)? {
            self.text = self.paths.get(self.path_of(handle)?).to_vec();
        }
        if place::left_out(&self.text).is_none() {
            self.initial.is_directory(&self.text);
        }
        Ok(Some(self.task(at.tid).directory))
    }

    fn failed_to_enter(
        &mut self,
        at: &At,
        path: &Path<'_>,
        errno: Errno,
    ) -> std::result::Result<(), Stop> {
        match self.lead(at, path, false).map(drop) {
            Err(Stop::LeftOut(_)) => return Ok(()),
            other => other?,
        }
        if place::left_out(&self.text).is_none() {
            match errno {
                Errno::ENOTDIR => self.initial.is_no_directory(&self.text),
                errno => self.initial.failed(&self.text, true, errno),
            }
        }
        Ok(())
    }

    /// The recorder read a symbolic link, as a call does that comes now.
    pub(super) fn link_says(
        &mut self,
        at: &At,
        path: &Path<'_>,
        content: &[u8],
    ) -> std::result::Result<(), Stop> {
        match self.lead(at, path, false).map(drop) {
            // The call itself is left out then, and says so.
            Err(Stop::LeftOut(_)) => return Ok(()),
            other => other?,
        }
        if place::left_out(&self.text).is_none() {
            self.initial.is_link(&self.text, content);
        }
        Ok(())
    }

    /// A file is so, as an answer said that a call is still to be told of.
    pub(super) fn tells(
        &mut self,
        at: &At,
        path: &Path<'_>,
        seen: &Seen,
    ) -> std::result::Result<(), Stop> {
        match self.lead(at, path, false).map(drop) {
            // The call itself is left out then, and says so.
            Err(Stop::LeftOut(_)) => return Ok(()),
            other => other?,
        }
        if place::left_out(&self.text).is_none() {
            self.initial.seen(&self.text, false, seen);
        }
        Ok(())
    }

    /// Open directories below a renamed one, and current ones, have other paths now.
    pub(super) fn move_directory(&mut self, from: PathId, to: PathId) {
        let (from, to) = (self.paths.get(from).to_vec(), self.paths.get(to).to_vec());
        if !self.initial.leads_to_directory(&to) {
            return;
        }
        for file in self.files.values_mut() {
            if let Some(moved) = moved(self.paths.get(file.path), &from, &to) {
                file.path = self.paths.intern(&moved);
            }
        }
        for directories in self.tasks.directories.iter_mut() {
            for directory in [&mut directories.current, &mut directories.root] {
                if let Some(moved) = moved(directory, &from, &to) {
                    *directory = moved.into();
                }
            }
        }
    }
}

/// The new path of what lies at or below `from`, which is `to` now.
fn moved(path: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let (from, to) = (trimmed(from), trimmed(to));
    let rest = path.strip_prefix(from)?;
    let below = rest.is_empty() || rest.starts_with(b"/");
    below.then(|| [to, rest].concat())
}

fn trimmed(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}

/// An operation on a path that is empty and means the descriptor beside it (`AT_EMPTY_PATH`).
fn by_handle<'a>(
    operation: Operation<Descriptor<'a>, Path<'a>>,
) -> Operation<Descriptor<'a>, Path<'a>> {
    use Operation as O;
    match operation {
        O::Stat { target, follow } => O::Stat {
            target: own(target),
            follow,
        },
        O::StatFilesystem { target } => O::StatFilesystem {
            target: own(target),
        },
        O::SetMode { target, mode } => O::SetMode {
            target: own(target),
            mode,
        },
        O::SetOwner {
            target,
            user,
            group,
        } => O::SetOwner {
            target: own(target),
            user,
            group,
        },
        O::SetTimes { target } => O::SetTimes {
            target: own(target),
        },
        O::Access { target, mode } => O::Access {
            target: own(target),
            mode,
        },
        O::Link { from, to, flags } => O::Link {
            from: own(from),
            to,
            flags,
        },
        other => other,
    }
}

fn own<'a>(target: Target<Descriptor<'a>, Path<'a>>) -> Target<Descriptor<'a>, Path<'a>> {
    match target {
        Target::Path(Path {
            directory: Some(directory),
            text,
            truncated: false,
        }) if text.is_empty() => Target::Handle(directory),
        other => other,
    }
}
