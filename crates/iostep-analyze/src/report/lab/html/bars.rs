//! Bar charts of a lab's tables: a group for each row, a bar for each column.

use askama::Template;

use crate::lab::{Entry, Grid, Measure, PaperValue, Row, Unit};
use crate::report::bench::html::axis::{Axis, Px, Tick};
use crate::report::bench::html::figure;
use crate::report::lab::number::shown;
use crate::report::lab::text::grids::{EMULATED, label};

const ACROSS_PX: (f64, f64) = (84.0, 630.0);
/// Pixels count from the top.
const UP_PX: (f64, f64) = (200.0, 14.0);
/// More groups than this have their names aslant.
const LEVEL_GROUPS: usize = 5;
/// Of a group's width, what its bars take.
const FILLED: f64 = 0.8;

/// A bar.
struct Bar {
    series: usize,
    x: Px,
    y: Px,
    width: Px,
    height: Px,
    /// From the least to the greatest run.
    range: Option<(Px, Px)>,
    /// What the paper has, where its scale is the same.
    paper: Option<Px>,
    title: String,
}

impl Bar {
    fn middle(&self) -> Px {
        Px(self.x.0 + self.width.0 / 2.0)
    }
}

/// A chart.
#[derive(Template)]
#[template(path = "bars.html")]
pub(super) struct Bars {
    title: String,
    note: &'static str,
    series: Vec<String>,
    up: Vec<Tick>,
    groups: Vec<Tick>,
    bars: Vec<Bar>,
}

/// What a bar stands for.
struct Amount {
    value: f64,
    range: Option<(f64, f64)>,
    paper: Option<f64>,
    title: String,
}

impl Bars {
    fn frame(&self) -> [f64; 4] {
        [ACROSS_PX.0, ACROSS_PX.1, UP_PX.1, UP_PX.0]
    }

    fn leans(&self) -> bool {
        self.groups.len() > LEVEL_GROUPS
    }

    fn height(&self) -> Px {
        Px(UP_PX.0 + if self.leans() { 90.0 } else { 28.0 })
    }
}

/// A chart for each measure of a table; and one of the paper's numbers where they are times, whose
/// scale is another.
pub(super) fn of(grid: &Grid) -> Vec<Bars> {
    let mut charts = Vec::new();
    let mut measures: Vec<Measure> = Vec::new();
    for column in &grid.columns {
        if !measures.contains(&column.measure) {
            measures.push(column.measure);
        }
    }
    for measure in measures {
        charts.extend(chart(grid, measure, measured));
        if measure.is_time() {
            charts.extend(chart(grid, measure, of_paper).map(|chart| Bars {
                title: format!("{}, the paper's", chart.title),
                note: "",
                ..chart
            }));
        }
    }
    charts
}

fn chart(
    grid: &Grid,
    measure: Measure,
    amount: fn(&Entry, Measure) -> Option<Amount>,
) -> Option<Bars> {
    let columns: Vec<usize> = (0..grid.columns.len())
        .filter(|place| grid.columns[*place].measure == measure)
        .collect();
    let amounts: Vec<Vec<Option<Amount>>> = grid
        .rows
        .iter()
        .map(|row| {
            let entries = columns
                .iter()
                .map(|place| row.entries.get(*place)?.as_ref());
            entries.map(|entry| amount(entry?, measure)).collect()
        })
        .collect();
    let greatest = amounts.iter().flatten().flatten().map(|amount| {
        let high = amount.range.map_or(0.0, |(_, high)| high);
        amount.value.max(high).max(amount.paper.unwrap_or(0.0))
    });
    let greatest = greatest.fold(0.0, f64::max);
    // A bar says something only beside another.
    let is_seen = |amount: &&Amount| amount.value > 0.0;
    let seen = amounts.iter().flatten().flatten().filter(is_seen).count();
    if seen < 2 {
        return None;
    }
    let up = match measure.unit() {
        Unit::Bytes => Axis::bytes(greatest, UP_PX),
        _ => Axis::linear(greatest, 1.0, UP_PX),
    };
    let (mut groups, bars) = place(grid, &amounts, &up);
    let is_emulated = |row: &Row| {
        let mut grounds = row
            .entries
            .iter()
            .flatten()
            .filter_map(|e| e.ground.as_ref());
        measure.is_time() && grounds.any(|ground| ground.emulated)
    };
    for (group, row) in groups.iter_mut().zip(&grid.rows) {
        if is_emulated(row) {
            group.text.push_str(&format!(" {EMULATED}"));
        }
    }
    let names = columns.iter().map(|place| {
        let values = grid.columns[*place].values.iter().map(|value| label(value));
        values.collect::<Vec<_>>().join(", ")
    });
    Some(Bars {
        title: measure.name().to_owned(),
        note: match measure.is_time() && grid.rows.iter().any(is_emulated) {
            true => "A line spans the runs. *: an emulated processor, which is not to be compared.",
            false => "A line spans the runs; a dashed one is the paper's number.",
        },
        series: names.collect(),
        up: up.ticks(|value| figure::tick(&shown(measure, value))),
        groups,
        bars,
    })
}

fn place(grid: &Grid, amounts: &[Vec<Option<Amount>>], up: &Axis) -> (Vec<Tick>, Vec<Bar>) {
    let mut groups = Vec::new();
    let mut bars = Vec::new();
    let wide = (ACROSS_PX.1 - ACROSS_PX.0) / grid.rows.len().max(1) as f64;
    for (number, (row, amounts)) in grid.rows.iter().zip(amounts).enumerate() {
        let left = ACROSS_PX.0 + number as f64 * wide;
        let names: Vec<&str> = row.values.iter().map(|value| label(value)).collect();
        groups.push(Tick {
            at: Px(left + wide / 2.0),
            text: names.join(", "),
        });
        let width = wide * FILLED / amounts.len().max(1) as f64;
        let first = left + wide * (1.0 - FILLED) / 2.0;
        for (series, amount) in amounts.iter().enumerate() {
            let Some(amount) = amount else { continue };
            let y = up.at(amount.value);
            let range = amount.range;
            bars.push(Bar {
                series,
                x: Px(first + series as f64 * width),
                y: Px(y),
                width: Px((width - 1.0).max(0.5)),
                height: Px(UP_PX.0 - y),
                range: range.map(|(low, high)| (Px(up.at(low)), Px(up.at(high)))),
                paper: amount.paper.map(|paper| Px(up.at(paper))),
                title: format!("{}: {}", names.join(", "), amount.title),
            });
        }
    }
    (groups, bars)
}

fn measured(entry: &Entry, measure: Measure) -> Option<Amount> {
    let value = entry.value?;
    let same_scale = |paper: &PaperValue| !paper.ratio && !measure.is_time();
    Some(Amount {
        value: value.median,
        range: (value.runs > 1).then_some((value.minimum, value.maximum)),
        paper: entry
            .paper
            .as_ref()
            .filter(|p| same_scale(p))
            .map(|paper| paper.value),
        title: shown(measure, value.median),
    })
}

fn of_paper(entry: &Entry, measure: Measure) -> Option<Amount> {
    let paper = entry.paper.as_ref().filter(|paper| !paper.ratio)?;
    Some(Amount {
        value: paper.value,
        range: None,
        paper: None,
        title: format!(
            "{}, {} {}",
            shown(measure, paper.value),
            paper.paper,
            paper.place
        ),
    })
}
