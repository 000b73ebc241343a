//! Records that are no calls: threads that begin, change and end.

use iostep_model::syscall::raw::Action;

use super::aio;
use super::programs::types::wire_shares as Shares;
use super::record::{self, Record};

/// What a note says; none for a call.
pub(super) fn action(record: &Record<'_>) -> Option<Action<'static>> {
    let shares = |what: Shares| record.word[1] & u64::from(what.0) != 0;
    Some(match record.number {
        record::FORK => Action::Clone {
            name: "clone".into(),
            child: record.word[0] as u32,
            thread: shares(Shares::SHARES_PROCESS),
            shares_descriptors: shares(Shares::SHARES_FILES),
            shares_directory: shares(Shares::SHARES_DIRECTORY),
        },
        record::EXEC => Action::Execute {
            name: name(record).into(),
        },
        record::EXIT => Action::Exit {
            process: record.word[0] != 0,
        },
        record::NAME => Action::Name(name(record).into()),
        record::COMPLETED => aio::end(record),
        record::UNRECORDED => Action::LeftOut {
            name: "ptrace".into(),
            reason: "thread or process that was not recorded",
        },
        _ => return None,
    })
}

/// The number that a new thread has in its own PID namespace, if that is another one.
pub(super) fn own_number(record: &Record<'_>) -> Option<(u32, Action<'static>)> {
    let (child, own) = (record.word[0] as u32, record.word[2] as u32);
    let is_other = record.number == record::FORK && own != 0 && own != child;
    is_other.then_some((child, Action::KnownAs(own)))
}

/// A thread that executes a program while it is not its process's first becomes that one: the
/// others, the first among them, ended before. Gives its number before, and what goes on under the
/// new one.
pub(super) fn renumbering(record: &Record<'_>) -> Option<(u32, Action<'static>)> {
    let before = record.word[0] as u32;
    let is_other = record.number == record::EXEC && before != 0 && before != record.tid;
    is_other.then(|| {
        let action = Action::Clone {
            name: "".into(),
            child: record.tid,
            thread: true,
            shares_descriptors: true,
            shares_directory: true,
        };
        (before, action)
    })
}

/// `TASK_COMM_LEN` bytes in two words.
fn name(record: &Record<'_>) -> String {
    let words = [record.word[1], record.word[2]].map(u64::to_ne_bytes);
    let bytes = words.as_flattened();
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}
