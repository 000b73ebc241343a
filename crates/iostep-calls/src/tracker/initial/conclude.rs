//! What each call tells of the beginning.

use iostep_model::syscall::raw::{Returned, Seen};
use iostep_model::syscall::{
    Content, Errno, InitialFile, InitialKind, OpenFlags, Operation, Paths, Target,
};

use super::tree::{DirectoryEntry, Found, InodeId, Kind, Origin, Tree};

const EISDIR: Errno = Errno(21);
/// include/uapi/linux/fs.h.
const RENAME_EXCHANGE: u32 = 2;
/// include/uapi/linux/falloc.h: sizes stay as they are, or shrink, or are not what they seem.
const FALLOC_CHANGES_NO_SIZE: u32 = 0x01;

/// How a call ended, as far as it tells of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tracker) enum Ended {
    Worked,
    Failed(Errno),
    /// Not known.
    Unknown,
}

impl From<Returned> for Ended {
    fn from(returned: Returned) -> Ended {
        match returned {
            Returned::Value(_) => Ended::Worked,
            Returned::Failed(errno) => Ended::Failed(errno),
            Returned::Unfinished | Returned::Unknown => Ended::Unknown,
        }
    }
}

/// What is known of the beginning, and of the names as they are now.
#[derive(Debug)]
pub(in crate::tracker) struct Conclusions {
    tree: Tree,
}

impl Conclusions {
    pub(in crate::tracker) fn new() -> Conclusions {
        Conclusions { tree: Tree::new() }
    }

    /// Everything concluded or seen, each path once.
    pub(in crate::tracker) fn initial(&self, paths: &mut Paths) -> Vec<InitialFile> {
        self.tree.initial(paths)
    }

    /// An open. Gives the inode that it opened.
    pub(in crate::tracker) fn open(
        &mut self,
        path: &[u8],
        flags: OpenFlags,
        ended: Ended,
        seen: Option<&Seen>,
    ) -> Option<InodeId> {
        let follow = !flags.has(OpenFlags::O_NOFOLLOW);
        if let Some(seen) = seen {
            self.seen(path, follow, seen);
        }
        if flags.has(OpenFlags::O_TMPFILE) {
            if ended == Ended::Worked {
                self.is_directory(path);
            }
            return None;
        }
        let creates = flags.has(OpenFlags::O_CREAT);
        match ended {
            Ended::Worked if creates => self.created(path, follow, flags),
            Ended::Worked => {
                let inode = self.exists(path, follow)?;
                if flags.has(OpenFlags::O_DIRECTORY) {
                    self.tree[inode].kind = Kind::Directory;
                }
                if flags.has(OpenFlags::O_TRUNC) {
                    self.resized(inode, 0);
                }
                Some(inode)
            }
            // With `O_CREAT` it is the directory that is missing, and so the file is too.
            Ended::Failed(errno) => {
                self.failed(path, follow, errno);
                None
            }
            Ended::Unknown => None,
        }
    }

    /// An open with `O_CREAT` that worked.
    fn created(&mut self, path: &[u8], follow: bool, flags: OpenFlags) -> Option<InodeId> {
        let place = self.tree.place(path, follow, true)?;
        let exclusive = flags.has(OpenFlags::O_EXCL);
        let inode = match self.tree.find(&place) {
            Found::Inode(inode) if !exclusive => inode,
            Found::Untouched if !exclusive => self.tree.touch_perhaps(&place),
            // An exclusive open says that nothing is there, whatever was thought.
            Found::Inode(_) | Found::Absent => self.tree.make(&place, Kind::File),
            Found::Untouched => {
                self.tree.touch_absent(&place, false);
                self.tree.make(&place, Kind::File)
            }
        };
        if self.tree[inode].kind == Kind::Unknown {
            self.tree[inode].kind = Kind::File;
        }
        if flags.has(OpenFlags::O_TRUNC) {
            self.resized(inode, 0);
        }
        Some(inode)
    }

