//! What advice is asked for: a database or a directory, and where it is.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use iostep_analyze::advise::Situation;
use iostep_load::{Error, transactions::facts};
use iostep_model::database::DatabaseFacts;
use iostep_model::directory;
use iostep_trace::mounts::Superblock;
use iostep_trace::target::{Mount, Target};

/// How long tables are read for.
const READING: Duration = Duration::from_secs(2);
/// The longest log that is tried, pages.
const LONGEST_LOG: u32 = 4000;
const MIB: u64 = 1 << 20;

/// A database or a directory.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The directory, or the one that the database is in, without links on the way.
    pub directory: PathBuf,
    /// What the database is like.
    pub database: Option<DatabaseFacts>,
    /// The filesystem, as the kernel names it; empty if it does not.
    pub filesystem: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// With which options in force.
    pub mount_options: String,
    /// True on a loop device.
    pub is_loop: bool,
}

impl Subject {
    /// Looks at what the user named. Links are followed, but for a stranger's: the database's own
    /// directory is what SQLite puts its journal into.
    ///
    /// Errors: `Usage` for what is neither; `Io`.
    pub fn of(target: &Path) -> anyhow::Result<Subject> {
        let found = directory::resolve(target).map_err(|error| Error::Usage {
            what: error.to_string(),
            hint: "name a database, or a directory".into(),
        })?;
        let (directory, database) = match found.is_dir() {
            true => (found, None),
            false => {
                let directory = found.parent().unwrap_or(Path::new("/")).to_owned();
                (directory, Some(facts::read(&found, READING)?))
            }
        };
        let mount = Mount::of(&directory).ok();
        let superblock = Superblock::of(&directory).ok();
        let device = Target::resolve(&directory).ok();
        Ok(Subject {
            filesystem: mount.as_ref().map_or_else(String::new, |m| m.kind.clone()),
            mount_point: mount.map_or("/".into(), |m| m.point),
            mount_options: superblock.map_or_else(String::new, |found| found.in_force),
            is_loop: device.is_some_and(|target| target.upper().name.starts_with("loop")),
            directory,
            database,
        })
    }

    /// The database's file name.
    pub fn name(&self) -> Option<&[u8]> {
        let facts = self.database.as_ref()?;
        facts.path.file_name().map(OsStrExt::as_bytes)
    }

    /// Makes sure that no run can fill the filesystem.
    ///
    /// Errors: `Refused` without room; `Io`.
    pub fn check_room(&self, place: &Situation) -> anyhow::Result<()> {
        let directory = self.directory.display();
        let stat = rustix::fs::statvfs(&self.directory)
            .with_context(|| format!("{directory}: cannot ask for the free space"))?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let longest = place.present.checkpoint_pages.max(LONGEST_LOG);
        let needed = place
            .workload
            .room_bytes(place.present.page_bytes, longest, place.run_ns);
        // A filesystem without blocks, as ramfs, does not say.
        if needed <= free || stat.f_blocks == 0 {
            return Ok(());
        }
        Err(Error::Refused {
            what: format!(
                "{directory}: a run may take {} MiB, but {} MiB are free",
                needed.div_ceil(MIB),
                free / MIB
            ),
            hint: "make room, choose a shorter --time, or name another directory".into(),
        }
        .into())
    }
}
