//! Foreign text, of whatever kind.
//!
//! A format is a module with an `Import`: it is opened on its inputs, says what the recording's
//! header is, and then tells events in the order in which the calls ended. Each line of the text
//! ends in exactly one event, so that the tracker's ledger accounts for all of them.

use iostep_model::syscall::Header;
use iostep_model::syscall::raw::Event;

use crate::error::Result;
use crate::input::Input;
use crate::{mobigen, strace};

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A replay script of MobiGen.
    Mobigen,
    /// A text of strace.
    Strace,
}

/// An import that was opened.
#[derive(Debug)]
pub enum Import<'a> {
    /// A replay script of MobiGen.
    Mobigen(mobigen::Import),
    /// Texts of strace.
    Strace(strace::Import<'a>),
}

impl Format {
    /// What a text that begins with `start` (as much as [`crate::input::GUESS_BYTES`]) is, if it is one of ours.
    pub fn guess(start: &[u8]) -> Option<Format> {
        if mobigen::looks_like(start) {
            return Some(Format::Mobigen);
        }
        strace::looks_like(start).then_some(Format::Strace)
    }

    /// Opens an import.
    ///
    /// Errors: as the format's own.
    pub fn open(self, inputs: Vec<Input<'_>>) -> Result<Import<'_>> {
        match self {
            Format::Mobigen => Ok(Import::Mobigen(mobigen::Import::open(inputs)?)),
            Format::Strace => Ok(Import::Strace(strace::Import::open(inputs)?)),
        }
    }
}

impl Import<'_> {
    /// What made the text.
    pub fn header(&self) -> Header {
        match self {
            Import::Mobigen(import) => import.header(),
            Import::Strace(import) => import.header(),
        }
    }

    /// Tells the events. Gives what is to be said of the text's times, a line each.
    ///
    /// Errors: `each`'s, and `Io`.
    pub fn events(self, each: &mut dyn FnMut(Event<'_>) -> Result<()>) -> Result<Vec<String>> {
        match self {
            Import::Mobigen(import) => import.events(each).map(|()| Vec::new()),
            Import::Strace(import) => import.events(each),
        }
    }
}
