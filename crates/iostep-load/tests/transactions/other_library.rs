//! Another SQLite than the one inside.

use std::process::Command;

use super::*;

/// The system's library, as the dynamic linker finds it.
pub fn system_library() -> PathBuf {
    let output = Command::new("/sbin/ldconfig").arg("-p").output();
    let output = output.expect("ldconfig is there");
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = list.lines().find(|line| line.contains("libsqlite3.so"));
    let path = line.and_then(|line| line.split(" => ").nth(1));
    path.expect("libsqlite3-0 is installed (scripts/setup)")
        .into()
}

#[test]
fn the_systems_library_runs_every_operation_in_every_journal_mode() {
    let directory = directory();
    let library = system_library();
    for &journal in Journal::ALL.iter().filter(|j| **j != Journal::Waldio) {
        for fsync in [false, true] {
            let job = SqliteJob {
                library: Some(library.clone()),
                journal,
                fsync,
                threads: 2,
                shared: true,
                statements: 2,
                databases: 2,
                ..job(directory.path())
            };
            let mut bench = open(&job).expect("open");
            let run = bench.run(&mut Quiet).expect("a run");
            assert_eq!(
                run.verification.map(|v| (v.compared, v.wrong)),
                Some((160, 0))
            );
            assert_eq!(run.failures, []);
            assert_eq!(rows(&job, 0, 1, 0), 80);
        }
    }
}

#[test]
fn the_systems_library_is_not_the_one_inside() {
    let directory = directory();
    let path = system_library();
    let bench = open(&SqliteJob {
        library: Some(path.clone()),
        ..job(directory.path())
    });
    let bench = bench.expect("open");
    let library = bench.library();
    assert_eq!(library.path.as_deref(), path.to_str());
    // The package's own shell says what it is.
    if let Ok(output) = Command::new("sqlite3").arg("--version").output() {
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(told.starts_with(&library.version), "{told} {library:?}");
        assert!(told.contains(&library.source_id), "{told} {library:?}");
    }
    assert_ne!(
        library.source_id,
        open(&job(super::directory().path()))
            .expect("open")
            .library()
            .source_id
    );
}
