//! Results that are not those of the recording, and why.

use iostep_model::replay::State;
use iostep_model::syscall::{
    Call, Direction, Errno, OpenFlags, Operation, Outcome, Syscall, Whence,
};
use serde::{Deserialize, Serialize};

/// Why a call returned something else than in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The target's device or filesystem has no more space, or failed.
    Target,
    /// The target's filesystem does not know the operation, or not for this alignment.
    Unsupported,
    /// The recorded call was refused for permissions; a replay does not rebuild them.
    Permissions,
    /// A signal ended the recorded call.
    Signal,
    /// Locks of several processes are one process's in a replay.
    Locks,
    /// The file was open before the recording, and where its position was then is not known.
    Position,
    /// The file's first size is only concluded from the recorded calls.
    InitialSize,
    /// What was at the path first is only concluded from the recorded calls.
    InitialState,
    /// What was at the path first is known: something that was not recorded made, changed or removed
    /// it.
    Unrecorded,
    /// Mounts, running programs and limits are the recorded machine's.
    Machine,
    /// The replay lost or interrupted other calls before this one.
    Earlier,
    /// Sizes of directories and of inodes are the filesystem's own.
    Filesystem,
    /// None of the above.
    Unexplained,
}

impl Reason {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Reason::Target => "the target has no space, or failed",
            Reason::Unsupported => "the target's filesystem cannot do it",
            Reason::Permissions => "permissions are not rebuilt",
            Reason::Signal => "a signal ended the recorded call",
            Reason::Locks => "locks of several processes are one's in a replay",
            Reason::Position => "the position of a file that was open before is not known",
            Reason::InitialSize => "the file's first size is only concluded from calls",
            Reason::InitialState => "what was at the path first is only concluded from calls",
            Reason::Unrecorded => "something that was not recorded made or removed the path",
            Reason::Machine => "mounts, running programs and limits are not rebuilt",
            Reason::Earlier => "it follows from a call that was not made",
            Reason::Filesystem => "the filesystem's own sizes",
            Reason::Unexplained => "not explained",
        }
    }
}

/// Calls whose result differs in the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The system call.
    pub syscall: String,
    /// What it returned in the recording: a number's kind (`success`), or an error's name.
    pub recorded: String,
    /// What it returned here.
    pub replayed: String,
    pub reason: Reason,
    pub count: u64,
    /// The first of them: its place in the recording, from 1.
    pub first_call: u64,
}

/// How a call that was issued compares with the recorded one.
pub(super) enum Compared {
    Same,
    /// The recording does not say what it returned.
    Unknown,
    /// Another result, for this reason.
    Differs(Reason),
}

/// What a recording knows of the state before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Something of it was concluded and not seen.
    pub(super) concluded: bool,
    /// What was at the call's path was seen.
    pub(super) seen: bool,
    /// The position of a file that the call uses is not known.
    pub(super) unplaced: bool,
}

/// Compares a call's result with the recorded one.
pub(super) fn compare(call: &Call, returned: i64, known: impl FnOnce() -> Known) -> Compared {
    let recorded = match call.outcome {
        Outcome::Unknown | Outcome::Unfinished => return Compared::Unknown,
        Outcome::Handle(_) => Ok(0),
        Outcome::Value(value) => Ok(value),
        Outcome::Failed(errno) => Err(errno),
    };
    let replayed = match returned {
        0.. => Ok(returned),
        errno => Err(Errno(i32::try_from(-errno).unwrap_or(i32::MAX))),
    };
    let same = match (recorded, replayed) {
        (Ok(recorded), Ok(replayed)) => recorded == replayed || !compares_value(call),
        (Err(recorded), Err(replayed)) => recorded == replayed,
        _ => false,
    };
    match same {
        true => Compared::Same,
        false => Compared::Differs(reason(call, recorded, replayed, known())),
    }
}

/// Whether a success's number means the same on another filesystem.
fn compares_value(call: &Call) -> bool {
    match &call.operation {
        Operation::Transfer { .. } | Operation::Copy { .. } | Operation::ReadLink { .. } => true,
        Operation::Seek { whence, .. } => *whence != Whence::Data && *whence != Whence::Hole,
        _ => false,
    }
}

