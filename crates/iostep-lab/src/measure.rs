//! From what the children wrote to the runs of a cell.

use std::collections::BTreeMap;

use iostep_model::bench::{self, Document, LatencyHistogram, RunState, Step};
use iostep_model::class::{Class, Layer};
use iostep_model::lab::{ClassCount, Latency, PatternRequest, Run};
use iostep_model::table::{Request, Trace};
use iostep_model::{Flags, Operation};

/// The runs of a document that came to their end, with what a trace says about them. `pattern` is
/// the number of operations whose requests are kept, the last ones.
pub fn runs(document: &Document, trace: Option<&Trace>, pattern: u32) -> Vec<Run> {
    let whole = document
        .runs
        .iter()
        .filter(|run| run.state == RunState::Complete);
    whole.map(|run| one(run, trace, pattern)).collect()
}

fn one(run: &bench::Run, trace: Option<&Trace>, pattern: u32) -> Run {
    let window = trace.map(|trace| Window::of(run, trace));
    let operation = latency(run, &[Step::Transaction, Step::Total]);
    Run {
        elapsed_ns: run.elapsed_ns,
        operations: run.operations,
        latency: operation,
        sync_latency: latency(run, &[Step::Sync]),
        device: run.device,
        flushes_are_others: run.device.is_some() && !bench::figures::flushes_are_own(run),
        cpu: Some(run.cpu),
        waldio: run.waldio.clone(),
        classes: window.as_ref().map(Window::classes),
        journal_of_journal_bytes: window.as_ref().map(Window::journal_of_journal),
        write_requests: window.as_ref().map(Window::writes),
        pattern: window
            .as_ref()
            .filter(|_| pattern > 0)
            .map(|window| window.pattern(u64::from(pattern), run.operations)),
    }
}

/// The first of `steps` that was timed.
fn latency(run: &bench::Run, steps: &[Step]) -> Option<Latency> {
    let found = steps.iter().find_map(|step| {
        let mut latencies = run.latencies.iter();
        latencies.find(|latency| latency.step == *step)
    });
    found.and_then(|latency| quantiles(&latency.histogram))
}

fn quantiles(histogram: &LatencyHistogram) -> Option<Latency> {
    Some(Latency {
        count: histogram.count(),
        p50_ns: histogram.quantile_ns(0.5)?,
        p99_ns: histogram.quantile_ns(0.99)?,
        max_ns: histogram.max_ns()?,
    })
}

/// The part of a trace in which a run was measured.
struct Window<'a> {
    trace: &'a Trace,
    /// `CLOCK_MONOTONIC`, first and last nanosecond.
    start_ns: u64,
    end_ns: u64,
}

impl<'a> Window<'a> {
    fn of(run: &bench::Run, trace: &'a Trace) -> Window<'a> {
        let clocks = trace.manifest.clocks;
        let since = run.start_wall_ns.saturating_sub(clocks.wall_ns);
        let start_ns = clocks.mono_ns.saturating_add(since);
        Window {
            trace,
            start_ns,
            end_ns: start_ns.saturating_add(run.elapsed_ns),
        }
    }

    /// Those that the device's counters count in the same time: at their completion.
    fn requests(&self) -> impl Iterator<Item = &'a Request> {
        let range = self.start_ns..=self.end_ns;
        self.trace.requests.iter().filter(move |request| {
            let complete = request.complete_ns;
            !request.by_tracer && complete.is_some_and(|ns| range.contains(&ns))
        })
    }

    /// Writes that moved data.
    fn writes(&self) -> u64 {
        let moves_data = |r: &&Request| r.operation.is_write() && r.bytes > 0;
        self.requests().filter(moves_data).count() as u64
    }

