//! The readers of block I/O that others recorded, and the making of tables from what it gives, over any bytes.

use std::path::Path;

use iostep_analyze::attribute;
use iostep_model::Operation;
use iostep_model::event::Event;
use iostep_model::fixture;
use iostep_trace::blkparse::{self, Format};

/// Reads a text of blkparse.
pub fn run(text: &[u8]) {
    run_as(Format::Blkparse, text);
}

/// Reads the text or file, and checks that no line and no byte is lost.
pub fn run_as(format: Format, text: &[u8]) {
    let name = Path::new("text");
    for device in [None, Some((8, 0)), Some((7, 1))] {
        let Ok(recording) = blkparse::parse_as(format, text, name, device) else {
            continue;
        };
        let ledger = &recording.ledger;
        let left_out: u64 = ledger.left_out.values().sum();
        assert_eq!(ledger.lines, ledger.kept + left_out);
        assert!(ledger.kept > 0 && !recording.events.is_empty());
        assert!(recording.events.is_sorted_by_key(Event::mono_ns));
        check_tables(&recording.events);
    }
}

fn check_tables(events: &[Event]) {
    let trace = attribute::assemble(fixture::empty().manifest, events);
    for request in &trace.requests {
        let bytes: u64 = trace
            .segments_of(request)
            .iter()
            .map(|segment| u64::from(segment.bytes))
            .sum();
        if request.operation != Operation::Flush {
            assert_eq!(bytes, u64::from(request.bytes));
        }
    }
}
