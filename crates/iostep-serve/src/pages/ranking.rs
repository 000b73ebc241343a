//! `/`: the devices of a test in their order.

use iostep_report::document::form::{Check, Field, Form};
use iostep_report::document::{Block, Cell, Document, Section, Table};
use iostep_report::quantity::plural;

use super::figures::{self, COLUMNS, Figures};
use super::link;
use super::question::{Question, missing};
use crate::api::{App, Failure};
use crate::ranking::{Conditions, Group, LEAST_INSTALLATIONS};
use crate::subject;

pub const ASKED: [&str; 7] = [
    "test",
    "measure",
    "filesystem",
    "kernel",
    "android",
    "part",
    "page",
];
/// Devices of a page.
const PAGE: usize = 100;
const COMPARE: &str = "compare";

pub fn show(app: &App, question: &Question) -> Result<Document, Failure> {
    let readers = app.readers();
    let failed = |error| Failure::of_store(&error);
    let mut section = Section::new("Ranking");
    let tests = readers.tests().map_err(failed)?;
    let Some((first, _)) = tests.first() else {
        section.headline = "No result is ranked yet.".into();
        let how = "iostep bench sqlite -o result.json measures a device; \
            iostep submit result.json brings the result here.";
        section.push(Block::Prose(vec![how.into()]));
        return Ok(Document::of(section));
    };
    let test = question.one("test").unwrap_or(first);
    if !tests.iter().any(|(it, _)| it == test) {
        return Err(missing(format!(
            "test: there are no valid results of {test}"
        )));
    }
    let measure = figures::measure(question)?;
    let page = question.number("page")?.unwrap_or(1) as usize;
    let asked = asked(question);
    let name = measure.to_string();
    let ranked = |conditions: &Conditions| {
        let ranked = readers.ranking((test, &name), conditions, measure.better());
        ranked.map_err(failed)
    };
    let all = ranked(&Conditions::default())?;
    let groups = ranked(&asked)?.groups;
    let measures = readers.measures(test).map_err(failed)?;
    let mut fields = vec![
        figures::tests(&tests, test),
        figures::measures(&measures, test, measure),
    ];
    fields.extend(choices(&all.conditions, &asked));
    section.push(Block::Form(Form {
        id: "choose",
        action: "/".into(),
        fields,
        button: "Show",
    }));
    let start = (page - 1).saturating_mul(PAGE);
    if start > 0 && start >= groups.len() {
        return Err(missing(format!(
            "page: there are {}",
            plural(groups.len() as u64, "device")
        )));
    }
    if groups.is_empty() {
        section.headline = "No valid result is of what was chosen.".into();
    }
    let title = format!("{test}: {}", measure.label(subject::work(test)));
    let shown = groups.iter().skip(start).take(PAGE);
    let figures = Figures::of(measure, groups.iter());
    for table in tables(title, shown, &figures) {
        section.push(Block::Table(table));
    }
    section.push(Block::Form(comparison(test, &name, &asked.filesystem)));
    section.push(Block::Links(turns(question, test, page, groups.len())));
    Ok(Document::of(section))
}

/// Those with a rank, and those without.
fn tables<'a>(
    title: String,
    shown: impl Iterator<Item = &'a Group>,
    figures: &Figures,
) -> [Table; 2] {
    let (ranked, others): (Vec<_>, Vec<_>) = shown.partition(|it| it.place.rank.is_some());
    let columns = |first| [&[first, "~device"], &COLUMNS[..], &["compare"]].concat();
    let ranked = ranked.into_iter().map(|group| {
        let rank = Cell::count(group.place.rank.unwrap_or_default());
        row(rank, group, figures)
    });
    let others = others.into_iter().map(|group| {
        let missing = LEAST_INSTALLATIONS as u64 - group.place.installations;
        row(Cell::count(missing), group, figures)
    });
    let note = format!(
        "A device is ranked from {} on; this is how many are missing.",
        plural(LEAST_INSTALLATIONS as u64, "installation")
    );
    [
        Table::new(title, columns(">rank"))
            .note(figures.note.clone())
            .rows(ranked),
        Table::new("Not ranked yet", columns(">missing"))
            .note(note)
            .rows(others),
    ]
}

fn row(first: Cell, group: &Group, figures: &Figures) -> Vec<Cell> {
    let product = group.place.product();
    let check = Check {
        form: COMPARE,
        name: "device",
        value: product.key(),
        label: format!("compare {} {}", product.name(), product.part),
    };
    let mut row = vec![first, figures::device(&product)];
    row.extend(figures.cells(group, &product.name()));
    row.push(Cell::default().with_check(check));
    row
}

fn comparison(test: &str, measure: &str, filesystem: &str) -> Form {
    let kept = [
        ("test", test),
        ("measure", measure),
        ("filesystem", filesystem),
    ];
    let hidden = kept.into_iter().map(|(name, value)| Field::Hidden {
        name,
        value: value.into(),
    });
    Form {
        id: COMPARE,
        action: "/compare".into(),
        fields: hidden.collect(),
        button: "Compare those chosen",
    }
}

/// The pages before and behind.
fn turns(question: &Question, test: &str, page: usize, devices: usize) -> Vec<(String, String)> {
    let turn = |words: &str, page: usize| {
        let page = page.to_string();
        let mut parameters: Vec<(&str, &str)> = ASKED
            .iter()
            .filter_map(|name| Some((*name, question.one(name)?)))
            .collect();
        parameters.retain(|(name, _)| !["test", "page"].contains(name));
        parameters.extend([("test", test), ("page", &page)]);
        (words.to_owned(), link::to("/", &parameters))
    };
    let before = (page > 1).then(|| turn("Previous devices", page - 1));
    let next = (page * PAGE < devices).then(|| turn("More devices", page + 1));
    before.into_iter().chain(next).collect()
}

/// What is asked of the results.
fn asked(question: &Question) -> Conditions {
    let one = |name| question.one(name).unwrap_or_default().to_owned();
    Conditions {
        filesystem: one("filesystem"),
        kernel: one("kernel"),
        android: one("android"),
        part: one("part"),
    }
}

/// What there is to ask for.
fn choices(found: &[(Conditions, u64)], asked: &Conditions) -> Vec<Field> {
    type Condition = fn(&Conditions) -> &str;
    let conditions: [(&str, &str, Condition); 4] = [
        ("filesystem", "Filesystem", |it| &it.filesystem),
        ("kernel", "Kernel", |it| &it.kernel),
        ("android", "Android", |it| &it.android),
        ("part", "Storage", |it| &it.part),
    ];
    let choice = |(name, label, of): (_, _, Condition)| {
        let values = found.iter().map(|(it, count)| (of(it), *count));
        figures::choice(name, label, values, of(asked))
    };
    conditions.map(choice).into()
}
