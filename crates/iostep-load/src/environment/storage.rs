//! What is below the target that makes its figures differ from a device's.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iostep_model::bench::{Environment, Warning};
use iostep_model::manifest::Filesystem;

use super::text::{entries, read};

/// Filesystems search longer for free space from about here on; ext4 keeps 5 % for root.
const NEARLY_FULL: f64 = 0.9;

/// Adds what filesystem and device are responsible for.
pub fn warn(root: &Path, environment: &Environment, warnings: &mut Vec<Warning>) {
    if let Some(filesystem) = &environment.filesystem {
        warnings.extend(nearly_full(filesystem));
        warnings.extend(compressing_option(filesystem));
        warnings.extend(in_memory(filesystem));
    }
    let Some(device) = &environment.device else {
        return;
    };
    for name in devices_below(root, &device.name) {
        if name.starts_with("zram") {
            warnings.push(Warning::Compression { by: name });
        } else if let Some(backing_file) = backing_file(root, &name) {
            warnings.push(Warning::LoopDevice {
                device: name,
                backing_file,
            });
        }
    }
}

fn nearly_full(filesystem: &Filesystem) -> Option<Warning> {
    let mount_point = PathBuf::from(&filesystem.mount_point);
    let found = rustix::fs::statvfs(&mount_point).ok()?;
    let used = used_share(found.f_blocks, found.f_bfree, found.f_bavail)?;
    (used > NEARLY_FULL).then_some(Warning::FilesystemNearlyFull { mount_point, used })
}

/// As df(1) counts: what is reserved for root is neither used nor free.
fn used_share(blocks: u64, free: u64, available: u64) -> Option<f64> {
    let used = blocks.saturating_sub(free) as f64;
    let usable = used + available as f64;
    (usable > 0.0).then(|| used / usable)
}

fn in_memory(filesystem: &Filesystem) -> Option<Warning> {
    let kind = filesystem.kind.as_str();
    matches!(kind, "tmpfs" | "ramfs").then(|| Warning::InMemory {
        filesystem: kind.to_owned(),
    })
}

/// The option by which files without an attribute of their own are compressed. f2fs has
/// `compress_algorithm` whenever it could compress; it does so for the extensions named (Linux:
/// Documentation/filesystems/f2fs.rst).
fn compressing_option(filesystem: &Filesystem) -> Option<Warning> {
    let keys: &[&str] = match filesystem.kind.as_str() {
        "btrfs" => &["compress", "compress-force"],
        "bcachefs" => &["compression", "background_compression"],
        "ubifs" => &["compr"],
        "f2fs" => &["compress_extension"],
        _ => return None,
    };
    let is_one = |word: &&str| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let is_off = matches!(value, "no" | "none");
        let is_ours = filesystem.kind != "f2fs" || value == "*";
        keys.contains(&key) && !is_off && is_ours
    };
    let mut words = filesystem.options.split([',', ';', ' ']);
    words.find(is_one).map(|word| Warning::Compression {
        by: word.to_owned(),
    })
}

/// The device and all that it is built upon: partition, device mapper, md, loop devices' files.
fn devices_below(root: &Path, name: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut next = vec![name.to_owned()];
    while let Some(name) = next.pop() {
        let Ok(directory) = std::fs::canonicalize(root.join("sys/class/block").join(&name)) else {
            continue;
        };
        if !found.insert(name.clone()) {
            continue;
        }
        if directory.join("partition").exists() {
            next.extend(directory.parent().and_then(file_name));
        }
        let slaves = entries(&directory.join("slaves"));
        next.extend(slaves.iter().filter_map(|slave| file_name(slave)));
        next.extend(backing_file(root, &name).and_then(|file| device_of(root, &file)));
    }
    found.into_iter().collect()
}

fn backing_file(root: &Path, name: &str) -> Option<PathBuf> {
    let path = root.join("sys/class/block").join(name);
    read(&path.join("loop/backing_file")).map(PathBuf::from)
}

/// The device of the filesystem on which a file is, or the device that it is itself.
fn device_of(root: &Path, file: &Path) -> Option<String> {
    use std::os::unix::fs::FileTypeExt;
    let found = std::fs::metadata(file).ok()?;
    let is_device = found.file_type().is_block_device();
    let number = if is_device { found.rdev() } else { found.dev() };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let link = root.join(format!("sys/dev/block/{major}:{minor}"));
    file_name(&std::fs::canonicalize(link).ok()?)
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests;
