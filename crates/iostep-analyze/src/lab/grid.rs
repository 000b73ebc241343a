//! Cells as a table: rows and columns are axes or measures.

use iostep_model::lab::{At, CellResult, Measure, PaperTable, State, View};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::Value;
use super::papers::{self, PaperValue};
use super::results::{Platform, Results};

/// A table of a lab.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grid {
    pub title: String,
    /// Paper, section, figure; empty for a table that repeats none.
    pub source: String,
    /// What the paper found, in words; may be empty.
    pub found: String,
    /// In what the experiment differs from the paper's, and why; may be empty.
    pub differs: String,
    /// Names of the axes of the rows.
    pub row_axes: Vec<String>,
    pub columns: Vec<Column>,
    /// The rows, each with an entry for each column.
    pub rows: Vec<Row>,
    /// What ratios are to, in words; empty if there are none.
    pub baseline: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// The values of its axes; empty if its measure is all that makes it.
    pub values: Vec<String>,
    /// What it shows.
    pub measure: Measure,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its values on [`Grid::row_axes`].
    pub values: Vec<String>,
    /// `None` where the lab has no such cell.
    pub entries: Vec<Option<Entry>>,
}

/// One number of a cell, with the paper's beside.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Key of the cell.
    pub key: String,
    /// What was measured.
    pub value: Option<Value>,
    /// The median over that of the baseline, or the median over the rounds of cells that took
    /// turns; `None` also where times of different places would be compared.
    pub ratio: Option<f64>,
    /// The ratio's least and greatest of the rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_rounds: Option<(f64, f64)>,
    /// The paper's number.
    pub paper: Option<PaperValue>,
    /// The paper's ratio to its baseline.
    pub paper_ratio: Option<f64>,
    /// Why nothing was measured, or not all.
    pub state: Option<String>,
    /// True where the combination means nothing.
    pub not_applicable: bool,
    /// Where it was measured.
    pub ground: Option<Platform>,
}

impl Grid {
    /// `None` if the lab has no such cells.
    pub(super) fn of(view: &View, papers: &[PaperTable], results: Results<'_>) -> Option<Grid> {
        let at: Vec<(&str, &str)> = pairs(&view.at).collect();
        let cells: Vec<&CellResult> = results.matching(&at).collect();
        let rows = places(&cells, &view.rows);
        let columns: Vec<Column> = places(&cells, &view.columns)
            .into_iter()
            .flat_map(|values| {
                let column = move |measure: &Measure| Column {
                    values: values.clone(),
                    measure: *measure,
                };
                view.measures.iter().map(column)
            })
            .collect();
        let source = Source::of(view, papers, results, &cells);
        let row = |values: Vec<String>| Row {
            entries: columns
                .iter()
                .map(|column| source.entry(&values, column))
                .collect(),
            values,
        };
        let rows = rows.into_iter().map(row).collect();
        (!cells.is_empty()).then(|| Grid {
            title: view.title.clone(),
            source: view.source.clone(),
            found: view.found.clone(),
            differs: view.differs.clone(),
            row_axes: view.rows.clone(),
            rows,
            baseline: describe(&view.baseline),
            columns,
        })
    }
}

/// The values on these axes, each combination once, in the order of the cells.
fn places<'a>(
    cells: &[&CellResult],
    axes: impl IntoIterator<Item = &'a String> + Copy,
) -> Vec<Vec<String>> {
    let mut seen = FxHashSet::default();
    let places = cells.iter().map(|result| place(result, axes));
    places.filter(|place| seen.insert(place.clone())).collect()
}

fn place<'a>(result: &CellResult, axes: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let value = |axis: &String| result.cell.value(axis).unwrap_or_default().into_owned();
    axes.into_iter().map(value).collect()
}

/// Where the entries of a table come from.
struct Source<'a> {
    view: &'a View,
    papers: &'a [PaperTable],
    results: Results<'a>,
    /// The axes of rows and columns.
    axes: Vec<&'a String>,
    /// The first cell of each place on these axes.
    cells: FxHashMap<Vec<String>, &'a CellResult>,
}

