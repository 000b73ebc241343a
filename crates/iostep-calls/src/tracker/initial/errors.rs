//! What failed calls tell: a name that is not there, a file where a directory should be, a directory
//! that is not empty. Which error a call gives for what is in its page of section 2 of the manual,
//! and in fs/namei.c.

use iostep_model::syscall::{Content, Errno, OpenFlags, Operation, PathId, Paths, Target};

use super::conclude::{Conclusions, X_OK};
use super::tree::{Found, InodeId, Kind, Origin};

/// `RENAME_NOREPLACE` (include/uapi/linux/fs.h).
const RENAME_NOREPLACE: u32 = 1;

impl Conclusions {
    /// A failure of an open.
    pub(super) fn open_failed(&mut self, path: &[u8], flags: OpenFlags, errno: Errno) {
        let follow = !flags.has(OpenFlags::O_NOFOLLOW);
        match errno {
            Errno::ELOOP if !follow => self.is_link_of(path, 0),
            Errno::ENOTDIR if flags.has(OpenFlags::O_DIRECTORY) => self.is_no_directory(path),
            Errno::EISDIR => self.is_directory(path),
            Errno::ETXTBSY => self.is_executable(path, true),
            // Nobody reads a FIFO that is opened for writing alone; a socket cannot be opened.
            Errno::ENXIO => {
                let writes = flags.has(OpenFlags::O_WRONLY);
                let kind = if writes { Kind::Fifo } else { Kind::Socket };
                self.is_other(path, kind);
            }
            // The file is there: what is missing without `O_CREAT` gives ENOENT.
            Errno::EROFS if !flags.has(OpenFlags::O_CREAT) => self.is_there(path, follow),
            Errno::EEXIST => self.is_there(path, false),
            // With `O_CREAT` it is the directory that is missing, and so the file is too.
            _ => self.failed(path, follow, errno),
        }
    }

    /// A failure of a call on a file, or on names.
    pub(super) fn call_failed<H: Copy>(
        &mut self,
        operation: &Operation<H, PathId>,
        errno: Errno,
        paths: &Paths,
        inode_of: impl Fn(H) -> Option<InodeId>,
    ) {
        use Operation as O;
        let on_path = |target: Target<H, PathId>| match target {
            Target::Path(path) => Some(path),
            Target::Handle(_) => None,
        };
        match *operation {
            O::Stat { target, follow } => self.on_target(on_path(target), follow, errno, paths),
            O::StatFilesystem { target }
            | O::SetTimes { target }
            | O::SetMode { target, .. }
            | O::SetOwner { target, .. } => self.on_target(on_path(target), true, errno, paths),
            O::Truncate { target, .. } => match (on_path(target), errno) {
                (Some(path), Errno::ETXTBSY) => self.is_executable(paths.get(path), true),
                (path, _) => self.on_target(path, true, errno, paths),
            },
            O::Access { target, mode } => match on_path(target) {
                Some(path) if mode & X_OK != 0 && errno == Errno::EACCES => {
                    self.is_executable(paths.get(path), false);
                }
                path => self.on_target(path, true, errno, paths),
            },
            O::ReadLink { path, .. } if errno == Errno::EINVAL => {
                self.is_there(paths.get(path), false);
            }
            O::ReadLink { path, .. } => self.failed(paths.get(path), false, errno),
            O::ReadDirectory { handle, .. } if errno == Errno::ENOTDIR => {
                self.is_kind(inode_of(handle), &Kind::File);
            }
            O::Transfer { handle, .. } if errno == Errno::EISDIR => {
                self.is_kind(inode_of(handle), &Kind::Directory);
            }
            _ => self.names_failed(operation, errno, paths),
        }
    }

    fn on_target(&mut self, path: Option<PathId>, follow: bool, errno: Errno, paths: &Paths) {
        if let Some(path) = path {
            self.failed(paths.get(path), follow, errno);
        }
    }

