//! What is shown of a lab beside its numbers: tables, claims, and the numbers of papers.
//!
//! All of it stands in the lab's TOML (docs/lab.md) and goes into `lab.json` with its cells.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Cell, Measure};

/// Some axes with their values, in the order in which they are told.
pub type At = IndexMap<String, String>;
/// Some axes, each with one value or several, which are crossed.
pub type Choices = IndexMap<String, Values>;

/// Everything that is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Analysis {
    pub views: Vec<View>,
    /// What is looked for in the results.
    pub claims: Vec<Claim>,
    /// What papers have for the same cells.
    pub papers: Vec<PaperTable>,
}

/// A table: rows and columns are axes, or the columns are measures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    pub title: String,
    /// Paper, section, figure; empty for a table that repeats none.
    #[serde(default)]
    pub source: String,
    /// Which cells.
    #[serde(default)]
    pub at: At,
    /// The axes of the rows.
    pub rows: Vec<String>,
    /// The axes of the columns; none if the measures are the columns.
    #[serde(default)]
    pub columns: Vec<String>,
    /// What is shown of each cell.
    pub measures: Vec<Measure>,
    /// Where on some axes the cell is that others are set in relation to; empty for none.
    #[serde(default)]
    pub baseline: At,
    /// What the paper found, in words.
    #[serde(default)]
    pub found: String,
    /// In what the experiment differs from the paper's, and why.
    #[serde(default)]
    pub differs: String,
}

/// What somebody found: it holds where each condition holds at each of its places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name: `wal-first`.
    pub name: String,
    /// The finding, in a sentence.
    pub claim: String,
    /// Paper, section, table or figure.
    #[serde(default)]
    pub source: String,
    /// Why it may be otherwise here; empty where that is not known.
    #[serde(default)]
    pub explanation: String,
    /// When it holds.
    pub conditions: Vec<Condition>,
}

/// A comparison of medians, made at every place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Condition {
    /// Places that the lab has: an empty list stands for each value, and combinations that no
    /// cell has are left out.
    #[serde(default)]
    pub each: Choices,
    /// Places where the lack of a cell leaves the claim open.
    #[serde(default)]
    pub at: Choices,
    /// On which axis the compared cells of a place differ.
    #[serde(default)]
    pub axis: String,
    /// Which value of the axis is judged.
    #[serde(default)]
    pub value: Values,
    /// By which number.
    pub measure: Measure,
    /// It is the least of it and these values; of all that there are if none is named.
    pub least_of: Option<Vec<String>>,
    pub greatest_of: Option<Vec<String>>,
    /// Its ratio to the number of this value is judged, not the number.
    pub over: Option<String>,
    /// By how much it is above the sum of the numbers of these values is judged; they have to take
    /// turns with it.
    #[serde(default)]
    pub less: Vec<String>,
    /// Values whose operations take as long, one after the other, as those of the fastest program
    /// that could be: what `over` would be for it is told beside the ratio of a throughput.
    #[serde(default)]
    pub allowed_by: Vec<String>,
    /// Its share of the sum of these measures is judged, at the place itself.
    #[serde(default)]
    pub share_of: Vec<Measure>,
    /// What is judged lies within these.
    #[serde(default)]
    pub is: Bounds,
    /// Two ratios `over` a value are judged, each within its own.
    pub pair: Option<[Side; 2]>,
    /// Which of the two is greater.
    pub order: Option<Order>,
}

/// One of two ratios.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// What it is called.
    pub name: String,
    /// Where it is beyond the place.
    pub at: At,
    /// What it lies within.
    #[serde(default)]
    pub is: Bounds,
}

/// How the second of two numbers stands to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// It is greater.
    Rising,
    /// It is less.
    Falling,
}

impl Order {
    /// True if two numbers are in this order.
    pub fn holds(self, first: f64, second: f64) -> bool {
        match self {
            Order::Rising => second > first,
            Order::Falling => second < first,
        }
    }
}

/// What a number lies within.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Bounds {
    pub at_least: Option<f64>,
    /// The greatest that it may be.
    pub at_most: Option<f64>,
    /// What it must exceed.
    pub above: Option<f64>,
    /// What it must stay below.
    pub below: Option<f64>,
    /// It is at most 1 over this.
    pub divided_by: Option<f64>,
}

impl Bounds {
    /// True if a number lies within.
    pub fn hold(&self, number: f64) -> bool {
        self.at_least.is_none_or(|least| number >= least)
            && self.at_most.is_none_or(|most| number <= most)
            && self.above.is_none_or(|bound| number > bound)
            && self.below.is_none_or(|bound| number < bound)
            && self.divided_by.is_none_or(|least| number * least <= 1.0)
    }
}

/// Numbers of one table or paragraph of a paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperTable {
    pub paper: String,
    /// Section, and table or figure.
    pub place: String,
    /// What the numbers are.
    pub measure: Measure,
    /// True for ratios to the view's baseline, where the paper gives nothing else.
    #[serde(default)]
    pub ratio: bool,
    /// True if a plot or words like "about" are the source.
    #[serde(default)]
    pub approximate: bool,
    /// What 1 of the numbers is in the unit of the measure.
    #[serde(default = "one")]
    pub unit: f64,
    /// What all cells have in common.
    #[serde(default)]
    pub at: At,
    /// The axes that the numbers are named by.
    pub axes: Vec<String>,
    pub numbers: Numbers,
}

/// A number, or one for each value of the first of some axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a table of numbers")]
pub enum Numbers {
    /// No axis is left.
    Number(f64),
    /// By the value of an axis.
    By(BTreeMap<String, Numbers>),
}

impl PaperTable {
    pub fn number(&self, cell: &Cell) -> Option<f64> {
        let at = self.at.iter();
        if !cell.is_at(at.map(|(axis, value)| (axis.as_str(), value.as_str()))) {
            return None;
        }
        let mut numbers = &self.numbers;
        for axis in &self.axes {
            let Numbers::By(values) = numbers else {
                return None;
            };
            numbers = values.get(&*cell.value(axis).unwrap_or_default())?;
        }
        match numbers {
            Numbers::Number(number) => Some(number * self.unit),
            Numbers::By(_) => None,
        }
    }
}

impl Numbers {
    /// True if every number has so many axes.
    pub fn have_axes(&self, axes: usize) -> bool {
        match self {
            Numbers::Number(_) => axes == 0,
            Numbers::By(values) => axes > 0 && values.values().all(|n| n.have_axes(axes - 1)),
        }
    }
}

fn one() -> f64 {
    1.0
}

/// One value or several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "OneOrMany")]
pub struct Values(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Values {
    fn from(values: OneOrMany) -> Values {
        Values(match values {
            OneOrMany::One(value) => vec![value],
            OneOrMany::Many(values) => values,
        })
    }
}
