//! The words of a line.

use std::borrow::Cow;

use super::super::identity::{HandleId, ThreadId};
use super::escape::unquote;

/// What is wrong with a line, in words.
pub(super) type Fault = String;

/// The words of a line's arguments, each taken once. What nobody takes is a fault.
pub(super) struct Fields<'a> {
    words: Vec<Option<&'a str>>,
}

impl<'a> Fields<'a> {
    /// Splits at blanks outside quotes.
    pub(super) fn split(text: &'a str) -> Result<Fields<'a>, Fault> {
        let mut words = Vec::with_capacity(8);
        let bytes = text.as_bytes();
        let (mut begin, mut quoted, mut at) = (0, false, 0);
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if quoted => at += 1,
                b'"' => quoted = !quoted,
                b' ' if !quoted => {
                    if at > begin {
                        words.push(Some(&text[begin..at]));
                    }
                    begin = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        if quoted {
            return Err("a quote that is not closed".into());
        }
        if bytes.len() > begin {
            words.push(Some(&text[begin..]));
        }
        Ok(Fields { words })
    }

    /// Takes the next word that is left.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        self.words.iter_mut().find_map(Option::take)
    }

    /// Takes the next word, which must be there.
    pub(super) fn expect(&mut self, what: &str) -> Result<&'a str, Fault> {
        self.next().ok_or_else(|| format!("{what} is missing"))
    }

    /// Takes the value of `name=value`.
    pub(super) fn named(&mut self, name: &str) -> Option<&'a str> {
        self.words.iter_mut().find_map(|word| {
            let whole: &'a str = (*word)?;
            let value = whole.strip_prefix(name)?.strip_prefix('=')?;
            *word = None;
            Some(value)
        })
    }

    /// True if there is a `name=value`, which stays.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut words = self.words.iter().flatten();
        words.any(|word| word.strip_prefix(name).is_some_and(|w| w.starts_with('=')))
    }

    /// Takes a word without a value, if it is there.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        let found = self.words.iter_mut().find(|word| **word == Some(name));
        found.is_some_and(|word| word.take().is_some())
    }

    /// Takes a number that must be there. Hexadecimal after `0x`, octal after a 0.
    pub(super) fn number<T: TryFrom<i128>>(&mut self, name: &str) -> Result<T, Fault> {
        let text = self
            .named(name)
            .ok_or_else(|| format!("{name}= is missing"))?;
        number(text).ok_or_else(|| format!("{name}={text}: not a number that fits"))
    }

    /// Takes a number that may be missing.
    pub(super) fn optional<T: TryFrom<i128>>(&mut self, name: &str) -> Result<Option<T>, Fault> {
        if self.has(name) {
            self.number(name).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Takes quoted bytes.
    pub(super) fn bytes(&mut self, name: &str) -> Result<Vec<u8>, Fault> {
        let text = self
            .named(name)
            .ok_or_else(|| format!("{name}= is missing"))?;
        unquote(text.as_bytes()).ok_or_else(|| format!("{name}={text}: not quoted text"))
    }

    /// Takes the next word as an open file.
    pub(super) fn handle(&mut self) -> Result<HandleId, Fault> {
        handle(self.expect("the open file (h1)")?)
    }

    /// Fails if a word is left that nobody took.
    pub(super) fn done(mut self) -> Result<(), Fault> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(format!("{word}: not known here")),
        }
    }
}

/// A number with its sign: decimal, `0x` and hexadecimal, or 0 and octal.
pub(super) fn number<T: TryFrom<i128>>(text: &str) -> Option<T> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (digits, radix) = match digits.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    if digits.starts_with('+') || digits.starts_with('-') {
        return None;
    }
    let value = i128::from(u64::from_str_radix(digits, radix).ok()?);
    T::try_from(if negative { -value } else { value }).ok()
}

/// `h7`.
pub(super) fn handle(word: &str) -> Result<HandleId, Fault> {
    prefixed(word, 'h')
        .map(HandleId)
        .ok_or_else(|| format!("{word}: not an open file (h1)"))
}

/// `t7`.
pub(super) fn thread(word: &str) -> Result<ThreadId, Fault> {
    prefixed(word, 't')
        .map(ThreadId)
        .ok_or_else(|| format!("{word}: not a thread (t1)"))
}

/// A number from 1 after a letter.
pub(super) fn prefixed(word: &str, letter: char) -> Option<u32> {
    let digits = word.strip_prefix(letter)?;
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|number| *number > 0)
}

/// A quoted word, or one without quotes as it is.
pub(super) fn text(word: &str) -> Option<Cow<'_, [u8]>> {
    if word.starts_with('"') {
        unquote(word.as_bytes()).map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(word.as_bytes()))
    }
}
