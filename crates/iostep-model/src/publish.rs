//! Results that appear whole or not at all.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Writes `bytes` to a temporary file beside `path`, syncs it and renames it to `path`.
///
/// Errors: `Io`; `path` is then as it was, and the temporary file is gone.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with(path, |file| {
        file.write_all(bytes).map_err(Error::io(path, "write"))
    })
}

/// Like [`write()`], with the content made by `fill`.
///
/// Errors: `Io`, and whatever `fill` returns.
pub fn write_with<E: From<Error>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let temporary = tempfile::Builder::new()
        .prefix(".iostep-")
        .permissions(permissions())
        .tempfile_in(&parent)
        .map_err(Error::io(&parent, "create a file in"))?;
    let mut writer = BufWriter::with_capacity(1 << 20, temporary.as_file());
    fill(&mut writer)?;
    writer.flush().map_err(Error::io(path, "write"))?;
    drop(writer);
    temporary
        .as_file()
        .sync_all()
        .map_err(Error::io(path, "sync"))?;
    temporary
        .persist(path)
        .map_err(|e| Error::io(path, "replace")(e.error))?;
    Ok(())
}

/// What `open(2)` would give, instead of a temporary file's 0600; the umask applies.
fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_content_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("result");
        write(&path, b"old").expect("write");
        let failed: Result<()> = write_with(&path, |file| {
            file.write_all(b"half").expect("write");
            Err(Error::corrupt("x", "y", "z"))
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read(&path).expect("read"), b"old");
        let names = std::fs::read_dir(dir.path()).expect("list").count();
        assert_eq!(names, 1);
    }
}
