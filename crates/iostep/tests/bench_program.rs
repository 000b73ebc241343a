//! `iostep-bench` beside `iostep`: whatever one writes, the other could have written.

use std::path::Path;
use std::process::Command;

use iostep_model::bench::Document;

/// What stands before the values of a result's lines, each once. Which warnings there are differs
/// from one run to the next.
fn keys(json: &str) -> Vec<&str> {
    let mut keys = Vec::new();
    let mut lines = json.lines();
    while let Some(line) = lines.next() {
        if let Some(indent) = line.strip_suffix("\"warnings\": [") {
            let end = [indent, "]"].concat();
            lines.by_ref().find(|line| line.starts_with(&end));
        }
        let key = line.split_once("\": ").map(|(key, _)| key);
        keys.extend(key.filter(|key| !keys.contains(key)));
    }
    keys
}

#[test]
fn the_program_for_phones_writes_the_same_document() {
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path().to_str().expect("UTF-8");
    for job in [
        ["file", place, "--size=1MiB", "--sync=fdatasync", "--verify"],
        [
            "sqlite",
            place,
            "--transactions=20",
            "--journal=wal",
            "--verify",
        ],
    ] {
        let [whole, small] = [
            env!("CARGO_BIN_EXE_iostep"),
            env!("CARGO_BIN_EXE_iostep-bench"),
        ]
        .map(|program| {
            let output = Command::new(program)
                .arg("bench")
                .args(job)
                .arg("--json")
                .output();
            let output = output.expect("it runs");
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8(output.stdout).expect("UTF-8")
        });
        // What a figure is made of is missing where there is none, as with a run of one second.
        let order = |mut of: Vec<_>, other: Vec<_>| {
            of.retain(|key| other.contains(key));
            of
        };
        let order_of_whole = order(keys(&whole), keys(&small));
        assert!(order_of_whole.len() > 100, "{whole}");
        assert_eq!(order_of_whole, order(keys(&small), keys(&whole)));
        let unmeasured = |json: &str| {
            let document = Document::parse(Path::new("output"), json.as_bytes());
            let document = document.expect("a document");
            assert_eq!(document.runs.len(), 1);
            Document {
                runs: Vec::new(),
                warnings: Vec::new(),
                ..document
            }
        };
        assert_eq!(unmeasured(&whole), unmeasured(&small));
    }
}
