//! The result of `iostep replay`: what its result file holds. docs/format-replay.md defines it.

use std::path::Path;

use iostep_model::error::{Error, Result};
use iostep_model::syscall::Recording;
use serde::{Deserialize, Serialize};

use super::{Comparison, Target};

/// The version of the result file. Any change that could mislead a reader raises it.
pub const SCHEMA_VERSION: u32 = 1;

/// A recording, performed on one or several targets, once or several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`SCHEMA_VERSION`] of its writer.
    pub schema_version: u32,
    /// Version of the iostep that measured.
    pub iostep_version: String,
    /// What stood after `iostep` on the command line.
    pub arguments: Vec<String>,
    /// What was performed.
    pub recording: About,
    /// Where, in the order of the command line.
    pub targets: Vec<Target>,
    /// Targets side by side, with medians over their runs.
    pub comparison: Comparison,
}

/// A recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub path: String,
    pub recorder: String,
    /// The machine it is from; empty if unknown.
    pub machine: String,
    /// The recorded command; empty if unknown.
    pub command: Vec<String>,
    pub threads: u64,
    pub calls: u64,
    /// Events that its recorder lost.
    pub lost: u64,
    /// The line at which its file stops without an end.
    pub cut_at_line: Option<u64>,
    /// How long it took to read it and to plan the order of its calls.
    #[serde(default)]
    pub load_ns: u64,
}

impl About {
    /// Of a recording, read from `path` and planned in `load_ns`.
    pub fn of(recording: &Recording, path: &Path, load_ns: u64) -> About {
        let words = recording.header.command.iter();
        About {
            path: path.display().to_string(),
            recorder: recording.header.recorder.clone(),
            machine: recording.header.machine.clone(),
            command: words
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect(),
            threads: recording.threads.len() as u64,
            calls: recording.calls.len() as u64,
            lost: recording.ledger.lost,
            cut_at_line: recording.cut_at_line,
            load_ns,
        }
    }
}

impl Document {
    /// A result of this iostep.
    pub fn new(arguments: Vec<String>, recording: About, targets: Vec<Target>) -> Document {
        Document {
            schema_version: SCHEMA_VERSION,
            iostep_version: env!("CARGO_PKG_VERSION").to_owned(),
            arguments,
            comparison: Comparison::of(&targets),
            recording,
            targets,
        }
    }

    /// Reads a result file's text; `path` is its name in errors.
    ///
    /// Errors: `Unsupported` for another version, `Corrupt` for what is no result of a replay.
    pub fn from_json(path: &Path, text: &str) -> Result<Document> {
        #[derive(Deserialize)]
        struct Version {
            schema_version: u32,
            iostep_version: Option<String>,
        }
        let fault = |error: serde_json::Error| {
            let place = format!("line {}", error.line());
            Error::corrupt(path, place, format!("no result of a replay: {error}"))
        };
        let found: Version = serde_json::from_str(text).map_err(fault)?;
        if found.schema_version > SCHEMA_VERSION {
            let (version, writer) = (found.schema_version.into(), found.iostep_version);
            let writer = writer.as_deref();
            return Err(Error::newer(
                path,
                "replay schema",
                version,
                SCHEMA_VERSION,
                writer,
            ));
        }
        if found.schema_version != SCHEMA_VERSION {
            return Err(Error::Unsupported {
                path: path.to_owned(),
                found: format!("schema version {}", found.schema_version),
                expected: format!("{SCHEMA_VERSION} (run iostep replay again with -o)"),
            });
        }
        serde_json::from_str(text).map_err(fault)
    }
}
