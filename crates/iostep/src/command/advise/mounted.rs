//! A mounted filesystem whose options are changed.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use iostep_analyze::advise::is_in_force;
use iostep_model::directory::Directory;
use iostep_trace::mounts::Superblock;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::mount::{FsPickFlags, fsconfig_reconfigure, fsconfig_set_flag, fsconfig_set_string};

/// How long another one may take that is about to end.
const PATIENCE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(20);

/// A mount that is held: options are set on this filesystem, whatever is mounted over it or put at
/// its name meanwhile.
#[derive(Debug)]
pub struct Mounted {
    root: Directory,
}

impl Mounted {
    /// Holds what is mounted at `point`, or at a descriptor of another process.
    ///
    /// Errors: it cannot be opened.
    pub fn open(point: &Path) -> anyhow::Result<Mounted> {
        let root = Directory::open(point)?;
        Ok(Mounted { root })
    }

    pub fn root(&self) -> &Directory {
        &self.root
    }

    /// Fails unless a directory lies on this mount, and not on one that is mounted over it.
    pub fn check_holds(&self, directory: &Path) -> anyhow::Result<()> {
        ensure!(
            self.superblock()?.mount_id == Superblock::of(directory)?.mount_id,
            "{} is not on what is mounted there now",
            directory.display()
        );
        Ok(())
    }

    /// Fails unless an option says what is in force.
    pub fn check_in_force(&self, option: &str) -> anyhow::Result<()> {
        let now = self.superblock()?;
        ensure!(
            is_in_force(&now.kind, &now.in_force, option),
            "{option} is not in force"
        );
        Ok(())
    }

    /// Keeps others who call this from setting options, as long as this value lives.
    ///
    /// Errors: another one does not let go of it.
    pub fn lock(&self) -> anyhow::Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            match rustix::fs::flock(&self.root, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::AGAIN) if Instant::now() < end => std::thread::sleep(TICK),
                Err(Errno::AGAIN) => anyhow::bail!("another iostep sets its options now"),
                done => return done.context("cannot lock its root directory"),
            }
        }
    }

    /// Sets an option beside those that it has. Only the filesystem's own change: not how this mount
    /// is seen, nor what fstab(5) says.
    ///
    /// Errors: the kernel refuses it, with its own words; it takes it and does not do it.
    pub fn set(&self, option: &str) -> anyhow::Result<()> {
        let before = self.superblock()?.shown;
        let flags = FsPickFlags::FSPICK_EMPTY_PATH | FsPickFlags::FSPICK_CLOEXEC;
        let context = rustix::mount::fspick(self.root.as_fd(), c"", flags)
            .context("cannot change its options")?;
        // f2fs and nilfs2 take their default for what is not named.
        for option in before.iter().map(String::as_str).chain([option]) {
            let given = match option.split_once('=') {
                Some((key, value)) => fsconfig_set_string(&context, key, value),
                None => fsconfig_set_flag(&context, option),
            };
            given.map_err(|errno| refusal(&context, option, errno))?;
        }
        fsconfig_reconfigure(&context).map_err(|errno| refusal(&context, option, errno))?;
        self.check_in_force(option)
    }

    fn superblock(&self) -> anyhow::Result<Superblock> {
        Superblock::of(&self.root.path()).context("cannot read its options")
    }
}

/// The kernel's reason: the first error in the context's log, or what the number means.
fn refusal(context: &OwnedFd, option: &str, errno: Errno) -> anyhow::Error {
    let mut line = [0; 256];
    while let Ok(length) = rustix::io::read(context, &mut line) {
        let line = String::from_utf8_lossy(&line[..length]);
        if let Some(reason) = line.strip_prefix("e ") {
            return anyhow!("the kernel refuses {option}: {}", reason.trim());
        }
    }
    anyhow!(
        "the kernel refuses {option}: {}",
        std::io::Error::from(errno)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_sets_options() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let open = || Mounted::open(place.path()).expect("a directory");
        let first = open();
        first.lock().expect("nobody has it");
        let error = open().lock().expect_err("the first has it");
        assert!(error.to_string().contains("another iostep"), "{error}");
        drop(first);
        open().lock().expect("nobody has it any more");
    }

    #[test]
    fn another_mount_is_another_one() {
        let root = Mounted::open(Path::new("/")).expect("a directory");
        root.check_holds(Path::new("/")).expect("the same");
        let error = root.check_holds(Path::new("/proc")).expect_err("proc");
        assert!(error.to_string().starts_with("/proc is not on"), "{error}");
    }
}
