//! Requests of io_submit: what bpf/aio.bpf.h and the recorder by ptrace read of them, and what that
//! means.

use std::collections::HashMap;

use iostep_model::syscall::raw::{Action, AioEnd, AioKey, AioRequest, Descriptor};

use super::action::UNREADABLE;
use super::record::Record;

/// A command that no request has, for one that could not be read.
pub(super) const LOST: u64 = u64::MAX;

/// Requests that wait for their io_submit, by thread.
#[derive(Debug, Default)]
pub(super) struct Submissions(HashMap<u32, Vec<AioRequest<'static>>>);

impl Submissions {
    /// Takes the record of a request.
    pub(super) fn add(&mut self, record: &Record<'_>) {
        self.0.entry(record.tid).or_default().push(request(record));
    }

    /// What io_submit handed in.
    pub(super) fn take(&mut self, record: &Record<'_>) -> Action<'static> {
        Action::Submit {
            context: record.word[0],
            requests: self.0.remove(&record.tid).unwrap_or_default(),
        }
    }
}

fn request(record: &Record<'_>) -> AioRequest<'static> {
    let [command, number, offset, size, address, more] =
        [0, 1, 2, 3, 4, 5].map(|at| record.word[at]);
    let how = (offset as i64, size, more as u32, (more >> 32) as u32);
    let handle = Descriptor::number(number as i32);
    let what = match command {
        LOST => Err(UNREADABLE),
        command => AioRequest::of(command as u32, handle, how).ok_or("other request of io_submit"),
    };
    let key = AioKey { address, data: 0 };
    AioRequest { key, what }
}

/// The end of a request, as a note.
pub(super) fn end(record: &Record<'_>) -> Action<'static> {
    let key = AioKey {
        address: record.word[1],
        data: 0,
    };
    let result = record.word[2] as i64;
    Action::Complete {
        name: "".into(),
        context: record.word[0],
        ends: vec![AioEnd { key, result }],
        all: false,
    }
}
