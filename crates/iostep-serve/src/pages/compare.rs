//! `/compare`: some devices side by side, test by test.

use std::collections::HashMap;

use iostep_analyze::bench::Measure;
use iostep_report::document::form::{Field, Form};
use iostep_report::document::{Block, Document, Section, Table};

use super::figures::{self, COLUMNS, Figures};
use super::question::{Question, bad, missing};
use crate::api::{App, Failure};
use crate::store::{Readers, Sample};
use crate::subject::{self, Product};

pub const ASKED: [&str; 4] = ["device", "test", "measure", "filesystem"];
/// How many devices fit beside each other.
const LEAST: usize = 2;
const MOST: usize = 5;
/// Tests that are shown with their figures.
const MOST_TESTS: usize = 30;

pub fn show(app: &App, question: &Question) -> Result<Document, Failure> {
    let failed = |error| Failure::of_store(&error);
    let readers = app.readers();
    let (products, mut common) = devices(readers, question)?;
    let measure = figures::measure(question)?;
    let filesystem = question.one("filesystem").unwrap_or_default();
    let mut section = Section::new("Comparison");
    let Some((first, _)) = common.first() else {
        section.headline = "No two of these devices have results of the same test.".into();
        return Ok(Document::of(section));
    };
    // The test that was looked at comes first.
    let test = question.one("test").unwrap_or(first).to_owned();
    common.sort_by_key(|(it, _)| *it != test);
    let mut tables = Vec::new();
    let mut all: Vec<Sample> = Vec::new();
    for (test, _) in common.iter().take(MOST_TESTS) {
        let mut samples = Vec::new();
        for product in &products {
            let asked = (&test[..], &measure.to_string()[..]);
            samples.extend(readers.samples(asked, product).map_err(failed)?);
        }
        let chosen = samples
            .iter()
            .filter(|it| [&*it.filesystem, ""].contains(&filesystem));
        tables.push(table(test, chosen, measure));
        all.extend(samples);
    }
    let hidden = products.iter().map(|product| Field::Hidden {
        name: "device",
        value: product.key(),
    });
    let measures = readers.measures(&test).map_err(failed)?;
    let filesystems = all.iter().map(|it| (&*it.filesystem, 1));
    let choices = [
        figures::tests(&common, &test),
        figures::measures(&measures, &test, measure),
        figures::choice("filesystem", "Filesystem", filesystems, filesystem),
    ];
    section.push(Block::Form(Form {
        id: "choose",
        action: "/compare".into(),
        fields: hidden.chain(choices).collect(),
        button: "Show",
    }));
    tables
        .into_iter()
        .for_each(|table| section.push(Block::Table(table)));
    Ok(Document::of(section))
}

/// A test, and how many results it has.
type Counted = (String, u64);

/// The devices that are asked for, and the tests that two of them have, those of most results first.
fn devices(
    readers: &Readers,
    question: &Question,
) -> Result<(Vec<Product>, Vec<Counted>), Failure> {
    let keys: Vec<&str> = question.all("device").collect();
    if !(LEAST..=MOST).contains(&keys.len()) {
        let text = format!(
            "device: expected {LEAST} to {MOST} of them, found {}",
            keys.len()
        );
        return Err(bad(text + "; choose them in a ranking"));
    }
    let mut products: Vec<Product> = Vec::new();
    let mut tests: HashMap<String, (usize, u64)> = HashMap::new();
    for key in keys {
        let unknown = || missing(format!("device: there is none of the name {key}"));
        let product = Product::of_key(key).ok_or_else(unknown)?;
        if products.contains(&product) {
            return Err(bad(format!("device: {key} is there twice")));
        }
        let found = readers.tests_of(&product);
        let found = found.map_err(|error| Failure::of_store(&error))?;
        if found.is_empty() {
            return Err(unknown());
        }
        for (test, results) in found {
            let (devices, all) = tests.entry(test).or_default();
            *devices += 1;
            *all += results;
        }
        products.push(product);
    }
    let mut common: Vec<Counted> = tests
        .into_iter()
        .filter(|(_, (devices, _))| *devices >= LEAST)
        .map(|(test, (_, results))| (test, results))
        .collect();
    common.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
    Ok((products, common))
}

fn table<'a>(test: &str, samples: impl Iterator<Item = &'a Sample>, measure: Measure) -> Table {
    let groups = figures::groups(samples, measure, |sample| sample.device.product());
    let figures = Figures::of(measure, groups.iter());
    let columns = [&["~device"], &COLUMNS[..]].concat();
    let title = format!("{test}: {}", measure.label(subject::work(test)));
    let rows = groups.iter().map(|group| {
        let product = group.place.product();
        let mut row = vec![figures::device(&product)];
        row.extend(figures.cells(group, &product.name()));
        row
    });
    let rows: Vec<_> = rows.collect();
    Table::new(title, columns)
        .note(figures.note.clone())
        .rows(rows)
}
