//! `/methodology`: how a result comes to be ranked. The text is that of the manual, so that there is
//! one; figures are those that the program works with.

use iostep_report::document::{Block, Cell, Document, Section, Table};
use iostep_report::quantity::{bytes, percent, plural};

use super::markdown;
use super::question::Question;
use crate::api::{App, Failure, MOST_BYTES, MOST_SENT_BYTES};
use crate::ranking::{LEAST_INSTALLATIONS, OUTSIDE};

const MANUAL: &str = include_str!("../../../../docs/serve.md");
/// Its chapters that are of use to who reads results.
const CHAPTERS: [&str; 5] = [
    "What is believed",
    "What a forger could do",
    "What becomes of a result",
    "How a device is ranked",
    "What is kept",
];

pub fn show(app: &App, _: &Question) -> Result<Document, Failure> {
    let mut section = Section::new("Methodology");
    section.push(Block::Prose(vec![
        "Results are those of iostep bench: it writes to a file or runs transactions of SQLite, \
         in one to many runs, and keeps every latency in a histogram, every second, and what the \
         device itself counted. A figure of a result is the median over its complete runs."
            .into(),
    ]));
    for chapter in CHAPTERS {
        section.push(Block::Section(markdown::chapter(MANUAL, chapter)));
    }
    let rows = [
        (
            "an installation counts",
            "once, by the median of its results".to_owned(),
        ),
        (
            "a device is ranked from",
            plural(LEAST_INSTALLATIONS as u64, "installation"),
        ),
        ("interval of a median", percent(Some(1.0 - OUTSIDE))),
        ("an upload is at most", bytes(MOST_SENT_BYTES as u64)),
        ("and unpacked", bytes(MOST_BYTES as u64)),
    ];
    let rows = rows.map(|(name, value)| vec![Cell::text(name), Cell::text(value)]);
    section.push(Block::Table(
        Table::new("Thresholds", ["what", "how much"])
            .in_order()
            .rows(rows),
    ));
    let states = app.readers().states();
    let states = states.map_err(|error| Failure::of_store(&error))?;
    let rows = states
        .into_iter()
        .map(|(state, results)| vec![Cell::text(state.name()), Cell::count(results)]);
    section.push(Block::Table(
        Table::new("Results here", ["state", ">results"]).rows(rows),
    ));
    Ok(Document::of(section))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_says_the_numbers_that_the_program_works_with() {
        let ranked = MANUAL
            .split("## How a device is ranked")
            .nth(1)
            .expect("a chapter");
        assert_eq!((LEAST_INSTALLATIONS, OUTSIDE), (5, 0.05));
        for words in ["From five installations", "95 %", "none below six"] {
            assert!(ranked.contains(words), "{words}");
        }
        for chapter in CHAPTERS {
            assert!(
                !markdown::chapter(MANUAL, chapter).blocks.is_empty(),
                "{chapter}"
            );
        }
    }
}
