//! One HTML page of a replay: no network, no other file.

mod plots;
mod tables;
#[cfg(test)]
mod tests;

use askama::Template;

use crate::replay::{Document, Target};
use crate::report::bench::html::plot::Plot;
use crate::report::bench::html::{SCRIPT, STYLE};
use crate::report::html::table::Table;
use crate::report::quantity::count;
use crate::report::replay::text;

/// One target, by its last run.
struct Section {
    title: String,
    lines: Vec<String>,
    tables: Vec<Table>,
}

#[derive(Template)]
#[template(path = "replay.html")]
struct Page {
    title: String,
    version: String,
    style: &'static str,
    script: &'static str,
    /// What makes the result less than it seems.
    alarms: Vec<String>,
    /// What was replayed.
    lines: Vec<String>,
    plots: Vec<Plot>,
    side_by_side: Vec<Table>,
    targets: Vec<Section>,
}

/// The page of a result.
///
/// Names in it come from the recording, which anybody may have made, and are escaped.
pub fn render(document: &Document) -> String {
    let page = Page {
        title: format!("replay of {}", document.recording.path),
        version: document.iostep_version.clone(),
        style: STYLE,
        script: &SCRIPT,
        alarms: alarms(document),
        lines: lines(document),
        plots: plots::of(document),
        side_by_side: tables::side_by_side(document),
        targets: document.targets.iter().filter_map(section).collect(),
    };
    page.render()
        .expect("writing to memory cannot fail, and the template has no errors of its own")
}

/// A target's heading.
fn name(target: &Target) -> String {
    let kind = target.filesystem.as_deref().unwrap_or("?");
    format!("{} ({kind})", target.directory)
}

fn alarms(document: &Document) -> Vec<String> {
    let mut alarms = Vec::new();
    for target in &document.targets {
        for (number, run) in (1..).zip(&target.runs) {
            let complaints = text::complaints(&run.summary).into_iter();
            let place = format!("{}, run {number}", target.directory);
            alarms.extend(complaints.map(|complaint| format!("{place}: {complaint}")));
            if run.block.as_ref().is_some_and(|block| !block.whole) {
                alarms.push(format!("{place}: the recording of block I/O has holes"));
            }
        }
    }
    alarms
}

fn lines(document: &Document) -> Vec<String> {
    let recording = &document.recording;
    let mut lines = vec![format!(
        "{} calls of {} threads, recorded by {}",
        count(recording.calls),
        count(recording.threads),
        recording.recorder
    )];
    if !recording.machine.is_empty() {
        lines.push(recording.machine.clone());
    }
    if !recording.command.is_empty() {
        lines.push(recording.command.join(" "));
    }
    let version = &document.iostep_version;
    lines.push(format!(
        "{} (iostep {version})",
        document.arguments.join(" ")
    ));
    lines
}

fn section(target: &Target) -> Option<Section> {
    let summary = &target.runs.last()?.summary;
    let title = match target.runs.len() {
        1 => name(target),
        runs => format!("{}, run {runs} of {runs}", name(target)),
    };
    Some(Section {
        title,
        lines: text::lines(summary),
        tables: tables::of(summary),
    })
}
