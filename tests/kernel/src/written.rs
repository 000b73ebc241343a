//! The last write of every sector, as a trace has it: what the image now holds.

use std::collections::HashMap;

use iostep_model::SECTOR_BYTES;
use iostep_model::table::{Request, Segment, Trace};

/// An index of a trace by sector.
pub struct Written<'a> {
    trace: &'a Trace,
    last: HashMap<u64, (u32, u32)>,
}

impl<'a> Written<'a> {
    /// Goes through a trace in the order of issue.
    pub fn of(trace: &'a Trace) -> Written<'a> {
        let mut order: Vec<usize> = (0..trace.requests.len()).collect();
        order.sort_by_key(|&index| trace.requests[index].issue_ns);
        let mut last = HashMap::new();
        for index in order {
            let request = &trace.requests[index];
            if !request.operation.is_write() {
                continue;
            }
            for (number, segment) in (request.first_segment..).zip(trace.segments_of(request)) {
                let sectors = u64::from(segment.bytes).div_ceil(SECTOR_BYTES);
                for sector in segment.sector..segment.sector + sectors {
                    last.insert(sector, (index as u32, number));
                }
            }
        }
        Written { trace, last }
    }

    /// The request and its part that last wrote a sector.
    pub fn get(&self, sector: u64) -> Option<(&'a Request, &'a Segment)> {
        let (request, segment) = self.last.get(&sector)?;
        Some((
            &self.trace.requests[*request as usize],
            &self.trace.segments[*segment as usize],
        ))
    }

    /// Every sector that was written, in order.
    pub fn sectors(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.last.keys().copied().collect();
        all.sort_unstable();
        all
    }
}
