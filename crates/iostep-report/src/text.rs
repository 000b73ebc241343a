//! How text is set.

pub mod grid;

/// How text may be decorated, and how wide its tables may be.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Use colours and bold type: for a terminal, unless `NO_COLOR` is set.
    pub colour: bool,
    /// Characters of a line. Names of files are shortened for it, numbers never.
    pub columns: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style {
            colour: false,
            columns: 100,
        }
    }
}

impl Style {
    fn wrap(self, code: &str, text: &str) -> String {
        match self.colour {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }

    /// For titles.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// For what must not be missed.
    pub fn alarm(self, text: &str) -> String {
        self.wrap("1;31", text)
    }
}
