//! Chapters of our own manual as parts of a page: paragraphs, tables and code, which is what it has.

use iostep_report::document::{Block, Cell, Section, Table};

/// The chapter of this title, without those below it; an empty one if there is none.
pub fn chapter(manual: &str, title: &str) -> Section {
    let mut section = Section::new(title);
    let mut lines = manual
        .lines()
        .skip_while(|line| *line != format!("## {title}"))
        .skip(1);
    let body: Vec<&str> = lines
        .by_ref()
        .take_while(|line| !line.starts_with('#'))
        .collect();
    for piece in body.split(|line| line.is_empty()) {
        match piece {
            [] => {}
            [head, _, rows @ ..] if head.starts_with('|') => {
                let cells = |line: &&str| -> Vec<Cell> {
                    let line = line.trim_matches('|');
                    line.split('|')
                        .map(|cell| Cell::text(plain(cell.trim())))
                        .collect()
                };
                let names: Vec<String> = cells(head).into_iter().map(|cell| cell.text).collect();
                let table = Table::new("", names).in_order();
                section.push(Block::Table(table.rows(rows.iter().map(cells))));
            }
            // A list is a paragraph for each point.
            [first, ..] if first.starts_with("- ") => {
                let mut points: Vec<String> = Vec::new();
                for line in piece {
                    match (line.strip_prefix("- "), points.last_mut()) {
                        (None, Some(point)) => *point += &format!(" {}", line.trim_start()),
                        (begun, _) => points.push(begun.unwrap_or(line).to_owned()),
                    }
                }
                let points = points.iter().map(|point| plain(point)).collect();
                section.push(Block::Prose(points));
            }
            lines => section.push(Block::Prose(vec![plain(&lines.join(" "))])),
        }
    }
    section
}

/// The words of a text without marks; of a link its words.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain += before;
        rest = match link
            .split_once("](")
            .and_then(|(words, to)| Some((words, to.split_once(')')?.1)))
        {
            Some((words, behind)) => {
                plain += words;
                behind
            }
            None => {
                plain.push('[');
                link
            }
        };
    }
    plain += rest;
    plain.replace(['`', '*'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chapter_is_its_paragraphs_and_tables() {
        let manual = "# A\n\n## B\n\nOne `two`\nand [three](x.md#y).\n\n| a | b |\n|---|---|\n| c | [1] |\n\n## C\n\nno\n";
        let section = chapter(manual, "B");
        let [(_, Block::Prose(text)), (_, Block::Table(table))] = &section.blocks[..] else {
            panic!("two blocks");
        };
        assert_eq!(text, &["One two and three."]);
        assert_eq!(
            (&*table.columns[1].name, &table.rows[0][1].text[..]),
            ("b", "[1]")
        );
        assert!(chapter(manual, "D").blocks.is_empty());
        let list = chapter("## L\n\n- one\n  is - two\n- three\n", "L");
        let [(_, Block::Prose(points))] = &list.blocks[..] else {
            panic!("a block");
        };
        assert_eq!(points, &["one is - two", "three"]);
    }
}
