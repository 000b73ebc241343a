//! What others wrote (names, labels, texts, results) neither steers a terminal nor hides, turns
//! around or forges a line of what a command says, whichever command shows it.

use std::path::{Path, PathBuf};
use std::process::Output;

use iostep_model::event::Marker;
use iostep_model::fixture;
use iostep_model::table::Trace;
use iostep_model::{manifest, store};
use serde_json::Value;
use tempfile::TempDir;

/// Escape sequences, C1, bidirectional controls, line breaks, and what nobody sees. It may be part
/// of a file's name.
const HOSTILE: &str = "evil\u{1b}[2J\u{1b}]0;x\u{7}\t\r\u{7f}\u{9b}1m\u{202e}\u{2066}\u{200e}\u{61c}\
                       \u{2028}\u{2029}\u{200b}\u{feff}\nFORGED";
/// Its beginning as it is shown.
const SHOWN: &str = "evil\\x1b[2J";

/// What nobody but the terminal's own program may write there, in words of the test's own.
fn may_stand_in_a_line(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        && !matches!(letter, '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn check(text: &str, what: &dyn std::fmt::Debug) {
    let wrong = text
        .chars()
        .find(|letter| *letter != '\n' && !may_stand_in_a_line(*letter));
    assert_eq!(wrong, None, "{what:?}: {text:?}");
    let mut lines = text.lines().map(str::trim_start);
    assert!(
        !lines.any(|line| line.starts_with("FORGED")),
        "{what:?}: {text}"
    );
}

struct Fixture(TempDir);

impl Fixture {
    fn new() -> Fixture {
        Fixture(TempDir::new().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).expect("written");
    }

    fn json(&self, name: &str) -> Value {
        let text = std::fs::read(self.path(name)).expect("readable");
        serde_json::from_slice(&text).expect("JSON")
    }

    fn output(&self, arguments: &[&str]) -> Output {
        crate::iostep()
            .args(arguments)
            .current_dir(self.0.path())
            .output()
            .expect("the binary runs")
    }

    /// All that the command says there, which is something and harmless.
    fn said(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("UTF-8");
        assert!(!text.is_empty(), "{arguments:?}");
        check(&text, &arguments);
        text
    }

    /// The same for a command that shows the hostile text.
    fn shown(&self, arguments: &[&str]) {
        let text = self.said(arguments);
        assert!(text.contains(SHOWN), "{arguments:?}: {text}");
    }

    /// Runs commands with each string of a file of JSON poisoned; a page that they make is looked
    /// at too.
    fn poison_each(&self, file: &str, commands: &[&[&str]]) {
        let whole = self.json(file);
        let mut shown = 0;
        for poisoned in poisoned(&whole) {
            self.write(file, poisoned.to_string());
            for arguments in commands {
                shown += usize::from(self.said_or_nothing(arguments).contains(SHOWN));
                let page = self.path("page.html");
                if let Ok(text) = std::fs::read_to_string(&page) {
                    check(&text.replace(['\t', '\r'], " "), &arguments);
                    std::fs::remove_file(page).expect("removed");
                }
            }
        }
        assert!(shown > commands.len(), "{file}: next to nothing is shown");
        self.write(file, whole.to_string());
    }

    fn said_or_nothing(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("UTF-8");
        check(&text, &arguments);
        text
    }
}

/// The document with hostile text in one of its strings, or in the name of one, for each of them.
fn poisoned(whole: &Value) -> Vec<Value> {
    let mut strings = Vec::new();
    collect(whole, &mut String::new(), &mut strings);
    let mut all = Vec::new();
    for place in &strings {
        let mut changed = whole.clone();
        let leaf = changed.pointer_mut(place).expect("it is there");
        *leaf = format!("{}{HOSTILE}", leaf.as_str().expect("a string")).into();
        all.push(changed);
        let (parent, key) = place.rsplit_once('/').expect("a place below the top");
        let mut changed = whole.clone();
        if let Some(object) = changed.pointer_mut(parent).and_then(Value::as_object_mut) {
            let value = object.remove(key).expect("it is there");
            object.insert(format!("{key}{HOSTILE}"), value);
            all.push(changed);
        }
    }
    all
}

/// The places of all strings. No name of ours needs an escape of RFC 6901.
fn collect(value: &Value, place: &mut String, found: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::String(_) => return found.push(place.clone()),
        Value::Array(items) => (0..).map(|n: usize| n.to_string()).zip(items).collect(),
        Value::Object(members) => members.iter().map(|(name, v)| (name.clone(), v)).collect(),
        _ => return,
    };
    for (name, value) in below {
        let length = place.len();
        place.push('/');
        place.push_str(&name);
        collect(value, place, found);
        place.truncate(length);
    }
}

