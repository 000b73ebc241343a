//! Directories and inodes, as far as calls told of them.

use iostep_model::syscall::{Content, InitialFile, InitialKind, PathId, Paths};
use rustc_hash::{FxHashMap, FxHashSet};

/// As many symbolic links as the kernel follows in one path (`MAXSYMLINKS`, include/linux/namei.h).
const MAX_LINKS: u32 = 40;
/// `NAME_MAX` (include/uapi/linux/limits.h).
const NAME_BYTES: usize = 255;
/// The name that a directory gets of which is only known that something is in it.
const SOME_ENTRY: &[u8] = b"iostep.entry";
/// How long the words of a link are of which nothing is known, bytes.
const UNKNOWN_WORDS_BYTES: usize = 8;
/// Names that are tried for where a link leads.
const WORDS_TRIED: u32 = 20;
/// Of a mapping may lie behind the file's end, as databases map more than they have. A file that is
/// larger and of which only that is known has no data.
const MOST_MAPPED_DATA_BYTES: u64 = 64 << 20;
/// Permissions of a file of which is only known whether it can be executed.
const EXECUTES_MODE: u32 = 0o755;
const PLAIN_MODE: u32 = 0o644;
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
    Fifo,
    Socket,
    Device,
}

/// Something that has, or had, a name.
#[derive(Debug)]
pub(super) struct Inode {
    pub(super) origin: Origin,
    /// The directory and the name it had at the beginning, where `origin` is not `Made`.
    pub(super) first: Option<(InodeId, Box<[u8]>)>,
    pub(super) kind: Kind,
    /// Bytes that it held at the beginning, at least.
    pub(super) size: u64,
    /// Where the recording's writes and truncations put the end, bytes.
    pub(super) written_end: u64,
    /// Bytes that the recording appended while nobody knew where the end was.
    pub(super) appended: u64,
    /// Where the furthest mapping ends, bytes.
    pub(super) mapped_end: u64,
    /// The recording changed its size or data.
    pub(super) changed: bool,
    /// The recording set its size, so that its end tells nothing of the beginning any more.
    pub(super) truncated: bool,
    pub(super) seen: Option<Content>,
    /// A call that follows symbolic links ended here.
    pub(super) followed: bool,
    /// Permissions at the beginning, if a call told.
    pub(super) mode: Option<u32>,
    /// Whether it could be executed at the beginning, if that is all that is known.
    pub(super) executes: Option<bool>,
    /// The recording set its permissions.
    pub(super) mode_changed: bool,
    /// A directory that was not empty at the beginning.
    pub(super) had_entries: bool,
    /// The directory that it is in now.
    parent: InodeId,
    /// Names that it has now.
    names: u32,
    /// Open files of it.
    holders: u32,
    /// A directory's touched names; none for a name that is not there.
    pub(super) entries: FxHashMap<Box<[u8]>, Option<InodeId>>,
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
    /// Names that are not there, or are links that lead nowhere: who said so follows links.
    dangling: FxHashSet<(InodeId, Box<[u8]>)>,
    /// The inode of each identity that a recorder saw: further names of it are hard links.
    pub(super) identities: FxHashMap<(u64, u64), InodeId>,
    links: Vec<(DirectoryEntry, InodeId)>,
    /// Names that were made up for links to lead to.
    made_up: FxHashSet<(InodeId, Box<[u8]>)>,
    /// The number in the next of these.
    words: u32,
    /// A symbolic link may lead into /proc or /dev.
    has_ways_out: bool,
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
            if self.is_no_directory(at) {
                if !reached || self[at].origin == Origin::Made {
                    return None;
                }
                self[at].kind = Kind::Directory;
            }
            if reached && self[at].origin == Origin::Perhaps {
                self[at].origin = Origin::Initial;
            }
            if self[at].kind == Kind::Unknown {
                self[at].kind = Kind::Directory;
            }
        }
        None
    }

    /// A symbolic link has these words.
    pub(super) fn may_lead_out(&mut self, words: &[u8]) {
        let mut names = words.split(|byte| *byte == b'/');
        self.has_ways_out |= names.any(|name| name == b"proc" || name == b"dev");
    }

    /// Where a path leads that goes by a symbolic link into /proc or /dev: the absolute path there. What
    /// these hold is in no tree. Changes nothing.
    pub(super) fn leads_out(&self, path: &[u8], follow: bool) -> Option<Vec<u8>> {
        if !self.has_ways_out && memchr::memmem::find(path, b"/../").is_none() {
            return None;
        }
        // Names that no call told of are taken for directories.
        let (mut links, mut ways_up, mut unknown) = (0, 0, 0_u32);
        let mut at = ROOT;
        let mut todo: Vec<Box<[u8]>> = Vec::new();
        push_names(path, &mut todo);
        for _ in 0..MAX_NAMES {
            let name = todo.pop()?;
            if &*name == b".." {
                ways_up += 1;
                match unknown {
                    0 => at = self[at].parent,
                    _ => unknown -= 1,
                }
                continue;
            }
            if unknown > 0 {
                unknown += 1;
                continue;
            }
            let last = todo.is_empty();
            if links + ways_up > 0 && at == ROOT && matches!(&*name, b"proc" | b"dev") {
                let mut out = [b"/", &name[..]].concat();
                while let Some(name) = todo.pop() {
                    out.push(b'/');
                    out.extend_from_slice(&name);
                }
                return Some(out);
            }
            let place = DirectoryEntry {
                directory: at,
                name,
            };
            let Found::Inode(inode) = self.find(&place) else {
                unknown = 1;
                continue;
            };
            at = match &self[inode].kind {
                Kind::Symlink(words) if follow || !last => {
                    links += 1;
                    if links > MAX_LINKS {
                        return None;
                    }
                    push_names(words, &mut todo);
                    match words.starts_with(b"/") {
                        true => ROOT,
                        false => at,
                    }
                }
                _ => inode,
            };
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

    /// The same, by a call that would have followed a link there.
    pub(super) fn touch_dangling(&mut self, place: &DirectoryEntry) {
        self.touch_absent(place, false);
        let name = (place.directory, place.name.clone());
        self.dangling.insert(name);
    }

    /// Takes back that nothing was at a place, if a link that leads nowhere may have been there.
    pub(super) fn is_after_all(&mut self, place: &DirectoryEntry) -> bool {
        let name = (place.directory, place.name.clone());
        if !self.dangling.remove(&name) {
            return false;
        }
        let mut absent = self.absent.iter();
        let at = absent
            .rposition(|(other, _)| other.directory == place.directory && other.name == place.name);
        at.map(|at| self.absent.remove(at)).is_some()
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
        if !self.dangling.is_empty() {
            self.dangling.remove(&(place.directory, place.name.clone()));
        }
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

    /// True for what is known to have no names in it.
    fn is_no_directory(&self, inode: InodeId) -> bool {
        use Kind as K;
        matches!(self[inode].kind, K::File | K::Fifo | K::Socket | K::Device)
    }

    /// The directories that an inode is in, from its own up to the root.
    pub(super) fn above(&self, inode: InodeId) -> Vec<InodeId> {
        let mut above = Vec::new();
        let mut at = self[inode].parent;
        // A recording that is not true may have directories in a circle.
        while at != ROOT && !above.contains(&at) {
            above.push(at);
            at = self[at].parent;
        }
        above
    }

    /// Forgets a name that was made up.
    pub(super) fn forget_name(&mut self, place: &DirectoryEntry) {
        let entries = &mut self[place.directory].entries;
        if let Some(Some(inode)) = entries.remove(&place.name) {
            self[inode].names -= 1;
        }
    }

    /// True if an inode was at this place at the beginning.
    pub(super) fn was_at(&self, inode: InodeId, place: &DirectoryEntry) -> bool {
        let first = self[inode].first.as_ref();
        first.is_some_and(|(directory, name)| *directory == place.directory && *name == place.name)
    }

    /// True if these words of a link were made up.
    pub(super) fn is_made_up(&self, place: &DirectoryEntry, words: &[u8]) -> bool {
        let name = words
            .rsplit(|byte| *byte == b'/')
            .next()
            .unwrap_or_default();
        let key = (place.directory, Box::from(name));
        self.made_up.contains(&key)
    }

    /// Two inodes are one, as a link tells: what is known of the second goes to the first.
    pub(super) fn merge(&mut self, known: InodeId, other: InodeId) {
        let entries = std::mem::take(&mut self[other].entries);
        let mut moved = FxHashSet::default();
        for (name, entry) in entries {
            if let Some(there) = self[known].entries.get(&name).copied() {
                if let (Some(there), Some(child)) = (there, entry)
                    && there != child
                    && self[there].origin != Origin::Made
                    && self[child].origin != Origin::Made
                {
                    self.merge(there, child);
                }
                continue;
            }
            if let Some(child) = entry {
                self[child].parent = known;
                if let Some(first) = &mut self[child].first
                    && first.0 == other
                {
                    first.0 = known;
                }
            }
            moved.insert(name.clone());
            self[known].entries.insert(name, entry);
        }
        for (place, _) in &mut self.absent {
            if place.directory == other && moved.contains(&place.name) {
                place.directory = known;
            }
        }
        self.identities
            .values_mut()
            .filter(|inode| **inode == other)
            .for_each(|inode| *inode = known);
        self.links
            .iter_mut()
            .filter(|(_, inode)| *inode == other)
            .for_each(|(_, inode)| *inode = known);
        let second = std::mem::replace(&mut self[other].origin, Origin::Made);
        let (size, seen, kind) = {
            let other = &self[other];
            (other.size, other.seen.clone(), other.kind.clone())
        };
        let (mode, executes) = (self[other].mode, self[other].executes);
        let known = &mut self[known];
        if known.origin == Origin::Perhaps {
            known.origin = second;
        }
        if known.kind == Kind::Unknown {
            known.kind = kind;
        }
        if known.seen.is_none() {
            known.size = known.size.max(size);
            known.seen = seen;
        }
        known.mode = known.mode.or(mode);
        known.executes = known.executes.or(executes);
        known.followed = true;
    }

    /// True if something is known to be in a directory now.
    pub(super) fn has_entries(&self, inode: InodeId) -> bool {
        self[inode].entries.values().any(Option::is_some)
    }

    /// Something that the recording makes and that has no name yet (`O_TMPFILE`).
    pub(super) fn make_unnamed(&mut self) -> InodeId {
        let mut inode = Inode::new(Origin::Made, None, ROOT);
        inode.kind = Kind::File;
        self.add(inode)
    }

    /// What a link says of which is only known how many bytes that is: a name beside it that no call
    /// used. `.` and `/` fill up what no name is long enough for.
    pub(super) fn unused_words(&mut self, place: &DirectoryEntry, bytes: u64) -> Box<[u8]> {
        // PATH_MAX (include/uapi/linux/limits.h), its NUL included.
        let bytes = match usize::try_from(bytes) {
            Ok(bytes @ 1..4096) => bytes,
            _ => UNKNOWN_WORDS_BYTES,
        };
        let mut name = bytes.min(NAME_BYTES);
        name -= (bytes - name) % 2;
        let fill = b"./".repeat((bytes - name) / 2);
        // Of short names there are few, and then some links lead to the same.
        let mut words = Vec::new();
        for _ in 0..WORDS_TRIED {
            let digits = self.words.to_string().into_bytes();
            self.words = self.words.wrapping_add(1);
            let digits = &digits[digits.len().saturating_sub(name)..];
            words = b"~".repeat(name - digits.len());
            words.extend_from_slice(digits);
            let used = self[place.directory].entries.contains_key(&words[..]);
            let key = (place.directory, Box::from(&words[..]));
            if !used && *words != *place.name && self.made_up.insert(key) {
                break;
            }
        }
        [fill, words].concat().into()
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
        let there = self
            .inodes
            .iter()
            .filter(|inode| inode.origin == Origin::Initial);
        let inside = there.filter_map(|inode| Some(inode.first.as_ref()?.0));
        let linked = self.links.iter().map(|(place, _)| place.directory);
        let filled: FxHashSet<InodeId> = inside.chain(linked).collect();
        for id in (0..self.inodes.len() as u32).map(InodeId) {
            self.initial_inode(id, filled.contains(&id), paths, &mut files);
        }
        for (place, inode) in &self.links {
            // Directories have one name.
            let gone = self[*inode].origin != Origin::Initial;
            if gone || filled.contains(inode) || self.is_directory(*inode) {
                continue;
            }
            let of = self[*inode].first.as_ref();
            let of = of.and_then(|first| self.first_path(first, paths));
            let path = self.first_path(&(place.directory, place.name.clone()), paths);
            if let (Some(of), Some(path)) = (of, path) {
                let kind = InitialKind::HardLink { of };
                files.push(InitialFile {
                    path,
                    kind,
                    mode: None,
                    seen: true,
                });
            }
        }
        for (place, seen) in &self.absent {
            let path = self.first_path(&(place.directory, place.name.clone()), paths);
            files.extend(path.map(|path| InitialFile {
                path,
                kind: InitialKind::Absent,
                mode: None,
                seen: *seen,
            }));
        }
        files
    }

    /// What an inode was at the beginning, if it was there. `filled`: so was something in it.
    fn initial_inode(
        &self,
        id: InodeId,
        filled: bool,
        paths: &mut Paths,
        files: &mut Vec<InitialFile>,
    ) {
        let inode = &self[id];
        let place = inode.first.as_ref();
        let place = place.filter(|_| inode.origin == Origin::Initial);
        let Some(path) = place.and_then(|place| self.first_path(place, paths)) else {
            return;
        };
        let kind = match &inode.kind {
            // Texts that are not true have names in what is no directory.
            _ if filled => InitialKind::Directory,
            Kind::Directory => InitialKind::Directory,
            Kind::Symlink(content) => InitialKind::Symlink {
                content: paths.intern(content),
            },
            Kind::Fifo => InitialKind::Fifo,
            Kind::Socket => InitialKind::Socket,
            Kind::Device => InitialKind::Device,
            Kind::Unknown | Kind::File => inode.file(),
        };
        let has_some_entry = inode.had_entries && kind == InitialKind::Directory && !filled;
        files.push(InitialFile {
            path,
            mode: inode.first_mode(&kind),
            kind,
            seen: inode.seen.is_some(),
        });
        if has_some_entry {
            let place = (id, Box::from(SOME_ENTRY));
            files.extend(self.first_path(&place, paths).map(|path| InitialFile {
                path,
                kind: InitialKind::File {
                    size: 0,
                    content: Content::Data,
                },
                mode: None,
                seen: false,
            }));
        }
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
            appended: 0,
            mapped_end: 0,
            changed: false,
            truncated: false,
            seen: None,
            followed: false,
            mode: None,
            executes: None,
            mode_changed: false,
            had_entries: false,
            parent,
            names: 0,
            holders: 0,
            entries: FxHashMap::default(),
        }
    }
}

impl Inode {
    /// The regular file that it was.
    fn file(&self) -> InitialKind {
        let content = self.seen.clone().unwrap_or(Content::Data);
        let known = self.seen.is_some() || self.truncated;
        if known || self.mapped_end <= self.size.max(self.written_end) {
            return InitialKind::File {
                size: self.size,
                content,
            };
        }
        InitialKind::File {
            size: self.mapped_end,
            content: match self.mapped_end <= MOST_MAPPED_DATA_BYTES {
                true => content,
                false => Content::Sparse(self.size),
            },
        }
    }

    /// The permissions that a regular file had, if a call told of them.
    fn first_mode(&self, kind: &InitialKind) -> Option<u32> {
        let InitialKind::File { .. } = kind else {
            return None;
        };
        let executes = self.executes.map(|executes| match executes {
            true => EXECUTES_MODE,
            false => PLAIN_MODE,
        });
        self.mode.or(executes)
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
