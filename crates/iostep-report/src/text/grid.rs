//! A table of text with aligned columns.

use comfy_table::{Attribute, Cell, CellAlignment, Table, presets};
use iostep_model::printable;

use super::Style;

/// What a name is shortened to at least.
const LEAST_CHARACTERS: usize = 16;

/// Columns, their names and rows.
pub struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    style: Style,
}

struct Column {
    name: String,
    alignment: CellAlignment,
    /// Its cells may be shortened so that a line fits.
    gives_way: bool,
}

impl Grid {
    /// Columns: the name, whether they are of numbers, and whether they may be shortened.
    pub fn new<'a>(style: Style, columns: impl IntoIterator<Item = (&'a str, bool, bool)>) -> Grid {
        let column = |(name, is_number, gives_way)| Column {
            name: printable(name).into_owned(),
            alignment: match is_number {
                true => CellAlignment::Right,
                false => CellAlignment::Left,
            },
            gives_way,
        };
        Grid {
            columns: columns.into_iter().map(column).collect(),
            rows: Vec::new(),
            style,
        }
    }

    /// Adds a row; a cell is a column's.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        let shown = cells.iter().map(|cell| printable(cell).into_owned());
        self.rows.push(shown.collect());
    }

    /// The table's lines.
    pub fn fitting_lines(mut self) -> String {
        let plain = Style {
            colour: false,
            ..self.style
        };
        let lines = self.lines(plain);
        let widest = lines.lines().map(|line| line.chars().count()).max();
        let mut excess = widest.unwrap_or(0).saturating_sub(self.style.columns);
        for column in 0..self.columns.len() {
            if excess > 0 && self.columns[column].gives_way {
                excess -= self.shorten(column, excess);
            }
        }
        self.lines(self.style)
    }

    /// Makes a column narrower, by `excess` characters if it can be; gives by how many it did.
    fn shorten(&mut self, column: usize, excess: usize) -> usize {
        let cells = || self.rows.iter().map(|row| row[column].chars().count());
        let widest = cells().max().unwrap_or(0);
        let limit = widest.saturating_sub(excess).max(LEAST_CHARACTERS);
        for row in &mut self.rows {
            row[column] = shortened(&row[column], limit);
        }
        widest.saturating_sub(limit)
    }

    fn lines(&self, style: Style) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        if style.colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        let header = self.columns.iter().map(|column| {
            let cell = Cell::new(&column.name).set_alignment(column.alignment);
            match style.colour {
                true => cell.add_attribute(Attribute::Bold),
                false => cell,
            }
        });
        table.set_header(header.collect::<Vec<_>>());
        for row in &self.rows {
            let cells = row.iter().zip(&self.columns);
            let cells = cells.map(|(text, column)| Cell::new(text).set_alignment(column.alignment));
            table.add_row(cells.collect::<Vec<_>>());
        }
        let lines = table.lines();
        lines
            .map(|line| format!(" {}\n", line.trim_end()))
            .collect()
    }
}

/// At most `limit` characters of a text: what tells most of a path are its end, and then its
/// beginning.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text.to_owned();
    }
    let end = (limit - 1) * 2 / 3;
    let begin = limit - 1 - end;
    let begin = text.chars().take(begin);
    let end = text.chars().skip(count - end);
    begin.chain(['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: usize, name: &str) -> String {
        let style = Style {
            columns,
            ..Style::default()
        };
        let mut table = Grid::new(style, [("file", false, true), ("bytes", true, false)]);
        table.row([name.to_owned(), "123,456".to_owned()].into());
        table.row(["/b".to_owned(), "7".to_owned()].into());
        table.fitting_lines()
    }

    #[test]
    fn a_long_name_gives_way_and_a_number_never_does() {
        let name = format!("/var/lib/{}/app.db-journal", "deep/".repeat(200));
        let text = table(60, &name);
        let widths = text.lines().map(|line| line.chars().count());
        assert_eq!(widths.max(), Some(60), "{text}");
        assert!(text.contains(" /var/lib/deep/"), "{text}");
        assert!(text.contains("/app.db-journal  123,456\n"), "{text}");
        let text = table(8, &name);
        assert!(text.contains("  123,456\n"), "{text}");
    }

    #[test]
    fn what_fits_is_whole() {
        assert_eq!(table(100, "/a"), table(20, "/a"));
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("/ä/b/c/d", 7), "/ä…/c/d");
    }
}
