//! The optimisations of ATC'13 table 2 as switches.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which optimisations a cell has; all off is the papers' baseline.
///
/// As text the letters are joined by `+`, as in `F+E+W`; the baseline is the empty text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Switches {
    /// `F`: fdatasync(2) for fsync(2).
    pub fdatasync: bool,
    /// `E`: the filesystem's journal on a second device.
    pub external_journal: bool,
    /// `P`: completions are polled for, not interrupted by.
    pub polled: bool,
    /// `W`: SQLite's write-ahead log.
    pub wal: bool,
    /// `A`: f2fs's batch atomic writes in place of SQLite's rollback journal.
    pub batch_atomic: bool,
    /// `waldio`: the write-ahead log of waldio.
    pub waldio: bool,
}

/// A word that is no switch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}: no switch; join F, E, P, W, A, waldio by +, as F+E")]
pub struct UnknownSwitch(pub String);

impl Switches {
    fn letters(self) -> impl Iterator<Item = &'static str> {
        [
            (self.fdatasync, "F"),
            (self.external_journal, "E"),
            (self.polled, "P"),
            (self.wal, "W"),
            (self.batch_atomic, "A"),
            (self.waldio, "waldio"),
        ]
        .into_iter()
        .filter_map(|(on, letter)| on.then_some(letter))
    }
}

impl fmt::Display for Switches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.letters().collect::<Vec<_>>().join("+"))
    }
}

impl FromStr for Switches {
    type Err = UnknownSwitch;

    fn from_str(text: &str) -> Result<Switches, UnknownSwitch> {
        let mut switches = Switches::default();
        for word in text.split('+').map(str::trim) {
            let switch = match word.to_ascii_lowercase().as_str() {
                "" if text.trim().is_empty() => continue,
                "f" => &mut switches.fdatasync,
                "e" => &mut switches.external_journal,
                "p" => &mut switches.polled,
                "w" => &mut switches.wal,
                "a" => &mut switches.batch_atomic,
                "waldio" => &mut switches.waldio,
                _ => return Err(UnknownSwitch(word.chars().take(32).collect())),
            };
            *switch = true;
        }
        Ok(switches)
    }
}

impl Serialize for Switches {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Switches {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Switches, D::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_read_back_in_the_order_of_the_paper() {
        for text in ["", "F", "F+E+P", "F+E+P+W", "F+A", "waldio"] {
            assert_eq!(text.parse::<Switches>().expect(text).to_string(), text);
        }
        let mixed: Switches = " w + f".parse().expect("two switches");
        assert_eq!(mixed.to_string(), "F+W");
    }

    #[test]
    fn what_is_no_switch_is_refused() {
        for text in ["X", "F++W", "F+", "FW", "+"] {
            assert!(text.parse::<Switches>().is_err(), "{text}");
        }
    }
}
