//! A replay as text: what `iostep replay` prints at its end.

use iostep_model::printable;
use iostep_model::replay::{Threads, Timing};

use crate::replay::{Amounts, Lateness, Quantiles, Summary};
use crate::report::quantity::{bytes, count, duration, percent, seconds};
use crate::report::text::Style;
use crate::report::text::grid::grid;

/// System calls, differences and threads that are shown; the rest is in JSON.
const MOST_ROWS: usize = 20;
/// Columns and rows of the picture.
const COLUMNS: usize = 60;
const ROWS: usize = 10;

/// The whole result: what went wrong first.
pub fn render(summary: &Summary, title: &str, style: Style) -> String {
    let mut text: String = complaints(summary)
        .iter()
        .map(|complaint| style.alarm(complaint) + "\n")
        .collect();
    text.push_str(&format!("{}\n", style.bold(&printable(title))));
    for line in lines(summary) {
        text.push_str(&format!(" {line}\n"));
    }
    text.push_str(&lateness(summary, style));
    text.push_str(&calls(summary, style));
    text.push_str(&differences(summary, style));
    text.push_str(&skipped(summary, style));
    text.push_str(&threads(summary, style));
    text.push_str(&picture(summary, style));
    text
}

/// What makes the result less than it seems, a line each.
pub fn complaints(summary: &Summary) -> Vec<String> {
    let mut complaints = Vec::new();
    if summary.lost > 0 {
        let lost = count(summary.lost);
        complaints.push(format!(
            "LOST: the recorder lost {lost} events; the recording has holes"
        ));
    }
    if let Some(line) = summary.cut_at_line {
        complaints.push(format!(
            "CUT OFF: the recording stops at line {line} without its end"
        ));
    }
    if summary.interrupted {
        let (done, all) = (count(summary.totals.done), count(summary.totals.expected));
        complaints.push(format!("INTERRUPTED: {done} of {all} calls were issued"));
    }
    if summary.order_violations > 0 {
        let many = count(summary.order_violations);
        complaints.push(format!("OUT OF ORDER: {many} calls; please report this"));
    }
    complaints
}

/// How it was run, and the most important numbers, a line each.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
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

fn lateness(summary: &Summary, style: Style) -> String {
    let Lateness {
        waited,
        added,
        behind,
        held_by_order,
    } = summary.lateness;
    let names = [
        "calls that were issued",
        ">count",
        ">p50",
        ">p90",
        ">p99",
        ">max",
    ];
    let mut table = grid(style, &names);
    for (name, quantiles) in [
        ("on time: after they were due", waited),
        ("late already: after the call before", added),
        ("all: after they were due", behind),
    ] {
        let Some(Quantiles {
            count: many,
            p50_ns,
            p90_ns,
            p99_ns,
            max_ns,
            ..
        }) = quantiles
        else {
            continue;
        };
        let times = [p50_ns, p90_ns, p99_ns, max_ns].map(duration);
        let [p50, p90, p99, max] = times;
        table.row([name.into(), count(many), p50, p90, p99, max]);
    }
    let mut text = table.titled("Lateness");
    if held_by_order > 0 {
        let held = count(held_by_order);
        text.push_str(&format!(
            " {held} calls waited for calls of other threads\n"
        ));
    }
    text
}

fn calls(summary: &Summary, style: Style) -> String {
    let names = [
        "call",
        ">recorded",
        ">issued",
        ">time",
        ">p50",
        ">recorded p50",
        ">p99",
        ">recorded p99",
        ">max",
    ];
    let mut table = grid(style, &names);
    let or_dash = |quantiles: Option<Quantiles>, of: fn(Quantiles) -> u64| {
        quantiles.map_or_else(|| "-".to_owned(), |quantiles| duration(of(quantiles)))
    };
    for call in summary.calls.iter().take(MOST_ROWS) {
        table.row([
            call.syscall.clone(),
            count(call.calls),
            count(call.done),
            duration(call.sum_ns),
            or_dash(call.replayed, |q| q.p50_ns),
            or_dash(call.recorded, |q| q.p50_ns),
            or_dash(call.replayed, |q| q.p99_ns),
            or_dash(call.recorded, |q| q.p99_ns),
            or_dash(call.replayed, |q| q.max_ns),
        ]);
    }
    table.titled("System calls, by time") + &more(summary.calls.len(), "system calls")
}

