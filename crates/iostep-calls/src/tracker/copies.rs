//! Calls that move data from one descriptor to another: copy_file_range, sendfile, splice.

use iostep_model::syscall::raw::{Descriptor, DescriptorKind, Path, Returned};
use iostep_model::syscall::{Direction, HandleId, Operation, Syscall};

use super::descriptors::Lookup;
use super::resolve::Wanted;
use super::{At, Kept, Stop, Tracker, place, plain};
use crate::sink::Sink;

type Copy<'a> = Operation<Descriptor<'a>, Path<'a>>;

/// An end of a copy: an open file, or the reason why it is none.
type End = std::result::Result<HandleId, &'static str>;

impl<S: Sink> Tracker<S> {
    /// A copy. Where one end is no file, what went through is read from the other, or written to it.
    pub(super) fn copied(&mut self, at: &At, syscall: Syscall, copy: Copy<'_>) -> super::Step {
        let Operation::Copy {
            from,
            to,
            size,
            from_offset,
            to_offset,
        } = copy
        else {
            return Ok(Kept::Note);
        };
        let (from, to) = match syscall {
            Syscall::Splice => self.ends_of_splice(at, (&from, from_offset), (&to, to_offset))?,
            _ => (self.end_of(at, &from)?, self.end_of(at, &to)?),
        };
        let (direction, handle, offset) = match (from, to) {
            (Ok(from), Ok(to)) => {
                let operation = Operation::Copy {
                    from,
                    to,
                    size,
                    from_offset,
                    to_offset,
                };
                return self.told_call(at, syscall, operation);
            }
            (Ok(from), Err(_)) => (Direction::Read, from, from_offset),
            (Err(_), Ok(to)) => (Direction::Write, to, to_offset),
            (Err(_), Err(reason)) => return Err(Stop::LeftOut(reason)),
        };
        let other = from.err().or(to.err()).unwrap_or_default();
        let syscall = match (syscall, direction) {
            (Syscall::Sendfile, Direction::Read) => Syscall::SendfileRead,
            (Syscall::Sendfile, Direction::Write) => Syscall::SendfileWrite,
            (Syscall::Splice, Direction::Read) => Syscall::SpliceRead,
            (Syscall::Splice, Direction::Write) => Syscall::SpliceWrite,
            _ => return Err(Stop::LeftOut(other)),
        };
        let size = match (at.returned, direction) {
            // The file is at its end.
            (Returned::Value(0), Direction::Read) => size,
            // What is more was not refused by the file: the other end had no room or no more.
            (Returned::Value(done @ 1..), _) => done,
            (Returned::Unfinished | Returned::Unknown, _) => size,
            // Nothing went through, and the other end may be why.
            _ => return Err(Stop::LeftOut(other)),
        };
        let operation = Operation::Transfer {
            direction,
            handle,
            size,
            offset,
            buffers: 1,
            flags: 0,
        };
        self.told_call(at, syscall, operation)
    }

    fn told_call(
        &mut self,
        at: &At,
        syscall: Syscall,
        operation: Operation<HandleId, iostep_model::syscall::PathId>,
    ) -> super::Step {
        self.conclude(at, &operation, None)?;
        self.call(at, syscall, operation, plain(at.returned))?;
        Ok(Kept::Call)
    }

    /// One end of a splice is a pipe (splice(2)). If only one is known, the other is told by it, or by the
    /// offset, which a pipe has not.
    fn ends_of_splice(
        &mut self,
        at: &At,
        (from, from_offset): (&Descriptor<'_>, Option<i64>),
        (to, to_offset): (&Descriptor<'_>, Option<i64>),
    ) -> std::result::Result<(End, End), Stop> {
        let pipe = Err(place::reason(DescriptorKind::Pipe));
        let (is_from, is_to) = (self.is_told(at, from), self.is_told(at, to));
        Ok(match (is_from, is_to) {
            (true, true) => (self.end_of(at, from)?, self.end_of(at, to)?),
            (true, false) => match self.end_of(at, from)? {
                Ok(file) => (Ok(file), pipe),
                other if to_offset.is_some() => (other, self.end_of(at, to)?),
                other => (other, pipe),
            },
            (false, true) => match self.end_of(at, to)? {
                Ok(file) => (pipe, Ok(file)),
                other if from_offset.is_some() => (self.end_of(at, from)?, other),
                other => (pipe, other),
            },
            (false, false) => match (from_offset, to_offset) {
                (Some(_), _) => (self.end_of(at, from)?, pipe),
                (_, Some(_)) => (pipe, self.end_of(at, to)?),
                (None, None) => (pipe, pipe),
            },
        })
    }

    /// True if what a descriptor is is known from calls or from the source.
    fn is_told(&mut self, at: &At, descriptor: &Descriptor<'_>) -> bool {
        let table = self.task(at.tid).descriptors;
        let lookup = self.tasks.descriptors[table].get(descriptor.number, at.start_ns);
        matches!(lookup, Lookup::Is(_)) || descriptor.known.is_some()
    }

    fn end_of(&mut self, at: &At, descriptor: &Descriptor<'_>) -> std::result::Result<End, Stop> {
        match self.descriptor(at, descriptor, Wanted::File) {
            Ok(handle) => Ok(Ok(handle)),
            Err(Stop::LeftOut(reason)) => Ok(Err(reason)),
            Err(failed) => Err(failed),
        }
    }
}
