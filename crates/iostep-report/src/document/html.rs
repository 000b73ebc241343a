//! A document as one HTML page: no network, no other file, and nothing that needs its script but
//! sorting and the choice of light or dark. Where a server sends it, style and script are files of
//! the server, so that its policy need not allow any that stand in a page.

pub(crate) mod escape;

use askama::Template;

use super::{Block, Cell, Column, Detail, Document, Item, Section, Standing, Table};
use crate::modules::{Module, bundle};
use crate::picture;

const MODULES: [Module; 4] = [
    ("dom", include_str!("../picture/dom.js")),
    ("theme", include_str!("html/theme.js")),
    ("sort", include_str!("html/sort.js")),
    ("document", include_str!("html/document.js")),
];

#[derive(Template)]
#[template(path = "document.html")]
struct Page<'a> {
    title: &'a str,
    version: &'a str,
    style: &'static str,
    script: String,
    site: Option<&'a Site<'a>>,
    body: Body<'a>,
}

/// What is around a page that a server sends.
pub struct Site<'a> {
    /// Its pages: where each is, and its name.
    pub pages: &'a [(&'a str, &'a str)],
    /// The page of what is searched, and what was searched for.
    pub search: (&'a str, &'a str),
    /// Where [`style`] is.
    pub style: &'a str,
    /// Where [`script`] is.
    pub script: &'a str,
    /// Where a picture for the browser's tab is.
    pub icon: &'a str,
}

/// The style sheet of pages that a server sends.
pub fn style() -> String {
    [include_str!("html/page.css"), include_str!("html/site.css")].join("\n")
}

/// The script of pages that a server sends.
pub fn script() -> String {
    bundle(&MODULES)
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
struct Shown<'a> {
    table: &'a Table,
    rest: Option<Vec<Cell>>,
}

impl Shown<'_> {
    fn of(table: &Table) -> Shown<'_> {
        let rest = table.rest(Detail::Page);
        Shown { table, rest }
    }

    fn rows(&self) -> &[Vec<Cell>] {
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
        self.page(None)
    }

    /// The page as a server sends it, which needs the site's style and has no picture.
    pub fn served(&self, site: &Site<'_>) -> String {
        self.page(Some(site))
    }

    fn page(&self, site: Option<&Site<'_>>) -> String {
        let mut blocks = self.body.blocks.iter();
        let has_picture = blocks.any(|(_, block)| matches!(block, Block::Picture(_)));
        let page = Page {
            title: self.title.as_ref().unwrap_or(&self.body.title),
            version: &self.version,
            style: include_str!("html/page.css"),
            script: match has_picture {
                true => bundle(&picture::MODULES),
                false => script(),
            },
            site,
            body: Body::of(&self.body),
        };
        page.render()
            .expect("writing to memory cannot fail, and the templates have no errors of their own")
    }
}
