//! `iostep fleet` as a user runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use iostep_model::{fixture, store};
use tempfile::TempDir;

fn fleet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iostep"))
        .arg("fleet")
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn json(output: &Output) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn name(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn trace(dir: &TempDir, requests: usize) -> PathBuf {
    let path = dir.path().join(format!("{requests}.iostep"));
    fs::create_dir(&path).expect("a directory");
    store::write(&path, &fixture::sqlite_on_ext4(requests)).expect("written");
    path
}

fn old(name: &str) -> String {
    format!("{}/tests/old-0.1/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn traces_and_results_old_ones_too_are_added_once_and_counted() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    let trace = trace(&dir, 60);
    let (ext4, sqlite, file) = (old("ext4"), old("sqlite.json"), old("file.json"));
    let arguments = [
        "add",
        name(&trace),
        &ext4,
        &sqlite,
        &file,
        name(&lake),
        "--json",
    ];
    for new in [true, false] {
        let added = json(&fleet(&arguments));
        let added = added.as_array().expect("a list");
        assert_eq!(added.len(), 4);
        assert!(
            added.iter().all(|one| one["added"]["new"] == new),
            "{added:?}"
        );
    }
    let mode = fs::metadata(&lake).expect("a directory").permissions();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode);
    assert_eq!(mode & 0o777, 0o700);
    let output = fleet(&["add", &ext4, name(&lake)]);
    assert!(text(&output.stdout).contains("was there already"));
    json(&fleet(&["compact", name(&lake), "--json"]));
    let info = json(&fleet(&["info", name(&lake), "--json"]));
    assert_eq!(info["traces"]["rows"], 2);
    assert!(info["results"]["rows"].as_u64() >= Some(2));
    let added = json(&fleet(&arguments));
    let added = added.as_array().expect("a list");
    assert!(
        added.iter().all(|one| one["added"]["new"] == false),
        "{added:?}"
    );
}

#[test]
fn what_cannot_be_added_is_refused_by_name_and_changes_nothing() {
    let dir = TempDir::new().expect("a directory");
    let lake = dir.path().join("lake");
    let broken = trace(&dir, 60);
    let segments = broken.join("segments.parquet");
    let bytes = fs::read(&segments).expect("read");
    fs::write(&segments, &bytes[..bytes.len() / 2]).expect("written");
    let letter = dir.path().join("letter.txt");
    fs::write(&letter, "dear").expect("written");
    for input in [
        name(&broken),
        name(&letter),
        "/nowhere",
        &old("calls.trace"),
    ] {
        let output = fleet(&["add", input, name(&lake)]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{input}: {}",
            text(&output.stderr)
        );
        assert!(
            text(&output.stderr).contains(input),
            "{}",
            text(&output.stderr)
        );
    }
    if lake.exists() {
        let info = json(&fleet(&["info", name(&lake), "--json"]));
        assert_eq!(info["traces"]["rows"], 0);
        assert_eq!(info["segments"]["files"], 0);
    }
    let whole = trace(&dir, 61);
    let output = fleet(&["add", name(&whole), name(dir.path())]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "a directory of something else"
    );
    let output = fleet(&["compact", name(&lake), "--date", "2026-02-30"]);
    assert_eq!(output.status.code(), Some(2));
}