    fn classes(&self) -> Vec<ClassCount> {
        let mut counts: BTreeMap<(u8, Option<Class>), ClassCount> = BTreeMap::new();
        for request in self.requests() {
            for (class, bytes) in self.parts(request) {
                let order = Operation::ALL
                    .iter()
                    .position(|operation| *operation == request.operation);
                let count = counts
                    .entry((order.unwrap_or_default() as u8, class))
                    .or_insert(ClassCount {
                        class,
                        operation: request.operation,
                        bytes: 0,
                        requests: 0,
                    });
                count.bytes += bytes;
                count.requests += 1;
            }
        }
        counts.into_values().collect()
    }

    /// The bytes of a request by class; a byte that no segment covers is of unknown class.
    fn parts(&self, request: &Request) -> BTreeMap<Option<Class>, u64> {
        let mut parts = BTreeMap::new();
        let mut covered = 0;
        for segment in self.trace.segments_of(request) {
            let bytes = u64::from(segment.bytes);
            *parts.entry(Some(segment.class)).or_default() += bytes;
            covered += bytes;
        }
        let rest = u64::from(request.bytes).saturating_sub(covered);
        if rest > 0 {
            *parts.entry(Some(Class::Unknown)).or_default() += rest;
        }
        if parts.is_empty() {
            parts.insert(None, 0);
        }
        parts
    }

    /// Log bytes that syncs of a database's own log made necessary.
    fn journal_of_journal(&self) -> u64 {
        let trace = self.trace;
        let of_log = |cause: u32| {
            let file = trace.syncs[cause as usize].file?;
            let file_type = trace.files[file as usize].file_type;
            file_type.is_database_log().then_some(())
        };
        let segments = self
            .requests()
            .filter(|request| request.operation.is_write())
            .flat_map(|request| trace.segments_of(request));
        segments
            .filter(|segment| segment.class.layer() == Layer::Journal)
            .filter(|segment| segment.cause.and_then(of_log).is_some())
            .map(|segment| u64::from(segment.bytes))
            .sum()
    }

    /// The requests of the sync calls of the last `count` of all operations.
    fn pattern(&self, count: u64, operations: u64) -> Vec<PatternRequest> {
        let range = self.start_ns..=self.end_ns;
        let exits = self.trace.syncs.iter().filter_map(|sync| sync.exit_ns);
        let mut exits: Vec<u64> = exits.filter(|ns| range.contains(ns)).collect();
        exits.sort_unstable();
        let Some(&last) = exits.last() else {
            return Vec::new();
        };
        let calls = (exits.len() as u64 * count).div_ceil(operations.max(1));
        let first = exits.len().saturating_sub(calls as usize);
        let begin = match first {
            0 => self.start_ns,
            first => exits[first - 1],
        };
        let steps = &exits[first..];
        let mut requests: Vec<&Request> = self
            .trace
            .requests
            .iter()
            .filter(|request| !request.by_tracer && (begin..=last).contains(&request.issue_ns))
            .collect();
        requests.sort_by_key(|request| request.issue_ns);
        let zero = requests.first().map_or(begin, |request| request.issue_ns);
        requests
            .into_iter()
            .flat_map(|request| {
                let step = steps.partition_point(|exit| *exit < request.issue_ns);
                self.shown(request, request.issue_ns - zero, step as u32)
            })
            .collect()
    }

    fn shown(&self, request: &Request, issue_ns: u64, step: u32) -> Vec<PatternRequest> {
        let whole = PatternRequest {
            issue_ns,
            step,
            sector: request.sector,
            sectors: u64::from(request.bytes) / iostep_model::SECTOR_BYTES,
            operation: request.operation,
            fua: request.flags.has(Flags::FUA),
            class: None,
            file: None,
        };
        let segments = self.trace.segments_of(request);
        if segments.is_empty() {
            return vec![whole];
        }
        let part = |segment: &iostep_model::table::Segment| PatternRequest {
            sector: segment.sector,
            sectors: u64::from(segment.bytes) / iostep_model::SECTOR_BYTES,
            class: Some(segment.class),
            file: segment.file.map(|file| self.trace.file_path(file)),
            ..whole.clone()
        };
        segments.iter().map(part).collect()
    }
}
