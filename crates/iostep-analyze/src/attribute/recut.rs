//! Segments of a trace in smaller parts.

use iostep_model::table::{Segment, Trace};

/// Gives each request its segments anew: `cut` adds one in at most so many parts, whose bytes add up
/// to its own.
pub(super) fn recut(trace: &mut Trace, mut cut: impl FnMut(&Segment, usize, &mut Vec<Segment>)) {
    let before = std::mem::take(&mut trace.segments);
    let mut after = Vec::with_capacity(before.len());
    for request in &mut trace.requests {
        let first = request.first_segment as usize;
        let old = &before[first..first + usize::from(request.segments)];
        let start = after.len();
        for (index, segment) in old.iter().enumerate() {
            let room = usize::from(u16::MAX) - (after.len() - start) - (old.len() - index - 1);
            cut(segment, room, &mut after);
        }
        request.first_segment = u32::try_from(start).unwrap_or(u32::MAX);
        request.segments = u16::try_from(after.len() - start).unwrap_or(u16::MAX);
    }
    trace.segments = after;
}
