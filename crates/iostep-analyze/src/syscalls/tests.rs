//! A small trace, added up by hand.

use std::path::Path;

use iostep_model::syscall::text::Reader;

use super::*;

const TRACE: &str = "\
# iostep system calls 1
@lost 2
@recorder \"strace\"
@machine \"Linux\"
@command \"cp\" \"a\"
@clock wall=? resolution=1000
@thread t1 p1 tid=10 name=\"cp\"
@thread t2 p1 tid=11 name=\"cp\"
@thread t3 p2 tid=12 name=\"cp\"
@initial file path=\"/a\" size=100 content=data
@initial directory path=\"/\" seen
@initial absent path=\"/b\"
@initial symlink path=\"/l\" content=\"a\"
@kept \"call\" 11
@left-out \"pipe\" 2
@left-out \"socket\" 5
1000 10 t1 openat path=\"/a\" flags=O_RDONLY mode=0000 = h1
1100 10 t1 openat path=\"/b\" flags=O_RDWR|O_CREAT mode=0644 = h2
1200 10 t2 read h1 size=100 = 60
1300 20 t2 read h1 size=100 = -EIO
1400 ? t2 read h1 size=100 = ?
1500 30 t1 write h2 size=60 = 60
1600 10 t1 copy_file_range h1 h2 size=40 = 40
1700 500 t1 fsync h2 = 0
1800 10 t1 dup2 h2 replaces=h1 = h2
1900 10 t1 rename from=\"/b\" to=\"/b\" = 0
2000 10 t3 access path=\"/c\" mode=0 = ~
";

fn info(trace: &str) -> Info {
    let text = std::io::Cursor::new(trace.as_bytes().to_vec());
    let mut reader = Reader::new(Path::new("x"), Box::new(text)).expect("a trace");
    let mut count = Count::default();
    while let Some(call) = reader.next_call().expect("a call") {
        count.call(&call);
    }
    count.finish(&reader, true, false)
}

#[test]
fn calls_files_and_bytes_add_up() {
    let info = info(&format!("{TRACE}@end calls=11\n"));
    assert_eq!((info.lost, info.cut_at_line), (2, None));
    assert_eq!(info.run_ns, 1200, "the fsync ends last");
    let expected = Totals {
        calls: 11,
        failed: 1,
        unfinished: 1,
        unknown: 1,
        threads: 3,
        processes: 2,
        files: 3,
        opens: 2,
        reads: 4,
        read_bytes: 100,
        writes: 2,
        written_bytes: 100,
        syncs: 1,
        call_ns: 620,
    };
    assert_eq!(info.totals, expected);
    let source = &info.source;
    assert_eq!((source.kept, source.left_out), (11, 7));
    assert_eq!(source.left_out_because[0], ("socket".into(), 5));
    let before = &info.before;
    let counted = (before.files, before.bytes, before.directories);
    assert_eq!(counted, (1, 100, 1));
    assert_eq!((before.links, before.absent, before.seen), (1, 1, 1));
    let read = &info.calls[0];
    assert_eq!(
        (read.syscall.name(), read.calls, read.failed),
        ("read", 3, 1)
    );
    assert_eq!((read.bytes, read.total_ns, read.longest_ns), (60, 30, 20));
    assert_eq!(info.calls.iter().map(|row| row.calls).sum::<u64>(), 11);
}

#[test]
fn a_call_counts_once_for_each_of_its_files() {
    let info = info(&format!("{TRACE}@end calls=11\n"));
    let files = info.files.expect("files");
    let row = |path: &str| files.iter().find(|row| row.path == path).expect("a row");
    let (a, b) = (row("/a"), row("/b"));
    assert_eq!((a.calls, a.opens, a.reads, a.read_bytes), (6, 1, 4, 100));
    assert_eq!((a.writes, a.written_bytes, a.syncs), (0, 0, 0));
    assert_eq!(
        (b.calls, b.opens, b.writes, b.written_bytes),
        (6, 1, 2, 100)
    );
    assert_eq!((b.reads, b.syncs, b.call_ns), (0, 1, 570));
    assert_eq!(row("/c").calls, 1);
}

#[test]
fn a_trace_that_was_cut_says_where() {
    assert_eq!(info(TRACE).cut_at_line, Some(28));
}
