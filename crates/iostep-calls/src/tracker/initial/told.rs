//! What is told of a file itself: by the recorder, by stat and its relatives, by where its end is.

use iostep_model::syscall::Content;
use iostep_model::syscall::raw::{DescriptorKind, Seen, SeenKind};

use super::conclude::Conclusions;
use super::tree::{DirectoryEntry, Found, Inode, InodeId, Kind, Origin};

impl Conclusions {
    /// What is known of the file at a path, as it was before the call.
    pub(in crate::tracker) fn seen(&mut self, path: &[u8], follow: bool, seen: &Seen) {
        let there = seen.kind != SeenKind::Absent;
        if let SeenKind::Symlink { bytes } = seen.kind {
            return self.is_link_of(path, bytes);
        }
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
        // A file with one name has no other.
        let linked = seen.names.is_none_or(|names| names > 1);
        let known = seen.identity.filter(|_| linked).and_then(|identity| {
            let known = self.tree.identities.get(&identity);
            known.filter(|known| !self.tree.is_directory(**known))
        });
        let inode = match (found, known) {
            (Found::Inode(inode), _) => inode,
            (Found::Absent, _) => return,
            (Found::Untouched, Some(&known)) => {
                self.tree.touch_link(&place, known);
                known
            }
            (Found::Untouched, None) => self.tree.touch(&place),
        };
        self.told(inode, seen);
    }

    /// The same of an open file.
    pub(in crate::tracker) fn told(&mut self, inode: InodeId, seen: &Seen) {
        let known = &mut self.tree[inode];
        if known.origin == Origin::Made {
            return;
        }
        let kind = match seen.kind {
            SeenKind::File { .. } => Kind::File,
            SeenKind::Directory => Kind::Directory,
            SeenKind::Fifo => Kind::Fifo,
            SeenKind::Socket => Kind::Socket,
            SeenKind::Device => Kind::Device,
            SeenKind::Something | SeenKind::Absent | SeenKind::Symlink { .. } => return,
        };
        let is_link = matches!(known.kind, Kind::Symlink(_));
        // An empty one may be what the open with `O_CREAT` made that told of it.
        let perhaps = matches!(
            seen.kind,
            SeenKind::File {
                size: None | Some(0),
                ..
            }
        );
        if is_link || known.origin == Origin::Perhaps && perhaps && known.kind == Kind::File {
            return;
        }
        let is_file = kind == Kind::File;
        self.has_others |= !matches!(kind, Kind::File | Kind::Directory);
        known.kind = kind;
        if !known.mode_changed && is_file {
            known.mode = known.mode.or(seen.mode);
        }
        if let SeenKind::File {
            size: Some(size),
            content,
        } = &seen.kind
        {
            self.is_of_size(inode, *size, content);
        } else if !is_file {
            known.origin = Origin::Initial;
            known.seen.get_or_insert(Content::Data);
        }
        if let Some(identity) = seen.identity {
            self.tree.identities.entry(identity).or_insert(inode);
        }
    }

    /// What is at a path, if that holds no data: calls on it are not those on a file.
    pub(in crate::tracker) fn is_without_data(
        &mut self,
        path: &[u8],
        follow: bool,
    ) -> Option<DescriptorKind> {
        if !self.has_others {
            return None;
        }
        let place = self.tree.place(path, follow, false)?;
        let Found::Inode(inode) = self.tree.find(&place) else {
            return None;
        };
        match self.tree[inode].kind {
            Kind::Fifo => Some(DescriptorKind::Pipe),
            Kind::Socket => Some(DescriptorKind::Socket),
            Kind::Device => Some(DescriptorKind::Device),
            _ => None,
        }
    }

