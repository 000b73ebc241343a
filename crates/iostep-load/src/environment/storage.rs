//! What is below the target that makes its figures differ from a device's.

use std::path::{Path, PathBuf};

use iostep_model::bench::off_device::{compressing_option, in_memory};
use iostep_model::bench::{Environment, Warning};
use iostep_model::disk::{self, Below};
use iostep_model::manifest::Filesystem;

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
    let below = disk::below(root, &root.join("sys/class/block").join(&device.name));
    for Below {
        name, backing_file, ..
    } in below
    {
        if name.starts_with("zram") {
            warnings.push(Warning::Compression { by: name });
        } else if let Some(backing_file) = backing_file {
            warnings.push(Warning::LoopDevice {
                device: name,
                // A result is JSON, which has no other text than UTF-8.
                backing_file: backing_file.to_string_lossy().into_owned().into(),
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

#[cfg(test)]
mod tests;
