//! Block patterns: the requests of the last operations of a cell, ATC'13 figures 3 and 4.

use iostep_model::class::Layer;
use iostep_model::operation::Operation;
use iostep_model::unit::Unit;
use iostep_report::document::{Block, Cell, Section, Table};
use iostep_report::plot::axis::Axis;
use iostep_report::plot::{ACROSS_PX, Plot, Shape, UP_PX};
use iostep_report::quantity::Show as _;
use iostep_report::quantity::{bytes, count, duration};

use crate::lab::{Pattern, WholeRequest};

/// An operation that makes more requests than this is cut.
const MOST_REQUESTS: usize = 40;
const MOST_CLASSES: usize = 3;
/// More marks than this cannot be told apart.
const MOST_MARKS: usize = 2_000;

/// The requests of the last operation, one by one; `None` if it made none.
pub(super) fn last_operation(pattern: &Pattern) -> Option<Table> {
    let first = pattern.last_operation().next()?;
    let rows = pattern.last_operation().map(|request| {
        let sector = match request.sectors {
            0 => Cell::default(),
            _ => Cell::count(request.sector),
        };
        vec![
            Cell::duration(request.issue_ns.saturating_sub(first.issue_ns)),
            Cell::text(operation(request)),
            Cell::text(length(request)),
            sector,
            Cell::text(classes(request)),
            Cell::text(request.files.join(", ")),
        ]
    });
    let columns = [">after", "what", ">bytes", ">sector", "class", "file"];
    let title = format!("Requests of the last operation: {}", pattern.title);
    let table = Table::new(title, columns).rows(rows);
    Some(table.at_most(MOST_REQUESTS))
}

/// `log descriptor, logged block`; a segment of nilfs2 has more classes than a line.
fn classes(request: &WholeRequest) -> String {
    let names = request.classes.iter().take(MOST_CLASSES);
    let names: Vec<&str> = names.map(|class| class.name()).collect();
    match request.classes.len().saturating_sub(MOST_CLASSES) {
        0 => names.join(", "),
        rest => format!("{} and {rest} more", names.join(", ")),
    }
}

/// `write`, `write, forced`.
fn operation(request: &WholeRequest) -> String {
    let forced = if request.fua { ", forced" } else { "" };
    format!("{}{forced}", request.operation.name().replace('_', " "))
}

fn length(request: &WholeRequest) -> String {
    match request.sectors {
        0 => String::new(),
        sectors => bytes(sectors.saturating_mul(512)),
    }
}

/// A plot for each pattern that has requests that move data.
pub(super) fn plots(patterns: &[Pattern]) -> Section {
    let note = "The requests of the last operations by the time of their issue and their address. \
                A number is a write's length in KiB, a dashed line a flush; an outlined mark is a \
                write that had to be on the medium before it completed.";
    let plots: Vec<Plot> = patterns.iter().filter_map(plot).collect();
    let mut section = Section::new("Block patterns");
    if !plots.is_empty() {
        section.push(Block::Lines(vec![note.to_owned()]));
        section.push(Block::Plots(plots));
    }
    section
}

fn plot(pattern: &Pattern) -> Option<Plot> {
    let requests = &pattern.requests[..pattern.requests.len().min(MOST_MARKS)];
    let moving = || requests.iter().filter(|request| request.sectors > 0);
    let at_byte = |request: &WholeRequest| request.sector.saturating_mul(512) as f64;
    let last_byte = moving().map(at_byte).reduce(f64::max)?;
    let last_ns = requests.iter().map(|request| request.issue_ns).max()?;
    let across = Axis::linear(last_ns as f64, 1.0, ACROSS_PX);
    let up = Axis::bytes(last_byte, UP_PX);
    let flushes = requests.iter().filter(|r| r.operation == Operation::Flush);
    let edges = flushes.map(|request| Shape::Edge {
        x: across.at(request.issue_ns as f64),
        name: String::new(),
    });
    let marks = moving().map(|request| Shape::Mark {
        series: series(layer(request)),
        x: across.at(request.issue_ns as f64),
        y: up.at(at_byte(request)),
        size: size(request.sectors),
        forced: request.fua,
        title: title(request),
    });
    let layers: Vec<Layer> = moving().map(layer).collect();
    let layers = Layer::ALL
        .into_iter()
        .filter(|layer| layers.contains(layer));
    Some(Plot {
        title: pattern.title.clone(),
        legend: layers
            .map(|layer| (series(layer), layer.name().to_owned()))
            .collect(),
        across: across.ticks(|ns| duration(ns.round() as u64)),
        across_name: "since the first",
        up: up.ticks(|byte| Unit::Bytes.show(byte)),
        shapes: edges.chain(marks).collect(),
        ..Plot::default()
    })
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

/// KiB without a unit, as in the paper's figure.
fn size(sectors: u64) -> String {
    match sectors % 2 {
        0 => (sectors / 2).to_string(),
        _ => format!("{}.5", sectors / 2),
    }
}

fn title(request: &WholeRequest) -> String {
    let text = format!(
        "{} of {} at sector {}: {} {}",
        operation(request),
        length(request),
        count(request.sector),
        classes(request),
        request.files.join(", ")
    );
    text.trim_end().to_owned()
}
