//! Files of sysfs, and what leads to a block device there.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// No attribute is longer than a page.
const MOST_BYTES: u64 = 4096;

/// An attribute without the white space around it, wrong UTF-8 replaced; `None` if there is none,
/// or it is empty.
pub fn text(path: &Path) -> Option<String> {
    plain(&bytes(path)?)
}

/// The same of a field's bytes.
pub fn plain(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    // A device may fill the field with zeros.
    let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// An attribute as it is; `None` if there is none.
pub fn bytes(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// An attribute that is a number in decimals.
pub fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// The directory of the block device with a number (`st_rdev`), if sysfs has it.
pub fn of_number(sys: &Path, number: u64) -> Option<PathBuf> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let directory = sys.join(format!("dev/block/{major}:{minor}"));
    directory.exists().then_some(directory)
}

/// What is in a directory, by name; nothing if it cannot be read.
pub fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

/// Where nodes lie: devtmpfs has them in the first, Android's ueventd makes them in the second.
const NODES: [&str; 2] = ["dev", "dev/block"];

/// The node of the block device with this name in sysfs, where `!` stands for a slash; `None` for
/// what is no name. `root` is `/` but for tests.
pub fn node(root: &Path, name: &str) -> Option<PathBuf> {
    let mut parts = name.split('!');
    if parts.any(|part| part.contains('/') || part.starts_with('.') || part.is_empty()) {
        return None;
    }
    let [usual, other] = NODES.map(|directory| root.join(directory).join(name.replace('!', "/")));
    Some(match !usual.exists() && other.exists() {
        true => other,
        false => usual,
    })
}
