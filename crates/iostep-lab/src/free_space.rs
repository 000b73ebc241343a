//! Free space for sparse files: an image that cannot grow makes its device look broken.

use std::path::Path;

use crate::error::{Error, Result};

/// Bytes that files in a directory may still take.
///
/// Errors: `Io`.
pub(crate) fn of(directory: &Path) -> Result<u64> {
    let found = rustix::fs::statvfs(directory).map_err(Error::io(directory, "inspect"))?;
    // A tmpfs without a limit counts no blocks at all.
    Ok(match found.f_blocks {
        0 => u64::MAX,
        _ => found.f_bavail.saturating_mul(found.f_frsize),
    })
}

/// Errors: `Unsupported` if images of so many bytes could fill the directory's filesystem; `Io`.
pub(crate) fn check(directory: &Path, bytes: u64) -> Result<()> {
    let free = of(directory)?;
    if bytes <= free {
        return Ok(());
    }
    Err(Error::Unsupported {
        what: format!(
            "{}: {} MiB free, and devices there may need {} MiB",
            directory.display(),
            free >> 20,
            bytes >> 20
        ),
        hint: "make them smaller, or set TMPDIR to a directory with more room".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_filled_is_refused_with_both_numbers() {
        let directory = tempfile::tempdir().expect("a directory");
        check(directory.path(), 0).expect("nothing always fits");
        let error = check(directory.path(), 1 << 62).expect_err("no disk is so large");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("need 4398046511104 MiB") && text.contains("TMPDIR"));
    }
}
