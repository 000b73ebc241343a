//! A table of a page, whatever it is about.

use std::borrow::Cow;

use askama::Template;

use crate::report::quantity;

/// Rows that a table shows one by one; the rest is summed up in one more.
pub(in crate::report) const TOP: usize = 25;

/// A column's head.
pub(in crate::report) struct Head {
    pub name: Cow<'static, str>,
    pub number: bool,
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
    /// What the column is sorted by, where the text is not.
    pub sort: Option<f64>,
    /// A bar behind the text and its length, 0 to 1.
    pub bar: Option<(Bar, f64)>,
    /// A remark that shows when the pointer rests on the cell.
    pub title: Option<String>,
}

impl Cell {
    /// Its classes in the style sheet: numbers are what is sorted by value.
    fn class(&self) -> &'static str {
        match (&self.bar, &self.sort) {
            (Some((Bar::Write, _)), _) => "number bar write",
            (Some((Bar::Read, _)), _) => "number bar read",
            (Some((Bar::Other, _)), _) => "number bar other",
            (None, Some(_)) => "number",
            (None, None) => "text",
        }
    }

    pub(in crate::report) fn text(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }

    pub(in crate::report) fn count(number: u64) -> Cell {
        Cell {
            text: quantity::count(number),
            sort: Some(number as f64),
            ..Cell::default()
        }
    }

    pub(in crate::report) fn bytes(bytes: u64) -> Cell {
        Cell {
            text: quantity::bytes(bytes),
            sort: Some(bytes as f64),
            title: Some(format!("{} bytes", quantity::count(bytes))),
            ..Cell::default()
        }
    }

    pub(in crate::report) fn duration(ns: Option<u64>) -> Cell {
        Cell {
            text: ns.map_or_else(|| "-".to_owned(), quantity::duration),
            sort: Some(ns.map_or(-1.0, |ns| ns as f64)),
            ..Cell::default()
        }
    }

    pub(in crate::report) fn factor(factor: Option<f64>) -> Cell {
        Cell {
            text: factor.map_or_else(|| "-".to_owned(), |factor| format!("{factor:.1}x")),
            sort: Some(factor.unwrap_or(-1.0)),
            ..Cell::default()
        }
    }

    /// The same cell with a bar for its share of `whole`, and that share in its text.
    pub(in crate::report) fn with_share(mut self, bar: Bar, part: u64, whole: u64) -> Cell {
        if part > 0 && whole > 0 {
            let share = part as f64 / whole as f64;
            self.text = format!("{} ({})", self.text, quantity::percent(Some(share)));
            self.bar = Some((bar, share.min(1.0)));
        }
        self
    }
}

/// A table with its title.
#[derive(Template)]
#[template(path = "table.html")]
pub(in crate::report) struct Table {
    pub title: String,
    /// The rule behind the numbers, in a sentence.
    pub note: String,
    pub heads: Vec<Head>,
    pub rows: Vec<Vec<Cell>>,
    /// What the rows that are not shown add up to.
    pub rest: Option<Vec<Cell>>,
    pub sortable: bool,
}

/// Heads from names; those that begin with `#` are of numbers.
pub(in crate::report) fn heads(names: &[&'static str]) -> Vec<Head> {
    let head = |name: &&'static str| Head {
        name: name.trim_start_matches('#').into(),
        number: name.starts_with('#'),
    };
    names.iter().map(head).collect()
}

/// The rows to show one by one, and those to sum up: never a single one.
pub(in crate::report) fn top<T>(items: &[T]) -> (&[T], &[T]) {
    let shown = if items.len() == TOP + 1 { TOP + 1 } else { TOP };
    items.split_at(shown.min(items.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_never_sums_up_a_single_row() {
        let shown = |rows: usize| top(&vec![(); rows]).0.len();
        assert_eq!(shown(3), 3);
        assert_eq!(shown(TOP), TOP);
        assert_eq!(shown(TOP + 1), TOP + 1);
        assert_eq!(shown(TOP + 2), TOP);
    }
}
