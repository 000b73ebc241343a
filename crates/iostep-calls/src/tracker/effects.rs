//! What calls tell of the beginning, and what they change: positions, sizes, mappings.

use iostep_model::syscall::raw::{Returned, Seen};
use iostep_model::syscall::{Direction, HandleId, Operation, Outcome, PathId, Syscall, Whence};

use super::initial::Ended;
use super::mapping::Part;
use super::{At, Tracker};
use crate::error::Result;
use crate::sink::Sink;

/// The file is a program or a library that is loaded (include/uapi/asm-generic/mman.h).
const MAP_DENYWRITE: u32 = 0x800;

impl<S: Sink> Tracker<S> {
    /// What a call tells of the beginning, and what it changes for later ones.
    ///
    /// Errors: the sink's.
    pub(super) fn conclude(
        &mut self,
        at: &At,
        operation: &Operation<HandleId, PathId>,
        seen: Option<&Seen>,
    ) -> Result<()> {
        let ended = Ended::from(at.returned);
        let done = match (at.returned, operation) {
            (Returned::Value(value), _) => value,
            // As a rule a request does all that it was asked for.
            (Returned::Unknown, Operation::Transfer { size, .. }) => *size,
            _ => 0,
        };
        match *operation {
            _ if matches!(ended, Ended::Failed(_)) => self.told(operation, ended, seen),
            Operation::Transfer { .. } => self.transfer(at, operation, done)?,
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
            Operation::Reflink {
                from,
                to,
                size,
                from_offset,
                to_offset,
            } if ended == Ended::Worked => self.shared(from, to, (from_offset, to_offset), size),
            Operation::Seek {
                handle,
                offset,
                whence,
            } if ended == Ended::Worked => {
                let from = i64::try_from(done)
                    .unwrap_or(i64::MAX)
                    .saturating_sub(offset);
                let from = u64::try_from(from).unwrap_or(0);
                if whence == Whence::Current {
                    self.was_at(at, handle, from)?;
                }
                self.sought(handle, done, whence, from);
            }
            Operation::Map {
                handle,
                offset,
                size,
                flags,
                ..
            } if ended == Ended::Worked => {
                let part = Part {
                    handle,
                    offset,
                    size,
                };
                self.mapped(at, done, part, flags);
            }
            _ => self.told(operation, ended, seen),
        }
        Ok(())
    }

    /// A read or a write did so much, bytes.
    fn transfer(
        &mut self,
        at: &At,
        operation: &Operation<HandleId, PathId>,
        done: u64,
    ) -> Result<()> {
        let Operation::Transfer {
            direction,
            handle,
            offset,
            size,
            ..
        } = *operation
        else {
            return Ok(());
        };
        let worked = Ended::from(at.returned) == Ended::Worked;
        let at_end = worked && direction == Direction::Read && done < size;
        if let (true, None) = (at_end, offset) {
            let inode = self.files.get(&handle).and_then(|file| file.inode);
            let end = inode.and_then(|inode| self.initial.sure_end(inode));
            if let Some(from) = end.and_then(|end| end.checked_sub(done)) {
                self.was_at(at, handle, from)?;
            }
        }
        let read = self.transferred(handle, direction, offset, done);
        if let (Some(from), true) = (read, at_end) {
            self.ended(handle, from.saturating_add(done), done > 0);
        }
        Ok(())
    }

    /// An open file was at this position before a call, bytes. Of one whose open nobody saw that is told
    /// now: where it was before is not known.
    fn was_at(&mut self, at: &At, handle: HandleId, position: u64) -> Result<()> {
        let Some(file) = self.files.get_mut(&handle) else {
            return Ok(());
        };
        let unknown = std::mem::take(&mut file.position_unknown);
        if !unknown || file.position == position {
            return Ok(());
        }
        file.sure = true;
        self.present_at(at, handle, position)
    }

    /// Records the position of a file that was open already.
    pub(super) fn present_at(&mut self, at: &At, handle: HandleId, position: u64) -> Result<()> {
        let offset = i64::try_from(position).unwrap_or(i64::MAX);
        if let Some(file) = self.files.get_mut(&handle) {
            file.position = position;
        }
        let seek = Operation::Seek {
            handle,
            offset,
            whence: Whence::Start,
        };
        let at = At {
            duration_ns: Some(0),
            ..*at
        };
        self.call(&at, Syscall::Present, seek, Outcome::Value(offset))
    }

