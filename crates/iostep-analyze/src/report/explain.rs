//! What transactions cost, as a report.

use iostep_model::table::Trace;
use iostep_report::document::{Block, Cell, Detail, Document, Fact, Section, Table};
use iostep_report::quantity::{bytes, count, duration, plural};

use crate::explain::{Cost, Explanation, Row, RunCost, TransactionCost};
use crate::report::trace;
use crate::stats::Summary;

/// Statements, or lines of a time line, that are shown.
const LINES: usize = 24;
/// Transactions of a run that are shown one by one; the rest is in the sums.
const TRANSACTIONS: usize = 20;

/// The report of an explanation. What the self-check found comes first.
pub fn document(explanation: &Explanation) -> Document {
    let mut body = Section {
        alarms: alarms(explanation),
        ..Section::default()
    };
    for run in &explanation.runs {
        body.push(Block::Section(of_run(run, explanation)));
    }
    if explanation.comparison.len() + explanation.not_run.len() > 1 {
        body.push(Block::Table(side_by_side(explanation)));
    }
    body.push(advice(explanation));
    Document::of(body)
}

/// The page of an explanation: what the modes cost, then the recording that says so.
pub fn page(explanation: &Explanation, trace: &Trace, summary: &Summary) -> String {
    let mut page = trace::document(summary, Detail::Page, Some(trace));
    let mut body = Section {
        alarms: alarms(explanation),
        headline: page.body.headline,
        ..Section::default()
    };
    body.push(Block::Table(side_by_side(explanation)));
    body.push(advice(explanation));
    for run in &explanation.runs {
        body.push(Block::Section(Section {
            folded: true,
            ..of_run(run, explanation)
        }));
    }
    body.blocks.append(&mut page.body.blocks);
    page.body = body;
    page.html()
}

/// The journal modes side by side alone.
pub fn comparison(title: String, explanation: &Explanation) -> Document {
    let mut body = Section {
        alarms: alarms(explanation),
        ..Section::new(title)
    };
    body.push(Block::Table(side_by_side(explanation)));
    body.push(advice(explanation));
    Document::of(body)
}

/// What makes every number doubtful; empty if nothing does.
pub fn alarms(explanation: &Explanation) -> Vec<String> {
    let lost = match explanation.lost_events {
        0 => None,
        lost => Some(format!(
            "lost {}: the numbers below are too low",
            plural(lost, "event")
        )),
    };
    let differences = explanation.differences.iter();
    let failed = differences.map(|difference| format!("self-check failed: {difference}"));
    lost.into_iter().chain(failed).collect()
}

fn advice(explanation: &Explanation) -> Block {
    let mut section = Section::default();
    let advice = Fact::of("advice", &explanation.advice);
    section.push(Block::Facts(vec![advice]));
    Block::Section(section)
}

fn side_by_side(explanation: &Explanation) -> Table {
    let rows = &explanation.comparison;
    let read = rows.iter().any(|row| row.read_bytes > 0);
    let paper = rows.iter().any(|row| row.paper.is_some());
    let mut columns = vec![
        "mode", ">data", ">journal", ">JOJ", ">total", ">writes", ">flushes", ">later", ">close",
    ];
    columns.extend(read.then_some(">read"));
    columns.extend(paper.then_some("paper, KB"));
    let title = format!(
        "Written under each journal mode ({}, Linux {})",
        explanation.filesystem, explanation.kernel
    );
    let rows = rows.iter().map(|row| cells(row, read, paper));
    let mut table = Table::new(title, columns).rows(rows);
    let not_run = explanation.not_run.iter();
    table.lines = not_run
        .map(|mode| format!("{} not here: {}", mode.mode, mode.reason))
        .collect();
    table.lines.extend([
        "data: outside the filesystem's journal; JOJ: filesystem journal for syncs of SQLite's own \
         journal;"
            .to_owned(),
        "later: written back when the filesystem was settled; close: checkpoint of a WAL".to_owned(),
    ]);
    if paper {
        table.lines.extend([
            "paper: data / journal / JOJ / total of ATC'15 table 1 (Galaxy S5, ext4); other kernel \
             and SQLite,"
                .to_owned(),
            "so compare the shape".to_owned(),
        ]);
    }
    table
}

