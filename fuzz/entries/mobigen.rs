//! The reader of MobiGen's scripts, and the tracker behind it, over any bytes.

use std::collections::HashSet;

use iostep_calls::Tracker;
use iostep_calls::import::Format;
use iostep_calls::input::Input;
use iostep_model::syscall::Recording;

/// Reads the script, and checks that each line is accounted for and each path said once.
pub fn run(text: &[u8]) {
    let _ = Format::guess(text);
    let Ok(import) = Format::Mobigen.open(vec![Input::new("script", text)]) else {
        return;
    };
    let mut tracker = Tracker::new(Recording::default());
    let told = import.events(&mut |event| tracker.event(event));
    told.expect("a recording takes everything");
    let finished = tracker.finish();
    let lines = text.split(|byte| *byte == b'\n').count() - usize::from(text.ends_with(b"\n"));
    let (kept, left_out) = finished.ledger.totals();
    assert_eq!(kept + left_out, lines as u64);
    assert!(finished.sink.calls.len() as u64 >= kept);
    let mut paths = HashSet::new();
    for file in &finished.initial {
        assert!(finished.paths.get(file.path).starts_with(b"/"));
        assert!(paths.insert(file.path), "a path that is said twice");
    }
}
