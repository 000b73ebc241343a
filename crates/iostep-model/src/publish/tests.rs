use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

use super::*;

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

fn count(directory: &Path) -> usize {
    fs::read_dir(directory).expect("list").count()
}

#[test]
fn a_failed_write_leaves_the_old_content_and_nothing_else() {
    let dir = place();
    let path = dir.path().join("result");
    write(&path, b"old").expect("write");
    let failed: Result<()> = write_with(&path, |file| {
        file.write_all(b"half").expect("write");
        Err(Error::corrupt("x", "y", "z"))
    });
    assert!(failed.is_err());
    assert_eq!(fs::read(&path).expect("read"), b"old");
    assert_eq!(count(dir.path()), 1);
}

#[test]
fn nothing_has_a_name_while_it_is_written() {
    let dir = place();
    let path = dir.path().join("result");
    write_with(&path, |file| -> Result<()> {
        file.write_all(b"new").expect("write");
        assert_eq!(count(dir.path()), 0);
        Ok(())
    })
    .expect("write");
    assert_eq!(fs::read(&path).expect("read"), b"new");
    write(&path, b"newer").expect("write");
    assert_eq!(fs::read(&path).expect("read"), b"newer");
    assert_eq!(count(dir.path()), 1);
}

#[test]
fn behind_a_link_the_file_is_replaced_and_the_link_stays() {
    let dir = place();
    fs::create_dir(dir.path().join("elsewhere")).expect("made");
    let (link, file) = (dir.path().join("link"), dir.path().join("elsewhere/file"));
    symlink("elsewhere/file", &link).expect("a link");
    for content in [&b"first"[..], b"second"] {
        write(&link, content).expect("write");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read(&file).expect("read"), content);
    }
    assert_eq!(count(&dir.path().join("elsewhere")), 1);
}

#[test]
fn a_fifo_is_written_to_and_stays() {
    let dir = place();
    let path = dir.path().join("fifo");
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, mode, 0).expect("a FIFO");
    let content = std::thread::scope(|scope| {
        let reader = scope.spawn(|| fs::read_to_string(&path).expect("read"));
        write(&path, b"through").expect("write");
        reader.join().expect("no panic")
    });
    assert_eq!(content, "through");
    let kind = fs::symlink_metadata(&path).expect("there").file_type();
    assert!(kind.is_fifo());
}

#[test]
fn a_reader_that_leaves_has_what_it_wanted() {
    let dir = place();
    let path = dir.path().join("fifo");
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, mode, 0).expect("a FIFO");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut byte = [0];
            let mut reader = File::open(&path).expect("open");
            reader.read_exact(&mut byte).expect("read");
        });
        write(&path, &vec![7; 8 << 20]).expect("no error");
    });
}

#[test]
fn what_a_descriptor_stands_for_is_appended_to() {
    let dir = place();
    let path = dir.path().join("log");
    fs::write(&path, "before ").expect("write");
    let open = File::options().append(true).open(&path).expect("open");
    let inode = open.metadata().expect("there").ino();
    let name = format!("/proc/self/fd/{}", open.as_raw_fd());
    write(Path::new(&name), b"after").expect("write");
    assert_eq!(fs::read(&path).expect("read"), b"before after");
    assert_eq!(fs::metadata(&path).expect("there").ino(), inode);
}

#[test]
fn a_device_is_written_to_and_stays() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root makes device nodes");
        return;
    }
    let dir = place();
    let path = dir.path().join("null");
    let null = rustix::fs::makedev(1, 3);
    let mode = Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(CWD, &path, FileType::CharacterDevice, mode, null).expect("a node");
    let link = dir.path().join("link");
    symlink("null", &link).expect("a link");
    for name in [&path, &link] {
        write(name, b"nothing").expect("write");
        let kind = fs::metadata(name).expect("there").file_type();
        assert!(kind.is_char_device());
    }
    let disk = dir.path().join("disk");
    // No driver has it: an open would fail otherwise.
    let none = rustix::fs::makedev(0, 0);
    rustix::fs::mknodat(CWD, &disk, FileType::BlockDevice, mode, none).expect("a node");
    let error = write(&disk, b"x").expect_err("refused").to_string();
    assert!(error.contains("block device"), "{error}");
}

