//! Requests and bytes by phase and operation, flushes, and the tracer's own I/O.

use iostep_model::class::Layer;
use iostep_model::operation::{Flags, Operation};
use iostep_model::table::{Phase, Request, Segment};
use serde::Serialize;

use super::amount::{Amount, Split};
use super::uncovered_bytes;

/// Requests of one operation in one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Total {
    pub phase: Phase,
    pub operation: Operation,
    /// How many, and their bytes.
    pub amount: Amount,
}

/// Bytes of one layer in one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseLayer {
    pub phase: Phase,
    pub layer: Layer,
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// What made the device put its cache on the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Barriers {
    /// Flushes that the device executed ([`Request::is_executed_flush`]).
    pub flushes: u64,
    /// Writes that asked for a flush first (`REQ_PREFLUSH`); the flush itself is in `flushes`.
    pub preflush_writes: u64,
    /// Writes that are durable when complete (`REQ_FUA`).
    pub fua_writes: u64,
}

impl Barriers {
    fn add(&mut self, request: &Request) {
        self.flushes += u64::from(request.is_executed_flush());
        if request.operation.is_write() && request.bytes > 0 {
            self.preflush_writes += u64::from(request.flags.has(Flags::PREFLUSH));
            self.fua_writes += u64::from(request.flags.has(Flags::FUA));
        }
    }
}

#[derive(Default)]
pub(super) struct Collector {
    amounts: [[Amount; Operation::ALL.len()]; Phase::ALL.len()],
    layers: [[Split; Layer::ALL.len()]; Phase::ALL.len()],
    pub(super) tracer: Split,
    pub(super) barriers: Barriers,
}

impl Collector {
    pub(super) fn add(&mut self, request: &Request, segments: &[Segment]) {
        if request.by_tracer {
            if let Some(side) = self.tracer.side(request.operation) {
                side.add(request.bytes.into());
            }
            return;
        }
        self.barriers.add(request);
        let phase = request.phase as usize;
        if request.operation == Operation::Flush && !request.is_executed_flush() {
            return;
        }
        self.amounts[phase][request.operation as usize].add(request.bytes.into());
        let layers = &mut self.layers[phase];
        let mut add = |layer: Layer, bytes: u64| {
            if let Some(side) = layers[layer as usize].side(request.operation) {
                side.bytes += bytes;
            }
        };
        for segment in segments {
            add(segment.class.layer(), segment.bytes.into());
        }
        add(Layer::Unknown, uncovered_bytes(request, segments));
    }

    pub(super) fn totals(&self) -> Vec<Total> {
        let mut totals = Vec::new();
        for phase in Phase::ALL {
            for operation in Operation::ALL {
                let amount = self.amounts[phase as usize][operation as usize];
                if amount.requests > 0 {
                    totals.push(Total {
                        phase,
                        operation,
                        amount,
                    });
                }
            }
        }
        totals
    }

    pub(super) fn phase_layers(&self) -> Vec<PhaseLayer> {
        let mut rows = Vec::new();
        for phase in Phase::ALL {
            for layer in Layer::ALL {
                let split = self.layers[phase as usize][layer as usize];
                if !split.is_empty() {
                    rows.push(PhaseLayer {
                        phase,
                        layer,
                        read_bytes: split.read.bytes,
                        write_bytes: split.write.bytes,
                    });
                }
            }
        }
        rows
    }
}
