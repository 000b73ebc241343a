//! The reader of strace's texts, and the tracker behind it, over any bytes.

use std::collections::HashSet;

use iostep_calls::Tracker;
use iostep_calls::import::Format;
use iostep_calls::input::Input;
use iostep_model::syscall::Recording;

/// Reads the text alone, and in two halves as two threads' files of strace -ff. Checks that each
/// line is accounted for and each path said once.
pub fn run(text: &[u8]) {
    let _ = Format::guess(text);
    read(&[("app.strace", text)]);
    let middle = text.iter().skip(text.len() / 2).position(|b| *b == b'\n');
    let (first, second) = text.split_at(middle.map_or(0, |at| text.len() / 2 + at + 1));
    read(&[("app.strace.100", first), ("app.strace.101", second)]);
}

fn read(texts: &[(&str, &[u8])]) {
    let inputs = texts.iter().map(|(name, text)| Input::new(name, *text));
    let Ok(import) = Format::Strace.open(inputs.collect()) else {
        return;
    };
    let mut tracker = Tracker::new(Recording::default());
    let told = import.events(&mut |event| tracker.event(event));
    told.expect("a recording takes everything");
    let finished = tracker.finish();
    let lines: usize = texts.iter().map(|(_, text)| lines(text)).sum();
    let (kept, left_out) = finished.ledger.totals();
    assert_eq!(kept + left_out, lines as u64, "{:?}", finished.ledger);
    let mut paths = HashSet::new();
    for file in &finished.initial {
        assert!(finished.paths.get(file.path).starts_with(b"/"));
        assert!(paths.insert(file.path), "a path that is said twice");
    }
}

fn lines(text: &[u8]) -> usize {
    let ended = text.is_empty() || text.ends_with(b"\n");
    text.split(|byte| *byte == b'\n').count() - usize::from(ended)
}
