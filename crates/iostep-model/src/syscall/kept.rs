//! The data that files held before a recording, beside its trace file.
//!
//! `NAME.data` of the trace file `NAME` is a directory; the content of number `N`
//! ([`super::Content::Kept`]) is its file `N.zst`, compressed with zstd. Nothing else is in it.
//! docs/format-syscalls.md is the definition.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::directory::{Temporary, give_to_caller};
use crate::error::{Error, Result};

/// The fastest level: the program that is recorded waits.
const LEVEL: i32 = 1;
const PIECE_BYTES: usize = 1 << 17;
const SUFFIX: &str = ".zst";
/// Names within the temporary directory.
const NEW: &str = "new";
const OLD: &str = "old";

/// The directory of a trace file's kept data; it need not be there.
pub fn directory_of(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".data");
    name.into()
}

/// What became of an attempt to keep a file's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It is kept by this number.
    Kept(u32),
    /// It is more than may be kept.
    TooMuch,
    /// The file could not be read.
    Unreadable,
}

/// Keeps data until [`Writer::publish`] puts it beside a trace file.
#[derive(Debug)]
pub struct Writer {
    directory: Temporary,
    trace: PathBuf,
    left_bytes: u64,
    kept: u32,
    bytes: u64,
}

impl Writer {
    /// Begins a directory for the trace file `trace`, with room for `limit_bytes` of data before
    /// it is compressed.
    ///
    /// Errors: `Io`, and `Unsupported` if the directory's name belongs to something else.
    pub fn create(trace: &Path, limit_bytes: u64) -> Result<Writer> {
        check_is_ours(&directory_of(trace))?;
        let parent = match trace.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = Temporary::new(parent, ".iostep-data-")?;
        let new = directory.path().join(NEW);
        let made = fs::DirBuilder::new().mode(0o700).create(&new);
        made.map_err(Error::io(&new, "create"))?;
        Ok(Writer {
            directory,
            trace: trace.to_owned(),
            left_bytes: limit_bytes,
            kept: 0,
            bytes: 0,
        })
    }

    /// Keeps what `data` gives, at most `size` bytes.
    ///
    /// Errors: `Io` where it cannot be written, as on a full disk.
    pub fn keep(&mut self, data: &mut dyn Read, size: u64) -> Result<Attempt> {
        if size > self.left_bytes {
            return Ok(Attempt::TooMuch);
        }
        let number = self.kept + 1;
        let path = self.path(number);
        let failed = |error| Error::io(&path, "write")(error);
        let file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(Error::io(&path, "create"))?;
        give_to_caller(&file).map_err(Error::io(&path, "give away"))?;
        let mut encoder = zstd::Encoder::new(file, LEVEL).map_err(failed)?;
        encoder.include_checksum(true).map_err(failed)?;
        let mut data = data.take(size);
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match data.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => encoder.write_all(&piece[..read]).map_err(failed)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    drop(encoder);
                    fs::remove_file(&path).map_err(Error::io(&path, "remove"))?;
                    return Ok(Attempt::Unreadable);
                }
            }
        }
        let read = size - data.limit();
        encoder.finish().map_err(failed)?;
        self.kept = number;
        self.bytes += read;
        self.left_bytes -= read;
        Ok(Attempt::Kept(number))
    }

    /// Files whose data is kept.
    pub fn files(&self) -> u32 {
        self.kept
    }

    /// Bytes of data that are kept, before they were compressed.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts the directory in its place, instead of one that is there. Without any data there is
    /// none.
    ///
    /// Errors: `Io`, and `Unsupported` as in [`Writer::create`].
    pub fn publish(self) -> Result<()> {
        for number in 1..=self.kept {
            let path = self.path(number);
            let synced = File::open(&path).and_then(|file| file.sync_all());
            synced.map_err(Error::io(&path, "sync"))?;
        }
        let target = directory_of(&self.trace);
        check_is_ours(&target)?;
        let replaced = fs::rename(&target, self.directory.path().join(OLD));
        match replaced {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io(&target, "replace")(error));
            }
            _ => {}
        }
        if self.kept > 0 {
            let new = self.directory.path().join(NEW);
            let given = File::open(&new).and_then(give_to_caller);
            given.map_err(Error::io(&target, "give away"))?;
            fs::rename(new, &target).map_err(Error::io(&target, "make"))?;
        }
        Ok(())
    }

    fn path(&self, number: u32) -> PathBuf {
        self.directory
            .path()
            .join(NEW)
            .join(format!("{number}{SUFFIX}"))
    }
}

