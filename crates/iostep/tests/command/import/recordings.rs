//! Recordings that are no text of blkparse: what is read, and how the others are refused.

use std::io::Write;
use std::process::Stdio;

use iostep_model::Operation;
use iostep_model::table::Request;

use super::*;

/// One run, recorded three times at once.
const BINARY: &[u8] = include_bytes!("../../../../iostep-trace/testdata/block/loop.bin");
const TEXT: &[u8] = include_bytes!("../../../../iostep-trace/testdata/block/loop.txt");
const FTRACE: &[u8] = include_bytes!("../../../../iostep-trace/testdata/block/loop.ftrace");

/// A record of blktrace without what follows it.
const RECORD_BYTES: usize = 48;

fn rows(trace: &Trace) -> Vec<(Operation, u64, u32, u16)> {
    let row = |request: &Request| {
        (
            request.operation,
            request.sector,
            request.bytes,
            request.bios,
        )
    };
    trace.requests.iter().map(row).collect()
}

/// Times of issue and completion from the trace's start on.
fn times(trace: &Trace) -> Vec<(u64, Option<u64>)> {
    let start = trace.requests[0].queue_ns;
    let row = |request: &Request| {
        (
            request.issue_ns - start,
            request.complete_ns.map(|end| end - start),
        )
    };
    trace.requests.iter().map(row).collect()
}

fn import(case: &Case, recording: &str, trace: &str) -> Output {
    iostep()
        .arg("import")
        .arg(case.path(recording))
        .arg("--image")
        .arg(case.path("image"))
        .arg("--output")
        .arg(case.path(trace))
        .output()
        .expect("run iostep")
}

fn read(case: &Case, recording: &str, bytes: &[u8], trace: &str) -> Trace {
    std::fs::write(case.path(recording), bytes).expect("write");
    let output = import(case, recording, trace);
    assert!(output.status.success(), "{}", said(&output));
    store::read(&case.path(trace)).expect("read the trace")
}

/// The records of one CPU.
fn of_cpu(cpu: u32) -> Vec<u8> {
    let mut rest = BINARY;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let more = u16::from_le_bytes([rest[46], rest[47]]);
        let (record, others) = rest.split_at(RECORD_BYTES + usize::from(more));
        if record[40..44] == cpu.to_le_bytes() {
            records.extend_from_slice(record);
        }
        rest = others;
    }
    records
}

#[test]
fn files_of_blktrace_and_events_of_the_kernel_make_the_trace_that_blkparses_text_makes() {
    let case = Case::new();
    let text = read(&case, "loop.txt", TEXT, "of-text");
    assert!(text.requests.len() > 40);
    for cpu in [0, 1] {
        let path = case.path(&format!("loop.blktrace.{cpu}"));
        std::fs::write(path, of_cpu(cpu)).expect("write");
    }
    // By the name of all of them, and by that of one.
    for (given, trace) in [("loop", "of-all"), ("loop.blktrace.1", "of-one")] {
        let output = import(&case, given, trace);
        assert!(output.status.success(), "{}", said(&output));
        let files = store::read(&case.path(trace)).expect("read the trace");
        assert_eq!(rows(&files), rows(&text), "{given}");
        assert_eq!(times(&files), times(&text), "{given}");
        assert_eq!(
            files.manifest.check.completed,
            text.manifest.check.completed
        );
    }
    let events = read(&case, "loop.ftrace", FTRACE, "of-events");
    assert_eq!(rows(&events), rows(&text));
    assert_eq!(events.manifest.check.issued, text.manifest.check.issued);
    let submitter = events.requests[0].submitter.expect("the events name it");
    assert_eq!(events.processes[submitter as usize].comm, "dd");
}

#[test]
fn a_log_of_fio_on_a_device_is_a_trace_of_what_fio_asked_for() {
    let case = Case::new();
    let log = "fio version 3 iolog\n1 /dev/loop9 add\n2 /dev/loop9 open\n\
               100 /dev/loop9 write 4096 8192\n200 /dev/loop9 datasync 0 0\n\
               300 /dev/loop9 read 0 4096\n400 /dev/loop9 close\n";
    let trace = read(&case, "fio.log", log.as_bytes(), "trace");
    assert_eq!(
        rows(&trace),
        [
            (Operation::Write, 8, 8192, 1),
            (Operation::Flush, 0, 0, 0),
            (Operation::Read, 0, 4096, 1),
        ]
    );
    assert_eq!(trace.manifest.device.name, "loop9");
    let log = "fio version 3 iolog\n1 /data/file add\n2 /data/file open\n";
    std::fs::write(case.path("file.log"), log).expect("write");
    let output = import(&case, "file.log", "of-file");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("an offset in a file is no place on a device"));
}

