//! I/O of a window, added up.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::Range;

use iostep_model::class::Layer;
use iostep_model::operation::{Flags, Operation};
use iostep_model::table::{Request, Segment};
use serde::Serialize;

use super::part::{Part, Sorter};

/// What was written, as ATC'15 table 1 counts it and finer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Write requests.
    pub writes: u64,
    pub bytes: u64,
    /// Bytes outside the filesystem's journal: files, and metadata in its own place.
    pub data_bytes: u64,
    /// Bytes in the filesystem's journal.
    pub journal_bytes: u64,
    /// Bytes in the filesystem's journal for syncs of the SQLite journal or WAL.
    pub joj_bytes: u64,
    /// Flushes that the device executed.
    pub flushes: u64,
    /// Writes with FUA: durable when complete.
    pub fua_writes: u64,
    /// Sync calls of the SQL process.
    pub syncs: u64,
    /// Read requests.
    pub reads: u64,
    pub read_bytes: u64,
    /// Bytes that others wrote at the same time; not in any of the above.
    pub background_bytes: u64,
    /// Bytes written by layer.
    pub parts: Vec<PartCost>,
}

/// What was written in one layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartCost {
    /// The layer.
    pub part: Part,
    pub bytes: u64,
    /// Requests with a part in it.
    pub writes: u64,
}

impl Cost {
    /// The experiment's own I/O in a window.
    pub(super) fn of(sorter: &Sorter<'_>, window: &Range<u64>) -> Cost {
        Cost::of_those(
            sorter,
            window,
            |request, segment| sorter.belongs(request, segment),
            |flush| sorter.may_flush(flush),
        )
    }

    /// The experiment's own I/O in a window of settling. The filesystem's journal and metadata are
    /// all counted: the filesystem was settled before the step too, and who changed a metadata
    /// block is not known.
    pub(super) fn of_settling(sorter: &Sorter<'_>, window: &Range<u64>) -> Cost {
        Cost::of_those(
            sorter,
            window,
            |_, segment| segment.class.layer() != Layer::Data || sorter.is_of_the_database(segment),
            |_| true,
        )
    }

    /// True if no byte went to or came from the device.
    pub fn is_nothing(&self) -> bool {
        self.bytes == 0 && self.read_bytes == 0
    }

    fn of_those(
        sorter: &Sorter<'_>,
        window: &Range<u64>,
        belongs: impl Fn(&Request, &Segment) -> bool,
        is_our_flush: impl Fn(&Request) -> bool,
    ) -> Cost {
        let mut cost = Cost {
            syncs: sorter
                .syncs(window)
                .filter(|(_, s)| s.file.is_some())
                .count() as u64,
            ..Cost::default()
        };
        let mut parts = BTreeMap::<Part, (u64, u64)>::new();
        for (request, segments) in sorter.requests(window) {
            if request.operation == Operation::Flush {
                cost.flushes += u64::from(request.is_executed_flush() && is_our_flush(request));
                continue;
            }
            let (ours, others): (Vec<_>, Vec<_>) = segments
                .iter()
                .partition(|segment| belongs(request, segment));
            let bytes = ours.iter().map(|segment| u64::from(segment.bytes)).sum();
            if !request.operation.is_write() {
                if request.operation == Operation::Read && !ours.is_empty() {
                    cost.reads += 1;
                    cost.read_bytes += bytes;
                }
                continue;
            }
            cost.background_bytes += others.iter().map(|s| u64::from(s.bytes)).sum::<u64>();
            if !ours.is_empty() {
                cost.add_write(request, bytes);
                cost.add_segments(sorter, &ours, &mut parts);
            }
        }
        cost.parts = into_rows(parts);
        cost
    }

    fn add_write(&mut self, request: &Request, bytes: u64) {
        self.writes += 1;
        self.bytes += bytes;
        self.fua_writes += u64::from(request.flags.has(Flags::FUA));
    }

    fn add_segments(
        &mut self,
        sorter: &Sorter<'_>,
        segments: &[&Segment],
        parts: &mut BTreeMap<Part, (u64, u64)>,
    ) {
        let mut seen = Vec::new();
        for segment in segments {
            let part = sorter.part(segment);
            let bytes = u64::from(segment.bytes);
            let sum = parts.entry(part).or_default();
            sum.0 += bytes;
            if !seen.contains(&part) {
                seen.push(part);
                sum.1 += 1;
            }
            match segment.class.layer() {
                Layer::Journal => self.journal_bytes += bytes,
                _ => self.data_bytes += bytes,
            }
            if part.is_joj() {
                self.joj_bytes += bytes;
            }
        }
    }
}

fn into_rows(parts: BTreeMap<Part, (u64, u64)>) -> Vec<PartCost> {
    let rows = parts.into_iter().map(|(part, (bytes, writes))| PartCost {
        part,
        bytes,
        writes,
    });
    rows.collect()
}

impl<'a> Sum<&'a Cost> for Cost {
    fn sum<I: Iterator<Item = &'a Cost>>(costs: I) -> Cost {
        let mut total = Cost::default();
        let mut parts = BTreeMap::<Part, (u64, u64)>::new();
        for cost in costs {
            total.writes += cost.writes;
            total.bytes += cost.bytes;
            total.data_bytes += cost.data_bytes;
            total.journal_bytes += cost.journal_bytes;
            total.joj_bytes += cost.joj_bytes;
            total.flushes += cost.flushes;
            total.fua_writes += cost.fua_writes;
            total.syncs += cost.syncs;
            total.reads += cost.reads;
            total.read_bytes += cost.read_bytes;
            total.background_bytes += cost.background_bytes;
            for row in &cost.parts {
                let sum = parts.entry(row.part).or_default();
                sum.0 += row.bytes;
                sum.1 += row.writes;
            }
        }
        total.parts = into_rows(parts);
        total
    }
}
