//! The summary of a trace as a report: what `iostep trace` and `iostep report` print, and the tables
//! of its page.

mod about;
mod comparison;
mod latency;
mod owners;
mod requests;
#[cfg(test)]
mod tests;

use iostep_model::manifest::Check;
use iostep_model::printable;
use iostep_model::table::Trace;
use iostep_report::document::{Block, Cell, Detail, Document, Fact, Section, Table};
use iostep_report::picture::Picture;
use iostep_report::quantity::{self, bytes, count, percent};
use iostep_report::text::Style;

use crate::stats::amount::ratio;
use crate::stats::{Amount, PassthroughRow, Split, Stage, Summary, overview};

pub use comparison::document as comparison;

/// The line that comes first if a trace is not whole: `CHECK FAILED: lost 312 events; ...`.
pub fn complaint_of(check: &Check) -> Option<String> {
    let complaint = overview::complaint(check)?;
    Some(format!("CHECK FAILED: {}", printable(&complaint)))
}

/// What matters of a summary on a screen, or all of it. The first line is the failed self-check, if
/// it failed.
pub fn render(summary: &Summary, detail: Detail, style: Style) -> String {
    let mut text = document(summary, detail, None).text(detail, style);
    if detail == Detail::Brief && !summary.totals.is_empty() {
        text.push_str("--full has every table and row\n");
    }
    text
}

/// The page of `trace`, whose statistics are `summary`: about 16 bytes a request on top of 110 KiB.
pub fn page(trace: &Trace, summary: &Summary) -> String {
    document(summary, Detail::Page, Some(trace)).html()
}

/// A page has the trace itself, too.
pub(super) fn document(summary: &Summary, detail: Detail, trace: Option<&Trace>) -> Document {
    let overview = &summary.overview;
    let mut body = Section::default();
    body.alarms.extend(complaint_of(&overview.check));
    body.headline = headline(summary);
    body.push(Block::Facts(facts(summary)));
    if summary.totals.is_empty() {
        let duration = quantity::duration(overview.duration_ns);
        body.push(Block::Lines(vec![format!("no I/O in {duration}")]));
    }
    if let Some(trace) = trace {
        body.push(Block::Facts(about::facts(&trace.manifest)));
        body.push(Block::Totals(about::totals(summary)));
        body.push(Block::Picture(Picture::of(trace)));
    }
    body.push(Block::Table(sums(summary)));
    body.push_from(Detail::Full, Block::Table(requests::totals(summary)));
    body.push_from(
        Detail::Full,
        Block::Tables(requests::distributions(summary).into()),
    );
    if !summary.volumes.is_empty() {
        body.push(Block::Table(volumes(summary)));
    }
    body.push(Block::Table(owners::files(summary)));
    body.push(Block::Table(owners::processes(summary)));
    body.push(Block::Table(owners::sync_kinds(summary)));
    body.push_from(Detail::Full, Block::Table(owners::slowest_syncs(summary)));
    body.push(Block::Table(owners::joj(summary)));
    let latencies = summary.latencies.iter();
    body.push(Block::Table(match detail {
        Detail::Brief => requests::latencies(
            "Latency of the device, from issue to completion",
            latencies.filter(|latency| latency.stage == Stage::IssueToComplete),
            false,
        ),
        _ => requests::latencies("Latency", latencies, true),
    }));
    body.push(Block::Plots(latency::plots(&summary.latencies)));
    body.push_from(Detail::Full, Block::Table(requests::interrupts(summary)));
    let command = overview.command.iter();
    let title = command.fold(overview.device.clone(), |device, argv| {
        format!("{device}: {}", argv.join(" "))
    });
    Document {
        version: overview.iostep_version.clone(),
        title: Some(title),
        body,
    }
}

