//! What becomes of text in a page.

use std::fmt::{Result, Write};

use askama::filters::{Escaper, Html};
use iostep_model::printable;

/// As HTML's own escapes, and what is not printable becomes visible: no name can turn the words
/// beside it around.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Printable;

impl Escaper for Printable {
    fn write_escaped_str<W: Write>(&self, dest: W, string: &str) -> Result {
        Html.write_escaped_str(dest, &printable(string))
    }
}
