//! A report as what it consists of, whatever it is about: text and page are made from this alone.

pub(in crate::report) mod html;
mod text;

use crate::report::quantity::Show as _;
use std::borrow::Cow;

use askama::Template;

use super::plot::Plot;
use super::quantity;
use iostep_model::unit::Unit;

/// How much of a report is shown: each has what the one before it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// What fits a screen.
    Brief,
    /// All that has a form as text.
    Full,
    /// A page.
    Page,
}

/// A report.
pub struct Document {
    /// The version of iostep that measured.
    pub(in crate::report) version: String,
    /// Its title, and everything in it.
    pub(in crate::report) body: Section,
}

/// A part of a report with its title.
#[derive(Default)]
pub(in crate::report) struct Section {
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
pub(in crate::report) enum Block {
    /// Facts, a line each.
    Lines(Vec<String>),
    /// Numbers with their names, set large.
    Totals(Vec<(&'static str, String)>),
    /// What spoils the figures, and what to do about it.
    Warnings(Vec<(String, &'static str)>),
    Table(Table),
    Plots(Vec<Plot>),
    /// What is drawn with characters in a text, below its title. A page has plots.
    Drawing(String, String),
    /// A table that stands in a text for a plot.
    InText(Table),
    /// Statements, each with its grounds.
    Items(Vec<Item>),
    Section(Section),
    /// What sections say together. In a text it comes last, where the prompt is.
    Together(Vec<Block>),
}

/// Whether a statement holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum Standing {
    Good,
    Bad,
    Open,
}

/// A statement.
pub(in crate::report) struct Item {
    /// Whether it holds, and in a word.
    pub verdict: Option<(Standing, &'static str)>,
    pub text: String,
    /// Its grounds, a line each.
    pub details: Vec<String>,
}

impl Document {
    /// By this version of iostep.
    pub(in crate::report) fn of(body: Section) -> Document {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Document { version, body }
    }
}

impl Section {
    pub(in crate::report) fn new(title: impl Into<String>) -> Section {
        Section {
            title: title.into(),
            ..Section::default()
        }
    }

    /// Adds a block that is shown in every form; an empty one is in none.
    pub(in crate::report) fn push(&mut self, block: Block) {
        self.push_from(Detail::Brief, block);
    }

    /// Adds a block that is shown from this detail on.
    pub(in crate::report) fn push_from(&mut self, detail: Detail, block: Block) {
        if !block.is_empty() {
            self.blocks.push((detail, block));
        }
    }
}

impl Block {
    fn is_empty(&self) -> bool {
        match self {
            Block::Lines(lines) => lines.is_empty(),
            Block::Totals(totals) => totals.is_empty(),
            Block::Warnings(warnings) => warnings.is_empty(),
            Block::Table(table) | Block::InText(table) => {
                table.rows.is_empty() && table.lines.is_empty()
            }
            Block::Plots(plots) => plots.is_empty(),
            Block::Drawing(_, text) => text.is_empty(),
            Block::Items(items) => items.is_empty(),
            Block::Section(section) => section.blocks.is_empty(),
            Block::Together(blocks) => blocks.iter().all(Block::is_empty),
        }
    }
}

/// A table.
pub(in crate::report) struct Table {
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
pub(in crate::report) struct Column {
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
    pub(in crate::report) fn of(name: impl Into<Cow<'static, str>>) -> Column {
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
    pub(in crate::report) fn new<N: Into<Cow<'static, str>>>(
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

    pub(in crate::report) fn rows(mut self, rows: impl IntoIterator<Item = Vec<Cell>>) -> Table {
        self.rows.extend(rows);
        self
    }

    pub(in crate::report) fn note(mut self, note: impl Into<String>) -> Table {
        self.note = note.into();
        self
    }

    /// These columns are shown from this detail on only.
    pub(in crate::report) fn from(mut self, detail: Detail, names: &[&str]) -> Table {
        for column in &mut self.columns {
            if names.contains(&&*column.name) {
                column.from = detail;
            }
        }
        self
    }

    /// There may be many rows, and the first ones matter most; `what` they are, several of them.
    pub(in crate::report) fn long(mut self, what: &'static str) -> Table {
        self.many = Some(what);
        self
    }

    /// A text has not more than so many.
    pub(in crate::report) fn at_most(mut self, rows: usize) -> Table {
        self.most = Some(rows);
        self
    }

    /// Its order says something, which a reader is not to lose.
    pub(in crate::report) fn in_order(mut self) -> Table {
        self.is_sortable = false;
        self
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
pub(in crate::report) enum Bar {
    Write,
    Read,
    Other,
}

/// A cell. Its text is the trace's or ours and becomes escaped text in the page.
#[derive(Default, Template)]
#[template(path = "cell.html")]
pub(in crate::report) struct Cell {
    pub text: String,
    /// What it says, by which its column is sorted.
    pub number: Option<(f64, Unit)>,
    /// What stands below it, as another's number.
    pub below: String,
    /// A bar behind the text and its length, 0 to 1.
    bar: Option<(Bar, f64)>,
    /// A remark that shows when the pointer rests on the cell.
    title: Option<String>,
    /// What does not exist, in a column of numbers.
    is_missing: bool,
}

impl Cell {
    pub(in crate::report) fn text(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }

    /// A number in its unit.
    pub(in crate::report) fn number(unit: Unit, number: impl Into<Option<f64>>) -> Cell {
        let number: Option<f64> = number.into();
        Cell {
            text: number.map_or_else(|| "-".to_owned(), |number| unit.show(number)),
            number: number.map(|number| (number, unit)),
            is_missing: number.is_none(),
            ..Cell::default()
        }
    }

    pub(in crate::report) fn count(number: u64) -> Cell {
        Cell::number(Unit::Count, number as f64)
    }

    pub(in crate::report) fn bytes(bytes: u64) -> Cell {
        Cell::number(Unit::Bytes, bytes as f64).titled(format!("{} bytes", quantity::count(bytes)))
    }

    pub(in crate::report) fn duration(ns: impl Into<Option<u64>>) -> Cell {
        Cell::number(Unit::Nanoseconds, ns.into().map(|ns| ns as f64))
    }

    pub(in crate::report) fn share(share: Option<f64>) -> Cell {
        Cell::number(Unit::Share, share)
    }

    /// With more than its number in its text.
    pub(in crate::report) fn saying(mut self, text: impl Into<String>) -> Cell {
        self.text = text.into();
        self
    }

    pub(in crate::report) fn titled(mut self, title: impl Into<String>) -> Cell {
        self.title = Some(title.into());
        self
    }

    /// With a bar for its share of `whole`.
    pub(in crate::report) fn with_bar(mut self, bar: Bar, whole: f64) -> Cell {
        if let Some((part, _)) = self.number
            && part > 0.0
            && whole > 0.0
        {
            self.bar = Some((bar, (part / whole).min(1.0)));
        }
        self
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: u64) -> Table {
        let rows = (0..rows).map(|row| vec![Cell::text("a"), Cell::count(row), Cell::bytes(row)]);
        Table::new("", ["", "+count", ">bytes"])
            .rows(rows)
            .long("rows")
    }

    #[test]
    fn a_page_never_sums_up_a_single_row() {
        let shown = [3, 25, 26, 27].map(|rows| table(rows).shown(Detail::Page));
        assert_eq!(shown, [3, 25, 26, 25]);
        assert!(table(26).rest(Detail::Page).is_none());
    }

    #[test]
    fn what_is_not_shown_adds_up_where_a_sum_means_something() {
        let rest = table(27).rest(Detail::Page).expect("two rows");
        let rest: Vec<&str> = rest.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(rest, ["2 more rows", "51", ""]);
    }
}
