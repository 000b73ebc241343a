use std::path::Path;

use iostep_model::event::{Event, Queue};

use super::super::{Format, Recording, parse_as};
use super::*;

fn parsed(text: &str) -> Result<Recording> {
    parse_as(Format::Iolog, text.as_bytes(), Path::new("log"), None)
}

fn asked(recording: &Recording) -> Vec<(u64, Operation, u64, u32)> {
    let row = |queue: &Queue| {
        let micros = (queue.mono_ns - ZERO_NS) / 1000;
        (micros, queue.operation, queue.sector, queue.bytes)
    };
    recording
        .events
        .iter()
        .filter_map(Event::queue)
        .map(row)
        .collect()
}

/// As fio 3.33 writes it with --rw=randtrimwrite and --rw=write --fsync.
const VERSION_3: &str = "\
fio version 3 iolog
27 /dev/loop0 add
137 /dev/loop0 open
140 /dev/loop0 trim 45056 4096
852 /dev/loop0 write 45056 4096
900 /dev/loop0 read 512 1024
10119 /dev/loop0 sync 12288 0
10130 /dev/loop0 datasync 12288 0
10201 /dev/loop0 close
";

#[test]
fn a_log_of_a_device_tells_what_fio_asked_for() {
    let recording = parsed(VERSION_3).expect("a log");
    assert_eq!(
        asked(&recording),
        [
            (140, Operation::Discard, 88, 4096),
            (852, Operation::Write, 88, 4096),
            (900, Operation::Read, 1, 1024),
            (10119, Operation::Write, 0, 0),
            (10130, Operation::Write, 0, 0),
        ]
    );
    let flushes = recording.events.iter().filter(
        |event| matches!(event, Event::Issue(request) if request.operation == Operation::Flush),
    );
    assert_eq!(flushes.count(), 2);
    assert_eq!(recording.device_name.as_deref(), Some("loop0"));
    assert_eq!(
        recording.ledger.to_string(),
        "9 lines = 5 kept + 1 notice + 3 other event"
    );
    assert_eq!(recording.unrecorded.len(), 2);
}

#[test]
fn in_version_2_time_passes_by_waiting() {
    let text = "fio version 2 iolog\n/dev/sdb add\n/dev/sdb open\n/dev/sdb read 0 4096\n\
                /dev/sdb wait 250 0\n/dev/sdb write 4096 4096\n/dev/sdb wait 100 0\n\
                /dev/sdb read 0 100\n";
    assert_eq!(
        asked(&parsed(text).expect("a log")),
        [
            (0, Operation::Read, 0, 4096),
            (250, Operation::Write, 8, 4096),
            (350, Operation::Read, 0, 512),
        ]
    );
}

#[test]
fn what_is_no_log_of_one_device_is_refused() {
    for (text, expected) in [
        ("fio version 3 iolog\n1 /data/file add\n", "--read_iolog"),
        (
            "fio version 3 iolog\n1 /dev/sda add\n2 /dev/sdb add\n",
            "leave the lines of one",
        ),
        ("fio version 1 iolog\n", "version 2 or 3"),
        ("fio version 3 iolog\n", "reads, writes"),
        ("fio version 3 iolog\n1 /dev/sda open\n", "no request"),
        ("fio version 3 iolog\nx /dev/sda open\n", "line 2, time"),
        (
            "fio version 3 iolog\n1 /dev/sda wait 5 0\n",
            "line 2, action",
        ),
        (
            "fio version 3 iolog\n1 /dev/sda read x 0\n",
            "line 2, offset",
        ),
        (
            "fio version 3 iolog\n1 /dev/sda read 0 9999999999999\n",
            "line 2, length",
        ),
        ("/dev/sda add\n", "fio version 3 iolog"),
        ("", "fio version 3 iolog"),
    ] {
        let error = parsed(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_log_is_known_by_its_first_line() {
    assert_eq!(Format::guess(VERSION_3.as_bytes()), Some(Format::Iolog));
}
