//! System calls that touch files: what `record` and `clean` produce and `replay` performs.
//!
//! The data's way: a recorder or a parser of foreign text gives [`raw::Event`]s, in which
//! descriptors are the numbers of a process and paths are as the program wrote them; the tracker of
//! `iostep-calls` follows both through dup, fork, exec and chdir and gives [`Call`]s of a
//! [`Recording`], in which a [`HandleId`] is one open file description for the whole recording and
//! a path is absolute. One enum, [`Operation`], serves both sides.
//!
//! Units: times are nanoseconds since the recording's start, sizes and offsets are bytes.

mod action;
mod arguments;
mod calls;
pub mod constants;
mod errno;
mod flags;
mod identity;
pub mod kept;
mod operation;
pub mod raw;
mod recording;
pub mod text;

pub use arguments::{Arguments, Reason};
pub use calls::Syscall;
pub use flags::OpenFlags;
pub use identity::{HandleId, PathId, ProcessId, ThreadId};
pub use operation::{Direction, LockKind, Operation, OperationKind, Target, Translate, Whence};
pub use recording::{
    Call, Clock, Content, Errno, Header, InitialFile, InitialKind, Ledger, LedgerLine, Outcome,
    Paths, Recording, Thread,
};
