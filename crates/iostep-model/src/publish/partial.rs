//! What becomes a result later, where it is found if its maker does not live so long.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::is_spooled_elsewhere;
use crate::directory::{self, Found, give_to_caller, open_beneath};
use crate::error::{Error, Result};

/// What a partial result's name ends with.
pub const SUFFIX: &str = ".partial";
/// What its name begins with where the result is no file.
const PREFIX: &str = "iostep-";
const OWNER: Mode = Mode::RUSR.union(Mode::WUSR);

/// A file beside a result that is not made yet, for its owner alone. It stays, until
/// [`Partial::remove`].
#[derive(Debug)]
pub struct Partial {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
    is_taken_over: bool,
}

/// What partial results of one kind look like.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What each begins with.
    pub mark: &'static [u8],
    /// True for a file, read from behind the mark, that holds nothing which anybody may want. False
    /// where that cannot be told.
    pub is_empty: fn(&mut File) -> bool,
}

impl Partial {
    /// Makes `RESULT.partial`; in the system's temporary directory for what is no file, as standard
    /// output. The file is locked as long as it is open, and begins with the mark.
    ///
    /// One that is there is taken over if it is this user's, or of whoever called sudo, its maker is
    /// dead, and it is empty.
    ///
    /// Errors: `Io`; `Unsupported` if there is another one, which holds what somebody may want.
    pub fn create(result: &Path, kind: Kind) -> Result<(Partial, File)> {
        let path = match is_spooled_elsewhere(result) {
            true => {
                let directory = std::env::temp_dir();
                sweep(&directory, kind);
                directory.join(directory::unique(PREFIX))
            }
            false => result.to_owned(),
        };
        let mut path = path.into_os_string();
        path.push(SUFFIX);
        let path = PathBuf::from(path);
        let failed = |error: io::Error| Error::io(&path, "create")(error);
        let found = directory::find(&path).map_err(failed)?;
        let Found {
            directory,
            name: Some(name),
            object,
            is_descriptor: false,
        } = found
        else {
            return Err(taken(path, result, Left::Foreign));
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let made = open_beneath(directory.as_fd(), &name, flags, OWNER);
        let (file, is_taken_over) = match made {
            Ok(fd) => (File::from(fd), false),
            Err(Errno::EXIST) => match look(directory.as_fd(), &name, object, kind) {
                Left::Abandoned(file) => (file, true),
                left => return Err(taken(path, result, left)),
            },
            Err(errno) => return Err(failed(errno.into())),
        };
        let partial = Partial {
            directory,
            name,
            path: path.clone(),
            is_taken_over,
        };
        match begin(&file, kind, is_taken_over) {
            Ok(()) => Ok((partial, file)),
            Err(error) => {
                partial.remove();
                Err(failed(error))
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if a run that was killed left it.
    pub fn is_taken_over(&self) -> bool {
        self.is_taken_over
    }

    /// Removes it: the result is there, or nobody wants one.
    pub fn remove(self) {
        // Whoever removed it first wanted the same.
        let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
    }
}

/// Leaves nothing but the mark in it, which comes first: one without is nobody's.
fn begin(mut file: &File, kind: Kind, is_taken_over: bool) -> io::Result<()> {
    match is_taken_over {
        true => {
            file.set_len(kind.mark.len() as u64)?;
            file.seek(SeekFrom::End(0))?;
            rustix::fs::fchmod(file, OWNER)?;
        }
        false => {
            match rustix::fs::flock(file, FlockOperation::LockExclusive) {
                // Not every filesystem of a network has locks: nothing is taken over there either.
                Ok(()) | Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => {}
                Err(errno) => return Err(errno.into()),
            }
            file.write_all(kind.mark)?;
        }
    }
    give_to_caller(file)
}

/// What lies where a partial result is to be.
enum Left {
    /// A dead run's, and empty; its lock is held.
    Abandoned(File),
    /// Somebody writes to it, as far as can be told.
    InUse,
    /// It holds what somebody may want.
    Full,
    /// No partial result of this kind, or not this user's.
    Foreign,
}

fn look(directory: BorrowedFd<'_>, name: &OsStr, object: Option<Stat>, kind: Kind) -> Left {
    let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    // To open a device does something.
    if !object.as_ref().is_some_and(is_file) {
        return Left::Foreign;
    }
    let flags = OFlags::RDWR | OFlags::NONBLOCK;
    let Ok(fd) = open_beneath(directory, name, flags, Mode::empty()) else {
        return Left::Foreign;
    };
    let mut file = File::from(fd);
    let Ok(own) = rustix::fs::fstat(&file) else {
        return Left::Foreign;
    };
    if !is_file(&own) || own.st_nlink != 1 || !is_ours(&own) || !has_mark(&mut file, kind.mark) {
        return Left::Foreign;
    }
    let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
    // Whoever had the lock before may have put another one there, or removed it.
    let now = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    let same = now.is_ok_and(|now| (now.st_dev, now.st_ino) == (own.st_dev, own.st_ino));
    match (locked, same) {
        (Ok(()), true) if (kind.is_empty)(&mut file) => Left::Abandoned(file),
        (Ok(()), true) => Left::Full,
        _ => Left::InUse,
    }
}

fn is_ours(stat: &Stat) -> bool {
    let owner = Uid::from_raw(stat.st_uid);
    owner == rustix::process::geteuid()
        || directory::caller().is_some_and(|(user, _)| user == owner)
}

fn has_mark(file: &mut File, mark: &[u8]) -> bool {
    let mut start = vec![0; mark.len()];
    file.read_exact(&mut start).is_ok() && start == mark
}

/// Removes what dead runs left empty for results that are no files: no other run would find them.
fn sweep(directory: &Path, kind: Kind) {
    let Ok(held) = directory::Directory::open(directory) else {
        return;
    };
    let Ok(entries) = rustix::fs::Dir::read_from(&held) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_bytes();
        if !(name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())) {
            continue;
        }
        let name = OsStr::from_bytes(name);
        let object = rustix::fs::statat(&held, name, AtFlags::SYMLINK_NOFOLLOW);
        if let Left::Abandoned(_) = look(held.as_fd(), name, object.ok(), kind) {
            let _ = rustix::fs::unlinkat(&held, name, AtFlags::empty());
        }
    }
}

fn taken(path: PathBuf, result: &Path, left: Left) -> Error {
    let (name, result) = (path.display(), result.display());
    let (found, expected) = match left {
        Left::InUse => (
            "another run is writing it",
            "a free name: wait for that run, or give this one another name".to_owned(),
        ),
        Left::Full => (
            "a run that was cut short left it",
            format!(
                "a free name: `iostep clean {name} -o {result}` makes what is in it a trace, then \
                 remove it"
            ),
        ),
        Left::Foreign | Left::Abandoned(_) => (
            "it is there already, and no run of this user left it",
            "a free name: remove it, or give this run another name".to_owned(),
        ),
    };
    Error::Unsupported {
        found: found.into(),
        expected,
        path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind {
        mark: b"mark\n",
        is_empty: |file| matches!(file.read(&mut [0]), Ok(0)),
    };

    fn create(result: &Path) -> Result<(Partial, File)> {
        Partial::create(result, KIND)
    }

    fn refusal(result: &Path) -> String {
        create(result).expect_err("it is taken").to_string()
    }

    #[test]
    fn it_stays_until_it_is_removed_and_none_that_holds_something_is_replaced() {
        let place = tempfile::tempdir().expect("a directory");
        let result = place.path().join("app.trace");
        let (partial, mut file) = create(&result).expect("a free name");
        assert!(!partial.is_taken_over());
        file.write_all(b"beginning").expect("room");
        let path = place.path().join("app.trace.partial");
        assert_eq!(partial.path(), path);
        drop((partial, file));
        let way_out = format!("iostep clean {} -o {}", path.display(), result.display());
        let refused = refusal(&result);
        assert!(refused.contains(&way_out), "{refused}");
        assert_eq!(std::fs::read(&path).expect("a file"), b"mark\nbeginning");
        std::fs::remove_file(&path).expect("a file");
        let (partial, _) = create(&result).expect("a free name");
        partial.remove();
        assert!(!path.exists());
    }

    #[test]
    fn an_empty_one_is_taken_over_once_its_maker_is_gone() {
        let place = tempfile::tempdir().expect("a directory");
        let result = place.path().join("app.trace");
        let first = create(&result).expect("a free name");
        let refused = refusal(&result);
        assert!(refused.contains("another run is writing it"), "{refused}");
        drop(first);
        let (partial, mut file) = create(&result).expect("a dead run's");
        assert!(partial.is_taken_over());
        assert!(refusal(&result).contains("another run is writing it"));
        file.write_all(b"more").expect("room");
        let path = partial.path().to_owned();
        assert_eq!(std::fs::read(&path).expect("a file"), b"mark\nmore");
    }

    #[test]
    fn what_no_run_made_is_not_taken_over() {
        let place = tempfile::tempdir().expect("a directory");
        let result = place.path().join("app.trace");
        let path = place.path().join("app.trace.partial");
        for content in [&b""[..], b"mar", b"precious"] {
            std::fs::write(&path, content).expect("a file");
            assert!(refusal(&result).contains("no run of this user left it"));
            assert_eq!(std::fs::read(&path).expect("a file"), content);
        }
        std::fs::write(&path, "mark\n").expect("a file");
        std::fs::hard_link(&path, place.path().join("other")).expect("a link");
        assert!(refusal(&result).contains("no run of this user left it"));
        std::fs::remove_file(&path).expect("a file");
        std::fs::create_dir(&path).expect("a directory");
        assert!(refusal(&result).contains("no run of this user left it"));
    }

    #[test]
    fn what_a_link_leads_to_is_not_replaced() {
        let place = tempfile::tempdir().expect("a directory");
        let victim = place.path().join("victim");
        std::fs::write(&victim, "content").expect("a file");
        let link = place.path().join("r.partial");
        std::os::unix::fs::symlink(&victim, link).expect("a link");
        create(&place.path().join("r")).expect_err("a link is there");
        assert_eq!(std::fs::read(&victim).expect("a file"), b"content");
    }

    #[test]
    fn standard_output_has_it_elsewhere() {
        let (partial, _) = create(Path::new("-")).expect("a free name");
        assert!(partial.path().starts_with(std::env::temp_dir()));
        partial.remove();
    }

    #[test]
    fn only_empty_ones_that_are_left_are_swept() {
        let place = tempfile::tempdir().expect("a directory");
        let of = |name: &str| place.path().join(name);
        let files = [
            ("iostep-1-0.partial", "mark\n"),
            ("iostep-2-0.partial", "mark\nrecord"),
            ("iostep-3-0.partial", ""),
            ("other-4-0.partial", "mark\n"),
        ];
        for (name, content) in files {
            std::fs::write(of(name), content).expect("a file");
        }
        let held = create(&of("iostep-5-0")).expect("a free name");
        sweep(place.path(), KIND);
        assert!(!of(files[0].0).exists());
        assert!(files[1..].iter().all(|(name, _)| of(name).exists()));
        held.0.remove();
    }
}
