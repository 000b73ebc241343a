//! The plots of a replay.

use super::name;
use crate::replay::{Document, Progress, Quantiles, Summary, Target};
use crate::report::bench::html::axis::{Axis, Px};
use crate::report::bench::html::figure;
use crate::report::bench::html::plot::{ACROSS_PX, Dot, Line, Plot, UP_PX};
use crate::report::quantity::count;

/// Calls over time, and the lateness of each target's last run: side by side, to be compared.
pub(super) fn of(document: &Document) -> Vec<Plot> {
    let last = |target: &Target| {
        let plot = lateness(&target.runs.last()?.summary)?;
        Some(match document.targets.len() {
            1 => plot,
            _ => Plot {
                title: format!("{}, {}", plot.title, name(target)),
                ..plot
            },
        })
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
    let path = |points: &[Progress], time: fn(&Progress) -> u64| {
        let mut path = String::new();
        for point in points {
            let letter = if path.is_empty() { 'M' } else { 'L' };
            let (x, y) = (across.at(time(point) as f64), up.at(point.calls as f64));
            path += &format!("{letter}{x:.1} {y:.1}");
        }
        path
    };
    let mut lines: Vec<Line> = all
        .iter()
        .map(|(name, points)| Line {
            name: name.clone(),
            path: path(points, |point| point.replayed_ns),
        })
        .collect();
    let (_, longest) = all.iter().max_by_key(|(_, points)| points.len())?;
    lines.push(Line {
        name: "recorded".to_owned(),
        path: path(longest, |point| point.recorded_ns),
    });
    Some(Plot {
        title: "calls over time".to_owned(),
        note: "Calls that had been issued.",
        across: across.ticks(|ns| figure::tick(&figure::nanoseconds(ns))),
        across_name: "time since the first call",
        up: up.ticks(|calls| count(calls as u64)),
        lines,
        dots: Vec::new(),
        zones: Vec::new(),
        edges: Vec::new(),
    })
}

/// How late calls were issued. None if none was.
fn lateness(summary: &Summary) -> Option<Plot> {
    let lateness = &summary.lateness;
    let all = [
        ("on time: after they were due", lateness.waited),
        ("late already: after the call before", lateness.added),
        ("all: after they were due", lateness.behind),
    ];
    let found: Vec<(&str, Quantiles)> = all
        .into_iter()
        .filter_map(|(name, quantiles)| Some((name, quantiles?)))
        .collect();
    let most = found.iter().map(|(_, q)| q.count).max()?;
    let greatest = found.iter().map(|(_, q)| q.max_ns).max()?;
    let across = Axis::nines(most.min(100_000) as f64, ACROSS_PX);
    let up = Axis::decades(10.0, greatest as f64, UP_PX);
    let (mut lines, mut dots) = (Vec::new(), Vec::new());
    for (line, (name, quantiles)) in found.iter().enumerate() {
        let marks = [
            (0.5, "p50", quantiles.p50_ns),
            (0.9, "p90", quantiles.p90_ns),
            (0.99, "p99", quantiles.p99_ns),
            (1.0, "maximum", quantiles.max_ns),
        ];
        let mut path = String::new();
        for (share, mark, ns) in marks {
            let (x, y) = (across.at(share), up.at(ns as f64));
            let letter = if path.is_empty() { 'M' } else { 'L' };
            path += &format!("{letter}{x:.1} {y:.1}");
            dots.push(Dot {
                line,
                x: Px(x),
                y: Px(y),
                title: format!("{name}, {mark}: {}", figure::nanoseconds(ns as f64)),
            });
        }
        lines.push(Line {
            name: (*name).to_owned(),
            path,
        });
    }
    Some(Plot {
        title: "lateness".to_owned(),
        note: "That share of calls was issued at most so late; both axes are logarithmic.",
        across: across.ticks(|share| {
            format!("{:.6}", share * 100.0)
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
                + " %"
        }),
        across_name: "share of calls",
        up: up.ticks(|ns| figure::tick(&figure::nanoseconds(ns))),
        lines,
        dots,
        zones: Vec::new(),
        edges: Vec::new(),
    })
}
