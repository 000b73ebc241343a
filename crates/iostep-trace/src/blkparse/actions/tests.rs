use std::path::Path;

use super::super::{Recording, ZERO_NS, parse};
use super::*;

/// A text of lines such as `Q W 8 + 8 [app]`, a microsecond apart.
fn text(lines: &[&str]) -> String {
    let line =
        |(at, line): (usize, &&str)| format!("254,0 0 {at} 0.{:09} 7 {line}\n", (at + 1) * 1000);
    lines.iter().enumerate().map(line).collect()
}

fn parsed(lines: &[&str]) -> Recording {
    parse(text(lines).as_bytes(), Path::new("text"), None).expect("a recording")
}

/// The issues and completions: time in microseconds, what, operation, place.
fn requests(recording: &Recording) -> Vec<(u64, char, Operation, u64, u32)> {
    let events = recording.events.iter();
    let told = events.filter_map(|event| {
        let (what, transfer) = match event {
            Event::Issue(transfer) => ('D', transfer),
            Event::Complete(done) => ('C', &done.transfer),
            _ => return None,
        };
        let micros = (transfer.mono_ns - ZERO_NS) / 1000;
        let sectors = transfer.bytes / 512;
        Some((micros, what, transfer.operation, transfer.sector, sectors))
    });
    told.collect()
}

fn says(recording: &Recording, letters: &[&str]) {
    let begins: Vec<&str> = recording.unrecorded.iter().map(|text| &text[..4]).collect();
    assert_eq!(begins, letters, "{:?}", recording.unrecorded);
}

use Operation::{Discard, Flush, Read, Write};

#[test]
fn a_bio_of_a_device_without_requests_is_a_request() {
    let recording = parsed(&[
        "Q W 16 + 16 [app]",
        "C W 16 + 16 [0]",
        "Q FWFSM 120 + 8 [jbd2]",
        "C FWFSM 120 + 8 [0]",
        "Q R 200 + 8 [app]",
        "C R 200 + 8 [0]",
        "Q FWS [app]",
        "C FWS 0 [0]",
    ]);
    assert_eq!(
        requests(&recording),
        [
            (1, 'D', Write, 16, 16),
            (2, 'C', Write, 16, 16),
            (3, 'D', Write, 120, 8),
            (4, 'C', Write, 120, 8),
            (5, 'D', Read, 200, 8),
            (6, 'C', Read, 200, 8),
            (7, 'D', Flush, 0, 0),
            (8, 'C', Flush, 0, 0),
        ]
    );
    says(&recording, &["no D"]);
    assert!(recording.unrecorded[0].contains("device mapper"));
    let all = Flags::PREFLUSH.with(Flags::FUA);
    let commit = recording.events.iter().find_map(|event| match event {
        Event::Issue(transfer) if transfer.sector == 120 => Some(transfer.flags),
        _ => None,
    });
    assert!(commit.expect("the commit block").has(all));
}

#[test]
fn a_bio_ends_with_the_last_of_its_parts_in_whichever_order() {
    for parts in [
        ["C W 0 + 32 [0]", "C W 32 + 32 [0]"],
        ["C W 32 + 32 [0]", "C W 0 + 32 [0]"],
    ] {
        let recording = parsed(&["Q W 0 + 64 [app]", parts[0], parts[1]]);
        assert_eq!(
            requests(&recording),
            [(1, 'D', Write, 0, 64), (3, 'C', Write, 0, 64)]
        );
    }
}

#[test]
fn an_error_of_one_part_is_the_bios() {
    let recording = parsed(&["Q W 0 + 64 [app]", "C W 0 + 32 [-5]", "C W 32 + 32 [0]"]);
    let last = recording.events.last();
    assert!(matches!(last, Some(Event::Complete(done)) if done.status == 10));
}

#[test]
fn what_a_split_cut_off_is_a_request_of_its_own() {
    let recording = parsed(&[
        "Q D 0 + 64 [app]",
        "X D 0 / 48 [app]",
        "C D 0 + 48 [0]",
        "C D 48 + 16 [0]",
    ]);
    assert_eq!(
        requests(&recording),
        [
            (1, 'D', Discard, 0, 48),
            (1, 'D', Discard, 48, 16),
            (3, 'C', Discard, 0, 48),
            (4, 'C', Discard, 48, 16),
        ]
    );
}

#[test]
fn two_bios_for_one_place_stay_two() {
    let recording = parsed(&[
        "Q W 8 + 8 [app]",
        "Q W 8 + 8 [app]",
        "C W 8 + 8 [0]",
        "C W 8 + 8 [0]",
    ]);
    assert_eq!(requests(&recording).len(), 4);
}

#[test]
fn what_completes_as_one_is_a_request_of_several_bios() {
    let recording = parsed(&[
        "Q W 520 + 8 [app]",
        "Q W 528 + 8 [app]",
        "Q W 512 + 8 [app]",
        "C W 512 + 24 [0]",
        "Q W 1032 + 64 [app]",
        "C W 1064 + 32 [0]",
        "C W 1032 + 32 [0]",
    ]);
    assert_eq!(
        requests(&recording),
        [
            (3, 'D', Write, 512, 24),
            (4, 'C', Write, 512, 24),
            (5, 'D', Write, 1064, 32),
            (5, 'D', Write, 1032, 32),
            (6, 'C', Write, 1064, 32),
            (7, 'C', Write, 1032, 32),
        ]
    );
    says(&recording, &["no D"]);
    assert!(!recording.unrecorded[0].contains("device mapper"));
}