fn differences(summary: &Summary, style: Style) -> String {
    let names = [
        "call",
        "recorded",
        "here",
        ">count",
        ">first at call",
        "why",
    ];
    let mut table = grid(style, &names);
    for difference in summary.differences.iter().take(MOST_ROWS) {
        table.row([
            difference.syscall.clone(),
            difference.recorded.clone(),
            difference.replayed.clone(),
            count(difference.count),
            count(difference.first_call),
            difference.reason.text().into(),
        ]);
    }
    table.titled("Results that differ") + &more(summary.differences.len(), "kinds of difference")
}

fn skipped(summary: &Summary, style: Style) -> String {
    let mut table = grid(style, &["reason", ">count"]);
    for skip in &summary.skipped {
        table.row([skip.reason.name().into(), count(skip.count)]);
    }
    table.titled("Calls that were not issued")
}

fn threads(summary: &Summary, style: Style) -> String {
    if summary.threads.len() < 2 {
        return String::new();
    }
    let names = [
        "thread",
        "name",
        ">calls",
        ">issued",
        ">differing",
        ">I/O time",
        ">recorded",
        ">most behind",
    ];
    let mut table = grid(style, &names);
    let mut busiest: Vec<_> = summary.threads.iter().filter(|t| t.calls > 0).collect();
    busiest.sort_by_key(|thread| std::cmp::Reverse(thread.replayed_io_ns));
    for thread in busiest.iter().take(MOST_ROWS) {
        table.row([
            format!("t{}", thread.thread),
            printable(&thread.name).into_owned(),
            count(thread.calls),
            count(thread.done),
            count(thread.differing),
            duration(thread.replayed_io_ns),
            duration(thread.recorded_io_ns),
            duration(thread.most_behind_ns),
        ]);
    }
    table.titled("Threads, by I/O time") + &more(busiest.len(), "threads")
}

fn more(all: usize, what: &str) -> String {
    match all.checked_sub(MOST_ROWS) {
        None | Some(0) => String::new(),
        Some(rest) => format!(" and {rest} more {what}\n"),
    }
}

/// Calls against time: the recording with dots, the replay with stars, both with a plus.
fn picture(summary: &Summary, style: Style) -> String {
    let points = &summary.progress;
    let ends = points
        .iter()
        .map(|point| point.recorded_ns.max(point.replayed_ns));
    let (Some(end_ns), Some(last)) = (ends.max().filter(|end| *end > 0), points.last()) else {
        return String::new();
    };
    let mut cells = vec![[' '; COLUMNS]; ROWS];
    let column = |ns: u64| (ns as u128 * (COLUMNS as u128 - 1) / u128::from(end_ns)) as usize;
    for point in points {
        let row = (point.calls * (ROWS as u64 - 1) / last.calls.max(1)) as usize;
        cells[row][column(point.recorded_ns)] = '.';
        let cell = &mut cells[row][column(point.replayed_ns)];
        *cell = if *cell == ' ' { '*' } else { '+' };
    }
    let title = style.bold("Calls over time: recorded '.', replayed '*', both '+'");
    let mut text = format!("\n{title}\n");
    for (row, line) in cells.iter().enumerate().rev() {
        let label = match row {
            0 => "0".to_owned(),
            row if row == ROWS - 1 => count(last.calls),
            _ => String::new(),
        };
        let line: String = line.iter().collect();
        text.push_str(format!(" {label:>11} |{line}").trim_end());
        text.push('\n');
    }
    text.push_str(&format!("              0 to {}\n", seconds(end_ns)));
    text
}
