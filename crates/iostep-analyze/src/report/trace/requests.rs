//! Tables about requests, whoever's they are.

use iostep_model::table::Phase;
use iostep_report::document::{Bar, Cell, Table};
use iostep_report::quantity::{bytes, count, duration, percent};

use crate::stats::amount::ratio;
use crate::stats::{Heat, Latency, Percentiles, Share, Split, Summary};

/// Lines of `/proc/interrupts` that a text shows.
const INTERRUPTS_SHOWN: usize = 5;

pub(super) fn totals(summary: &Summary) -> Table {
    let rows = summary.totals.iter().map(|total| {
        vec![
            Cell::text(phase_name(total.phase)),
            Cell::text(total.operation.name()),
            Cell::count(total.amount.requests),
            Cell::bytes(total.amount.bytes),
        ]
    });
    let columns = ["phase", "operation", ">requests", ">bytes"];
    let mut table = Table::new("Requests", columns).in_order().rows(rows);
    let barriers = summary.barriers;
    if barriers.flushes + barriers.preflush_writes + barriers.fua_writes > 0 {
        table.lines.push(format!(
            "flushes {}; writes that ask for a flush first {}, forced to the medium (FUA) {}",
            count(barriers.flushes),
            count(barriers.preflush_writes),
            count(barriers.fua_writes),
        ));
    }
    table
}

/// The phases that the traced command did not make are marked.
fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Run => phase.name(),
        Phase::After => "* after the command",
        Phase::Settle => "* settling",
    }
}

/// ATC'13 figure 2: what is read and written, split in several ways.
pub(super) fn distributions(summary: &Summary) -> [Table; 5] {
    let file_types = rows(&summary.file_types, |of| match of {
        Some(file_type) => file_type.name().to_owned(),
        None => "(no file's data)".to_owned(),
    });
    let modes = rows(&summary.modes, |mode| mode.name().to_owned());
    let orders = rows(&summary.orders, |order| order.name().to_owned());
    let heat = rows(&summary.heat, |heat| match heat {
        Heat::Hot => "hot: accessed before".to_owned(),
        Heat::Cold => "cold: first access".to_owned(),
    });
    let sizes = rows(&summary.sizes, |bucket| bytes(bucket.up_to_bytes));
    let table = |title, name, rows| distribution(title, name, rows, &summary.all());
    [
        table("What the blocks are", "layer, class", layers(summary))
            .note("A request with blocks of two types counts in both."),
        table("What the files are", "file type", file_types),
        table("How they are accessed", "", [modes, orders, heat].concat()).note(
            "Synchronous: reads, and writes with REQ_SYNC, REQ_FUA or REQ_PREFLUSH. Sequential: \
             starts where the request of the same direction before it ended. Hot: in blocks of \
             4 KiB that were accessed before in the same direction.",
        ),
        table("Sizes of requests", "up to", sizes)
            .note("Sizes above half of the bucket's and up to it."),
        rewrites(summary),
    ]
}

type Amounts = (String, Split);

fn rows<K: Copy>(shares: &[Share<K>], name: impl Fn(K) -> String) -> Vec<Amounts> {
    let shares = shares.iter().filter(|share| !share.amounts.is_empty());
    shares
        .map(|share| (name(share.of), share.amounts))
        .collect()
}

/// Each layer, and below it its classes.
fn layers(summary: &Summary) -> Vec<Amounts> {
    let layers = summary.layers.iter();
    let layers = layers.filter(|layer| !layer.amounts.is_empty());
    let rows = layers.flat_map(|layer| {
        let classes = summary.classes.iter();
        let classes = classes.filter(|class| class.of.layer() == layer.of);
        let classes = classes.map(|class| (format!("  {}", class.of.name()), class.amounts));
        std::iter::once((layer.of.name().to_owned(), layer.amounts)).chain(classes)
    });
    rows.collect()
}

