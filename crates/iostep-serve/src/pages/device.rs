//! `/device/KEY`: what is known of one device.

use std::collections::BTreeMap;

use iostep_analyze::bench::Measure;
use iostep_model::printable;
use iostep_model::quantile::median;
use iostep_model::unit::Unit;
use iostep_report::document::form::Form;
use iostep_report::document::{Block, Cell, Document, Fact, Section, Table};
use iostep_report::plot::axis::Axis;
use iostep_report::plot::{ACROSS_PX, Plot, Shape, UP_PX, polyline};
use iostep_report::quantity::{Show as _, bytes};

use super::figures::{self, COLUMNS, Figures};
use super::link;
use super::question::{Question, missing};
use crate::api::{App, Failure};
use crate::log::utc;
use crate::ranking::Group;
use crate::store::{Dated, Page};
use crate::subject::{self, Product};

pub const ASKED: [&str; 3] = ["test", "measure", "before"];
/// Results of a page.
const PAGE: u32 = 25;
/// Tests that are shown with their figures.
const MOST_TESTS: usize = 50;
/// Groups of firmware, Android and kernel.
const MOST_GROUPS: usize = 50;
/// Dots of the history; of more, as many in equal distances.
const MOST_DOTS: usize = 400;
const DAY: i64 = 86_400;
/// A history that is not longer is told by days.
const FEW_DAYS: i64 = 62;

pub fn show(app: &App, question: &Question) -> Result<Document, Failure> {
    let unknown = || missing("there is no such device; the search finds devices by their names");
    let product = Product::of_key(&question.name).ok_or_else(unknown)?;
    let failed = |error| Failure::of_store(&error);
    let readers = app.readers();
    let before = question.number("before")?.map(i64::from);
    let results = readers.results_of(&product, before, PAGE).map_err(failed)?;
    if results.results.is_empty() && before.is_none() {
        return Err(unknown());
    }
    let measure = figures::measure(question)?;
    let tests = readers.tests_of(&product).map_err(failed)?;
    let mut section = Section::new(product.name());
    section.push(Block::Facts(facts(&product)));
    let chosen = match (question.one("test"), tests.first()) {
        (Some(test), _) if !tests.iter().any(|(it, _)| it == test) => {
            return Err(missing(format!(
                "test: the device has no valid results of {test}"
            )));
        }
        (Some(test), _) => test,
        (None, Some((test, _))) => test,
        (None, None) => {
            section.headline = "None of its results is ranked.".into();
            section.push(Block::Table(table(&results)));
            section.push(Block::Links(older(&product, question, &results)));
            return Ok(Document::of(section));
        }
    };
    let measures = readers.measures(chosen).map_err(failed)?;
    section.push(Block::Form(Form {
        id: "choose",
        action: link::device(&product),
        fields: vec![
            figures::tests(&tests, chosen),
            figures::measures(&measures, chosen, measure),
        ],
        button: "Show",
    }));
    let asked = measure.to_string();
    let dated = readers.history((chosen, &asked), &product);
    let dated = dated.map_err(failed)?;
    let label = measure.label(subject::work(chosen));
    section.push(Block::Section(history(
        &dated,
        measure,
        &format!("{chosen}: {label}"),
    )));
    section.push(Block::Table(firmware(&dated, measure)));
    let mut all = Vec::new();
    for (test, _) in tests.iter().take(MOST_TESTS) {
        let samples = readers.samples((test, &asked), &product);
        let groups = figures::groups(samples.map_err(failed)?.iter(), measure, |_| {
            product.clone()
        });
        all.extend(groups.into_iter().next().map(|group| (&test[..], group)));
    }
    section.push(Block::Table(every_test(&all, measure)));
    section.push(Block::Table(table(&results)));
    section.push(Block::Links(older(&product, question, &results)));
    Ok(Document::of(section))
}

fn facts(product: &Product) -> Vec<Fact> {
    let known = [
        ("maker", product.vendor.clone()),
        ("model", product.model.clone()),
        ("storage", product.part.clone()),
        (
            "capacity",
            match product.capacity_bytes {
                0 => String::new(),
                capacity => bytes(capacity),
            },
        ),
    ];
    let known = known.into_iter().filter(|(_, value)| !value.is_empty());
    known.map(|(name, value)| Fact::of(name, value)).collect()
}

/// The results of a day or a month.
struct Period {
    name: String,
    /// The middle of the times at which they came.
    middle: i64,
    results: u64,
    median: f64,
}

/// The test's results in the order in which they came.
fn history(samples: &[Dated], measure: Measure, title: &str) -> Section {
    let mut section = Section::new("History");
    let times = || samples.iter().map(|sample| sample.received);
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return section;
    };
    let by_day = (last - first) / DAY <= FEW_DAYS;
    let which = if by_day { "day" } else { "month" };
    let periods = periods(samples, if by_day { 10 } else { 7 });
    let note = format!(
        "A dot is a result; the line goes through the median of each {which}. From {} to {}.",
        date(first),
        date(last)
    );
    section.push(Block::Plots(vec![Plot {
        title: title.to_owned(),
        note,
        ..history_plot(samples, &periods, (first, last), measure.unit())
    }]));
    let unit = measure.unit();
    let newest = periods.into_iter().rev().take(FEW_DAYS as usize);
    let rows = newest.map(|period| {
        vec![
            Cell::text(period.name),
            Cell::number(unit, period.median),
            Cell::count(period.results),
        ]
    });
    let table = Table::new("", [which, ">median", ">results"]).rows(rows);
    let mut folded = Section::new(format!("By {which}"));
    folded.folded = true;
    folded.push(Block::Table(table));
    section.push(Block::Section(folded));
    section
}

