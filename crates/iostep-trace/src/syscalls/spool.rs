//! Records on their way: written while a program runs, read when it is over, or when its recorder
//! is.
//!
//! [`MAGIC`], then frames: the length in four bytes, then the bytes. The first frame is the
//! [`Beginning`] as JSON, each of the others a record. The file lies beside the result by the name
//! `RESULT.partial` and is removed once that is there, so that neither a full disk nor SIGKILL takes
//! away what was recorded. One without any record is taken over by the next run.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use iostep_model::Error as Unreadable;
use iostep_model::publish::{Partial, partial};
use iostep_model::syscall::Header;
use serde::{Deserialize, Serialize};

use super::present::Present;
use super::record::MAX_BYTES;
use crate::error::{Error, Result};

// A macro, since `concat!` takes no constant.
macro_rules! version {
    () => {
        1
    };
}

/// The version of the format.
pub const VERSION: u32 = version!();

/// What a file of this kind begins with.
pub const MAGIC: &[u8] = concat!("iostep calls ", version!(), "\n").as_bytes();
const BUFFER_BYTES: usize = 1 << 20;
/// A process with very many open files has a long beginning.
const MAX_BEGINNING_BYTES: usize = 1 << 28;

/// What is known when a recording begins.
#[derive(Debug, Serialize, Deserialize)]
pub struct Beginning {
    /// What the trace file says of its recorder.
    pub header: Header,
    /// `CLOCK_MONOTONIC` at the recording's time 0, nanoseconds.
    pub start_mono_ns: u64,
    /// `CLOCK_MONOTONIC` when `present` was complete: what calls that ended before did is in it.
    pub present_since_ns: u64,
    /// What was open before.
    pub present: Present,
}

/// Takes records.
#[derive(Debug)]
pub struct Writer {
    file: BufWriter<File>,
    partial: Partial,
}

/// Gives the records back, in the same order.
#[derive(Debug)]
pub struct Reader {
    file: BufReader<File>,
    path: PathBuf,
    /// The file's name, if it is this run's own.
    partial: Option<Partial>,
    /// What was known first.
    pub beginning: Beginning,
    /// It ends within a record.
    is_cut: bool,
}

impl Writer {
    /// Makes a file for what becomes `result`.
    ///
    /// Errors: `Trace`, as where there is one or its directory cannot be written to.
    pub fn create(result: &Path) -> Result<Writer> {
        let kind = partial::Kind {
            mark: MAGIC,
            is_empty: has_no_record,
        };
        let (partial, file) = Partial::create(result, kind)?;
        Ok(Writer {
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            partial,
        })
    }

    pub fn path(&self) -> &Path {
        self.partial.path()
    }

    /// True if it was there already, of a run that was killed before it recorded anything.
    pub fn is_taken_over(&self) -> bool {
        self.partial.is_taken_over()
    }

    /// Writes what comes before all records.
    ///
    /// Errors: `Io`, as on a full disk.
    pub fn begin(&mut self, beginning: &Beginning) -> Result<()> {
        let text = serde_json::to_vec(beginning).map_err(|error| self.failed(error.into()))?;
        self.push(&text)?;
        self.flush()
    }

    /// Adds a record.
    ///
    /// Errors: `Io`, as on a full disk.
    pub fn push(&mut self, record: &[u8]) -> Result<()> {
        let length = u32::try_from(record.len()).unwrap_or(u32::MAX);
        let written = self.file.write_all(&length.to_le_bytes());
        let written = written.and_then(|()| self.file.write_all(record));
        written.map_err(|error| self.failed(error))
    }

    /// Hands everything to the kernel, which keeps it if this process is killed.
    ///
    /// Errors: `Io`, as on a full disk.
    pub fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::io(self.partial.path(), "write to")(error)
    }

    /// Goes back to the beginning.
    ///
    /// Errors: `Io`, as on a full disk; what [`Writer::begin`] wrote is missing.
    pub fn read(mut self) -> Result<Reader> {
        self.flush()?;
        let path = self.partial.path().to_owned();
        let Writer { file, partial } = self;
        let file = file.into_inner().map_err(|error| error.into_error());
        let mut file = file.map_err(Error::io(&path, "write to"))?;
        file.rewind().map_err(Error::io(&path, "read"))?;
        Reader::new(file, path, Some(partial))
    }

    /// Removes the file: nothing was recorded.
    pub fn discard(self) {
        // What is not written yet must not be.
        let (_, _) = self.file.into_parts();
        self.partial.remove();
    }
}

impl Reader {
    /// Opens what a recorder left that did not come to its end.
    ///
    /// Errors: `Io`; `Trace` for what is no such file.
    pub fn open(path: &Path) -> Result<Reader> {
        let file = File::open(path).map_err(Error::io(path, "open"))?;
        Reader::new(file, path.to_owned(), None)
    }

    fn new(file: File, path: PathBuf, partial: Option<Partial>) -> Result<Reader> {
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        let bad = |reason: String| Unreadable::corrupt(&path, "its beginning", reason);
        let mut magic = [0; MAGIC.len()];
        let read = file.read_exact(&mut magic);
        if read.is_err() || magic != MAGIC {
            return Err(bad("it is no partial recording, or of another version".into()).into());
        }
        let mut text = Vec::new();
        match frame(&mut file, &mut text, MAX_BEGINNING_BYTES) {
            Ok(Frame::Whole) => {}
            Ok(_) => return Err(bad("nothing was recorded yet".into()).into()),
            Err(error) => return Err(Error::io(&path, "read")(error)),
        }
        let beginning = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
        Ok(Reader {
            file,
            path,
            partial,
            beginning,
            is_cut: false,
        })
    }

