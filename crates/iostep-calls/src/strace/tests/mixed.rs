//! What stands in a text beside strace's own words.

use super::{Input, calls, clean, clean_all, lines, reasons, sum};

#[test]
fn the_programs_own_output_between_and_in_lines_costs_no_call() {
    let text = "execve(\"/bin/app\", [\"app\"], 0x1 /* 9 vars */) = 0\n\
         open(\"/f\", O_RDWR) = 3\n\
         write(1, \"hello\\n\", 6hello\n) = 6\n\
         write(3, \"data\", 4) = 4\n\
         write(1, \"two\\n\\nlines\\n\", 11two\n\nlines\n) = 11\n\
         write(2, \"no newline \", 11no newline ) = 11\n\
         fsync(3) = 0\n\
         some words\n\
         100 %pwrite64(3, \"data\", 4, 100) = 4\n\
         close(3) = 0\n";
    let finished = clean(text);
    assert_eq!(sum(&finished.ledger), text.lines().count() as u64);
    let told = lines(&finished).into_iter();
    let told: Vec<_> = told
        .map(|l| l.splitn(4, ' ').nth(3).unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        told[1..],
        [
            "write h1 size=4 = 4",
            "fsync h1 = 0",
            "pwrite64 h1 size=4 offset=100 = 4",
            "close h1 = 0",
        ]
    );
    assert_eq!(
        reasons(&finished.ledger, false),
        [
            ("standard stream", 3),
            ("output of the program", 2),
            ("cannot be read", 1),
        ]
    );
}

#[test]
fn a_call_behind_output_without_a_newline_is_read() {
    let text = "open(\"/f\", O_RDWR) = 3\nsome\nlinefsync(3) = 0\n(x)getpid() = 5\nok, fsync(3) = 0\n\
         process_vm_readv(3, [{iov_base=0x1, iov_len=5}], 1, [], 0, 0) = 5\n";
    let finished = clean(text);
    assert_eq!((sum(&finished.ledger), finished.sink.calls.len()), (6, 3));
}

#[test]
fn output_between_the_lines_of_several_threads_belongs_to_its_write() {
    let text = "10 1.0 open(\"/f\", O_RDWR) = 3\n\
         10 1.1 write(1, \"out\\n\", 4out\n <unfinished ...>\n\
         11 1.2 fsync(3) = 0\n\
         10 1.3 <... write resumed>) = 4\n\
         progress 5 of 7 11 1.4 fsync(3) = 0\n\
         10 1.5 write(3, \"x\", 1) = 1\n";
    let finished = clean(text);
    assert_eq!(sum(&finished.ledger), 7);
    let syncs = finished.sink.calls.iter().filter(|call| call.thread.0 == 2);
    // Its first call needed an open.
    assert_eq!(syncs.count(), 3);
    assert_eq!(
        reasons(&finished.ledger, false),
        [("output of the program", 1), ("standard stream", 1)]
    );
}

#[test]
fn a_mark_and_line_ends_of_other_systems_are_no_part_of_a_line() {
    let text = b"\xef\xbb\xbf12:00:00 open(\"/f\", O_RDWR) = 3\r\n12:00:01 fsync(3) = 0\r\n";
    assert!(super::super::looks_like(text));
    let finished = clean_all(&[("t", text)]);
    assert_eq!((sum(&finished.ledger), lines(&finished).len()), (2, 2));
    let import = super::Import::open(vec![Input::new("t", &text[..])]);
    assert_eq!(
        import.expect("strace").header().clock.resolution_ns,
        1_000_000_000
    );
}

#[test]
fn security_contexts_are_no_part_of_names() {
    let context = "[unconfined_u:object_r:user_home_t:s0:c1,c2]";
    for (before, short) in [("", ""), ("[u:r:t:s0] ", ""), ("", "[bin_t]")] {
        let context = if short.is_empty() { context } else { short };
        let text = format!(
            "7 {before}12:00:00 {before}openat(AT_FDCWD</d> {context}, \"f\" {context}, O_RDWR) = 3</d/f> {context} <0.1>\n\
             7 {before}12:00:00 {before}newfstatat(3</d/f> {context}, \"\" {context}, {{st_size=5, ...}}, AT_EMPTY_PATH) = 0\n\
             7 {before}12:00:00 write(4</d/g {context}>, \"x\", 1) = 1\n\
             7 {before}12:00:00 close(3</d/f> {context}) = 0\n",
        );
        assert_eq!(
            calls(&text),
            [
                "openat path=\"/d/f\" flags=O_RDWR mode=0000 = h1",
                "newfstatat h1 = 0",
                "present path=\"/d/g\" flags=O_RDWR mode=0000 = h2",
                "write h2 size=1 = 1",
                "close h1 = 0",
            ],
            "{text}"
        );
    }
    // A name may look nearly like that.
    assert_eq!(
        calls("read(3</d/a [b]>, \"\", 1) = 0\n")[0],
        "present path=\"/d/a [b]\" flags=O_RDWR mode=0000 = h1"
    );
}

#[test]
fn the_table_behind_the_calls_is_known() {
    let calls = "7 open(\"/f\", O_RDWR) = 3\n7 fsync(3) = 0\n";
    let tables = [
        "% time     seconds  usecs/call     calls    errors syscall\n\
         ------ ----------- ----------- --------- --------- ----------------\n \
         32.24    0.018342         458        40           wait4\n  \
         0.00    0.000000           0         1         1 newfstatat\n\
         ------ ----------- ----------- --------- --------- ----------------\n\
         100.00    0.056891           5      9648      1786 total\n",
        "System call usage summary for 'x32' mode:\n\
         \x20  calls   min-time syscall\n--------- ---------- -------\n        3   0.000001 read\n",
    ];
    for table in tables {
        let text = format!("{calls}{table}7 fsync(3) = 0\n");
        let finished = clean(&text);
        assert_eq!(finished.sink.calls.len(), 3, "{:?}", lines(&finished));
        let left_out = reasons(&finished.ledger, false);
        let rows = table.lines().count() as u64;
        assert_eq!(left_out, [("summary of strace", rows)]);
    }
}
