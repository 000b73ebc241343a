//! Calls on files: what they mean, what they change, what they tell of the beginning.

use iostep_model::syscall::raw::{Action, Descriptor, Path, Returned, Seen};
use iostep_model::syscall::{
    Direction, Errno, HandleId, OpenFlags, Operation, Outcome, PathId, Syscall, Target, Whence,
};

use super::descriptors::{Entry, Opened};
use super::initial::Ended;
use super::mapping::Part;
use super::resolve::{Found, Resolve, Wanted, no_file};
use super::{At, Kept, MOST_HANDLES, Stop, Tracker, place, plain};
use crate::sink::Sink;

type Step = std::result::Result<Kept, Stop>;

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
            other => by_handle(other),
        };
        let wanted = match operation {
            Operation::ReadDirectory { .. } => Wanted::Directory,
            _ => Wanted::File,
        };
        let mut resolve = Resolve {
            tracker: self,
            at: *at,
            wanted,
        };
        let operation = operation.translate(&mut resolve)?;
        self.conclude(at, &operation, seen);
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
        let path = match self.path(at, path) {
            Ok(path) => path,
            Err(Stop::LeftOut(reason)) => {
                if let Some(number) = number {
                    self.insert_left_out(at, number, reason, close_on_exec);
                }
                return Err(Stop::LeftOut(reason));
            }
            Err(failed) => return Err(failed),
        };
        let ended = Ended::from(at.returned);
        let inode = self.initial.open(self.paths.get(path), flags, ended, seen);
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
        let operation = Operation::Open { path, flags, mode };
        self.call(at, syscall, operation, outcome)?;
        Ok(Kept::Call)
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
        if matches!(at.returned, Returned::Failed(_)) {
            return Ok(Kept::Followed);
        }
        self.absolute(at, &path)?;
        if place::left_out(&self.text).is_none() {
            self.initial.is_directory(&self.text);
        }
        let slot = self.task(at.tid).directory;
        self.tasks.directories[slot] = self.text.as_slice().into();
        Ok(Kept::Followed)
    }

    /// The recorder read a symbolic link, as a call does that comes now.
    pub(super) fn link_says(
        &mut self,
        at: &At,
        path: &Path<'_>,
        content: &[u8],
    ) -> std::result::Result<(), Stop> {
        match self.absolute(at, path) {
            // The call itself is left out then, and says so.
            Err(Stop::LeftOut(_)) => return Ok(()),
            other => other?,
        }
        if place::left_out(&self.text).is_none() {
            self.initial.is_link(&self.text, content);
        }
        Ok(())
    }

    /// What a call tells of the beginning, and what it changes for later ones.
    fn conclude(&mut self, at: &At, operation: &Operation<HandleId, PathId>, seen: Option<&Seen>) {
        let ended = Ended::from(at.returned);
        let done = match at.returned {
            Returned::Value(value) => value,
            _ => 0,
        };
        match *operation {
            Operation::Transfer {
                direction,
                handle,
                offset,
                ..
            } => self.transferred(handle, direction, offset, done),
            Operation::Copy {
                from,
                from_offset,
                to,
                to_offset,
                ..
            } => {
                self.transferred(from, Direction::Read, from_offset, done);
                self.transferred(to, Direction::Write, to_offset, done);
            }
            Operation::Seek {
                handle,
                offset,
                whence,
            } if ended == Ended::Worked => {
                if let Some(file) = self.files.get_mut(&handle) {
                    file.position = done;
                    let end = i64::try_from(done).unwrap_or(i64::MAX);
                    let end = u64::try_from(end.saturating_sub(offset)).unwrap_or(0);
                    if let (Some(inode), Whence::End) = (file.inode, whence) {
                        self.initial.reached(inode, end);
                    }
                }
            }
            Operation::Map {
                handle,
                offset,
                size,
                ..
            } if ended == Ended::Worked => {
                let process = self.task(at.tid).process;
                let part = Part {
                    handle,
                    offset,
                    size,
                };
                self.tasks.processes[process].mappings.add(done, part);
            }
            _ => {
                let files = &self.files;
                let inode_of = |handle| files.get(&handle).and_then(|file| file.inode);
                let initial = &mut self.initial;
                initial.call(operation, ended, &self.paths, seen, inode_of);
                if let (Operation::Rename { from, to, .. }, Ended::Worked) = (operation, ended) {
                    self.move_directory(*from, *to);
                }
            }
        }
    }

    /// `done` bytes were read or written.
    fn transferred(
        &mut self,
        handle: HandleId,
        direction: Direction,
        offset: Option<i64>,
        done: u64,
    ) {
        let Some(file) = self.files.get_mut(&handle) else {
            return;
        };
        let mut from = match offset {
            Some(offset) => u64::try_from(offset).unwrap_or(0),
            None => file.position,
        };
        if let (Direction::Write, true, Some(inode)) = (direction, file.appends, file.inode) {
            from = self.initial.end(inode);
        }
        let end = from.saturating_add(done);
        if offset.is_none() {
            file.position = end;
        }
        match (file.inode, direction) {
            (Some(inode), Direction::Read) if done > 0 => self.initial.reached(inode, end),
            (Some(inode), Direction::Write) if done > 0 => self.initial.wrote(inode, end),
            _ => {}
        }
    }

    /// Open directories below a renamed one, and current ones, have other paths now.
    fn move_directory(&mut self, from: PathId, to: PathId) {
        let (from, to) = (self.paths.get(from).to_vec(), self.paths.get(to).to_vec());
        if !self.initial.leads_to_directory(&to) {
            return;
        }
        for file in self.files.values_mut() {
            if let Some(moved) = moved(self.paths.get(file.path), &from, &to) {
                file.path = self.paths.intern(&moved);
            }
        }
        for directory in self.tasks.directories.iter_mut() {
            if let Some(moved) = moved(directory, &from, &to) {
                *directory = moved.into();
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