    /// Puts the next record into `bytes`; false at the end.
    ///
    /// Errors: `Io`.
    pub fn next(&mut self, bytes: &mut Vec<u8>) -> Result<bool> {
        let read = frame(&mut self.file, bytes, MAX_BYTES);
        let read = read.map_err(Error::io(&self.path, "read"))?;
        self.is_cut |= read == Frame::Cut;
        Ok(read == Frame::Whole)
    }

    /// True once a record was found that is not whole: the recorder died in the middle of it.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Removes the file, if it is this run's own: what is in it is elsewhere now.
    pub fn remove(self) {
        if let Some(partial) = self.partial {
            partial.remove();
        }
    }
}

/// True if not even one record is whole behind the beginning, or not even that is.
fn has_no_record(file: &mut File) -> bool {
    let (mut file, mut bytes) = (BufReader::new(file), Vec::new());
    for most in [MAX_BEGINNING_BYTES, MAX_BYTES] {
        match frame(&mut file, &mut bytes, most) {
            Ok(Frame::Whole) => {}
            Ok(Frame::End | Frame::Cut) => return true,
            Err(_) => return false,
        }
    }
    false
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Whole,
    /// There is none.
    End,
    /// It ends too early, or cannot be so long.
    Cut,
}

fn frame(file: &mut impl Read, bytes: &mut Vec<u8>, most: usize) -> std::io::Result<Frame> {
    let mut length = Vec::new();
    file.take(4).read_to_end(&mut length)?;
    let length = match length[..].try_into() {
        Ok(length) => u32::from_le_bytes(length) as usize,
        Err(_) if length.is_empty() => return Ok(Frame::End),
        Err(_) => return Ok(Frame::Cut),
    };
    if length > most {
        return Ok(Frame::Cut);
    }
    bytes.clear();
    match file.take(length as u64).read_to_end(bytes) {
        Ok(read) if read == length => Ok(Frame::Whole),
        Ok(_) => Ok(Frame::Cut),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Frame::Cut),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A recording without anything in it yet.
    pub(crate) fn begun(place: &Path) -> Writer {
        let mut writer = Writer::create(&place.join("trace")).expect("a spool");
        let beginning = Beginning {
            header: Header::default(),
            start_mono_ns: 7,
            present_since_ns: 0,
            present: Present::default(),
        };
        writer.begin(&beginning).expect("room");
        writer
    }

    fn all(mut reader: Reader) -> (Vec<Vec<u8>>, bool) {
        let (mut bytes, mut all) = (Vec::new(), Vec::new());
        while reader.next(&mut bytes).expect("readable") {
            all.push(bytes.clone());
        }
        (all, reader.is_cut())
    }

    #[test]
    fn what_was_pushed_comes_back_in_order() {
        let place = tempfile::tempdir().expect("a directory");
        let mut writer = begun(place.path());
        for record in [&b"first"[..], b"", b"third"] {
            writer.push(record).expect("room");
        }
        let reader = writer.read().expect("a reader");
        assert_eq!(reader.beginning.start_mono_ns, 7);
        assert_eq!(reader.path, place.path().join("trace.partial"));
        let expected = vec![b"first".to_vec(), Vec::new(), b"third".to_vec()];
        assert_eq!(all(reader), (expected, false));
    }

    #[test]
    fn every_shorter_file_has_the_whole_records_before_its_end() {
        let place = tempfile::tempdir().expect("a directory");
        let mut writer = begun(place.path());
        let begun = std::fs::metadata(writer.partial.path()).expect("a file");
        for record in [&b"first"[..], b"second"] {
            writer.push(record).expect("room");
        }
        writer.flush().expect("room");
        let path = writer.partial.path().to_owned();
        let whole = std::fs::read(&path).expect("a file");
        let begun = begun.len() as usize;
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).expect("a file");
            let Ok(reader) = Reader::open(&path) else {
                assert!(length < begun, "{length}");
                continue;
            };
            let records = [begun + 9, whole.len()];
            let expected = records.iter().filter(|end| length >= **end).count();
            let at_end = length == begun || records.contains(&length);
            let (found, is_cut) = all(reader);
            assert_eq!((found.len(), is_cut), (expected, !at_end), "{length}");
        }
    }

    #[test]
    fn the_next_run_takes_over_a_file_of_which_no_record_is_whole_and_no_other() {
        let place = tempfile::tempdir().expect("a directory");
        let result = place.path().join("trace");
        let mut writer = begun(place.path());
        let path = writer.path().to_owned();
        let begun = std::fs::metadata(&path).expect("a file").len() as usize;
        writer.push(b"first").expect("room");
        writer.flush().expect("room");
        drop(writer);
        let whole = std::fs::read(&path).expect("a file");
        for length in MAGIC.len()..whole.len() {
            std::fs::write(&path, &whole[..length]).expect("a file");
            let writer = Writer::create(&result).expect("no record is in it");
            assert!(writer.is_taken_over(), "{length} of {begun}");
            drop(writer);
            assert_eq!(std::fs::read(&path).expect("a file"), MAGIC);
        }
        std::fs::write(&path, &whole).expect("a file");
        Writer::create(&result).expect_err("a record is in it");
        assert_eq!(std::fs::read(&path).expect("a file"), whole);
    }

    #[test]
    fn a_length_that_cannot_be_ends_it() {
        let place = tempfile::tempdir().expect("a directory");
        let mut writer = begun(place.path());
        writer.push(&vec![0; MAX_BYTES + 1]).expect("room");
        assert_eq!(all(writer.read().expect("a reader")), (Vec::new(), true));
    }
}
