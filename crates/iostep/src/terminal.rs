//! Standard output: what it allows, and what to do when nobody reads it.

use std::io::{ErrorKind, IsTerminal, Write};

use anyhow::Context;
use iostep_analyze::report::text::Style;

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