/// Periods, each of which has the dates that begin with the same so many letters.
fn periods(samples: &[Dated], letters: usize) -> Vec<Period> {
    let mut periods: BTreeMap<String, Vec<&Dated>> = BTreeMap::new();
    for sample in samples {
        let mut name = date(sample.received);
        name.truncate(letters);
        periods.entry(name).or_default().push(sample);
    }
    let period = |(name, samples): (String, Vec<&Dated>)| {
        let values: Vec<f64> = samples.iter().map(|it| it.sample.value).collect();
        let first = samples.first()?.received;
        let behind: i64 = samples.iter().map(|it| it.received - first).sum();
        Some(Period {
            name,
            middle: first + behind / samples.len() as i64,
            results: values.len() as u64,
            median: median(&values)?,
        })
    };
    periods.into_iter().filter_map(period).collect()
}

fn history_plot(
    samples: &[Dated],
    periods: &[Period],
    (first, last): (i64, i64),
    unit: Unit,
) -> Plot {
    let days = ((last - first) as f64 / DAY as f64).max(1.0);
    let across = Axis::linear(days, 1.0, ACROSS_PX);
    let greatest = samples
        .iter()
        .map(|dated| dated.sample.value)
        .fold(0.0, f64::max);
    let up = Axis::linear(greatest, 1.0, UP_PX);
    let at = |received: i64| across.at((received - first) as f64 / DAY as f64);
    let path = polyline(
        periods
            .iter()
            .map(|period| (at(period.middle), up.at(period.median))),
    );
    let dot = |dated: &Dated| Shape::Dot {
        series: 4,
        x: at(dated.received),
        y: up.at(dated.sample.value),
        title: printable(&format!(
            "{}: {}, firmware {}",
            date(dated.received),
            unit.show(dated.sample.value),
            known(&dated.sample.device.firmware)
        ))
        .into_owned(),
    };
    let stride = samples.len().div_ceil(MOST_DOTS).max(1);
    let dots = samples.iter().step_by(stride).map(dot);
    Plot {
        across: across.ticks(|day| {
            // Whole dates are too long for a phone.
            let date = date(first + (day * DAY as f64) as i64);
            let is_one_year = days < 366.0;
            date[if is_one_year { 5..10 } else { 0..7 }].to_owned()
        }),
        across_name: "received",
        up: up.ticks(|value| unit.show(value)),
        shapes: dots.chain([Shape::Line { series: 0, path }]).collect(),
        ..Plot::default()
    }
}

/// The day of a time in seconds since 1970.
fn date(received: i64) -> String {
    let mut date = utc(received.unsigned_abs());
    date.truncate(10);
    date
}

fn known(text: &str) -> &str {
    if text.is_empty() { "not known" } else { text }
}

/// Firmware with the software around it, side by side.
fn firmware(samples: &[Dated], measure: Measure) -> Table {
    // A group has the place of a product: the three names are its parts.
    let groups = figures::groups(samples.iter().map(|it| &it.sample), measure, |sample| {
        Product {
            vendor: sample.device.firmware.clone(),
            model: sample.device.android.clone(),
            part: sample.device.kernel.clone(),
            capacity_bytes: 0,
        }
    });
    let figures = Figures::of(measure, groups.iter());
    let columns = [&["~firmware", "Android", "~kernel"], &COLUMNS[..]].concat();
    let rows = groups.iter().take(MOST_GROUPS).map(|group| {
        let place = &group.place;
        let names = [&place.vendor, &place.model, &place.part];
        let mut row: Vec<Cell> = names.map(|name| Cell::text(known(name))).into();
        row.extend(figures.cells(group, &format!("firmware {}", known(&place.vendor))));
        row
    });
    let rows: Vec<_> = rows.collect();
    Table::new("Firmware and software", columns)
        .note(figures.note)
        .rows(rows)
}

fn every_test(all: &[(&str, Group)], measure: Measure) -> Table {
    let rows = all.iter().map(|(test, group)| {
        // Tests differ too much for one axis.
        let figures = Figures::of(measure, [group].into_iter());
        let measure = measure.to_string();
        let page = link::to("/", &[("test", test), ("measure", &measure)]);
        let mut row = vec![Cell::text(*test).leading_to(page)];
        row.extend(figures.cells(group, test));
        row
    });
    let note = format!(
        "{}; each distribution on an axis of its own.",
        measure.label("operation")
    );
    let columns = [&["~test"], &COLUMNS[..]].concat();
    Table::new("All tests", columns)
        .note(note)
        .rows(rows.collect::<Vec<_>>())
}

fn table(results: &Page) -> Table {
    let rows = results.results.iter().map(|result| {
        let reasons: Vec<&str> = result.reasons.iter().map(|it| &it.text[..]).collect();
        vec![
            Cell::text(date(result.received)).leading_to(link::result(&result.id)),
            Cell::text(result.state.name()),
            Cell::text(&result.test[..]),
            Cell::text(known(&result.filesystem)),
            Cell::text(known(&result.device.firmware)),
            Cell::text(reasons.join("; ")),
        ]
    });
    let columns = [
        "received",
        "state",
        "~test",
        "filesystem",
        "firmware",
        "~why it does not count",
    ];
    Table::new("Results, the newest first", columns)
        .in_order()
        .rows(rows.collect::<Vec<_>>())
}

fn older(product: &Product, question: &Question, results: &Page) -> Vec<(String, String)> {
    let link = |before: i64| {
        let before = before.to_string();
        let mut parameters: Vec<(&str, &str)> = ["test", "measure"]
            .iter()
            .filter_map(|it| Some((*it, question.one(it)?)))
            .collect();
        parameters.push(("before", &before));
        (
            "Older results".to_owned(),
            link::to(&link::device(product), &parameters),
        )
    };
    results.next_before.map(link).into_iter().collect()
}