#[test]
fn lines_of_a_scheduler_tell_that_requests_complete() {
    let recording = parsed(&[
        "Q W 0 + 64 [app]",
        "G W 0 + 64 [app]",
        "I W 0 + 64 [app]",
        "C W 0 + 32 [0]",
        "C W 32 + 32 [0]",
    ]);
    let issued = requests(&recording)
        .into_iter()
        .filter(|request| request.1 == 'D');
    assert_eq!(issued.count(), 2);
}

#[test]
fn flushes_that_no_bio_asked_for_alone_are_those_of_requests() {
    let recording = parsed(&[
        "Q FWFSM 96 + 2 [jbd2]",
        "C FN 0 [0]",
        "C WSM 96 + 2 [0]",
        "C FN 0 [0]",
        "C WSM 96 [0]",
    ]);
    assert_eq!(
        requests(&recording),
        [
            (1, 'D', Flush, 0, 0),
            (1, 'D', Write, 96, 2),
            (2, 'C', Flush, 0, 0),
            (3, 'C', Write, 96, 2),
            (3, 'D', Flush, 0, 0),
            (4, 'C', Flush, 0, 0),
            (5, 'C', Write, 96, 0),
        ]
    );
}

#[test]
fn a_text_of_one_action_is_read_for_what_it_tells() {
    let queued = parsed(&["Q W 0 + 8 [app]", "Q FWS [app]"]);
    assert_eq!(
        requests(&queued),
        [(1, 'D', Write, 0, 8), (2, 'D', Flush, 0, 0)]
    );
    says(&queued, &["no D", "no C"]);
    let issued = parsed(&["D W 0 + 8 [app]"]);
    assert_eq!(requests(&issued), [(1, 'D', Write, 0, 8)]);
    says(&issued, &["no Q", "no C"]);
    let complete = parsed(&["C W 0 + 8 [0]", "C WS 0 [0]", "C FN 0 [0]"]);
    assert_eq!(
        requests(&complete),
        [
            (1, 'D', Write, 0, 8),
            (1, 'C', Write, 0, 8),
            (2, 'C', Write, 0, 0),
            (3, 'D', Flush, 0, 0),
            (3, 'C', Flush, 0, 0),
        ]
    );
    says(&complete, &["no Q", "no D"]);
}

#[test]
fn a_text_of_two_actions_says_which_is_missing() {
    let recording = parsed(&["D W 0 + 8 [app]", "C W 0 + 8 [0]"]);
    assert_eq!(requests(&recording).len(), 2);
    says(&recording, &["no Q"]);
    let recording = parsed(&["Q W 0 + 8 [app]", "D W 0 + 8 [app]"]);
    assert_eq!(requests(&recording).len(), 1);
    says(&recording, &["no C"]);
    let recording = parsed(&["Q W 0 + 8 [app]", "D W 0 + 8 [app]", "C W 0 + 8 [0]"]);
    says(&recording, &[]);
}

#[test]
fn a_text_without_requests_is_refused_by_what_it_has() {
    for (line, expected) in [
        ("G W 0 + 8 [app]", "1 scheduler"),
        ("I W 0 + 8 [app]", "1 scheduler"),
        ("M W 0 + 8 [app]", "1 merge"),
        ("F W 0 + 8 [app]", "1 merge"),
        ("A W 0 + 8 <- (8,1) 0", "1 remap"),
        ("B W 0 + 8 [app]", "1 remap"),
        ("P N [app]", "1 plug"),
        ("m N cfq slice", "1 message"),
        ("X W 0 / 8 [app]", "1 kept"),
        ("R W 0 + 8 [0]", "1 kept"),
    ] {
        let refused = parse(text(&[line]).as_bytes(), Path::new("text"), None);
        let error = refused.expect_err(line).to_string();
        assert!(
            error.contains(expected) && error.contains("-a queue"),
            "{error}"
        );
    }
}

#[test]
fn a_completion_from_before_the_recording_is_no_merge() {
    let recording = parsed(&["C W 800 + 64 [0]", "Q W 8 + 8 [app]", "C W 8 + 8 [0]"]);
    assert_eq!(
        requests(&recording),
        [
            (1, 'C', Write, 800, 64),
            (2, 'D', Write, 8, 8),
            (3, 'C', Write, 8, 8),
        ]
    );
}

#[test]
fn the_flush_of_old_kernels_and_of_an_old_blkparse_is_a_flush() {
    // As on Linux 3.0, by a blkparse that knows barriers only.
    let recording = parsed(&[
        "Q WBS 8 + 8 [jbd2]",
        "D WBS 18446744073709551615 + 0 [kworker]",
        "C WBS 18446744073709551615 + 0 [0]",
        "D WS 8 + 8 [kworker]",
        "C WS 8 + 8 [0]",
    ]);
    assert_eq!(
        requests(&recording),
        [
            (2, 'D', Flush, 0, 0),
            (3, 'C', Flush, 0, 0),
            (4, 'D', Write, 8, 8),
            (5, 'C', Write, 8, 8),
        ]
    );
    let queued = recording.events.iter().find_map(Event::queue);
    assert!(queued.is_some_and(|queue| queue.flags.has(Flags::PREFLUSH)));
}
