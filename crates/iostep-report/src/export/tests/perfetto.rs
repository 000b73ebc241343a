//! Perfetto's trace, read back by a reader that knows protobuf's encoding and the numbers of fields.

use std::collections::{BTreeMap, HashMap};

use iostep_model::class::Layer;
use iostep_model::operation::{Flags, Operation, rwbs};

use super::*;

/// A field: a varint, or bytes.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message, in order.
struct Fields(Vec<(u64, Value)>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        value |= u64::from(first & 0x7F) << shift;
        if first & 0x80 == 0 {
            return value;
        }
    }
    value
}

impl Fields {
    fn read(mut bytes: &[u8]) -> Fields {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = match tag & 7 {
                0 => Value::Number(varint(&mut bytes)),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Value::Bytes(value.to_vec())
                }
                other => panic!("wire type {other}"),
            };
            fields.push((tag >> 3, value));
        }
        Fields(fields)
    }

    fn number(&self, field: u64) -> Option<u64> {
        self.0.iter().find_map(|(number, value)| match value {
            Value::Number(value) if *number == field => Some(*value),
            _ => None,
        })
    }

    fn all(&self, field: u64) -> impl Iterator<Item = Fields> {
        let all = self
            .0
            .iter()
            .filter_map(move |(number, value)| match value {
                Value::Bytes(bytes) if *number == field => Some(Fields::read(bytes)),
                _ => None,
            });
        all.collect::<Vec<_>>().into_iter()
    }

    fn text(&self, field: u64) -> Option<String> {
        self.0.iter().find_map(|(number, value)| match value {
            Value::Bytes(bytes) if *number == field => {
                Some(String::from_utf8(bytes.clone()).expect("text"))
            }
            _ => None,
        })
    }
}

/// A track, with the name of what it belongs to.
#[derive(Clone, Debug, Default)]
struct ReadTrack {
    name: Option<String>,
    parent: Option<u64>,
    process: Option<(u64, String)>,
    thread: Option<(u64, u64, String)>,
}

#[derive(Debug)]
struct Slice {
    track: u64,
    name: String,
    category: String,
    from_ns: u64,
    to_ns: u64,
    values: BTreeMap<String, String>,
}

#[derive(Default)]
struct ReadTrace {
    tracks: HashMap<u64, ReadTrack>,
    slices: Vec<Slice>,
}

fn tracks(packet: &Fields, tracks: &mut HashMap<u64, ReadTrack>) {
    for track in packet.all(60) {
        let mut read = ReadTrack {
            name: track.text(2),
            parent: track.number(5),
            ..ReadTrack::default()
        };
        for process in track.all(3) {
            read.process = Some((
                process.number(1).expect("pid"),
                process.text(6).expect("name"),
            ));
        }
        for thread in track.all(4) {
            let (pid, tid) = (
                thread.number(1).expect("pid"),
                thread.number(2).expect("tid"),
            );
            read.thread = Some((pid, tid, thread.text(5).expect("name")));
        }
        let before = tracks.insert(track.number(1).expect("uuid"), read);
        assert!(before.is_none(), "a track is told once");
    }
}

/// Reads a trace, and checks what holds for every one: slices begin and end, do not overlap on
/// their track, and everything referred to was told.
fn read(bytes: &[u8]) -> ReadTrace {
    let mut trace = ReadTrace::default();
    let mut told: HashMap<(u64, u64), String> = HashMap::new();
    let mut open: HashMap<u64, Slice> = HashMap::new();
    let mut ends: HashMap<u64, u64> = HashMap::new();
    for (at, packet) in Fields::read(bytes).all(1).enumerate() {
        assert_eq!(packet.number(10), Some(1));
        assert_eq!(packet.number(13), Some(if at == 0 { 1 } else { 2 }));
        tracks(&packet, &mut trace.tracks);
        for interned in packet.all(12) {
            for list in [1, 2, 3, 29] {
                for entry in interned.all(list) {
                    let number = entry.number(1).expect("iid");
                    told.insert((list, number), entry.text(2).expect("text"));
                }
            }
        }
        for event in packet.all(11) {
            let ns = packet.number(8).expect("timestamp");
            let track = event.number(11).expect("track");
            assert!(trace.tracks.contains_key(&track));
            let text = |list, number: Option<u64>| told[&(list, number.expect("iid"))].clone();
            if event.number(9) == Some(2) {
                let slice = open.remove(&track).expect("a slice that began");
                ends.insert(track, ns);
                trace.slices.push(Slice { to_ns: ns, ..slice });
                continue;
            }
            assert_eq!(event.number(9), Some(1));
            assert!(ends.get(&track).is_none_or(|end| *end <= ns), "an overlap");
            let values = event.all(4).map(|value| {
                let name = text(3, value.number(1));
                let shown = match (value.number(3), value.number(4), value.number(17)) {
                    (Some(number), None, None) => number.to_string(),
                    (None, Some(number), None) => (number as i64).to_string(),
                    (None, None, string) => text(29, string),
                    other => panic!("{other:?}"),
                };
                (name, shown)
            });
            let slice = Slice {
                track,
                name: text(2, event.number(10)),
                category: text(1, event.number(3)),
                from_ns: ns,
                to_ns: ns,
                values: values.collect(),
            };
            assert!(open.insert(track, slice).is_none(), "an overlap");
        }
    }
    assert!(open.is_empty());
    trace
}

fn exported(trace: &Trace) -> ReadTrace {
    let mut out = Vec::new();
    write(&mut out, trace, Format::Perfetto).expect("a vector takes it");
    read(&out)
}

