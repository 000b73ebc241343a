//! Directories and inodes, as far as calls told of them.

use iostep_model::syscall::{Content, InitialFile, InitialKind, PathId, Paths};
use rustc_hash::FxHashMap;

/// As many symbolic links as the kernel follows in one path (`MAXSYMLINKS`, include/linux/namei.h).
const MAX_LINKS: u32 = 40;
/// Names of one path, after which it is taken for one that leads nowhere.
const MAX_NAMES: u32 = 10_000;

/// An inode of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::tracker) struct InodeId(u32);

const ROOT: InodeId = InodeId(0);

/// What an inode was at the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was there, with this path.
    Initial,
    /// It was there, or the open with `O_CREAT` that told of it made it.
    Perhaps,
    /// The recording made it.
    Made,
}

/// What is known of an inode's kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Unknown,
    File,
    Directory,
    Symlink(Box<[u8]>),
}

/// Something that has, or had, a name.
#[derive(Debug)]
pub(super) struct Inode {
    pub(super) origin: Origin,
    /// The directory and the name it had at the beginning, where `origin` is not `Made`.
    first: Option<(InodeId, Box<[u8]>)>,
    pub(super) kind: Kind,
    /// Bytes that it held at the beginning, at least.
    pub(super) size: u64,
    /// Where the recording's writes and truncations put the end, bytes.
    pub(super) written_end: u64,
    /// The recording changed its size or data.
    pub(super) changed: bool,
    /// The recording set its size, so that its end tells nothing of the beginning any more.
    pub(super) truncated: bool,
    pub(super) seen: Option<Content>,
    /// A call that follows symbolic links ended here.
    pub(super) followed: bool,
    /// The directory that it is in now.
    parent: InodeId,
    /// Names that it has now.
    names: u32,
    /// Open files of it.
    holders: u32,
    /// A directory's touched names; none for a name that is not there.
    entries: FxHashMap<Box<[u8]>, Option<InodeId>>,
}

/// A name in a directory.
#[derive(Clone, Debug)]
pub(super) struct DirectoryEntry {
    pub(super) directory: InodeId,
    pub(super) name: Box<[u8]>,
}

/// What a name holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Inode(InodeId),
    /// The recording or an earlier call says that nothing is there.
    Absent,
    /// No call told of it.
    Untouched,
}

#[derive(Debug, Default)]
pub(super) struct Tree {
    inodes: Vec<Inode>,
    /// Inodes that the recording made and that nothing leads to any more: their places are used
    /// again, since a database makes a journal for each of its transactions.
    free: Vec<InodeId>,
    /// Names that were not there at the beginning, and whether that was seen.
    absent: Vec<(DirectoryEntry, bool)>,
    /// The inode of each identity that a recorder saw: further names of it are hard links.
    pub(super) identities: FxHashMap<(u64, u64), InodeId>,
    links: Vec<(DirectoryEntry, InodeId)>,
}

impl Tree {
    pub(super) fn new() -> Tree {
        let mut tree = Tree::default();
        tree.inodes.push(Inode::new(Origin::Initial, None, ROOT));
        tree[ROOT].kind = Kind::Directory;
        tree
    }

    /// The place of a path's last name. Directories on the way are touched: they must be there if
    /// `reached`, or else may be. With `follow`, a symbolic link at the end is followed. None for
    /// the root, and for what leads nowhere.
    pub(super) fn place(
        &mut self,
        path: &[u8],
        follow: bool,
        reached: bool,
    ) -> Option<DirectoryEntry> {
        let (mut links, mut names) = (0, 0);
        let mut at = ROOT;
        let mut todo: Vec<Box<[u8]>> = Vec::new();
        push_names(path, &mut todo);
        while let Some(name) = todo.pop() {
            names += 1;
            if names > MAX_NAMES {
                return None;
            }
            if &*name == b".." {
                at = self[at].parent;
                continue;
            }
            let place = DirectoryEntry {
                directory: at,
                name,
            };
            let last = todo.is_empty();
            let found = self.find(&place);
            if let Found::Inode(inode) = found
                && let Kind::Symlink(content) = &self[inode].kind
                && (follow || !last)
            {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                let content = content.clone();
                if content.starts_with(b"/") {
                    at = ROOT;
                }
                push_names(&content, &mut todo);
                continue;
            }
            if last {
                return Some(place);
            }
            at = match found {
                Found::Inode(inode) => inode,
                Found::Absent => return None,
                Found::Untouched if reached => self.touch(&place),
                Found::Untouched => self.touch_perhaps(&place),
            };
            if reached && self[at].origin == Origin::Perhaps {
                self[at].origin = Origin::Initial;
            }
            if self[at].kind == Kind::Unknown {
                self[at].kind = Kind::Directory;
            }
        }
        None
    }

