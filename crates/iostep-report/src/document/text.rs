//! A document as text.

use iostep_model::printable;

use super::{Block, Cell, Column, Detail, Document, Fact, Item, Section, Standing, Table};
use crate::quantity::count;
use crate::text::Style;
use crate::text::grid::{Grid, shortened};

impl Document {
    /// The text: what is wrong first. Nothing in it can steer a terminal.
    pub fn text(&self, detail: Detail, style: Style) -> String {
        let mut text = Text {
            out: String::new(),
            last: Vec::new(),
            detail,
            style,
        };
        text.section(&self.body);
        for block in std::mem::take(&mut text.last) {
            text.block(block);
        }
        text.out
    }
}

/// Text being written.
struct Text<'a> {
    out: String,
    /// What comes at the end.
    last: Vec<&'a Block>,
    detail: Detail,
    style: Style,
}

impl<'a> Text<'a> {
    fn line(&mut self, before: &str, line: &str) {
        self.out += &format!("{before}{}\n", printable(line));
    }

    fn bold_line(&mut self, line: &str) {
        if !line.is_empty() {
            self.out += &(self.style.bold(&printable(line)) + "\n");
        }
    }

    /// An empty line before what is not the first.
    fn space(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn section(&mut self, section: &'a Section) {
        self.space();
        for alarm in &section.alarms {
            self.out += &(self.style.alarm(&printable(alarm)) + "\n");
        }
        match section.headline.is_empty() {
            true => self.bold_line(&section.title),
            false => {
                self.bold_line(&section.headline);
                if !section.title.is_empty() {
                    self.line(" ", &section.title);
                }
            }
        }
        for (from, block) in &section.blocks {
            if self.detail >= *from {
                self.block(block);
            }
        }
    }

    fn block(&mut self, block: &'a Block) {
        match block {
            Block::Lines(lines) => lines.iter().for_each(|line| self.line(" ", line)),
            Block::Facts(facts) => facts.iter().for_each(|fact| self.fact(fact)),
            // Their numbers are in lines and tables too.
            Block::Totals(_) | Block::Plots(_) | Block::Picture(_) => {}
            Block::Form(_) | Block::Links(_) => {}
            Block::Prose(lines) => lines.iter().for_each(|line| self.line(" ", line)),
            Block::Warnings(warnings) => {
                for (fact, advice) in warnings {
                    let warning = self.style.bold("warning:");
                    self.line(&format!("{warning} "), &format!("{fact}; {advice}"));
                }
            }
            Block::Table(table) | Block::InText(table) => self.table(table),
            Block::Tables(tables) => tables.iter().for_each(|table| self.table(table)),
            Block::Drawing(title, text) => {
                self.space();
                self.bold_line(title);
                self.out += text;
            }
            Block::Items(items) => items.iter().for_each(|item| self.item(item)),
            Block::Section(section) => self.section(section),
            Block::Together(blocks) => self.last.extend(blocks),
        }
    }

    fn fact(&mut self, fact: &Fact) {
        let line = format!("{}: {}", fact.name, printable(&fact.value));
        self.out += &match fact.gives_way {
            true => shortened(&line, self.style.columns),
            false => line,
        };
        self.out.push('\n');
    }

    fn item(&mut self, item: &Item) {
        let verdict = item.verdict.map_or_else(String::new, |(standing, word)| {
            let word = format!("{word:<13}");
            let word = match standing {
                Standing::Good => self.style.bold(&word),
                Standing::Bad => self.style.alarm(&word),
                Standing::Open => word,
            };
            word + "  "
        });
        self.line(&format!(" {verdict}"), &item.text);
        item.details.iter().for_each(|line| self.line("   ", line));
    }

    fn table(&mut self, table: &Table) {
        let (all, shown) = (table.rows.len(), table.shown(self.detail));
        if all > 0 {
            self.space();
            match shown < all && !table.title.is_empty() {
                true => self.bold_line(&format!(
                    "{} ({shown} of {})",
                    table.title,
                    count(all as u64)
                )),
                false => self.bold_line(&table.title),
            }
            let is_there = |column: &Column| self.detail >= column.from;
            let mut grid = Grid::new(
                self.style,
                table
                    .columns
                    .iter()
                    .filter(|column| is_there(column))
                    .map(|column| (&*column.name, column.is_number, column.gives_way)),
            );
            for row in &table.rows[..shown] {
                let cells = || {
                    row.iter()
                        .zip(&table.columns)
                        .filter(|(_, column)| is_there(column))
                        .map(|(cell, _)| cell)
                };
                grid.row(cells().map(|cell: &Cell| cell.text.clone()).collect());
                if cells().any(|cell| !cell.below.is_empty()) {
                    grid.row(cells().map(|cell| cell.below.clone()).collect());
                }
            }
            self.out += &grid.fitting_lines();
        }
        table.lines.iter().for_each(|line| self.line(" ", line));
    }
}
