//! Small texts of /proc and /sys.

use std::path::{Path, PathBuf};

/// Larger than any text that is read here; more of it is not looked at.
const MOST_BYTES: u64 = 4 << 20;

/// A file without the white space around it, wrong UTF-8 replaced. `None` if it cannot be read.
pub fn read(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// The first value of `key` in lines of `key separator value`.
pub fn value<'a>(text: &'a str, key: &str, separator: char) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(separator)?;
        (found.trim() == key).then(|| value.trim())
    })
}

/// The entries of a directory, sorted; none if it cannot be read.
pub fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut entries: Vec<_> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    entries
}
