//! What a SQLite database is like.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::pragma::Journal;

/// What a database says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatabaseFacts {
    /// The file, without links on the way.
    pub path: PathBuf,
    /// Length of the file, bytes.
    pub bytes: u64,
    /// `PRAGMA page_size`, bytes.
    pub page_bytes: u32,
    /// `PRAGMA page_count`.
    pub pages: u64,
    /// Reserved bytes at the end of each page.
    pub reserved_bytes: u32,
    /// The mode that the file asks for: a log is written down in it, the others are each
    /// connection's own choice, and SQLite's is delete.
    pub journal: Journal,
    /// Bytes of the log beside it.
    pub log_bytes: u64,
    /// Its tables, the largest first.
    pub tables: Vec<TableFacts>,
    /// What of the tables was not read, and why.
    pub unread: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableFacts {
    pub name: String,
    /// Its rows; of those that were read if not [`TableFacts::whole`].
    pub rows: u64,
    /// Bytes of these rows' records, with their headers.
    pub row_bytes: u64,
    /// Pages that were read.
    pub pages: u64,
    /// True if all of it was read.
    pub whole: bool,
    /// How many indexes it has beside its own tree.
    pub indexes: u32,
}

impl TableFacts {
    /// Mean bytes of a row's record; `None` without rows.
    pub fn mean_row_bytes(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.row_bytes as f64 / self.rows as f64)
    }
}

/// The URI of a file with parameters, as `file:/mnt/a%20b.db?vfs=waldio`; source:
/// sqlite.org/uri.html. `parameters` have to be plain words.
pub fn uri(path: &Path, parameters: &str) -> String {
    let mut uri = "file:".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => uri.push(byte.into()),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{uri}?{parameters}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_of_a_path_means_anything_in_its_uri() {
        let path = Path::new("/a b/50%?mode=x#\"é.db");
        let expected = "file:/a%20b/50%25%3Fmode%3Dx%23%22%C3%A9.db?vfs=waldio";
        assert_eq!(uri(path, "vfs=waldio"), expected);
    }

    #[test]
    fn an_empty_table_has_no_mean_row() {
        let table = |rows| TableFacts {
            name: "t".into(),
            rows,
            row_bytes: 300,
            pages: 1,
            whole: true,
            indexes: 0,
        };
        assert_eq!(table(0).mean_row_bytes(), None);
        assert_eq!(table(2).mean_row_bytes(), Some(150.0));
    }
}
