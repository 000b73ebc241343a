//! What several tests look at.

use iostep_model::syscall::Recording;
use iostep_model::syscall::text::write_call;

use crate::Finished;

/// The calls as they stand in a trace.
pub fn lines(finished: &Finished<Recording>) -> Vec<String> {
    let calls = finished.sink.calls.iter().map(|call| {
        let mut line = String::new();
        write_call(call, &finished.paths, &mut line);
        line
    });
    calls.collect()
}
