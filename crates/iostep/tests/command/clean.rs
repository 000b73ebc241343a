//! `iostep clean`, `iostep trace-info` and what `iostep replay` refuses, from the command line: what they say, and when they refuse.

use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::text;

/// A text of strace -f -ttt -T, and what a trace of it holds.
const TEXT: &str = "\
100 1700000000.000000 execve(\"/bin/app\", [\"app\", \"-x\"], 0x1 /* 9 vars */) = 0 <0.000100>
100 1700000000.001000 openat(AT_FDCWD, \"/data/app.db\", O_RDWR|O_CREAT, 0644) = 3 <0.000010>
100 1700000000.002000 pread64(3, \"abc\"..., 4096, 0) = 4096 <0.000020>
100 1700000000.003000 clone(child_stack=NULL, flags=SIGCHLD) = 101 <0.000100>
101 1700000000.004000 pwrite64(3, \"abc\"..., 8192, 4096 <unfinished ...>
100 1700000000.005000 socket(AF_INET, SOCK_STREAM, 0) = 4 <0.000010>
101 1700000000.006000 <... pwrite64 resumed>) = 8192 <0.002000>
101 1700000000.007000 fdatasync(3) = 0 <0.500000>
101 1700000000.508000 +++ exited with 0 +++
100 1700000000.509000 nonsense
";

struct Fixture {
    directory: TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Fixture { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a text")
    }

    /// Runs the command there.
    fn iostep(&self, arguments: &[&str]) -> Output {
        let mut iostep = crate::iostep();
        iostep.args(arguments).current_dir(&self.directory);
        iostep.env("NO_COLOR", "1").output().expect("iostep")
    }

    /// Runs the command, which must succeed. Gives its standard output.
    fn good(&self, arguments: &[&str]) -> String {
        let output = self.iostep(arguments);
        let (code, error) = (output.status.code(), text(&output.stderr));
        assert_eq!((code, error), (Some(0), ""), "{arguments:?}");
        text(&output.stdout).to_owned()
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn every_line_of_a_text_is_in_the_table() {
    let place = Fixture::new();
    place.write("app.strace", TEXT);
    let table = json(&place.good(&["clean", "app.strace", "-o", "app.trace", "--json"]));
    assert_eq!(table["lines"]["read"], 10);
    assert_eq!(table["lines"]["kept"], 8);
    assert_eq!(table["kept"]["call"], 6);
    assert_eq!(table["kept"]["half of a call"], 1);
    assert_eq!(table["kept"]["followed"], 1);
    assert_eq!(table["left_out"]["socket"], 1);
    assert_eq!(table["left_out"]["cannot be read"], 1);
    assert_eq!(table["unreadable"][0], "app.strace:10: nonsense");
    let shown = place.good(&["clean", "app.strace", "-o", "app.trace"]);
    assert!(
        shown.starts_with("          10 100.00 %  lines read\n"),
        "{shown}"
    );
    assert!(shown.ends_with("wrote app.trace\n"), "{shown}");
}

#[test]
fn a_packed_text_and_standard_input_are_read() {
    use std::io::Write;
    let place = Fixture::new();
    place.write("app.strace", TEXT);
    place.good(&["clean", "app.strace", "-o", "plain.trace"]);
    let text = place.read("app.strace");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).expect("memory");
    let gzip = gzip.finish().expect("memory");
    place.write("app.strace.gz", &gzip);
    place.write(
        "app.strace.zst",
        zstd::encode_all(text.as_bytes(), 1).expect("memory"),
    );
    for packed in ["app.strace.gz", "app.strace.zst"] {
        place.good(&["clean", packed, "-o", "packed.trace"]);
        assert_eq!(
            place.read("packed.trace"),
            place.read("plain.trace"),
            "{packed}"
        );
    }
    for input in [text.as_bytes(), &gzip] {
        let mut command = crate::iostep();
        command
            .args(["clean", "-", "-o", "piped.trace"])
            .current_dir(&place.directory);
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("iostep");
        let mut pipe = child.stdin.take().expect("a pipe");
        pipe.write_all(input).expect("a reader");
        drop(pipe);
        assert!(child.wait().expect("an end").success());
        assert_eq!(place.read("piped.trace"), place.read("plain.trace"));
    }
    place.write("app.xz", b"\xfd7zXZ\0rest");
    let refused = place.iostep(&["clean", "app.xz", "-o", "x.trace"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("xz -dc app.xz | iostep clean -"), "{said}");
}

#[test]
fn a_trace_is_added_up() {
    let place = Fixture::new();
    place.write("app.strace", TEXT);
    place.good(&["clean", "app.strace", "-o", "app.trace.zst"]);
    let words = ["trace-info", "app.trace.zst", "--files", "--json"];
    let info = json(&place.good(&words));
    assert_eq!(info["run_ns"], 507_000_000_u64);
    assert_eq!(info["source"]["kept"], 8);
    assert_eq!(info["source"]["command"][1], "-x");
    let totals = &info["totals"];
    assert_eq!(
        (&totals["threads"], &totals["processes"]),
        (&2.into(), &2.into())
    );
    assert_eq!(
        (&totals["read_bytes"], &totals["written_bytes"]),
        (&4096.into(), &8192.into())
    );
    let file = &info["files"][0];
    assert_eq!(file["path"], "/data/app.db");
    assert_eq!((&file["opens"], &file["syncs"]), (&1.into(), &1.into()));
    let shown = place.good(&["trace-info", "app.trace.zst", "--calls", "--files"]);
    for part in [
        " lines      10, 8 kept (80.0 %), 2 left out: ",
        " threads    2 of 2 processes\n",
        " written    8 KiB in 1 calls, 1 syncs\n",
        " fdatasync ",
        " /data/app.db",
    ] {
        assert!(shown.contains(part), "{part:?} in {shown}");
    }
}

#[test]
fn a_trace_that_was_cut_says_so_first() {
    let place = Fixture::new();
    place.write("app.strace", TEXT);
    place.good(&["clean", "app.strace", "-o", "app.trace"]);
    let whole = place.read("app.trace");
    place.write("cut.trace", &whole[..whole.len() - 30]);
    let shown = place.good(&["trace-info", "cut.trace"]);
    assert!(
        shown.starts_with("CUT OFF: the trace stops at line "),
        "{shown}"
    );
    let info = json(&place.good(&["trace-info", "cut.trace", "--json"]));
    assert!(info["cut_at_line"].is_u64(), "{info}");
}

#[test]
fn bad_input_is_refused_and_nothing_is_written() {
    let place = Fixture::new();
    place.write("app.strace", TEXT);
    place.write("empty", "");
    place.write("noise", b"\0\xff\n\x1b[31m\n");
    place.write("prose", "read me (first)\n");
    place.write("a.1", "sync() = 0\n");
    place.write("a.2", "sync() = 0\n");
    place.write("script", "0 0 open \"/f\" O_RDONLY 3\n");
    place.write("half.zst", b"\x28\xb5\x2f\xfd\0");
    std::fs::create_dir(place.path("directory")).expect("a directory");
    for (words, object) in [
        (&["clean", "missing"][..], "missing: cannot open"),
        (&["clean", "directory"], "directory: a directory"),
        (&["clean", "empty"], "empty: looks like no trace"),
        (&["clean", "noise"], "noise: looks like no trace"),
        (&["clean", "prose"], "prose: looks like no trace"),
        (
            &["clean", "noise", "--format", "strace"],
            "noise: no line at its beginning",
        ),
        (
            &["clean", "noise", "--format", "mobigen"],
            "noise: no line is one of a MobiGen",
        ),
        (
            &["clean", "script", "--format", "strace"],
            "script: no line at its beginning",
        ),
        (&["clean", "a.1", "a.2"], "a.1: its lines have no times"),
        (&["clean", "app.strace", "missing"], "missing: cannot open"),
        (&["clean"], "INPUT"),
    ] {
        let output = place.iostep(&[words, &["-o", "x.trace"]].concat());
        refused(words, &output, object);
        assert!(!place.path("x.trace").exists(), "{words:?}");
    }
    for (words, object) in [
        (&["trace-info", "missing"][..], "missing: cannot open"),
        (&["trace-info", "app.strace"], "app.strace: another tool"),
        (&["trace-info", "empty"], "empty: begins with"),
        (&["trace-info", "half.zst"], "half.zst: cannot read"),
        (&["replay", "missing", "--to", "."], "missing: cannot open"),
        (
            &["replay", "app.strace", "--to", "."],
            "app.strace: another tool",
        ),
        (
            &["replay", "half.zst", "--to", "."],
            "half.zst: cannot read",
        ),
    ] {
        refused(words, &place.iostep(words), object);
    }
    let words = ["clean", "app.strace", "-o", "app.strace"];
    refused(&words, &place.iostep(&words), "app.strace: an input");
    assert_eq!(place.read("app.strace"), TEXT);
}

fn refused(words: &[&str], output: &Output, object: &str) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
    assert!(error.contains(object), "{words:?}: {error}");
    assert!(!error.contains("panicked"), "{error}");
}