impl<'a> Source<'a> {
    fn of(
        view: &'a View,
        papers: &'a [PaperTable],
        results: Results<'a>,
        cells: &[&'a CellResult],
    ) -> Source<'a> {
        let axes: Vec<&String> = view.rows.iter().chain(&view.columns).collect();
        let mut first = FxHashMap::default();
        for result in cells {
            first
                .entry(place(result, axes.iter().copied()))
                .or_insert(*result);
        }
        Source {
            view,
            papers,
            results,
            axes,
            cells: first,
        }
    }

    fn entry(&self, row: &[String], column: &Column) -> Option<Entry> {
        let place = [row, column.values.as_slice()].concat();
        let result = *self.cells.get(&place)?;
        let measure = column.measure;
        let base = self.baseline_of(place);
        let paper = papers::find(self.papers, &result.cell, measure);
        let rounds = base
            .filter(|base| base.cell.key != result.cell.key)
            .and_then(|base| Value::by_turns(measure, &[result, base], |both| both[0] / both[1]));
        let medians = || base.and_then(|base| ratio(result, base, measure));
        Some(Entry {
            key: result.cell.key.clone(),
            value: Value::of(measure, result),
            ratio: rounds.map(|rounds| rounds.median).or_else(medians),
            ratio_rounds: rounds.map(|rounds| (rounds.minimum, rounds.maximum)),
            paper_ratio: paper
                .as_ref()
                .and_then(|paper| self.paper_ratio(paper, base?, measure)),
            paper,
            state: result.state.reason().map(str::to_owned),
            not_applicable: matches!(result.state, State::NotApplicable { .. }),
            ground: Platform::of_result(result),
        })
    }

    /// The cell that the one at a place is set in relation to.
    fn baseline_of(&self, mut place: Vec<String>) -> Option<&'a CellResult> {
        let baseline = &self.view.baseline;
        if baseline.is_empty() {
            return None;
        }
        for (axis, value) in place.iter_mut().zip(&self.axes).map(|(v, axis)| (axis, v)) {
            if let Some(base) = baseline.get(*axis) {
                value.clone_from(base);
            }
        }
        if baseline.keys().all(|axis| self.axes.contains(&axis)) {
            return self.cells.get(&place).copied();
        }
        let places = self.axes.iter().map(|axis| axis.as_str());
        let places = places.zip(place.iter().map(String::as_str));
        let fixed = pairs(&self.view.at).filter(|(axis, _)| !baseline.contains_key(*axis));
        let at: Vec<(&str, &str)> = fixed.chain(places).chain(pairs(baseline)).collect();
        self.results.first(&at)
    }

    fn paper_ratio(&self, paper: &PaperValue, base: &CellResult, measure: Measure) -> Option<f64> {
        if paper.ratio {
            return Some(paper.value);
        }
        let base = papers::find(self.papers, &base.cell, measure)?;
        (base.paper == paper.paper && base.value > 0.0).then_some(paper.value / base.value)
    }
}

fn pairs(at: &At) -> impl Iterator<Item = (&str, &str)> {
    at.iter()
        .map(|(axis, value)| (axis.as_str(), value.as_str()))
}

/// A cell's median over another's.
pub(super) fn ratio(result: &CellResult, base: &CellResult, measure: Measure) -> Option<f64> {
    let grounds = [result, base].map(Platform::of_result);
    if measure.is_time() && grounds[0] != grounds[1] {
        return None;
    }
    let value = Value::of(measure, result)?.median;
    let base = Value::of(measure, base)?.median;
    (base > 0.0).then_some(value / base)
}

/// `switches baseline, filesystem ext4`.
fn describe(at: &At) -> String {
    let words = pairs(at).map(|(axis, value)| match value {
        "" => format!("no {axis}"),
        value => format!("{axis} {value}"),
    });
    words.collect::<Vec<_>>().join(", ")
}
