//! `checksums.json`: what the tables' files were when they were written.
//!
//! Parquet checks little of itself. A file that was cut, edited or damaged is found out here,
//! before anything in it is believed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::publish;

/// The name inside a trace directory.
pub(super) const FILE_NAME: &str = "checksums.json";

/// Length and CRC-32C of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checksum {
    pub(super) bytes: u64,
    pub(super) crc32c: u32,
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
    }
}

/// A writer that sums up what goes through it.
pub(super) struct Summing<W> {
    inner: W,
    pub(super) checksum: Checksum,
}

impl<W: Write> Summing<W> {
    pub(super) fn new(inner: W) -> Summing<W> {
        let checksum = Checksum::default();
        Summing { inner, checksum }
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.checksum.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// The checksums of a trace directory, by file name.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Checksums(BTreeMap<String, Checksum>);

impl Checksums {
    pub(super) fn insert(&mut self, name: String, checksum: Checksum) {
        self.0.insert(name, checksum);
    }

    /// Reads `dir/checksums.json`.
    ///
    /// Errors: `Io`; `Corrupt` if it is missing or does not parse.
    pub(super) fn read(dir: &Path) -> Result<Checksums> {
        let path = dir.join(FILE_NAME);
        let mut bytes = Vec::new();
        open(&path)?
            .take(1 << 16)
            .read_to_end(&mut bytes)
            .map_err(Error::io(&path, "read"))?;
        serde_json::from_slice(&bytes).map_err(|e| Error::corrupt(&path, "JSON", e))
    }

    /// Writes `dir/checksums.json`.
    ///
    /// Errors: `Io`.
    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).expect("names and numbers are JSON");
        publish::write_private(&dir.join(FILE_NAME), &text)
    }

    /// Opens the file at `path`, which has to be as it was written.
    ///
    /// Errors: `Io`; `Corrupt` if it is missing, unknown or different.
    pub(super) fn open(&self, path: &Path) -> Result<File> {
        let name = path.file_name().and_then(|name| name.to_str());
        let expected = name
            .and_then(|name| self.0.get(name))
            .ok_or_else(|| Error::corrupt(path, "checksum", format!("none in {FILE_NAME}")))?;
        let mut file = open(path)?;
        let found = sum(path, &mut file)?;
        if found.bytes != expected.bytes {
            let reason = format!("{} bytes, expected {}", found.bytes, expected.bytes);
            return Err(Error::corrupt(path, "length", reason));
        }
        if found != *expected {
            let reason = format!(
                "CRC-32C {:#010x}, expected {:#010x}; the file was changed after it was written",
                found.crc32c, expected.crc32c
            );
            return Err(Error::corrupt(path, "checksum", reason));
        }
        Ok(file)
    }
}

/// Opens a file that a whole trace has.
///
/// Errors: `Io`; `Corrupt` if it is missing.
pub(super) fn open(path: &Path) -> Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let reason = "missing; the trace is not whole";
            Err(Error::corrupt(path, "file", reason))
        }
        other => other.map_err(Error::io(path, "open")),
    }
}

/// Sums up what follows in a file; `path` is for messages.
///
/// Errors: `Io`.
pub(super) fn sum(path: &Path, file: &mut File) -> Result<Checksum> {
    let mut buffer = vec![0; 256 << 10];
    let mut checksum = Checksum::default();
    loop {
        match file.read(&mut buffer).map_err(Error::io(path, "read"))? {
            0 => return Ok(checksum),
            length => checksum.add(&buffer[..length]),
        }
    }
}
