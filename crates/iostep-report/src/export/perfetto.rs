//! Chrome's trace event JSON, which ui.perfetto.dev and chrome://tracing open.
//!
//! - One group of tracks per layer, one track per class in it: a slice per segment, from issue to
//!   completion. Requests that move no data are in a group of their own.
//! - One group per process that submitted: a slice per request, from queueing to completion.
//! - The threads' own tracks have their sync calls.
//!
//! Times are microseconds since the start of the recording.
//! Source: the "Trace Event Format" document of the Chromium project.

use std::io::{self, Write};

use iostep_model::class::Layer;
use iostep_model::operation::rwbs;
use iostep_model::table::{Request, Segment, Trace};
use serde_json::{Value, json};

use super::since_start;

/// Above every process id (`PID_MAX_LIMIT` is 2^22): the groups of the device's own tracks.
const LAYER_GROUPS: u64 = 1 << 30;
const NO_DATA_GROUP: u64 = LAYER_GROUPS + Layer::ALL.len() as u64;

/// Writes the trace as one JSON object, event by event.
///
/// Errors: those of `out`.
pub fn write(out: &mut impl Write, trace: &Trace) -> io::Result<()> {
    let mut events = Events { out, first: true };
    events
        .out
        .write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    names(&mut events, trace)?;
    for (index, request) in trace.requests.iter().enumerate() {
        submission(&mut events, trace, index, request)?;
        let segments = trace.segments_of(request);
        for (part, segment) in segments.iter().enumerate() {
            transfer(
                &mut events,
                trace,
                request,
                segment,
                format!("{index}.{part}"),
            )?;
        }
        if segments.is_empty() {
            let name = request.operation.name();
            let slice = Slice {
                group: NO_DATA_GROUP,
                name,
                id: index.to_string(),
            };
            let args = json!({ "request": index, "rwbs": rwbs(request.operation, request.flags) });
            slice.write(&mut events, trace, request.issue_ns, end_ns(request), args)?;
        }
    }
    sync_calls(&mut events, trace)?;
    events.out.write_all(b"\n]}\n")
}

struct Events<'a, W> {
    out: &'a mut W,
    first: bool,
}

impl<W: Write> Events<'_, W> {
    fn push(&mut self, event: &Value) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            self.out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *self.out, event).map_err(io::Error::from)
    }
}

/// An asynchronous slice: requests overlap, and slices of a thread may not.
struct Slice<'a> {
    group: u64,
    name: &'a str,
    id: String,
}

impl Slice<'_> {
    fn write(
        &self,
        events: &mut Events<'_, impl Write>,
        trace: &Trace,
        from_ns: u64,
        to_ns: u64,
        args: Value,
    ) -> io::Result<()> {
        let event = |phase: &str, ns: u64| {
            json!({
                "ph": phase, "cat": "block", "name": self.name, "id2": { "local": self.id },
                "pid": self.group, "tid": self.group, "ts": micros(trace, ns),
            })
        };
        let mut begin = event("b", from_ns);
        begin["args"] = args;
        events.push(&begin)?;
        events.push(&event("e", to_ns.max(from_ns)))
    }
}

fn micros(trace: &Trace, mono_ns: u64) -> f64 {
    since_start(trace, mono_ns) as f64 / 1e3
}

/// A request that did not come back ends where it was issued.
fn end_ns(request: &Request) -> u64 {
    request.complete_ns.unwrap_or(request.issue_ns)
}

fn names(events: &mut Events<'_, impl Write>, trace: &Trace) -> io::Result<()> {
    let mut name = |kind: &str, pid: u64, tid: u64, name: &str| {
        let args = json!({ "name": name });
        events.push(&json!({ "ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args }))
    };
    let device = &trace.manifest.device.name;
    for layer in Layer::ALL {
        let group = LAYER_GROUPS + layer as u64;
        name(
            "process_name",
            group,
            group,
            &format!("{device}: {}", layer.name()),
        )?;
    }
    name(
        "process_name",
        NO_DATA_GROUP,
        NO_DATA_GROUP,
        &format!("{device}: no data"),
    )?;
    for thread in &trace.processes {
        let (pid, tid) = (thread.tgid.into(), thread.pid.into());
        name("thread_name", pid, tid, &thread.comm)?;
        if pid == tid {
            name("process_name", pid, tid, &thread.comm)?;
        }
    }
    Ok(())
}

fn submission(
    events: &mut Events<'_, impl Write>,
    trace: &Trace,
    index: usize,
    request: &Request,
) -> io::Result<()> {
    let Some(submitter) = request.submitter else {
        return Ok(());
    };
    let group = trace.processes[submitter as usize].tgid.into();
    let name = request.operation.name();
    let args = json!({
        "request": index,
        "rwbs": rwbs(request.operation, request.flags),
        "sector": request.sector,
        "bytes": request.bytes,
        "sync": request.sync,
    });
    let slice = Slice {
        group,
        name,
        id: format!("r{index}"),
    };
    slice.write(events, trace, request.queue_ns, end_ns(request), args)
}

fn transfer(
    events: &mut Events<'_, impl Write>,
    trace: &Trace,
    request: &Request,
    segment: &Segment,
    id: String,
) -> io::Result<()> {
    let group = LAYER_GROUPS + segment.class.layer() as u64;
    let cause = segment.cause.map(|sync| sync_name(trace, sync));
    let args = json!({
        "request": segment.request,
        "rwbs": rwbs(request.operation, request.flags),
        "sector": segment.sector,
        "bytes": segment.bytes,
        "file": segment.file.map(|file| trace.file_name(file)),
        "file_offset_bytes": segment.file_offset_bytes,
        "dirtier": segment.dirtier.map(|process| trace.thread_name(process)),
        "cause": cause,
        "evidence": segment.evidence.name(),
    });
    let slice = Slice {
        group,
        name: segment.class.name(),
        id,
    };
    slice.write(events, trace, request.issue_ns, end_ns(request), args)
}

/// A sync call as in the other tables: its kind, its row and its file.
fn sync_name(trace: &Trace, sync: u32) -> String {
    let row = &trace.syncs[sync as usize];
    match row.file {
        Some(file) => format!("{} #{sync} {}", row.kind.name(), trace.file_name(file)),
        None => format!("{} #{sync}", row.kind.name()),
    }
}

fn sync_calls(events: &mut Events<'_, impl Write>, trace: &Trace) -> io::Result<()> {
    for (index, sync) in trace.syncs.iter().enumerate() {
        let Some(process) = sync.process else {
            continue;
        };
        let thread = &trace.processes[process as usize];
        let duration_ns = sync
            .exit_ns
            .map_or(0, |exit| exit.saturating_sub(sync.enter_ns));
        events.push(&json!({
            "ph": "X", "cat": "sync", "name": sync.kind.name(),
            "pid": thread.tgid, "tid": thread.pid,
            "ts": micros(trace, sync.enter_ns), "dur": duration_ns as f64 / 1e3,
            "args": {
                "sync": index,
                "file": sync.file.map(|file| trace.file_name(file)),
                "commit": sync.commit,
                "result": sync.result,
            },
        }))?;
    }
    Ok(())
}