    /// A part of a file was mapped at an address.
    fn mapped(&mut self, at: &At, address: u64, part: Part, flags: u32) {
        let begin = u64::try_from(part.offset).unwrap_or(0);
        let inode = self.files.get(&part.handle).and_then(|file| file.inode);
        // The loader maps the whole room of a program at first, more than its file has.
        if let (Some(inode), true) = (inode, flags & MAP_DENYWRITE == 0) {
            self.initial.mapped(inode, begin.saturating_add(part.size));
        }
        let process = self.task(at.tid).process;
        self.tasks.processes[process].mappings.add(address, part);
    }

    /// What a call tells that moves no data.
    fn told(&mut self, operation: &Operation<HandleId, PathId>, ended: Ended, seen: Option<&Seen>) {
        let files = &self.files;
        let inode_of = |handle| files.get(&handle).and_then(|file| file.inode);
        let initial = &mut self.initial;
        initial.call(operation, ended, &self.paths, seen, inode_of);
        if let (Operation::Rename { from, to, .. }, Ended::Worked) = (operation, ended) {
            self.move_directory(*from, *to);
        }
    }

    /// An open file's position is here now, bytes; `end` is where what it was counted from lies.
    fn sought(&mut self, handle: HandleId, position: u64, whence: Whence, end: u64) {
        let Some(file) = self.files.get_mut(&handle) else {
            return;
        };
        let appended = file.appended.take();
        file.position = position;
        file.sure = true;
        file.position_unknown = false;
        let Some(inode) = file.inode else {
            return;
        };
        match (whence, appended) {
            (Whence::End, _) => self.initial.ends_at(inode, end),
            // It is where the last append left it.
            (Whence::Current, Some(appended)) => self.initial.ended_at(inode, end, appended),
            (Whence::Data | Whence::Hole, _) => self.initial.reached(inode, position),
            _ => {}
        }
    }

    /// A read ended early: there the file ends, or before, if nothing was read.
    fn ended(&mut self, handle: HandleId, at: u64, some: bool) {
        if let Some(inode) = self.files.get(&handle).and_then(|file| file.inode) {
            match some {
                true => self.initial.ends_at(inode, at),
                false => self.initial.ends_before(inode, at),
            }
        }
    }

    /// A file has blocks of another: so many bytes, all from there on if 0.
    fn shared(
        &mut self,
        from: HandleId,
        to: HandleId,
        (from_offset, to_offset): (i64, i64),
        size: u64,
    ) {
        let inode_of = |handle| self.files.get(&handle).and_then(|file| file.inode);
        let (Some(from), Some(to)) = (inode_of(from), inode_of(to)) else {
            return;
        };
        let offset = |at| u64::try_from(at).unwrap_or(0);
        let (from_offset, to_offset) = (offset(from_offset), offset(to_offset));
        let size = match size {
            0 => self.initial.end(from).saturating_sub(from_offset),
            size => size,
        };
        self.initial.reached(from, from_offset.saturating_add(size));
        self.initial.wrote(to, to_offset.saturating_add(size));
    }

    /// `done` bytes were read or written. Gives where they begin, if that is known.
    fn transferred(
        &mut self,
        handle: HandleId,
        direction: Direction,
        offset: Option<i64>,
        done: u64,
    ) -> Option<u64> {
        let file = self.files.get_mut(&handle)?;
        let (from, sure) = match offset {
            Some(offset) => (u64::try_from(offset).unwrap_or(0), true),
            None => (file.position, file.sure),
        };
        if let (Direction::Write, true, Some(inode)) = (direction, file.appends, file.inode) {
            let end = self.initial.appended(inode, done);
            if offset.is_none() {
                file.sure = end.is_some();
                file.position = end.unwrap_or_else(|| self.initial.end(inode));
                file.appended = match end {
                    Some(_) => None,
                    None => Some(self.initial.appended_so_far(inode)),
                };
            }
            return None;
        }
        let end = from.saturating_add(done);
        if offset.is_none() {
            file.position = end;
            file.appended = None;
        }
        match (file.inode, direction) {
            (Some(inode), Direction::Read) if done > 0 => self.initial.reached(inode, end),
            (Some(inode), Direction::Write) if done > 0 => self.initial.wrote(inode, end),
            _ => {}
        }
        sure.then_some(from)
    }
}
