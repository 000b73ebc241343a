//! A report as what it consists of, whatever it is about: text and page are made from this alone.

pub mod form;
pub(crate) mod html;
#[cfg(test)]
mod tests;
mod text;

pub use html::{Site, script, style};

use std::borrow::Cow;
use std::fmt::Write as _;

use askama::Template;
use iostep_model::unit::Unit;

use form::{Check, Form};

use crate::picture::Picture;
use crate::plot::Plot;
use crate::plot::strip::Strip;
use crate::quantity::{self, Show as _};

/// How much of a report is shown: each has what the one before it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// What fits a screen.
    Brief,
    /// All that has a form as text.
    Full,
    Page,
}

/// A report.
pub struct Document {
    /// The version of iostep that measured.
    pub version: String,
    /// The page's title, where it is not the body's.
    pub title: Option<String>,
    /// Its title, and everything in it.
    pub body: Section,
}

/// A part of a report with its title.
#[derive(Default)]
pub struct Section {
    pub title: String,
    /// The result in a line. In a text it takes the title's place.
    pub headline: String,
    /// What makes the result less than it seems, a line each.
    pub alarms: Vec<String>,
    pub blocks: Vec<(Detail, Block)>,
    /// On a page only its title and headline are seen at first.
    pub folded: bool,
}

