//! Whether a result counts.

use std::fmt;
use std::str::FromStr;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

/// What becomes of a result. All are shown; only valid ones are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Valid,
    /// Something spoils it: its reasons say what.
    Invalid,
    /// An operator doubts it.
    Quarantined,
    /// An operator has found that it is wrong.
    Delisted,
}

impl State {
    pub const ALL: [State; 4] = [
        State::Valid,
        State::Invalid,
        State::Quarantined,
        State::Delisted,
    ];

    /// Its word in SQL, JSON and flags.
    pub fn name(self) -> &'static str {
        match self {
            State::Valid => "valid",
            State::Invalid => "invalid",
            State::Quarantined => "quarantined",
            State::Delisted => "delisted",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(text: &str) -> Result<State, String> {
        let found = State::ALL.into_iter().find(|state| state.name() == text);
        found.ok_or_else(|| {
            format!("{text}: no state; choose valid, invalid, quarantined, delisted")
        })
    }
}

impl ToSql for State {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.name().into())
    }
}

impl FromSql for State {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<State> {
        let text = value.as_str()?;
        text.parse()
            .map_err(|error: String| FromSqlError::Other(error.into()))
    }
}