/// What is replaced must be what [`Writer::publish`] made once, or not be there.
fn check_is_ours(directory: &Path) -> Result<()> {
    let other = |found: String| Error::Unsupported {
        path: directory.to_owned(),
        found,
        expected: "nothing, or a directory of kept data to replace; choose another name".into(),
    };
    match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(directory, "look at")(error)),
        Ok(found) if !found.is_dir() => return Err(other("it is no directory".into())),
        Ok(_) => {}
    }
    for entry in fs::read_dir(directory).map_err(Error::io(directory, "list"))? {
        let name = entry.map_err(Error::io(directory, "list"))?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        if number
            .and_then(|number| number.parse::<u32>().ok())
            .is_none()
        {
            return Err(other(format!("{} is in it", name.to_string_lossy())));
        }
    }
    Ok(())
}

/// Reads the content of a number from a directory of kept data. Whoever reads decides how much to
/// take: a small file can hold a great deal.
///
/// Errors: `Io`, and `Unsupported` for what is no regular file; reading fails where it is damaged.
pub fn open(directory: &Path, number: u32) -> Result<impl Read + use<>> {
    let path = directory.join(format!("{number}{SUFFIX}"));
    // Whoever made the directory may have put anything there: a FIFO must not stop anybody.
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(&path)
        .map_err(Error::io(&path, "open"))?;
    let metadata = file.metadata().map_err(Error::io(&path, "look at"))?;
    if !metadata.is_file() {
        return Err(Error::Unsupported {
            path,
            found: "it is no regular file".into(),
            expected: "data compressed with zstd".into(),
        });
    }
    zstd::Decoder::new(file).map_err(Error::io(&path, "decompress"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(directory: &Path, number: u32) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let opened = open(directory, number).map_err(std::io::Error::other)?;
        opened.take(1 << 20).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("list");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_kept_reads_back_and_replaces_what_was_kept_before() {
        let place = tempfile::tempdir().expect("a directory");
        let trace = place.path().join("app.trace");
        for data in [&b"first"[..], b"second"] {
            let mut writer = Writer::create(&trace, 1000).expect("a directory");
            let kept = writer.keep(&mut &data[..], 100).expect("room");
            assert_eq!(kept, Attempt::Kept(1));
            assert_eq!(
                writer.keep(&mut &data[..], 3).expect("room"),
                Attempt::Kept(2)
            );
            assert_eq!((writer.files(), writer.bytes()), (2, data.len() as u64 + 3));
            writer.publish().expect("a place");
            let directory = directory_of(&trace);
            assert_eq!(read(&directory, 1).expect("data"), data);
            assert_eq!(read(&directory, 2).expect("data"), &data[..3]);
            assert_eq!(names(place.path()), ["app.trace.data"]);
        }
        let nothing = Writer::create(&trace, 1000).expect("a directory");
        nothing.publish().expect("a place");
        assert_eq!(names(place.path()), Vec::<String>::new());
    }

    #[test]
    fn more_than_the_limit_and_what_cannot_be_read_is_not_kept() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("broken"))
            }
        }
        let place = tempfile::tempdir().expect("a directory");
        let mut writer = Writer::create(&place.path().join("t"), 10).expect("a directory");
        assert_eq!(
            writer.keep(&mut Broken, 10).expect("no error of ours"),
            Attempt::Unreadable
        );
        let eight = [1; 8];
        let mut keep = |size| writer.keep(&mut &eight[..], size).expect("room");
        assert_eq!(keep(11), Attempt::TooMuch);
        assert_eq!(keep(8), Attempt::Kept(1));
        assert_eq!(keep(3), Attempt::TooMuch);
        assert_eq!(keep(2), Attempt::Kept(2));
        drop(writer);
        assert_eq!(names(place.path()), Vec::<String>::new());
    }

    #[test]
    fn what_somebody_else_has_there_is_not_replaced() {
        let place = tempfile::tempdir().expect("a directory");
        let trace = place.path().join("t");
        fs::create_dir(directory_of(&trace)).expect("a directory");
        fs::write(directory_of(&trace).join("1.zst"), "").expect("a file");
        Writer::create(&trace, 1).expect("a directory of ours");
        fs::write(directory_of(&trace).join("notes"), "").expect("a file");
        let refused = Writer::create(&trace, 1).expect_err("not ours");
        assert!(refused.to_string().contains("notes is in it"), "{refused}");
        let other = place.path().join("u");
        fs::write(directory_of(&other), "").expect("a file");
        Writer::create(&other, 1).expect_err("a file");
    }

    #[test]
    fn damaged_data_and_what_is_no_file_is_an_error() {
        let place = tempfile::tempdir().expect("a directory");
        let path = |number: u32| place.path().join(format!("{number}.zst"));
        fs::write(path(1), "no zstd").expect("a file");
        let whole = zstd::encode_all(&[7; 5000][..], LEVEL).expect("bytes");
        fs::write(path(2), &whole[..whole.len() - 3]).expect("a file");
        std::os::unix::fs::symlink("/dev/zero", path(3)).expect("a link");
        fs::create_dir(path(4)).expect("a directory");
        for number in 1..=5 {
            let error = read(place.path(), number).expect_err("no data");
            assert!(!error.to_string().is_empty(), "{number}");
        }
    }
}
