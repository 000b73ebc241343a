//! Directories of the host that a guest mounts over 9p.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::error::{Error, Result};

/// The tag of the root.
pub(super) const ROOT: &str = "root";
/// The tag of the kernel's modules.
pub(super) const MODULES: &str = "modules";
/// Larger messages than the 128 KiB of the default make reading fewer round trips; this is the
/// most that the virtio transport takes (net/9p/trans_virtio.c).
const MESSAGE_BYTES: u32 = 512_000;

/// The tag by which the guest mounts the `n`th shared directory.
pub(super) fn tag(n: usize) -> String {
    format!("share{n}")
}

/// The options to mount one with; `cache` is what of it the guest may keep, as 9p calls it.
pub(super) fn mount_options(cache: &str) -> String {
    format!("trans=virtio,version=9p2000.L,cache={cache},msize={MESSAGE_BYTES}")
}

/// The directories to be written to without symbolic links, each after the one that it lies in.
///
/// Errors: `Usage` for the root, and for what is no directory.
pub(super) fn directories(shares: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for share in shares {
        let refused = |why: &str| Error::Usage {
            what: format!("{}: {why}", share.display()),
            hint: "name a directory below the root".into(),
        };
        let path = share
            .canonicalize()
            .map_err(|error| refused(&error.to_string()))?;
        if !path.is_dir() || path.parent().is_none() {
            return Err(refused("cannot be shared for writing"));
        }
        all.push(path);
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// QEMU's arguments for a directory as a 9p filesystem. Files keep their owners; the numbers of
/// inodes from several filesystems below it are kept apart.
pub(super) fn arguments(path: &OsStr, tag: &str, flags: &str) -> [OsString; 4] {
    let mut backend =
        format!("local,id={tag},security_model=none,multidevs=remap{flags},path=").into_bytes();
    for byte in path.as_bytes() {
        backend.push(*byte);
        // A comma ends an option; two are one.
        if *byte == b',' {
            backend.push(b',');
        }
    }
    let device = format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}");
    [
        "-fsdev".into(),
        OsString::from_vec(backend),
        "-device".into(),
        device.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_in_a_path_is_no_option() {
        let [_, backend, ..] = arguments("/a,readonly=off".as_ref(), "t", "");
        assert!(
            backend
                .to_string_lossy()
                .ends_with(",path=/a,,readonly=off")
        );
    }

    #[test]
    fn the_root_and_files_are_not_shared_for_writing() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let missing = PathBuf::from("/no/such/directory");
        for path in [PathBuf::from("/"), file.path().to_owned(), missing] {
            assert!(matches!(directories(&[path]), Err(Error::Usage { .. })));
        }
    }

    #[test]
    fn a_directory_comes_after_the_one_that_it_lies_in() {
        let outer = tempfile::tempdir().expect("a directory");
        let outer = outer.path().canonicalize().expect("it exists");
        let inner = outer.join("inner");
        std::fs::create_dir(&inner).expect("made");
        let shared = directories(&[inner.clone(), outer.clone(), inner.clone()]);
        assert_eq!(shared.expect("shared"), [outer, inner]);
    }
}
