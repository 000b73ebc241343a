//! The seconds of all runs, one run after the other, and their plots.

use iostep_model::bench::figures::{self, whole_seconds};
use iostep_model::bench::{Document, Run, Second};
use iostep_model::manifest::Totals;
use iostep_model::unit::Unit;
use iostep_report::plot::axis::{Axis, Px};
use iostep_report::plot::{ACROSS_PX, Plot, Shape, UP_PX, stairs};
use iostep_report::quantity;
use iostep_report::quantity::Show as _;

use super::totals;

const SECOND_NS: f64 = 1e9;

/// A second on the axis of measured time.
struct Moment<'a> {
    run: usize,
    /// Its number in the run, from 1.
    number: usize,
    /// Where it begins and ends, in seconds of measured time.
    from: f64,
    to: f64,
    second: &'a Second,
    /// All seconds of its run.
    series: &'a [Second],
}

impl Moment<'_> {
    /// An amount of this second as a rate; `None` where it tells none.
    fn rate(&self, amount: u64) -> Option<f64> {
        figures::rate(amount, self.second, self.series)
    }
}

/// Every second of a document.
pub(super) struct Timeline<'a> {
    moments: Vec<Moment<'a>>,
    /// What an operation is called.
    work: &'static str,
    /// Whose flushes are counted, if not those of the devices alone.
    whose_flushes: String,
}

