//! Clocks that are set back or ahead while strace writes.

use super::{Import, Input, Recording, Tracker, lines};

/// The calls in their order with their beginnings in seconds, and what is said of the times.
fn read(texts: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let inputs = texts
        .iter()
        .map(|(name, text)| Input::new(name, text.as_bytes()));
    let import = Import::open(inputs.collect()).expect("texts of strace");
    let mut tracker = Tracker::new(Recording::default());
    let remarks = import
        .events(&mut |event| tracker.event(event))
        .expect("a recording takes everything");
    let mut finished = tracker.finish();
    // As a trace has them.
    finished.sink.calls.sort_by_key(|call| call.start_ns);
    let calls = lines(&finished).into_iter().map(|line| {
        let mut words = line.split(' ');
        let start_ns: u64 = words.next().and_then(|ns| ns.parse().ok()).expect("a time");
        let call = words.nth(2).expect("a name");
        format!("{call} {}", start_ns as f64 / 1e9)
    });
    (calls.collect(), remarks)
}

fn names(calls: &[String]) -> Vec<&str> {
    calls
        .iter()
        .map(|call| call.split(' ').next().unwrap_or_default())
        .collect()
}

const SAVED: [&str; 6] = ["openat", "write", "fsync", "close", "rename", "openat"];

/// A file is written under a temporary name; a clock goes by these times.
fn saves(times: [&str; 6]) -> String {
    let calls = [
        "openat(AT_FDCWD, \"/d/tmp\", O_RDWR|O_CREAT, 0600) = 3 <0.000010>",
        "write(3, \"aaaa\"..., 4096) = 4096 <0.000010>",
        "fsync(3) = 0 <0.000010>",
        "close(3) = 0 <0.000010>",
        "rename(\"/d/tmp\", \"/d/f\") = 0 <0.000010>",
        "openat(AT_FDCWD, \"/d/f\", O_RDONLY) = 3 <0.000010>",
    ];
    let pairs = times.iter().zip(calls);
    pairs
        .map(|(time, call)| format!("7 {time} {call}\n"))
        .collect()
}

#[test]
fn the_order_of_lines_is_kept_when_the_clock_is_set_back() {
    for (times, back) in [
        // By the network, seconds since 1970.
        (
            [
                "1700000010.000000",
                "1700000007.500000",
                "1700000007.600000",
                "1700000007.700000",
                "1700000007.800000",
                "1700000007.900000",
            ],
            "2 s",
        ),
        // The end of summer time, a second time in the same text by the network.
        (
            [
                "02:59:59.900000",
                "02:00:00.000000",
                "02:00:00.100000",
                "02:00:00.050000",
                "02:00:00.200000",
                "02:00:00.300000",
            ],
            "59 min 59 s",
        ),
        (
            [
                "02:59:58", "02:59:59", "02:00:00", "02:00:00", "02:00:01", "02:00:02",
            ],
            "59 min 59 s",
        ),
    ] {
        let text = saves(times);
        for text in [
            text.clone(),
            text.replace("7 ", ""),
            text.replace(" <0.000010>", ""),
        ] {
            let (calls, remarks) = read(&[("app.strace", &text)]);
            assert_eq!(names(&calls), SAVED, "{text}");
            assert!(
                remarks[0].contains(&format!("set back by {back} here")),
                "{remarks:?}"
            );
            assert!(remarks[0].starts_with("app.strace:"), "{remarks:?}");
        }
    }
}

#[test]
fn times_go_on_behind_a_step_back() {
    let text = saves([
        "1700000010.000000",
        "1700000011.000000",
        "1700000007.500000",
        "1700000008.500000",
        "1700000009.500000",
        "1700000020.000000",
    ]);
    let (calls, _) = read(&[("app.strace", &text)]);
    let starts: Vec<&str> = calls
        .iter()
        .filter_map(|call| call.split(' ').nth(1))
        .collect();
    // The step is at least from the end of the call before.
    let expected = ["0", "1", "1.00001", "2.00001", "3.00001", "13.50001"];
    assert_eq!(starts, expected);
}

