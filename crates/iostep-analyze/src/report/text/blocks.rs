//! Tables about requests, whoever's they are.

use iostep_model::printable;
use iostep_model::table::Phase;

use super::Style;
use super::grid::{Grid, grid};
use crate::report::quantity::{bytes, count, duration, percent};
use crate::stats::amount::ratio;
use crate::stats::{Heat, Latency, Mode, Order, Percentiles, Share, Split, Summary};

/// Lines of `/proc/interrupts` that are shown.
const INTERRUPTS_SHOWN: usize = 5;

pub(super) fn totals(summary: &Summary, style: Style) -> String {
    let mut table = grid(style, &["phase", "operation", ">requests", ">bytes"]);
    for total in &summary.totals {
        table.row([
            phase_name(total.phase),
            total.operation.name().into(),
            count(total.amount.requests),
            bytes(total.amount.bytes),
        ]);
    }
    let mut text = table.titled("Requests");
    let barriers = summary.barriers;
    if barriers.flushes + barriers.preflush_writes + barriers.fua_writes > 0 {
        text.push_str(&format!(
            " flushes {}; writes that ask for a flush first {}, forced to the medium (FUA) {}\n",
            count(barriers.flushes),
            count(barriers.preflush_writes),
            count(barriers.fua_writes),
        ));
    }
    text
}

/// The phases that the traced command did not make are marked.
fn phase_name(phase: Phase) -> String {
    match phase {
        Phase::Run => phase.name().into(),
        Phase::After => "* after the command".into(),
        Phase::Settle => "* settling".into(),
    }
}

/// A table of one distribution; the shares are of all that is read, or written.
struct Distribution {
    table: Grid,
    all: Split,
}

impl Distribution {
    fn new(summary: &Summary, style: Style, name: &str) -> Distribution {
        let names = [
            name,
            ">reads",
            ">read",
            ">of read",
            ">writes",
            ">written",
            ">of written",
        ];
        Distribution {
            table: grid(style, &names),
            all: summary.all(),
        }
    }

    fn row(&mut self, name: String, amounts: &Split) {
        let (read, write) = (amounts.read, amounts.write);
        self.table.row([
            name,
            count(read.requests),
            bytes(read.bytes),
            percent(ratio(read.bytes, self.all.read.bytes)),
            count(write.requests),
            bytes(write.bytes),
            percent(ratio(write.bytes, self.all.write.bytes)),
        ]);
    }

    fn rows<K: Copy>(&mut self, shares: &[Share<K>], name: impl Fn(K) -> String) {
        for share in shares.iter().filter(|share| !share.amounts.is_empty()) {
            self.row(name(share.of), &share.amounts);
        }
    }
}

pub(super) fn layers(summary: &Summary, style: Style) -> String {
    let mut table = Distribution::new(summary, style, "layer, class");
    for layer in summary
        .layers
        .iter()
        .filter(|layer| !layer.amounts.is_empty())
    {
        table.row(layer.of.name().into(), &layer.amounts);
        let classes = summary
            .classes
            .iter()
            .filter(|class| class.of.layer() == layer.of);
        for class in classes {
            table.row(format!("  {}", class.of.name()), &class.amounts);
        }
    }
    table.table.titled("What the blocks are")
}

pub(super) fn file_types(summary: &Summary, style: Style) -> String {
    let mut table = Distribution::new(summary, style, "file type");
    table.rows(&summary.file_types, |file_type| match file_type {
        Some(file_type) => file_type.name().into(),
        None => "(no file's data)".into(),
    });
    table.table.titled("What the files are")
}

pub(super) fn modes(summary: &Summary, style: Style) -> String {
    let mut table = Distribution::new(summary, style, "");
    table.rows(&summary.modes, |mode: Mode| mode.name().into());
    table.rows(&summary.orders, |order: Order| order.name().into());
    table.rows(&summary.heat, |heat: Heat| match heat {
        Heat::Hot => "hot: accessed before".into(),
        Heat::Cold => "cold: first access".into(),
    });
    table.table.titled("How they are accessed")
}

pub(super) fn sizes(summary: &Summary, style: Style) -> String {
    let mut table = Distribution::new(summary, style, "up to");
    table.rows(&summary.sizes, |bucket| bytes(bucket.up_to_bytes));
    table.table.titled("Sizes of requests")
}

pub(super) fn rewrites(summary: &Summary, style: Style) -> String {
    let rewrites = &summary.rewrites;
    let mut table = grid(style, &[">written up to", ">blocks", ">of blocks"]);
    for row in &rewrites.times_written {
        table.row([
            match row.up_to_writes {
                1 => "once".into(),
                times => format!("{} times", count(times)),
            },
            count(row.blocks),
            percent(ratio(row.blocks, rewrites.blocks)),
        ]);
    }
    let mut text = table.titled("Blocks of 4 KiB that are written again");
    if let Some(interval) = &rewrites.interval {
        text.push_str(&format!(
            " {} of block writes are rewrites; after {} (median), {} (90 %), {} (99 %)\n",
            percent(rewrites.rewrite_share),
            duration(interval.p50_ns),
            duration(interval.p90_ns),
            duration(interval.p99_ns),
        ));
    }
    text
}

/// The five percentile cells.
pub(super) fn percentile_cells(percentiles: &Percentiles) -> [String; 5] {
    [
        percentiles.p50_ns,
        percentiles.p90_ns,
        percentiles.p99_ns,
        percentiles.p99_9_ns,
        percentiles.max_ns,
    ]
    .map(duration)
}

pub(super) fn latencies<'a>(latencies: impl Iterator<Item = &'a Latency>, style: Style) -> String {
    latency_table(latencies, style, true).titled("Latency")
}

/// Those of one stage, which the title names.
pub(super) fn device_latencies<'a>(
    latencies: impl Iterator<Item = &'a Latency>,
    style: Style,
) -> String {
    let table = latency_table(latencies, style, false);
    table.titled("Latency of the device, from issue to completion")
}

fn latency_table<'a>(
    latencies: impl Iterator<Item = &'a Latency>,
    style: Style,
    with_stage: bool,
) -> Grid {
    let stage = if with_stage { &[""][..] } else { &[] };
    let values = [">count", ">p50", ">p90", ">p99", ">p99.9", ">max"];
    let names = [&["operation"], stage, &values].concat();
    let mut table = grid(style, &names);
    for latency in latencies {
        let mut row = vec![latency.operation.name().to_owned()];
        row.extend(with_stage.then(|| latency.stage.name().to_owned()));
        row.push(count(latency.percentiles.count));
        row.extend(percentile_cells(&latency.percentiles));
        table.row_of(row);
    }
    table
}

pub(super) fn interrupts(summary: &Summary, style: Style) -> String {
    let interrupts = &summary.interrupts;
    let mut table = grid(style, &["interrupt", "", ">count", ">of all", ""]);
    for source in interrupts.sources.iter().take(INTERRUPTS_SHOWN) {
        table.row([
            printable(&source.label).into(),
            printable(&source.description).into(),
            count(source.count),
            percent(ratio(source.count, interrupts.total)),
            if source.of_device {
                "the device's".into()
            } else {
                String::new()
            },
        ]);
    }
    let mut text = table.titled("Interrupts");
    if interrupts.total > 0 {
        let share = match interrupts.device_share {
            Some(share) => format!("the device's share is {}", percent(Some(share))),
            None => "the device has none of its own".into(),
        };
        text.push_str(&format!(" {} in all; {share}\n", count(interrupts.total)));
    }
    text
}
