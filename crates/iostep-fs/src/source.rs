//! Where a filesystem is read from.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use crate::error::{Error, Result};

/// Bytes at an offset: an image, a device, or a part of one.
pub trait ReadAt {
    /// Fills `buffer` from `offset_bytes`.
    ///
    /// Errors: `UnexpectedEof` if the source ends before; whatever the system says.
    fn read_exact_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// The length in bytes.
    ///
    /// Errors: whatever the system says.
    fn size_bytes(&self) -> io::Result<u64>;
}

impl ReadAt for File {
    fn read_exact_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset_bytes)
    }

    /// A block device's metadata has no length, so this looks for the end.
    fn size_bytes(&self) -> io::Result<u64> {
        let mut file = self;
        file.seek(SeekFrom::End(0))
    }
}

impl ReadAt for [u8] {
    fn read_exact_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let part = usize::try_from(offset_bytes)
            .ok()
            .and_then(|start| self.get(start..start.checked_add(buffer.len())?))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(part);
        Ok(())
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for Vec<u8> {
    fn read_exact_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.as_slice().read_exact_at(offset_bytes, buffer)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.as_slice().size_bytes()
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_exact_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_exact_at(offset_bytes, buffer)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        (**self).size_bytes()
    }
}

/// A part of a source: a partition inside a disk image.
#[derive(Debug)]
pub struct Section<S> {
    source: S,
    start_bytes: u64,
    size_bytes: u64,
}

impl<S: ReadAt> Section<S> {
    /// The part from `start_bytes` to the source's end.
    ///
    /// Errors: `Io`, also if the start lies past the end.
    pub fn from(source: S, start_bytes: u64) -> Result<Section<S>> {
        let io = |source| Error::Io {
            offset_bytes: start_bytes,
            bytes: 0,
            source,
        };
        let size_bytes = source
            .size_bytes()
            .map_err(io)?
            .checked_sub(start_bytes)
            .ok_or_else(|| io(io::ErrorKind::UnexpectedEof.into()))?;
        Ok(Section {
            source,
            start_bytes,
            size_bytes,
        })
    }
}

impl<S: ReadAt> Section<S> {
    /// The part of so many bytes from `start_bytes` on, or up to the source's end.
    ///
    /// Errors: as [`Section::from`].
    pub fn part(source: S, start_bytes: u64, size_bytes: u64) -> Result<Section<S>> {
        let mut section = Section::from(source, start_bytes)?;
        section.size_bytes = section.size_bytes.min(size_bytes);
        Ok(section)
    }
}

impl<S: ReadAt> ReadAt for Section<S> {
    fn read_exact_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset_bytes.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.size_bytes) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let from = offset_bytes
            .checked_add(self.start_bytes)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        self.source.read_exact_at(from, buffer)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.size_bytes)
    }
}

/// Reads `bytes` bytes; the caller has bounded them.
pub(crate) fn read<S: ReadAt + ?Sized>(
    source: &S,
    offset_bytes: u64,
    bytes: usize,
) -> Result<Vec<u8>> {
    let mut buffer = vec![0; bytes];
    source
        .read_exact_at(offset_bytes, &mut buffer)
        .map_err(|source| Error::Io {
            offset_bytes,
            bytes,
            source,
        })?;
    Ok(buffer)
}

/// Reads bytes that may lie past the end of a small source: then there is nothing, and no error.
pub(crate) fn read_if_there(
    source: &dyn ReadAt,
    offset_bytes: u64,
    bytes: usize,
) -> Result<Option<Vec<u8>>> {
    match read(source, offset_bytes, bytes) {
        Ok(buffer) => Ok(Some(buffer)),
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// The source's length in bytes.
pub(crate) fn size<S: ReadAt + ?Sized>(source: &S) -> Result<u64> {
    source.size_bytes().map_err(|source| Error::Io {
        offset_bytes: 0,
        bytes: 0,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_ends_where_it_ends() {
        let mut two = [0; 2];
        let source = [1, 2, 3];
        source[..].read_exact_at(1, &mut two).expect("inside");
        assert_eq!(two, [2, 3]);
        assert!(source[..].read_exact_at(2, &mut two).is_err());
        assert!(source[..].read_exact_at(u64::MAX, &mut two).is_err());
    }

    #[test]
    fn a_section_starts_at_its_own_zero() {
        let source = vec![1, 2, 3];
        let section = Section::from(&source, 2).expect("inside");
        assert_eq!(section.size_bytes().expect("a size"), 1);
        assert_eq!(read(&section, 0, 1).expect("inside"), [3]);
        assert!(Section::from(&source, 4).is_err());
        let part = Section::part(&source, 1, 1).expect("inside");
        assert_eq!(read(&part, 0, 1).expect("inside"), [2]);
        assert!(read(&part, 0, 2).is_err());
    }
}