    /// Any other call that names files by paths or changes them. `inode_of` tells a handle's.
    pub(in crate::tracker) fn call<H: Copy>(
        &mut self,
        operation: &Operation<H, iostep_model::syscall::PathId>,
        ended: Ended,
        paths: &Paths,
        seen: Option<&Seen>,
        inode_of: impl Fn(H) -> Option<InodeId>,
    ) {
        use Operation as O;
        match operation {
            O::Stat { target, follow } => self.target(*target, *follow, ended, paths, seen),
            O::StatFilesystem { target } | O::SetTimes { target } => {
                self.target(*target, true, ended, paths, seen);
            }
            O::SetMode { target, .. } | O::SetOwner { target, .. } => {
                self.target(*target, true, ended, paths, seen);
            }
            O::Access { path, .. } => {
                self.target::<H>(Target::Path(*path), true, ended, paths, seen);
            }
            O::ReadLink { path, .. } => {
                self.target::<H>(Target::Path(*path), false, ended, paths, seen);
            }
            O::Truncate { target, size } => {
                self.target(*target, true, ended, paths, seen);
                let inode = match target {
                    Target::Handle(handle) => inode_of(*handle),
                    Target::Path(path) if ended == Ended::Worked => {
                        self.exists(paths.get(*path), true)
                    }
                    Target::Path(_) => None,
                };
                if let (Some(inode), Ended::Worked) = (inode, ended) {
                    self.resized(inode, u64::try_from(*size).unwrap_or(0));
                }
            }
            O::Allocate {
                handle,
                mode,
                offset,
                size,
            } => {
                let grows = ended == Ended::Worked && mode & FALLOC_CHANGES_NO_SIZE == 0;
                if let (Some(inode), true) = (inode_of(*handle), grows) {
                    let end = offset.saturating_add(*size);
                    self.wrote(inode, u64::try_from(end).unwrap_or(0));
                }
            }
            O::ReadDirectory { handle, .. } if ended == Ended::Worked => {
                if let Some(inode) = inode_of(*handle) {
                    self.tree[inode].kind = Kind::Directory;
                }
            }
            _ => self.names(operation, ended, paths, seen),
        }
    }

    /// A call that makes, moves or removes names.
    fn names<H>(
        &mut self,
        operation: &Operation<H, iostep_model::syscall::PathId>,
        ended: Ended,
        paths: &Paths,
        seen: Option<&Seen>,
    ) {
        use Operation as O;
        let (O::Rename { from: path, .. }
        | O::Link { from: path, .. }
        | O::Symlink { path, .. }
        | O::Unlink { path }
        | O::MakeDirectory { path, .. }
        | O::RemoveDirectory { path }) = operation
        else {
            return;
        };
        let path = paths.get(*path);
        if let Some(seen) = seen {
            self.seen(path, false, seen);
        }
        if let Ended::Failed(errno) = ended {
            match operation {
                O::Unlink { .. } | O::RemoveDirectory { .. } => self.failed(path, false, errno),
                O::Symlink { .. } if errno == Errno::EEXIST => drop(self.exists(path, false)),
                O::MakeDirectory { .. } if errno == Errno::EEXIST => self.is_directory(path),
                // Which of the two names is meant is not known.
                _ => {}
            }
        }
        if ended != Ended::Worked {
            return;
        }
        match operation {
            O::Rename { to, flags, .. } => self.rename(path, paths.get(*to), *flags),
            O::Link { to, .. } => {
                let inode = self.exists(path, false);
                if let (Some(inode), Some(place)) = (inode, self.vacant(paths.get(*to))) {
                    self.tree.bind(&place, inode);
                }
            }
            O::Symlink { content, .. } => {
                if let Some(place) = self.vacant(path) {
                    let kind = Kind::Symlink(paths.get(*content).into());
                    self.tree.make(&place, kind);
                }
            }
            O::MakeDirectory { .. } => {
                if let Some(place) = self.vacant(path) {
                    self.tree.make(&place, Kind::Directory);
                }
            }
            _ => {
                if matches!(operation, O::RemoveDirectory { .. }) {
                    self.is_directory(path);
                }
                if self.exists(path, false).is_some()
                    && let Some(place) = self.tree.place(path, false, true)
                {
                    self.tree.unbind(&place);
                }
            }
        }
    }

