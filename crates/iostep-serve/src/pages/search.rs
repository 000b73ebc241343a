//! `/search`: devices by a word of their names, tests by a word of theirs, results by their IDs.

use iostep_model::hex;
use iostep_report::document::{Block, Cell, Document, Section, Table};
use iostep_report::quantity::count;

use super::question::{Question, bad};
use super::{figures, link};
use crate::api::{App, Failure};

/// Letters of a word.
const MOST_LETTERS: usize = 100;
/// What is shown of each kind.
const MOST: usize = 50;

pub fn show(app: &App, question: &Question) -> Result<Document, Failure> {
    let mut section = Section::new("Search");
    let Some(word) = question
        .one("q")
        .map(str::trim)
        .filter(|word| !word.is_empty())
    else {
        section.headline =
            "A word of a device's name, of its firmware or of a test, or a result's ID.".into();
        return Ok(Document::of(section));
    };
    if word.chars().nth(MOST_LETTERS).is_some() {
        return Err(bad(format!("q: expected at most {MOST_LETTERS} letters")));
    }
    let readers = app.readers();
    let failed = |error| Failure::of_store(&error);
    if let Some(id) = hex::decode(word)
        && let Some(result) = readers.find(&id).map_err(failed)?
    {
        let page = link::result(&result.id);
        section.push(Block::Links(vec![(format!("Result {}", result.id), page)]));
    }
    // One more tells whether there are others.
    let mut devices = readers.search(word, MOST + 1).map_err(failed)?;
    let has_more = devices.len() > MOST;
    devices.truncate(MOST);
    let rows = devices
        .iter()
        .map(|found| vec![figures::device(&found.product), Cell::count(found.results)]);
    let mut table = Table::new("Devices", ["~device", ">results"]).rows(rows.collect::<Vec<_>>());
    if has_more {
        table.lines.push(format!(
            "More than {MOST}: only the first by name; ask for more letters."
        ));
    }
    let lower = word.to_lowercase();
    let tests = readers.tests().map_err(failed)?;
    let tests = tests
        .into_iter()
        .filter(|(test, _)| test.to_lowercase().contains(&lower));
    let rows = tests.take(MOST).map(|(test, results)| {
        let page = link::to("/", &[("test", &test)]);
        vec![Cell::text(test).leading_to(page), Cell::count(results)]
    });
    let rows: Vec<_> = rows.collect();
    let found = devices.len() + rows.len() + section.blocks.len();
    section.headline = match found {
        0 => format!("Nothing has {word} in its name."),
        found => format!("{} found for {word}", count(found as u64)),
    };
    section.push(Block::Table(table));
    section.push(Block::Table(
        Table::new("Tests", ["~test", ">valid results"]).rows(rows),
    ));
    Ok(Document::of(section))
}
