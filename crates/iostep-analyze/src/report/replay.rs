//! A replay as a report: what `iostep replay` prints at its end, and its page.

mod plots;
#[cfg(test)]
mod tests;

use iostep_model::replay::{Threads, Timing};
use iostep_report::document::{Block, Cell, Column, Detail, Document, Section, Table};
use iostep_report::plot::drawing;
use iostep_report::quantity::Show as _;
use iostep_report::quantity::{bytes, count, duration, percent, seconds};

use super::disk;
use super::syscalls::holes;
use crate::replay::{self, Amounts, Quantiles, Row, Summary, Target};

/// The report of a result. Of several runs of a target, what went wrong is told of each, and the
/// details are the last one's.
pub fn document(result: &replay::Document) -> Document {
    let mut targets: Vec<Section> = result
        .targets
        .iter()
        .filter_map(|target| section(result, target))
        .collect();
    let mut body = match targets.len() {
        1 => targets.remove(0),
        _ => Section::new(format!("replay of {}", result.recording.path)),
    };
    let of_target = std::mem::take(&mut body.blocks);
    body.push_from(Detail::Page, Block::Lines(recording(result)));
    body.push_from(Detail::Page, Block::Plots(plots::of(result)));
    let runs = result.targets.iter().map(|target| target.runs.len());
    if runs.sum::<usize>() > 1 || !result.comparison.block.is_empty() {
        let tables = side_by_side(result).map(Block::Table);
        body.push(Block::Together(tables.into()));
    }
    body.blocks.extend(of_target);
    body.blocks.extend(
        targets
            .into_iter()
            .map(|target| (Detail::Brief, Block::Section(target))),
    );
    Document {
        version: result.iostep_version.clone(),
        title: None,
        body,
    }
}

/// What makes the result less than it seems, a line each.
fn complaints(summary: &Summary) -> Vec<String> {
    let mut complaints = holes("recording", summary.lost, summary.cut_at_line);
    if summary.interrupted {
        let (done, all) = (count(summary.totals.done), count(summary.totals.expected));
        complaints.push(format!("INTERRUPTED: {done} of {all} calls were issued"));
    }
    let lost = summary.totals.not_issued;
    if !summary.interrupted && summary.lost_bytes() > 0 {
        complaints.push(format!(
            "LOST: calls that read {} and wrote {} in the recording could not be issued",
            bytes(lost.read_bytes),
            bytes(lost.written_bytes)
        ));
    }
    if summary.order_violations > 0 {
        let many = count(summary.order_violations);
        complaints.push(format!("OUT OF ORDER: {many} calls; please report this"));
    }
    complaints
}

/// A target with its filesystem.
fn name(target: &Target) -> String {
    let kind = target.filesystem.as_deref().unwrap_or("?");
    format!("{} ({kind})", target.directory)
}

fn recording(result: &replay::Document) -> Vec<String> {
    let recording = &result.recording;
    let (calls, threads) = (count(recording.calls), count(recording.threads));
    let mut lines = vec![
        format!(
            "{calls} calls of {threads} threads, recorded by {}",
            recording.recorder
        ),
        recording.machine.clone(),
        recording.command.join(" "),
    ];
    lines.retain(|line| !line.is_empty());
    let version = &result.iostep_version;
    lines.push(format!("{} (iostep {version})", result.arguments.join(" ")));
    lines
}

fn section(result: &replay::Document, target: &Target) -> Option<Section> {
    let (last, earlier) = target.runs.split_last()?;
    let summary = &last.summary;
    let mut section = Section::new(format!("{} in {}", result.recording.path, name(target)));
    if !earlier.is_empty() {
        let runs = target.runs.len();
        section.title += &format!(", run {runs} of {runs}");
    }
    for (number, run) in (1..).zip(earlier) {
        let complaints = complaints(&run.summary).into_iter();
        let complaints =
            complaints.map(|line| format!("{}, run {number}: {line}", target.directory));
        section.alarms.extend(complaints);
    }
    if last.block.as_ref().is_some_and(|block| !block.whole) {
        let line = "LOST: the recording of block I/O has holes; its numbers are too small";
        section.alarms.push(line.to_owned());
    }
    section.alarms.extend(complaints(summary));
    section.push(Block::Lines([place(target), lines(summary)].concat()));
    let tables = [lateness, calls, differences, skipped, threads];
    tables
        .iter()
        .for_each(|table| section.push(Block::Table(table(summary))));
    section.push(picture(summary));
    Some(section)
}

