//! What a recorder of system calls left that was cut short, over any bytes.

use std::error::Error;
use std::io::Write;

use iostep_calls::Tracker;
use iostep_model::syscall::Recording;
use iostep_trace::syscalls::Recorded;

/// Reads the bytes as such a file and follows the calls in it, as `iostep clean` does; how many are
/// kept.
pub fn run(bytes: &[u8]) -> usize {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room for a file");
    let Ok(mut recorded) = Recorded::left(file.path()) else {
        return 0;
    };
    let mut tracker = Tracker::new(Recording::default());
    // What it cannot be is an error, and what came before it stays.
    let _ = recorded.events::<Box<dyn Error>>(&mut |event| Ok(tracker.event(event)?));
    tracker.finish().sink.calls.len()
}
