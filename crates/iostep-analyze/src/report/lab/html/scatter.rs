//! Time against address for the last operations of a cell: ATC'13 figures 3 and 4.

use askama::Template;
use iostep_model::class::Layer;
use iostep_model::operation::Operation;

use crate::lab::{Pattern, WholeRequest};
use crate::report::bench::html::axis::{Axis, Px, Tick};
use crate::report::bench::html::figure;
use crate::report::bench::html::plot::{ACROSS_PX, UP_PX};
use crate::report::lab::text::patterns::{classes, length, operation};
use crate::report::quantity::{bytes, count, duration};

/// More marks than this cannot be told apart.
const MOST_MARKS: usize = 2_000;
/// Half of a mark's side.
const HALF_PX: f64 = 3.5;

struct Mark {
    series: usize,
    x: Px,
    y: Px,
    /// KiB.
    size: String,
    forced: bool,
    title: String,
}

impl Mark {
    fn label_x(&self) -> Px {
        Px(self.x.0 + 9.0)
    }
}

/// A layer in the legend.
struct LayerName {
    series: usize,
    name: &'static str,
}

/// A cell's picture.
#[derive(Template)]
#[template(path = "scatter.html")]
pub(super) struct Scatter {
    title: String,
    layers: Vec<LayerName>,
    up: Vec<Tick>,
    across: Vec<Tick>,
    flushes: Vec<Px>,
    marks: Vec<Mark>,
}

impl Scatter {
    /// `None` for a pattern without requests that move data.
    pub(super) fn of(pattern: &Pattern) -> Option<Scatter> {
        let requests = &pattern.requests[..pattern.requests.len().min(MOST_MARKS)];
        let moving = || requests.iter().filter(|request| request.sectors > 0);
        let last_byte = moving()
            .map(|request| request.sector.saturating_mul(512) as f64)
            .reduce(f64::max)?;
        let last_ns = requests.iter().map(|request| request.issue_ns).max()?;
        let across = Axis::linear(last_ns as f64, 1.0, ACROSS_PX);
        let up = Axis::bytes(last_byte, UP_PX);
        let flushes = requests.iter().filter(|r| r.operation == Operation::Flush);
        Some(Scatter {
            title: pattern.title.clone(),
            layers: legend(moving()),
            across: across.ticks(|ns| figure::tick(&duration(ns.round() as u64))),
            up: up.ticks(|byte| figure::tick(&bytes(byte.round() as u64))),
            flushes: flushes.map(|r| Px(across.at(r.issue_ns as f64))).collect(),
            marks: moving()
                .map(|request| mark(request, &across, &up))
                .collect(),
        })
    }

    fn frame(&self) -> [f64; 4] {
        [ACROSS_PX.0, ACROSS_PX.1, UP_PX.1, UP_PX.0]
    }
}

fn layer(request: &WholeRequest) -> Layer {
    let first = request.classes.first();
    first.map_or(Layer::Unknown, |class| class.layer())
}

/// The colour of a layer, as in the style sheet's series.
fn series(layer: Layer) -> usize {
    match layer {
        Layer::Data => 0,
        Layer::Journal => 1,
        Layer::Metadata => 2,
        Layer::Unknown => 5,
    }
}

fn legend<'a>(requests: impl Iterator<Item = &'a WholeRequest>) -> Vec<LayerName> {
    let found: Vec<Layer> = requests.map(layer).collect();
    let there = Layer::ALL.into_iter().filter(|layer| found.contains(layer));
    there
        .map(|layer| LayerName {
            series: series(layer),
            name: layer.name(),
        })
        .collect()
}

fn mark(request: &WholeRequest, across: &Axis, up: &Axis) -> Mark {
    let file = request.files.join(", ");
    Mark {
        series: series(layer(request)),
        x: Px(across.at(request.issue_ns as f64) - HALF_PX),
        y: Px(up.at(request.sector.saturating_mul(512) as f64) - HALF_PX),
        size: size(request.sectors),
        forced: request.fua,
        title: format!(
            "{} of {} at sector {}: {} {file}",
            operation(request),
            length(request),
            count(request.sector),
            classes(request)
        )
        .trim_end()
        .to_owned(),
    }
}

/// KiB without a unit, as in the paper's figure.
fn size(sectors: u64) -> String {
    match sectors % 2 {
        0 => (sectors / 2).to_string(),
        _ => format!("{}.5", sectors / 2),
    }
}
