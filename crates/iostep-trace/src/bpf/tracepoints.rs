//! Tracepoints of loaded modules: on most distributions every filesystem is one.

use std::collections::HashSet;
use std::fs;

const DIRECTORY: &str = "/sys/kernel/btf";
/// What `DEFINE_EVENT` names the type of a tracepoint's arguments (include/trace/bpf_probe.h).
const PREFIX: &[u8] = b"btf_trace_";

/// The names of all tracepoints that have a type in a loaded module's BTF. A module that cannot
/// be read counts as one without tracepoints.
pub(super) fn of_modules() -> HashSet<String> {
    let entries = fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    let modules = entries.filter(|entry| entry.file_name() != "vmlinux");
    modules
        .filter_map(|module| fs::read(module.path()).ok())
        .flat_map(|btf| names(&btf))
        .collect()
}

/// BTF ends with its strings, each closed by a zero byte (Documentation/bpf/btf.rst).
fn names(btf: &[u8]) -> Vec<String> {
    btf.split(|byte| *byte == 0)
        .filter_map(|text| text.strip_prefix(PREFIX))
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracepoints_are_told_by_the_names_of_their_types() {
        let btf = b"\x9f\xeb\x01\0\0inode\0btf_trace_ext4_sync_file_enter\0ret\0btf_trace_x\0";
        assert_eq!(names(btf), ["ext4_sync_file_enter", "x"]);
        assert!(names(b"").is_empty());
    }
}