#[test]
fn errors_quote_arguments_harmlessly() {
    let place = Fixture::new();
    place.write("x", "no database");
    for arguments in [
        &[HOSTILE][..],
        &["report", HOSTILE],
        &["report", "x", HOSTILE],
        &["report", "x", "--format", HOSTILE],
        &["compare", HOSTILE, "x"],
        &["compare", "x", "x", "--fail-above", HOSTILE],
        &["trace", HOSTILE, "--", "true"],
        &["trace", "/", "--duration", HOSTILE],
        &["explain", HOSTILE, "SELECT 1"],
        &["explain", "x", "--file", HOSTILE],
        &["explain", "x", "SELECT 1", "--journal", HOSTILE],
        &["advise", HOSTILE],
        &["import", HOSTILE, "--image", "x", "-o", "out"],
        &["record", "--via", "ptrace", "-o", "r", "--", HOSTILE],
        &["record", "-o", "r", "--via", HOSTILE, "--", "true"],
        &["clean", HOSTILE, "-o", "out"],
        &["trace-info", HOSTILE],
        &["replay", HOSTILE, "--to", "."],
        &["bench", "file", HOSTILE],
        &["bench", "file", ".", "--access", HOSTILE],
        &["bench", "sqlite", ".", "--journal", HOSTILE],
        &["bench", "run", HOSTILE, "--results", "out"],
        &["lab", "run", HOSTILE, "--results", "out"],
        &[
            "lab",
            "run",
            "table1",
            "--cells",
            HOSTILE,
            "--results",
            "out",
        ],
        &["lab", "list", HOSTILE],
        &["lab", "report", HOSTILE],
        &["lab", "merge", HOSTILE, "--results", "out"],
    ] {
        // An input that is there and no trace is refused before its format is.
        let output = place.output(arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        let text = place.said(arguments);
        let names = ["evil\\x1b", "no trace", "nothing that iostep makes"];
        assert!(
            names.iter().any(|name| text.contains(name)),
            "{arguments:?}: {text}"
        );
    }
}

/// A trace of a machine whose names are hostile.
fn hostile_trace() -> Trace {
    let mut trace = fixture::sqlite_on_ext4(60);
    for file in &mut trace.files {
        file.path = file.path.take().map(|path| path + HOSTILE);
    }
    for process in &mut trace.processes {
        process.comm += HOSTILE;
        process.command_line = Some(HOSTILE.to_owned());
    }
    for row in &mut trace.markers {
        if let Marker::Step(step) = &mut row.marker {
            *step += HOSTILE;
        }
    }
    trace.manifest.check.differences.push(HOSTILE.to_owned());
    trace
}

#[test]
fn a_trace_of_hostile_names_is_shown_harmlessly() {
    let place = Fixture::new();
    for name in ["t", HOSTILE] {
        std::fs::create_dir(place.path(name)).expect("a directory");
        store::write(&place.path(name), &hostile_trace()).expect("written");
    }
    for arguments in [
        &["report", "t"][..],
        &["report", "t", "--full"],
        &["report", "t", "--events"],
        &["report", "t", HOSTILE],
        &["compare", "t", HOSTILE],
        &["report", "t", "--file", "*evil*"],
        &["report", "t", "--html", "evil\u{1b}[2J"],
    ] {
        place.shown(arguments);
    }
    // Its strings have JSON's own escapes, and are what they were.
    let output = place.output(&["report", "t", "--json"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    check(&text, &"--json");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let differences = &value["overview"]["check"]["differences"];
    assert_eq!(differences[0], HOSTILE, "{differences}");
    let page = std::fs::read_to_string(place.path("evil\u{1b}[2J")).expect("a page");
    check(&page.replace(['\t', '\r'], " "), &"--html");
    assert!(page.contains(SHOWN));
}

#[test]
fn a_hostile_manifest_is_shown_harmlessly() {
    let place = Fixture::new();
    std::fs::create_dir(place.path("t")).expect("a directory");
    store::write(&place.path("t"), &fixture::sqlite_on_ext4(60)).expect("written");
    let file = format!("t/{}", manifest::FILE_NAME);
    let commands: [&[&str]; 2] = [&["report", "t"], &["report", "t", "--html", "page.html"]];
    place.poison_each(&file, &commands);
}

#[test]
fn results_of_benches_are_shown_harmlessly() {
    let place = Fixture::new();
    let mut document = iostep_analyze::bench::fixture::write_fdatasync(2);
    document.runs[1]
        .failures
        .push(iostep_model::bench::Failure {
            thread: 0,
            operation: 7,
            attempt: "write".into(),
            reason: "no space".into(),
        });
    let text = serde_json::to_vec(&document).expect("JSON");
    place.write("good.json", &text);
    place.write("r.json", &text);
    let commands: [&[&str]; 3] = [
        &["report", "r.json"],
        &["report", "r.json", "--html", "page.html"],
        &["compare", "r.json", "good.json"],
    ];
    place.poison_each("r.json", &commands);
}

/// Cells that no machine can run, so that they need none.
const LAB: &str = "title = 'Nothing'\n[[cells]]\nworkload = 'sqlite'\nswitches = ['E', 'F+E']\n\
                   filesystem = ['f2fs', 'nilfs2']\n";

#[test]
fn results_of_labs_are_shown_harmlessly() {
    let place = Fixture::new();
    place.write("test.toml", LAB);
    let run = ["lab", "run", "test.toml", "--results", "out"];
    assert_eq!(place.output(&run).status.code(), Some(0));
    let commands: [&[&str]; 5] = [
        &["report", "out"],
        &["lab", "list", "out/lab.json"],
        &["lab", "report", "out", "--html", "page.html"],
        &["lab", "merge", "out", "--results", "all"],
        &[
            "lab",
            "run",
            "out/lab.json",
            "--results",
            "new",
            "--cells",
            "x",
        ],
    ];
    place.poison_each("out/lab.json", &commands);
    let cells = std::fs::read_dir(place.path("out/cells")).expect("a directory");
    let cell = cells.map(|cell| cell.expect("an entry").file_name()).next();
    let cell = cell.expect("a result").into_string().expect("UTF-8");
    place.poison_each(&format!("out/cells/{cell}"), &commands[..1]);
}

/// A file that a command reads, what it holds, and the command.
type Input<'a> = (&'a str, String, &'a [&'a str]);

#[test]
fn files_of_text_are_shown_harmlessly() {
    let place = Fixture::new();
    // JSON and TOML have these escapes both.
    let escaped = HOSTILE.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
    let json = format!("\"{}\"", escaped.collect::<String>());
    let job = |lines: &str| format!("[[job]]\n{}\n", lines.replace("EVIL", &json));
    let bench: &[&str] = &["bench", "run", "x", "--results", "out"];
    let lab: &[&str] = &["lab", "list", "x"];
    let mut inputs: Vec<Input<'_>> = vec![
        ("x", job("workload = EVIL\ntarget = '.'"), bench),
        ("x", job("workload = 'file'\ntarget = EVIL"), bench),
        (
            "x",
            job("workload = 'file'\ntarget = '.'\naccess = EVIL"),
            bench,
        ),
        ("x", job("workload = 'file'\ntarget = '.'\nEVIL = 1"), bench),
        (
            "x",
            job("workload = 'file'\ntarget = '.'\nname = EVIL"),
            bench,
        ),
        ("x", format!("x = {HOSTILE}"), bench),
        ("x", LAB.replace("'Nothing'", &json), lab),
        ("x", LAB.replace("'sqlite'", &json), lab),
        ("x", LAB.replace("'nilfs2'", &json), lab),
        ("x", LAB.replace("workload", &json), lab),
        ("x", format!("name = {json}\n{LAB}"), lab),
        ("x", format!("x = {HOSTILE}"), lab),
    ];
    let line = HOSTILE.replace('\n', "\\n");
    let strace = format!(
        "100 1700000000.000000 openat(AT_FDCWD, \"/d/{line}\", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n\
         100 1700000000.001000 close(3) = 0 <0.000010>\n\
         100 1700000000.002000 {line}\n"
    );
    inputs.push(("x", strace, &["clean", "x", "-o", "x.trace"]));
    let blkparse = format!("8,0 1 2 0.000000001 7 Q W 8 + 8 [a]\n8,0 1 2 {line} 7 Q W 8 + 8 [a]\n");
    inputs.push(("x", blkparse, &["import", "x", "--image", "x", "-o", "t"]));
    let mut named = 0;
    for (file, text, arguments) in inputs {
        place.write(file, &text);
        let said = place.said(arguments);
        named += usize::from(said.contains("evil"));
    }
    assert!(named >= 6, "{named}: next to nothing is shown");
    place.said(&["trace-info", "x.trace", "--files", "--calls"]);
}

