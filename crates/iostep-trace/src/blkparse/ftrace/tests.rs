use std::path::Path;

use iostep_model::event::Event as Told;
use iostep_model::{Flags, Operation};

use super::super::{Format, Recording, parse, parse_as};
use super::*;

const FTRACE: &[u8] = include_bytes!("../../../testdata/block/loop.ftrace");
const PERF: &[u8] = include_bytes!("../../../testdata/block/loop.perf");
/// What blkparse prints of the same run.
const TEXT: &[u8] = include_bytes!("../../../testdata/block/loop.txt");

fn parsed(text: &[u8]) -> Recording {
    parse_as(Format::Ftrace, text, Path::new("text"), None).expect("events")
}

/// What was asked of the device, in order: action, operation, place, who.
fn asked(recording: &Recording) -> Vec<(char, Operation, u64, u32, u32)> {
    let events = recording.events.iter().filter_map(|event| {
        Some(match event {
            Told::Queue(queue) => ('Q', queue.operation, queue.sector, queue.bytes, queue.pid),
            Told::Issue(request) => ('D', request.operation, request.sector, request.bytes, 0),
            Told::Complete(done) => {
                let done = &done.transfer;
                ('C', done.operation, done.sector, done.bytes, 0)
            }
            _ => return None,
        })
    });
    events.collect()
}

#[test]
fn the_kernels_events_tell_what_blktrace_told_at_the_same_time() {
    let text = parse(TEXT, Path::new("text"), None).expect("text");
    let events = parsed(FTRACE);
    let (from_events, from_text) = (asked(&events), asked(&text));
    for (ours, theirs) in from_events.iter().zip(&from_text) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(from_events.len(), from_text.len());
    assert_eq!(events.device, text.device);
    assert_eq!(
        events.ledger.left_out(LeftOut::Merge),
        text.ledger.left_out(LeftOut::Merge)
    );
    assert!(events.unrecorded.is_empty());
    let named = events.events.iter();
    let named =
        named.filter(|event| matches!(event, Told::Process(process) if process.comm == "dd"));
    assert!(named.count() > 0);
}

#[test]
fn what_perf_prints_is_a_part_of_it() {
    let (whole, part) = (asked(&parsed(FTRACE)), asked(&parsed(PERF)));
    let mut rest = whole.iter();
    assert!(part.len() > 100);
    for event in &part {
        assert!(rest.any(|other| other == event), "{event:?}");
    }
}

#[test]
fn the_line_of_each_tool_tells_the_same() {
    let event = "block_rq_issue: 8,0 WFS 4096 () 1024 + 8 [jbd2/sda-8]";
    for before in [
        "     jbd2/sda-8-60   [001] d..2.    12.345678: ",
        "     jbd2/sda-8-60   (   60) [001] d..2.    12.345678: ",
        "     jbd2/sda-8-60   (-------) [001]    12.345678: ",
        "     jbd2/sda-8-60   [001]    12.345678000: ",
        "     jbd2/sda-8    60 [001]    12.345678: block:",
        "     jbd2/sda-8    60/60 [001]    12.345678:    block:",
        "     jbd2/sda-8-60    [001]    12.345678:   ",
        "     a b: c-60    [001]    12.345678:   ",
        "a:1-60    [001]    12.345678:   ",
    ] {
        let text = format!("{before}{event}\n");
        let recording = parsed(text.as_bytes());
        let Some(Told::Issue(issue)) = recording.events.first() else {
            panic!("{:?}", recording.events);
        };
        assert_eq!((issue.sector, issue.bytes), (1024, 4096), "{before}");
        assert_eq!(issue.mono_ns - ZERO_NS, 12_345_678_000, "{before}");
        assert_eq!(issue.flags, Flags::FUA.with(Flags::SYNC));
        let parts = split(text.trim_ascii().as_bytes()).expect("an event");
        assert_eq!(thread(parts.before), 60, "{before}");
    }
}

#[test]
fn bios_of_a_device_without_requests_are_requests() {
    let text = b"\
 app-7 [000] 1.000001: block_bio_queue: 254,0 WS 8 + 8 [app (x) + y]
 <idle>-0 [000] 1.000009: block_bio_complete: 254,0 WS 8 + 8 [0]
 app-7 [000] 1.000010: block_bio_queue: 254,0 R 80 + 8 [app]
 <idle>-0 [000] 1.000019: block_bio_complete: 254,0 R 80 + 8 [-5]
";
    let recording = parsed(text);
    let issued = asked(&recording).into_iter().filter(|told| told.0 == 'D');
    assert_eq!(issued.count(), 2);
    assert_eq!(recording.unrecorded.len(), 1);
    let failed = recording.events.last();
    assert!(matches!(failed, Some(Told::Complete(done)) if done.status == 10));
}

