//! What the terminal allows.

use std::io::IsTerminal;

use iostep_analyze::report::text::Style;

/// Colours on a terminal, unless `NO_COLOR` is set to anything (no-color.org).
pub fn style() -> Style {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Style {
        colour: wanted && std::io::stdout().is_terminal(),
    }
}
