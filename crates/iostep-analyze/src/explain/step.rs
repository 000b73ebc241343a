//! Milestones: which part of a recording belongs to which transaction.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use iostep_model::event::Marker;
use iostep_model::table::Trace;

use super::MissingStep;

/// Something that was done under a journal mode.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Journal mode.
    pub mode: String,
    pub subject: Subject,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The transaction with this number, from 1.
    Transaction(usize),
    /// The database was closed.
    Close,
}

/// Which of its moments a marker shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// It is about to begin; the filesystem is settled.
    Start,
    /// It ended.
    End,
    /// The filesystem is settled again.
    Settled,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject {
            Subject::Transaction(number) => write!(f, "{}: transaction {number}", self.mode),
            Subject::Close => write!(f, "{}: close", self.mode),
        }
    }
}

impl Step {
    /// The marker for one of its moments.
    pub fn marker(&self, edge: Edge) -> Marker {
        Marker::Step(self.name(edge))
    }

    fn name(&self, edge: Edge) -> String {
        match edge {
            Edge::Start => format!("{self} starts"),
            Edge::End => format!("{self} ends"),
            Edge::Settled => format!("{self} is settled"),
        }
    }
}

/// When each named milestone was.
pub(super) struct Windows {
    at_ns: HashMap<String, u64>,
}

impl Windows {
    pub(super) fn of(trace: &Trace) -> Windows {
        let named = trace.markers.iter().filter_map(|row| match &row.marker {
            Marker::Step(name) => Some((name.clone(), row.mono_ns)),
            _ => None,
        });
        Windows {
            at_ns: named.collect(),
        }
    }

    pub(super) fn during(&self, step: &Step) -> Result<Range<u64>, MissingStep> {
        Ok(self.at(step, Edge::Start)?..self.at(step, Edge::End)?)
    }

    pub(super) fn settling(&self, step: &Step) -> Result<Range<u64>, MissingStep> {
        Ok(self.at(step, Edge::End)?..self.at(step, Edge::Settled)?)
    }

    fn at(&self, step: &Step, edge: Edge) -> Result<u64, MissingStep> {
        let name = step.name(edge);
        self.at_ns.get(&name).copied().ok_or(MissingStep(name))
    }
}
