//! Where a path leads, by its words alone.

use iostep_model::syscall::raw::DescriptorKind;

/// Where a process is whose current directory is not known.
pub const UNKNOWN_DIRECTORY: &[u8] = b"/iostep.current-directory";
/// The directory of files whose names were never seen.
pub const UNNAMED_DIRECTORY: &[u8] = b"/iostep.never-opened";
/// The longest absolute path that is kept, bytes. The kernel takes 4096 in one call (`PATH_MAX`,
/// include/uapi/linux/limits.h); relative ones can lead deeper.
pub const MAX_PATH_BYTES: usize = 16 << 10;

/// `text` seen from `directory`, absolute. `//` and `/./` are collapsed, which changes nothing;
/// `..` stays, since what is before it may be a symbolic link. A `/` at the end stays too: it asks
/// for a directory.
pub(super) fn join(directory: &[u8], text: &[u8], absolute: &mut Vec<u8>) {
    absolute.clear();
    if !text.starts_with(b"/") {
        absolute.extend_from_slice(directory);
    }
    let parts = text.split(|byte| *byte == b'/');
    for part in parts.filter(|part| !part.is_empty() && *part != b".") {
        if absolute.last() != Some(&b'/') {
            absolute.push(b'/');
        }
        absolute.extend_from_slice(part);
    }
    if absolute.is_empty() || (text.ends_with(b"/") && absolute.last() != Some(&b'/')) {
        absolute.push(b'/');
    }
}

/// The absolute path of one that begins with `/` at a changed root, which `..` does not leave.
pub(super) fn join_below(root: &[u8], text: &[u8], absolute: &mut Vec<u8>) {
    let mut rest = text;
    loop {
        let begin = rest.iter().position(|byte| *byte != b'/');
        let Some(begin) = begin else {
            rest = b"";
            break;
        };
        rest = &rest[begin..];
        match rest.strip_prefix(b"..") {
            Some(above) if above.is_empty() || above.starts_with(b"/") => rest = above,
            _ => break,
        }
    }
    match rest.is_empty() {
        true => *absolute = root.to_vec(),
        false => join(root, rest, absolute),
    }
}

/// What a changed root has as /proc, /sys and /dev are the machine's, mounted there.
pub(super) fn without_root(root: &[u8], absolute: &mut Vec<u8>) {
    if root.is_empty() {
        return;
    }
    let inside = absolute.strip_prefix(root);
    let inside = inside.filter(|inside| inside.starts_with(b"/") && left_out(inside).is_some());
    if let Some(inside) = inside.map(<[u8]>::to_vec) {
        *absolute = inside;
    }
}

/// Why calls on an absolute path are left out, if they are: it is in a filesystem without data, or a
/// device. /dev/shm holds ordinary files.
pub(super) fn left_out(absolute: &[u8]) -> Option<&'static str> {
    let mut parts = absolute.split(|byte| *byte == b'/').skip(1);
    let (first, second) = (parts.next()?, parts.next());
    match (first, second) {
        (b"proc" | b"sys", _) => Some(reason(DescriptorKind::Kernel)),
        (b"dev", Some(b"shm")) => None,
        (b"dev", Some(b"ashmem")) => Some("ashmem"),
        (b"dev", Some(b"binder" | b"hwbinder" | b"vndbinder")) => Some("binder"),
        (b"dev", _) => Some(reason(DescriptorKind::Device)),
        _ => None,
    }
}

/// The ledger's word for what is no file.
pub(super) fn reason(kind: DescriptorKind) -> &'static str {
    use DescriptorKind as K;
    match kind {
        K::File | K::Directory | K::SomeFile => "file",
        K::Pipe => "pipe",
        K::Socket => "socket",
        K::Device => "device",
        K::Event => "event descriptor",
        K::Memory => "memory",
        K::Uring => "io_uring",
        K::Kernel => "kernel file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(directory: &str, text: &str) -> String {
        let mut absolute = Vec::new();
        join(directory.as_bytes(), text.as_bytes(), &mut absolute);
        String::from_utf8(absolute).expect("UTF-8")
    }

    #[test]
    fn only_what_changes_nothing_is_collapsed() {
        assert_eq!(joined("/a", "b"), "/a/b");
        assert_eq!(joined("/a", ".//b/./../c"), "/a/b/../c");
        assert_eq!(joined("/a", "/x//y"), "/x/y");
        assert_eq!(joined("/a", "dir/"), "/a/dir/");
        assert_eq!(joined("/a", "."), "/a");
        assert_eq!(joined("/", "b"), "/b");
        assert_eq!(joined("/a", "/"), "/");
        assert_eq!(joined("/a", "//."), "/");
        assert_eq!(joined("/a/", "./"), "/a/");
    }

    #[test]
    fn a_changed_root_is_where_absolute_paths_begin() {
        for (text, absolute) in [
            ("/", "/jail"),
            ("//", "/jail"),
            ("/a//b", "/jail/a/b"),
            ("/../../a", "/jail/a"),
            ("/..", "/jail"),
            ("/..a", "/jail/..a"),
            ("/a/", "/jail/a/"),
            ("/proc/self/fd/3", "/proc/self/fd/3"),
            ("/dev/null", "/dev/null"),
            ("/dev/shm/a", "/jail/dev/shm/a"),
        ] {
            let mut found = Vec::new();
            join_below(b"/jail", text.as_bytes(), &mut found);
            without_root(b"/jail", &mut found);
            assert_eq!(found, absolute.as_bytes(), "{text}");
        }
    }

    #[test]
    fn filesystems_without_data_and_devices_are_left_out() {
        for (path, why) in [
            ("/proc/1/maps", Some("kernel file")),
            ("/sys", Some("kernel file")),
            ("/dev/null", Some("device")),
            ("/dev/ashmem/x", Some("ashmem")),
            ("/dev/binder", Some("binder")),
            ("/dev/shm/sem", None),
            ("/process", None),
            ("/", None),
        ] {
            assert_eq!(left_out(path.as_bytes()), why, "{path}");
        }
    }
}
