//! The distributions of ATC'13 figure 2, as tables with bars.

use super::table::{Bar, Cell, Table, heads};
use crate::report::quantity;
use crate::stats::distribution::{Share, SizeBucket};
use crate::stats::{Amount, Split, Summary};

/// The plots, in the order of the figure.
pub(super) fn of(summary: &Summary) -> Vec<Table> {
    let whole = summary.all();
    let plot = |title: &str, note: &str, rows: Vec<(String, Split)>| {
        distribution(title, note, &rows, &whole)
    };
    vec![
        plot(
            "By file type",
            "Whose data it is; \"no file\" is the filesystem's own.",
            rows(&summary.file_types, |of| {
                of.map_or_else(|| "no file".to_owned(), |of| of.name().to_owned())
            }),
        ),
        plot(
            "By block type",
            "A request with blocks of two types counts in both.",
            rows(&summary.layers, |of| of.name().to_owned()),
        ),
        plot(
            "Synchronous or buffered",
            "Synchronous: reads, and writes with REQ_SYNC, REQ_FUA or REQ_PREFLUSH.",
            rows(&summary.modes, |of| of.name().to_owned()),
        ),
        plot(
            "Random or sequential",
            "Sequential: starts where the request of the same direction before it ended.",
            rows(&summary.orders, |of| of.name().to_owned()),
        ),
        plot(
            "By size",
            "Sizes above half of the bucket's and up to it.",
            rows(&summary.sizes, size),
        ),
        interrupts(summary),
        plot(
            "Hot or cold",
            &rewrites(summary),
            rows(&summary.heat, |of| of.name().to_owned()),
        ),
        plot(
            "By class",
            "What the blocks are, finer than by block type.",
            rows(&summary.classes, |of| of.name().to_owned()),
        ),
    ]
}

fn rows<K: Copy>(shares: &[Share<K>], name: impl Fn(K) -> String) -> Vec<(String, Split)> {
    let shares = shares.iter().filter(|share| !share.amounts.is_empty());
    shares
        .map(|share| (name(share.of), share.amounts))
        .collect()
}

fn size(bucket: SizeBucket) -> String {
    format!("up to {}", quantity::bytes(bucket.up_to_bytes))
}

fn rewrites(summary: &Summary) -> String {
    let rewrites = &summary.rewrites;
    let mut note = format!(
        "Hot: in blocks of 4 KiB that were accessed before in the same direction. {} of block \
         writes are rewrites",
        quantity::percent(rewrites.rewrite_share)
    );
    if let Some(interval) = &rewrites.interval {
        let half = quantity::duration(interval.p50_ns);
        note.push_str(&format!(", half of them within {half}"));
    }
    note.push('.');
    note
}

/// One plot. Columns of reads only appear where there are reads, and those of writes likewise.
fn distribution(title: &str, note: &str, rows: &[(String, Split)], whole: &Split) -> Table {
    let mut names = vec![""];
    if whole.write.requests > 0 {
        names.extend(["#writes", "#bytes written"]);
    }
    if whole.read.requests > 0 {
        names.extend(["#reads", "#bytes read"]);
    }
    let row = |(name, amounts): &(String, Split)| {
        let mut row = vec![Cell::text(name)];
        row.extend(amount(Bar::Write, &amounts.write, &whole.write));
        row.extend(amount(Bar::Read, &amounts.read, &whole.read));
        row
    };
    Table {
        title: title.to_owned(),
        note: note.to_owned(),
        heads: heads(&names),
        rows: rows.iter().map(row).collect(),
        rest: None,
        sortable: false,
    }
}

fn amount(bar: Bar, part: &Amount, whole: &Amount) -> Vec<Cell> {
    if whole.requests == 0 {
        return Vec::new();
    }
    vec![
        Cell::count(part.requests).with_share(bar, part.requests, whole.requests),
        Cell::bytes(part.bytes).with_share(bar, part.bytes, whole.bytes),
    ]
}

/// ATC'13 figure 2(f).
fn interrupts(summary: &Summary) -> Table {
    const SHOWN: usize = 8;
    let interrupts = &summary.interrupts;
    let row = |name: String, count: u64| {
        let cell = Cell::count(count).with_share(Bar::Other, count, interrupts.total);
        vec![Cell::text(name), cell]
    };
    let (shown, others) = interrupts
        .sources
        .split_at(SHOWN.min(interrupts.sources.len()));
    let mut rows: Vec<Vec<Cell>> = shown
        .iter()
        .map(|source| {
            let mark = if source.of_device {
                " (the device)"
            } else {
                ""
            };
            let name = format!("{} {}{mark}", source.label, source.description);
            row(name, source.count)
        })
        .collect();
    if !others.is_empty() {
        let count = others.iter().map(|source| source.count).sum();
        rows.push(row(format!("{} others", others.len()), count));
    }
    let note = match interrupts.device_share {
        Some(share) => format!("The device's share is {}.", quantity::percent(Some(share))),
        None => "The traced device has no interrupt of its own that could be told.".to_owned(),
    };
    Table {
        title: "Interrupts".to_owned(),
        note,
        heads: heads(&["", "#interrupts"]),
        rows,
        rest: None,
        sortable: false,
    }
}
