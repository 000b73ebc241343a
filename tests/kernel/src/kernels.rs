//! The kernels that iostep is tested on, as `scripts/setup guest` unpacks them.

use std::path::{Path, PathBuf};

/// One directory each. Debian's backports keep some versions only for a while, so that two of these
/// are the oldest and the newest of their series that there was.
pub const ROLES: [&str; 4] = ["6.1", "6.12", "oldest-7", "newest-7"];

/// One that describes itself (BTF), and lacks what our programs call: tracefs and ptrace take their
/// place.
pub const WITHOUT_BPF: &str = "5.10";

/// Those of arm64, the last with pages of 16 KiB; `scripts/setup guest-arm64` unpacks them.
pub const ARM64: [&str; 4] = [
    "arm64-6.1",
    "arm64-6.12",
    "arm64-newest-7",
    "arm64-newest-7-16k",
];
/// A root with programs for them.
pub const ARM64_ROOT: &str = "/var/cache/iostep/root-arm64";

const DIRECTORY: &str = "/var/cache/iostep/kernels";

/// The image of a kernel; `None` if it was not unpacked.
pub fn image(role: &str) -> Option<PathBuf> {
    let directory = Path::new(DIRECTORY).join(role).join("boot");
    let mut entries = std::fs::read_dir(directory).ok()?.flatten();
    let is_image = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("vmlinuz-")
    };
    entries.find_map(|entry| Some(entry.path()).filter(is_image))
}
