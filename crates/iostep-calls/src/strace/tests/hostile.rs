//! What broke the tools before: counted or kept, never obeyed.

use super::{MAX_LINE_BYTES, calls, clean, lines, reasons, sum};

#[test]
fn numbers_beyond_32_and_64_bits_stay_what_they_are() {
    let expected = [
        "open path=\"/f\" flags=O_RDWR mode=0000 = h1",
        "pread64 h1 size=1 offset=2147483648 = 1",
        "pread64 h1 size=1 offset=9223372036854775807 = 0",
        "pread64 h1 size=1 offset=-1 = -EINVAL",
        "read h1 size=18446744073709551615 = -EFAULT",
        "read h1 size=18446744073709551615 = -EFAULT",
        "ftruncate h1 size=-5 = -EINVAL",
    ];
    let text = "open(\"/f\", O_RDWR) = 3\n\
                pread64(3, \"a\", 1, 2147483648) = 1\n\
                pread64(3, \"\", 1, 9223372036854775807) = 0\n\
                pread64(3, 0x1, 1, 18446744073709551615) = -1 EINVAL (Invalid argument)\n\
                pread64(3, 0x1, 1, 18446744073709551616) = -1 EINVAL (Invalid argument)\n\
                read(3, 0x1, -1) = -1 EFAULT (Bad address)\n\
                read(3, 0x1, 18446744073709551615) = -1 EFAULT (Bad address)\n\
                ftruncate(3, -5) = -1 EINVAL (Invalid argument)\n\
                read(99999999999, \"\", 1) = 0\n\
                close(-1) = -1 EBADF (Bad file descriptor)\n";
    assert_eq!(calls(text), expected);
    let finished = clean(text);
    let expected = [("arguments not understood", 2), ("closed descriptor", 1)];
    assert_eq!(reasons(&finished.ledger, false), expected);
}

#[test]
fn a_line_longer_than_any_buffer_is_counted_and_the_rest_is_read() {
    let long = "y".repeat(MAX_LINE_BYTES);
    let path = format!("/{}", "x".repeat(4090));
    let text = format!(
        "open(\"{path}\", O_RDWR) = 3\nwrite(3, \"{long}\", 1048576) = 1048576\nfsync(3) = 0\n"
    );
    let finished = clean(&text);
    assert_eq!(finished.sink.calls.len(), 2);
    assert_eq!(reasons(&finished.ledger, false), [("line too long", 1)]);
    assert!(lines(&finished)[0].contains(&path));
    assert_eq!(sum(&finished.ledger), 3);
}

#[test]
fn threads_come_in_any_order_and_descriptors_are_used_again() {
    let text = "[pid 4294967295] open(\"/a\", O_RDONLY) = 3\n\
                7 open(\"/b\", O_RDONLY) = 3\n\
                [pid 4294967295] close(3) = 0\n\
                [pid 4294967295] open(\"/c\", O_RDONLY) = 3\n\
                1 read(3, \"\", 1) = 0\n\
                7 read(3, \"\", 2) = 0\n\
                [pid 4294967295] read(3, \"\", 3) = 0\n";
    let finished = clean(text);
    let threads = finished.sink.threads.iter();
    let threads: Vec<_> = threads.map(|thread| thread.tid).collect();
    assert_eq!(threads, [4_294_967_295, 7, 1]);
    let reads = calls(text).split_off(4);
    assert_eq!(
        reads,
        [
            "present path=\"/iostep.never-opened/1-4\" flags=O_RDWR mode=0000 = h4",
            "read h4 size=1 = 0",
            "read h2 size=2 = 0",
            "read h3 size=3 = 0",
        ]
    );
}

#[test]
fn times_that_go_back_or_are_no_times_lose_no_line() {
    let text = "7 1700000000.5 open(\"/f\", O_RDWR) = 3 <0.1>\n\
                7 100.5 fsync(3) = 0 <99999999999999999999.0>\n\
                7 1699999999.5 fsync(3) = 0 <18446744073.0>\n\
                7 18446744073.9 fsync(3) = 0\n\
                7 25:61:00 fsync(3) = 0\n";
    let finished = clean(text);
    assert_eq!(sum(&finished.ledger), 5);
    assert_eq!(finished.sink.calls.len(), 3);
    assert_eq!(reasons(&finished.ledger, false), [("cannot be read", 2)]);
}

#[test]
fn paths_out_of_the_directory_are_only_words() {
    let expected = [
        "unlink path=\"/../../etc/passwd\" = 0",
        "open path=\"/etc/passwd\" flags=O_WRONLY|O_TRUNC mode=0000 = h1",
        "symlink content=\"/etc\" path=\"/data/x\" = 0",
        "exit h1 = 0",
    ];
    let text = "unlink(\"/../../etc/passwd\") = 0\nopen(\"/etc/passwd\", O_WRONLY|O_TRUNC) = 3\n\
                symlink(\"/etc\", \"/data/x\") = 0\nexit_group(0) = ?\n";
    assert_eq!(calls(text), expected);
}

#[test]
fn a_fork_with_more_files_than_a_line_holds_is_several_calls() {
    let mut text = String::new();
    for number in 3..70_003 {
        text += &format!("100 open(\"/f\", O_RDONLY) = {number}\n");
    }
    text += "100 fork() = 101\n101 exit_group(0) = ?\n101 +++ exited with 0 +++\n";
    let finished = clean(&text);
    let named: Vec<_> = finished
        .sink
        .calls
        .iter()
        .map(|call| call.operation.handles().len())
        .filter(|handles| *handles > 0)
        .collect();
    assert_eq!(named, [65_536, 4_464, 65_536, 4_464]);
    assert!(lines(&finished).iter().all(|line| line.len() < 1 << 20));
}
