//! One HTML page that holds the results of one or several jobs: no network, no other file, and
//! nothing that needs its script but sorting and the choice of light or dark.

pub(in crate::report) mod axis;
mod distribution;
pub(in crate::report) mod figure;
mod matrix;
pub(in crate::report) mod plot;
mod section;
mod tables;
#[cfg(test)]
pub(in crate::report) mod tests;
mod timeline;

use std::sync::LazyLock;

use askama::Template;
use iostep_model::bench::Document;

use crate::bench::Summary;
use crate::report::html::modules::bundle;
use matrix::Matrix;
use section::Section;

/// The looks of pages of results.
pub(in crate::report) const STYLE: &str = concat!(
    include_str!("../../html/style.css"),
    "\n",
    include_str!("bench.css"),
);

/// What their buttons do.
pub(in crate::report) static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    bundle(&[
        ("dom", include_str!("../../html/picture/dom.js")),
        ("theme", include_str!("../../html/theme.js")),
        ("sort", include_str!("../../html/sort.js")),
        ("bench", include_str!("bench.js")),
    ])
});

/// A job with the line that stands for it while it is folded.
struct Folded {
    title: String,
    throughput: String,
    section: Section,
}

#[derive(Template)]
#[template(path = "bench.html")]
struct Page {
    title: String,
    version: String,
    style: &'static str,
    script: &'static str,
    /// The jobs side by side, if there are several.
    matrix: Option<Matrix>,
    jobs: Vec<Folded>,
}

/// The page of these results, in their order.
///
/// Names in it come from the measured machine and from whoever wrote the file, and are escaped.
/// Size: about 500 bytes for each second and job on top of 25 KiB.
pub fn render(documents: &[(Document, Summary)]) -> String {
    let page = Page {
        title: match documents {
            [(document, _)] => section::title(document),
            _ => format!("{} jobs", documents.len()),
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        style: STYLE,
        script: &SCRIPT,
        matrix: (documents.len() > 1).then(|| Matrix::of(documents)),
        jobs: documents
            .iter()
            .map(|(document, summary)| Folded {
                title: section::title(document),
                throughput: section::throughput(summary),
                section: Section::of(document, summary),
            })
            .collect(),
    };
    page.render()
        .expect("writing to memory cannot fail, and the templates have no errors of their own")
}
