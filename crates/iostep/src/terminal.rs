//! Standard output and standard error, and all that is written to either: what they allow, what to
//! do when nobody reads them, and the fence that keeps text from steering a terminal.

use std::fmt;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use iostep_model::printable;
use iostep_model::printable::Screen;
use iostep_model::publish;
use iostep_report::text::Style;
use serde::Serialize;

/// On a terminal colours, unless `NO_COLOR` is set to anything (no-color.org), and its width.
pub fn style() -> Style {
    let out = io::stdout();
    if !out.is_terminal() {
        return Style::default();
    }
    let size = rustix::termios::tcgetwinsize(&out);
    Style {
        colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        columns: match size.map_or(0, |size| size.ws_col.into()) {
            // As the terminal of a serial line: it does not know.
            0 => Style::default().columns,
            columns => columns,
        },
    }
}

/// What is written to standard output, which decides how it is kept from steering a terminal.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// Lines for people.
    Text,
    /// The same data, with more of JSON's escapes.
    Json,
    /// A format that programs read, as it is.
    Data,
}

/// Writes to standard output. A reader that went away (`iostep ... | head`) has what it wanted.
///
/// Errors: anything else that keeps it from being written, as a full disk.
pub fn write(
    content: Content,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let filled = match content {
        Content::Text => fill(&mut Screen::lines(&mut out, style().colour)),
        Content::Json => fill(&mut Screen::json(&mut out)),
        Content::Data => fill(&mut out),
    };
    match filled.and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// Makes sure, before anything is done, that results can be where they are to be, and that no two would
/// be mixed on standard output: those in these files, and data that is printed besides, as JSON.
///
/// Errors: `Usage`.
pub fn check_results<P: AsRef<Path>>(
    prints_data: bool,
    results: impl IntoIterator<Item = P>,
) -> iostep_load::Result<()> {
    let mut printed = usize::from(prints_data);
    for path in results {
        match publish::is_standard_output(path.as_ref()) {
            true => printed += 1,
            false => check_result(path.as_ref())?,
        }
    }
    match printed {
        0 | 1 => Ok(()),
        _ => Err(iostep_load::Error::Usage {
            what: "standard output: two results would be mixed there".into(),
            hint: "name a file for all but one".into(),
        }),
    }
}

/// What is done for a result that cannot be written would be done in vain.
fn check_result(path: &Path) -> iostep_load::Result<()> {
    let kind = path.metadata().map(|found| found.file_type());
    let reason = match kind {
        Ok(kind) if kind.is_dir() => "is a directory",
        Ok(kind) if kind.is_block_device() => "is a block device, whose content would be lost",
        // Whatever else is wrong with it is found when it is opened.
        _ => return Ok(()),
    };
    Err(iostep_load::Error::Usage {
        what: format!("{}: {reason}", path.display()),
        hint: "name a file".into(),
    })
}

/// Prints text beside the results in these files. A result on standard output has it for itself: the
/// text then goes to standard error.
///
/// Errors: those of [`write()`].
pub fn print_beside<P: AsRef<Path>>(
    results: impl IntoIterator<Item = P>,
    content: Content,
    text: &str,
) -> anyhow::Result<()> {
    let mut results = results.into_iter();
    if results.any(|path| publish::is_standard_output(path.as_ref())) {
        say_lines(text);
        return Ok(());
    }
    write(content, |out| out.write_all(text.as_bytes()))
}

/// Prints JSON or lines for people as [`print_beside`] does, whichever is asked for.
///
/// Errors: those of [`write()`].
pub fn print_either<P: AsRef<Path>>(
    results: impl IntoIterator<Item = P>,
    as_json: bool,
    json: impl FnOnce() -> String,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    match as_json {
        true => print_beside(results, Content::Json, &(json() + "\n")),
        false => print_beside(results, Content::Text, &text()),
    }
}

/// Prints lines for people.
///
/// Errors: those of [`write()`].
pub fn print(text: &str) -> anyhow::Result<()> {
    write(Content::Text, |out| out.write_all(text.as_bytes()))
}

/// A result as JSON, in lines of which the last has no break.
pub fn json(result: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string_pretty(result).expect("results have only JSON's types")
}

/// Prints JSON and a line break.
///
/// Errors: those of [`write()`].
pub fn print_json(json: &str) -> anyhow::Result<()> {
    write(Content::Json, |out| writeln!(out, "{json}"))
}

/// Says something in a line on standard error, as `eprintln!` would.
macro_rules! say {
    ($($text:tt)*) => { iostep_model::printable::say(&format!($($text)*)) };
}
pub(crate) use say;

/// Says lines that end with a line break.
pub fn say_lines(text: &str) {
    // Nobody is left who could be told.
    let _ = Screen::lines(io::stderr().lock(), false).write_all(text.as_bytes());
}

/// The look of a bar. `{left}` is the time that is left, as `, 12s left`, once that is known.
pub fn bar_style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("every template is a constant");
    style.with_key("left", |state: &ProgressState, out: &mut dyn fmt::Write| {
        // A bar has no room for an error, and a string makes none.
        let _ = out.write_str(&left(state.eta()));
    })
}

/// Nothing for what is not known, which a bar calls no time at all, and for less than a second.
fn left(time: Duration) -> String {
    match time.as_secs() {
        0 => String::new(),
        _ => format!(", {:#} left", HumanDuration(time)),
    }
}

/// A line on a terminal that says what is being done; nothing where standard error is none. Its
/// later messages, as those of every bar, are [`printable()`] before they get there.
pub fn working(what: impl Into<String>) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_style(bar_style("{spinner} {msg} ({elapsed})"));
    bar.set_message(printable(&what.into()).into_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_left_before_any_is_known() {
        assert_eq!(left(Duration::ZERO), "");
        assert_eq!(left(Duration::from_millis(700)), "");
        assert_eq!(left(Duration::from_secs(12)), ", 12s left");
    }
}
