use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use super::*;

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

#[test]
fn what_is_done_in_a_held_directory_is_not_done_at_its_name() {
    let place = place();
    let (name, moved) = (place.path().join("work"), place.path().join("moved"));
    let victim = place.path().join("victim");
    fs::create_dir(&victim).expect("made");
    let (held, made) = Directory::make(&name).expect("made");
    assert!(made);
    fs::rename(&name, &moved).expect("moved");
    symlink("victim", &name).expect("a link");
    crate::publish::write(&held.path().join("file"), b"x").expect("write");
    fs::write(held.path_for_others().join("other"), "x").expect("write");
    assert_eq!(fs::read_dir(&moved).expect("list").count(), 2);
    assert_eq!(fs::read_dir(&victim).expect("list").count(), 0);
    held.remove_if_empty();
    assert!(name.is_symlink(), "another is not removed");
}

#[test]
fn a_new_directory_is_private_and_an_old_one_is_taken_as_it_is() {
    let place = place();
    let name = place.path().join("work");
    let (held, made) = Directory::make(&name).expect("made");
    assert!(made);
    assert_eq!(fs::metadata(&name).expect("there").mode() & 0o777, 0o700);
    let (_, made) = Directory::make(&name).expect("opened");
    assert!(!made);
    held.remove_if_empty();
    assert!(!name.exists());
    let error = Directory::open(&name).expect_err("gone").to_string();
    assert!(error.contains(&name.display().to_string()), "{error}");
}

#[test]
fn a_temporary_directory_goes_with_its_value_whatever_is_at_its_name() {
    let place = place();
    let temporary = Temporary::new(place.path(), ".iostep-test-").expect("made");
    let name = temporary.directory().name().to_owned();
    fs::create_dir(temporary.path().join("below")).expect("made");
    fs::write(temporary.path().join("below/file"), "x").expect("write");
    drop(temporary);
    assert_eq!(fs::read_dir(place.path()).expect("list").count(), 0);

    let temporary = Temporary::new(place.path(), ".iostep-test-").expect("made");
    assert_ne!(temporary.directory().name(), name);
    let (name, moved) = (
        temporary.directory().name().to_owned(),
        place.path().join("moved"),
    );
    fs::rename(&name, &moved).expect("moved");
    fs::create_dir(&name).expect("another");
    fs::write(name.join("precious"), "x").expect("write");
    drop(temporary);
    assert!(name.join("precious").exists());
    assert_eq!(fs::read_dir(&moved).expect("list").count(), 0);
}

#[test]
fn what_the_dead_left_is_swept_and_nothing_else() {
    let place = place();
    let of = |name: &str| place.path().join(name);
    let dead = Temporary::new(place.path(), ".iostep-test-").expect("made");
    let dead_name = dead.directory().name().to_owned();
    fs::write(dead.path().join("file"), "x").expect("write");
    // As SIGKILL does: the lock goes, the directory stays.
    let mut dead = std::mem::ManuallyDrop::new(dead);
    drop(dead.mark.take());
    let alive = Temporary::new(place.path(), ".iostep-other-").expect("made");
    let kept = Temporary::new(place.path(), ".iostep-other-").expect("made");
    let kept = kept.keep().expect("kept");
    fs::create_dir(of(".iostep-test-foreign")).expect("made");
    fs::write(of(".iostep-test-foreign").join("file"), "x").expect("write");
    fs::write(of(".iostep-test-file"), "x").expect("write");
    symlink(alive.directory().name(), of(".iostep-test-link")).expect("a link");
    assert!(dead_name.exists());

    let new = Temporary::new(place.path(), ".iostep-test-").expect("made");
    assert!(!dead_name.exists(), "swept");
    assert!(new.directory().name().exists());
    let other = Temporary::new(place.path(), ".iostep-other-").expect("made");
    assert!(alive.directory().name().exists() && kept.exists());
    assert!(of(".iostep-test-foreign").join("file").exists());
    assert!(of(".iostep-test-file").exists() && of(".iostep-test-link").is_symlink());
    drop(other);
}

