//! Files of iostep 0.1, read by today's program (old-0.1/README.md says how they were made), and
//! files of a version that is not there yet.

use std::process::Output;

use iostep_model::bench::{Document, Step};
use iostep_model::lab::CellResult;
use iostep_model::manifest::{Backend, State};
use iostep_model::{Operation, store};
use serde_json::Value;
use tempfile::TempDir;

use crate::{copy_of, json, said};

/// A copy of the old files.
struct Old(TempDir);

impl Old {
    fn new() -> Old {
        Old(copy_of("old-0.1"))
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, line: &str) -> Output {
        let output = crate::iostep()
            .args(line.split(' '))
            .current_dir(self.0.path())
            .output();
        output.expect("the binary runs")
    }

    /// What a line prints, as JSON.
    fn json(&self, line: &str) -> Value {
        json(&self.run(line))
    }

    /// What is written in a file.
    fn written(&self, name: &str) -> Value {
        let text = std::fs::read(self.path(name)).expect("it is there");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// Writes a file with other words in it.
    fn replace(&self, name: &str, old: &str, new: &str) {
        let text = std::fs::read_to_string(self.path(name)).expect("it is there");
        assert!(text.contains(old), "{name}: no {old}");
        std::fs::write(self.path(name), text.replacen(old, new, 1)).expect("written");
    }

    fn refused(&self, line: &str, words: &str) {
        let output = self.run(line);
        let error = said(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {error}");
        assert!(error.contains(words), "{line}: {error}");
    }
}

/// True if each of the old warnings is still given: today's program may know more.
fn are_among(new: &Value, old: &Value) -> bool {
    let lists = new.as_array().zip(old.as_array());
    lists.is_some_and(|(new, old)| old.iter().all(|old| new.iter().any(|new| is_in(new, old))))
}

/// True if everything in `old` is in `new`, numbers to the last digit but one: readers of JSON round
/// the last one differently.
fn is_in(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => old.iter().all(|(name, value)| {
            let is_in = match name.as_str() {
                "warnings" => are_among,
                _ => is_in,
            };
            new.get(name).is_some_and(|new| is_in(new, value))
        }),
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| is_in(new, old))
        }
        (Value::Number(new), Value::Number(old)) if new != old => {
            let both = new.as_f64().zip(old.as_f64());
            both.is_some_and(|(new, old)| (new - old).abs() <= old.abs() * 1e-15)
        }
        (new, old) => new == old,
    }
}

#[test]
fn what_the_old_program_printed_of_its_files_is_printed_of_them_now() {
    let old = Old::new();
    for (line, printed) in [
        ("report ext4 --json", "printed/ext4.json"),
        ("report tracefs --json", "printed/tracefs.json"),
        ("report file.json --json", "file.json"),
        ("report sqlite.json --json", "sqlite.json"),
        ("report waldio.json --json", "waldio.json"),
        ("report replay.json --json", "replay.json"),
        ("lab report lab --json", "printed/lab.json"),
        ("trace-info calls.trace --json", "printed/calls.trace.json"),
    ] {
        let (new, old) = (old.json(line), old.written(printed));
        assert!(is_in(&new, &old), "{line}: {new:#}");
    }
    // Everything that was known, and not nothing.
    assert!(!is_in(
        &serde_json::json!({"a": [1.5]}),
        &serde_json::json!({"a": [1.6]})
    ));
}

#[test]
fn a_trace_has_its_bytes_files_and_syncs() {
    let old = Old::new();
    for (name, backend, written) in [
        ("ext4", Backend::Bpf, 290_816),
        ("tracefs", Backend::Tracefs, 274_432),
    ] {
        let trace = store::read(&old.path(name)).expect("read");
        let manifest = &trace.manifest;
        assert_eq!(
            (manifest.backend, manifest.state),
            (backend, State::Complete)
        );
        assert!(manifest.check.passed(), "{:?}", manifest.check);
        let counted = manifest.check.device.expect("it counted");
        assert_eq!((counted.write.bytes, counted.flush.ios), (written, 17));
        let writes = trace.requests.iter();
        let writes = writes.filter(|request| request.operation == Operation::Write);
        let sum: u64 = writes.map(|request| u64::from(request.bytes)).sum();
        assert_eq!(sum, written);
        let has = |path: &str| {
            let mut paths = trace.files.iter().filter_map(|file| file.path.as_deref());
            paths.any(|found| found == path)
        };
        assert!(has("/d/plain") && has("/d/app.db"), "{:?}", trace.files);
        assert_eq!(trace.syncs.len(), 14);
        // What nobody looked for then.
        assert!(manifest.disks.is_empty() && manifest.host.android.is_none());
        assert_eq!(manifest.device.fua, Some(false));
    }
}

