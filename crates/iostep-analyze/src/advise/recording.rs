//! What an application did to its database, out of a trace of its system calls.
//!
//! SQLite's files are known by their names, `X-journal`, `X-wal` and `X-shm` beside `X`, and the end
//! of a transaction by what pager.c does to them: the journal is removed, cut, or its first 28 bytes
//! are overwritten (`zeroJournalHdr`); in a log, byte 120 of the shared memory is unlocked
//! (wal.c, `WAL_WRITE_LOCK`), or, where locks were not recorded, frames are synced. Journals in
//! memory and waldio's log leave no such signs.

mod habit;
#[cfg(test)]
mod tests;
mod tracked;

use std::collections::HashMap;

use iostep_model::syscall::{
    Call, Direction, HandleId, LockKind, Operation, Outcome, PathId, Paths, Target,
};
use rustc_hash::FxHashMap;

pub use habit::Habit;
use tracked::Tracked;

/// The lock of a log's writer: `UNIX_SHM_BASE` and `WAL_WRITE_LOCK`.
const WRITE_LOCK_BYTE: i64 = 120;
/// `F_UNLCK`.
const UNLOCK: u32 = 2;

/// Which of a database's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Main,
    Journal,
    Log,
    Shared,
}

/// Reads a recording call by call. Memory: a few bytes for each open file and path, and the pages
/// of the transactions under way.
#[derive(Debug, Default)]
pub struct Habits {
    databases: Vec<Tracked>,
    by_name: HashMap<Vec<u8>, usize>,
    known: FxHashMap<PathId, (usize, Role)>,
    opened: FxHashMap<HandleId, PathId>,
    positions: FxHashMap<HandleId, i64>,
}

impl Habits {
    /// Takes a call, in their order; `paths` are those of the recording so far.
    pub fn call(&mut self, call: &Call, paths: &Paths) {
        match (&call.operation, call.outcome) {
            (Operation::Open { path, .. }, Outcome::Handle(handle)) => {
                self.opened.insert(handle, *path);
                self.file(*path, paths);
            }
            (Operation::Reopen { handle, .. }, Outcome::Handle(new)) => {
                if let Some(path) = self.opened.get(handle).copied() {
                    self.opened.insert(new, path);
                }
            }
            (Operation::Seek { handle, .. }, Outcome::Value(position)) => {
                self.positions.insert(*handle, position);
            }
            (
                Operation::Transfer {
                    direction,
                    handle,
                    offset,
                    ..
                },
                Outcome::Value(bytes),
            ) => {
                let offset = self.advance(*handle, *offset, bytes);
                if *direction == Direction::Write
                    && let Some((tracked, role)) = self.open_file(*handle, paths)
                {
                    tracked.written(role, offset, bytes.max(0) as u64, call.thread);
                }
            }
            (Operation::Sync { handle }, Outcome::Value(_)) => {
                if let Some((tracked, role)) = self.open_file(*handle, paths) {
                    tracked.synced(role);
                }
            }
            (Operation::Truncate { target, size: 0 }, Outcome::Value(_)) => {
                if let Some((tracked, Role::Journal)) = self.target(target, paths) {
                    tracked.cut();
                }
            }
            (Operation::Unlink { path }, Outcome::Value(_)) => {
                if let Some((tracked, Role::Journal)) = self.file(*path, paths) {
                    tracked.removed();
                }
            }
            (
                Operation::Lock {
                    handle,
                    kind: LockKind::Process | LockKind::Description,
                    lock: UNLOCK,
                    offset: WRITE_LOCK_BYTE,
                    ..
                },
                Outcome::Value(_),
            ) => {
                if let Some((tracked, Role::Shared)) = self.open_file(*handle, paths) {
                    tracked.unlocked();
                }
            }
            _ => {}
        }
    }

    /// What was done to the database of this file name, or, without a name, to the one with the
    /// most transactions; `None` if nothing was committed to it.
    pub fn finish(self, name: Option<&[u8]>) -> Option<Habit> {
        let wanted = |path: &[u8]| {
            name.is_none_or(|name| path.rsplit(|byte| *byte == b'/').next() == Some(name))
        };
        let found = self.by_name.iter().filter(|(path, _)| wanted(path));
        let habits = found.filter_map(|(path, place)| self.databases[*place].habit(path));
        // The name decides between equals, not the order of a map.
        habits.max_by(|a, b| {
            let key = |habit: &Habit| {
                (
                    habit.transactions,
                    std::cmp::Reverse(habit.database.clone()),
                )
            };
            key(a).cmp(&key(b))
        })
    }

    /// Where a transfer begins, and moves the file's own position if it was there.
    fn advance(&mut self, handle: HandleId, offset: Option<i64>, bytes: i64) -> i64 {
        offset.unwrap_or_else(|| {
            let position = self.positions.entry(handle).or_insert(0);
            let start = *position;
            *position = start.saturating_add(bytes);
            start
        })
    }

    fn open_file(&mut self, handle: HandleId, paths: &Paths) -> Option<(&mut Tracked, Role)> {
        let path = *self.opened.get(&handle)?;
        self.file(path, paths)
    }

    fn target(
        &mut self,
        target: &Target<HandleId, PathId>,
        paths: &Paths,
    ) -> Option<(&mut Tracked, Role)> {
        match *target {
            Target::Handle(handle) => self.open_file(handle, paths),
            Target::Path(path) => self.file(path, paths),
        }
    }

    /// The database that a file belongs to. One is known from its first companion on.
    fn file(&mut self, path: PathId, paths: &Paths) -> Option<(&mut Tracked, Role)> {
        if let Some(&(place, role)) = self.known.get(&path) {
            return Some((&mut self.databases[place], role));
        }
        let bytes = paths.get(path);
        let companions = [
            (&b"-journal"[..], Role::Journal),
            (b"-wal", Role::Log),
            (b"-shm", Role::Shared),
        ];
        let mut companions = companions.into_iter();
        let companion = companions.find_map(|(suffix, role)| {
            let name = bytes.strip_suffix(suffix)?;
            (!name.is_empty()).then_some((name, role))
        });
        let (place, role) = match companion {
            Some((name, role)) => (self.database(name), role),
            None => (*self.by_name.get(bytes)?, Role::Main),
        };
        self.known.insert(path, (place, role));
        Some((&mut self.databases[place], role))
    }

    fn database(&mut self, name: &[u8]) -> usize {
        if let Some(&place) = self.by_name.get(name) {
            return place;
        }
        self.databases.push(Tracked::default());
        let place = self.databases.len() - 1;
        self.by_name.insert(name.to_owned(), place);
        place
    }
}