fn reason(
    call: &Call,
    recorded: Result<i64, Errno>,
    replayed: Result<i64, Errno>,
    known: Known,
) -> Reason {
    if let Err(errno) = replayed
        && let Some(reason) = reason_of_replayed(call, errno, recorded.is_ok())
    {
        return reason;
    }
    if let Err(errno) = recorded
        && let Some(reason) = reason_of_recorded(call, errno)
    {
        return reason;
    }
    match (recorded, replayed) {
        (Ok(_), Ok(_)) if matches!(call.operation, Operation::ReadDirectory { .. }) => {
            Reason::Filesystem
        }
        // A file takes part of a write if there is no room for more (write(2)).
        (Ok(recorded), Ok(replayed)) if replayed < recorded && writes(call) => Reason::Target,
        (Ok(_), Ok(_)) if known.unplaced && at_position(call) => Reason::Position,
        (Ok(_), Ok(_)) if known.concluded => Reason::InitialSize,
        _ if by_name(call) && known.seen => Reason::Unrecorded,
        _ if by_name(call) && known.concluded => Reason::InitialState,
        _ => Reason::Unexplained,
    }
}

const EINTR: Errno = Errno(4);
const EIO: Errno = Errno(5);
const EAGAIN: Errno = Errno(11);
const ENOMEM: Errno = Errno(12);
const ENFILE: Errno = Errno(23);
const EMFILE: Errno = Errno(24);
const EFBIG: Errno = Errno(27);
const ENOSPC: Errno = Errno(28);
const ENAMETOOLONG: Errno = Errno(36);
const EDQUOT: Errno = Errno(122);

fn reason_of_replayed(call: &Call, errno: Errno, succeeded: bool) -> Option<Reason> {
    let direct = matches!(
        call.operation,
        Operation::Open { flags, .. } | Operation::Reopen { flags, .. }
            if flags.has(OpenFlags::O_DIRECT)
    );
    match errno {
        ENOSPC | EDQUOT | EIO | Errno::EROFS | EFBIG | EMFILE => Some(Reason::Target),
        Errno::EOPNOTSUPP | ENAMETOOLONG => Some(Reason::Unsupported),
        // O_DIRECT that the filesystem has not, or whose blocks are larger.
        Errno::EINVAL if direct || is_transfer(call) => Some(Reason::Unsupported),
        EAGAIN if is_lock(call) && succeeded => Some(Reason::Locks),
        // Whoever replays is not who was recorded, and what may be executed is not always told.
        Errno::EPERM | Errno::EACCES => Some(Reason::Permissions),
        _ => None,
    }
}

fn reason_of_recorded(call: &Call, errno: Errno) -> Option<Reason> {
    match errno {
        EINTR | Errno(512..=516) => Some(Reason::Signal),
        EAGAIN | Errno::EACCES if is_lock(call) => Some(Reason::Locks),
        Errno::EPERM | Errno::EACCES | Errno::EROFS => Some(Reason::Permissions),
        ENOSPC | EDQUOT | EIO => Some(Reason::Target),
        Errno::EOPNOTSUPP => Some(Reason::Unsupported),
        Errno::EBUSY | Errno::ETXTBSY | Errno::EXDEV | ENFILE | EMFILE | ENOMEM => {
            Some(Reason::Machine)
        }
        _ => None,
    }
}

fn is_transfer(call: &Call) -> bool {
    matches!(call.operation, Operation::Transfer { .. })
}

fn writes(call: &Call) -> bool {
    let to_file = matches!(
        call.operation,
        Operation::Transfer {
            direction: Direction::Write,
            ..
        }
    );
    to_file || matches!(call.operation, Operation::Copy { .. })
}

/// True for a call on what lies at an open file's own position.
fn at_position(call: &Call) -> bool {
    match call.operation {
        Operation::Transfer { offset, .. } => offset.is_none(),
        Operation::Copy {
            from_offset,
            to_offset,
            ..
        } => from_offset.is_none() || to_offset.is_none(),
        Operation::Seek { whence, .. } => whence == Whence::Current,
        _ => false,
    }
}

fn is_lock(call: &Call) -> bool {
    matches!(call.operation, Operation::Lock { .. })
}

fn by_name(call: &Call) -> bool {
    !call.operation.paths().is_empty() || call.syscall == Syscall::Symlink
}

/// A result in words: what kind of success, or the error's name.
pub(super) fn recorded_text(call: &Call) -> String {
    match call.outcome {
        Outcome::Handle(_) => "success".into(),
        Outcome::Value(value) if compares_value(call) => value.to_string(),
        Outcome::Value(_) => "success".into(),
        Outcome::Failed(errno) => errno.to_string(),
        Outcome::Unfinished | Outcome::Unknown => "unknown".into(),
    }
}

/// The same of what the replay got.
pub(super) fn replayed_text(call: &Call, state: State) -> String {
    match state {
        State::Done(value @ 0..) if compares_value(call) => value.to_string(),
        State::Done(0..) => "success".into(),
        State::Done(errno) => Errno(i32::try_from(-errno).unwrap_or(i32::MAX)).to_string(),
        State::Skipped(skip) => skip.name().into(),
    }
}
