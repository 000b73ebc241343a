//! Texts of containers that were traced from outside.

use super::{Finished, Recording, clean, clean_all, lines, sum};

/// Threads by their numbers, and the calls without times.
fn told(text: &str) -> (Vec<u32>, Vec<String>) {
    let finished = clean(text);
    assert_eq!(sum(&finished.ledger), text.lines().count() as u64);
    of(&finished)
}

fn of(finished: &Finished<Recording>) -> (Vec<u32>, Vec<String>) {
    let tids = finished.sink.threads.iter().map(|thread| thread.tid);
    let lines = lines(finished).into_iter();
    let bare = lines.map(|line| line.splitn(3, ' ').nth(2).unwrap_or_default().to_owned());
    (tids.collect(), bare.collect())
}

const OPEN: &str = "500 1.0 openat(AT_FDCWD, \"/srv/out\", O_WRONLY|O_CREAT, 0644) = 5\n";
const CHILD: &str = "501 1.4 write(5, \"child\\n\", 6) = 6\n501 1.5 exit_group(0) = ?\n\
                     501 1.6 +++ exited with 0 +++\n";
const PARENT: &str = "500 1.7 write(5, \"parent2\\n\", 8) = 8\n";

/// What the parent's clone, in its forms, makes of this.
fn expected(clone: &str) {
    let text = [OPEN, clone, CHILD, PARENT].concat();
    let (tids, calls) = told(&text);
    assert_eq!(tids, [500, 501], "{text}");
    assert_eq!(
        calls[1..],
        [
            "t1 clone child=t2 h1 = 0",
            "t2 write h1 size=6 = 6",
            "t2 exit h1 = 0",
            "t1 write h1 size=8 = 8"
        ],
        "{text}"
    );
}

#[test]
fn a_child_is_known_by_the_number_that_strace_has_for_it() {
    for clone in [
        "clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 2",
        "clone3({flags=CLONE_VFORK, exit_signal=SIGCHLD} => {parent_tid=[0]}, 88) = 2",
        "fork() = 2",
        "vfork() = 2",
    ] {
        expected(&format!(
            "500 1.2 {clone} /* 501 in strace's PID NS */ <0.000104>\n"
        ));
        expected(&format!(
            "500 1.2 {clone}<sh> /* 501 in strace's PID NS */\n"
        ));
        expected(&format!("500 1.2 {clone} <0.000104>\n"));
    }
}

#[test]
fn a_child_whose_line_comes_before_its_clone_returned_is_no_other() {
    let written = "501 1.4 write(5, \"child\\n\", 6) = 6\n";
    let ended = "501 1.5 exit_group(0) = ?\n501 1.6 +++ exited with 0 +++\n";
    for returned in ["2", "2 /* 501 in strace's PID NS */"] {
        let begun = "500 1.2 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>\n";
        let resumed = format!("500 1.45 <... clone resumed>) = {returned}\n");
        let text = [OPEN, begun, written, &resumed, ended, PARENT].concat();
        let (tids, calls) = told(&text);
        assert_eq!((tids, calls.len()), (vec![500, 501], 5), "{text}");
    }
}

#[test]
fn a_number_that_another_thread_has_is_not_that_thread() {
    for remark in ["", " /* 501 in strace's PID NS */"] {
        let (tids, calls) = told(&format!(
            "600 1.0 openat(AT_FDCWD, \"/srv/log\", O_WRONLY|O_APPEND) = 5\n{OPEN}\
             500 1.2 clone(child_stack=NULL, flags=SIGCHLD) = 600{remark} <0.0001>\n\
             501 1.4 write(5, \"child\\n\", 6) = 6\n\
             600 1.5 write(5, \"log line\\n\", 9) = 9\n600 1.6 fsync(5) = 0\n",
        ));
        assert_eq!(tids, [600, 500, 501]);
        assert_eq!(
            calls[2..],
            [
                "t2 clone child=t3 h2 = 0",
                "t3 write h2 size=6 = 6",
                "t1 write h1 size=9 = 9",
                "t1 fsync h1 = 0",
            ]
        );
    }
}

#[test]
fn several_children_are_told_apart() {
    let (tids, calls) = told(&format!(
        "{OPEN}500 1.1 fork() = 2\n500 1.2 close(5) = 0\n500 1.3 fork() = 3\n\
         501 1.4 write(5, \"a\", 1) = 1\n502 1.5 openat(AT_FDCWD, \"/g\", O_RDWR) = 5\n\
         501 1.6 fork() = 4\n503 1.7 write(5, \"b\", 1) = 1\n",
    ));
    assert_eq!(tids, [500, 501, 502, 503]);
    assert_eq!(
        calls[3..],
        [
            "t2 write h1 size=1 = 1",
            "t3 openat path=\"/g\" flags=O_RDWR mode=0000 = h2",
            "t2 clone child=t4 h1 = 0",
            "t4 write h1 size=1 = 1",
        ]
    );
}

#[test]
fn files_of_several_threads_are_of_one_tree() {
    let finished = clean_all(&[
        (
            "t.500",
            b"1700000001.0 open(\"/f\", O_RDWR) = 3\n1700000001.3 fork() = 2 <0.1>\n1700000009.0 close(3) = 0\n",
        ),
        (
            "t.501",
            b"1700000004.5 write(3, \"abc\", 3) = 3\n1700000004.6 +++ exited with 0 +++\n",
        ),
    ]);
    let (tids, calls) = of(&finished);
    assert_eq!(
        (tids, &*calls[2]),
        (vec![500, 501], "t2 write h1 size=3 = 3")
    );
}

#[test]
fn a_thread_that_was_attached_to_is_nobodys_child() {
    let (tids, _) = told(&format!(
        "{OPEN}500 1.1 fork() = 501\n900 1.2 write(5, \"x\", 1) = 1\n501 1.3 fsync(5) = 0\n",
    ));
    assert_eq!(tids, [500, 501, 900]);
}

#[test]
fn a_link_of_proc_names_a_thread_by_its_own_number() {
    let (_, calls) = told(&format!(
        "{OPEN}500 1.1 getpid() = 1\n500 1.2 fork() = 2 /* 501 in strace's PID NS */\n\
         501 1.3 close(5) = 0\n501 1.4 open(\"/proc/1/fd/5\", O_RDWR) = 6\n\
         501 1.5 open(\"/g\", O_RDWR) = 7\n500 1.6 open(\"/proc/2/fd/7\", O_RDWR) = 8\n",
    ));
    assert_eq!(calls[3], "t2 open h1 flags=O_RDWR mode=0000 = h2");
    assert_eq!(calls[5], "t1 open h3 flags=O_RDWR mode=0000 = h4");
}
