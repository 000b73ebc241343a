//! The file of a result.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Job, Run, Warning};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::json;
use crate::manifest::{Device, Filesystem};
use crate::publish;

/// Version of the JSON. A reader takes this and older ones.
pub const SCHEMA_VERSION: u32 = 2;

/// What is longer is no result: a day in seconds and a hundred runs have less.
const MAX_BYTES: u64 = 1 << 30;

/// One job, where it ran, and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of the iostep that wrote it.
    pub iostep_version: String,
    /// What was asked for, as arguments.
    pub arguments: Vec<String>,
    pub job: Job,
    pub environment: Environment,
    /// What was measured, one for each repetition.
    pub runs: Vec<Run>,
    /// What spoils it.
    pub warnings: Vec<Warning>,
}

/// Where a job ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    #[serde(flatten)]
    pub host: Host,
    pub memory_bytes: u64,
    /// The clock that times are read from, as `tsc`.
    pub clock_source: String,
    /// The filesystem; `None` for a block device.
    pub filesystem: Option<Filesystem>,
    /// The device; `None` where the filesystem has none of its own.
    pub device: Option<Device>,
    /// The whole disks whose flushes are counted though only partitions of them are measured, by
    /// their names below /dev: flushes that others ask for there are counted, too. The kernel counts
    /// none for a partition. Empty where the counters are the devices' own, and in older results,
    /// which have no flush of a partition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flushes_of: Vec<String>,
    /// The disks below it; empty where none is known, and in older results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Disk>,
    /// SQLite, if it ran.
    pub sqlite: Option<SqliteLibrary>,
}

/// A SQLite library as it says itself, and the settings as they really are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqliteLibrary {
    /// The file; `None` for the one inside.
    pub path: Option<String>,
    /// `sqlite3_libversion`.
    pub version: String,
    /// `sqlite3_sourceid`.
    pub source_id: String,
    /// `sqlite3_compileoption_get`, all of them.
    pub compile_options: Vec<String>,
    /// The VFS below, as `unix`.
    pub vfs: String,
    /// Pragmas of the first database read back after it was set up: name and value.
    pub settings: Vec<(String, String)>,
}

/// What a result may be in.
#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

impl Document {
    /// Takes a document out of JSON, or out of the `result` of a larger one that is none itself.
    ///
    /// Errors: `Corrupt` for anything else; `Unsupported` for a newer schema. `path` names the
    /// text in errors.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Document> {
        let text = str::from_utf8(text).map_err(|e| Error::corrupt(path, "JSON", e))?;
        // A list of the values would be taken for fields with names.
        if !text.trim_start().starts_with('{') {
            return Err(Error::corrupt(path, "JSON", "expected an object"));
        }
        // What servers get, in one go. Of anything else it is found out what it is.
        if let Ok(document) = serde_json::from_str::<Document>(text)
            && document.schema_version <= SCHEMA_VERSION
        {
            return Ok(document);
        }
        let whole: Whole<'_> =
            serde_json::from_str(text).map_err(|e| Error::corrupt(path, "JSON", e))?;
        let text = whole.result.map_or(text, RawValue::get);
        json::parse(path, text, ("result schema", SCHEMA_VERSION))
    }

    /// Reads a document from a file.
    ///
    /// Errors: `Io`, and those of [`Document::parse`]; `Unsupported` for more than 1 GiB.
    pub fn read(path: &Path) -> Result<Document> {
        let text = json::read(path, MAX_BYTES, "the result of iostep bench")?;
        Document::parse(path, &text)
    }

    /// Writes it to a file, whole or not at all.
    ///
    /// Errors: `Io`.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).expect("a document has only JSON's types");
        publish::write(path, &text)
    }
}
