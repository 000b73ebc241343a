//! Whether a value of a filter can fit anything that is on this machine now.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iostep_analyze::filter::{Pattern, Value};
use iostep_model::mountinfo;

/// True if something that is here now fits.
pub(super) fn has(value: &Value) -> bool {
    match value {
        Value::Pid(pid) => Path::new(&format!("/proc/{pid}")).exists(),
        Value::Comm(name) => Pattern::new(name).is_ok_and(|pattern| has_thread(&pattern)),
        Value::Cgroup(group) => {
            let table = fs::read_to_string(Path::new("/").join(mountinfo::PATH));
            let mounts = mountinfo::points_of(&table.unwrap_or_default(), "cgroup2");
            mounts.iter().any(|mount| has_group(mount, group))
        }
        // Names are known of files with I/O only, but a path says itself whether it is there.
        Value::File(path) => path.starts_with('/') && Path::new(path).exists(),
        Value::Together => false,
    }
}

fn numbered(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_number = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.as_encoded_bytes());
        name.is_some_and(|name| name.iter().all(u8::is_ascii_digit))
    };
    paths.filter(is_number).collect()
}

fn has_thread(pattern: &Pattern) -> bool {
    let threads = numbered(Path::new("/proc"))
        .into_iter()
        .flat_map(|process| numbered(&process.join("task")));
    threads
        .filter_map(|thread| fs::read_to_string(thread.join("comm")).ok())
        .any(|name| pattern.matches(name.trim_end_matches('\n')))
}

/// True if a group of this hierarchy has the path, the name or the number.
fn has_group(mount: &Path, group: &str) -> bool {
    let Ok(pattern) = Pattern::new(group) else {
        return false;
    };
    let mut left = vec![mount.to_owned()];
    while let Some(directory) = left.pop() {
        let path = directory.strip_prefix(mount).unwrap_or(&directory);
        let path = format!("/{}", path.display());
        let name = path.rsplit('/').next().unwrap_or_default();
        let id = fs::symlink_metadata(&directory).map(|found| found.ino().to_string());
        let fits = match group.contains('/') {
            true => pattern.matches(&path),
            false => pattern.matches(name) || id.is_ok_and(|id| id == group),
        };
        if fits && directory.join("cgroup.procs").exists() {
            return true;
        }
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        left.extend(directories.map(|entry| entry.path()));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_a_path_a_name_and_a_number() {
        let root = tempfile::tempdir().expect("a directory");
        let group = root.path().join("app.slice/a.service");
        fs::create_dir_all(&group).expect("make");
        for directory in [&group, group.parent().expect("a parent"), root.path()] {
            fs::write(directory.join("cgroup.procs"), "").expect("write");
        }
        let number = fs::metadata(&group).expect("it is there").ino().to_string();
        for name in [
            "/app.slice/a.service",
            "a.service",
            "a.*",
            "app.slice",
            "/",
            &number,
        ] {
            assert!(has_group(root.path(), name), "{name}");
        }
        for name in ["nonexist", "/a.service", "cgroup.procs", "0"] {
            assert!(!has_group(root.path(), name), "{name}");
        }
    }

    #[test]
    fn this_process_is_here_and_one_with_too_large_a_number_is_not() {
        assert!(has(&Value::Pid(std::process::id())));
        // More than the kernel's PID_MAX_LIMIT.
        assert!(!has(&Value::Pid(u32::MAX)));
        let own = fs::read_to_string("/proc/self/comm").expect("Linux");
        assert!(has(&Value::Comm(own.trim_end().to_owned())));
        assert!(!has(&Value::Comm("no-program-is-so".into())));
        assert!(has(&Value::File("/proc/self".into())));
    }
}
