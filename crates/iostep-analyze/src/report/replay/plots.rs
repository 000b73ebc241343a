//! The plots of a replay.

use iostep_model::unit::Unit;
use iostep_report::plot::axis::Axis;
use iostep_report::plot::{ACROSS_PX, Plot, Shape, UP_PX, polyline};
use iostep_report::quantity::Show as _;
use iostep_report::quantity::count;

use super::{latenesses, name};
use crate::replay::{Document, Progress, Summary, Target};

/// Calls over time, and the lateness of each target's last run: side by side, to be compared.
pub(super) fn of(document: &Document) -> Vec<Plot> {
    let last = |target: &Target| {
        let mut plot = lateness(&target.runs.last()?.summary)?;
        if document.targets.len() > 1 {
            plot.title += &format!(", {}", name(target));
        }
        Some(plot)
    };
    let lateness = document.targets.iter().filter_map(last);
    progress(document).into_iter().chain(lateness).collect()
}

/// Calls over time: the recording, and the last run of each target. None without calls.
fn progress(document: &Document) -> Option<Plot> {
    let last = |target: &Target| {
        let points = target.runs.last()?.summary.progress.clone();
        Some((name(target), points)).filter(|(_, points)| !points.is_empty())
    };
    let all: Vec<(String, Vec<Progress>)> = document.targets.iter().filter_map(last).collect();
    let points = || all.iter().flat_map(|(_, points)| points);
    let calls = points().map(|point| point.calls).max()?;
    let ends = points().map(|point| point.recorded_ns.max(point.replayed_ns));
    let across = Axis::linear(ends.max()? as f64, 1.0, ACROSS_PX);
    let up = Axis::linear(calls as f64, 1.0, UP_PX);
    let line = |series: usize, points: &[Progress], time: fn(&Progress) -> u64| {
        let place = |point: &Progress| (across.at(time(point) as f64), up.at(point.calls as f64));
        let path = polyline(points.iter().map(place));
        Shape::Line { series, path }
    };
    let replayed = (0..).zip(&all);
    let mut shapes: Vec<Shape> = replayed
        .map(|(series, (_, points))| line(series, points, |point| point.replayed_ns))
        .collect();
    let (_, longest) = all.iter().max_by_key(|(_, points)| points.len())?;
    shapes.push(line(all.len(), longest, |point| point.recorded_ns));
    let names = all.iter().map(|(name, _)| name.clone());
    Some(Plot {
        title: "calls over time".to_owned(),
        note: "Calls that had been issued.".to_owned(),
        legend: (0..).zip(names.chain(["recorded".to_owned()])).collect(),
        across: across.ticks(|ns| Unit::Nanoseconds.show(ns)),
        across_name: "time since the first call",
        up: up.ticks(|calls| count(calls as u64)),
        shapes,
        ..Plot::default()
    })
}

/// How late calls were issued. None if none was.
fn lateness(summary: &Summary) -> Option<Plot> {
    let most = latenesses(summary).map(|(_, of)| of.count).max()?;
    let greatest = latenesses(summary).map(|(_, of)| of.max_ns).max()?;
    let across = Axis::nines(most.min(100_000) as f64, ACROSS_PX);
    let up = Axis::decades(10.0, greatest as f64, UP_PX);
    let (mut lines, mut dots) = (Vec::new(), Vec::new());
    for (series, (name, of)) in latenesses(summary).enumerate() {
        let marks = [
            (0.5, "p50", of.p50_ns),
            (0.9, "p90", of.p90_ns),
            (0.99, "p99", of.p99_ns),
            (1.0, "max", of.max_ns),
        ];
        let places = marks.map(|(share, _, ns)| (across.at(share), up.at(ns as f64)));
        let path = polyline(places);
        lines.push(Shape::Line { series, path });
        dots.extend(
            marks
                .iter()
                .zip(places)
                .map(|((_, mark, ns), (x, y))| Shape::Dot {
                    series,
                    x,
                    y,
                    title: format!("{name}, {mark}: {}", Unit::Nanoseconds.show(*ns as f64)),
                }),
        );
    }
    Some(Plot {
        title: "lateness".to_owned(),
        note: "That share of calls was issued at most so late; both axes are logarithmic."
            .to_owned(),
        legend: latenesses(summary)
            .map(|(name, _)| name.to_owned())
            .enumerate()
            .collect(),
        across: across.ticks(|share| format!("{:.4} %", share * 100.0)),
        across_name: "share of calls",
        up: up.ticks(|ns| Unit::Nanoseconds.show(ns)),
        shapes: lines.into_iter().chain(dots).collect(),
        ..Plot::default()
    })
}
