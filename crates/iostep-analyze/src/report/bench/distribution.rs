//! How long each step took, as a cumulative distribution.

use std::collections::BTreeMap;

use iostep_model::bench::{Document, Run, RunState, Step};
use iostep_model::unit::Unit;
use iostep_report::plot::axis::Axis;
use iostep_report::plot::{ACROSS_PX, Plot, Shape, UP_PX};
use iostep_report::quantity::Show as _;

/// What is marked on each line, with its name.
const MARKS: [(f64, &str); 4] = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")];
/// Of the greatest value many buckets lie on one pixel; the path has each once.
const LEAST_PX: f64 = 0.3;

/// One step of all runs: how many values are at most so long, in ascending order.
struct Cumulative {
    step: Step,
    min_ns: f64,
    /// Latency and share.
    points: Vec<(f64, f64)>,
    count: f64,
}

/// The plot of a document; `None` if nothing was timed.
pub(super) fn plot(document: &Document) -> Option<Plot> {
    let runs = counted(document);
    let steps = steps(&runs);
    let least = steps.iter().map(|s| s.min_ns).reduce(f64::min)?;
    let ends = steps.iter().filter_map(|s| Some(s.points.last()?.0));
    let across = Axis::decades(least, ends.reduce(f64::max)?, ACROSS_PX);
    let most = steps.iter().map(|s| s.count).fold(0.0, f64::max);
    let up = Axis::nines(most, UP_PX);
    let lines = steps.iter().enumerate().map(|(series, step)| Shape::Line {
        series,
        path: step.path(&across, &up),
    });
    let dots = steps.iter().enumerate();
    let dots = dots.flat_map(|(series, step)| step.dots(series, &across, &up));
    let names = steps.iter().map(|step| step.step.name().to_owned());
    Some(Plot {
        title: "latency by step".to_owned(),
        note: "The share of values that are at most so long; both axes are logarithmic.".to_owned(),
        legend: names.enumerate().filter(|_| steps.len() > 1).collect(),
        across: across.ticks(|ns| Unit::Nanoseconds.show(ns)),
        across_name: "latency",
        up: up.ticks(percent),
        shapes: lines.chain(dots).collect(),
        ..Plot::default()
    })
}

/// The complete runs, or all if none is.
fn counted(document: &Document) -> Vec<&Run> {
    let complete = |run: &&Run| run.state == RunState::Complete;
    let runs: Vec<&Run> = document.runs.iter().filter(complete).collect();
    match runs.is_empty() {
        true => document.runs.iter().collect(),
        false => runs,
    }
}

fn steps(runs: &[&Run]) -> Vec<Cumulative> {
    // Counts are added as floating point: a damaged file must not overflow.
    let mut counts: BTreeMap<Step, (f64, BTreeMap<u64, f64>)> = BTreeMap::new();
    for latency in runs.iter().flat_map(|run| &run.latencies) {
        let (Some(min_ns), Some(max_ns)) = (latency.histogram.min_ns(), latency.histogram.max_ns())
        else {
            continue;
        };
        let (least, buckets) = counts
            .entry(latency.step)
            .or_insert((f64::INFINITY, BTreeMap::new()));
        *least = least.min(min_ns as f64);
        for (_, last_ns, count) in latency.histogram.occupied() {
            *buckets.entry(last_ns.min(max_ns)).or_default() += count as f64;
        }
    }
    let cumulative = |(step, (min_ns, buckets)): (Step, (f64, BTreeMap<u64, f64>))| {
        let count: f64 = buckets.values().sum();
        let mut passed = 0.0;
        let points = buckets.into_iter().map(|(last_ns, bucket)| {
            passed += bucket;
            (last_ns as f64, passed / count)
        });
        Cumulative {
            step,
            min_ns,
            points: points.collect(),
            count,
        }
    };
    counts.into_iter().map(cumulative).collect()
}

impl Cumulative {
    fn path(&self, across: &Axis, up: &Axis) -> String {
        let mut last = (across.at(self.min_ns), up.at(0.0));
        let mut path = format!("M{} {}", last.0, last.1);
        for &(latency_ns, share) in &self.points {
            let (x, y) = (across.at(latency_ns), up.at(share));
            if x.0 - last.0.0 >= LEAST_PX || last.1.0 - y.0 >= LEAST_PX {
                path += &format!("H{x}V{y}");
                last = (x, y);
            }
        }
        path
    }

    fn dots(&self, series: usize, across: &Axis, up: &Axis) -> Vec<Shape> {
        let name = self.step.name();
        let dot = |(share, mark): (f64, &str)| {
            let latency_ns = self.points.iter().find(|point| point.1 >= share)?.0;
            Some(Shape::Dot {
                series,
                x: across.at(latency_ns),
                y: up.at(share),
                title: format!("{name} {mark}: {}", Unit::Nanoseconds.show(latency_ns)),
            })
        };
        MARKS.into_iter().filter_map(dot).collect()
    }
}

/// A share with the nines that it has; none at the bottom, where there is no room.
fn percent(share: f64) -> String {
    if share == 0.0 {
        return String::new();
    }
    let digits = (-(1.0 - share).log10() - 2.0).round().max(0.0) as usize;
    format!("{:.digits$} %", share * 100.0)
}
