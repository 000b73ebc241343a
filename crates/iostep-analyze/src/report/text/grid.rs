//! A table of text with aligned columns.

use comfy_table::{Attribute, Cell, CellAlignment, Table, presets};

use super::Style;

/// Columns, their names and rows.
pub(crate) struct Grid {
    table: Table,
    columns: Vec<CellAlignment>,
    style: Style,
}

/// Starts with a table whose columns are named so; a name that begins with `>` is of a column of
/// numbers, set to the right.
pub(crate) fn grid(style: Style, names: &[&str]) -> Grid {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if style.colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    let columns: Vec<CellAlignment> = names
        .iter()
        .map(|name| match name.starts_with('>') {
            true => CellAlignment::Right,
            false => CellAlignment::Left,
        })
        .collect();
    let header = names.iter().zip(&columns).map(|(name, alignment)| {
        let cell = Cell::new(name.trim_start_matches('>')).set_alignment(*alignment);
        if style.colour {
            cell.add_attribute(Attribute::Bold)
        } else {
            cell
        }
    });
    table.set_header(header.collect::<Vec<_>>());
    Grid {
        table,
        columns,
        style,
    }
}

impl Grid {
    /// Adds a row; a cell is a column's.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.row_of(cells.into());
    }

    /// The same where the number of columns is known only when it runs.
    pub(crate) fn row_of(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        let cells = cells.into_iter().zip(&self.columns);
        let cells = cells.map(|(text, alignment)| Cell::new_owned(text).set_alignment(*alignment));
        self.table.add_row(cells.collect::<Vec<_>>());
    }

    /// The table below its title; nothing if it has no rows.
    pub(crate) fn titled(self, title: &str) -> String {
        match self.table.is_empty() {
            true => String::new(),
            false => format!("\n{}\n{}", self.style.bold(title), self.lines()),
        }
    }

    /// The table below an empty line; nothing if it has no rows.
    pub(crate) fn untitled(self) -> String {
        match self.table.is_empty() {
            true => String::new(),
            false => format!("\n{}", self.lines()),
        }
    }

    fn lines(&self) -> String {
        let lines = self.table.lines();
        lines
            .map(|line| format!(" {}\n", line.trim_end()))
            .collect()
    }
}
