use std::path::Path;

use iostep_model::event::Event;

use super::super::{Format, Recording, ZERO_NS, parse, parse_as, read};
use super::*;

const BINARY: &[u8] = include_bytes!("../../../testdata/block/loop.bin");
/// What blkparse 1.2.0 prints of it.
const TEXT: &[u8] = include_bytes!("../../../testdata/block/loop.txt");

fn parsed(bytes: &[u8]) -> Result<Recording> {
    parse_as(Format::Blktrace, bytes, Path::new("file"), None)
}

/// What the events tell, with times from the first on.
fn told(recording: &Recording) -> Vec<String> {
    let first = recording
        .events
        .iter()
        .map(Event::mono_ns)
        .find(|ns| *ns > 0);
    let first = first.expect("an event");
    let shifted = recording.events.iter().map(|event| {
        let text = format!("{event:?}");
        let ns = event.mono_ns();
        text.replace(
            &format!("mono_ns: {ns}"),
            &format!("{}", ns.saturating_sub(first)),
        )
    });
    shifted.collect()
}

fn same(one: &Recording, other: &Recording) {
    let (one, other) = (told(one), told(other));
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
    assert_eq!(one.len(), other.len());
}

fn records() -> Vec<Vec<u8>> {
    let mut rest = BINARY;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let more = u16::from_le_bytes([rest[46], rest[47]]);
        let (record, others) = rest.split_at(RECORD_BYTES + usize::from(more));
        records.push(record.to_vec());
        rest = others;
    }
    records
}

/// The same numbers, as a machine of the other order writes them.
fn swapped(record: &[u8]) -> Vec<u8> {
    let mut swapped = record.to_vec();
    let mut at = 0;
    for length in [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2] {
        swapped[at..at + length].reverse();
        at += length;
    }
    swapped
}

/// A note that a thread has a name.
fn note(pid: u32, name: &[u8]) -> Vec<u8> {
    let mut record = vec![0; RECORD_BYTES];
    record[..4].copy_from_slice(&(MAGIC | VERSION).to_le_bytes());
    record[28..32].copy_from_slice(&(NOTIFY << CATEGORIES).to_le_bytes());
    record[32..36].copy_from_slice(&pid.to_le_bytes());
    record[46..48].copy_from_slice(&(name.len() as u16).to_le_bytes());
    record.extend_from_slice(name);
    record
}

#[test]
fn the_file_tells_what_blkparses_text_of_it_tells() {
    let text = parse(TEXT, Path::new("text"), None).expect("text");
    let binary = parsed(BINARY).expect("records");
    same(&binary, &text);
    assert_eq!(binary.device, text.device);
    assert_eq!(binary.ledger.kept, text.ledger.kept);
    assert_eq!(binary.ledger.lines, records().len() as u64);
    assert_eq!((text.start_ns, binary.start_ns > ZERO_NS), (ZERO_NS, true));
    for reason in [LeftOut::Merge, LeftOut::Plug, LeftOut::Scheduler] {
        assert_eq!(
            binary.ledger.left_out(reason),
            text.ledger.left_out(reason),
            "{reason:?}"
        );
    }
}

#[test]
fn the_files_of_several_processors_are_put_together_by_time() {
    let files = [0u32, 1].map(|cpu| {
        let of_cpu = records()
            .into_iter()
            .filter(|record| record[40..44] == cpu.to_le_bytes());
        let name = format!("loop1.blktrace.{cpu}");
        (name.into(), of_cpu.collect::<Vec<_>>().concat())
    });
    let opened = |files: &[(std::path::PathBuf, Vec<u8>)]| {
        let files = files.iter();
        let files = files.map(|(name, bytes)| (name.clone(), std::io::Cursor::new(bytes.clone())));
        files.collect::<Vec<_>>()
    };
    let together = read(opened(&files), Format::Blktrace, None).expect("records");
    same(&together, &parsed(BINARY).expect("records"));
    let alone = read(opened(&files[..1]), Format::Blktrace, None).expect("records");
    assert!(alone.ledger.lines < together.ledger.lines);
}

#[test]
fn a_machine_of_the_other_order_of_bytes_tells_the_same() {
    let big: Vec<Vec<u8>> = records().iter().map(|record| swapped(record)).collect();
    let big = parsed(&big.concat()).expect("records");
    same(&big, &parsed(BINARY).expect("records"));
}

#[test]
fn notes_name_the_threads_of_every_file() {
    let records = records();
    let pid = u32::from_le_bytes(records[0][32..36].try_into().expect("four bytes"));
    // The name may come behind what the thread did.
    let bytes = [BINARY, &note(pid, b"dd\0\0")].concat();
    let recording = parsed(&bytes).expect("records");
    let names: Vec<&str> = recording
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Process(process) if process.pid == pid => Some(process.comm.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["dd"]);
    assert_eq!(recording.ledger.left_out(LeftOut::Message), 1);
}

#[test]
fn a_file_that_ends_in_a_record_is_read_up_to_there() {
    let whole = parsed(BINARY).expect("records").ledger;
    for cut in [1, RECORD_BYTES - 1] {
        let ledger = parsed(&BINARY[..BINARY.len() - cut])
            .expect("records")
            .ledger;
        assert_eq!(ledger.left_out(LeftOut::CutOff), 1);
        assert_eq!(ledger.lines, whole.lines);
    }
}

#[test]
fn damage_and_other_versions_are_named() {
    let mut records = records();
    records[3][0] = 0xFF;
    records[3][3] = 0xFF;
    let error = parsed(&records.concat()).expect_err("damage").to_string();
    assert!(error.contains("record 4, magic"), "{error}");
    for version in [6, 8] {
        let mut bytes = BINARY.to_vec();
        bytes[0] = version;
        let error = parsed(&bytes).expect_err("a version").to_string();
        assert!(error.contains(&format!("version {version}")), "{error}");
    }
    let error = parsed(b"").expect_err("nothing").to_string();
    assert!(error.contains("empty"), "{error}");
}

#[test]
fn a_file_is_known_by_its_first_record() {
    assert_eq!(Format::guess(BINARY), Some(Format::Blktrace));
    assert_eq!(
        Format::guess(&swapped(&records()[0])),
        Some(Format::Blktrace)
    );
    assert_eq!(Format::guess(TEXT), None);
}