#[test]
fn what_a_killed_recorder_left_is_made_whole() {
    let old = Old::new();
    let printed = old.json("report killed --json --allow-loss");
    assert!(
        is_in(&printed, &old.written("printed/killed.json")),
        "{printed:#}"
    );
    let trace = store::read(&old.path("killed")).expect("read");
    assert_eq!(trace.manifest.state, State::Recovered);
    old.json("clean cut.trace.partial -o cut.trace --json");
    let calls = old.json("trace-info cut.trace --json");
    assert!(
        is_in(&calls, &old.written("printed/cut.trace.json")),
        "{calls:#}"
    );
    assert_eq!(calls["totals"]["written_bytes"], 8192);
}

#[test]
fn results_have_their_operations_and_what_the_device_counted() {
    let old = Old::new();
    let read = |name: &str| Document::read(&old.path(name)).expect("read");
    let file = read("file.json");
    assert_eq!(
        (file.iostep_version.as_str(), file.runs.len()),
        ("0.1.0", 2)
    );
    for run in &file.runs {
        assert_eq!((run.operations, run.bytes), (4, 4 * 4096));
        assert_eq!(run.device.map(|device| device.flush.ios), Some(4));
    }
    for name in ["sqlite.json", "waldio.json"] {
        let document = read(name);
        assert_eq!(document.runs[0].operations, 20);
        let steps = &document.runs[0].latencies;
        let total = steps.iter().find(|latency| latency.step == Step::Total);
        assert_eq!(total.map(|latency| latency.histogram.count()), Some(20));
    }
    assert!(file.environment.disks.is_empty());
    for key in ["19ec4367ead13f3d", "ae3104415890543c"] {
        let cell = CellResult::read(&old.path(&format!("lab/cells/{key}.json"))).expect("read");
        assert_eq!(cell.runs[0].operations, 20);
        assert!(cell.runs[0].classes.is_some());
    }
}

#[test]
fn recordings_are_read_in_either_form_and_replayed() {
    let old = Old::new();
    for name in ["calls.trace", "calls.trace.zst"] {
        let calls = old.json(&format!("trace-info {name} --json"));
        let totals = &calls["totals"];
        assert_eq!(
            (&totals["written_bytes"], &totals["syncs"]),
            (&8192.into(), &1.into())
        );
    }
    std::fs::create_dir(old.path("to")).expect("made");
    let replayed = old.json("replay calls.trace --to to --json");
    let totals = &replayed["targets"][0]["runs"][0]["summary"]["totals"];
    let (same, differing) = (&totals["same"], &totals["differing"]);
    assert_eq!((same, differing), (&6.into(), &0.into()), "{replayed:#}");
}

#[test]
fn what_is_of_a_version_to_come_says_which_iostep_reads_it() {
    let old = Old::new();
    let wrote = "read it with iostep 7.1.0, which wrote it, or a newer one";
    for (name, line) in [
        ("ext4/manifest.json", "report ext4"),
        ("killed/manifest.json", "report killed"),
        ("file.json", "report file.json"),
        ("replay.json", "report replay.json"),
    ] {
        let text = std::fs::read_to_string(old.path(name)).expect("it is there");
        let version = if text.contains("\"schema_version\": 2") {
            2
        } else {
            1
        };
        old.replace(
            name,
            &format!("\"schema_version\": {version}"),
            "\"schema_version\": 9",
        );
        old.replace(
            name,
            "\"iostep_version\": \"0.1.0\"",
            "\"iostep_version\": \"7.1.0\"",
        );
        old.refused(line, wrote);
    }
    old.refused("compare file.json sqlite.json", wrote);
    old.replace("calls.trace", "calls 1\n", "calls 2\n");
    for line in ["trace-info calls.trace", "replay calls.trace --to ."] {
        old.refused(
            line,
            "system calls 2; expected at most 1; read it with a newer iostep",
        );
    }
    let old = Old::new();
    let mut bytes = std::fs::read(old.path("killed/events.log")).expect("read");
    bytes[4] = 9;
    std::fs::write(old.path("killed/events.log"), bytes).expect("written");
    old.refused(
        "report killed",
        "event format 9; expected at most 5; read it with a newer iostep",
    );
}
