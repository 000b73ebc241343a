//! An explanation for people.

use std::fmt::Write;

use iostep_model::printable;

use super::{Cost, Explanation, Row, RunCost, TransactionCost};

/// Lines of a time line that are shown; the rest is counted.
const LINES: usize = 24;
/// Transactions of a run that are shown one by one; the rest is in the sums.
const TRANSACTIONS: usize = 20;

/// The whole explanation, ending with a line break. What the self-check found comes first.
pub fn render(explanation: &Explanation) -> String {
    let mut text = warnings(explanation);
    for run in &explanation.runs {
        text += &render_run(run, explanation);
    }
    if explanation.comparison.len() + explanation.not_run.len() > 1 {
        text += &render_comparison(explanation);
    }
    let _ = writeln!(text, "advice: {}", explanation.advice);
    text
}

/// The table alone, with its legend.
pub fn render_comparison(explanation: &Explanation) -> String {
    let columns = Columns {
        read: explanation.comparison.iter().any(|row| row.read_bytes > 0),
        paper: explanation.comparison.iter().any(|row| row.paper.is_some()),
    };
    let mut text = format!(
        "KB written under each journal mode ({}, Linux {})\n\n{}\n",
        printable(&explanation.filesystem),
        printable(&explanation.kernel),
        header(columns)
    );
    for row in &explanation.comparison {
        let _ = writeln!(text, "{}", render_row(row, columns));
    }
    for row in &explanation.not_run {
        let _ = writeln!(text, "{:<9} not here: {}", row.mode, printable(&row.reason));
    }
    text += "\n  data: outside the filesystem's journal; JOJ: filesystem journal for syncs of SQLite's own \
             journal;\n  later: written back when the filesystem was settled; close: checkpoint of a WAL\n";
    if columns.paper {
        text += "  paper: data / journal / JOJ / total of ATC'15 table 1 (Galaxy S5, ext4); other kernel \
                 and SQLite,\n  so compare the shape\n";
    }
    text.push('\n');
    text
}

/// What makes every number below doubtful; empty if nothing does.
pub fn warnings(explanation: &Explanation) -> String {
    let mut text = String::new();
    if explanation.lost_events > 0 {
        let _ = writeln!(
            text,
            "lost {} events: the numbers below are too low",
            explanation.lost_events
        );
    }
    for difference in &explanation.differences {
        let _ = writeln!(text, "self-check failed: {}", printable(difference));
    }
    text
}

/// Columns that a table can lack.
#[derive(Clone, Copy)]
struct Columns {
    read: bool,
    paper: bool,
}

fn header(columns: Columns) -> String {
    let mut text = format!(
        "{:<9} {:>7} {:>8} {:>7} {:>7} {:>7} {:>8} {:>7} {:>7}",
        "mode", "data", "journal", "JOJ", "total", "writes", "flushes", "later", "close"
    );
    if columns.read {
        text += &format!(" {:>7}", "read");
    }
    if columns.paper {
        text += "   paper";
    }
    text
}

fn render_row(row: &Row, columns: Columns) -> String {
    let mut text = format!(
        "{:<9} {:>7} {:>8} {:>7} {:>7} {:>7} {:>8} {:>7} {:>7}",
        row.mode,
        kb(row.data_bytes),
        kb(row.journal_bytes),
        kb(row.joj_bytes),
        kb(row.total_bytes),
        row.writes,
        row.flushes,
        kb(row.later_bytes),
        kb(row.close_bytes),
    );
    if columns.read {
        let _ = write!(text, " {:>7}", kb(row.read_bytes));
    }
    match row.paper {
        Some(p) => {
            let _ = write!(
                text,
                "   {} / {} / {} / {}",
                p.data_kb, p.journal_kb, p.joj_kb, p.total_kb
            );
        }
        None if columns.paper => text += "   -",
        None => {}
    }
    text
}

