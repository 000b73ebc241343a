//! Which file an inode number means at a moment, and what it is called.
//!
//! Three sources, best first: fanotify's news of names (they carry the generation), a look at
//! the inode itself through a file handle, and, for a file that came and went unseen by both, a
//! made-up generation that at least keeps it apart from the next user of its inode number.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use iostep_model::FileKey;
use iostep_model::event::{Event, Extent, File};

use crate::tracefs::inspect::{Inspected, Visit};
use crate::tracefs::names::{Change, Identity, Naming, Watch};

/// Above this the table starts anew: files are then told of again, never wrongly.
const MAX_FILES: usize = 1 << 20;
/// `S_IFDIR`, for what fanotify calls a directory and is gone before it could be looked at.
const DIRECTORY_MODE: u16 = 0o040_000;
const REGULAR_MODE: u16 = 0o100_000;
/// ext4's own inodes, but for the root directory (fs/ext4/ext4.h).
const FIRST_USER_INODE: u64 = 11;
const ROOT_INODE: u64 = 2;

#[derive(Clone, Copy, Debug)]
struct Known {
    generation: u32,
    mode: u16,
}

/// An inode that was made in this trace and has no name yet.
#[derive(Clone, Copy, Debug)]
struct Born {
    mono_ns: u64,
    parent: u64,
    mode: u16,
    pid: u32,
}

/// The files of the traced filesystem.
#[derive(Debug, Default)]
pub(crate) struct Files {
    place: Option<TracedMount>,
    /// Extents that were there before the trace are told of with this time.
    start_ns: u64,
    known: HashMap<u64, Known>,
    born: HashMap<u64, Born>,
    /// News of names by inode, oldest first, each with the batch it came in.
    namings: HashMap<u64, VecDeque<(u64, Naming)>>,
    directories: HashMap<Identity, Option<String>>,
    /// When each inode that goes away in this batch does so for the last time.
    freed: HashMap<u64, u64>,
    batch: u64,
    made_up: u32,
    visit: Option<Visit>,
    /// A directory was renamed, and with it the paths of all files below.
    has_moved: bool,
}

#[derive(Debug)]
struct TracedMount {
    mount_point: PathBuf,
    device: (u32, u32),
    watch: Option<Watch>,
}

impl Files {
    /// `mount_point` is where the filesystem `device` is mounted, if it is.
    pub fn new(mount_point: Option<PathBuf>, device: Option<(u32, u32)>, start_ns: u64) -> Files {
        let place = mount_point
            .zip(device)
            .map(|(mount_point, device)| TracedMount {
                watch: Watch::start(&mount_point).ok(),
                mount_point,
                device,
            });
        Files {
            place,
            start_ns,
            ..Files::default()
        }
    }

    /// Begins with the records of one drain, already read from the ring buffers. `freed` tells
    /// when each inode that goes away in them does so for the last time.
    pub fn begin_batch(&mut self, freed: HashMap<u64, u64>) {
        self.batch += 1;
        self.freed = freed;
        if self.known.len() > MAX_FILES {
            self.known.clear();
        }
        let watch = self.place.as_mut().and_then(|place| place.watch.as_mut());
        let news = watch.map(Watch::read).unwrap_or_default();
        for naming in news {
            self.note(naming);
        }
    }

    fn note(&mut self, naming: Naming) {
        if naming.directory && naming.change != Change::Made {
            self.directories.clear();
        }
        self.has_moved |= naming.directory && naming.change == Change::Renamed;
        let inode = u64::from(naming.file.inode);
        let queue = self.namings.entry(inode).or_default();
        queue.push_back((self.batch, naming));
    }

    /// Ends a batch at `mono_ns`: tells of new names of known files, and forgets old news.
    pub fn end_batch(&mut self, mono_ns: u64, emit: &mut dyn FnMut(Event)) {
        for inode in self.born.keys().copied().collect::<Vec<_>>() {
            self.christen(inode, emit);
        }
        let batch = self.batch;
        let mut renamed = Vec::new();
        self.namings.retain(|inode, queue| {
            let generation = self.known.get(inode).map(|known| known.generation);
            let (mine, rest) = queue.drain(..).partition::<VecDeque<_>, _>(|(_, naming)| {
                Some(naming.file.generation) == generation
            });
            renamed.extend(mine.into_iter().map(|(_, naming)| naming));
            *queue = rest;
            // One batch more: the record of a change can come after the news of it.
            queue.retain(|(came, _)| *came == batch);
            !queue.is_empty()
        });
        for naming in renamed {
            self.tell_change(&naming, mono_ns, emit);
        }
        self.visit = None;
    }