    fn rename(&mut self, from: &[u8], to: &[u8], flags: u32) {
        let Some(inode) = self.exists(from, false) else {
            return;
        };
        let exchanges = flags & RENAME_EXCHANGE != 0;
        let other = exchanges.then(|| self.exists(to, false));
        if other == Some(None) {
            return;
        }
        let places = (
            self.tree.place(from, false, true),
            self.tree.place(to, false, true),
        );
        if let (Some(from), Some(to)) = places {
            // Whether rename replaced something there cannot be told.
            self.tree.hold(inode);
            match other.flatten() {
                Some(other) => self.tree.bind(&from, other),
                None => self.tree.unbind(&from),
            }
            self.tree.bind(&to, inode);
            self.tree.release(inode);
        }
    }

    /// A call that only names a file.
    fn target<H>(
        &mut self,
        target: Target<H, iostep_model::syscall::PathId>,
        follow: bool,
        ended: Ended,
        paths: &Paths,
        seen: Option<&Seen>,
    ) {
        let Target::Path(path) = target else {
            return;
        };
        let path = paths.get(path);
        if let Some(seen) = seen {
            self.seen(path, follow, seen);
        }
        match ended {
            Ended::Worked => drop(self.exists(path, follow)),
            Ended::Failed(errno) => self.failed(path, follow, errno),
            Ended::Unknown => {}
        }
    }

    /// A failure that tells of the file at the end of a path.
    fn failed(&mut self, path: &[u8], follow: bool, errno: Errno) {
        match errno {
            Errno::ENOENT => {
                if let Some(place) = self.tree.place(path, follow, false) {
                    self.nothing_at(&place);
                }
            }
            Errno::EEXIST => drop(self.exists(path, follow)),
            EISDIR => self.is_directory(path),
            _ => {}
        }
    }

    /// Something is at the end of a path.
    fn exists(&mut self, path: &[u8], follow: bool) -> Option<InodeId> {
        let place = self.tree.place(path, follow, true)?;
        let inode = match self.tree.find(&place) {
            Found::Inode(inode) => inode,
            Found::Untouched => self.tree.touch(&place),
            // It came while nobody looked: another program, or a call that was lost.
            Found::Absent => self.tree.make(&place, Kind::Unknown),
        };
        if path.ends_with(b"/") && self.tree[inode].kind == Kind::Unknown {
            self.tree[inode].kind = Kind::Directory;
        }
        self.was_there(inode);
        self.tree[inode].followed |= follow;
        Some(inode)
    }

    fn was_there(&mut self, inode: InodeId) {
        let inode = &mut self.tree[inode];
        // A file that an open with `O_CREAT` may have made is there since, and tells nothing.
        if inode.origin == Origin::Perhaps && inode.kind != Kind::File {
            inode.origin = Origin::Initial;
        }
    }

    /// A directory is at the end of a path.
    pub(in crate::tracker) fn is_directory(&mut self, path: &[u8]) {
        if let Some(inode) = self.exists(path, true) {
            self.tree[inode].kind = Kind::Directory;
        }
    }

    /// A symbolic link with these words is at a path, unless a call took it for what it leads to.
    pub(in crate::tracker) fn is_link(&mut self, path: &[u8], content: &[u8]) {
        let Some(place) = self.tree.place(path, false, true) else {
            return;
        };
        let inode = match self.tree.find(&place) {
            Found::Untouched => self.tree.touch(&place),
            Found::Inode(inode) => inode,
            Found::Absent => return,
        };
        let known = &mut self.tree[inode];
        let untold = known.kind == Kind::Unknown && !known.followed;
        if known.origin == Origin::Initial && untold {
            known.kind = Kind::Symlink(content.into());
            known.seen = Some(Content::Data);
        }
    }

