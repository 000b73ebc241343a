//! What becomes a result later, where it is found if its maker does not live so long.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::is_spooled_elsewhere;
use crate::directory::{self, Found, give_to_caller, open_beneath};
use crate::error::{Error, Result};

/// What a partial result's name ends with.
pub const SUFFIX: &str = ".partial";

/// A file beside a result that is not made yet, for its owner alone. It stays, until
/// [`Partial::remove`].
#[derive(Debug)]
pub struct Partial {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl Partial {
    /// Makes `RESULT.partial`; in the system's temporary directory for what is no file, as standard
    /// output.
    ///
    /// Errors: `Io`; `Unsupported` if there is one, which holds what somebody may want.
    pub fn create(result: &Path) -> Result<(Partial, File)> {
        let path = match is_spooled_elsewhere(result) {
            true => std::env::temp_dir().join(directory::unique("iostep-")),
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
            object: None,
            ..
        } = found
        else {
            return Err(taken(path));
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let made = open_beneath(directory.as_fd(), &name, flags, Mode::RUSR | Mode::WUSR);
        let file = match made {
            Err(Errno::EXIST) => return Err(taken(path)),
            made => File::from(made.map_err(|errno| failed(errno.into()))?),
        };
        give_to_caller(&file).map_err(failed)?;
        let partial = Partial {
            directory,
            name,
            path,
        };
        Ok((partial, file))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it: the result is there, or nobody wants one.
    pub fn remove(self) {
        // Whoever removed it first wanted the same.
        let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
    }
}

fn taken(path: PathBuf) -> Error {
    Error::Unsupported {
        path,
        found: "it is there already, of a run that was cut short or goes on".into(),
        expected: "a free name: use what is in it, or remove it".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn it_stays_until_it_is_removed_and_none_is_replaced() {
        let place = tempfile::tempdir().expect("a directory");
        let result = place.path().join("app.trace");
        let (partial, mut file) = Partial::create(&result).expect("a free name");
        file.write_all(b"beginning").expect("room");
        let path = place.path().join("app.trace.partial");
        assert_eq!(partial.path(), path);
        drop((partial, file));
        let refused = Partial::create(&result).expect_err("taken");
        assert!(refused.to_string().contains("app.trace.partial"));
        assert_eq!(std::fs::read(&path).expect("a file"), b"beginning");
        std::fs::remove_file(&path).expect("a file");
        let (partial, _) = Partial::create(&result).expect("a free name");
        partial.remove();
        assert!(!path.exists());
    }

    #[test]
    fn what_a_link_leads_to_is_not_replaced() {
        let place = tempfile::tempdir().expect("a directory");
        let victim = place.path().join("victim");
        std::fs::write(&victim, "content").expect("a file");
        let link = place.path().join("r.partial");
        std::os::unix::fs::symlink(&victim, link).expect("a link");
        Partial::create(&place.path().join("r")).expect_err("a link is there");
        assert_eq!(std::fs::read(&victim).expect("a file"), b"content");
    }

    #[test]
    fn standard_output_has_it_elsewhere() {
        let (partial, _) = Partial::create(Path::new("-")).expect("a free name");
        assert!(partial.path().starts_with(std::env::temp_dir()));
        partial.remove();
    }
}