#[test]
fn a_way_that_has_no_end_is_an_error() {
    let place = place();
    symlink("b", place.path().join("a")).expect("a link");
    symlink("a", place.path().join("b")).expect("a link");
    let error = find(&place.path().join("a/x")).expect_err("a loop");
    assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
}

#[test]
fn only_what_a_dead_run_marked_is_removed_by_its_path() {
    let place = place();
    let temporary = Temporary::new(place.path(), "iostep-test-").expect("made");
    let name = temporary.directory().name().to_owned();
    fs::write(temporary.path().join("file"), "x").expect("write");
    remove_left(&name, Duration::ZERO);
    assert!(name.join("file").exists(), "somebody uses it");
    let copied = place.path().join("iostep-test-copy");
    fs::create_dir(&copied).expect("made");
    fs::copy(name.join(MARK), copied.join(MARK)).expect("a dead run's mark");
    let precious = place.path().join("iostep-test-precious");
    fs::create_dir(&precious).expect("made");
    for path in [&copied, &precious] {
        fs::write(path.join("file"), "x").expect("write");
        remove_left(path, Duration::ZERO);
    }
    assert!(!copied.exists());
    assert!(precious.join("file").exists(), "it has no mark");
}

#[test]
fn what_comes_and_goes_while_it_is_removed_keeps_nothing() {
    let place = place();
    let temporary = Temporary::new(place.path(), "iostep-test-").expect("made");
    let name = temporary.directory().name().to_owned();
    let file = |number: u32| name.join(number.to_string());
    std::thread::scope(|scope| {
        let (began, begin) = std::sync::mpsc::channel();
        scope.spawn(move || {
            for number in 0..5000 {
                let _ = fs::write(file(number), "x");
                let _ = fs::remove_file(file(number / 2));
                let _ = began.send(());
            }
        });
        begin.recv().expect("it began");
        drop(temporary);
    });
    assert!(!name.exists());
}

#[test]
fn a_path_is_resolved_through_own_links_and_no_strangers() {
    let place = place();
    let real = fs::canonicalize(place.path()).expect("it is there");
    fs::create_dir(place.path().join("real")).expect("made");
    fs::write(place.path().join("real/file"), "x").expect("write");
    let link = place.path().join("link");
    symlink("real", &link).expect("a link");
    symlink("link/file", place.path().join("last")).expect("a link");
    let resolved = |name: &str| resolve(&place.path().join(name));
    for (name, expected) in [
        ("real/file", "real/file"),
        ("link/./file", "real/file"),
        ("real/../link", "real"),
        ("last", "real/file"),
        ("real/", "real"),
    ] {
        assert_eq!(
            resolved(name).expect("found"),
            real.join(expected),
            "{name}"
        );
    }
    resolved("nothing").expect_err("it is not there");
    let root = resolve(Path::new("/")).expect("found");
    assert_eq!(root, Path::new("/"));
    if !rustix::process::geteuid().is_root() {
        eprintln!("not all of it: only root makes somebody else's link");
        return;
    }
    std::os::unix::fs::lchown(&link, Some(1234), Some(1234)).expect("given");
    for name in ["link/file", "last"] {
        let error = resolved(name).expect_err("a stranger's").to_string();
        assert!(
            error.contains("link is a symbolic link of user 1234"),
            "{error}"
        );
    }
}

#[test]
fn one_that_is_swept_before_it_is_locked_is_made_again() {
    let place = place();
    let rounds = || {
        for _ in 0..2000 {
            let temporary = Temporary::new(place.path(), ".iostep-test-").expect("made");
            assert!(temporary.directory().name().is_dir(), "somebody swept it");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(rounds);
        }
    });
    assert_eq!(fs::read_dir(place.path()).expect("list").count(), 0);
}
