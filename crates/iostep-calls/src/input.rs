//! What a foreign text is read from.

use std::io::BufRead;
use std::path::{Path, PathBuf};

/// How much of a text is looked at to guess what it is, bytes.
pub const GUESS_BYTES: usize = 4096;

/// A text and the name for errors.
pub struct Input<'a> {
    pub path: PathBuf,
    /// What it says.
    pub text: Box<dyn BufRead + 'a>,
}

impl std::fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("path", &self.path).finish()
    }
}

impl<'a> Input<'a> {
    /// A text under a name.
    pub fn new(path: impl AsRef<Path>, text: impl BufRead + 'a) -> Input<'a> {
        Input {
            path: path.as_ref().to_owned(),
            text: Box::new(text),
        }
    }
}
