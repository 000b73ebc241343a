//! What files held before a recording: copied before the program's first open of each goes on.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use iostep_model::syscall::Content;
use iostep_model::syscall::kept::{Attempt, Writer};
use iostep_model::syscall::raw::{Seen, SeenKind};
use rustix::fs::SeekFrom;

use crate::error::{Error, Result};

/// Device and inode.
type Identity = (u64, u64);

/// Keeps the data of each file that is opened, once.
#[derive(Debug)]
pub struct FileData {
    writer: Writer,
    /// What files held, as long as it is known; none for what the program made itself.
    files: HashMap<Identity, Option<Held>>,
    counts: Counts,
    failed: Option<Error>,
}

/// What a file held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    size: u64,
    kept: Kept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Number(u32),
    Hole,
    Nothing,
}

/// How many files' data was kept, or why not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Files whose data is kept; empty ones and those that are nothing but holes not counted.
    pub files: u64,
    /// Bytes of their data.
    pub bytes: u64,
    /// Files that held more than there was room for within the limit.
    pub too_much: u64,
    /// Files that could not be read.
    pub unreadable: u64,
}

impl FileData {
    /// Keeps data beside the trace file `trace`, at most `limit_bytes` of it.
    ///
    /// Errors: those of [`Writer::create`].
    pub fn create(trace: &Path, limit_bytes: u64) -> Result<FileData> {
        Ok(FileData {
            writer: Writer::create(trace, limit_bytes)?,
            files: HashMap::new(),
            counts: Counts::default(),
            failed: None,
        })
    }

    /// Keeps what a file holds that is about to be opened and was found to be `found`, if this is
    /// its first open.
    pub(super) fn keep(&mut self, path: &Path, found: &Metadata) {
        let identity = (found.dev(), found.ino());
        if !found.is_file() || self.failed.is_some() || self.files.contains_key(&identity) {
            return;
        }
        let kept = match self.copy(path, identity) {
            Ok(held) => held,
            Err(error) => {
                self.failed = Some(error);
                return;
            }
        };
        match kept {
            Some(held) => {
                self.files.insert(identity, Some(held));
            }
            None => {
                self.counts.unreadable += 1;
                let (size, kept) = (found.size(), Kept::Nothing);
                self.files.insert(identity, Some(Held { size, kept }));
            }
        }
    }

    /// None if the file cannot be read.
    fn copy(&mut self, path: &Path, identity: Identity) -> Result<Option<Held>> {
        let Some(mut file) = open(path) else {
            return Ok(None);
        };
        let now = file.metadata().ok();
        // Another file may have come to this name meanwhile.
        let same = now.filter(|now| now.is_file() && (now.dev(), now.ino()) == identity);
        let Some(size) = same.map(|now| now.size()) else {
            return Ok(None);
        };
        if is_hole(&file, size) {
            let kept = Kept::Hole;
            return Ok(Some(Held { size, kept }));
        }
        let before = self.writer.bytes();
        let kept = match self.writer.keep(&mut file, size)? {
            Attempt::Unreadable => return Ok(None),
            Attempt::TooMuch => {
                self.counts.too_much += 1;
                Kept::Nothing
            }
            Attempt::Kept(number) => {
                self.counts.files += 1;
                self.counts.bytes += self.writer.bytes() - before;
                Kept::Number(number)
            }
        };
        Ok(Some(Held { size, kept }))
    }

    /// The program made this file itself, whatever it will hold.
    pub(super) fn made(&mut self, found: &Metadata) {
        self.files.insert((found.dev(), found.ino()), None);
    }

    /// Adds to what was seen of a file before a call.
    pub(super) fn tell(&self, seen: &mut Seen) {
        let held = seen.identity.and_then(|identity| self.files.get(&identity));
        let Some(Some(held)) = held else {
            return;
        };
        if let SeenKind::File { size, content } = &mut seen.kind {
            *size = Some(held.size);
            *content = match held.kept {
                Kept::Number(number) => Content::Kept(number),
                Kept::Hole => Content::Hole,
                Kept::Nothing => Content::Data,
            };
        }
    }

    /// How much was kept.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Puts the data beside the trace file.
    ///
    /// Errors: those of [`Writer::publish`], and what stopped the keeping early, as a full disk.
    pub fn publish(self) -> Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.writer.publish()?),
        }
    }
}

