//! How long requests took, drawn.

use iostep_model::unit::Unit;
use iostep_report::plot::axis::{Axis, Px, Tick};
use iostep_report::plot::{ACROSS_PX, Plot, Shape, UP_PX, polyline};
use iostep_report::quantity::Show as _;

use super::requests::PERCENTILES;
use crate::stats::{Latency, Stage};

/// The color of the line between the percentiles.
const GREY: usize = 5;

/// A plot for each part of a request's way, all on one scale, with a line for each operation.
pub(super) fn plots(latencies: &[Latency]) -> Vec<Plot> {
    let all = latencies.iter().map(|latency| &latency.percentiles);
    let ends = all.clone().map(|of| of.p50_ns).min();
    let ends = ends.zip(all.map(|of| of.max_ns).max());
    let Some((least, most)) = ends else {
        return Vec::new();
    };
    let across = Axis::decades(least as f64, most as f64, ACROSS_PX);
    let plots = Stage::ALL.into_iter().filter_map(|stage| {
        let rows = latencies.iter().filter(|latency| latency.stage == stage);
        let rows: Vec<&Latency> = rows.collect();
        (!rows.is_empty()).then(|| plot(stage, &rows, &across))
    });
    plots.collect()
}

fn plot(stage: Stage, rows: &[&Latency], across: &Axis) -> Plot {
    let row_px = (UP_PX.0 - UP_PX.1) / rows.len() as f64;
    let mut plot = Plot {
        title: format!("latency, {}", stage.name()),
        note: "Nearest rank, logarithmic scale.".to_owned(),
        legend: PERCENTILES
            .map(|(name, _)| name.to_owned())
            .into_iter()
            .enumerate()
            .collect(),
        across: across.ticks(|ns| Unit::Nanoseconds.show(ns)),
        across_name: "time",
        ..Plot::default()
    };
    for (number, latency) in rows.iter().enumerate() {
        let y = Px(UP_PX.1 + (number as f64 + 0.5) * row_px);
        let operation = latency.operation.name();
        plot.up.push(Tick {
            at: y,
            text: operation.to_owned(),
        });
        let values = PERCENTILES.map(|(name, of)| (name, of(&latency.percentiles) as f64));
        plot.shapes.push(Shape::Line {
            series: GREY,
            path: polyline(values.map(|(_, ns)| (across.at(ns), y))),
        });
        let dots = (0..).zip(values).map(|(series, (name, ns))| Shape::Dot {
            series,
            x: across.at(ns),
            y,
            title: format!("{operation}, {name}: {}", Unit::Nanoseconds.show(ns)),
        });
        plot.shapes.extend(dots);
    }
    plot
}
