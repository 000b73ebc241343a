//! Records on their way: written while a program runs, read when it is over.
//!
//! A frame is the record's length in four bytes, then the record. The file has no name: nobody but
//! its writer ever reads it, and it is gone with the process.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::record::MAX_BYTES;
use crate::error::{Error, Result};

const BUFFER_BYTES: usize = 1 << 20;

/// Takes records.
#[derive(Debug)]
pub struct Writer {
    file: BufWriter<File>,
    directory: PathBuf,
}

/// Gives the records back, in the same order.
#[derive(Debug)]
pub struct Reader {
    file: BufReader<File>,
    directory: PathBuf,
}

impl Writer {
    /// Makes a file without a name in a directory.
    ///
    /// Errors: `Io`, as where the directory cannot be written to.
    pub fn create(directory: &Path) -> Result<Writer> {
        let file = tempfile::tempfile_in(directory);
        let file = file.map_err(Error::io(directory, "create a file in"))?;
        Ok(Writer {
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            directory: directory.to_owned(),
        })
    }

    /// Adds a record.
    ///
    /// Errors: `Io`, as on a full disk.
    pub fn push(&mut self, record: &[u8]) -> Result<()> {
        let length = u32::try_from(record.len()).unwrap_or(u32::MAX);
        let written = self.file.write_all(&length.to_le_bytes());
        let written = written.and_then(|()| self.file.write_all(record));
        written.map_err(Error::io(&self.directory, "write to a file in"))
    }

    /// Goes back to the beginning.
    ///
    /// Errors: `Io`, as on a full disk.
    pub fn read(self) -> Result<Reader> {
        let failed = Error::io(&self.directory, "write to a file in");
        let file = self.file.into_inner().map_err(|error| error.into_error());
        let file = file.and_then(|mut file| file.rewind().map(|()| file));
        Ok(Reader {
            file: BufReader::with_capacity(BUFFER_BYTES, file.map_err(failed)?),
            directory: self.directory,
        })
    }
}

impl Reader {
    /// Puts the next record into `bytes`; false at the end.
    ///
    /// Errors: `Io`.
    pub fn next(&mut self, bytes: &mut Vec<u8>) -> Result<bool> {
        let mut length = [0; 4];
        match self.file.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(Error::io(&self.directory, "read a file in")(error)),
        }
        bytes.resize((u32::from_le_bytes(length) as usize).min(MAX_BYTES), 0);
        let read = self.file.read_exact(bytes);
        read.map_err(Error::io(&self.directory, "read a file in"))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_comes_back_in_order() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = Writer::create(directory.path()).expect("a spool");
        for record in [&b"first"[..], b"", b"third"] {
            writer.push(record).expect("room");
        }
        let mut reader = writer.read().expect("a reader");
        let (mut bytes, mut all) = (Vec::new(), Vec::new());
        while reader.next(&mut bytes).expect("readable") {
            all.push(bytes.clone());
        }
        assert_eq!(all, [&b"first"[..], b"", b"third"]);
    }
}
