//! Requests of io_submit, from being handed in to being complete.
//!
//! A descriptor means what it is when the request is handed in; the call of the recording is told
//! when its end is. How a request ended is known if the program asked by io_getevents; libaio may look
//! into the ring that it shares with the kernel, which is no call.

use iostep_model::syscall::raw::{Action, AioEnd, AioKey, AioRequest, Returned};
use iostep_model::syscall::{Errno, HandleId, Operation, PathId, Syscall, ThreadId};

use super::pool::Slot;
use super::resolve::{Resolve, Wanted};
use super::{At, Kept, Stop, Tracker, plain};
use crate::error::Result;
use crate::sink::Sink;

type Step = std::result::Result<Kept, Stop>;

/// io_submit took more requests than the source shows.
const CUT_OFF: &str = "call with further requests that are cut off";

/// A request under way.
#[derive(Clone, Debug)]
pub(super) struct Request {
    context: u64,
    key: AioKey,
    tid: u32,
    thread: ThreadId,
    start_ns: u64,
    syscall: Syscall,
    operation: Operation<HandleId, PathId>,
}

impl Request {
    /// Bytes that it asks for.
    fn size(&self) -> u64 {
        match self.operation {
            Operation::Transfer { size, .. } => size,
            _ => 0,
        }
    }
}

/// Which request an end is of: that at the address, or the first with the same word of the program, one
/// of that size before others.
fn which(requests: &[Request], context: u64, end: &AioEnd) -> Option<usize> {
    let addresses = |r: &Request| (r.key.address != 0).then_some(r.key.address);
    if let Some(at) = requests
        .iter()
        .position(|r| addresses(r) == Some(end.key.address))
    {
        return Some(at);
    }
    let may_be =
        |r: &Request| addresses(r).is_none() && r.context == context && r.key.data == end.key.data;
    let whole = |r: &Request| may_be(r) && i64::try_from(r.size()) == Ok(end.result);
    let mut all = requests.iter();
    all.position(whole)
        .or_else(|| requests.iter().position(may_be))
}

impl<S: Sink> Tracker<S> {
    /// Requests are handed in.
    pub(super) fn submit(&mut self, at: &At, context: u64, requests: Vec<AioRequest<'_>>) -> Step {
        let Returned::Value(accepted) = at.returned else {
            return Err(Stop::LeftOut(
                "request of io_submit that the kernel refused",
            ));
        };
        let shown = requests.len() as u64;
        let (mut kept, mut reason) = (0, "request of io_submit");
        for request in requests
            .into_iter()
            .take(usize::try_from(accepted).unwrap_or(0))
        {
            match self.hand_in(at, context, request) {
                Ok(()) => kept += 1,
                Err(Stop::LeftOut(why)) => reason = why,
                Err(failed) => return Err(failed),
            }
        }
        match kept {
            _ if shown < accepted => Ok(Kept::Counted(CUT_OFF)),
            0 => Err(Stop::LeftOut(reason)),
            _ => Ok(Kept::Call),
        }
    }

    fn hand_in(
        &mut self,
        at: &At,
        context: u64,
        request: AioRequest<'_>,
    ) -> std::result::Result<(), Stop> {
        let (syscall, operation) = request.what.map_err(Stop::LeftOut)?;
        let mut resolve = Resolve {
            tracker: self,
            at: *at,
            wanted: Wanted::File,
            follow: true,
        };
        let operation = operation.translate(&mut resolve)?;
        let thread = self.thread(at.tid)?;
        let process = self.task(at.tid).process;
        // Its memory is used again, so the one before is complete.
        let address = request.key.address;
        let used = |r: &Request| address != 0 && r.key.address == address;
        self.end_where(process, used)?;
        self.tasks.processes[process].requests.push(Request {
            context,
            key: request.key,
            tid: at.tid,
            thread,
            start_ns: at.start_ns,
            syscall,
            operation,
        });
        Ok(())
    }

    /// io_getevents or io_destroy returned, or a note of the first.
    pub(super) fn completed(&mut self, at: &At, action: Action<'_>) -> Step {
        let Action::Complete {
            name,
            context,
            ends,
            all,
        } = action
        else {
            return Ok(Kept::Note);
        };
        self.complete(at, context, &ends)?;
        if all {
            self.end_context(at, context)?;
        }
        Ok(match name.is_empty() {
            true => Kept::Note,
            false => Kept::Followed,
        })
    }

    fn complete(&mut self, at: &At, context: u64, ends: &[AioEnd]) -> Result<()> {
        let process = self.task(at.tid).process;
        for end in ends {
            let requests = &mut self.tasks.processes[process].requests;
            let Some(found) = which(requests, context, end) else {
                // It was handed in before the recording.
                continue;
            };
            let request = requests.remove(found);
            let returned = match end.result {
                error @ -4095..=-1 => Returned::Failed(Errno(-error as i32)),
                value => Returned::Value(value.unsigned_abs()),
            };
            let duration_ns = at.end_ns().saturating_sub(request.start_ns);
            self.end_request(request, Some(duration_ns), returned)?;
        }
        Ok(())
    }

    /// Nobody will say how a context's requests ended.
    fn end_context(&mut self, at: &At, context: u64) -> Result<()> {
        let process = self.task(at.tid).process;
        self.end_where(process, |request| request.context == context)
    }

    /// Nobody will say how a process's requests ended.
    pub(super) fn end_requests(&mut self, process: Slot) -> Result<()> {
        self.end_where(process, |_| true)
    }

    fn end_where(&mut self, process: Slot, of: impl Fn(&Request) -> bool) -> Result<()> {
        let requests = &mut self.tasks.processes[process].requests;
        if !requests.iter().any(&of) {
            return Ok(());
        }
        let (ended, left): (Vec<_>, Vec<_>) = std::mem::take(requests).into_iter().partition(of);
        *requests = left;
        for request in ended {
            self.end_request(request, None, Returned::Unknown)?;
        }
        Ok(())
    }

    fn end_request(
        &mut self,
        request: Request,
        duration_ns: Option<u64>,
        returned: Returned,
    ) -> Result<()> {
        let at = At {
            tid: request.tid,
            start_ns: request.start_ns,
            duration_ns,
            returned,
        };
        self.conclude(&at, &request.operation, None)?;
        let Request {
            thread,
            syscall,
            operation,
            ..
        } = request;
        self.call_of(thread, &at, syscall, operation, plain(returned))
    }
}
