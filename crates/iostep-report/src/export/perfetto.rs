//! Perfetto's own trace, in protobuf, which ui.perfetto.dev and its trace processor open.
//!
//! - One group of tracks per layer, and per filesystem where there are several, one track per class in it: a slice per segment, from issue to
//!   completion. Requests that move no data are in a group of their own.
//! - One group per process that submitted: a slice per request, from queueing to completion.
//! - The threads' own tracks have their sync calls.
//!
//! Slices of a track may not overlap, and requests do: a track is several of one name, which the
//! viewer shows as one. Times are nanoseconds since the start of the recording.
//! Source: protos/perfetto/trace/trace_packet.proto and track_event/ of the Perfetto project.

mod lanes;
mod message;
mod packets;

use std::collections::HashMap;
use std::io::{self, Write};

use iostep_model::class::Layer;
use iostep_model::operation::{Flags, Operation, rwbs};
use iostep_model::table::{Request, Segment, Sync, Trace};

use super::since_start;
use lanes::Lanes;
use packets::{Annotations, Packets, Track};

/// The category of what the device did.
const BLOCK: &str = "block";
/// The category of sync calls.
const SYNC: &str = "sync";
/// The name of sync calls' tracks beside a thread's own.
const SYNC_CALLS: &str = "sync calls";

/// Writes the trace packet by packet.
///
/// Memory: a number for each file, thread, cause and track that is named, and the end of the last
/// slice of each track. Errors: those of `out`.
pub fn write(out: &mut impl Write, trace: &Trace) -> io::Result<()> {
    let mut writer = Writer {
        packets: Packets::new(out),
        trace,
        programs: programs(trace),
        groups: HashMap::new(),
        lanes: Lanes::default(),
    };
    for (index, request) in trace.requests.iter().enumerate() {
        writer.submission(index as u64, request)?;
        let segments = trace.segments_of(request);
        for segment in segments {
            writer.transfer(request, segment)?;
        }
        if segments.is_empty() {
            writer.without_data(index as u64, request)?;
        }
    }
    for (index, sync) in trace.syncs.iter().enumerate() {
        writer.sync_call(index as u64, sync)?;
    }
    Ok(())
}

/// What a text of an annotation is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Text {
    Rwbs(Operation, Flags),
    Evidence(&'static str),
    File(u32),
    Thread(u32),
    Cause(u32),
}

/// What tracks belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Group {
    /// Of one filesystem, where there are several.
    Layer(Layer, Option<u16>),
    NoData,
    Process(u32),
    Thread(u32, u32),
}

struct Writer<'a, W> {
    packets: Packets<'a, W, Text>,
    trace: &'a Trace,
    /// The name of each process, by its id.
    programs: HashMap<u32, &'a str>,
    groups: HashMap<Group, u64>,
    /// The tracks of one name in a group.
    lanes: Lanes<(Group, &'static str)>,
}

/// A process has the name of its first thread.
fn programs(trace: &Trace) -> HashMap<u32, &str> {
    let first = trace.processes.iter().filter(|row| row.pid == row.tgid);
    first.map(|row| (row.tgid, row.comm.as_str())).collect()
}

/// A request that did not come back ends where it was issued.
fn end_ns(request: &Request) -> u64 {
    request.complete_ns.unwrap_or(request.issue_ns)
}