/// What lies below a target, a line each.
fn place(target: &Target) -> Vec<String> {
    let device = target.device.as_ref().map(disk::device);
    let line = |name: &str, text: Option<String>| Some(format!("{name:<11} {}", text?));
    let lines = [
        line("device", device),
        line("disk", disk::line(&target.disks)),
        line("health", disk::health(&target.disks)),
    ];
    lines.into_iter().flatten().collect()
}

/// How it was run, and the most important numbers, a line each.
fn lines(summary: &Summary) -> Vec<String> {
    let totals = &summary.totals;
    let settings = &summary.settings;
    let pace = match settings.timing {
        Timing::Fast => "as fast as the order allows".to_owned(),
        Timing::Original => format!("at the recorded times, {}x", settings.speed),
        Timing::Think => format!("with the recorded pauses, {}x", settings.speed),
    };
    let who = match settings.threads {
        Threads::Original => format!("{} threads", count(summary.threads.len() as u64)),
        Threads::Merge => "one thread".to_owned(),
    };
    let share = |part: u64| percent(Some(part as f64 / totals.expected.max(1) as f64));
    let prepared = &summary.prepared;
    vec![
        format!("timing      {pace}, {who}"),
        format!(
            "made before {} files, {} directories, {} links, {}",
            count(prepared.files),
            count(prepared.directories),
            count(prepared.links),
            bytes(prepared.bytes)
        ),
        format!(
            "run time    {} (recorded {})",
            seconds(summary.replayed_ns),
            seconds(summary.recorded_ns)
        ),
        format!(
            "calls       {} of {} issued ({}), {} with the recorded result, {} with another, {} unknown",
            count(totals.done),
            count(totals.expected),
            share(totals.done),
            count(totals.same),
            count(totals.differing),
            count(totals.unknown)
        ),
        format!(
            "I/O time    {} (the same calls recorded {})",
            duration(totals.replayed_io_ns),
            duration(totals.recorded_io_ns)
        ),
        format!("bytes       {}", amounts(totals.replayed, totals.recorded)),
        format!(
            "CPU         {} in all, {} beyond the calls ({} of a core); others used {}",
            duration(summary.cpu_ns),
            duration(summary.own_cpu_ns),
            percent(Some(
                summary.own_cpu_ns as f64 / summary.replayed_ns.max(1) as f64
            )),
            percent(Some(summary.others_cpu))
        ),
        format!(
            "order       {} calls out of order",
            count(summary.order_violations)
        ),
    ]
}

fn amounts(replayed: Amounts, recorded: Amounts) -> String {
    format!(
        "{} read (recorded {}), {} written (recorded {})",
        bytes(replayed.read_bytes),
        bytes(recorded.read_bytes),
        bytes(replayed.written_bytes),
        bytes(recorded.written_bytes)
    )
}

/// How late calls were issued: which ones, and how late.
fn latenesses(summary: &Summary) -> impl Iterator<Item = (&'static str, Quantiles)> {
    let lateness = &summary.lateness;
    let all = [
        ("on time: after they were due", lateness.waited),
        ("late already: after the call before", lateness.added),
        ("all: after they were due", lateness.behind),
    ];
    all.into_iter()
        .filter_map(|(name, quantiles)| Some((name, quantiles?)))
}

fn lateness(summary: &Summary) -> Table {
    let rows = latenesses(summary).map(|(name, of)| {
        let mut cells = vec![Cell::text(name), Cell::count(of.count)];
        cells.extend([of.p50_ns, of.p90_ns, of.p99_ns, of.max_ns].map(Cell::duration));
        cells
    });
    let columns = [
        "calls that were issued",
        ">count",
        ">p50",
        ">p90",
        ">p99",
        ">max",
    ];
    let mut table = Table::new("Lateness", columns).rows(rows);
    let held = summary.lateness.held_by_order;
    if held > 0 {
        let held = count(held);
        table
            .lines
            .push(format!("{held} calls waited for calls of other threads"));
    }
    table.in_order()
}