    pub(super) fn find(&self, place: &DirectoryEntry) -> Found {
        match self[place.directory].entries.get(&place.name) {
            Some(Some(inode)) => Found::Inode(*inode),
            Some(None) => Found::Absent,
            // What the recording made was empty at first.
            None if self[place.directory].origin == Origin::Made => Found::Absent,
            None => Found::Untouched,
        }
    }

    /// An untouched place holds something, and so it did at the beginning.
    pub(super) fn touch(&mut self, place: &DirectoryEntry) -> InodeId {
        let first = Some((place.directory, place.name.clone()));
        let inode = self.add(Inode::new(Origin::Initial, first, place.directory));
        self.bind(place, inode);
        inode
    }

    /// An untouched place holds nothing, and so it was at the beginning.
    pub(super) fn touch_absent(&mut self, place: &DirectoryEntry, seen: bool) {
        // In what the recording made nothing was at the beginning, which needs no words.
        if self[place.directory].origin != Origin::Made {
            self.absent.push((place.clone(), seen));
        }
        self.unbind(place);
    }

    /// An untouched place is a further name of an inode that has another.
    pub(super) fn touch_link(&mut self, place: &DirectoryEntry, inode: InodeId) {
        self.links.push((place.clone(), inode));
        self.bind(place, inode);
    }

    /// An untouched place holds something that was there, or not.
    pub(super) fn touch_perhaps(&mut self, place: &DirectoryEntry) -> InodeId {
        let inode = self.touch(place);
        self[inode].origin = Origin::Perhaps;
        inode
    }

    /// Something that the recording makes.
    pub(super) fn make(&mut self, place: &DirectoryEntry, kind: Kind) -> InodeId {
        let mut inode = Inode::new(Origin::Made, None, place.directory);
        inode.kind = kind;
        let inode = self.add(inode);
        self.bind(place, inode);
        inode
    }

    /// Puts an inode at a place.
    pub(super) fn bind(&mut self, place: &DirectoryEntry, inode: InodeId) {
        self[inode].parent = place.directory;
        self[inode].names += 1;
        self.set(place, Some(inode));
    }

    /// Leaves a place empty.
    pub(super) fn unbind(&mut self, place: &DirectoryEntry) {
        self.set(place, None);
    }

    fn set(&mut self, place: &DirectoryEntry, inode: Option<InodeId>) {
        let entries = &mut self[place.directory].entries;
        let before = match entries.get_mut(&place.name) {
            Some(entry) => std::mem::replace(entry, inode),
            None => entries.insert(place.name.clone(), inode).flatten(),
        };
        if let Some(before) = before {
            self[before].names -= 1;
            self.forget_unreachable(before);
        }
    }

    /// Somebody keeps the inode, with or without a name.
    pub(super) fn hold(&mut self, inode: InodeId) {
        self[inode].holders += 1;
    }

    /// Who kept the inode does so no longer.
    pub(super) fn release(&mut self, inode: InodeId) {
        self[inode].holders -= 1;
        self.forget_unreachable(inode);
    }

    /// Only what the recording made is forgotten: the rest is what [`Tree::initial`] tells.
    fn forget_unreachable(&mut self, id: InodeId) {
        let inode = &mut self[id];
        let reachable = inode.names > 0 || inode.holders > 0;
        if reachable || inode.origin != Origin::Made || inode.entries.values().any(Option::is_some)
        {
            return;
        }
        inode.entries = FxHashMap::default();
        self.free.push(id);
    }

    /// True for what may have names in it.
    pub(super) fn is_directory(&self, inode: InodeId) -> bool {
        self[inode].kind == Kind::Directory
    }

    fn add(&mut self, inode: Inode) -> InodeId {
        if let Some(id) = self.free.pop() {
            self[id] = inode;
            return id;
        }
        // Each has a name or an open file, and there are fewer than 2^32 of either.
        let id = u32::try_from(self.inodes.len()).expect("fewer than 2^32 inodes");
        self.inodes.push(inode);
        InodeId(id)
    }

