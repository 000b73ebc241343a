//! Standard output: what it allows, and what to do when nobody reads it. Standard error: bars.

use std::fmt;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use iostep_analyze::report::text::Style;
use iostep_model::publish;

/// On a terminal colours, unless `NO_COLOR` is set to anything (no-color.org), and its width.
pub fn style() -> Style {
    let out = std::io::stdout();
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

/// Prints text. A reader that went away (`iostep ... | head`) has what it wanted.
///
/// Errors: anything else that keeps the text from being written, as a full disk.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// Prints text beside the results in these files. A result on standard output has it for itself: the
/// text then goes to standard error.
///
/// Errors: as [`print`].
pub fn print_beside<P: AsRef<Path>>(
    results: impl IntoIterator<Item = P>,
    text: &str,
) -> anyhow::Result<()> {
    let mut results = results.into_iter();
    if results.any(|path| publish::is_standard_output(path.as_ref())) {
        // As all that is said there: nobody has to listen.
        let _ = std::io::stderr().write_all(text.as_bytes());
        return Ok(());
    }
    print(text)
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

/// A line on a terminal that says what is being done; nothing where standard error is none.
pub fn working(what: impl Into<String>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_style(bar_style("{spinner} {msg} ({elapsed})"));
    bar.set_message(what.into());
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