/// A direction of transfer, by name.
type Side = (&'static str, fn(&Split) -> Amount);
const WRITTEN: Side = ("written", |split| split.write);
const READ: Side = ("read", |split| split.read);

/// Bytes read and written, of what, and what journaling of journal took of them.
fn sums(summary: &Summary) -> Table {
    let all = summary.all();
    let layers: Vec<_> = summary
        .layers
        .iter()
        .filter(|layer| !layer.amounts.is_empty())
        .collect();
    let mut columns = vec!["".to_owned(), ">requests".into(), ">bytes".into()];
    columns.extend(layers.iter().map(|layer| format!(">{}", layer.of.name())));
    let sides = [WRITTEN, READ].into_iter();
    let sides = sides.map(|(name, side)| (name, side, side(&all)));
    let rows = sides
        .filter(|(.., sum)| sum.requests > 0)
        .map(|(name, side, sum)| {
            let mut row = vec![
                Cell::text(name),
                Cell::count(sum.requests),
                Cell::bytes(sum.bytes),
            ];
            row.extend(layers.iter().map(|layer| {
                let part = side(&layer.amounts).bytes;
                let share = ratio(part, sum.bytes).unwrap_or(0.0) * 100.0;
                Cell::text(format!("{} ({share:.0} %)", bytes(part)))
            }));
            row
        });
    let mut table = Table::new("", columns).rows(rows);
    if summary.barriers.flushes > 0 {
        let flushes = count(summary.barriers.flushes);
        table.lines.push(format!("flushes {flushes}"));
    }
    let joj = &summary.joj;
    if !joj.files.is_empty() {
        table.lines.push(format!(
            "journaling of journal {}: {} of data and journal",
            bytes(joj.joj_bytes),
            percent(joj.joj_share),
        ));
    }
    table
}

/// Where there are several filesystems: each, and what is in none.
fn volumes(summary: &Summary) -> Table {
    let columns = [
        "~device",
        "filesystem",
        "mounted at",
        "+reads",
        "+read",
        "+writes",
        "+written",
        "+data",
        "+journal",
        "+metadata",
        "+unknown",
        "+discarded",
        "+syncs",
    ];
    let rows = summary.volumes.iter().map(|row| {
        let or_none = |text: &Option<String>| Cell::text(text.as_deref().unwrap_or("-"));
        vec![
            Cell::text(row.name.as_deref().unwrap_or("in none of them")),
            or_none(&row.filesystem),
            or_none(&row.mount_point),
            Cell::count(row.amounts.read.requests),
            Cell::bytes(row.amounts.read.bytes),
            Cell::count(row.amounts.write.requests),
            Cell::bytes(row.amounts.write.bytes),
            Cell::bytes(row.data_bytes),
            Cell::bytes(row.journal_bytes),
            Cell::bytes(row.metadata_bytes),
            Cell::bytes(row.unknown_bytes),
            Cell::bytes(row.discarded_bytes),
            Cell::count(row.syncs),
        ]
    });
    Table::new("Filesystems", columns)
        .note("Layers are of bytes read and written.")
        .rows(rows)
}

fn headline(summary: &Summary) -> String {
    let overview = &summary.overview;
    format!(
        "{} {}, {}; kernel {}, {}; {}",
        overview.device,
        bytes(overview.device_bytes),
        overview.filesystem.as_deref().unwrap_or("no filesystem"),
        overview.kernel,
        overview.backend.name(),
        quantity::duration(overview.duration_ns),
    )
}

/// The command, and what a reader has to know before believing the numbers.
fn facts(summary: &Summary) -> Vec<Fact> {
    let overview = &summary.overview;
    let mut facts = Vec::new();
    if let Some(argv) = &overview.command {
        let status = match (overview.exit_status, overview.signal) {
            (_, Some(signal)) => format!("killed by signal {signal}"),
            (Some(status), None) => format!("exit status {status}"),
            (None, None) => "did not end".into(),
        };
        // Scripts given with `-c` may have lines, and many of them.
        let command = argv.join(" ");
        let words: Vec<&str> = command.split_whitespace().collect();
        let command = Fact::of("command", format!("{} ({status})", words.join(" ")));
        facts.push(command.that_gives_way());
    }
    if overview.passed {
        let compared = match overview.check.device {
            Some(_) => "no event lost, no sum disagrees",
            None => "no event lost; the device has no counters to compare with",
        };
        facts.push(match overview.check.unrecorded.is_empty() {
            true => Fact::of("check passed", compared),
            false => Fact::of(
                "check incomplete",
                "no event lost, but not all were recorded",
            ),
        });
    }
    let unrecorded = overview.check.unrecorded.iter();
    facts.extend(unrecorded.map(|what| Fact::of("not recorded", what.clone())));
    let notes = notes(summary).into_iter();
    facts.extend(notes.map(|note| Fact::of("note", note)));
    facts
}

fn notes(summary: &Summary) -> Vec<String> {
    let overview = &summary.overview;
    let mut notes = Vec::new();
    if overview.state == iostep_model::manifest::State::Recovered {
        notes.push("the recorder was killed; this is what it had written".to_owned());
    }
    if overview.failed_requests > 0 {
        let failed = count(overview.failed_requests);
        notes.push(format!("requests that the device failed: {failed}"));
    }
    if overview.unfinished_requests > 0 {
        let open = count(overview.unfinished_requests);
        notes.push(format!("requests under way at the end: {open}"));
    }
    if overview.check.late_completions > 0 {
        let late = count(overview.check.late_completions);
        notes.push(format!(
            "completions told late, whose latency is an upper bound: {late}"
        ));
    }
    if overview.check.unseen_calls > 0 {
        let unseen = count(overview.check.unseen_calls);
        notes.push(format!(
            "system calls that were not looked at; whether a sync call was among them, only its \
             filesystem told: {unseen}"
        ));
    }
    notes.extend(overview.check.notes.iter().cloned());
    notes.extend(passthrough(&summary.passthrough));
    if summary.dirtied_by_inode_bytes > 0 {
        let written = summary.all().write.bytes;
        notes.push(format!(
            "written bytes that are the file's last writer's, for want of the page's: {} ({})",
            bytes(summary.dirtied_by_inode_bytes),
            percent(ratio(summary.dirtied_by_inode_bytes, written)),
        ));
    }
    if !summary.tracer.is_empty() {
        notes.push(format!(
            "the tracer's own I/O, counted nowhere below: {} read, {} written",
            bytes(summary.tracer.read.bytes),
            bytes(summary.tracer.write.bytes),
        ));
    }
    notes
}

/// How many threads a note names.
const NAMED: usize = 3;

/// That there were commands past the block layer, and whose.
fn passthrough(rows: &[PassthroughRow]) -> Option<String> {
    let [mut read, mut write] = [Amount::default(); 2];
    for row in rows {
        for (sum, part) in [(&mut read, row.read), (&mut write, row.write)] {
            sum.requests += part.requests;
            sum.bytes += part.bytes;
        }
    }
    let requests = read.requests + write.requests;
    if requests == 0 {
        return None;
    }
    let name = |row: &PassthroughRow| row.process.clone().unwrap_or_else(|| "unknown".into());
    let mut names: Vec<String> = rows.iter().take(NAMED).map(name).collect();
    if rows.len() > NAMED {
        names.push(format!("{} more", rows.len() - NAMED));
    }
    Some(format!(
        "passthrough requests (SG_IO, NVMe ioctls, the driver's own), which name no sectors and are in \
         no sum of reads and writes: {}; {} read, {} written; by {}",
        count(requests),
        bytes(read.bytes),
        bytes(write.bytes),
        names.join(", "),
    ))
}