    /// At the end of the trace: tells where the files are now that lie below a renamed directory.
    /// Those that are gone by then keep the path that was told.
    pub fn finish(&mut self, mono_ns: u64, emit: &mut dyn FnMut(Event)) {
        if !self.has_moved {
            return;
        }
        let mut known: Vec<(u64, Known)> = self.known.iter().map(|(i, k)| (*i, *k)).collect();
        known.sort_unstable_by_key(|(inode, _)| *inode);
        for (inode, known) in known {
            let seen = self.inspect(inode);
            let Some(seen) = seen.filter(|seen| seen.generation == known.generation) else {
                continue;
            };
            if seen.path.is_some() && !seen.unlinked {
                emit(Event::File(File {
                    mono_ns,
                    file: FileKey::plain(inode, known.generation),
                    mode: seen.mode,
                    path: seen.path,
                    unlinked: false,
                    birth_wall_ns: seen.birth_wall_ns,
                }));
            }
        }
        self.visit = None;
    }

    fn tell_change(&mut self, naming: &Naming, mono_ns: u64, emit: &mut dyn FnMut(Event)) {
        let inode = u64::from(naming.file.inode);
        let Some(known) = self.known.get(&inode).copied() else {
            return;
        };
        let (unlinked, path) = match naming.change {
            Change::Renamed => (false, self.path(naming)),
            // Another hard link may be left; the inode itself knows.
            Change::Removed => match self.inspect(inode) {
                Some(seen) if seen.unlinked => (true, self.path(naming)),
                Some(seen) => (false, seen.path),
                None => return,
            },
            Change::Made | Change::MadeAndRemoved => return,
        };
        emit(Event::File(File {
            mono_ns,
            file: FileKey::plain(inode, known.generation),
            mode: known.mode,
            path,
            unlinked,
            birth_wall_ns: None,
        }));
    }

    /// The file that `inode` means at `mono_ns`; tells of it if nothing did yet.
    pub fn mention(&mut self, inode: u64, mono_ns: u64, emit: &mut dyn FnMut(Event)) -> FileKey {
        if let Some(known) = self.known.get(&inode) {
            return FileKey::plain(inode, known.generation);
        }
        if inode < FIRST_USER_INODE && inode != ROOT_INODE {
            // The log, the resize inode and their like cannot be opened and have no names.
            return FileKey::plain(inode, 0);
        }
        if let Some(file) = self.christen(inode, emit) {
            return file;
        }
        let gone = self
            .freed
            .get(&inode)
            .is_some_and(|&freed| freed >= mono_ns);
        let seen = if gone { None } else { self.inspect(inode) };
        let Some(seen) = seen else {
            return self.make_up(inode, mono_ns, emit);
        };
        let born = self.born.remove(&inode);
        let file = FileKey::plain(inode, seen.generation);
        emit(Event::File(File {
            mono_ns: born.map_or(mono_ns, |born| born.mono_ns),
            file,
            mode: seen.mode,
            path: seen.path,
            unlinked: seen.unlinked,
            birth_wall_ns: seen.birth_wall_ns,
        }));
        self.know(inode, seen.generation, seen.mode);
        if born.is_none() {
            self.tell_extents(file, seen.mode, emit);
        }
        file
    }

    /// An inode was made.
    pub fn born(
        &mut self,
        inode: u64,
        parent: u64,
        mode: u16,
        pid: u32,
        mono_ns: u64,
        emit: &mut dyn FnMut(Event),
    ) {
        self.known.remove(&inode);
        let born = Born {
            mono_ns,
            parent,
            mode,
            pid,
        };
        self.born.insert(inode, born);
        self.christen(inode, emit);
    }

    /// An inode went away.
    pub fn gone(&mut self, inode: u64, mono_ns: u64, emit: &mut dyn FnMut(Event)) {
        self.christen(inode, emit);
        if !self.known.contains_key(&inode) {
            self.name_from_removal(inode, mono_ns, emit);
        }
        if let Some(known) = self.known.get(&inode).copied() {
            self.last_rename(inode, known.generation, mono_ns, emit);
            self.known.remove(&inode);
            let file = FileKey::plain(inode, known.generation);
            emit(Event::FileDeleted { mono_ns, file });
        }
        self.born.remove(&inode);
    }

    /// Tells of the last new name of a file that is about to be told gone.
    fn last_rename(
        &mut self,
        inode: u64,
        generation: u32,
        mono_ns: u64,
        emit: &mut dyn FnMut(Event),
    ) {
        let news = self.namings.get(&inode).into_iter().flatten();
        let mut renamed = news.filter(|(_, naming)| {
            naming.change == Change::Renamed && naming.file.generation == generation
        });
        if let Some(naming) = renamed.next_back().map(|(_, naming)| naming.clone()) {
            self.tell_change(&naming, mono_ns, emit);
        }
    }

