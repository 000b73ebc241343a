//! The files that are read and written.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iostep_model::bench::{Access, FileJob, Files, InitialContent, Sharing};
use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::page_cache;
use super::payload::Payload;
use super::stamp::WRITER_BEFORE;
use crate::engine::Observer;
use crate::error::{Error, Result};
use crate::work_directory::WorkDirectory;

/// How often somebody is told how far it is.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// A file, or a part of a device, that some threads work on.
#[derive(Clone, Debug)]
pub struct Area {
    /// Number of the file; 0 for a device.
    pub file_number: u32,
    /// Path of file or device, for people.
    pub path: PathBuf,
    /// Where in it the area begins.
    pub base_bytes: u64,
    /// Who works on it.
    pub threads: Range<u32>,
}

/// The work files of a job, removed with this value unless they are to be kept.
#[derive(Debug)]
pub struct WorkFiles {
    names: Vec<String>,
    keep: bool,
    // Behind the files, since it can only be removed empty.
    directory: WorkDirectory,
}

/// How making the files is watched and ended.
pub struct Making<'a> {
    /// Set by whoever wants it to end early.
    interrupted: &'a AtomicBool,
    observer: &'a mut dyn Observer,
    done_bytes: u64,
    total_bytes: u64,
    /// When the observer was told last.
    told: Option<Instant>,
}

impl<'a> Making<'a> {
    /// Of `files` files or parts of a device.
    pub fn new(
        job: &FileJob,
        files: usize,
        interrupted: &'a AtomicBool,
        observer: &'a mut dyn Observer,
    ) -> Making<'a> {
        Making {
            interrupted,
            observer,
            done_bytes: 0,
            total_bytes: match job.access {
                Access::Append => 0,
                _ => job.file_bytes * files as u64,
            },
            told: None,
        }
    }

    /// Counts bytes that are there.
    ///
    /// Errors: `Interrupted`.
    pub fn made(&mut self, bytes: u64) -> Result<()> {
        self.done_bytes += bytes;
        let late = self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY);
        if late || self.done_bytes == self.total_bytes {
            self.told = Some(Instant::now());
            self.observer.preparing(self.done_bytes, self.total_bytes);
        }
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}

impl WorkFiles {
    /// Those of a job that was checked, in a directory that is ours. None is made yet.
    pub fn new(job: &FileJob, directory: WorkDirectory) -> WorkFiles {
        WorkFiles {
            names: match job.sharing {
                Sharing::SharedFile => vec!["file-shared".into()],
                Sharing::OwnFile => (0..job.threads).map(|i| format!("file-{i}")).collect(),
            },
            keep: job.keep,
            directory,
        }
    }

    /// How many files there are.
    pub fn count(&self) -> u32 {
        self.names.len() as u32
    }

    /// The path of a file, for people.
    pub fn path(&self, number: u32) -> PathBuf {
        self.directory.path().join(&self.names[number as usize])
    }

    fn area(&self, number: u32) -> Area {
        Area {
            file_number: number,
            path: self.path(number),
            base_bytes: 0,
            threads: 0..0,
        }
    }

    /// Opens a file. `flags` come on top of what keeps it safe.
    ///
    /// Errors: `Io`.
    pub fn open(&self, number: u32, flags: OFlags) -> Result<File> {
        let name = &self.names[number as usize];
        // A new time of access would be one more write.
        let safe = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |flags| rustix::fs::openat(&self.directory, name, flags | safe, Mode::empty());
        let file = match open(flags | OFlags::NOATIME) {
            // Where owners are made up, the file may not seem to be ours.
            Err(Errno::PERM) => open(flags),
            other => other,
        };
        Ok(file.map_err(self.io(number, "open"))?.into())
    }

    /// Makes the files what the job wants them to be at the start.
    ///
    /// Errors: `Refused` without space, which is looked at before; `Unsupported` if the
    /// filesystem cannot allocate; `Interrupted`; `Io`.
    pub fn make(
        &self,
        job: &FileJob,
        interrupted: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let missing = match job.files {
            Files::Fresh => (0..self.count()).collect(),
            Files::Reuse => self.unusable(job)?,
        };
        self.check_space(job, &missing)?;
        let mut making = Making::new(job, missing.len(), interrupted, observer);
        for &number in &missing {
            let file = self.create(number)?;
            self.fill(job, number, &file, &mut making)?;
        }
        Ok(())
    }

    /// Those that are not as they have to be.
    fn unusable(&self, job: &FileJob) -> Result<Vec<u32>> {
        let mut numbers = Vec::new();
        for number in 0..self.count() {
            if !self.is_usable(job, number)? {
                numbers.push(number);
            }
        }
        Ok(numbers)
    }

