//! One HTML page that holds a whole trace: no network, no other file.

mod columns;
mod distributions;
pub(crate) mod escape;
pub(in crate::report) mod header;
mod latency;
mod owners;
mod picture;
mod script_json;
pub(in crate::report) mod table;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use askama::Template;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use iostep_model::table::Trace;

use crate::stats::Summary;
use header::Header;
use table::Table;

/// The page's program, in the order in which its parts need each other.
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("picture/format.js"),
    include_str!("picture/columns.js"),
    include_str!("picture/marks.js"),
    include_str!("picture/axes.js"),
    include_str!("picture/shapes.js"),
    include_str!("picture/model.js"),
    include_str!("picture/paint.js"),
    include_str!("picture/furniture.js"),
    include_str!("picture/view.js"),
    include_str!("picture/pick.js"),
    include_str!("picture/describe.js"),
    include_str!("picture/overview.js"),
    include_str!("picture/control.js"),
    include_str!("theme.js"),
    include_str!("sort.js"),
    include_str!("page.js"),
);

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    header: Header,
    distributions: Vec<Table>,
    latency: latency::Plot,
    owners: Vec<Table>,
    style: &'static str,
    script: &'static str,
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
    let page = Page {
        header: Header::of(&trace.manifest, summary),
        distributions: distributions::of(summary),
        latency: latency::Plot::of(&summary.latencies),
        owners: owners::of(trace, summary),
        style: include_str!("style.css"),
        script: SCRIPT,
        picture: script_json::to_string(&picture),
        columns: Base64Display::new(&stream, &STANDARD),
    };
    page.write_into(out).map_err(io::Error::other)
}