fn render_run(run: &RunCost, explanation: &Explanation) -> String {
    let mut text = format!(
        "journal mode {}, synchronous {}\n",
        run.mode, run.synchronous
    );
    for (index, transaction) in run.transactions.iter().take(TRANSACTIONS).enumerate() {
        let _ = writeln!(
            text,
            "\ntransaction {} ({})",
            index + 1,
            transaction.asked.outcome
        );
        text += &render_transaction(transaction, &explanation.filesystem);
        if !explanation.cold_cache && transaction.cost.is_nothing() {
            text +=
                "  no I/O: what it read was in memory; --cold-cache has it read from the device\n";
        }
    }
    let hidden = run.transactions.len().saturating_sub(TRANSACTIONS);
    if hidden > 0 {
        let _ = writeln!(
            text,
            "\nand {hidden} more transactions; --json has them all"
        );
    }
    if run.transactions.len() > 1 {
        let total = run.total();
        let _ = writeln!(text, "\nall transactions: {}", sums(&total));
    }
    if run.close.bytes > 0 {
        let _ = writeln!(text, "\nclosing the database: {}", sums(&run.close));
    }
    text.push('\n');
    text
}

fn render_transaction(transaction: &TransactionCost, filesystem: &str) -> String {
    let mut text = String::new();
    let asked = &transaction.asked;
    for statement in asked.statements.iter().take(LINES) {
        let _ = writeln!(text, "  {}", printable(statement));
    }
    let hidden = asked.statements.len().saturating_sub(LINES);
    if hidden > 0 {
        let _ = writeln!(text, "  ... {hidden} more statements");
    }
    let _ = writeln!(
        text,
        "  asked: {}, {}; took {}",
        plural(asked.rows, "row"),
        asked
            .user_bytes
            .map_or("bytes that SQLite does not tell".into(), |bytes| plural(
                bytes, "byte"
            )),
        time(asked.elapsed_ns)
    );
    let _ = writeln!(text, "  cost:  {}", sums(&transaction.cost));
    for row in &transaction.cost.parts {
        let _ = writeln!(
            text,
            "    {:<36} {:>9} in {}",
            row.part.name(filesystem),
            size(row.bytes),
            plural(row.writes, "write")
        );
    }
    if let Some(joj) = transaction.joj_share {
        let amplification = transaction
            .amplification
            .map(|times| format!("amplification {times:.0}x; "));
        let _ = writeln!(
            text,
            "  {}JOJ {:.0} % of the bytes written",
            amplification.unwrap_or_default(),
            joj * 100.0
        );
    }
    if transaction.later.bytes > 0 {
        let _ = writeln!(text, "  later: {}", sums(&transaction.later));
    }
    text + &render_timeline(transaction)
}

fn render_timeline(transaction: &TransactionCost) -> String {
    let mut text = String::new();
    for line in transaction.timeline.iter().take(LINES) {
        let took = line
            .took_ns
            .map(|ns| format!(" [{}]", time(ns)))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "  {:>10}  {}{took}",
            time(line.at_ns),
            printable(&line.text)
        );
    }
    let hidden = transaction.timeline.len().saturating_sub(LINES);
    if hidden > 0 {
        let _ = writeln!(text, "  ... {hidden} more; --json has them all");
    }
    text
}

fn sums(cost: &Cost) -> String {
    let mut text = format!(
        "{} in {}, {}, {}",
        size(cost.bytes),
        plural(cost.writes, "write"),
        plural(cost.syncs, "sync call"),
        plural_of(cost.flushes, "flush", "flushes"),
    );
    if cost.fua_writes > 0 {
        let _ = write!(text, ", {} with FUA", cost.fua_writes);
    }
    if cost.read_bytes > 0 {
        let _ = write!(
            text,
            "; {} read in {}",
            size(cost.read_bytes),
            plural(cost.reads, "read")
        );
    }
    if cost.background_bytes > 0 {
        let _ = write!(
            text,
            "; others wrote {} meanwhile",
            size(cost.background_bytes)
        );
    }
    text
}

/// Bytes as KB of 1024, as the papers have them.
pub(super) fn size(bytes: u64) -> String {
    format!("{} KB", kb(bytes))
}

fn kb(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) {
        (bytes / 1024).to_string()
    } else {
        format!("{:.1}", bytes as f64 / 1024.0)
    }
}

fn time(ns: u64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}

fn plural(count: u64, what: &str) -> String {
    plural_of(count, what, &format!("{what}s"))
}

fn plural_of(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
