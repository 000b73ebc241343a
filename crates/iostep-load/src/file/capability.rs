//! What a target can do, asked of the kernel before anything is measured.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::BorrowedFd;
use std::path::Path;

use iostep_model::bench::{Engine, FileJob, Transfer};
use procfs::process::Process;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, ReadWriteFlags};

use super::uring;
use crate::error::{Error, Result};

/// Where memory and offsets have to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Of buffers in memory, bytes.
    pub memory_bytes: u64,
    /// Of offsets and lengths, bytes.
    pub offset_bytes: u64,
}

impl Alignment {
    /// Of what goes through the page cache.
    const ANY: Alignment = Alignment {
        memory_bytes: 1,
        offset_bytes: 1,
    };
}

/// A file in `directory` that has no name any more, to try things on. `path` names the directory
/// in errors.
///
/// Errors: `Io`.
pub fn scratch(directory: BorrowedFd<'_>, path: &Path) -> Result<File> {
    const NAME: &str = "capability";
    let io = |errno: Errno| Error::io(path, "create a file in")(errno.into());
    let create = || {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(directory, NAME, flags, Mode::RUSR | Mode::WUSR)
    };
    let remove = || rustix::fs::unlinkat(directory, NAME, AtFlags::empty());
    let file = match create() {
        // Somebody was killed between making it and removing its name.
        Err(Errno::EXIST) => remove().and_then(|()| create()).map_err(io)?,
        other => other.map_err(io)?,
    };
    remove().map_err(io)?;
    Ok(file.into())
}

/// Checks that `file`, a scratch file beside the work files or the device itself, can do what the
/// job asks for. Its descriptor may become `O_DIRECT`. `path` names the target in errors. The
/// answer says how direct transfers have to be aligned; through the page cache anything goes.
///
/// Errors: `Unsupported` for what kernel, filesystem or device cannot; `Usage` for what does not
/// go together or a record of a wrong size; `Io`.
pub fn check(job: &FileJob, file: &File, path: &Path) -> Result<Alignment> {
    let probe = Probe {
        file,
        path,
        sysfs: Path::new("/sys"),
    };
    probe.check(job)
}

struct Probe<'a> {
    file: &'a File,
    path: &'a Path,
    sysfs: &'a Path,
}

