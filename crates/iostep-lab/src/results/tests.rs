use iostep_model::fixture;
use iostep_model::lab::{Filesystem, State, WorkloadKind};

use super::*;
use crate::measured::tests::document;

fn cell(number: u32) -> Cell {
    Cell {
        key: format!("{number:016x}"),
        ..fixture::cell(Filesystem::Xfs, WorkloadKind::Sqlite, &["--fsync"])
    }
}

fn lab(numbers: &[u32]) -> Lab {
    Lab {
        name: "test".into(),
        title: "A test".into(),
        cells: numbers.iter().copied().map(cell).collect(),
        analysis: Default::default(),
    }
}

fn result(number: u32, state: State) -> CellResult {
    CellResult::without_runs(&cell(number), state)
}

fn failed() -> State {
    State::Failed {
        reason: "no space".into(),
    }
}

/// A directory with these results of a lab of cells 1 to 3.
fn directory(parent: &Path, name: &str, all: &[(u32, State)]) -> PathBuf {
    let path = parent.join(name);
    let results = Results::open(&path, &lab(&[1, 2, 3])).expect("a new directory");
    for (number, state) in all {
        results
            .put(&result(*number, state.clone()).into())
            .expect("written");
    }
    path
}

fn states(all: &[CellResult]) -> Vec<(u32, &State)> {
    let number = |result: &CellResult| u32::from_str_radix(&result.cell.key, 16).expect("a key");
    all.iter()
        .map(|result| (number(result), &result.state))
        .collect()
}

#[test]
fn what_is_done_is_found_again() {
    let parent = tempfile::tempdir().expect("a directory");
    let path = directory(parent.path(), "a", &[(1, State::Complete), (2, failed())]);
    let results = Results::open(&path, &lab(&[1, 2, 3])).expect("the same lab");
    let found = |number| results.get(&cell(number)).expect("readable");
    assert!(found(1).expect("it is there").state.is_final());
    assert!(!found(2).expect("it is there").state.is_final());
    assert!(found(3).is_none());
}

#[test]
fn a_directory_is_one_processs_and_one_labs() {
    let parent = tempfile::tempdir().expect("a directory");
    let path = parent.path().join("a");
    let first = Results::open(&path, &lab(&[1])).expect("a new directory");
    let second = Results::open(&path, &lab(&[1])).expect_err("it is taken");
    assert!(matches!(second, Error::Refused { .. }), "{second}");
    drop(first);
    let other = Lab {
        name: "other".into(),
        ..lab(&[1])
    };
    let error = Results::open(&path, &other).expect_err("another lab");
    assert!(
        error
            .to_string()
            .contains("results of the lab test, not of other"),
        "{error}"
    );
}

#[test]
fn cells_that_left_the_lab_stay_if_they_have_a_result() {
    let parent = tempfile::tempdir().expect("a directory");
    let path = directory(parent.path(), "a", &[(1, State::Complete)]);
    let results = Results::open(&path, &lab(&[4])).expect("the lab changed");
    let keys: Vec<&str> = results.lab().cells.iter().map(|c| c.key.as_str()).collect();
    assert_eq!(keys, ["0000000000000004", "0000000000000001"]);
}

#[test]
fn shards_are_joined() {
    let parent = tempfile::tempdir().expect("a directory");
    let a = directory(parent.path(), "a", &[(1, State::Complete), (2, failed())]);
    let b = directory(
        parent.path(),
        "b",
        &[(2, State::Complete), (1, State::Complete)],
    );
    let into = parent.path().join("all");
    let (found, all) = merge(&[a, b], &into).expect("they go together");
    assert_eq!(found.cells.len(), 3);
    let complete = [(1, &State::Complete), (2, &State::Complete)];
    assert_eq!(states(&all), complete);
    assert_eq!(states(&read(&into).expect("it was written").1), complete);
    assert!(into.join("cells.parquet").is_file());
    // Joining again what is there already changes nothing.
    let again = merge(&[parent.path().join("b")], &into).expect("it fits");
    assert_eq!(states(&again.1), complete);
}

