//! Passthrough requests: commands that a program or a driver sends past the block layer.

use iostep_model::operation::Operation;
use iostep_model::table::{Request, Trace};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::amount::Amount;

/// What one thread sent past the block layer. The kernel counts it nowhere, and neither does any sum
/// of reads and writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PassthroughRow {
    /// The thread that handed the requests to the driver; `None` where it is not known.
    pub process: Option<String>,
    /// Commands that read, or move no data.
    pub read: Amount,
    /// Commands that carry data to the device.
    pub write: Amount,
}

#[derive(Default)]
pub(super) struct Collector {
    by_thread: FxHashMap<Option<u32>, [Amount; 2]>,
}

impl Collector {
    pub(super) fn add(&mut self, request: &Request) {
        if !request.operation.is_passthrough() {
            return;
        }
        let sides = self.by_thread.entry(request.submitter).or_default();
        let side = usize::from(request.operation == Operation::DriverOut);
        sides[side].add(request.bytes.into());
    }

    /// The rows, the most requests first.
    pub(super) fn finish(self, trace: &Trace) -> Vec<PassthroughRow> {
        let rows = self.by_thread.into_iter();
        let rows = rows.map(|(thread, [read, write])| PassthroughRow {
            process: thread.map(|thread| trace.thread_name(thread)),
            read,
            write,
        });
        let mut rows: Vec<PassthroughRow> = rows.collect();
        rows.sort_by(|a, b| {
            let requests = |row: &PassthroughRow| row.read.requests + row.write.requests;
            let order = requests(b).cmp(&requests(a));
            order.then_with(|| a.process.cmp(&b.process))
        });
        rows
    }
}
