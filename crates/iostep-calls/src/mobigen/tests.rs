//! Scripts, and what they are hostile with.

use iostep_model::syscall::{Ledger, Recording};

use super::*;
use crate::fixture::lines;
use crate::{Finished, Tracker};

mod generated;

fn clean(script: &[u8]) -> Result<Finished<Recording>> {
    let import = Import::open(vec![Input::new("script", script)])?;
    let mut tracker = Tracker::new(Recording::default());
    import.events(&mut |event| tracker.event(event))?;
    Ok(tracker.finish())
}

fn left_out(ledger: &Ledger) -> Vec<(&str, u64)> {
    let lines = ledger.lines.iter().filter(|line| !line.kept);
    lines.map(|l| (l.reason.as_str(), l.count)).collect()
}

fn total(ledger: &Ledger) -> u64 {
    let (kept, left_out) = ledger.totals();
    kept + left_out
}

#[test]
fn a_script_becomes_calls_in_the_order_of_time() {
    let script = b"\
0 5 open \"/data/a b\" O_RDONLY|O_LARGEFILE 36
0 9 read 36 100
7 6 pread 36 4096 10
7 7 access \"/data/x\\ty\" -1
3 8 close 36 0
";
    let finished = clean(script).expect("a script");
    assert_eq!(
        lines(&finished),
        [
            "5000 ? t1 open path=\"/data/a b\" flags=O_RDONLY|O_LARGEFILE mode=0600 = h1",
            "6000 ? t2 pread64 h1 size=10 offset=4096 = 10",
            "7000 ? t2 access path=\"/data/x\\ty\" mode=0 = ~",
            "8000 ? t3 close h1 = 0",
            "9000 ? t1 present path=\"/iostep.never-opened/0-2\" flags=O_RDWR mode=0000 = h2"
                .replace("9000 ?", "9000 0")
                .as_str(),
            "9000 ? t1 read h2 size=100 = 100",
        ]
    );
    assert_eq!(total(&finished.ledger), 5);
    let threads = finished.sink.threads.iter();
    let threads: Vec<_> = threads
        .map(|thread| (thread.tid, thread.process.0))
        .collect();
    assert_eq!(threads, [(0, 1), (7, 1), (3, 1)]);
}

#[test]
fn an_open_that_mobigen_made_up_truncates_nothing() {
    let script = b"\
0 0 open /data/data O_WRONLY|O_CREAT|O_TRUNC|O_LARGEFILE 36
0 0 pwrite 36 0 4
0 1 open data/data O_RDWR|O_CREAT|O_LARGEFILE 37
0 2 open data/data O_RDWR|O_CREAT|O_LARGEFILE 38
0 3 open dev/fimg2d O_RDWR|O_LARGEFILE 39
0 4 openat / \"/data/real\" 40
";
    let finished = clean(script).expect("a script");
    assert_eq!(
        lines(&finished)[..],
        [
            "0 0 t1 present path=\"/iostep.never-opened/0-1\" flags=O_RDWR mode=0000 = h1",
            "0 ? t1 pwrite64 h1 size=4 offset=0 = 4",
            "1000 ? t1 open path=\"/data/data/iostep.name-lost-1\" \
             flags=O_RDWR|O_CREAT|O_LARGEFILE mode=0600 = h2",
            "2000 ? t1 open path=\"/data/data/iostep.name-lost-2\" \
             flags=O_RDWR|O_CREAT|O_LARGEFILE mode=0600 = h3",
            "4000 ? t1 openat path=\"/data/real\" flags=O_RDWR mode=0600 = h4",
        ]
    );
    let expected = [("open made up by MobiGen", 1), ("device", 1)];
    assert_eq!(left_out(&finished.ledger), expected);
}

#[test]
fn hostile_lines_are_counted_and_the_rest_is_read() {
    let mut script = b"9 1 open \"/f\" O_RDWR 5\n9 2 pread 5 4294967296 4\n".to_vec();
    script.extend(b"0 3 pread 5 9223372036854775807 4\n1 4 pread 5 9223372036854775808 4\n");
    script.extend(b"2 5 read 5 -1\n2 5 pwrite 5 -7 4\n2 5 read 99999999999 4\n");
    script.extend(b"99999999999 5 read 5 4\n2 18446744073709551615 read 5 4\n");
    script.extend(b"0 6 unlink \"/");
    script.extend(std::iter::repeat_n(b'x', 1 << 20));
    script.extend(b"\"\n0 7 unlinkat AT_FDCWD 0\n\n0 8 frobnicate 5 0\n\xff\xfe 1 2\n0 9 clo");
    let finished = clean(&script).expect("a script");
    let mut reasons = left_out(&finished.ledger);
    reasons.sort_unstable();
    let expected = [
        ("cannot be read", 2),
        ("empty line", 1),
        ("failed, size unknown", 1),
        ("line too long", 1),
        ("number out of range", 4),
        ("other call", 1),
        ("path not in the script", 1),
    ];
    assert_eq!(reasons, expected);
    assert_eq!(total(&finished.ledger), 15);
    let calls = lines(&finished);
    assert_eq!(calls.len(), 4);
    assert!(calls[1].ends_with("offset=4294967296 = 4"), "{}", calls[1]);
    assert!(calls[3].contains("offset=-7"), "{}", calls[3]);
}

#[test]
fn text_that_is_no_script_is_refused_with_its_name() {
    for text in [
        &b""[..],
        b"1316 openat(AT_FDCWD, \"/f\", O_RDONLY) = 3\n",
        b"\0\0\0",
    ] {
        let error = clean(text).expect_err("no script").to_string();
        assert!(error.starts_with("script: no line is one of"), "{error}");
        assert!(!looks_like(text));
    }
    assert!(looks_like(
        b"0 0 open /data/data O_RDWR 36\n0 0 write 36 4\n"
    ));
    assert!(!looks_like(b"1 0.5 read(3, \"x\", 1) = 1\n"));
}
