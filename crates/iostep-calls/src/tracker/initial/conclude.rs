//! What each call tells of the beginning.

use iostep_model::syscall::raw::{Returned, Seen, SeenKind};
use iostep_model::syscall::{Errno, InitialFile, OpenFlags, Operation, PathId, Paths, Target};

use super::tree::{DirectoryEntry, Found, InodeId, Kind, Origin, Tree};

/// include/uapi/linux/fs.h.
const RENAME_EXCHANGE: u32 = 2;
/// include/uapi/linux/falloc.h: sizes stay as they are, or shrink, or are not what they seem.
const FALLOC_CHANGES_NO_SIZE: u32 = 0x01;

/// Asks whether it can be executed (access(2)).
pub(super) const X_OK: u32 = 1;

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
    pub(super) tree: Tree,
    /// FIFOs, sockets or devices were told of.
    pub(super) has_others: bool,
}

impl Conclusions {
    pub(in crate::tracker) fn new() -> Conclusions {
        Conclusions {
            tree: Tree::new(),
            has_others: false,
        }
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
                return Some(self.tree.make_unnamed());
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
            Ended::Failed(errno) => {
                self.open_failed(path, flags, errno);
                None
            }
            Ended::Unknown => None,
        }
    }

    /// An open of an open file of this inode. Gives the inode that it opened.
    pub(in crate::tracker) fn reopen(
        &mut self,
        inode: Option<InodeId>,
        flags: OpenFlags,
        ended: Ended,
        seen: Option<&Seen>,
    ) -> Option<InodeId> {
        let inode = inode.filter(|_| ended == Ended::Worked)?;
        if let Some(seen) = seen {
            self.told(inode, seen);
        }
        let directory = flags.has(OpenFlags::O_DIRECTORY) || flags.has(OpenFlags::O_TMPFILE);
        if directory && self.tree[inode].kind == Kind::Unknown {
            self.tree[inode].kind = Kind::Directory;
        }
        if flags.has(OpenFlags::O_TMPFILE) {
            return Some(self.tree.make_unnamed());
        }
        if flags.has(OpenFlags::O_TRUNC) {
            self.resized(inode, 0);
        }
        Some(inode)
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
        operation: &Operation<H, PathId>,
        ended: Ended,
        paths: &Paths,
        seen: Option<&Seen>,
        inode_of: impl Fn(H) -> Option<InodeId>,
    ) {
        use Operation as O;
        if let Ended::Failed(errno) = ended {
            return self.call_failed(operation, errno, paths, inode_of);
        }
        match operation {
            O::Stat { target, follow } => {
                if let (Some(seen), Ended::Worked) = (seen, ended) {
                    self.answered(*target, *follow, seen, paths, &inode_of);
                }
                self.target(*target, *follow, ended, paths);
            }
            O::StatFilesystem { target } | O::SetTimes { target } | O::SetOwner { target, .. } => {
                self.target(*target, true, ended, paths);
            }
            O::SetMode { target, .. } => {
                self.target(*target, true, ended, paths);
                self.mode_set(*target, paths, &inode_of);
            }
            O::Access { target, mode } => {
                self.target(*target, true, ended, paths);
                if let (Target::Path(path), Ended::Worked) = (target, ended)
                    && mode & X_OK != 0
                {
                    self.is_executable(paths.get(*path), true);
                }
            }
            O::ReadLink { path, .. } => {
                self.target::<H>(Target::Path(*path), false, ended, paths);
            }
            O::Truncate { target, size } if ended == Ended::Worked => {
                let inode = self.file_of(*target, paths, &inode_of);
                if let Some(inode) = inode {
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
            O::Link {
                from: Target::Handle(of),
                to,
                ..
            } => {
                if let Ended::Worked = ended
                    && let Some(place) = self.vacant(paths.get(*to))
                    && let Some(inode) = inode_of(*of)
                {
                    self.tree.bind(&place, inode);
                }
            }
            _ => self.names(operation, ended, paths),
        }
    }

    /// The file of a call that worked and follows links.
    fn file_of<H>(
        &mut self,
        target: Target<H, PathId>,
        paths: &Paths,
        inode_of: impl Fn(H) -> Option<InodeId>,
    ) -> Option<InodeId> {
        match target {
            Target::Handle(handle) => inode_of(handle),
            Target::Path(path) => self.exists(paths.get(path), true),
        }
    }

    /// What a call of the stat family answered.
    fn answered<H>(
        &mut self,
        target: Target<H, PathId>,
        follow: bool,
        seen: &Seen,
        paths: &Paths,
        inode_of: impl Fn(H) -> Option<InodeId>,
    ) {
        match target {
            Target::Path(path) => self.seen(paths.get(path), follow, seen),
            Target::Handle(handle) => {
                if let Some(inode) = inode_of(handle) {
                    self.told(inode, seen);
                }
            }
        }
    }

    /// Permissions were set, so that what is told of them later is not of the beginning.
    fn mode_set<H>(
        &mut self,
        target: Target<H, PathId>,
        paths: &Paths,
        inode_of: impl Fn(H) -> Option<InodeId>,
    ) {
        let inode = self.file_of(target, paths, inode_of);
        if let Some(inode) = inode {
            self.tree[inode].mode_changed = true;
        }
    }

    /// A call that makes, moves or removes names.
    fn names<H>(&mut self, operation: &Operation<H, PathId>, ended: Ended, paths: &Paths) {
        use Operation as O;
        let (O::Rename { from: path, .. }
        | O::Link {
            from: Target::Path(path),
            ..
        }
        | O::Symlink { path, .. }
        | O::Unlink { path }
        | O::MakeDirectory { path, .. }
        | O::MakeNode { path, .. }
        | O::RemoveDirectory { path }) = operation
        else {
            return;
        };
        let path = paths.get(*path);
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
                self.tree.may_lead_out(paths.get(*content));
                if let Some(place) = self.vacant(path) {
                    let kind = Kind::Symlink(paths.get(*content).into());
                    self.tree.make(&place, kind);
                }
            }
            O::MakeNode { mode, .. } => self.make_node(path, *mode),
            O::MakeDirectory { .. } => {
                if let Some(place) = self.vacant(path) {
                    self.tree.make(&place, Kind::Directory);
                }
            }
            _ => {
                if matches!(operation, O::RemoveDirectory { .. }) {
                    self.is_directory(path);
                    self.was_emptied(path);
                }
                if self.exists(path, false).is_some()
                    && let Some(place) = self.tree.place(path, false, true)
                {
                    self.tree.unbind(&place);
                }
            }
        }
    }

    /// A node was made, of this type.
    fn make_node(&mut self, path: &[u8], mode: u32) {
        let kind = match SeenKind::of_stat(mode, None, None) {
            SeenKind::Fifo => Kind::Fifo,
            SeenKind::Socket => Kind::Socket,
            SeenKind::Device => Kind::Device,
            // No type is that of a file (mknod(2)).
            _ => Kind::File,
        };
        self.has_others |= kind != Kind::File;
        if let Some(place) = self.vacant(path) {
            self.tree.make(&place, kind);
        }
    }

    /// A directory could be removed: whatever was in it went unseen.
    fn was_emptied(&mut self, path: &[u8]) {
        if let Some(inode) = self.exists(path, false) {
            self.tree[inode].had_entries = false;
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
    fn target<H>(&mut self, target: Target<H, PathId>, follow: bool, ended: Ended, paths: &Paths) {
        if let (Target::Path(path), Ended::Worked) = (target, ended) {
            self.exists(paths.get(path), follow);
        }
    }

    /// Something is at the end of a path.
    pub(super) fn exists(&mut self, path: &[u8], follow: bool) -> Option<InodeId> {
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

    /// Where a path leads that goes by a symbolic link into /proc or /dev: the absolute path there.
    pub(in crate::tracker) fn leads_out(&self, path: &[u8], follow: bool) -> Option<Vec<u8>> {
        self.tree.leads_out(path, follow)
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
        self.nothing_at(&place, false);
        Some(place)
    }

    /// Nothing is at a place, and nothing was if no call told otherwise. A directory in which a
    /// file was not found need not have been there itself.
    pub(super) fn nothing_at(&mut self, place: &DirectoryEntry, follow: bool) {
        let untold = match self.tree.find(place) {
            Found::Untouched => true,
            Found::Absent => false,
            Found::Inode(inode) => {
                let inode = &self.tree[inode];
                inode.origin == Origin::Perhaps && inode.kind == Kind::Directory
            }
        };
        match (untold, follow) {
            (true, true) => self.tree.touch_dangling(place),
            (true, false) => self.tree.touch_absent(place, false),
            _ => {}
        }
    }

    /// An open file of the inode is there.
    pub(in crate::tracker) fn hold(&mut self, inode: InodeId) {
        self.tree.hold(inode);
    }

    /// An open file of the inode is gone.
    pub(in crate::tracker) fn release(&mut self, inode: InodeId) {
        self.tree.release(inode);
    }
}
