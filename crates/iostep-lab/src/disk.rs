//! What a filesystem may be made on: an image of our own, or a device that was given for it.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::image::LoopImage;

/// Something that [`crate::mkfs()`] may overwrite.
pub trait Disk {
    /// The device's node.
    fn device(&self) -> &Path;

    /// Errors: `Usage` if overwriting it would destroy what nobody gave. Everything that destroys
    /// content asks this first.
    fn check_may_be_destroyed(&self) -> Result<()>;
}

impl Disk for LoopImage {
    fn device(&self) -> &Path {
        LoopImage::device(self)
    }

    fn check_may_be_destroyed(&self) -> Result<()> {
        self.check_is_ours()
    }
}

/// A block device whose content the user gave up.
#[derive(Debug)]
pub struct GivenDevice {
    path: PathBuf,
    bytes: u64,
}

impl GivenDevice {
    /// Takes a device that nobody uses. Nothing is written.
    ///
    /// Errors: `Usage` if it is no block device, mounted, in use by another device, or read-only;
    /// `Io`.
    pub fn take(path: &Path) -> Result<GivenDevice> {
        let bytes = open_unused(path)?
            .seek(SeekFrom::End(0))
            .map_err(Error::io(path, "find the length of"))?;
        Ok(GivenDevice {
            path: path.to_owned(),
            bytes,
        })
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Errors: `Usage` if `other` is the same device, or one is a part of the other.
    pub fn check_apart(&self, other: &GivenDevice) -> Result<()> {
        // Nobody held either of them when they were taken.
        let _held = open_unused(&self.path)?;
        open_unused(&other.path)
            .map(drop)
            .map_err(|_| Error::Usage {
                what: format!(
                    "{}: the same device as {}, or a part of it",
                    other.path.display(),
                    self.path.display()
                ),
                hint: "nothing was written; name a second device".into(),
            })
    }

    /// Errors: `Usage` if it is shorter than `bytes`.
    pub fn check_holds(&self, bytes: u64) -> Result<()> {
        if self.bytes >= bytes {
            return Ok(());
        }
        Err(Error::Usage {
            what: format!(
                "{}: {} MiB, and a cell needs {}",
                self.path.display(),
                self.bytes >> 20,
                bytes >> 20
            ),
            hint: "nothing was written; name a larger device, or a smaller device-size".into(),
        })
    }
}

impl Disk for GivenDevice {
    fn device(&self) -> &Path {
        &self.path
    }

    fn check_may_be_destroyed(&self) -> Result<()> {
        open_unused(&self.path).map(drop)
    }
}

/// Opens a device that no filesystem and no other device holds: `O_EXCL` is refused for those, and
/// for a disk one of whose partitions is held (block/bdev.c, `bd_may_claim`).
fn open_unused(path: &Path) -> Result<File> {
    let usage = |what: String, hint: &str| Error::Usage {
        what: format!("{}: {what}", path.display()),
        hint: hint.into(),
    };
    let metadata = std::fs::metadata(path).map_err(Error::io(path, "look at"))?;
    if !metadata.file_type().is_block_device() {
        return Err(usage("no block device".into(), "name one, as /dev/sdb"));
    }
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::EXCL.bits() as i32)
        .open(path);
    opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::BUSY) => {
            let user = mounted_at(metadata.rdev());
            let what = user.map_or("in use by another device".to_owned(), |point| {
                format!("mounted at {point}")
            });
            usage(what, "nothing was written; unmount or stop what uses it")
        }
        Some(Errno::ROFS | Errno::ACCESS | Errno::PERM) => usage(
            format!("cannot be written to: {error}"),
            "run it as root, or name another device",
        ),
        _ => Error::io(path, "open")(error),
    })
}

/// Where the device with this number is mounted in this mount namespace.
fn mounted_at(number: u64) -> Option<String> {
    let number = format!(
        "{}:{}",
        rustix::fs::major(number),
        rustix::fs::minor(number)
    );
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    table.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(2);
        (fields.next()? == number).then_some(())?;
        fields.nth(1).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_block_device_is_refused() {
        for path in ["/dev/null", "/", "/proc/self/mounts"] {
            let error = GivenDevice::take(Path::new(path)).expect_err(path);
            assert!(matches!(error, Error::Usage { .. }), "{error}");
        }
        let missing = GivenDevice::take(Path::new("/dev/no-such-device"));
        assert!(matches!(missing, Err(Error::Io { .. })));
    }

    #[test]
    fn a_device_that_is_too_small_is_refused_with_both_sizes() {
        let device = GivenDevice {
            path: "/dev/sdx".into(),
            bytes: 64 << 20,
        };
        device
            .check_holds(64 << 20)
            .expect("it holds its own length");
        let error = device.check_holds(1 << 30).expect_err("too small");
        assert!(
            error.to_string().contains("64 MiB, and a cell needs 1024"),
            "{error}"
        );
    }
}