impl<W: Write> Writer<'_, W> {
    /// The track of a group itself.
    fn group(&mut self, group: Group) -> io::Result<u64> {
        if let Some(track) = self.groups.get(&group) {
            return Ok(*track);
        }
        let device = &self.trace.manifest.device.name;
        let named;
        let program = |pid| self.programs.get(&pid).copied().unwrap_or_default();
        let track = match group {
            Group::Layer(layer, volume) => {
                let place = match self.trace.manifest.volume_title(volume) {
                    "" => device,
                    title => title,
                };
                named = format!("{place}: {}", layer.name());
                Track::Named {
                    name: &named,
                    parent: None,
                }
            }
            Group::NoData => {
                named = format!("{device}: no data");
                Track::Named {
                    name: &named,
                    parent: None,
                }
            }
            Group::Process(pid) => Track::Process {
                pid,
                name: program(pid),
            },
            Group::Thread(pid, tid) => {
                let mut rows = self.trace.processes.iter().rev();
                let row = rows.find(|row| (row.tgid, row.pid) == (pid, tid));
                Track::Thread {
                    pid,
                    tid,
                    name: row.map_or("", |row| &row.comm),
                }
            }
        };
        let track = self.packets.track(track)?;
        self.groups.insert(group, track);
        Ok(track)
    }

    /// A slice on a track of its name in a group, on one that is free in its time.
    fn slice(
        &mut self,
        group: Group,
        name: &'static str,
        (from_ns, to_ns): (u64, u64),
        annotate: impl FnOnce(&mut Annotations<'_, Text>),
    ) -> io::Result<()> {
        let times = (
            since_start(self.trace, from_ns),
            since_start(self.trace, to_ns.max(from_ns)),
        );
        let track = match self.lanes.take((group, name), times) {
            Some(track) => track,
            None => {
                let parent = Some(self.group(group)?);
                let track = self.packets.track(Track::Named { name, parent })?;
                self.lanes.add((group, name), track, times.1);
                track
            }
        };
        self.packets.slice(track, times, (BLOCK, name), annotate)
    }

    fn submission(&mut self, index: u64, request: &Request) -> io::Result<()> {
        let Some(submitter) = request.submitter else {
            return Ok(());
        };
        let group = Group::Process(self.trace.processes[submitter as usize].tgid);
        let times = (request.queue_ns, end_ns(request));
        self.slice(group, request.operation.name(), times, |values| {
            values.number("request", index);
            letters(values, request);
            values.number("sector", request.sector);
            values.number("bytes", request.bytes);
            if let Some(sync) = request.sync {
                values.number("sync", sync);
            }
        })
    }

    fn transfer(&mut self, request: &Request, segment: &Segment) -> io::Result<()> {
        let trace = self.trace;
        let group = Group::Layer(segment.class.layer(), segment.volume);
        let times = (request.issue_ns, end_ns(request));
        self.slice(group, segment.class.name(), times, |values| {
            values.number("request", segment.request);
            letters(values, request);
            values.number("sector", segment.sector);
            values.number("bytes", segment.bytes);
            if let Some(file) = segment.file {
                values.text("file", Text::File(file), || trace.file_name(file));
            }
            if let Some(offset_bytes) = segment.file_offset_bytes {
                values.number("file_offset_bytes", offset_bytes);
            }
            if let Some(dirtier) = segment.dirtier {
                values.text("dirtier", Text::Thread(dirtier), || {
                    trace.thread_name(dirtier)
                });
            }
            if let Some(cause) = segment.cause {
                values.text("cause", Text::Cause(cause), || sync_name(trace, cause));
            }
            let evidence = segment.evidence.name();
            values.text("evidence", Text::Evidence(evidence), || evidence);
        })
    }

    fn without_data(&mut self, index: u64, request: &Request) -> io::Result<()> {
        let times = (request.issue_ns, end_ns(request));
        self.slice(Group::NoData, request.operation.name(), times, |values| {
            values.number("request", index);
            letters(values, request);
        })
    }

    /// A sync call on its thread's own track; one that begins while another of the thread goes on,
    /// as with io_uring, beside it.
    fn sync_call(&mut self, index: u64, sync: &Sync) -> io::Result<()> {
        let Some(process) = sync.process else {
            return Ok(());
        };
        let trace = self.trace;
        let thread = &trace.processes[process as usize];
        let group = Group::Thread(thread.tgid, thread.pid);
        let from_ns = since_start(trace, sync.enter_ns);
        let to_ns = since_start(trace, sync.exit_ns.unwrap_or(sync.enter_ns)).max(from_ns);
        let lane = (group, SYNC_CALLS);
        let track = match self.lanes.take(lane, (from_ns, to_ns)) {
            Some(track) => track,
            None => {
                let is_first = !self.groups.contains_key(&group);
                let own = self.group(group)?;
                let track = match is_first {
                    true => own,
                    false => self.packets.track(Track::Named {
                        name: SYNC_CALLS,
                        parent: Some(own),
                    })?,
                };
                self.lanes.add(lane, track, to_ns);
                track
            }
        };
        let name = (SYNC, sync.kind.name());
        self.packets.slice(track, (from_ns, to_ns), name, |values| {
            values.number("sync", index);
            if let Some(file) = sync.file {
                values.text("file", Text::File(file), || trace.file_name(file));
            }
            if let Some(commit) = sync.commit {
                values.number("commit", commit);
            }
            if let Some(result) = sync.result {
                values.signed("result", result);
            }
        })
    }
}

fn letters(values: &mut Annotations<'_, Text>, request: &Request) {
    let (operation, flags) = (request.operation, request.flags);
    values.text("rwbs", Text::Rwbs(operation, flags), || {
        rwbs(operation, flags)
    });
}

/// A sync call as in the other tables: its kind, its row and its file.
fn sync_name(trace: &Trace, sync: u32) -> String {
    let row = &trace.syncs[sync as usize];
    match row.file {
        Some(file) => format!("{} #{sync} {}", row.kind.name(), trace.file_name(file)),
        None => format!("{} #{sync}", row.kind.name()),
    }
}