/// The clock is set back by less than a call takes, so that the next line is not before this one.
#[test]
fn a_clock_that_is_set_back_during_a_long_call_is_noticed() {
    let opened = "\
7 1700000001.000000 openat(AT_FDCWD, \"/d/a\", O_RDWR|O_CREAT, 0600) = 3 <0.400000>
8 1700000001.010000 openat(AT_FDCWD, \"/d/b\", O_RDWR|O_CREAT, 0600) = 5 <0.000010>
7 1700000001.100000 write(3, \"aaaa\"..., 4096) = 4096 <0.000010>
7 1700000001.200000 close(3) = 0 <0.000010>
";
    let of_one = opened.lines().filter(|line| line.starts_with('7'));
    let of_one: String = of_one.map(|line| format!("{}\n", &line[2..])).collect();
    for (name, text) in [("app.strace", opened), ("app.7", &of_one)] {
        let finished = super::clean_all(&[(name, text.as_bytes())]);
        let reasons = super::reasons(&finished.ledger, true);
        assert_eq!(reasons, [("call", text.lines().count() as u64)]);
        let (calls, remarks) = read(&[(name, text)]);
        assert_eq!(calls[calls.len() - 2..], ["write 0.4", "close 0.5"]);
        assert!(
            remarks[0].contains("set back by 300 ms here"),
            "{remarks:?}"
        );
    }
}

#[test]
fn whole_seconds_and_a_slow_clock_are_no_step() {
    let text = "\
7 1700000001 openat(AT_FDCWD, \"/d/a\", O_RDWR|O_CREAT, 0600) = 3 <1.900000>
7 1700000002 write(3, \"aaaa\"..., 4096) = 4096 <0.000010>
";
    assert_eq!(read(&[("app.strace", text)]).1, [""; 0]);
}

#[test]
fn midnight_is_no_step() {
    let text = saves([
        "23:59:58.0",
        "23:59:59.0",
        "00:00:00.0",
        "00:00:01.0",
        "00:00:02.0",
        "00:00:03.0",
    ]);
    let (calls, remarks) = read(&[("app.strace", &text)]);
    assert_eq!(calls.last().map(String::as_str), Some("openat 5"));
    assert_eq!(remarks, [""; 0]);
}

#[test]
fn a_long_gap_is_said_and_one_of_years_is_none() {
    let text = saves([
        "01:59:59.000000",
        "03:00:00.000000",
        "03:00:01.000000",
        "03:00:02.000000",
        "03:00:03.000000",
        "03:00:04.000000",
    ]);
    let (calls, remarks) = read(&[("app.strace", &text)]);
    assert_eq!(calls.last().map(String::as_str), Some("openat 3605"));
    assert!(
        remarks[0].contains("no line was written for 1 h 1 s"),
        "{remarks:?}"
    );

    let text = saves([
        "946684800.000000",
        "946684801.000000",
        "1700000000.000000",
        "1700000001.000000",
        "1700000002.000000",
        "1700000003.000000",
    ]);
    let (calls, remarks) = read(&[("app.strace", &text)]);
    assert_eq!(calls.last().map(String::as_str), Some("openat 4"));
    assert!(remarks[0].contains("set ahead by"), "{remarks:?}");
}

#[test]
fn each_of_several_texts_keeps_its_order_and_they_agree_on_the_step() {
    let first = "\
1700000100.0 open(\"/f\", O_RDWR|O_CREAT, 0600) = 3 <0.1>
1700000101.0 clone(child_stack=NULL, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 8 <0.1>
1700000102.0 write(3, \"a\", 1) = 1 <0.1>
1700000043.0 fsync(3) = 0 <0.1>
1700000050.0 unlink(\"/f\") = 0 <0.1>
";
    let second = "\
1700000102.5 write(3, \"b\", 1) = 1 <0.1>
1700000044.0 fdatasync(3) = 0 <0.1>
1700000045.0 close(3) = 0 <0.1>
";
    let (calls, remarks) = read(&[("t.7", first), ("t.8", second)]);
    let names = names(&calls);
    let at = |name| {
        names
            .iter()
            .position(|other| *other == name)
            .expect("a call")
    };
    for [first, second] in [
        ["open", "fsync"],
        ["fsync", "fdatasync"],
        ["fdatasync", "close"],
        ["close", "unlink"],
    ] {
        assert!(at(first) < at(second), "{first}, {second}: {calls:?}");
    }
    assert_eq!(remarks.len(), 2, "{remarks:?}");
}

/// With -z strace writes a call when it has ended.
#[test]
fn lines_that_are_written_late_are_no_step() {
    let waited = "\
7 1700000001.000000 open(\"/f\", O_RDWR) = 3 <0.000010>
8 1700000002.000000 open(\"/g\", O_RDWR) = 4 <0.000010>
8 1700000008.000000 write(4, \"a\", 1) = 1 <0.000010>
7 1700000003.000000 fsync(3) = 0 <6.000000>
8 1700000009.500000 fsync(4) = 0 <0.000010>
";
    let untimed: String = waited
        .lines()
        .map(|line| format!("{}\n", line.split(" <").next().unwrap_or_default()))
        .collect();
    for text in [waited, &untimed] {
        let (calls, remarks) = read(&[("app.strace", text)]);
        assert_eq!(remarks, [""; 0]);
        let expected = ["open 0", "open 1", "fsync 2", "write 7", "fsync 8.5"];
        assert_eq!(calls, expected);
    }
}

/// With -z strace 6.1 writes some calls with the mark of a first half, and their end in the next line.
#[test]
fn a_call_whose_end_stands_alone_in_the_next_line_is_one_and_no_clock_was_set() {
    let text = "9 1700000000.000000 open(\"/f\", O_RDWR) = 3\n10 1700000000.020000 open(\"/f\", O_RDWR) = 3\n\
                10 1700000000.030000 write(3, \"\"..., 904 <unfinished ...>\n\
                )                                       = 904\n\
                10 1700000000.040000 close(3) = 0\n11 1700000000.050000 close(9) = 0\n\
                9 1700000000.010000 wait4(-1, NULL, 0, NULL) = 10\n9 1700000000.060000 write(3, \"\"..., 5) = 5\n";
    let (calls, remarks) = read(&[("app.strace", text)]);
    assert_eq!(remarks, [""; 0]);
    let expected = [
        "open 0",
        "open 0.02",
        "write 0.03",
        "close 0.04",
        "write 0.06",
    ];
    assert_eq!(calls, expected);
}

/// A parent makes a file in one child after the other; the clock is set back while one of them runs, so
/// that it, all that come later and the parent have earlier times than those before.
#[test]
fn texts_of_threads_are_in_the_order_of_clones_and_waits_whatever_the_clock_says() {
    for (set_back_at, by) in [(0, 0), (4, 3600), (7, 3600), (9, 1), (12, 90_000), (14, 5)] {
        let times = std::cell::Cell::new(0);
        let at = || {
            let line = times.get() + 1;
            times.set(line);
            let back = if line >= set_back_at { by } else { 0 };
            format!("{}.000000", 1_700_000_000 + line * 2 - back)
        };
        let mut parent = format!("{} execve(\"/bin/app\", [\"app\"], 0x7ffe) = 0\n", at());
        let mut children = Vec::new();
        for child in [12, 11, 13] {
            parent += &format!(
                "{} clone(child_stack=NULL, flags=SIGCHLD) = {child}\n",
                at()
            );
            let begun = at();
            let mut text = String::new();
            for call in [
                "open(\"/f\", O_RDWR|O_CREAT, 0600) = 3",
                "unlink(\"/f\") = 0",
            ] {
                text += &format!("{} {call}\n", at());
            }
            text += &format!("{} +++ exited with 0 +++\n", at());
            children.push((format!("app.{child}"), text));
            parent += &format!("{begun} wait4(-1, [{{WIFEXITED(s)}}], 0, NULL) = {child}\n");
            parent += &format!("{} rename(\"/a\", \"/b\") = 0\n", at());
        }
        let mut texts = vec![("app.10", parent.as_str())];
        texts.extend(
            children
                .iter()
                .map(|(name, text)| (name.as_str(), text.as_str())),
        );
        let (calls, _) = read(&texts);
        let names: Vec<&str> = calls
            .iter()
            .filter_map(|call| call.split(' ').next())
            .collect();
        let one = ["open", "unlink", "exit", "rename"];
        assert_eq!(names, one.repeat(3), "set back at {set_back_at} by {by}");
    }
}