/// The shares are of all that is read, or written.
fn distribution(title: &str, name: &'static str, rows: Vec<Amounts>, all: &Split) -> Table {
    let columns = [
        name,
        ">reads",
        ">read",
        ">of read",
        ">writes",
        ">written",
        ">of written",
    ];
    let row = |(name, amounts): Amounts| {
        let mut cells = vec![Cell::text(name)];
        for (bar, part, whole) in [
            (Bar::Read, amounts.read, all.read),
            (Bar::Write, amounts.write, all.write),
        ] {
            cells.push(Cell::count(part.requests).with_bar(bar, whole.requests as f64));
            cells.push(Cell::bytes(part.bytes));
            cells.push(Cell::share(ratio(part.bytes, whole.bytes)).with_bar(bar, 1.0));
        }
        cells
    };
    Table::new(title, columns)
        .in_order()
        .rows(rows.into_iter().map(row))
}

fn rewrites(summary: &Summary) -> Table {
    let rewrites = &summary.rewrites;
    let rows = rewrites.times_written.iter().map(|row| {
        let times = match row.up_to_writes {
            1 => "once".to_owned(),
            times => format!("{} times", count(times)),
        };
        let share = Cell::share(ratio(row.blocks, rewrites.blocks));
        vec![
            Cell::text(times),
            Cell::count(row.blocks),
            share.with_bar(Bar::Write, 1.0),
        ]
    });
    let title = "Blocks of 4 KiB that are written again";
    let columns = [">written up to", ">blocks", ">of blocks"];
    let mut table = Table::new(title, columns).in_order().rows(rows);
    if let Some(interval) = &rewrites.interval {
        table.lines.push(format!(
            "{} of block writes are rewrites; after {} (median), {} (90 %), {} (99 %)",
            percent(rewrites.rewrite_share),
            duration(interval.p50_ns),
            duration(interval.p90_ns),
            duration(interval.p99_ns),
        ));
    }
    table
}

type Named = (&'static str, fn(&Percentiles) -> u64);

/// What is told of latencies, with its name.
pub(super) const PERCENTILES: [Named; 5] = [
    ("p50", |of| of.p50_ns),
    ("p90", |of| of.p90_ns),
    ("p99", |of| of.p99_ns),
    ("p99.9", |of| of.p99_9_ns),
    ("max", |of| of.max_ns),
];

/// The cells of [`PERCENTILES`].
pub(super) fn percentile_cells(of: Option<&Percentiles>) -> [Cell; 5] {
    PERCENTILES.map(|(_, value)| Cell::duration(of.map(value)))
}

/// Those of one stage, which the title names, have no column for it.
pub(super) fn latencies<'a>(
    title: &str,
    latencies: impl Iterator<Item = &'a Latency>,
    with_stage: bool,
) -> Table {
    let stage = if with_stage { &[""][..] } else { &[] };
    let values = [">count", ">p50", ">p90", ">p99", ">p99.9", ">max"];
    let rows = latencies.map(|latency| {
        let mut row = vec![Cell::text(latency.operation.name())];
        row.extend(with_stage.then(|| Cell::text(latency.stage.name())));
        row.push(Cell::count(latency.percentiles.count));
        row.extend(percentile_cells(Some(&latency.percentiles)));
        row
    });
    Table::new(title, [&["operation"], stage, &values].concat()).rows(rows)
}

pub(super) fn interrupts(summary: &Summary) -> Table {
    let interrupts = &summary.interrupts;
    let rows = interrupts.sources.iter().map(|source| {
        vec![
            Cell::text(&source.label),
            Cell::text(&source.description),
            Cell::count(source.count).with_bar(Bar::Other, interrupts.total as f64),
            Cell::share(ratio(source.count, interrupts.total)),
            Cell::text(if source.of_device { "the device's" } else { "" }),
        ]
    });
    let columns = ["interrupt", "", "+count", ">of all", ""];
    let mut table = Table::new("Interrupts", columns)
        .long("interrupts")
        .at_most(INTERRUPTS_SHOWN)
        .rows(rows);
    if interrupts.total > 0 {
        let share = match interrupts.device_share {
            Some(share) => format!("the device's share is {}", percent(Some(share))),
            None => "the device has none of its own".into(),
        };
        let line = format!("{} in all; {share}", count(interrupts.total));
        table.lines.push(line);
    }
    table
}
