//! Bar charts of a lab's tables: a group for each row, a bar for each column.

use iostep_model::unit::Unit;
use iostep_report::plot::axis::{Axis, Px, Tick};
use iostep_report::plot::{ACROSS_PX, Plot, Shape, UP_PX};
use iostep_report::quantity::Show as _;

use super::{EMULATED, is_emulated, label};
use crate::lab::{Entry, Grid, Measure, PaperValue};

/// Of a group's width, what its bars take.
const FILLED: f64 = 0.8;

/// What a bar stands for.
struct Amount {
    value: f64,
    range: Option<(f64, f64)>,
    paper: Option<f64>,
    title: String,
}

/// A chart for each measure of a table; and one of the paper's numbers where they are times, whose
/// scale is another.
pub(super) fn of(grid: &Grid) -> Vec<Plot> {
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
            charts.extend(chart(grid, measure, of_paper).map(|chart| Plot {
                title: format!("{}, the paper's", chart.title),
                note: String::new(),
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
) -> Option<Plot> {
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
    let all = || amounts.iter().flatten().flatten();
    let greatest = all().map(|amount| {
        let high = amount.range.map_or(0.0, |(_, high)| high);
        amount.value.max(high).max(amount.paper.unwrap_or(0.0))
    });
    let greatest = greatest.fold(0.0, f64::max);
    // A bar says something only beside another.
    if all().filter(|amount| amount.value > 0.0).count() < 2 {
        return None;
    }
    let up = match measure.unit() {
        Unit::Bytes => Axis::bytes(greatest, UP_PX),
        _ => Axis::linear(greatest, 1.0, UP_PX),
    };
    let (groups, shapes) = place(grid, measure, &amounts, &up);
    let names = columns.iter().map(|place| {
        let values = grid.columns[*place].values.iter().map(|value| label(value));
        values.collect::<Vec<_>>().join(", ")
    });
    let has_legend = columns.len() > 1;
    Some(Plot {
        title: measure.name().to_owned(),
        note: match groups.iter().any(|group| group.text.ends_with(EMULATED)) {
            true => "A line spans the runs. *: an emulated processor, which is not to be compared.",
            false => "A line spans the runs; a dashed one is the paper's number.",
        }
        .to_owned(),
        legend: names.enumerate().filter(|_| has_legend).collect(),
        up: up.ticks(|value| measure.unit().show(value)),
        groups,
        shapes,
        ..Plot::default()
    })
}

fn place(
    grid: &Grid,
    measure: Measure,
    amounts: &[Vec<Option<Amount>>],
    up: &Axis,
) -> (Vec<Tick>, Vec<Shape>) {
    let mut groups = Vec::new();
    let mut bars = Vec::new();
    let wide = (ACROSS_PX.1 - ACROSS_PX.0) / grid.rows.len().max(1) as f64;
    for (number, (row, amounts)) in grid.rows.iter().zip(amounts).enumerate() {
        let left = ACROSS_PX.0 + number as f64 * wide;
        let names: Vec<&str> = row.values.iter().map(|value| label(value)).collect();
        let name = names.join(", ");
        let mut entries = row.entries.iter().flatten();
        let mark = match entries.any(|entry| is_emulated(entry, measure)) {
            true => format!(" {EMULATED}"),
            false => String::new(),
        };
        groups.push(Tick {
            at: Px(left + wide / 2.0),
            text: format!("{name}{mark}"),
        });
        let width = wide * FILLED / amounts.len().max(1) as f64;
        let first = left + wide * (1.0 - FILLED) / 2.0;
        for (series, amount) in amounts.iter().enumerate() {
            let Some(amount) = amount else { continue };
            bars.push(Shape::Bar {
                series,
                x: Px(first + series as f64 * width),
                y: up.at(amount.value),
                width: Px((width - 1.0).max(0.5)),
                range: amount.range.map(|(low, high)| (up.at(low), up.at(high))),
                mark: amount.paper.map(|paper| up.at(paper)),
                title: format!("{name}: {}", amount.title),
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
        title: measure.unit().show(value.median),
    })
}

fn of_paper(entry: &Entry, measure: Measure) -> Option<Amount> {
    let paper = entry.paper.as_ref().filter(|paper| !paper.ratio)?;
    let value = measure.unit().show(paper.value);
    Some(Amount {
        value: paper.value,
        range: None,
        paper: None,
        title: format!("{value}, {} {}", paper.paper, paper.place),
    })
}
