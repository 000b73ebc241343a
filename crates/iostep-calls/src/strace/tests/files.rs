//! Several texts of one run of strace -ff.

use super::{Import, Input, clean_all, lines, sum};

#[test]
fn files_of_one_run_are_put_together_by_time() {
    let finished = clean_all(&[
        ("t.100", b"1700000000.1 open(\"/f\", O_RDWR) = 3 <0.1>\n1700000000.3 clone(child_stack=NULL, flags=SIGCHLD) = 101 <0.5>\n1700000001.0 close(3) = 0 <0.1>\n"),
        ("t.101", b"1700000000.4 write(3, \"abc\", 3) = 3 <0.1>\n1700000002.0 +++ exited with 0 +++\n"),
    ]);
    let tids: Vec<_> = finished
        .sink
        .threads
        .iter()
        .map(|thread| thread.tid)
        .collect();
    assert_eq!(tids, [100, 101]);
    let told = lines(&finished);
    assert!(
        told.iter()
            .any(|line| line == "300000000 100000000 t2 write h1 size=3 = 3"),
        "{told:?}"
    );
    assert_eq!(sum(&finished.ledger), 5);
    let untimed = [("a.1", b"sync() = 0\n"), ("a.2", b"sync() = 0\n")];
    let untimed = untimed
        .iter()
        .map(|(name, text)| Input::new(name, &text[..]));
    let error = Import::open(untimed.collect())
        .expect_err("no times")
        .to_string();
    assert!(error.contains("have no times"), "{error}");
}

#[test]
fn a_thread_may_have_made_no_call_and_its_file_any_ending() {
    let finished = clean_all(&[
        (
            "t.100.txt",
            b"1700000001.5 open(\"/f\", O_RDWR) = 3\n1700000001.6 fork() = 101\n",
        ),
        ("t.101.txt", b""),
        ("t.102.txt", b"1700000001.7 +++ exited with 0 +++\n"),
    ]);
    assert_eq!(sum(&finished.ledger), 3);
    assert_eq!(finished.sink.threads[0].tid, 100);
}

#[test]
fn files_after_midnight_begin_on_the_next_day() {
    let finished = clean_all(&[
        ("t.101", b"00:00:01 write(3, \"abc\", 3) = 3\n"),
        (
            "t.100",
            b"23:59:58 open(\"/f\", O_RDWR) = 3\n23:59:59 vfork() = 101\n00:00:03 fsync(3) = 0\n",
        ),
    ]);
    let told = lines(&finished);
    let starts: Vec<_> = told
        .iter()
        .map(|line| line.split(' ').next().unwrap_or_default())
        .collect();
    assert_eq!(starts, ["0", "1000000000", "3000000000", "5000000000"]);
    assert!(told[2].contains("t2 write h1"), "{told:?}");
}

#[test]
fn files_of_nobody_are_refused() {
    let text = &b"1700000001.5 sync() = 0\n"[..];
    let inputs = |names: [&str; 2]| names.map(|name| Input::new(name, text)).into();
    let error = Import::open(inputs(["a.1", "b"])).expect_err("whose is b");
    let error = error.to_string();
    assert!(error.contains("b: nothing says which thread"), "{error}");
    let named = &b"7 1700000001.5 sync() = 0\n"[..];
    let inputs = vec![Input::new("a.1", text), Input::new("b", named)];
    assert!(Import::open(inputs).is_ok());
}