#[test]
fn a_directory_is_no_file() {
    let dir = place();
    assert!(write(dir.path(), b"x").is_err());
    assert!(write(Path::new("/"), b"x").is_err());
    assert!(write(&dir.path().join("none/x"), b"x").is_err());
}

#[test]
fn what_is_private_is_its_owners_and_an_old_mode_is_kept() {
    let dir = place();
    let (private, shared) = (dir.path().join("private"), dir.path().join("shared"));
    write_private(&private, b"x").expect("write");
    assert_eq!(mode(&private), 0o600);
    write(&shared, b"x").expect("write");
    let umask = rustix::process::umask(Mode::empty());
    rustix::process::umask(umask);
    assert_eq!(mode(&shared), 0o666 & !umask.as_raw_mode());
    for (before, private_after) in [(0o400, 0o400), (0o640, 0o600), (0o604, 0o600)] {
        for path in [&private, &shared] {
            fs::set_permissions(path, fs::Permissions::from_mode(before)).expect("changed");
        }
        write_private(&private, b"y").expect("write");
        write(&shared, b"y").expect("write");
        assert_eq!((mode(&private), mode(&shared)), (private_after, before));
    }
}

#[test]
fn a_file_that_root_replaces_stays_its_owners() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root gives files away");
        return;
    }
    let dir = place();
    let path = dir.path().join("file");
    fs::write(&path, "old").expect("write");
    std::os::unix::fs::chown(&path, Some(1234), Some(4321)).expect("given");
    write(&path, b"new").expect("write");
    let found = fs::metadata(&path).expect("there");
    assert_eq!((found.uid(), found.gid()), (1234, 4321));
}

#[test]
fn a_strangers_link_does_not_lead_root_elsewhere() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root makes somebody else's link");
        return;
    }
    let dir = place();
    let victim = dir.path().join("victim");
    fs::create_dir(&victim).expect("made");
    fs::write(victim.join("file"), "precious").expect("write");
    for (name, target, path) in [
        ("file", "victim/file", "file"),
        ("way", "victim", "way/file"),
    ] {
        let link = dir.path().join(name);
        symlink(target, &link).expect("a link");
        std::os::unix::fs::lchown(&link, Some(1234), Some(1234)).expect("given");
        let error = write(&dir.path().join(path), b"x").expect_err("a stranger's");
        assert!(error.to_string().contains("user 1234"), "{error}");
    }
    assert_eq!(fs::read(victim.join("file")).expect("read"), b"precious");
}

#[test]
fn whoever_is_to_end_does_not_wait_for_a_reader() {
    let dir = place();
    let path = dir.path().join("fifo");
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, mode, 0).expect("a FIFO");
    end_when(Arc::new(AtomicBool::new(true)));
    let nobody = write(&path, b"x").expect_err("no reader");
    // Holds both ends, and reads nothing.
    let both = File::options().read(true).write(true).open(&path);
    let full = write(&path, &vec![7; 8 << 20]).expect_err("nobody reads");
    end_when(Arc::new(AtomicBool::new(false)));
    drop(both.expect("a FIFO"));
    for error in [nobody, full] {
        assert!(error.to_string().contains("a signal came"), "{error}");
    }
}

#[test]
fn standard_output_has_more_than_one_name() {
    for name in ["-", "/dev/stdout", "/proc/self/fd/1"] {
        assert!(is_standard_output(Path::new(name)), "{name}");
    }
    let dir = place();
    let link = dir.path().join("link");
    symlink("/dev/stdout", &link).expect("a link");
    assert!(is_standard_output(&link));
    for name in ["./-", "/dev/null", "/no/such/file"] {
        assert!(!is_standard_output(Path::new(name)), "{name}");
    }
}
