//! The files of a lab.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{CellResult, Lab, SCHEMA_VERSION};
use crate::error::{Error, Result};
use crate::json;
use crate::publish;

/// What is longer is no file of a lab: 100,000 cells and a long pattern have less.
const MAX_BYTES: u64 = 1 << 28;

/// Any of the files: the version first, so that a reader of another version stops there.
#[derive(Serialize, Deserialize)]
struct Document<T> {
    schema_version: u32,
    content: T,
}

/// The version alone, which any content may follow.
#[derive(Deserialize)]
struct Version {
    schema_version: Option<u64>,
}

impl Lab {
    /// Reads `lab.json`.
    ///
    /// Errors: `Io`; `Unsupported` for a newer schema or more than 256 MiB; `Corrupt` for anything
    /// else.
    pub fn read(path: &Path) -> Result<Lab> {
        read(path)
    }

    /// Writes `lab.json`, whole or not at all.
    ///
    /// Errors: `Io`.
    pub fn write(&self, path: &Path) -> Result<()> {
        write(path, self)
    }
}

impl CellResult {
    /// Reads `cells/KEY.json`.
    ///
    /// Errors: as [`Lab::read`].
    pub fn read(path: &Path) -> Result<CellResult> {
        read(path)
    }

    /// Writes `cells/KEY.json`, whole or not at all.
    ///
    /// Errors: `Io`.
    pub fn write(&self, path: &Path) -> Result<()> {
        write(path, self)
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = json::read(path, MAX_BYTES, "a file of iostep lab")?;
    parse(path, &text)
}

fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T> {
    let corrupt = |e: serde_json::Error| Error::corrupt(path, "JSON", e);
    let Version { schema_version } = serde_json::from_slice(text).map_err(corrupt)?;
    let version =
        schema_version.ok_or_else(|| Error::corrupt(path, "schema_version", "missing"))?;
    if version > u64::from(SCHEMA_VERSION) {
        let newest = SCHEMA_VERSION;
        return Err(Error::newer(path, "lab schema", version, newest, None));
    }
    let document: Document<T> = serde_json::from_slice(text).map_err(corrupt)?;
    Ok(document.content)
}

fn write<T: Serialize>(path: &Path, content: &T) -> Result<()> {
    let document = Document {
        schema_version: SCHEMA_VERSION,
        content,
    };
    let text = serde_json::to_vec_pretty(&document).expect("a lab has only JSON's types");
    publish::write(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_reads_back_and_one_of_a_newer_version_is_refused() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("lab.json");
        let lab = Lab {
            name: "table1".into(),
            title: "I/O volume".into(),
            cells: Vec::new(),
            analysis: Default::default(),
        };
        lab.write(&path).expect("write");
        assert_eq!(Lab::read(&path).expect("read"), lab);

        let text = std::fs::read_to_string(&path).expect("read");
        let newer = text.replace("\"schema_version\": 1", "\"schema_version\": 2");
        std::fs::write(&path, newer).expect("write");
        let error = Lab::read(&path).expect_err("a newer schema");
        assert!(error.to_string().contains("newer iostep"), "{error}");
    }

    #[test]
    fn what_is_no_file_of_a_lab_is_damaged() {
        let path = Path::new("lab.json");
        for text in ["", "[]", "{}", "{\"schema_version\": 1}", "\u{0}"] {
            let found = parse::<Lab>(path, text.as_bytes());
            assert!(matches!(found, Err(Error::Corrupt { .. })), "{text}");
        }
    }
}