    /// A file from before the trace that nothing spoke of until it went away still has its name
    /// in the news of that.
    fn name_from_removal(&mut self, inode: u64, mono_ns: u64, emit: &mut dyn FnMut(Event)) {
        if self.born.contains_key(&inode) {
            return;
        }
        let Some(queue) = self.namings.get_mut(&inode) else {
            return;
        };
        let at = queue
            .iter()
            .position(|(_, naming)| naming.change == Change::Removed);
        if let Some((_, naming)) = at.and_then(|at| queue.remove(at)) {
            let mode = if naming.directory {
                DIRECTORY_MODE
            } else {
                REGULAR_MODE
            };
            self.tell_named(inode, mode, mono_ns, &naming, emit);
        }
    }

    /// Gives an inode that was just made its name, if the news has it by now.
    fn christen(&mut self, inode: u64, emit: &mut dyn FnMut(Event)) -> Option<FileKey> {
        let born = *self.born.get(&inode)?;
        let queue = self.namings.get_mut(&inode)?;
        let at = queue.iter().position(|(_, naming)| {
            let made = matches!(naming.change, Change::Made | Change::MadeAndRemoved);
            made && naming.pid == born.pid && u64::from(naming.parent.inode) == born.parent
        })?;
        let (_, naming) = queue.remove(at)?;
        self.born.remove(&inode);
        Some(self.tell_named(inode, born.mode, born.mono_ns, &naming, emit))
    }

    fn tell_named(
        &mut self,
        inode: u64,
        mode: u16,
        mono_ns: u64,
        naming: &Naming,
        emit: &mut dyn FnMut(Event),
    ) -> FileKey {
        let file = FileKey::plain(inode, naming.file.generation);
        emit(Event::File(File {
            mono_ns,
            file,
            mode,
            path: self.path(naming),
            unlinked: false,
            birth_wall_ns: None,
        }));
        self.know(inode, naming.file.generation, mode);
        file
    }

    fn make_up(&mut self, inode: u64, mono_ns: u64, emit: &mut dyn FnMut(Event)) -> FileKey {
        // A removal in the news is the last chance of a name.
        self.name_from_removal(inode, mono_ns, emit);
        if let Some(known) = self.known.get(&inode) {
            return FileKey::plain(inode, known.generation);
        }
        let born = self.born.remove(&inode);
        self.made_up += 1;
        let generation = self.made_up;
        let mode = born.map_or(0, |born| born.mode);
        emit(Event::File(File {
            mono_ns: born.map_or(mono_ns, |born| born.mono_ns),
            file: FileKey::plain(inode, generation),
            mode,
            path: None,
            unlinked: false,
            birth_wall_ns: None,
        }));
        self.know(inode, generation, mode);
        FileKey::plain(inode, generation)
    }

    fn know(&mut self, inode: u64, generation: u32, mode: u16) {
        self.known.insert(inode, Known { generation, mode });
    }

    fn visit(&mut self) -> Option<&Visit> {
        if self.visit.is_none() {
            let place = self.place.as_ref()?;
            self.visit = Visit::start(&place.mount_point, place.device);
        }
        self.visit.as_ref()
    }

    fn inspect(&mut self, inode: u64) -> Option<Inspected> {
        self.visit()?.inspect(inode)
    }

    /// Blocks that a file had before the trace: overwriting them makes no record of the mapping.
    fn tell_extents(&mut self, file: FileKey, mode: u16, emit: &mut dyn FnMut(Event)) {
        let mono_ns = self.start_ns;
        let Some(visit) = self.visit() else {
            return;
        };
        let Some(block_bytes) = visit.block_bytes() else {
            return;
        };
        for placed in visit.extents(file.inode, file.generation, mode) {
            emit(Event::Extent(Extent {
                mono_ns,
                inode: file.inode,
                file_block: placed.offset_bytes / block_bytes,
                fs_block: placed.device_bytes / block_bytes,
                fs_blocks: u32::try_from(placed.length_bytes / block_bytes).unwrap_or(u32::MAX),
            }));
        }
    }

    fn path(&mut self, naming: &Naming) -> Option<String> {
        let parent = naming.parent;
        if !self.directories.contains_key(&parent) {
            let path = self.visit()?.directory(parent);
            self.directories.insert(parent, path);
        }
        let directory = self.directories.get(&parent)?.as_deref()?;
        Some(format!(
            "{}/{}",
            directory.trim_end_matches('/'),
            naming.name
        ))
    }
}

