//! `iostep lab` as a user runs it, without storage: cells that mean nothing anywhere, lists, and
//! what is refused.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::SystemTime;

use serde_json::Value;
use tempfile::TempDir;

use crate::{json, text};

/// Four cells that no machine can run.
const LAB: &str = "title = 'Nothing'\n[[cells]]\nworkload = 'sqlite'\nswitches = ['E', 'F+E']\n\
                   filesystem = ['f2fs', 'nilfs2']\n";

struct Bench(TempDir);

impl Bench {
    fn new(lab: &str) -> Bench {
        let bench = Bench(TempDir::new().expect("a directory"));
        std::fs::write(bench.path("test.toml"), lab).expect("written");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `iostep lab` there.
    fn lab(&self, arguments: &[&str]) -> Output {
        crate::iostep()
            .arg("lab")
            .args(arguments)
            .current_dir(self.0.path())
            .output()
            .expect("the binary runs")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        json(&self.lab(arguments))
    }

    fn run(&self, results: &str, flags: &[&str]) {
        let output = self.lab(&[&["run", "test.toml", "--results", results], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }

    fn refused(&self, arguments: &[&str], object: &str) {
        let output = self.lab(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(object), "{arguments:?}: {error}");
    }
}

fn count(path: &Path) -> usize {
    std::fs::read_dir(path).expect("a directory").count()
}

/// Every result, and when it was written.
fn times(results: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let cells = std::fs::read_dir(results.join("cells")).expect("a directory");
    cells
        .map(|cell| {
            let cell = cell.expect("an entry");
            let modified = cell.metadata().and_then(|metadata| metadata.modified());
            (cell.path(), modified.expect("a time"))
        })
        .collect()
}

#[test]
fn built_in_labs_are_listed_with_their_cells() {
    let bench = Bench::new(LAB);
    let labs = bench.json(&["list", "--json"]);
    let names: Vec<&str> = labs
        .as_array()
        .expect("a list")
        .iter()
        .map(|lab| lab["name"].as_str().expect("a name"))
        .collect();
    let expected = iostep_lab::builtin::LABS.iter().map(|lab| lab.name);
    assert_eq!(names, expected.collect::<Vec<_>>());
    let own = bench.lab(&["list", "test.toml"]);
    let lines: Vec<&str> = text(&own.stdout).lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        lines[0].ends_with("cells-1 filesystem=f2fs switches=E"),
        "{lines:?}"
    );
}

#[test]
fn what_means_nothing_is_recorded_and_is_no_failure() {
    let bench = Bench::new(LAB);
    bench.run("out", &[]);
    let all = bench.json(&["merge", "out", "--results", "all", "--json"]);
    let all = all.as_array().expect("a list");
    assert_eq!(all.len(), 4);
    for result in all {
        assert_eq!(result["state"]["kind"], "not_applicable");
        let reason = result["state"]["reason"].as_str().expect("a text");
        assert!(reason.contains("no journal"), "{reason}");
        assert_eq!(result["environment"], Value::Null);
    }
    let report = bench.json(&["report", "all", "--json"]);
    assert!(report.is_object(), "{report}");
}

#[test]
fn programs_of_a_lab_that_is_not_built_in_run_only_if_that_is_meant() {
    // Cells that mean nothing, so that none runs.
    let own = "workload='command'\ncommand='./x -y'\n";
    let variable = "workload='sqlite'\nenv='LD_PRELOAD=./x.so'\n";
    for (cells, named) in [(own, "/x -y; pass"), (variable, "LD_PRELOAD=./x.so; pass")] {
        let lab = format!("[[cells]]\nfilesystem='f2fs'\nswitches='E'\n{cells}");
        let bench = Bench::new(&lab);
        let run = ["run", "test.toml", "--results", "out"];
        bench.refused(&run, named);
        assert!(!bench.path("out").exists());
        bench.run("out", &["--allow-commands"]);
        // Nor do those of results that somebody hands over.
        bench.refused(&["run", "out/lab.json", "--results", "again"], named);
    }
}

#[test]
fn shards_are_parts_and_together_the_whole() {
    let bench = Bench::new(LAB);
    for (shard, results) in [("1/3", "a"), ("2/3", "b"), ("3/3", "c")] {
        bench.run(results, &["--shard", shard]);
    }
    let parts = ["a", "b", "c"].map(|name| count(&bench.path(name).join("cells")));
    assert_eq!(parts, [2, 1, 1]);
    let all = bench.json(&["merge", "a", "b", "c", "--results", "all", "--json"]);
    assert_eq!(all.as_array().map(Vec::len), Some(4));
    // Whoever goes on there has nothing left to do.
    let before = times(&bench.path("all"));
    assert_eq!(before.len(), 4);
    bench.run("all", &[]);
    assert_eq!(times(&bench.path("all")), before);
}

#[test]
fn what_was_done_is_not_done_again_unless_it_is_asked_for_elsewhere() {
    let bench = Bench::new(LAB);
    bench.run("out", &["--shard", "1/2"]);
    let before = times(&bench.path("out"));
    assert_eq!(before.len(), 2);
    bench.run("out", &[]);
    let after = times(&bench.path("out"));
    assert_eq!(after.len(), 4);
    assert!(before.iter().all(|(path, time)| after[path] == *time));

    let cell = after.keys().next().expect("a result");
    let key = cell.file_stem().and_then(OsStr::to_str).expect("a key");
    let run = ["run", "out/lab.json", "--results", "again", "--cells", key];
    let output = bench.lab(&run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let again: Vec<PathBuf> = times(&bench.path("again")).into_keys().collect();
    assert_eq!(
        again,
        [bench.path("again/cells").join(format!("{key}.json"))]
    );

    std::fs::write(bench.path("test.toml"), format!("name = 'other'\n{LAB}")).expect("written");
    let run = ["run", "test.toml", "--results", "out"];
    bench.refused(&run, "holds results of the lab test, not of other");
}

#[test]
fn bad_usage_is_refused_before_anything_is_written() {
    let bench = Bench::new(LAB);
    let run = ["run", "test.toml", "--results", "out"];
    for (flags, object) in [
        (&["--shard", "3/2"][..], "3/2"),
        (&["--shard", "0/2"], "0/2"),
        (&["--cells", "nonsense"], "no cell of test"),
        (&["--on", "nowhere"], "nowhere"),
        (&["--in", "/dev/null"], "/dev/null"),
        (&["--repeat", "0"], "--repeat"),
        (&["--device", "floppy"], "floppy"),
        (&["--journal-device", "/dev/null"], "no --on device"),
        (&["--html", "no/such/page.html"], "page.html"),
    ] {
        bench.refused(&[&run[..], flags].concat(), object);
    }
    bench.refused(&["run", "no-such-lab", "--results", "out"], "no-such-lab");
    bench.refused(&["merge", "nothing", "--results", "out"], "nothing");
    bench.refused(&["report", "nothing"], "nothing");
    assert!(!bench.path("out").exists());
}

#[test]
fn results_of_two_labs_are_not_joined() {
    let bench = Bench::new(LAB);
    bench.run("a", &[]);
    std::fs::write(bench.path("test.toml"), format!("name = 'other'\n{LAB}")).expect("written");
    bench.run("b", &[]);
    let merge = ["merge", "a", "b", "--results", "all"];
    bench.refused(&merge, "the lab other, not of test");
    assert!(!bench.path("all").exists());
}

#[test]
fn what_a_newer_version_wrote_is_refused_and_stays() {
    let bench = Bench::new(LAB);
    bench.run("out", &[]);
    let cells = std::fs::read_dir(bench.path("out/cells")).expect("a directory");
    let cell = cells.map(|entry| entry.expect("an entry").path()).next();
    for file in [bench.path("out/lab.json"), cell.expect("a result")] {
        let written = std::fs::read_to_string(&file).expect("readable");
        let newer = written.replacen("\"schema_version\": 1", "\"schema_version\": 7", 1);
        assert_ne!(written, newer);
        std::fs::write(&file, &newer).expect("writable");
        for arguments in [
            &["run", "test.toml", "--results", "out"][..],
            &["report", "out"],
            &["merge", "out", "--results", "all"],
        ] {
            bench.refused(arguments, "read it with a newer iostep");
        }
        let now = std::fs::read_to_string(&file).expect("readable");
        assert_eq!(now, newer);
        assert!(!bench.path("all").exists(), "a part was joined");
        std::fs::write(&file, &written).expect("writable");
    }
}