impl Probe<'_> {
    fn check(&self, job: &FileJob) -> Result<Alignment> {
        let alignment = match job.transfer {
            Transfer::Direct => self.direct(job.record_bytes)?,
            _ => Alignment::ANY,
        };
        if job.engine == Engine::Uring {
            uring::probe(job.polled)?;
        }
        if job.transfer == Transfer::DontCache {
            self.dont_cache()?;
        }
        if job.atomic {
            self.atomic(job)?;
        }
        if job.polled {
            self.polled(job)?;
        }
        Ok(alignment)
    }

    fn direct(&self, record_bytes: u64) -> Result<Alignment> {
        let unsupported = || self.unsupported("O_DIRECT", "choose --transfer buffered");
        let statfs = rustix::fs::fstatfs(self.file).map_err(self.io("look at"))?;
        // Since Linux 6.6 tmpfs takes the flag, and there is still nothing but the page cache. A
        // device answers for devtmpfs, where its name is.
        if statfs.f_type == libc::TMPFS_MAGIC && !self.is_device() {
            return Err(unsupported());
        }
        let flags = fcntl_getfl(self.file).map_err(self.io("look at"))?;
        match fcntl_setfl(self.file, flags | OFlags::DIRECT) {
            Err(Errno::INVAL) => return Err(unsupported()),
            other => other.map_err(self.io("set O_DIRECT on"))?,
        }
        let alignment = match self.statx(StatxFlags::DIOALIGN)? {
            // Taken but not done, as by ext4 with data=journal: it goes through the page cache.
            Some(found) if found.stx_dio_mem_align == 0 || found.stx_dio_offset_align == 0 => {
                return Err(unsupported());
            }
            Some(found) => Alignment {
                memory_bytes: u64::from(found.stx_dio_mem_align),
                offset_bytes: u64::from(found.stx_dio_offset_align),
            },
            None => self.presumed_alignment(statfs.f_bsize as u64),
        };
        if !record_bytes.is_multiple_of(alignment.offset_bytes) {
            return Err(Error::Usage {
                what: format!(
                    "{}: O_DIRECT cannot transfer records of {record_bytes} bytes",
                    self.path.display()
                ),
                hint: format!("choose a multiple of {} bytes", alignment.offset_bytes),
            });
        }
        Ok(alignment)
    }

    /// Where the kernel does not tell (Linux before 6.1, and btrfs): the logical block size of
    /// the device, or the filesystem's block size where no device is known.
    fn presumed_alignment(&self, filesystem_block_bytes: u64) -> Alignment {
        let device_bytes = self
            .queue("logical_block_size")
            .and_then(|text| text.parse().ok())
            .filter(|&bytes: &u64| bytes.is_power_of_two());
        let bytes = device_bytes.unwrap_or(filesystem_block_bytes.max(512));
        Alignment {
            memory_bytes: bytes,
            offset_bytes: bytes,
        }
    }

    /// The same for every direction: fs.h's `kiocb_set_rw_flags` refuses the flag before anything
    /// is read, and an empty file is read as well as a full one.
    fn dont_cache(&self) -> Result<()> {
        let flag = ReadWriteFlags::from_bits_retain(libc::RWF_DONTCACHE as u32);
        let mut byte = [0];
        match rustix::io::preadv2(self.file, &mut [IoSliceMut::new(&mut byte)], 0, flag) {
            Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Err(self.unsupported(
                "RWF_DONTCACHE",
                "take Linux 6.14 or newer with a filesystem that knows it, or choose --transfer buffered",
            )),
            other => other.map(drop).map_err(self.io("read with RWF_DONTCACHE from")),
        }
    }

    fn atomic(&self, job: &FileJob) -> Result<()> {
        if job.transfer != Transfer::Direct || !job.access.writes() {
            return Err(Error::Usage {
                what: "only direct writes can be atomic".into(),
                hint: "add --transfer direct and an --access that writes, or leave out --atomic"
                    .into(),
            });
        }
        let limits = self
            .statx(StatxFlags::from_bits_retain(libc::STATX_WRITE_ATOMIC))?
            .map(|found| {
                let bytes = |unit: u32| u64::from(unit);
                bytes(found.stx_atomic_write_unit_min)..=bytes(found.stx_atomic_write_unit_max)
            })
            .filter(|limits| *limits.end() > 0)
            .ok_or_else(|| {
                self.unsupported(
                    "RWF_ATOMIC",
                    "it needs Linux 6.13, ext4, xfs or no filesystem, and a device with atomic \
                     writes; leave out --atomic",
                )
            })?;
        if !limits.contains(&job.record_bytes) || !job.record_bytes.is_power_of_two() {
            return Err(Error::Usage {
                what: format!(
                    "{}: a write of {} bytes cannot be atomic",
                    self.path.display(),
                    job.record_bytes
                ),
                hint: format!(
                    "choose a power of two from {} to {} bytes",
                    limits.start(),
                    limits.end()
                ),
            });
        }
        Ok(())
    }

    fn polled(&self, job: &FileJob) -> Result<()> {
        if job.transfer != Transfer::Direct {
            return Err(Error::Usage {
                what: "only direct transfers can be polled".into(),
                hint: "add --transfer direct or leave out --polled".into(),
            });
        }
        match self.queue("io_poll").as_deref() {
            Some("1") => Ok(()),
            Some(_) => Err(self.cannot(
                "the device has no poll queues",
                "an NVMe device gets them from the module parameter nvme.poll_queues; leave out --polled",
            )),
            None => Err(self.cannot(
                "no single device whose poll queues are known is below",
                "leave out --polled",
            )),
        }
    }

    /// What statx(2) says, if it knows anything about `wanted`.
    fn statx(&self, wanted: StatxFlags) -> Result<Option<Statx>> {
        match rustix::fs::statx(self.file, "", AtFlags::EMPTY_PATH, wanted) {
            Ok(found) => Ok((found.stx_mask & wanted.bits() != 0).then_some(found)),
            Err(Errno::NOSYS) => Ok(None),
            Err(errno) => Err(self.io("look at")(errno)),
        }
    }

    /// An attribute of the queue of the device below, trimmed. `None` where no single device is
    /// below, as with tmpfs, btrfs or a network.
    fn queue(&self, attribute: &str) -> Option<String> {
        let found = rustix::fs::fstat(self.file).ok()?;
        let number = match self.is_device() {
            true => found.st_rdev,
            false => found.st_dev,
        };
        let directory = self.sysfs.join(format!(
            "dev/block/{}:{}",
            rustix::fs::major(number),
            rustix::fs::minor(number)
        ));
        let directory = std::fs::canonicalize(directory).ok()?;
        let read = |directory: &Path| {
            std::fs::read_to_string(directory.join("queue").join(attribute)).ok()
        };
        // A partition has the queue of its disk.
        let text = read(&directory).or_else(|| read(directory.parent()?))?;
        Some(text.trim().to_owned())
    }

    fn unsupported(&self, feature: &str, hint: &str) -> Error {
        let by = match self.is_device() {
            true => "this device".to_owned(),
            false => self.filesystem_kind(),
        };
        self.cannot(&format!("{feature} is not supported by {by}"), hint)
    }

    fn cannot(&self, fact: &str, hint: &str) -> Error {
        Error::Unsupported {
            what: format!("{}: {fact}", self.path.display()),
            hint: hint.to_owned(),
        }
    }

    fn is_device(&self) -> bool {
        let found = rustix::fs::fstat(self.file);
        found.is_ok_and(|f| FileType::from_raw_mode(f.st_mode) == FileType::BlockDevice)
    }

    fn filesystem_kind(&self) -> String {
        let number = rustix::fs::fstat(self.file).map_or(0, |found| found.st_dev);
        let number = format!(
            "{}:{}",
            rustix::fs::major(number),
            rustix::fs::minor(number)
        );
        let mounts = Process::myself().and_then(|me| me.mountinfo());
        mounts
            .ok()
            .and_then(|mounts| mounts.0.into_iter().find(|mount| mount.majmin == number))
            .map_or_else(|| "this filesystem".into(), |mount| mount.fs_type)
    }

    fn io(&self, what: &'static str) -> impl FnOnce(Errno) -> Error {
        let path = self.path.to_owned();
        move |errno| Error::io(path, what)(errno.into())
    }
}

#[cfg(test)]
mod tests;
