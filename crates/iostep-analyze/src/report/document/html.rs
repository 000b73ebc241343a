//! A document as one HTML page: no network, no other file, and nothing that needs its script but
//! sorting and the choice of light or dark.

use askama::Template;

use crate::report::html::modules::{Module, bundle};

use super::{Block, Column, Detail, Document, Item, Section, Standing, Table};

const STYLE: &str = concat!(
    include_str!("../html/style.css"),
    "\n",
    include_str!("document.css"),
);

const MODULES: [Module; 4] = [
    ("dom", include_str!("../html/picture/dom.js")),
    ("theme", include_str!("../html/theme.js")),
    ("sort", include_str!("../html/sort.js")),
    ("document", include_str!("document.js")),
];

#[derive(Template)]
#[template(path = "document.html")]
struct Page<'a> {
    title: &'a str,
    version: &'a str,
    style: &'static str,
    script: String,
    body: Body<'a>,
}

/// What is in a section.
#[derive(Template)]
#[template(path = "section.html")]
struct Body<'a> {
    section: &'a Section,
    blocks: Blocks<'a>,
}

impl<'a> Body<'a> {
    fn of(section: &'a Section) -> Body<'a> {
        let blocks = section.blocks.iter().map(|(_, block)| block).collect();
        Body {
            section,
            blocks: Blocks { blocks },
        }
    }
}

/// Pieces of a page.
#[derive(Template)]
#[template(path = "blocks.html")]
struct Blocks<'a> {
    blocks: Vec<&'a Block>,
}

impl Blocks<'_> {
    fn body<'a>(&self, section: &'a Section) -> Body<'a> {
        Body::of(section)
    }

    fn class(&self, item: &Item) -> &'static str {
        match item.verdict {
            Some((Standing::Bad, _)) => "bad",
            Some((Standing::Open, _)) => "open",
            Some((Standing::Good, _)) | None => "good",
        }
    }

    fn blocks<'a>(&self, blocks: &'a [Block]) -> Blocks<'a> {
        Blocks {
            blocks: blocks.iter().collect(),
        }
    }

    fn table<'a>(&self, table: &'a Table) -> Shown<'a> {
        Shown::of(table)
    }
}

/// A table on a page.
#[derive(Template)]
#[template(path = "table.html")]
pub(in crate::report) struct Shown<'a> {
    table: &'a Table,
    rest: Option<Vec<super::Cell>>,
}

impl Shown<'_> {
    pub(in crate::report) fn of(table: &Table) -> Shown<'_> {
        let rest = table.rest(Detail::Page);
        Shown { table, rest }
    }

    fn rows(&self) -> &[Vec<super::Cell>] {
        &self.table.rows[..self.table.shown(Detail::Page)]
    }

    fn columns(&self) -> &[Column] {
        &self.table.columns
    }

    fn is_sortable(&self) -> bool {
        self.table.is_sortable && self.table.rows.len() > 1
    }
}

impl Document {
    /// The page. Names in it come from whoever made what was measured, and are escaped.
    pub fn html(&self) -> String {
        let page = Page {
            title: &self.body.title,
            version: &self.version,
            style: STYLE,
            script: bundle(&MODULES),
            body: Body::of(&self.body),
        };
        page.render()
            .expect("writing to memory cannot fail, and the templates have no errors of their own")
    }
}

#[cfg(test)]
pub(in crate::report) mod tests {
    /// Every element that is opened is closed, in order, and no attribute is left open.
    pub(in crate::report) fn well_formed(page: &str) {
        const VOID: [&str; 2] = ["meta", "line"];
        let mut open: Vec<&str> = Vec::new();
        let mut rest = page.strip_prefix("<!doctype html>").expect("a doctype");
        while let Some(start) = rest.find('<') {
            rest = &rest[start + 1..];
            let (tag, after) = rest.split_once('>').expect("the end of a tag");
            rest = after;
            assert!(!tag.contains('<'), "{tag}");
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            let name = tag.trim_start_matches('/').split([' ', '/']).next();
            let name = name.expect("a name");
            match tag.strip_prefix('/') {
                Some(_) => assert_eq!(open.pop(), Some(name), "{tag}"),
                None if VOID.contains(&name) || tag.ends_with('/') => {}
                None => open.push(name),
            }
            // What is inside of these is no markup.
            if let Some("style" | "script") = open.last().copied() {
                rest = &rest[rest.find("</").expect("the end of it")..];
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    /// The figure under this heading.
    pub(in crate::report) fn figure<'a>(page: &'a str, title: &str) -> &'a str {
        let start = page.find(&format!("<h3>{title}</h3>")).expect("the figure");
        let text = &page[start..];
        &text[..text.find("</figure>").expect("its end")]
    }
}