    /// Everything that was there or was not, each path once.
    pub(super) fn initial(&self, paths: &mut Paths) -> Vec<InitialFile> {
        let mut files = Vec::new();
        for inode in &self.inodes {
            let (Some(place), Origin::Initial) = (&inode.first, &inode.origin) else {
                continue;
            };
            let Some(path) = self.first_path(place, paths) else {
                continue;
            };
            let kind = match &inode.kind {
                Kind::Directory => InitialKind::Directory,
                Kind::Symlink(content) => InitialKind::Symlink {
                    content: paths.intern(content),
                },
                Kind::Unknown | Kind::File => InitialKind::File {
                    size: inode.size,
                    content: inode.seen.clone().unwrap_or(Content::Data),
                },
            };
            let seen = inode.seen.is_some();
            files.push(InitialFile { path, kind, seen });
        }
        for (place, inode) in &self.links {
            let of = self[*inode].first.as_ref();
            let of = of.and_then(|first| self.first_path(first, paths));
            let path = self.first_path(&(place.directory, place.name.clone()), paths);
            if let (Some(of), Some(path)) = (of, path) {
                let kind = InitialKind::HardLink { of };
                let seen = true;
                files.push(InitialFile { path, kind, seen });
            }
        }
        for (place, seen) in &self.absent {
            let path = self.first_path(&(place.directory, place.name.clone()), paths);
            files.extend(path.map(|path| InitialFile {
                path,
                kind: InitialKind::Absent,
                seen: *seen,
            }));
        }
        files
    }

    /// The path that a place had at the beginning; none if its directory was not there.
    fn first_path(&self, place: &(InodeId, Box<[u8]>), paths: &mut Paths) -> Option<PathId> {
        let mut names = vec![&*place.1];
        let mut at = place.0;
        while at != ROOT {
            if self[at].origin == Origin::Made {
                return None;
            }
            let (parent, name) = self[at].first.as_ref()?;
            names.push(name);
            at = *parent;
        }
        let mut path = Vec::new();
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        Some(paths.intern(&path))
    }
}

impl Inode {
    fn new(origin: Origin, first: Option<(InodeId, Box<[u8]>)>, parent: InodeId) -> Inode {
        Inode {
            origin,
            first,
            kind: Kind::Unknown,
            size: 0,
            written_end: 0,
            changed: false,
            truncated: false,
            seen: None,
            followed: false,
            parent,
            names: 0,
            holders: 0,
            entries: FxHashMap::default(),
        }
    }
}

impl std::ops::Index<InodeId> for Tree {
    type Output = Inode;

    fn index(&self, id: InodeId) -> &Inode {
        &self.inodes[id.0 as usize]
    }
}

impl std::ops::IndexMut<InodeId> for Tree {
    fn index_mut(&mut self, id: InodeId) -> &mut Inode {
        &mut self.inodes[id.0 as usize]
    }
}

/// Puts a path's names on the stack of names to go, the first on top.
fn push_names(path: &[u8], todo: &mut Vec<Box<[u8]>>) {
    let names = path.split(|byte| *byte == b'/').rev();
    let names = names.filter(|name| !name.is_empty() && *name != b".");
    todo.extend(names.map(Box::from));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(directory: InodeId, name: &str) -> DirectoryEntry {
        DirectoryEntry {
            directory,
            name: name.as_bytes().into(),
        }
    }

    #[test]
    fn files_that_come_and_go_take_the_room_of_one() {
        let mut tree = Tree::new();
        let [journal, database] = ["journal", "database"].map(|name| at(ROOT, name));
        tree.touch(&database);
        tree.touch_absent(&journal, false);
        for _ in 0..1000 {
            let made = tree.make(&journal, Kind::File);
            tree.hold(made);
            tree.unbind(&journal);
            tree.release(made);
        }
        assert_eq!(tree.inodes.len(), 3);
        assert_eq!(tree.initial(&mut Paths::default()).len(), 2);
    }

    #[test]
    fn what_has_a_name_or_is_open_stays() {
        let mut tree = Tree::new();
        let [first, second, other] = ["first", "second", "other"].map(|name| at(ROOT, name));
        let linked = tree.make(&first, Kind::File);
        tree.bind(&second, linked);
        tree.unbind(&first);
        let open = tree.make(&other, Kind::File);
        tree.hold(open);
        tree.unbind(&other);
        let directory = tree.make(&first, Kind::Directory);
        let inside = tree.make(&at(directory, "inside"), Kind::File);
        // A recording that is not true.
        tree.unbind(&first);
        let next = tree.make(&other, Kind::File);
        let all = [linked, open, directory, inside, next];
        let distinct: std::collections::HashSet<_> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(tree.find(&second), Found::Inode(linked));
    }
}