    /// A failure of a call that would have made, moved or removed names.
    fn names_failed<H>(&mut self, operation: &Operation<H, PathId>, errno: Errno, paths: &Paths) {
        use Operation as O;
        match *operation {
            O::Unlink { path } if errno == Errno::EISDIR => self.is_directory(paths.get(path)),
            O::Unlink { path } => self.failed(paths.get(path), false, errno),
            O::RemoveDirectory { path } => {
                let path = paths.get(path);
                match errno {
                    Errno::ENOTEMPTY | Errno::EEXIST => self.is_not_empty(path),
                    Errno::EBUSY => self.is_directory(path),
                    Errno::ENOTDIR => self.is_no_directory(path),
                    _ => self.failed(path, false, errno),
                }
            }
            O::MakeDirectory { path, .. } => {
                let path = paths.get(path);
                match errno {
                    Errno::EEXIST => self.is_there_for_mkdir(path),
                    Errno::ENOTDIR | Errno::ELOOP => self.failed(path, false, errno),
                    _ => {}
                }
            }
            O::Symlink { path, .. } | O::MakeNode { path, .. } => match errno {
                Errno::EEXIST => self.is_there(paths.get(path), false),
                Errno::ENOTDIR => self.failed(paths.get(path), false, errno),
                _ => {}
            },
            O::Link {
                from: Target::Handle(_),
                to,
                ..
            } => match errno {
                Errno::EEXIST => self.is_there(paths.get(to), false),
                Errno::ENOTDIR => self.failed(paths.get(to), false, errno),
                _ => {}
            },
            O::Link {
                from: Target::Path(from),
                to,
                ..
            } => {
                let (from, to) = (paths.get(from), paths.get(to));
                match errno {
                    Errno::EEXIST => {
                        self.exists(from, false);
                        self.exists(to, false);
                    }
                    Errno::ENOENT => self.is_missing(from),
                    // Directories have one name.
                    Errno::EPERM if !self.is_known(from) => self.is_directory(from),
                    Errno::ENOTDIR => self.parent_of_either(from, to),
                    _ => {}
                }
            }
            O::Rename { from, to, flags } => {
                self.rename_failed(paths.get(from), paths.get(to), flags, errno);
            }
            _ => {}
        }
    }

    fn rename_failed(&mut self, from: &[u8], to: &[u8], flags: u32, errno: Errno) {
        match errno {
            Errno::ENOENT => self.is_missing(from),
            Errno::EEXIST if flags & RENAME_NOREPLACE != 0 => {
                self.exists(from, false);
                self.exists(to, false);
            }
            Errno::ENOTEMPTY | Errno::EEXIST => {
                self.is_directory(from);
                self.is_not_empty(to);
            }
            Errno::EISDIR => {
                self.exists(from, false);
                self.is_directory(to);
            }
            // What is below a directory cannot take its place.
            Errno::EINVAL if flags == 0 => self.is_directory(from),
            Errno::ENOTDIR if self.is_below_directory(from) && self.is_below_directory(to) => {
                self.is_directory(from);
                self.is_no_directory(to);
            }
            Errno::ENOTDIR => self.parent_of_either(from, to),
            _ => {}
        }
    }

    /// A failure that tells of the file at the end of a path.
    pub(in crate::tracker) fn failed(&mut self, path: &[u8], follow: bool, errno: Errno) {
        match errno {
            Errno::ENOENT => {
                if let Some(place) = self.tree.place(path, follow, false) {
                    self.nothing_at(&place, follow);
                }
            }
            Errno::EEXIST | Errno::EPERM | Errno::EBUSY => self.is_there(path, follow),
            Errno::EISDIR => self.is_directory(path),
            Errno::ETXTBSY => self.is_executable(path, true),
            Errno::ELOOP => self.leads_in_a_circle(path),
            Errno::ENOTDIR if path.ends_with(b"/") => self.is_no_directory(path),
            Errno::ENOTDIR => self.parent_is_no_directory(path),
            _ => {}
        }
    }

    /// Something is at the end of a path.
    fn is_there(&mut self, path: &[u8], follow: bool) {
        self.exists(path, follow);
    }

    /// One of the names that a call has two of is not there: the first, if nothing is known of it.
    fn is_missing(&mut self, from: &[u8]) {
        if !self.is_known(from) {
            self.failed(from, false, Errno::ENOENT);
        }
    }

