//! Raw block devices: what must hold before their content is read, or destroyed.

mod holder;

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use iostep_model::mountinfo;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Getter, opcode};

use crate::error::{Error, Result};

/// Whether the caller agreed that a device's content is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destruction {
    /// Nobody said so.
    NotAgreed,
    /// It was said in so many words (`--destroy-data`).
    Agreed,
}

/// A block device that nobody else uses while this lives.
#[derive(Debug)]
pub struct BlockDevice {
    /// Opened with `O_EXCL`: the kernel then refuses everybody else's `O_EXCL`, mounts and swapon.
    claim: File,
    path: PathBuf,
    number: u64,
    size_bytes: u64,
    sector_bytes: u32,
}

impl BlockDevice {
    /// Takes the device at `path`, a link to it as well, for reading or for writing too.
    ///
    /// Errors: `Usage` if it is no block device, or would be written without agreement; `Refused`
    /// if it is used, mounted or holds something that is, or is read-only; `Io`.
    pub fn open(path: &Path, writes: bool, destruction: Destruction) -> Result<BlockDevice> {
        let resolved = mountinfo::canonical(path).map_err(Error::io(path, "resolve"))?;
        let found = std::fs::metadata(&resolved).map_err(Error::io(path, "look at"))?;
        refuse_other_types(path, found.file_type())?;
        if writes && destruction == Destruction::NotAgreed {
            return Err(Error::Usage {
                what: format!("{}: writing destroys what the device holds", path.display()),
                hint: "add --destroy-data if nothing on it is needed".into(),
            });
        }
        let number = found.rdev();
        // The kernel lets it be opened for writing, and fails the first write.
        if writes && is_read_only(number) {
            return Err(Error::Refused {
                what: format!("{}: the device is read-only", path.display()),
                hint: "choose another, or see blockdev --setrw".into(),
            });
        }
        let in_use = || holder::find(Path::new("/"), number);
        if let Some(holder) = in_use() {
            return Err(holder.refuse(path));
        }
        let access = if writes { OFlags::RDWR } else { OFlags::RDONLY };
        let flags = access | OFlags::EXCL | OFlags::CLOEXEC;
        let claim = match rustix::fs::open(&resolved, flags, Mode::empty()) {
            Ok(claim) => File::from(claim),
            Err(Errno::BUSY) => return Err(in_use().unwrap_or_default().refuse(path)),
            Err(errno) => return Err(Error::io(path, "open")(errno.into())),
        };
        require_number(&claim, number, path)?;
        let io = |errno: Errno| Error::io(path, "ask for the size of")(errno.into());
        Ok(BlockDevice {
            size_bytes: size_bytes(&claim).map_err(io)?,
            sector_bytes: rustix::fs::ioctl_blksszget(&claim).map_err(io)?,
            claim,
            path: path.to_owned(),
            number,
        })
    }

    /// Checks that `files` areas of `file_bytes` have room beside each other, and that records
    /// begin and end with sectors.
    ///
    /// Errors: `Usage` for records that do not; `Refused` if there is no room.
    pub fn check_room(&self, record_bytes: u64, file_bytes: u64, files: u64) -> Result<()> {
        let sector_bytes = u64::from(self.sector_bytes);
        let fills = |bytes: u64| bytes.is_multiple_of(sector_bytes);
        if !fills(record_bytes) || !fills(file_bytes) {
            return Err(Error::Usage {
                what: format!(
                    "{}: records of {record_bytes} bytes in {file_bytes} do not fill its sectors",
                    self.path.display()
                ),
                hint: format!("choose multiples of {sector_bytes} bytes"),
            });
        }
        let wanted_bytes = u128::from(file_bytes) * u128::from(files);
        if wanted_bytes > u128::from(self.size_bytes) {
            return Err(Error::Refused {
                what: format!(
                    "{}: {files} times {file_bytes} bytes do not fit on {} bytes",
                    self.path.display(),
                    self.size_bytes
                ),
                hint: "choose a smaller --size or fewer --threads".into(),
            });
        }
        Ok(())
    }

    /// One more descriptor for it; `flags` are added to those of [`BlockDevice::open`].
    ///
    /// Errors: `Io`.
    pub fn file(&self, flags: OFlags) -> Result<File> {
        let io = |errno: Errno| Error::io(&self.path, "open")(errno.into());
        let access = rustix::fs::fcntl_getfl(&self.claim).map_err(io)? & OFlags::RWMODE;
        let flags = flags | access | OFlags::CLOEXEC;
        let file = rustix::fs::open(&self.path, flags, Mode::empty()).map_err(io)?;
        let file = File::from(file);
        require_number(&file, self.number, &self.path)?;
        Ok(file)
    }

    /// Its path as the caller gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn refuse_other_types(path: &Path, found: std::fs::FileType) -> Result<()> {
    let name = match found {
        found if found.is_block_device() => return Ok(()),
        found if found.is_char_device() => "a character device",
        found if found.is_dir() => "a directory",
        found if found.is_file() => "a regular file",
        _ => "neither a file nor a device",
    };
    Err(Error::Usage {
        what: format!("{}: it is {name}", path.display()),
        hint: "name a block device or a directory".into(),
    })
}

/// Between looking and opening, the name may have been given to something else.
fn require_number(file: &File, number: u64, path: &Path) -> Result<()> {
    let found = file.metadata().map_err(Error::io(path, "look at"))?;
    if found.file_type().is_block_device() && found.rdev() == number {
        return Ok(());
    }
    Err(Error::Refused {
        what: format!("{}: it became another device meanwhile", path.display()),
        hint: "try again".into(),
    })
}

fn is_read_only(number: u64) -> bool {
    let ro = holder::sysfs(Path::new("/"), number).join("ro");
    std::fs::read_to_string(ro).is_ok_and(|text| text.trim() == "1")
}

/// `st_size` of a block device is 0.
fn size_bytes(device: &File) -> rustix::io::Result<u64> {
    // linux/fs.h: _IOR(0x12, 114, size_t), which nevertheless fills 64 bits.
    const BLKGETSIZE64: rustix::ioctl::Opcode = opcode::read::<usize>(0x12, 114);
    // SAFETY: the kernel writes a u64, and a getter of a u64 has room for it.
    unsafe { rustix::ioctl::ioctl(device, Getter::<BLKGETSIZE64, u64>::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_block_device_is_refused_by_what_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("disk.img");
        std::fs::write(&file, "x").expect("a file");
        let link = directory.path().join("by-id");
        std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
        for (path, expected) in [
            (link.as_path(), "a character device"),
            (directory.path(), "a directory"),
            (file.as_path(), "a regular file"),
        ] {
            let error = BlockDevice::open(path, false, Destruction::Agreed).expect_err("no device");
            assert!(matches!(error, Error::Usage { .. }), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        assert_eq!(std::fs::read(&file).expect("it is there"), b"x");
    }
}