    /// True if the path leads to what is known to be a directory.
    pub(in crate::tracker) fn leads_to_directory(&mut self, path: &[u8]) -> bool {
        let place = self.tree.place(path, false, false);
        match place.map(|place| self.tree.find(&place)) {
            Some(Found::Inode(inode)) => self.tree.is_directory(inode),
            _ => false,
        }
    }

    /// A place where nothing was when a call made something there.
    fn vacant(&mut self, path: &[u8]) -> Option<DirectoryEntry> {
        let place = self.tree.place(path, false, true)?;
        self.nothing_at(&place);
        Some(place)
    }

    /// Nothing is at a place, and nothing was if no call told otherwise. A directory in which a
    /// file was not found need not have been there itself.
    fn nothing_at(&mut self, place: &DirectoryEntry) {
        let untold = match self.tree.find(place) {
            Found::Untouched => true,
            Found::Absent => false,
            Found::Inode(inode) => {
                let inode = &self.tree[inode];
                inode.origin == Origin::Perhaps && inode.kind == Kind::Directory
            }
        };
        if untold {
            self.tree.touch_absent(place, false);
        }
    }

    /// What the recorder saw of the file before the call. The words of a symbolic link are not
    /// among it.
    fn seen(&mut self, path: &[u8], follow: bool, seen: &Seen) {
        let there = seen.kind != InitialKind::Absent;
        let Some(place) = self.tree.place(path, follow, there) else {
            return;
        };
        let found = self.tree.find(&place);
        if !there {
            if found == Found::Untouched {
                self.tree.touch_absent(&place, true);
            }
            return;
        }
        let inode = match found {
            Found::Inode(inode) => inode,
            Found::Absent => return,
            Found::Untouched => match self.tree.identities.get(&seen.identity) {
                Some(&known) if !self.tree.is_directory(known) => {
                    return self.tree.touch_link(&place, known);
                }
                _ => self.tree.touch(&place),
            },
        };
        let known = &mut self.tree[inode];
        if known.origin == Origin::Made || known.changed || known.seen.is_some() {
            return;
        }
        known.origin = Origin::Initial;
        known.seen = Some(Content::Data);
        match &seen.kind {
            InitialKind::File { size, content } => {
                known.kind = Kind::File;
                known.size = *size;
                known.seen = Some(content.clone());
            }
            InitialKind::Directory => known.kind = Kind::Directory,
            _ => {}
        }
        self.tree.identities.insert(seen.identity, inode);
    }

    /// An open file of the inode is there.
    pub(in crate::tracker) fn hold(&mut self, inode: InodeId) {
        self.tree.hold(inode);
    }

    /// An open file of the inode is gone.
    pub(in crate::tracker) fn release(&mut self, inode: InodeId) {
        self.tree.release(inode);
    }

    /// Data up to `end` was read, or the file was seen to reach there, bytes.
    pub(in crate::tracker) fn reached(&mut self, inode: InodeId, end: u64) {
        let inode = &mut self.tree[inode];
        let tells = inode.origin != Origin::Made && !inode.truncated;
        if !tells || end <= inode.written_end.max(inode.size) {
            return;
        }
        inode.origin = Origin::Initial;
        if inode.seen.is_none() {
            inode.size = end;
        }
    }

    /// Data up to `end` was written, bytes.
    pub(in crate::tracker) fn wrote(&mut self, inode: InodeId, end: u64) {
        let inode = &mut self.tree[inode];
        inode.changed = true;
        inode.written_end = inode.written_end.max(end);
    }

    /// The file has this size now, bytes.
    fn resized(&mut self, inode: InodeId, size: u64) {
        let inode = &mut self.tree[inode];
        inode.changed = true;
        inode.truncated = true;
        inode.written_end = size;
    }

    /// Where the file's end is now, at least, bytes.
    pub(in crate::tracker) fn end(&self, inode: InodeId) -> u64 {
        let inode = &self.tree[inode];
        match inode.truncated {
            true => inode.written_end,
            false => inode.size.max(inode.written_end),
        }
    }
}