    /// True if something is known to be at a path now.
    fn is_known(&mut self, path: &[u8]) -> bool {
        let place = self.tree.place(path, false, false);
        place.is_some_and(|place| matches!(self.tree.find(&place), Found::Inode(_)))
    }

    /// True if the directory that a path's last name is in is known to be one.
    fn is_below_directory(&mut self, path: &[u8]) -> bool {
        let Some(place) = self.tree.place(path, false, false) else {
            return false;
        };
        self.tree[place.directory].origin != Origin::Perhaps
    }

    fn parent_of_either(&mut self, from: &[u8], to: &[u8]) {
        let path = if self.is_below_directory(from) {
            to
        } else {
            from
        };
        self.parent_is_no_directory(path);
    }

    /// A directory is at a path, or what else mkdir cannot replace.
    fn is_there_for_mkdir(&mut self, path: &[u8]) {
        if let Some(inode) = self.exists(path, true)
            && self.tree[inode].kind == Kind::Unknown
        {
            self.tree[inode].kind = Kind::Directory;
        }
    }

    fn is_not_empty(&mut self, path: &[u8]) {
        self.is_directory(path);
        if let Some(place) = self.tree.place(path, false, true)
            && let Found::Inode(inode) = self.tree.find(&place)
            && !self.tree.has_entries(inode)
        {
            self.tree[inode].had_entries = true;
        }
    }

    /// Something is at the end of a path that is no directory.
    pub(in crate::tracker) fn is_no_directory(&mut self, path: &[u8]) {
        let path = match path.iter().rposition(|byte| *byte != b'/') {
            Some(last) => &path[..=last],
            None => return,
        };
        // A file further up has been told of already.
        let Some(place) = self.tree.place(path, true, false) else {
            return;
        };
        let inode = match self.tree.find(&place) {
            Found::Inode(inode) => inode,
            Found::Untouched => self.tree.touch(&place),
            Found::Absent => return,
        };
        let unsure = self.tree[inode].origin == Origin::Perhaps && !self.tree.has_entries(inode);
        let known = &mut self.tree[inode];
        match known.kind {
            Kind::Unknown => known.kind = Kind::File,
            Kind::Directory if unsure => known.kind = Kind::File,
            _ => return,
        }
        known.origin = Origin::Initial;
        for directory in self.tree.above(inode) {
            self.tree[directory].origin = Origin::Initial;
        }
    }

    /// One of the names before the last is no directory: the last of them, unless it is known for one.
    fn parent_is_no_directory(&mut self, path: &[u8]) {
        let end = path.iter().rposition(|byte| *byte == b'/');
        if let Some(end) = end.filter(|end| *end > 0) {
            self.is_no_directory(&path[..end]);
        }
    }

    /// A link at the end of a path leads to itself, if nothing else is known of it.
    fn leads_in_a_circle(&mut self, path: &[u8]) {
        let Some(place) = self.tree.place(path, false, true) else {
            return;
        };
        if self.tree.find(&place) == Found::Untouched {
            let link = self.tree.touch(&place);
            self.tree[link].kind = Kind::Symlink(place.name.clone());
            self.tree[link].seen = Some(Content::Data);
        }
    }

    /// A file can be executed, or not.
    pub(super) fn is_executable(&mut self, path: &[u8], executes: bool) {
        let Some(inode) = self.exists(path, true) else {
            return;
        };
        let known = &mut self.tree[inode];
        if known.kind == Kind::Unknown && !executes {
            known.kind = Kind::File;
        }
        if !known.mode_changed {
            known.executes.get_or_insert(executes);
        }
    }

    fn is_other(&mut self, path: &[u8], kind: Kind) {
        if let Some(inode) = self.exists(path, true)
            && self.tree[inode].kind == Kind::Unknown
        {
            self.tree[inode].kind = kind;
            self.has_others = true;
        }
    }

    fn is_kind(&mut self, inode: Option<InodeId>, kind: &Kind) {
        if let Some(inode) = inode
            && self.tree[inode].kind == Kind::Unknown
        {
            self.tree[inode].kind = kind.clone();
        }
    }
}