/// When each inode goes away for the last time, in `(mono_ns, inode)` of a batch.
pub(crate) fn last_freed(freed: impl Iterator<Item = (u64, u64)>) -> HashMap<u64, u64> {
    let mut last: HashMap<u64, u64> = HashMap::new();
    for (mono_ns, inode) in freed {
        let when = last.entry(inode).or_default();
        *when = mono_ns.max(*when);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    const INODE: u64 = 14;
    const DIRECTORY: Identity = Identity {
        inode: 2,
        generation: 20,
    };

    /// Files of a filesystem that cannot be visited, with one known directory.
    fn files() -> Files {
        let mut files = Files::new(None, None, 0);
        files.directories.insert(DIRECTORY, Some("/dir".to_owned()));
        files.begin_batch(HashMap::new());
        files
    }

    fn news(generation: u32, name: &str, pid: u32, change: Change) -> Naming {
        Naming {
            file: Identity {
                inode: INODE as u32,
                generation,
            },
            parent: DIRECTORY,
            name: name.to_owned(),
            pid,
            change,
            directory: false,
        }
    }

    /// Calls `act` with an `emit` and returns what the events say, in short.
    fn told(act: impl FnOnce(&mut dyn FnMut(Event))) -> Vec<String> {
        let mut told = Vec::new();
        act(&mut |event| {
            told.push(match event {
                Event::File(file) => {
                    let path = file.path.unwrap_or_default();
                    format!("{path} {}", file.file.generation)
                }
                Event::FileDeleted { file, .. } => format!("gone {}", file.generation),
                other => format!("{other:?}"),
            });
        });
        told
    }

    #[test]
    fn each_life_of_an_inode_has_its_own_name_and_generation() {
        let mut files = files();
        files.note(news(7, "a", 100, Change::MadeAndRemoved));
        files.note(news(8, "b", 100, Change::Made));
        let told = told(|emit| {
            files.born(INODE, 2, 0o100_644, 100, 10, emit);
            files.gone(INODE, 20, emit);
            files.born(INODE, 2, 0o100_644, 100, 30, emit);
            assert_eq!(files.mention(INODE, 40, emit).generation, 8);
        });
        assert_eq!(told, ["/dir/a 7", "gone 7", "/dir/b 8"]);
    }

    #[test]
    fn news_of_a_name_may_come_after_the_record_of_the_inode() {
        let mut files = files();
        let told = told(|emit| {
            files.born(INODE, 2, 0o100_644, 100, 10, emit);
            files.end_batch(20, emit);
            files.begin_batch(HashMap::new());
            files.note(news(7, "late", 100, Change::Made));
            files.end_batch(30, emit);
        });
        assert_eq!(told, ["/dir/late 7"]);
    }

    #[test]
    fn a_file_without_a_name_does_not_take_that_of_another() {
        let mut files = files();
        files.note(news(8, "other", 200, Change::Made));
        let told = told(|emit| {
            // O_TMPFILE: no name, another thread, the same inode number before.
            files.born(INODE, 2, 0o100_644, 100, 10, emit);
            files.freed.insert(INODE, 20);
            let nameless = files.mention(INODE, 15, emit);
            files.gone(INODE, 20, emit);
            files.born(INODE, 2, 0o100_644, 200, 30, emit);
            assert_ne!(files.mention(INODE, 40, emit), nameless);
        });
        assert_eq!(told.last().map(String::as_str), Some("/dir/other 8"));
    }

    #[test]
    fn a_file_is_told_of_under_its_new_name_also_when_it_is_about_to_go() {
        let mut files = files();
        files.note(news(7, "old", 100, Change::Made));
        let mut all = told(|emit| files.born(INODE, 2, 0o100_644, 100, 10, emit));
        files.note(news(7, "new", 100, Change::Renamed));
        all.extend(told(|emit| files.gone(INODE, 20, emit)));
        assert_eq!(all, ["/dir/old 7", "/dir/new 7", "gone 7"]);
    }

    #[test]
    fn lives_that_nobody_could_look_at_stay_apart() {
        let mut files = files();
        let mut keys = Vec::new();
        told(|emit| {
            for life in 0..3 {
                files.born(INODE, 2, 0o100_644, 100, life * 10, emit);
                keys.push(files.mention(INODE, life * 10 + 1, emit));
                files.gone(INODE, life * 10 + 2, emit);
            }
        });
        assert!(keys[0] != keys[1] && keys[1] != keys[2], "{keys:?}");
    }

    #[test]
    fn the_last_time_an_inode_goes_away_in_a_batch_is_kept() {
        let last = last_freed([(10, 1), (30, 1), (20, 2)].into_iter());
        assert_eq!(last, HashMap::from([(1, 30), (2, 20)]));
    }
}