/// Opens a file without waiting for anybody, and without changing when it was read last, if that is
/// allowed (`O_NOATIME`, open(2): the owner only).
fn open(path: &Path) -> Option<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let with = |more| {
        let mut options = File::options();
        options.read(true).custom_flags(flags | more);
        options.open(path)
    };
    with(libc::O_NOATIME).or_else(|_| with(0)).ok()
}

/// True for a file that takes no space and has no data. A filesystem that does not know says that
/// all of it is data (lseek(2)).
fn is_hole(file: &File, size: u64) -> bool {
    let found = rustix::fs::seek(file, SeekFrom::Data(0));
    let hole = size == 0 || found == Err(rustix::io::Errno::NXIO);
    // What is read begins at the start again.
    let _ = rustix::fs::seek(file, SeekFrom::Start(0));
    hole
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;

    use iostep_model::syscall::kept;

    use super::*;

    struct Fixture {
        directory: tempfile::TempDir,
        data: FileData,
    }

    impl Fixture {
        fn new(limit_bytes: u64) -> Fixture {
            let directory = tempfile::tempdir().expect("a directory");
            let data = FileData::create(&directory.path().join("trace"), limit_bytes);
            Fixture {
                directory,
                data: data.expect("a directory for it"),
            }
        }

        fn write(&self, name: &str, bytes: &[u8]) -> Metadata {
            let path = self.directory.path().join(name);
            fs::write(&path, bytes).expect("a file");
            fs::metadata(path).expect("a file")
        }

        fn keep(&mut self, name: &str, found: &Metadata) {
            let path = self.directory.path().join(name);
            self.data.keep(&path, found);
        }

        /// What is told of a file that has 3 bytes now.
        fn told(&self, found: &Metadata) -> (u64, Content) {
            let (size, content) = (Some(3), Content::Data);
            let mut seen = Seen {
                identity: Some((found.dev(), found.ino())),
                names: None,
                kind: SeenKind::File { size, content },
                mode: None,
                open_file: 0,
            };
            self.data.tell(&mut seen);
            match seen.kind {
                SeenKind::File {
                    size: Some(size),
                    content,
                } => (size, content),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_file_is_kept_as_it_was_at_first_whatever_becomes_of_it() {
        let mut place = Fixture::new(1 << 20);
        let found = place.write("a", b"before");
        place.keep("a", &found);
        place.write("a", b"afterwards");
        place.keep("a", &found);
        assert_eq!(place.told(&found), (6, Content::Kept(1)));
        let counts = place.data.counts();
        assert_eq!((counts.files, counts.bytes), (1, 6));
        place.data.publish().expect("a place");
        let data = kept::directory_of(&place.directory.path().join("trace"));
        let mut bytes = Vec::new();
        let mut read = kept::open(&data, 1).expect("data");
        read.read_to_end(&mut bytes).expect("data");
        assert_eq!(bytes, b"before");
    }

    #[test]
    fn what_the_program_made_or_is_too_much_is_data_that_nobody_knows() {
        let mut place = Fixture::new(10);
        let made = place.write("made", b"new");
        place.data.made(&made);
        place.keep("made", &made);
        assert_eq!(place.told(&made), (3, Content::Data));
        let large = place.write("large", &[1; 11]);
        place.keep("large", &large);
        assert_eq!(place.told(&large), (11, Content::Data));
        let counts = place.data.counts();
        assert_eq!((counts.files, counts.too_much), (0, 1));
    }

    #[test]
    fn holes_and_empty_files_take_no_room() {
        let mut place = Fixture::new(10);
        let path = place.directory.path().join("hole");
        let file = File::create(&path).expect("a file");
        file.set_len(1 << 30).expect("a hole");
        let found = file.metadata().expect("a file");
        place.keep("hole", &found);
        let empty = place.write("empty", b"");
        place.keep("empty", &empty);
        assert_eq!(place.told(&empty), (0, Content::Hole));
        // A filesystem without holes has too much data there.
        let holds = match place.data.counts().too_much {
            0 => Content::Hole,
            _ => Content::Data,
        };
        assert_eq!(place.told(&found), (1 << 30, holds));
    }

    #[test]
    fn a_name_that_belongs_to_another_file_now_is_not_taken_for_it() {
        let mut place = Fixture::new(100);
        let one = place.write("one", b"1");
        place.write("two", b"22");
        place.keep("two", &one);
        assert_eq!(place.told(&one), (1, Content::Data));
        assert_eq!(place.data.counts().unreadable, 1);
    }
}
