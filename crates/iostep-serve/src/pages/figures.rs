//! Figures of devices, or of groups of their results, in a table: the same columns on every page.

use std::collections::HashMap;

use iostep_analyze::bench::{Better, Measure};
use iostep_model::printable;
use iostep_report::document::Cell;
use iostep_report::document::form::Field;
use iostep_report::plot::axis::Axis;
use iostep_report::plot::strip::{self, Strip};
use iostep_report::quantity::{Show as _, plural};

use super::question::{Question, bad};
use crate::api::{Failure, MEASURE};
use crate::ranking::{self, Group, OUTSIDE};
use crate::store::Sample;
use crate::subject::{self, Product};

/// The columns that [`Figures::cells`] fills.
pub const COLUMNS: [&str; 6] = [
    ">best",
    ">median",
    ">worst",
    ">installations",
    ">results",
    "distribution",
];
/// More than this nobody chooses from.
const MOST_CHOICES: usize = 200;

/// The groups of results, as they are ranked.
pub fn groups<'a>(
    samples: impl Iterator<Item = &'a Sample>,
    measure: Measure,
    of: impl Fn(&Sample) -> Product,
) -> Vec<Group> {
    let mut groups: HashMap<Product, HashMap<i64, Vec<f64>>> = HashMap::new();
    for sample in samples {
        let installations = groups.entry(of(sample)).or_default();
        let values = installations.entry(sample.installation).or_default();
        values.push(sample.value);
    }
    let better = measure.better();
    let group = |(product, values)| ranking::group(product, &values, better);
    let mut groups: Vec<Group> = groups.into_iter().filter_map(group).collect();
    ranking::order(&mut groups, better);
    groups
}

/// How figures of a measure are shown, on an axis that all of a page share.
pub struct Figures {
    measure: Measure,
    axis: Axis,
    /// How to read the distributions.
    pub note: String,
}

impl Figures {
    pub fn of<'a>(measure: Measure, groups: impl Iterator<Item = &'a Group>) -> Figures {
        let (mut least, mut greatest) = (f64::INFINITY, 0.0_f64);
        for group in groups {
            least = least.min(group.place.best.min(group.place.worst));
            greatest = greatest.max(group.place.best.max(group.place.worst));
        }
        let (axis, is_wide) = strip::axis(least, greatest);
        let better = match measure.better() {
            Better::Higher => "More is better",
            Better::Lower => "Less is better",
        };
        let from = match is_wide {
            true => format!("by logarithms from {} to", measure.unit().show(least)),
            false => "0 to".to_owned(),
        };
        let share = iostep_report::quantity::percent(Some(1.0 - OUTSIDE));
        let note = format!(
            "{better}. A dot is an installation, the upright line the median, the bar its {} \
             interval; all on one axis, {from} {}.",
            share.replace(".0", ""),
            measure.unit().show(greatest)
        );
        Figures {
            measure,
            axis,
            note,
        }
    }

    /// The cells of [`COLUMNS`]; `name` is what they are of.
    pub fn cells(&self, group: &Group, name: &str) -> Vec<Cell> {
        let unit = self.measure.unit();
        let show = |value: f64| unit.show(value);
        let Group { place, medians } = group;
        let interval = place
            .interval
            .map(|[low, high]| format!("{} to {}", show(low), show(high)));
        let mut label = format!(
            "{name}: {} from {} to {}, median {}",
            plural(place.installations, "installation"),
            show(place.best.min(place.worst)),
            show(place.best.max(place.worst)),
            show(place.median)
        );
        if let Some(interval) = &interval {
            label += &format!(", interval {interval}");
        }
        let label = printable(&label).into_owned();
        let strip = Strip::of(&self.axis, medians, place.median, place.interval, label);
        let distribution = Cell::default();
        vec![
            Cell::number(unit, place.best),
            Cell::number(unit, place.median).over(interval.unwrap_or_default()),
            Cell::number(unit, place.worst),
            Cell::count(place.installations),
            Cell::count(place.results),
            match strip {
                Some(strip) => distribution.with_strip(strip),
                None => distribution,
            },
        ]
    }
}

/// The measure that is asked for, or the usual one.
///
/// Errors: there is none of that name.
pub fn measure(question: &Question) -> Result<Measure, Failure> {
    let name = question.one("measure").unwrap_or(MEASURE);
    let found = Measure::all().find(|measure| measure.to_string() == name);
    found.ok_or_else(|| bad(format!("measure: there is none of the name {name}")))
}

/// A choice of the measures that a test has.
pub fn measures(found: &[Measure], test: &str, chosen: Measure) -> Field {
    let work = subject::work(test);
    let options = found.iter().map(|it| (it.to_string(), it.label(work)));
    Field::Choice {
        name: "measure",
        label: "Measure",
        options: options.collect(),
        chosen: chosen.to_string(),
    }
}

/// A choice of tests, each with how many results it has.
pub fn tests(found: &[(String, u64)], chosen: &str) -> Field {
    let words = |(test, results): &(String, u64)| {
        (
            test.clone(),
            format!("{test} ({})", plural(*results, "result")),
        )
    };
    let shown = found.iter().filter(|(test, _)| *printable(test) == **test);
    Field::Choice {
        name: "test",
        label: "Test",
        options: shown.take(MOST_CHOICES).map(words).collect(),
        chosen: chosen.to_owned(),
    }
}

/// A choice of what results have, each with how many, the most frequent first; nothing chosen is all.
/// Words that are not printable would come back as others, so they are not offered.
pub fn choice<'a>(
    name: &'static str,
    label: &'static str,
    values: impl Iterator<Item = (&'a str, u64)>,
    chosen: &str,
) -> Field {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    values.for_each(|(value, count)| *counts.entry(value).or_default() += count);
    let is_fit = |value: &str| !value.is_empty() && *printable(value) == *value;
    let mut counts: Vec<_> = counts.into_iter().filter(|(it, _)| is_fit(it)).collect();
    counts.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    counts.truncate(MOST_CHOICES);
    if is_fit(chosen) && !counts.iter().any(|(it, _)| *it == chosen) {
        counts.push((chosen, 0));
    }
    let mut options = vec![(String::new(), "any".to_owned())];
    let words = |count| plural(count, "result");
    options.extend(
        counts
            .into_iter()
            .map(|(it, count)| (it.to_owned(), format!("{it} ({})", words(count)))),
    );
    Field::Choice {
        name,
        label,
        options,
        chosen: chosen.to_owned(),
    }
}

/// The device as a cell that leads to its page.
pub fn device(product: &Product) -> Cell {
    let name = product.name();
    let mut below = Vec::new();
    if product.part != name && !product.part.is_empty() {
        below.push(product.part.clone());
    }
    if product.capacity_bytes > 0 {
        below.push(iostep_report::quantity::bytes(product.capacity_bytes));
    }
    Cell::text(name)
        .leading_to(super::link::device(product))
        .over(below.join(", "))
}
