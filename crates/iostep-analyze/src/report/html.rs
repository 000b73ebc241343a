//! One HTML page that holds a whole trace: no network, no other file.

mod columns;
pub(crate) mod escape;
mod header;
mod latency;
pub(in crate::report) mod modules;
mod picture;
mod script_json;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use askama::Template;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use iostep_model::table::Trace;

use super::document::Table;
use super::document::html::Shown;
use super::trace::{owners, requests};
use crate::stats::Summary;
use header::Header;
use modules::Module;

/// The page's program: each module behind those that it imports.
const MODULES: [Module; 19] = [
    ("dom", include_str!("html/picture/dom.js")),
    ("format", include_str!("html/picture/format.js")),
    ("columns", include_str!("html/picture/columns.js")),
    ("marks", include_str!("html/picture/marks.js")),
    ("axes", include_str!("html/picture/axes.js")),
    ("shapes", include_str!("html/picture/shapes.js")),
    ("canvas", include_str!("html/picture/canvas.js")),
    ("model", include_str!("html/picture/model.js")),
    ("lanes", include_str!("html/picture/lanes.js")),
    ("guides", include_str!("html/picture/guides.js")),
    ("paint", include_str!("html/picture/paint.js")),
    ("view", include_str!("html/picture/view.js")),
    ("pick", include_str!("html/picture/pick.js")),
    ("describe", include_str!("html/picture/describe.js")),
    ("overview", include_str!("html/picture/overview.js")),
    ("control", include_str!("html/picture/control.js")),
    ("theme", include_str!("html/theme.js")),
    ("sort", include_str!("html/sort.js")),
    ("page", include_str!("html/page.js")),
];

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    header: Header,
    distributions: Vec<Shown<'a>>,
    latency: latency::Plot,
    owners: Vec<Shown<'a>>,
    style: &'static str,
    script: String,
    picture: String,
    columns: Base64Display<'a, 'static, base64::engine::GeneralPurpose>,
}

/// Writes the page of `trace`, whose statistics are `summary`, to `out`.
///
/// Every name in it comes from the traced machine and is escaped for the place it goes to. Size:
/// about 16 bytes a request on top of 110 KiB.
/// Errors: those of `out`.
pub fn write(out: &mut impl Write, trace: &Trace, summary: &Summary) -> io::Result<()> {
    let (picture, stream) = picture::of(trace);
    let mut distributions: Vec<Table> = requests::distributions(summary).into();
    distributions.push(requests::rewrites(summary));
    distributions.push(requests::interrupts(summary));
    let tables = [
        owners::joj,
        owners::files,
        owners::processes,
        owners::sync_kinds,
        owners::slowest_syncs,
    ];
    let owners = tables.map(|table| table(summary));
    let page = Page {
        header: Header::of(&trace.manifest, summary),
        distributions: distributions.iter().map(Shown::of).collect(),
        latency: latency::Plot::of(&summary.latencies),
        owners: owners.iter().map(Shown::of).collect(),
        style: include_str!("html/style.css"),
        script: modules::bundle(&MODULES),
        picture: script_json::to_string(&picture),
        columns: Base64Display::new(&stream, &STANDARD),
    };
    page.write_into(out).map_err(io::Error::other)
}