/// Two calls on a file, by a program and a thread whose names are hostile.
fn recording() -> String {
    let escaped: String = HOSTILE
        .bytes()
        .map(|byte| format!("\\x{byte:02x}"))
        .collect();
    format!(
        "# iostep system calls 1\n\
         @recorder \"{escaped}\"\n\
         @machine \"{escaped}\"\n\
         @command \"{escaped}\"\n\
         @clock wall=1795316400123456789 resolution=1\n\
         @thread t1 p1 tid=1 name=\"{escaped}\"\n\
         @initial file path=\"/{escaped}\" size=10 content=data seen\n\
         @kept \"call\" 2\n\
         @left-out \"{escaped}\" 3\n\
         0 5 t1 openat path=\"/{escaped}\" flags=O_RDWR|O_CREAT mode=0644 = h1\n\
         10 5 t1 pread64 h1 size=100 offset=0 = 7\n\
         20 5 t1 close h1 = 0\n\
         @end calls=3\n"
    )
}

#[test]
fn recordings_and_their_replays_are_shown_harmlessly() {
    let place = Fixture::new();
    place.write("app.trace", recording());
    std::fs::create_dir(place.path("to")).expect("a directory");
    for arguments in [
        &["trace-info", "app.trace", "--files", "--calls"][..],
        &["trace-info", "app.trace", "--json"],
        &["report", "app.trace"],
    ] {
        let text = place.said(arguments);
        assert!(text.contains("evil"), "{arguments:?}: {text}");
    }
    // One that another program made may hold anything.
    place.write(
        "bad.trace",
        recording().replace("size=10 ", &format!("size={HOSTILE} ")),
    );
    place.said(&["trace-info", "bad.trace"]);
    place.said(&["replay", "bad.trace", "--to", "to"]);
    place.said(&["replay", "app.trace", "--to", "to", "-o", "r.json"]);
    let commands: [&[&str]; 2] = [
        &["report", "r.json"],
        &["report", "r.json", "--html", "page.html"],
    ];
    place.poison_each("r.json", &commands);
    assert!(Path::new(&place.path("to")).is_dir());
}