impl ReadTrace {
    /// The name of the group that a slice's track is in.
    fn group(&self, slice: &Slice) -> String {
        let track = &self.tracks[&slice.track];
        let parent = track.parent.map(|parent| &self.tracks[&parent]);
        let group = parent.unwrap_or(track);
        let process = group
            .process
            .as_ref()
            .map(|(pid, _)| format!("process {pid}"));
        let thread = group
            .thread
            .as_ref()
            .map(|(_, tid, _)| format!("thread {tid}"));
        process.or(thread).or(group.name.clone()).expect("a name")
    }
}

#[test]
fn slices_lie_in_their_layers_group_and_in_their_processes() {
    let trace = hostile();
    let read = exported(&trace);
    let device = &trace.manifest.device.name;
    for layer in Layer::ALL {
        let name = format!("{device}: {}", layer.name());
        let there = read.slices.iter().filter(|slice| read.group(slice) == name);
        let segments = trace.segments.iter();
        let expected = segments.filter(|segment| segment.class.layer() == layer);
        assert_eq!(there.count(), expected.count(), "{name}");
    }
    let name = format!("{device}: no data");
    let there = read.slices.iter().filter(|slice| read.group(slice) == name);
    let bare = trace
        .requests
        .iter()
        .filter(|request| request.segments == 0);
    assert_eq!(there.count(), bare.count());
    let submitted = trace
        .requests
        .iter()
        .filter(|request| request.submitter.is_some());
    let of_processes = |slice: &&Slice| read.group(slice).starts_with("process ");
    assert_eq!(
        read.slices.iter().filter(of_processes).count(),
        submitted.count()
    );
    let syncs = read.slices.iter().filter(|slice| slice.category == "sync");
    assert_eq!(syncs.count(), trace.syncs.len());
    let names = read
        .tracks
        .values()
        .filter_map(|track| track.process.as_ref());
    let mut names = names.map(|(_, name)| name.as_str());
    assert!(names.any(|name| name == trace.processes[0].comm));
}

#[test]
fn a_segment_has_its_time_and_what_is_known_of_it() {
    let trace = fixture::sqlite_on_ext4(30);
    let read = exported(&trace);
    let start_ns = trace.manifest.clocks.mono_ns;
    let mut segments = 0;
    for slice in &read.slices {
        if slice.category != "block" || !slice.values.contains_key("evidence") {
            continue;
        }
        segments += 1;
        let number = |name: &str| slice.values[name].parse::<u64>().expect("a number");
        let row = number("request") as usize;
        let request = &trace.requests[row];
        let own = trace.segments_of(request).iter();
        let mut own = own.filter(|segment| segment.sector == number("sector"));
        let segment = own.next().expect("the segment");
        assert_eq!(slice.name, segment.class.name());
        assert_eq!(slice.from_ns, request.issue_ns - start_ns);
        assert_eq!(
            slice.to_ns,
            request.complete_ns.expect("complete") - start_ns
        );
        assert_eq!(number("bytes"), u64::from(segment.bytes));
        assert_eq!(slice.values["rwbs"], rwbs(request.operation, request.flags));
        assert_eq!(slice.values["evidence"], segment.evidence.name());
        let file = segment.file.map(|file| trace.file_name(file));
        assert_eq!(slice.values.get("file"), file.as_ref());
        let dirtier = segment.dirtier.map(|thread| trace.thread_name(thread));
        assert_eq!(slice.values.get("dirtier"), dirtier.as_ref());
        let offset = segment.file_offset_bytes.map(|offset| offset.to_string());
        assert_eq!(slice.values.get("file_offset_bytes"), offset.as_ref());
        assert_eq!(slice.values.contains_key("cause"), segment.cause.is_some());
    }
    assert_eq!(segments, trace.segments.len());
}

#[test]
fn a_sync_call_is_on_its_thread_and_says_what_it_returned() {
    let mut trace = fixture::sqlite_on_ext4(30);
    trace.syncs[0].result = Some(-5);
    // As with io_uring: two of a thread at once.
    let first = trace.syncs[0].clone();
    trace.syncs[1].process = first.process;
    trace.syncs[1].enter_ns = first.enter_ns + 1;
    trace.syncs[1].exit_ns = first.exit_ns.map(|exit| exit + 1);
    let read = exported(&trace);
    let thread = trace.processes[first.process.expect("a thread") as usize].pid;
    let own: Vec<&Slice> = read
        .slices
        .iter()
        .filter(|slice| slice.category == "sync" && read.group(slice) == format!("thread {thread}"))
        .collect();
    let of_thread = trace
        .syncs
        .iter()
        .filter(|sync| sync.process == first.process);
    assert_eq!(own.len(), of_thread.count());
    let failed = own.iter().find(|slice| slice.values["sync"] == "0");
    assert_eq!(failed.expect("the call").values["result"], "-5");
}

#[test]
fn a_request_that_did_not_come_back_ends_where_it_was_issued() {
    let mut trace = fixture::sqlite_on_ext4(3);
    for request in &mut trace.requests {
        request.complete_ns = None;
        request.operation = Operation::Write;
        request.flags = Flags::SYNC;
    }
    let read = exported(&trace);
    let of_device = read
        .slices
        .iter()
        .filter(|slice| slice.values.contains_key("evidence"));
    assert!(of_device.clone().count() > 0);
    assert!(of_device.clone().all(|slice| slice.from_ns == slice.to_ns));
}

#[test]
fn what_a_trace_takes_for_each_slice_stays_small() {
    let trace = fixture::sqlite_on_ext4(2000);
    let mut out = Vec::new();
    write(&mut out, &trace, Format::Perfetto).expect("a vector takes it");
    let slices = read(&out).slices.len();
    assert!(
        out.len() / slices < 160,
        "{} bytes a slice",
        out.len() / slices
    );
}