    /// The file has this size now, bytes, whatever the recording did to it.
    pub(in crate::tracker) fn is_of_size(&mut self, inode: InodeId, size: u64, content: &Content) {
        let inode = &mut self.tree[inode];
        if !inode.tells() {
            return;
        }
        // What it held was kept when it was opened, which may be after it was asked about.
        if let (Content::Kept(_), Some(held)) = (content, &mut inode.seen)
            && !matches!(held, Content::Kept(_))
        {
            (inode.size, *held) = (size, content.clone());
        }
        if inode.seen.is_some() {
            return;
        }
        let before = size.saturating_sub(inode.appended);
        if inode.changed && before <= inode.written_end {
            return;
        }
        if inode.origin == Origin::Perhaps && before == 0 {
            return;
        }
        inode.origin = Origin::Initial;
        inode.size = before;
        inode.seen = Some(content.clone());
        if inode.appended > 0 {
            inode.written_end = inode.written_end.max(size);
        }
    }

    /// The end of the file is here now, bytes.
    pub(in crate::tracker) fn ends_at(&mut self, inode: InodeId, end: u64) {
        self.is_of_size(inode, end, &Content::Data);
    }

    /// The file ended here, bytes, when this much of it was appended by the recording.
    pub(in crate::tracker) fn ended_at(&mut self, inode: InodeId, end: u64, appended: u64) {
        let since = self.tree[inode].appended.saturating_sub(appended);
        self.ends_at(inode, end.saturating_add(since));
    }

    /// Nothing was read at a place, bytes: the file ends there, or before.
    pub(in crate::tracker) fn ends_before(&mut self, inode: InodeId, at: u64) {
        let known = &self.tree[inode];
        if at
            == known
                .size
                .max(known.written_end)
                .saturating_add(known.appended)
        {
            self.ends_at(inode, at);
        }
    }

    /// Data up to `end` was read, or the file was seen to reach there, bytes.
    pub(in crate::tracker) fn reached(&mut self, inode: InodeId, end: u64) {
        let inode = &mut self.tree[inode];
        let before = end.saturating_sub(inode.appended);
        if !inode.tells() || before <= inode.written_end.max(inode.size) {
            return;
        }
        inode.origin = Origin::Initial;
        if inode.seen.is_none() {
            inode.size = before;
        }
    }

    /// Memory up to `end` of the file was mapped, bytes.
    pub(in crate::tracker) fn mapped(&mut self, inode: InodeId, end: u64) {
        let inode = &mut self.tree[inode];
        if !inode.tells() || end <= inode.written_end.max(inode.size) {
            return;
        }
        inode.origin = Origin::Initial;
        inode.mapped_end = inode.mapped_end.max(end);
    }

    /// Data up to `end` was written, bytes.
    pub(in crate::tracker) fn wrote(&mut self, inode: InodeId, end: u64) {
        let inode = &mut self.tree[inode];
        inode.changed = true;
        inode.written_end = inode.written_end.max(end);
    }

    /// So much was written at the file's end, bytes. Gives where it ends now, if that is known.
    pub(in crate::tracker) fn appended(&mut self, id: InodeId, done: u64) -> Option<u64> {
        let inode = &mut self.tree[id];
        if inode.tells() && inode.seen.is_none() {
            inode.changed = true;
            inode.appended = inode.appended.saturating_add(done);
            return None;
        }
        let end = self.end(id).saturating_add(done);
        self.wrote(id, end);
        Some(end)
    }

    /// What of a file was appended so far, bytes.
    pub(in crate::tracker) fn appended_so_far(&self, inode: InodeId) -> u64 {
        self.tree[inode].appended
    }

    /// The file has this size now, bytes, because the recording says so.
    pub(super) fn resized(&mut self, inode: InodeId, size: u64) {
        let inode = &mut self.tree[inode];
        inode.changed = true;
        inode.truncated = true;
        inode.written_end = size;
    }

    /// Where the file's end is now, bytes, if a call told.
    pub(in crate::tracker) fn sure_end(&self, inode: InodeId) -> Option<u64> {
        let known = &self.tree[inode];
        let told = known.seen.is_some() || known.truncated || known.origin == Origin::Made;
        told.then(|| self.end(inode))
    }

