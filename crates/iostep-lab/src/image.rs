//! A file that looks like a disk.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iostep_model::disk::loop_status;
use iostep_model::rights::way_to_capabilities;
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::loop_device;

/// How many times a free device may be taken by somebody else before we may use it.
const ATTEMPTS: u32 = 32;

/// What an image should be like.
#[derive(Clone, Debug)]
pub struct Options {
    /// Length in bytes. The file is sparse: it takes only the space that is written.
    pub bytes: u64,
    /// Logical block size of the device in bytes: a power of two from 512 to the page size.
    pub block_bytes: u32,
    /// Go to the image past its own filesystem's page cache.
    pub direct_io: bool,
    /// Where the image lies; the system's temporary directory if `None`.
    pub directory: Option<PathBuf>,
}

impl Default for Options {
    /// 256 MiB, 512-byte blocks, through the page cache, in the temporary directory.
    fn default() -> Options {
        Options {
            bytes: 256 << 20,
            block_bytes: 512,
            direct_io: false,
            directory: None,
        }
    }
}

/// A loop device over a nameless sparse file. Both are gone after the drop, and after the death of
/// this process by any cause, once the last mount of the device is gone.
#[derive(Debug)]
pub struct LoopImage {
    backing: File,
    device: File,
    path: PathBuf,
}

impl LoopImage {
    /// Makes an image and binds it to a free loop device.
    ///
    /// Errors: `Io`; `Unsupported` without loop devices, without the right to use them, or if
    /// direct I/O was asked for and the image's filesystem has none.
    pub fn create(options: &Options) -> Result<LoopImage> {
        let directory = options.directory.clone().unwrap_or_else(std::env::temp_dir);
        let backing =
            tempfile::tempfile_in(&directory).map_err(Error::io(&directory, "create a file in"))?;
        backing
            .set_len(options.bytes)
            .map_err(Error::io(&directory, "make a sparse file in"))?;
        let (device, path) = attach(&backing, options)?;
        let image = LoopImage {
            backing,
            device,
            path,
        };
        image.check_direct_io(options.direct_io)?;
        Ok(image)
    }

    /// `/dev/loopN`.
    pub fn device(&self) -> &Path {
        &self.path
    }

    /// Writes zeros to all of it. In a sparse file each first write to a block makes the filesystem
    /// below allocate one, and a flush makes it journal that.
    ///
    /// Errors: `Io`.
    pub(crate) fn fill(&self) -> Result<()> {
        let length = self.backing.metadata().map(|file| file.len());
        let mut zeros = io::repeat(0).take(length.map_err(Error::io(&self.path, "inspect"))?);
        io::copy(&mut zeros, &mut &self.device)
            .and_then(|_| self.device.sync_all())
            .map_err(Error::io(&self.path, "fill"))
    }

    /// Errors: `Usage` if the device is not, or not any more, bound to this value's own file.
    /// Everything that destroys content asks this first.
    pub(crate) fn check_is_ours(&self) -> Result<()> {
        let own = self
            .backing
            .metadata()
            .map_err(Error::io(&self.path, "inspect the image of"))?;
        // By path, not by our descriptor: the path is what a formatter is going to open.
        let bound = File::open(&self.path)
            .and_then(|device| loop_status(&device).map_err(Into::into))
            .map_err(Error::io(&self.path, "read the status of"))?;
        if (bound.device, bound.inode) == (own.dev(), own.ino()) {
            return Ok(());
        }
        Err(Error::Usage {
            what: format!("{}: not a device that iostep made", self.path.display()),
            hint: "nothing was written; only an own image is ever formatted".into(),
        })
    }

    fn check_direct_io(&self, wanted: bool) -> Result<()> {
        let status =
            loop_status(&self.device).map_err(Error::io(&self.path, "read the status of"))?;
        if wanted && !status.direct_io {
            return Err(Error::Unsupported {
                what: format!(
                    "{}: the image's filesystem has no direct I/O",
                    self.path.display()
                ),
                hint: "put the image on another filesystem, or leave direct I/O off".into(),
            });
        }
        Ok(())
    }
}

impl Drop for LoopImage {
    fn drop(&mut self) {
        // While mounted this only repeats AUTOCLEAR; when not, it saves waiting for udev's own
        // open descriptor.
        let _ = loop_device::clear(&self.device);
    }
}

fn attach(backing: &File, options: &Options) -> Result<(File, PathBuf)> {
    let control_path = Path::new("/dev/loop-control");
    let control = open(control_path)?;
    for _ in 0..ATTEMPTS {
        let number = loop_device::free_number(&control)
            .map_err(Error::io(control_path, "find a free loop device through"))?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = match open(&path) {
            // Somebody else bound it, and it is being detached already (lo_open in
            // drivers/block/loop.c).
            Err(Error::Io { source, .. }) if Errno::from_io_error(&source) == Some(Errno::NXIO) => {
                continue;
            }
            opened => opened?,
        };
        let bound = loop_device::configure(
            &device,
            backing.as_fd(),
            options.block_bytes,
            options.direct_io,
        );
        match bound {
            Ok(()) => {
                use_default_scheduler(number)?;
                return Ok((device, path));
            }
            Err(Errno::BUSY) => {}
            Err(errno) => return Err(Error::io(&path, "attach an image to")(errno)),
        }
    }
    Err(Error::Unsupported {
        what: format!("no free loop device after {ATTEMPTS} attempts"),
        hint: "see losetup --list for who holds them".into(),
    })
}

/// A loop device that is used again has the scheduler that somebody gave it, though by default it
/// has none (`BLK_MQ_F_NO_SCHED_BY_DEFAULT` in drivers/block/loop.c): with bfq a commit of a
/// filesystem's journal can wait for 20 ms.
fn use_default_scheduler(number: u32) -> Result<()> {
    let path = PathBuf::from(format!("/sys/block/loop{number}/queue/scheduler"));
    let offered = fs::read_to_string(&path).unwrap_or_default();
    match offered.contains("[none]") || !offered.contains("none") {
        true => Ok(()),
        false => fs::write(&path, "none").map_err(Error::io(&path, "write to")),
    }
}

fn open(path: &Path) -> Result<File> {
    File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => Error::Unsupported {
                what: format!("{}: permission denied", path.display()),
                hint: format!("loop devices need CAP_SYS_ADMIN; {}", way_to_capabilities()),
            },
            std::io::ErrorKind::NotFound => Error::Unsupported {
                what: format!("{}: no such device", path.display()),
                hint: "load the module with: modprobe loop".into(),
            },
            _ => Error::io(path, "open")(error),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_device_is_the_machines_fault_and_names_the_module() {
        let error = open(Path::new("/dev/loop-that-is-none")).expect_err("no such device");
        assert!(matches!(error, Error::Unsupported { .. }));
        assert!(error.to_string().contains("modprobe loop"), "{error}");
    }

    #[test]
    fn a_device_that_is_not_bound_to_our_image_is_never_formatted() {
        let null = || File::options().read(true).write(true).open("/dev/null");
        let impostor = LoopImage {
            backing: tempfile::tempfile().expect("a temporary file"),
            device: null().expect("/dev/null opens"),
            path: "/dev/null".into(),
        };
        assert!(impostor.check_is_ours().is_err());
        let error = crate::mkfs::<&str>(crate::Kind::Ext4, &impostor, &[]).expect_err("refused");
        assert!(!matches!(error, Error::Program { .. }), "{error}");
    }
}
