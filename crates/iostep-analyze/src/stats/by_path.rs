//! Rows of files that had the same path one after the other, as SQLite's rollback journals have.

use iostep_model::class::FileType;
use rustc_hash::FxHashMap;

use super::amount::Amount;
use super::joj::{Joj, JojRow};
use super::owners::FileRow;
use super::{Summary, joj, owners};

impl Summary {
    /// [`Summary::files`] with one row for each path and type; the row's `file` and `inode` are
    /// those of the file with the most bytes, and so is the first path if it has one.
    pub fn files_by_path(&self) -> Vec<FileRow> {
        let mut rows = merged(
            &self.files,
            |row| (&row.path, &row.user_path, row.file_type),
            |row, other| {
                row.files += other.files;
                row.deleted &= other.deleted;
                row.deleted_files += other.deleted_files;
                row.syncs += other.syncs;
                if row.first_path.is_none() {
                    row.first_path.clone_from(&other.first_path);
                    row.user_first_path.clone_from(&other.user_first_path);
                }
                add(&mut row.amounts.read, other.amounts.read);
                add(&mut row.amounts.write, other.amounts.write);
            },
        );
        owners::sort(&mut rows);
        rows
    }
}

impl Joj {
    /// [`Joj::files`] with one row for each path and type; the row's `file` is the one with the
    /// most journal bytes.
    pub fn by_path(&self) -> Vec<JojRow> {
        let mut rows = merged(
            &self.files,
            |row| (&row.path, &row.user_path, row.file_type),
            |row, other| {
                row.files += other.files;
                row.syncs += other.syncs;
                row.data_bytes += other.data_bytes;
                row.journal_bytes += other.journal_bytes;
                row.metadata_bytes += other.metadata_bytes;
            },
        );
        rows.iter_mut().for_each(JojRow::amplify);
        joj::sort(&mut rows);
        rows
    }
}

fn add(amount: &mut Amount, other: Amount) {
    amount.requests += other.requests;
    amount.bytes += other.bytes;
}

fn merged<T: Clone>(
    rows: &[T],
    key: impl for<'a> Fn(&'a T) -> (&'a String, &'a String, FileType),
    add: impl Fn(&mut T, &T),
) -> Vec<T> {
    let mut merged: Vec<T> = Vec::new();
    let mut places = FxHashMap::default();
    for row in rows {
        match places.get(&key(row)) {
            Some(place) => add(&mut merged[*place], row),
            None => {
                places.insert(key(row), merged.len());
                merged.push(row.clone());
            }
        }
    }
    merged
}
