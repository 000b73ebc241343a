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

fn bench(arguments: &[&str]) -> (String, String) {
    bench_of(env!("CARGO_BIN_EXE_iostep-bench"), arguments)
}

fn bench_of(program: &str, arguments: &[&str]) -> (String, String) {
    let output = Command::new(program)
        .arg("bench")
        .args(arguments)
        .output()
        .expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let (printed, said) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{said}");
    (printed, said)
}

#[test]
fn a_result_is_shown_again_and_what_is_sent_of_it_names_no_place() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().to_str().expect("UTF-8");
    let file = place.path().join("result.json");
    let name = file.to_str().expect("UTF-8");
    let (printed, _) = bench(&[
        "sqlite",
        directory,
        "--transactions=20",
        "--json",
        "-o",
        name,
    ]);
    let show = ["show", name, "--json"];
    assert_eq!(bench(&show).0, printed);
    assert_eq!(bench_of(env!("CARGO_BIN_EXE_iostep"), &show).0, printed);
    assert!(bench(&["show", name]).0.contains("transactions/s"));
    let (sent, _) = bench(&["show", name, "--to-send"]);
    assert!(
        printed.contains(directory) && !sent.contains(directory),
        "{sent}"
    );
    let document = Document::parse(Path::new("what is sent"), sent.as_bytes()).expect("a result");
    assert_eq!(document.runs.len(), 1);
}

#[test]
fn progress_is_told_in_lines_of_json_by_run_and_phase() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().to_str().expect("UTF-8");
    let arguments = ["file", directory, "--size=1MiB", "--time=0.7", "--repeat=2"];
    let (_, silent) = bench(&[&arguments[..], &["--quiet"]].concat());
    assert!(!silent.contains('{'), "{silent}");
    let (_, said) = bench(&[&arguments[..], &["--quiet", "--progress"]].concat());
    let lines = said.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<serde_json::Value> = lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let running = |run: u64| {
        let of_run =
            move |line: &&serde_json::Value| line["run"] == run && line["phase"] == "running";
        lines.iter().filter(of_run).count()
    };
    assert!(running(1) > 0 && running(2) > 0, "{said}");
    assert!(lines.iter().all(|line| line["runs"] == 2), "{said}");
    let done: Vec<f64> = lines
        .iter()
        .filter_map(|line| line["done"].as_f64())
        .collect();
    assert!(done.iter().all(|done| (0.0..=1.0).contains(done)), "{said}");
}
