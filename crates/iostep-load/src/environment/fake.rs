//! A /proc and a /sys for tests.

use std::path::{Path, PathBuf};

/// A root below which there is only what was put there.
pub struct Root(tempfile::TempDir);

impl Root {
    pub fn new() -> Root {
        Root(tempfile::tempdir().expect("a directory"))
    }

    /// With files: path and text.
    pub fn with(files: &[(&str, &str)]) -> Root {
        let root = Root::new();
        for (path, text) in files {
            root.put(path, text);
        }
        root
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn put(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.parent_of(path);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// A link at `path` to another path below the root.
    pub fn link(&self, path: &str, to: &str) {
        let path = self.parent_of(path);
        std::os::unix::fs::symlink(self.path().join(to), path).expect("a link");
    }

    fn parent_of(&self, path: &str) -> PathBuf {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("directories");
        path
    }
}