fn calls(summary: &Summary) -> Table {
    let columns = [
        "call",
        "+recorded",
        "+issued",
        "+time",
        ">p50",
        ">recorded p50",
        ">p90",
        ">recorded p90",
        ">p99",
        ">recorded p99",
        ">max",
        ">recorded max",
    ];
    let rows = summary.calls.iter().map(|call| {
        let mut cells = vec![
            Cell::text(&call.syscall),
            Cell::count(call.calls),
            Cell::count(call.done),
            Cell::duration(call.sum_ns),
        ];
        let quantiles: [fn(Quantiles) -> u64; 4] =
            [|q| q.p50_ns, |q| q.p90_ns, |q| q.p99_ns, |q| q.max_ns];
        for of in quantiles {
            cells.extend([call.replayed, call.recorded].map(|q| Cell::duration(q.map(of))));
        }
        cells
    });
    Table::new("System calls, by time", columns)
        .note("How long they took here, and beside it how long in the recording.")
        .from(Detail::Page, &["p90", "recorded p90", "recorded max"])
        .rows(rows)
        .long("system calls")
}

fn differences(summary: &Summary) -> Table {
    let columns = [
        "call",
        "recorded",
        "here",
        "+count",
        ">first at call",
        "why",
    ];
    let rows = summary.differences.iter().map(|difference| {
        vec![
            Cell::text(&difference.syscall),
            Cell::text(&difference.recorded),
            Cell::text(&difference.replayed),
            Cell::count(difference.count),
            Cell::count(difference.first_call),
            Cell::text(difference.reason.text()),
        ]
    });
    Table::new("Results that differ", columns)
        .rows(rows)
        .long("kinds of difference")
}

fn skipped(summary: &Summary) -> Table {
    let rows = summary
        .skipped
        .iter()
        .map(|skip| vec![Cell::text(skip.reason.name()), Cell::count(skip.count)]);
    Table::new("Calls that were not issued", ["reason", ">count"]).rows(rows)
}

/// Nothing for one thread.
fn threads(summary: &Summary) -> Table {
    let columns = [
        "thread",
        "name",
        "+calls",
        "+issued",
        "+differing",
        "+I/O time",
        "+recorded",
        ">most behind",
    ];
    let mut busiest: Vec<_> = summary.threads.iter().filter(|t| t.calls > 0).collect();
    busiest.sort_by_key(|thread| std::cmp::Reverse(thread.replayed_io_ns));
    if summary.threads.len() < 2 {
        busiest.clear();
    }
    let rows = busiest.into_iter().map(|thread| {
        vec![
            Cell::text(format!("t{}", thread.thread)),
            Cell::text(&thread.name),
            Cell::count(thread.calls),
            Cell::count(thread.done),
            Cell::count(thread.differing),
            Cell::duration(thread.replayed_io_ns),
            Cell::duration(thread.recorded_io_ns),
            Cell::duration(thread.most_behind_ns),
        ]
    });
    Table::new("Threads, by I/O time", columns)
        .rows(rows)
        .long("threads")
}

/// Calls against time.
fn picture(summary: &Summary) -> Block {
    let points = summary.progress.iter();
    let points: Vec<_> = points
        .map(|point| (point.calls, [point.recorded_ns, point.replayed_ns]))
        .collect();
    Block::Drawing(
        "Calls over time: recorded '.', replayed '*', both '+'".to_owned(),
        drawing::courses(&points, count, seconds).unwrap_or_default(),
    )
}

/// A column for each target.
fn side_by_side(result: &replay::Document) -> [Table; 3] {
    let runs = result.targets.iter().map(|target| target.runs.len());
    let title = match runs.max().unwrap_or(0) {
        0 | 1 => "Side by side".to_owned(),
        most => format!("Side by side: medians of {most} runs (least to greatest)"),
    };
    let comparison = &result.comparison;
    let block = "Block I/O until everything was on the device";
    let table = |title: &str, rows: &[Row]| {
        let targets = result
            .targets
            .iter()
            .map(|target| format!(">{}", name(target)));
        let mut table = Table::new(title, targets)
            .in_order()
            .rows(rows.iter().map(cells));
        table.columns.insert(0, Column::of(""));
        table
    };
    [
        table(&title, &comparison.totals),
        table("Time in system calls", &comparison.calls).long("system calls"),
        table(block, &comparison.block),
    ]
}

/// Values, with their spread if they have one.
fn cells(row: &Row) -> Vec<Cell> {
    let cell = |value: &Option<replay::Spread>| {
        let median = Cell::number(row.unit, value.map(|spread| spread.median as f64));
        match value.filter(|spread| spread.least != spread.greatest) {
            None => median,
            Some(spread) => {
                let ends = [spread.least, spread.greatest].map(|end| row.unit.show(end as f64));
                let text = format!("{} ({} to {})", median.text, ends[0], ends[1]);
                median.saying(text)
            }
        }
    };
    let name = std::iter::once(Cell::text(&row.name));
    name.chain(row.values.iter().map(cell)).collect()
}
