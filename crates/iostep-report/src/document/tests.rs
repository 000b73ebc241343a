//! What holds for every document, whatever it is about.

use iostep_model::fixture;

use super::*;
use crate::text::Style;

const HOSTILE: &str = "</script></title><img src=x onerror=alert(1)>\"'--><!--\u{1b}[2J\u{202e}";

fn hostile() -> String {
    HOSTILE.to_owned()
}

fn form() -> Form {
    Form {
        id: "form",
        action: hostile(),
        fields: vec![
            form::Field::Hidden {
                name: "name",
                value: hostile(),
            },
            form::Field::Choice {
                name: "name",
                label: "label",
                options: vec![(hostile(), hostile())],
                chosen: hostile(),
            },
        ],
        button: "ask",
    }
}

/// Everything that a document can have, all of it named by somebody who means harm.
fn document() -> Document {
    let check = || form::Check {
        form: "form",
        name: "name",
        value: hostile(),
        label: hostile(),
    };
    let (axis, _) = crate::plot::strip::axis(1.0, 2.0);
    let strip = move || Strip::of(&axis, &[1.0], 1.0, None, HOSTILE).expect("a value");
    let cell = || {
        let cell = Cell::text(HOSTILE).titled(HOSTILE).leading_to(HOSTILE);
        cell.with_check(check()).with_strip(strip())
    };
    let table = || {
        let mut table = Table::new(HOSTILE, [HOSTILE]).note(HOSTILE);
        table.lines.push(hostile());
        table.rows([vec![cell()], vec![cell()]])
    };
    let item = Item {
        verdict: Some((Standing::Bad, "bad")),
        text: hostile(),
        details: vec![hostile()],
    };
    let plot = Plot {
        title: hostile(),
        note: hostile(),
        legend: vec![(0, hostile())],
        ..Plot::default()
    };
    let blocks = [
        Block::Lines(vec![hostile()]),
        Block::Prose(vec![hostile()]),
        Block::Form(form()),
        Block::Links(vec![(hostile(), hostile())]),
        Block::Facts(vec![Fact::of("fact", HOSTILE)]),
        Block::Totals(vec![("total", hostile())]),
        Block::Warnings(vec![(hostile(), "mend it")]),
        Block::Table(table()),
        Block::Tables(vec![table()]),
        Block::Plots(vec![plot]),
        Block::Items(vec![item]),
        Block::Picture(Picture::of(&fixture::sqlite_on_ext4(10))),
    ];
    let mut body = Section {
        headline: hostile(),
        alarms: vec![hostile()],
        ..Section::new(HOSTILE)
    };
    blocks.into_iter().for_each(|block| body.push(block));
    let folded = Section {
        folded: true,
        headline: hostile(),
        blocks: vec![(Detail::Brief, Block::Lines(vec![hostile()]))],
        ..Section::new(HOSTILE)
    };
    body.push(Block::Section(folded));
    Document {
        version: hostile(),
        title: None,
        body,
    }
}

#[test]
fn no_name_becomes_markup() {
    let page = document().html();
    assert!(!page.contains("<img"));
    assert!(!page.contains("<!--") && !page.contains("-->"));
    assert!(!page.contains(['\u{1b}', '\u{202e}']));
    assert_eq!(page.matches("<script").count(), 3);
    assert_eq!(page.matches("</script").count(), 3);
}

#[test]
fn a_page_asks_for_nothing_from_elsewhere() {
    let mut document = document();
    document
        .body
        .blocks
        .retain(|(_, block)| matches!(block, Block::Picture(_)));
    (document.body.headline, document.body.title) = Default::default();
    (document.body.alarms, document.version) = Default::default();
    let page = document.html();
    for reference in ["src=", "href=", "url(", "@import", "import(", "fetch("] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn escapes_are_only_in_coloured_text() {
    let document = document();
    let plain = document.text(Detail::Full, Style::default());
    assert!(!plain.contains(['\u{1b}', '\u{202e}']), "{plain}");
    let coloured = Style {
        colour: true,
        ..Style::default()
    };
    let coloured = document.text(Detail::Full, coloured);
    assert!(coloured.contains("\u{1b}[1m") && !coloured.contains("\u{1b}[2J"));
}

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