#[test]
fn packed_text_and_standard_input_are_read() {
    let case = Case::new();
    let text = write_lines(1, 1, 2);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).expect("pack");
    let packed = packed.finish().expect("pack");
    let trace = read(&case, "text.gz", &packed, "of-gzip");
    assert_eq!(trace.requests.len(), 1);
    let mut child = iostep()
        .args(["import", "-", "--image"])
        .arg(case.path("image"))
        .arg("--output")
        .arg(case.path("of-input"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("run iostep");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("write");
    drop(input);
    assert!(child.wait().expect("wait").success());
    let trace = store::read(&case.path("of-input")).expect("read the trace");
    assert_eq!(trace.requests.len(), 1);
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let case = Case::new();
    for (name, recording) in [("of-blkparse", TEXT), ("of-ftrace", FTRACE)] {
        let marked = [b"\xef\xbb\xbf", recording].concat();
        let without = read(&case, "plain", recording, "without");
        assert_eq!(rows(&read(&case, "marked", &marked, name)), rows(&without));
        std::fs::remove_dir_all(case.path("without")).expect("removed");
    }
    let utf16: Vec<u8> = "\u{feff}  8,0    1        1     0.000000000   700  Q   W 8 + 8 [app]\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    std::fs::write(case.path("utf16"), utf16).expect("write");
    let output = import(&case, "utf16", "of-utf16");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("iconv -f UTF-16"),
        "{}",
        said(&output)
    );
}

#[test]
fn what_is_not_read_is_named_with_the_way_on() {
    let case = Case::new();
    for (text, what, way_on) in [
        (
            "128166372003061629,hm,0,Read,383496192,32768,413\n",
            "MSR Cambridge",
            "docs/import.md",
        ),
        (
            "TIME(s)     COMM           PID     DISK    T SECTOR     BYTES  LAT(ms)\n",
            "biosnoop",
            "blktrace",
        ),
        (
            "1700000000.1 openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 3 <0.000009>\n",
            "system calls",
            "iostep clean",
        ),
        ("PERFILE2\0\0\0", "perf", "perf script"),
        (
            "\u{feff}128166372003061629,hm,0,Read,383496192,32768,413\n",
            "MSR Cambridge",
            "docs/import.md",
        ),
    ] {
        let (code, said) = refused(&case, text, &[]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(what) && said.contains(way_on), "{said}");
    }
}

#[test]
fn what_clean_does_not_read_is_named_with_the_way_on() {
    let case = Case::new();
    for (bytes, what, way_on) in [
        (
            "     0.000 ( 0.004 ms): cat/1234 openat(dfd: CWD, filename: \"/a\") = 3\n".as_bytes(),
            "perf trace",
            "strace -f",
        ),
        (
            b"strlen(\"abc\")                   = 3\n+++ exited (status 0) +++\n",
            "ltrace",
            "strace -f",
        ),
        (TEXT, "blkparse", "iostep import"),
        (FTRACE, "block events", "iostep import"),
        (BINARY, "blktrace", "iostep import"),
        (
            b"419,W,8792731648,16384,1577808144360767\n",
            "Alibaba",
            "docs/import.md",
        ),
    ] {
        std::fs::write(case.path("input"), bytes).expect("write");
        let output = iostep()
            .arg("clean")
            .arg(case.path("input"))
            .arg("--output")
            .arg(case.path("recording"))
            .output()
            .expect("run iostep");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(what) && said.contains(way_on), "{said}");
    }
}

#[test]
fn several_texts_are_no_recording() {
    let case = Case::new();
    std::fs::write(case.path("other"), write_lines(2, 1, 1)).expect("write");
    let other = case.path("other").display().to_string();
    let (code, said) = refused(&case, &write_lines(1, 1, 1), &[&other]);
    assert_eq!(code, Some(2));
    assert!(said.contains("2 files"), "{said}");
}
