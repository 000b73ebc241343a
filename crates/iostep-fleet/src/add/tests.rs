//! Parts of any size, which a trace has to be large for otherwise.

use std::cell::Cell;
use std::fs;

use iostep_model::{fixture, store};
use tempfile::TempDir;

use super::*;
use crate::Sizes;
use crate::place;
use crate::reader::{TableReader, Values};

/// The rows of a table, each as text, in the order of the files; and their groups.
fn rows(lake: &Lake, table: Table) -> (Vec<String>, usize) {
    let (mut rows, mut groups) = (Vec::new(), 0);
    for date in lake.dates().expect("dates") {
        let directory = lake.directory(table, date);
        for found in place::files(&directory).expect("listed") {
            let file = TableReader::open(&directory.join(found.name), table).expect("a table");
            groups += file.groups();
            for group in 0..file.groups() {
                let mut group = file.group(group, None).expect("a group");
                while let Some(columns) = group.next(1).expect("a row") {
                    rows.push(format!("{columns:?}"));
                }
            }
        }
    }
    (rows, groups)
}

fn add(lake: &Lake, trace: &Path, id: &str, options: &Options, most: usize) -> Result<Added> {
    lake.add_in_parts(&mut Stream::open(trace)?, id, options, most, &|| Ok(()))
}

/// A lake of one trace that was added in parts of at most `most`.
fn lake(dir: &TempDir, most: usize, model: &str) -> Lake {
    let trace = dir.path().join("trace");
    if !trace.exists() {
        fs::create_dir(&trace).expect("a directory");
        let mut whole = fixture::sqlite_on_ext4(700);
        // Two apps, so that there is something to sort.
        whole.processes.push(whole.processes[0].clone());
        whole.processes[3].comm = "another".into();
        whole.processes[3].pid += 1;
        whole.processes[3].tgid += 1;
        let segments = whole.segments.iter_mut().step_by(3);
        segments.for_each(|segment| segment.dirtier = Some(3));
        let syncs = whole.syncs.iter_mut().step_by(2);
        syncs.for_each(|sync| sync.process = Some(3));
        store::write(&trace, &whole).expect("written");
    }
    let lake = Lake::create(&dir.path().join(format!("lake-{most}-{model}"))).expect("a lake");
    let options = Options {
        keep_paths: true,
        model: Some(model.into()),
        ..Options::default()
    };
    let added = add(&lake, &trace, &"a".repeat(64), &options, most);
    assert!(added.expect("added").new);
    lake
}

#[test]
fn the_rows_are_the_same_whatever_the_parts_are() {
    let dir = TempDir::new().expect("a directory");
    let whole = lake(&dir, GROUP_ROWS, "m");
    for most in [1, 7, 100] {
        let parts = lake(&dir, most, "m");
        for table in Table::ALL {
            let ((mut all, _), (mut own, groups)) = (rows(&whole, table), rows(&parts, table));
            all.sort_unstable();
            own.sort_unstable();
            assert!(all == own, "{} in parts of {most}", table.name());
            let is_in_parts = matches!(table, Table::Segments | Table::Requests);
            assert!(!is_in_parts || groups > 5, "{} groups", groups);
        }
    }
}

#[test]
fn compacting_sorts_what_was_added_in_parts() {
    let dir = TempDir::new().expect("a directory");
    let parts = lake(&dir, 20, "m");
    let date = parts.dates().expect("dates")[0];
    let directory = parts.directory(Table::Segments, date);
    // More runs than are read at once, of two files and two models.
    let other = lake(&dir, 30, "k");
    let file = place::files(&other.directory(Table::Segments, date)).expect("listed");
    let from = other.directory(Table::Segments, date).join(&file[0].name);
    fs::copy(from, directory.join("b.parquet")).expect("copied");
    let (mut before, groups) = rows(&parts, Table::Segments);
    assert!(groups > 40);
    let done = parts.compact(Table::Segments, date, Sizes::default(), &|| Ok(()));
    assert_eq!(done.expect("compacted").rows, before.len() as u64);
    let (mut after, groups) = rows(&parts, Table::Segments);
    assert_eq!(groups, 1);
    let keys = keys(&parts, date);
    assert!(keys.is_sorted() && keys.len() == after.len());
    before.sort_unstable();
    after.sort_unstable();
    assert!(before == after);
}

/// Model and app of each row.
fn keys(lake: &Lake, date: Date) -> Vec<(String, String)> {
    let directory = lake.directory(Table::Segments, date);
    let file = &place::files(&directory).expect("listed")[0];
    let file = TableReader::open(&directory.join(&file.name), Table::Segments).expect("a table");
    let mut group = file.group(0, Some(&["model", "app"])).expect("a group");
    let columns = group.next(usize::MAX).expect("rows").expect("some");
    let [Values::Text(models), Values::Text(apps)] = &columns[..] else {
        panic!("two texts");
    };
    let text = |text: &parquet::data_type::ByteArray| text.as_utf8().expect("text").to_owned();
    models.iter().map(text).zip(apps.iter().map(text)).collect()
}

#[test]
fn what_is_damaged_in_its_last_part_leaves_nothing_of_the_parts_before() {
    let dir = TempDir::new().expect("a directory");
    let root = dir.path().join("lake");
    let lake = Lake::create(&root).expect("a lake");
    let mut trace = fixture::sqlite_on_ext4(300);
    trace.segments.last_mut().expect("a row").cause = Some(u32::MAX);
    store::write(dir.path(), &trace).expect("written");
    let add = || add(&lake, dir.path(), "b", &Options::default(), 20);
    let error = add().expect_err("refused").to_string();
    assert!(
        error.contains("segments.parquet: damaged at row"),
        "{error}"
    );
    assert!(lake.dates().expect("dates").is_empty());
    let left = fs::read_dir(root.join("_iostep/tmp")).expect("listed");
    assert_eq!(left.count(), 0);
    trace.segments.last_mut().expect("a row").cause = None;
    store::write(dir.path(), &trace).expect("written");
    assert!(add().expect("added").new);
}

#[test]
fn what_is_stopped_between_two_parts_changes_nothing() {
    let dir = TempDir::new().expect("a directory");
    let lake = lake(&dir, 100, "it");
    let before = rows(&lake, Table::Segments);
    let trace = dir.path().join("trace");
    let left = Cell::new(3);
    let stop = || match left.replace(left.get() - 1) {
        0 => Err(Error::io("it", "go on")(std::io::Error::other(
            "interrupted",
        ))),
        _ => Ok(()),
    };
    let mut stream = Stream::open(&trace).expect("a trace");
    let error = lake
        .add_in_parts(&mut stream, "b", &Options::default(), 100, &stop)
        .expect_err("stopped");
    assert_eq!(error.to_string(), "it: cannot go on: interrupted");
    assert_eq!(left.get(), -1);
    assert_eq!(rows(&lake, Table::Segments), before);
    assert!(
        add(&lake, &trace, "b", &Options::default(), 100)
            .expect("added")
            .new
    );
}