    fn is_usable(&self, job: &FileJob, number: u32) -> Result<bool> {
        if job.access == Access::Append {
            return Ok(false);
        }
        // NONBLOCK: the name may be that of a pipe.
        let Ok(file) = self.open(number, OFlags::RDWR | OFlags::NONBLOCK) else {
            return Ok(false);
        };
        let found = rustix::fs::fstat(&file).map_err(self.io(number, "look at"))?;
        let regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        if !regular || found.st_nlink != 1 || found.st_size as u64 != job.file_bytes {
            return Ok(false);
        }
        // An unwritten block counts as data while its page is cached.
        page_cache::drop(&file, &self.path(number))?;
        Ok(match rustix::fs::seek(&file, SeekFrom::Hole(0)) {
            Ok(hole) => hole == job.file_bytes,
            // Without the call there are no holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => true,
            Err(errno) => return Err(self.io(number, "look for holes in")(errno)),
        })
    }

    /// What `missing` files will take, against what is free and what they already have.
    fn check_space(&self, job: &FileJob, missing: &[u32]) -> Result<()> {
        let path = self.directory.path();
        let io = |errno: Errno| Error::io(path, "ask for the free space of")(errno.into());
        let found = rustix::fs::fstatvfs(&self.directory).map_err(io)?;
        let stays_empty = job.initial == InitialContent::Sparse && !job.access.writes();
        let each_bytes = match stays_empty {
            true => 0,
            false => job.file_bytes.next_multiple_of(found.f_frsize.max(1)),
        };
        let needed_bytes = u128::from(each_bytes) * missing.len() as u128;
        let own = |number: &u32| {
            let name = &self.names[*number as usize];
            let found = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
            // st_blocks counts sectors of 512 bytes on every filesystem.
            found.map_or(0, |found| found.st_blocks as u128 * 512)
        };
        let freed_bytes: u128 = missing.iter().map(own).sum();
        let free_bytes = u128::from(found.f_bavail) * u128::from(found.f_frsize) + freed_bytes;
        if needed_bytes > free_bytes {
            return Err(Error::Refused {
                what: format!(
                    "{}: {needed_bytes} bytes are needed and {free_bytes} bytes are free",
                    path.display()
                ),
                hint: "choose a smaller --size or fewer --threads".into(),
            });
        }
        // RLIMIT_FSIZE is enforced by a signal that kills.
        match rustix::process::getrlimit(rustix::process::Resource::Fsize).current {
            Some(most_bytes) if most_bytes < job.file_bytes => Err(Error::Refused {
                what: format!("a file may have at most {most_bytes} bytes here"),
                hint: "raise ulimit -f or choose a smaller --size".into(),
            }),
            _ => Ok(()),
        }
    }

    /// A new, empty file of that name.
    fn create(&self, number: u32) -> Result<File> {
        let name = &self.names[number as usize];
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(self.io(number, "remove")(errno)),
        }
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.directory, name, flags, mode);
        Ok(file.map_err(self.io(number, "make"))?.into())
    }

    fn fill(&self, job: &FileJob, number: u32, file: &File, making: &mut Making) -> Result<()> {
        match job.initial {
            _ if job.access == Access::Append => {}
            InitialContent::Written => {
                write_content(job, &self.area(number), file, making)?;
            }
            InitialContent::Sparse => {
                rustix::fs::ftruncate(file, job.file_bytes)
                    .map_err(self.io(number, "set the length of"))?;
                making.made(job.file_bytes)?;
            }
            InitialContent::Allocated => {
                let result =
                    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, job.file_bytes);
                match result {
                    Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                        return Err(Error::Unsupported {
                            what: format!(
                                "{}: the filesystem cannot allocate without writing",
                                self.path(number).display()
                            ),
                            hint: "choose --initial written".into(),
                        });
                    }
                    other => other.map_err(self.io(number, "allocate"))?,
                }
                making.made(job.file_bytes)?;
            }
        }
        rustix::fs::fsync(file).map_err(self.io(number, "sync"))?;
        making.made(0)
    }

    fn io(&self, number: u32, what: &'static str) -> impl FnOnce(Errno) -> Error {
        let path = self.path(number);
        move |errno| Error::io(path, what)(errno.into())
    }
}

impl Drop for WorkFiles {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        for name in &self.names {
            let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
        }
    }
}

/// Writes what is there before the threads begin: a file's worth into an area.
///
/// Errors: `Interrupted`; `Io`.
pub fn write_content(job: &FileJob, area: &Area, file: &File, making: &mut Making) -> Result<()> {
    let record_bytes = job.record_bytes;
    let mut payload = Payload::to_write(job, WRITER_BEFORE, area.file_number, 1)?;
    let slots = payload.slots() as u64;
    let records = job.file_bytes / record_bytes;
    let mut next = 0;
    while next < records {
        let count = slots.min(records - next);
        let start_bytes = area.base_bytes + next * record_bytes;
        for slot in 0..count {
            payload.stamp(slot as usize, start_bytes + slot * record_bytes, 0);
        }
        let chunk = &payload.all()[..(count * record_bytes) as usize];
        file.write_all_at(chunk, start_bytes)
            .map_err(Error::io(&area.path, "write"))?;
        next += count;
        making.made(chunk.len() as u64)?;
    }
    Ok(())
}