fn cells(row: &Row, read: bool, paper: bool) -> Vec<Cell> {
    let mut cells = vec![
        Cell::text(&row.mode),
        Cell::bytes(row.data_bytes),
        Cell::bytes(row.journal_bytes),
        Cell::bytes(row.joj_bytes),
        Cell::bytes(row.total_bytes),
        Cell::count(row.writes),
        Cell::count(row.flushes),
        Cell::bytes(row.later_bytes),
        Cell::bytes(row.close_bytes),
    ];
    cells.extend(read.then(|| Cell::bytes(row.read_bytes)));
    cells.extend(paper.then(|| {
        Cell::text(row.paper.map_or_else(
            || "-".to_owned(),
            |p| {
                format!(
                    "{} / {} / {} / {}",
                    p.data_kb, p.journal_kb, p.joj_kb, p.total_kb
                )
            },
        ))
    }));
    cells
}

fn of_run(run: &RunCost, explanation: &Explanation) -> Section {
    let mut section = Section::new(format!(
        "journal mode {}, synchronous {}",
        run.mode, run.synchronous
    ));
    for (number, transaction) in (1..).zip(&run.transactions).take(TRANSACTIONS) {
        let of = of_transaction(number, transaction, explanation);
        section.push(Block::Section(of));
    }
    let mut sums = Section::default();
    let mut lines = Vec::new();
    let hidden = run.transactions.len().saturating_sub(TRANSACTIONS);
    if hidden > 0 {
        lines.push(format!(
            "and {hidden} more transactions; --json has them all"
        ));
    }
    if run.transactions.len() > 1 {
        lines.push(format!("all transactions: {}", in_words(&run.total())));
    }
    if run.close.bytes > 0 {
        lines.push(format!("closing the database: {}", in_words(&run.close)));
    }
    sums.push(Block::Lines(lines));
    section.push(Block::Section(sums));
    section
}

fn of_transaction(
    number: usize,
    transaction: &TransactionCost,
    explanation: &Explanation,
) -> Section {
    let asked = &transaction.asked;
    let mut section = Section::new(format!("transaction {number} ({})", asked.outcome));
    let mut lines: Vec<String> = asked.statements.iter().take(LINES).cloned().collect();
    let hidden = asked.statements.len().saturating_sub(LINES);
    if hidden > 0 {
        lines.push(format!("... {hidden} more statements"));
    }
    let user = match asked.user_bytes {
        Some(bytes) => plural(bytes, "byte"),
        None => "bytes that SQLite does not tell".into(),
    };
    let (rows, took) = (plural(asked.rows, "row"), duration(asked.elapsed_ns));
    lines.push(format!("asked: {rows}, {user}; took {took}"));
    lines.push(format!("cost: {}", in_words(&transaction.cost)));
    if let Some(joj) = transaction.joj_share {
        let times = transaction.amplification;
        let times = times.map(|times| format!("amplification {times:.0}x; "));
        let times = times.unwrap_or_default();
        lines.push(format!(
            "{times}JOJ {:.0} % of the bytes written",
            joj * 100.0
        ));
    }
    if transaction.later.bytes > 0 {
        lines.push(format!("later: {}", in_words(&transaction.later)));
    }
    if !explanation.cold_cache && transaction.cost.is_nothing() {
        lines.push(
            "no I/O: what it read was in memory; --cold-cache has it read from the device".into(),
        );
    }
    section.push(Block::Lines(lines));
    let parts = transaction.cost.parts.iter().map(|part| {
        let name = part.part.name(&explanation.filesystem);
        vec![
            Cell::text(name),
            Cell::bytes(part.bytes),
            Cell::count(part.writes),
        ]
    });
    let columns = ["written", ">bytes", ">writes"];
    section.push(Block::Table(Table::new("", columns).in_order().rows(parts)));
    let timeline = transaction.timeline.iter().map(|line| {
        vec![
            Cell::duration(line.at_ns),
            Cell::duration(line.took_ns),
            Cell::text(&line.text),
        ]
    });
    let timeline = Table::new("What happened", [">at", ">took", ""]).rows(timeline);
    section.push(Block::Table(timeline.in_order().at_most(LINES)));
    section
}

/// `60 KiB in 5 writes, 4 sync calls, 4 flushes, 1 with FUA`.
fn in_words(cost: &Cost) -> String {
    let flushes = match cost.flushes {
        1 => "1 flush".to_owned(),
        flushes => format!("{} flushes", count(flushes)),
    };
    let mut text = format!(
        "{} in {}, {}, {flushes}",
        bytes(cost.bytes),
        plural(cost.writes, "write"),
        plural(cost.syncs, "sync call"),
    );
    if cost.fua_writes > 0 {
        text += &format!(", {} with FUA", count(cost.fua_writes));
    }
    if cost.read_bytes > 0 {
        let reads = plural(cost.reads, "read");
        text += &format!("; {} read in {reads}", bytes(cost.read_bytes));
    }
    if cost.background_bytes > 0 {
        let others = bytes(cost.background_bytes);
        text += &format!("; others wrote {others} meanwhile");
    }
    text
}