#[test]
fn bios_of_requests_complete_once() {
    let text = b"\
 app-7 [000] 1.000001: block_bio_queue: 8,0 WS 8 + 8 [app]
 app-7 [000] 1.000002: block_rq_issue: 8,0 WS 4096 () 8 + 8 [app]
 <idle>-0 [000] 1.000008: block_bio_complete: 8,0 WS 8 + 8 [0]
 <idle>-0 [000] 1.000009: block_rq_complete: 8,0 WS () 8 + 8 [0]
";
    let done = asked(&parsed(text))
        .into_iter()
        .filter(|told| told.0 == 'C');
    assert_eq!(done.count(), 1);
}

#[test]
fn operations_are_told_by_the_kernels_letters() {
    let line =
        |letters: &str| format!(" a-7 [000] 1.000001: block_bio_queue: 8,0 {letters} 8 + 8 [a]\n");
    for (letters, operation) in [
        ("N", Operation::WriteZeroes),
        ("DE", Operation::SecureErase),
        ("ZA", Operation::ZoneAppend),
        ("ZR", Operation::Other),
        ("D", Operation::Discard),
        ("WSU", Operation::Write),
    ] {
        assert_eq!(
            asked(&parsed(line(letters).as_bytes()))[0].1,
            operation,
            "{letters}"
        );
    }
    let flush = b" a-7 [000] 1.000001: block_rq_issue: 8,0 FF 0 () 18446744073709551615 + 0 [a]\n";
    assert_eq!(asked(&parsed(flush))[0], ('D', Operation::Flush, 0, 0, 0));
}

#[test]
fn lost_events_are_counted() {
    let line = " a-7 [000] 1.000001: block_bio_queue: 8,0 R 8 + 8 [a]\n";
    for (head, lost) in [
        ("CPU:1 [LOST 27 EVENTS]\n", 27),
        ("# entries-in-buffer/entries-written: 10/52   #P:2\n", 42),
        ("# entries-in-buffer/entries-written: 52/52   #P:2\n", 0),
    ] {
        assert_eq!(parsed(format!("{head}{line}").as_bytes()).skipped, lost);
    }
}

#[test]
fn commands_of_drivers_and_other_events_are_left_out() {
    let text = b"\
cpus=2
 a-7 [000] 1.000000: sched_switch: a:7 [120] S ==> b:8 [120]
 a-7 [000] 1.000001: block_rq_issue: 8,0 N 36 (12 00 00 00 24 00) 0 + 0 [a]
 a-7 [000] 1.000002: block_plug: [a]
 a-7 [000] 1.000003: block_touch_buffer: 8,0 sector=2 size=4096
 a-7 [000] 1.000004: block_bio_queue: 8,0 R 8 + 8 [a]
";
    let ledger = parsed(text).ledger;
    assert_eq!(
        ledger.to_string(),
        "6 lines = 1 kept + 1 plug + 1 driver command + 3 other event"
    );
}

#[test]
fn a_text_is_known_by_its_block_events() {
    for text in [FTRACE, PERF] {
        assert_eq!(Format::guess(&text[..4096]), Some(Format::Ftrace));
    }
    for text in [
        &b"a-7 [000] 1.0: sched_switch: x"[..],
        TEXT,
        b"block_rq_issue: 8,0",
        b"",
    ] {
        assert_eq!(Format::guess(text), None);
    }
}

#[test]
fn damage_is_named_with_line_and_field() {
    for (event, expected) in [
        (
            "1.000001: block_bio_queue: sda R 8 + 8 [a]",
            "line 1, device",
        ),
        (
            "1.000001: block_bio_queue: 8,0 RX 8 + 8 [a]",
            "line 1, operation",
        ),
        ("1.000001: block_bio_queue: 8,0 R 8 [a]", "line 1, sector"),
        (
            "1.000001: block_bio_queue: 8,0 R 8 + 99999999 [a]",
            "line 1, sectors",
        ),
        (
            "1.0000012345: block_bio_queue: 8,0 R 8 + 8 [a]",
            "line 1, time",
        ),
    ] {
        // Two lines, as the last one of a text may be cut off.
        let text = format!(" a-7 [000] {event}\n\n");
        let parsed = parse_as(Format::Ftrace, text.as_bytes(), Path::new("text"), None);
        let error = parsed.expect_err("damage").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