impl<'a> Timeline<'a> {
    pub(super) fn of(document: &'a Document, work: &'static str) -> Timeline<'a> {
        let mut from = 0.0;
        let mut moments = Vec::new();
        for (run, seconds) in (1..).zip(document.runs.iter().map(|run| &run.seconds)) {
            for (number, second) in (1..).zip(seconds) {
                let to = from + second.length_ns as f64 / SECOND_NS;
                moments.push(Moment {
                    run,
                    number,
                    from,
                    to,
                    second,
                    series: seconds,
                });
                from = to;
            }
        }
        Timeline {
            moments,
            work,
            whose_flushes: totals::whose_flushes(&document.environment),
        }
    }

    /// Throughput, latency and, if a device counted, its bytes. None without any second.
    pub(super) fn plots(&self) -> Vec<Plot> {
        if self.moments.is_empty() {
            return Vec::new();
        }
        let mut plots = vec![self.throughput(), self.latency()];
        if self.moments.iter().any(|m| m.second.device.is_some()) {
            plots.push(self.device());
        }
        plots
    }

    fn throughput(&self) -> Plot {
        let rate = |m: &Moment| m.rate(m.second.operations);
        let up = Axis::linear(self.greatest(rate), 1.0, UP_PX);
        let ticks = up.ticks(quantity::decimal);
        let title = format!("{}s per second", self.work);
        let lines = [(self.work, self.line(&up, rate))];
        self.plot(title, "What ended in each second of measured time.", |m| {
            let (Some(rate), Some(bytes)) = (rate(m), m.rate(m.second.bytes)) else {
                return format!(
                    "{} {}s in the last {}, too short for a rate",
                    quantity::count(m.second.operations),
                    self.work,
                    Unit::Nanoseconds.show(m.second.length_ns as f64)
                );
            };
            format!(
                "{} {}s/s, {}/s",
                quantity::decimal(rate),
                self.work,
                Unit::Bytes.show(bytes)
            )
        })
        .with(ticks, lines)
    }

    fn latency(&self) -> Plot {
        let mean = |m: &Moment| {
            let operations = m.second.operations;
            (operations > 0).then(|| m.second.latency_sum_ns as f64 / operations as f64)
        };
        let greatest =
            |m: &Moment| (m.second.operations > 0).then_some(m.second.latency_max_ns as f64);
        let least = self
            .moments
            .iter()
            .filter_map(mean)
            .fold(f64::INFINITY, f64::min);
        let least = if least.is_finite() { least } else { 1.0 };
        let up = Axis::decades(least, self.greatest(greatest), UP_PX);
        let ticks = up.ticks(|ns| Unit::Nanoseconds.show(ns));
        let lines = [
            ("mean", self.line(&up, mean)),
            ("greatest", self.line(&up, greatest)),
        ];
        let title = format!("time of each {}", self.work);
        self.plot(title, "With its sync; logarithmic.", |m| {
            let text =
                |value: Option<f64>| value.map_or("-".into(), |ns| Unit::Nanoseconds.show(ns));
            format!("mean {}, greatest {}", text(mean(m)), text(greatest(m)))
        })
        .with(ticks, lines)
    }

    fn device(&self) -> Plot {
        let bytes = |m: &Moment, of: fn(&Moment) -> Option<Totals>| m.rate(of(m)?.bytes);
        let written = |m: &Moment| bytes(m, |m| Some(m.second.device?.write));
        let read = |m: &Moment| bytes(m, |m| Some(m.second.device?.read));
        let up = Axis::bytes(self.greatest(written).max(self.greatest(read)), UP_PX);
        let ticks = up.ticks(|bytes| Unit::Bytes.show(bytes));
        let lines = [
            ("written", self.line(&up, written)),
            ("read", self.line(&up, read)),
        ];
        let note = "What the device's own counters say, to the precision of the sampling.";
        self.plot("device bytes per second".into(), note, |m| {
            let Some(device) = m.second.device else {
                return "not counted".into();
            };
            let [written, read] = [device.write, device.read].map(|totals| {
                let bytes = quantity::bytes(totals.bytes);
                format!("{bytes} in {}", quantity::count(totals.ios))
            });
            let flushes = quantity::count(device.flush.ios);
            let whose = &self.whose_flushes;
            format!("written {written}, read {read}, {flushes} flushes{whose}")
        })
        .with(ticks, lines)
    }

    fn greatest(&self, value: impl Fn(&Moment) -> Option<f64>) -> f64 {
        self.moments.iter().filter_map(value).fold(0.0, f64::max)
    }

    /// The path of a value.
    fn line(&self, up: &Axis, value: impl Fn(&Moment) -> Option<f64>) -> String {
        let across = self.across();
        let of_run = |run: &[Moment]| {
            let steps = run.iter().map(|m| (m.from, m.to, value(m)));
            stairs(steps, &across, up)
        };
        let runs = self.moments.chunk_by(|a, b| a.run == b.run);
        runs.map(of_run).collect()
    }

    /// The plot without what depends on its values.
    fn plot(&self, title: String, note: &'static str, says: impl Fn(&Moment) -> String) -> Plot {
        let across = self.across();
        let zone = |m: &Moment| Shape::Zone {
            x: across.at(m.from),
            width: Px(across.at(m.to).0 - across.at(m.from).0),
            title: format!("run {}, second {}: {}", m.run, m.number, says(m)),
        };
        let mut shapes = self.edges(&across);
        shapes.extend(self.moments.iter().map(zone));
        Plot {
            title,
            note: note.to_owned(),
            across: across.ticks(quantity::decimal),
            across_name: "seconds of measured time",
            shapes,
            ..Plot::default()
        }
    }

    /// Where runs begin, if there are several; with a name as long as there is room.
    fn edges(&self, across: &Axis) -> Vec<Shape> {
        const NAME_PX: f64 = 40.0;
        let mut named_to = f64::NEG_INFINITY;
        let firsts = self.moments.iter().filter(|m| m.number == 1);
        let mut edges: Vec<Shape> = firsts
            .map(|m| {
                let x = across.at(m.from);
                let is_free = x.0 >= named_to && x.0 + NAME_PX <= ACROSS_PX.1;
                named_to = if is_free { x.0 + NAME_PX } else { named_to };
                let name = match is_free {
                    true => format!("run {}", m.run),
                    false => String::new(),
                };
                Shape::Edge { x, name }
            })
            .collect();
        if edges.len() < 2 {
            edges.clear();
        }
        edges
    }

    fn across(&self) -> Axis {
        let end = self.moments.last().map_or(1.0, |m| m.to);
        Axis::linear(end, 1.0, ACROSS_PX)
    }
}

/// Operations a second, in each second of a run that tells a rate.
pub(super) fn rates(run: &Run) -> Vec<f64> {
    let seconds = whole_seconds(run);
    seconds
        .filter_map(|second| figures::rate(second.operations, second, &run.seconds))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixture;

    #[test]
    fn the_rest_of_a_second_is_no_spike() {
        let mut document = fixture::write_fdatasync(1);
        let run = &mut document.runs[0];
        let whole = *run.seconds.first().expect("a second");
        let last = Second {
            length_ns: 100_000,
            operations: 3,
            ..whole
        };
        run.seconds = vec![whole, whole, last];
        let timeline = Timeline::of(&document, "operation");
        let rates = |m: &Moment| m.rate(m.second.operations);
        assert_eq!(timeline.greatest(rates), whole.operations as f64);
        assert_eq!(rates(&timeline.moments[2]), None);
        let titles: Vec<String> = timeline
            .throughput()
            .shapes
            .into_iter()
            .filter_map(|shape| match shape {
                Shape::Zone { title, .. } => Some(title),
                _ => None,
            })
            .collect();
        assert!(
            titles[2].contains("3 operations in the last 100 µs"),
            "{titles:?}"
        );
    }
}