/// A piece of a section.
pub enum Block {
    /// Facts, a line each.
    Lines(Vec<String>),
    /// Facts with their names.
    Facts(Vec<Fact>),
    /// Numbers with their names, set large.
    Totals(Vec<(&'static str, String)>),
    /// What spoils the figures, and what to do about it.
    Warnings(Vec<(String, &'static str)>),
    Table(Table),
    /// Beside each other, where a page is wide enough.
    Tables(Vec<Table>),
    Plots(Vec<Plot>),
    /// What is drawn with characters in a text, below its title. A page has plots.
    Drawing(String, String),
    /// A table that stands in a text for a plot.
    InText(Table),
    /// Statements, each with its grounds.
    Items(Vec<Item>),
    Section(Section),
    /// Every request by time and address. A text has none.
    Picture(Picture),
    /// Paragraphs.
    Prose(Vec<String>),
    /// What may be asked of the server that the page comes from. A text has none.
    Form(Form),
    /// Other pages: what each is, and where. A text has none.
    Links(Vec<(String, String)>),
    /// What sections say together. In a text it comes last, where the prompt is.
    Together(Vec<Block>),
}

/// A fact with its name.
pub struct Fact {
    pub name: &'static str,
    pub value: String,
    /// It may be shortened so that a line fits.
    pub(crate) gives_way: bool,
}

impl Fact {
    pub fn of(name: &'static str, value: impl Into<String>) -> Fact {
        Fact {
            name,
            value: value.into(),
            gives_way: false,
        }
    }

    /// One that may be shortened so that a line fits.
    pub fn that_gives_way(self) -> Fact {
        Fact {
            gives_way: true,
            ..self
        }
    }
}

/// Whether a statement holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Good,
    Bad,
    Open,
}

/// A statement.
pub struct Item {
    /// Whether it holds, and in a word.
    pub verdict: Option<(Standing, &'static str)>,
    pub text: String,
    /// Its grounds, a line each.
    pub details: Vec<String>,
}

impl Document {
    /// By this version of iostep.
    pub fn of(body: Section) -> Document {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Document {
            version,
            title: None,
            body,
        }
    }
}

impl Section {
    pub fn new(title: impl Into<String>) -> Section {
        Section {
            title: title.into(),
            ..Section::default()
        }
    }

    /// Adds a block that is shown in every form; an empty one is in none.
    pub fn push(&mut self, block: Block) {
        self.push_from(Detail::Brief, block);
    }

    /// Adds a block that is shown from this detail on.
    pub fn push_from(&mut self, detail: Detail, block: Block) {
        if !block.is_empty() {
            self.blocks.push((detail, block));
        }
    }
}

impl Block {
    fn is_empty(&self) -> bool {
        match self {
            Block::Lines(lines) => lines.is_empty(),
            Block::Facts(facts) => facts.is_empty(),
            Block::Picture(_) | Block::Form(_) => false,
            Block::Prose(paragraphs) => paragraphs.is_empty(),
            Block::Links(links) => links.is_empty(),
            Block::Tables(tables) => tables.iter().all(Table::is_empty),
            Block::Totals(totals) => totals.is_empty(),
            Block::Warnings(warnings) => warnings.is_empty(),
            Block::Table(table) | Block::InText(table) => table.is_empty(),
            Block::Plots(plots) => plots.is_empty(),
            Block::Drawing(_, text) => text.is_empty(),
            Block::Items(items) => items.is_empty(),
            Block::Section(section) => section.blocks.is_empty(),
            Block::Together(blocks) => blocks.iter().all(Block::is_empty),
        }
    }
}

pub struct Table {
    pub title: String,
    /// The rule behind the numbers, for a page.
    note: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    /// What the rows are, where there may be many and the first ones matter most.
    many: Option<&'static str>,
    /// Of how many rows a text has not more.
    most: Option<usize>,
    is_sortable: bool,
    /// What is to be said below it.
    pub lines: Vec<String>,
}

/// A column of a table.
pub struct Column {
    pub name: Cow<'static, str>,
    /// Numbers are set to the right.
    pub is_number: bool,
    /// Its cells may be shortened so that a line fits.
    gives_way: bool,
    /// The rows that are not shown may be summed up.
    adds_up: bool,
    from: Detail,
}

impl Column {
    /// `>` before its name: numbers; `+`: numbers that may be added; `~`: names that may be long.
    pub fn of(name: impl Into<Cow<'static, str>>) -> Column {
        let name = name.into();
        let sign = name.chars().next().unwrap_or(' ');
        let name = match (sign, name) {
            ('>' | '+' | '~', Cow::Borrowed(name)) => Cow::Borrowed(&name[1..]),
            ('>' | '+' | '~', Cow::Owned(name)) => Cow::Owned(name[1..].to_owned()),
            (_, name) => name,
        };
        Column {
            name,
            is_number: matches!(sign, '>' | '+'),
            gives_way: sign == '~',
            adds_up: sign == '+',
            from: Detail::Brief,
        }
    }
}

impl Table {
    /// Columns are named as [`Column::of`] says.
    pub fn new<N: Into<Cow<'static, str>>>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = N>,
    ) -> Table {
        Table {
            title: title.into(),
            note: String::new(),
            columns: columns.into_iter().map(Column::of).collect(),
            rows: Vec::new(),
            many: None,
            most: None,
            is_sortable: true,
            lines: Vec::new(),
        }
    }

    pub fn rows(mut self, rows: impl IntoIterator<Item = Vec<Cell>>) -> Table {
        self.rows.extend(rows);
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Table {
        self.note = note.into();
        self
    }

    /// These columns are shown from this detail on only.
    pub fn from(mut self, detail: Detail, names: &[&str]) -> Table {
        for column in &mut self.columns {
            if names.contains(&&*column.name) {
                column.from = detail;
            }
        }
        self
    }

    /// There may be many rows, and the first ones matter most; `what` they are, several of them.
    pub fn long(mut self, what: &'static str) -> Table {
        self.many = Some(what);
        self
    }

    /// A text has not more than so many.
    pub fn at_most(mut self, rows: usize) -> Table {
        self.most = Some(rows);
        self
    }

    /// Its order says something, which a reader is not to lose.
    pub fn in_order(mut self) -> Table {
        self.is_sortable = false;
        self
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.lines.is_empty()
    }

    /// How many rows are shown one by one. On a page the others are summed up: never a single one.
    fn shown(&self, detail: Detail) -> usize {
        let most = match (detail, self.most, self.many) {
            (Detail::Brief | Detail::Full, Some(most), _) => most,
            (Detail::Brief, None, Some(_)) => 3,
            (Detail::Full, None, Some(_)) => 20,
            (Detail::Page, _, Some(_)) if self.rows.len() != 26 => 25,
            _ => usize::MAX,
        };
        most.min(self.rows.len())
    }

    /// What the rows that are not shown add up to.
    fn rest(&self, detail: Detail) -> Option<Vec<Cell>> {
        let what = self.many?;
        let hidden = &self.rows[self.shown(detail)..];
        let more = || {
            Cell::text(format!(
                "{} more {what}",
                quantity::count(hidden.len() as u64)
            ))
        };
        let sum = |(place, column): (usize, &Column)| {
            if place == 0 {
                return more();
            }
            let numbers = || hidden.iter().filter_map(|row| row.get(place)?.number);
            match numbers().next() {
                Some((_, unit)) if column.adds_up => {
                    Cell::number(unit, numbers().map(|(number, _)| number).sum::<f64>())
                }
                _ => Cell::default(),
            }
        };
        (!hidden.is_empty()).then(|| self.columns.iter().enumerate().map(sum).collect())
    }
}

/// What a cell's bar counts.
#[derive(Clone, Copy)]
pub enum Bar {
    Write,
    Read,
    Other,
}

/// A cell. Its text is the trace's or ours and becomes escaped text in the page.
#[derive(Default, Template)]
#[template(path = "cell.html")]
pub struct Cell {
    pub text: String,
    /// What it says, by which its column is sorted.
    pub number: Option<(f64, Unit)>,
    /// What stands below it, as another's number.
    pub below: String,
    /// A bar behind the text and its length, 0 to 1.
    bar: Option<(Bar, f64)>,
    /// Where the interval around the bar's end begins and ends, 0 to 1.
    whisker: Option<(f64, f64)>,
    /// A remark that shows when the pointer rests on the cell.
    title: Option<String>,
    /// What does not exist, in a column of numbers.
    is_missing: bool,
    /// The page of what the text names.
    link: Option<String>,
    check: Option<Check>,
    strip: Option<Strip>,
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }

    pub fn number(unit: Unit, number: impl Into<Option<f64>>) -> Cell {
        let number: Option<f64> = number.into();
        Cell {
            text: number.map_or_else(|| "-".to_owned(), |number| unit.show(number)),
            number: number.map(|number| (number, unit)),
            is_missing: number.is_none(),
            ..Cell::default()
        }
    }

    pub fn count(number: u64) -> Cell {
        Cell::number(Unit::Count, number as f64)
    }

    pub fn bytes(bytes: u64) -> Cell {
        Cell::number(Unit::Bytes, bytes as f64).titled(format!("{} bytes", quantity::count(bytes)))
    }

    pub fn duration(ns: impl Into<Option<u64>>) -> Cell {
        Cell::number(Unit::Nanoseconds, ns.into().map(|ns| ns as f64))
    }

    pub fn share(share: Option<f64>) -> Cell {
        Cell::number(Unit::Share, share)
    }

    /// With more than its number in its text.
    pub fn saying(mut self, text: impl Into<String>) -> Cell {
        self.text = text.into();
        self
    }

    pub fn titled(mut self, title: impl Into<String>) -> Cell {
        self.title = Some(title.into());
        self
    }

    /// With another's number, or what else is to be said, below it.
    pub fn over(mut self, below: impl Into<String>) -> Cell {
        self.below = below.into();
        self
    }

    /// With the page of what it names.
    pub fn leading_to(mut self, page: impl Into<String>) -> Cell {
        self.link = Some(page.into());
        self
    }

    /// With a box that chooses its row.
    pub fn with_check(mut self, check: Check) -> Cell {
        self.check = Some(check);
        self
    }

    /// With how its row's values lie.
    pub fn with_strip(mut self, strip: Strip) -> Cell {
        self.strip = Some(strip);
        self
    }

    /// With a bar for its share of `whole`.
    pub fn with_bar(mut self, bar: Bar, whole: f64) -> Cell {
        if let Some((part, _)) = self.number
            && part > 0.0
            && whole > 0.0
        {
            self.bar = Some((bar, (part / whole).min(1.0)));
        }
        self
    }

    /// With the interval that the bar's end lies in: its bounds, in the same number's unit.
    pub fn with_whisker(mut self, low: f64, high: f64, whole: f64) -> Cell {
        if self.bar.is_some() {
            let at = |bound: f64| (bound / whole).clamp(0.0, 1.0);
            self.whisker = Some((at(low), at(high)));
        }
        self
    }

    /// The lengths that the style sheet draws with, in percent.
    fn style(&self) -> Option<String> {
        let (_, share) = self.bar?;
        let mut style = format!("--share:{}%", share * 100.0);
        if let Some((low, high)) = self.whisker {
            let _ = write!(style, ";--low:{}%;--high:{}%", low * 100.0, high * 100.0);
        }
        Some(style)
    }

    /// Its classes in the style sheet: numbers are what is sorted by value.
    fn class(&self) -> &'static str {
        match (&self.bar, self.sort()) {
            (Some((Bar::Write, _)), _) => "number bar write",
            (Some((Bar::Read, _)), _) => "number bar read",
            (Some((Bar::Other, _)), _) => "number bar other",
            (None, Some(_)) => "number",
            (None, None) => "text",
        }
    }

    /// What the column is sorted by, where the text is not; what is missing comes first.
    fn sort(&self) -> Option<f64> {
        match self.number {
            Some((number, _)) => Some(number),
            None => self.is_missing.then_some(-1.0),
        }
    }
}