#[test]
fn two_results_of_one_cell_are_a_conflict_and_nothing_is_written() {
    let parent = tempfile::tempdir().expect("a directory");
    let not = State::NotApplicable {
        reason: "no journal".into(),
    };
    let a = directory(parent.path(), "a", &[(1, State::Complete)]);
    let b = directory(parent.path(), "b", &[(1, not)]);
    let into = parent.path().join("all");
    let error = merge(&[a, b], &into).expect_err("a conflict");
    assert!(
        error.to_string().contains("different results of it"),
        "{error}"
    );
    assert!(!into.exists());
}

#[test]
fn what_a_newer_version_wrote_is_refused_and_stays_as_it_is() {
    let parent = tempfile::tempdir().expect("a directory");
    let path = directory(parent.path(), "a", &[(1, State::Complete)]);
    let file = cell_path(&path, &cell(1).key);
    let text = std::fs::read_to_string(&file).expect("readable");
    let newer = text.replace("\"schema_version\": 1", "\"schema_version\": 9");
    std::fs::write(&file, &newer).expect("writable");
    for error in [
        Results::open(&path, &lab(&[1])).expect_err("a newer version"),
        read(&path).expect_err("a newer version"),
    ] {
        assert!(error.to_string().contains("schema 9"), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("readable"), newer);
}

#[test]
fn a_key_that_is_a_path_is_refused() {
    let parent = tempfile::tempdir().expect("a directory");
    let path = directory(parent.path(), "a", &[]);
    let mut bad = lab(&[1]);
    bad.cells[0].key = "../../etc/passwd".into();
    bad.write(&path.join(LAB)).expect("writable");
    let error = read(&path).expect_err("no key");
    assert!(error.to_string().contains("is no key"), "{error}");
}

#[test]
fn a_directory_without_a_lab_is_bad_usage() {
    let parent = tempfile::tempdir().expect("a directory");
    assert!(matches!(read(parent.path()), Err(Error::Usage { .. })));
    assert!(merge(&[], &parent.path().join("all")).is_err());
}

/// A cell that is complete, with what bench said of so many operations.
fn measured(number: u32, operations: u64) -> Measured {
    Measured {
        result: result(number, State::Complete),
        bench: Some(document(operations, &[])),
    }
}

/// How many operations bench says that each sendable cell made.
fn operations(directory: &Path) -> Vec<u64> {
    let files = bench_files(directory).expect("readable");
    let read = |path: &PathBuf| Document::read(path).expect("a result").runs[0].operations;
    files.iter().map(read).collect()
}

#[test]
fn what_bench_said_stays_with_its_cell_and_no_longer() {
    let parent = tempfile::tempdir().expect("a directory");
    let path = parent.path().join("a");
    let results = Results::open(&path, &lab(&[1, 2, 3])).expect("a new directory");
    let put = |measured: &Measured| results.put(measured).expect("written");
    assert_eq!(put(&result(3, State::Complete).into()), None);
    assert!(put(&measured(2, 20)).is_some_and(|path| path.is_file()));
    put(&measured(1, 10));
    assert_eq!(operations(&path), [10, 20]);
    // Measured again, and worse.
    put(&result(1, failed()).into());
    assert_eq!(operations(&path), [20]);
    assert!(!bench_path(&path, &cell(1).key).exists());
    // One of which there is no whole result, whoever has put it there.
    document(30, &[])
        .write(&bench_path(&path, &cell(1).key))
        .expect("written");
    assert_eq!(operations(&path), [20]);
}

#[test]
fn what_bench_said_is_joined_with_the_cells() {
    let parent = tempfile::tempdir().expect("a directory");
    let make = |name: &str, all: &[Measured]| {
        let path = parent.path().join(name);
        let results = Results::open(&path, &lab(&[1, 2, 3])).expect("a new directory");
        for measured in all {
            results.put(measured).expect("written");
        }
        path
    };
    let without = |number| Measured::from(result(number, State::Complete));
    let a = make("a", &[measured(1, 10), without(2)]);
    let b = make("b", &[without(1), measured(2, 20), measured(3, 30)]);
    let into = parent.path().join("all");
    merge(&[a.clone(), b.clone()], &into).expect("they fit");
    assert_eq!(operations(&into), [10, 20, 30]);
    // Neither order nor doing it again takes anything away.
    merge(&[b, a], &into).expect("they fit");
    assert_eq!(operations(&into), [10, 20, 30]);
    let bare = make("bare", &[without(1)]);
    merge(&[bare], &into).expect("they fit");
    assert_eq!(operations(&into), [10, 20, 30]);
}
