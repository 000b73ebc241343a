//! What a setting is chosen for.

use crate::names::named;

/// What advice on settings ranks by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Goal {
    /// Commits a second, without giving anything up.
    #[default]
    Speed,
    /// Bytes that the device writes for a commit, without giving anything up.
    Wear,
    /// What a commit that returned can still lose.
    Durability,
}

named!(
    Goal,
    "goal",
    Speed = "speed",
    Wear = "wear",
    Durability = "durability",
);
