//! Whatever iostep prints of results that were written once, text, JSON and pages, against golden
//! files. The results in `golden/input` are of a version before the reports were documents; other
//! versions can be held against the same files:
//!
//! ```sh
//! IOSTEP_BINARY=old/iostep cargo test --package iostep --test command golden
//! ```

use std::path::Path;
use std::process::{Command, Stdio};

use insta::{Settings, assert_snapshot};
use tempfile::TempDir;

use crate::{copy_of, said};

/// A golden file and the command line whose standard output it holds, or what it wrote to `page`.
const PRINTED: [(&str, &str); 28] = [
    ("trace.txt", "report trace"),
    ("trace-full.txt", "report trace --full"),
    ("trace-events.txt", "report trace --events"),
    ("trace-file.txt", "report trace --file *.db --full"),
    ("trace.json", "report trace --json"),
    ("trace.html", "report trace --html page"),
    ("traces.txt", "report trace trace"),
    ("traces.json", "report trace trace --json"),
    ("file.txt", "report file.json"),
    ("file.json", "report file.json --json"),
    ("file.html", "report file.json --html page"),
    ("sqlite.txt", "report sqlite-wal.json"),
    ("sqlite.json", "report sqlite-wal.json --json"),
    ("sqlite.html", "report sqlite-delete.json --html page"),
    ("compare.txt", "compare sqlite-delete.json sqlite-wal.json"),
    (
        "compare.json",
        "compare sqlite-delete.json sqlite-wal.json --json",
    ),
    ("replay.txt", "report replay.json"),
    ("replay.json", "report replay.json --json"),
    ("replay.html", "report replay.json --html page"),
    ("lab.txt", "lab report lab"),
    ("lab.json", "lab report lab --json"),
    ("lab.html", "lab report lab --html page"),
    ("labs.txt", "lab list"),
    ("calls.txt", "trace-info app.trace --calls --files"),
    ("calls.json", "trace-info app.trace --json"),
    ("clean.txt", "clean app.strace -o page"),
    ("clean.json", "clean app.strace -o page --json"),
    ("cleaned.trace", "clean app.strace -o page"),
];

/// What strace prints of a few calls.
const STRACE: &str = "\
100 1700000000.000000 execve(\"/bin/app\", [\"app\", \"-x\"], 0x1 /* 9 vars */) = 0 <0.000100>
100 1700000000.001000 openat(AT_FDCWD, \"/data/app.db\", O_RDWR|O_CREAT, 0644) = 3 <0.000010>
100 1700000000.002000 pwrite64(3, \"abc\"..., 4096, 0) = 4096 <0.000020>
100 1700000000.003000 fdatasync(3) = 0 <0.004000>
100 1700000000.008000 renameat2(AT_FDCWD, \"/data/a\", AT_FDCWD, \"/data/b\", RENAME_NOREPLACE) = -1 \
ENOENT (No such file or directory) <0.000010>
";

fn input() -> TempDir {
    let directory = copy_of("golden/input");
    std::fs::write(directory.path().join("app.strace"), STRACE).expect("written");
    directory
}

/// What a line prints, or writes to `page`.
fn printed(directory: &Path, name: &str, line: &str) -> String {
    let binary = std::env::var_os("IOSTEP_BINARY");
    let binary = binary.unwrap_or_else(|| env!("CARGO_BIN_EXE_iostep").into());
    let output = Command::new(binary)
        .args(line.split(' '))
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{line}: {}", said(&output));
    let page = directory.join("page");
    let is_written = name.ends_with(".html") || name == "cleaned.trace";
    let printed = match is_written {
        true => std::fs::read(&page).expect("a page"),
        false => output.stdout,
    };
    let _ = std::fs::remove_file(page);
    String::from_utf8(printed).expect("UTF-8")
}

/// A page without what has tests of its own: scripts, styles, and the picture's data.
fn without_scripts(page: &str) -> String {
    let mut kept = String::new();
    let mut rest = page;
    while let Some((before, behind)) = ["<script", "<style"]
        .iter()
        .filter_map(|tag| rest.find(tag))
        .min()
        .map(|at| rest.split_at(at))
    {
        kept.push_str(before);
        let end = ["</script>", "</style>"]
            .iter()
            .filter_map(|tag| behind.find(tag).map(|at| at + tag.len()))
            .min()
            .expect("an end of each script and style");
        rest = &behind[end..];
    }
    kept + rest
}

#[test]
fn what_is_printed_of_stored_results_is_what_was_printed_of_them() {
    let directory = input();
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path("../golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, line) in PRINTED {
            let mut printed = printed(directory.path(), name, line);
            if name.ends_with(".html") {
                printed = without_scripts(&printed);
            }
            assert_snapshot!(name, printed);
        }
    });
}