    /// Where the file's end is now, at least, bytes.
    pub(in crate::tracker) fn end(&self, inode: InodeId) -> u64 {
        let inode = &self.tree[inode];
        let end = match inode.truncated {
            true => inode.written_end,
            false => inode.size.max(inode.written_end),
        };
        end.saturating_add(if inode.seen.is_none() {
            inode.appended
        } else {
            0
        })
    }

    /// A symbolic link with these words is at a path. What calls found there before is where it
    /// leads.
    pub(in crate::tracker) fn is_link(&mut self, path: &[u8], content: &[u8]) {
        self.tree.may_lead_out(content);
        let Some(place) = self.tree.place(path, false, true) else {
            return;
        };
        if let Found::Inode(inode) = self.tree.find(&place)
            && let Kind::Symlink(words) = &self.tree[inode].kind
            && self.tree.is_made_up(&place, words)
        {
            return self.says(path, inode, content);
        }
        self.becomes_link(path, &place, content.into());
    }

    /// A link of which only the length was known says this.
    fn says(&mut self, path: &[u8], link: InodeId, content: &[u8]) {
        let led_to = self.tree.place(path, true, false);
        self.tree[link].kind = Kind::Symlink(content.into());
        let Some(place) = led_to else {
            return;
        };
        if let Found::Inode(target) = self.tree.find(&place)
            && self.tree.was_at(target, &place)
        {
            self.tree.hold(target);
            self.tree.forget_name(&place);
            self.leads_to(path, target);
            self.tree.release(target);
        }
    }

    /// A symbolic link is at a path, of which only is known how many bytes its words have.
    pub(super) fn is_link_of(&mut self, path: &[u8], bytes: u64) {
        let Some(place) = self.tree.place(path, false, true) else {
            return;
        };
        if let Found::Inode(inode) = self.tree.find(&place)
            && matches!(self.tree[inode].kind, Kind::Symlink(_))
        {
            return;
        }
        let words = self.tree.unused_words(&place, bytes);
        self.becomes_link(path, &place, words);
    }

    fn becomes_link(&mut self, path: &[u8], place: &DirectoryEntry, words: Box<[u8]>) {
        let target = match self.tree.find(place) {
            Found::Untouched => None,
            Found::Absent if self.tree.is_after_all(place) => None,
            Found::Absent => return,
            Found::Inode(inode) => {
                let known = &mut self.tree[inode];
                let other = !matches!(known.kind, Kind::Unknown | Kind::File | Kind::Directory);
                if other || known.origin == Origin::Made {
                    return;
                }
                if !known.followed && known.kind == Kind::Unknown {
                    known.kind = Kind::Symlink(words);
                    known.origin = Origin::Initial;
                    known.seen = Some(Content::Data);
                    return;
                }
                if !self.tree.was_at(inode, place) {
                    return;
                }
                Some(inode)
            }
        };
        if let Some(target) = target {
            self.tree.hold(target);
        }
        let link = self.tree.touch(place);
        self.tree[link].kind = Kind::Symlink(words);
        self.tree[link].seen = Some(Content::Data);
        if let Some(target) = target {
            self.leads_to(path, target);
            self.tree.release(target);
        }
    }

    /// What was thought to be at a path is where the link there leads.
    fn leads_to(&mut self, path: &[u8], target: InodeId) {
        let place = self.tree.place(path, true, true);
        match place.as_ref().map(|place| (place, self.tree.find(place))) {
            Some((place, Found::Untouched)) => {
                let first = (place.directory, place.name.clone());
                self.tree[target].first = Some(first);
                self.tree.bind(place, target);
            }
            Some((_, Found::Inode(known))) if known != target => self.tree.merge(known, target),
            // The link took its place, and it has no other.
            _ => self.tree[target].origin = Origin::Made,
        }
    }
}

impl Inode {
    /// True if what is found of its size may have been so from the beginning.
    fn tells(&self) -> bool {
        self.origin != Origin::Made && !self.truncated
    }
}
