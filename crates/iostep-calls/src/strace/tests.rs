//! Lines in the forms of many versions of strace, and what becomes of them.

use iostep_model::syscall::{InitialKind, Ledger, Recording};

use super::*;
use crate::fixture::lines;
use crate::{Finished, Tracker};

mod aio;
mod clocks;
mod files;
mod hostile;
mod initial;
mod mixed;
mod namespaces;
mod proc_links;
mod versions;

fn clean_all(texts: &[(&str, &[u8])]) -> Finished<Recording> {
    let inputs = texts.iter().map(|(name, text)| Input::new(name, *text));
    let import = Import::open(inputs.collect()).expect("texts of strace");
    let mut tracker = Tracker::new(Recording::default());
    import
        .events(&mut |event| tracker.event(event))
        .expect("a recording takes everything");
    tracker.finish()
}

fn clean(text: &str) -> Finished<Recording> {
    clean_all(&[("app.strace", text.as_bytes())])
}

/// Calls without times and threads.
fn calls(text: &str) -> Vec<String> {
    let finished = clean(text);
    let total = text.lines().count() as u64;
    assert_eq!(sum(&finished.ledger), total, "{:?}", finished.ledger);
    let lines = lines(&finished);
    let bare = lines.iter().map(|l| l.splitn(4, ' ').nth(3));
    bare.map(|line| line.expect("a call").to_owned()).collect()
}

fn sum(ledger: &Ledger) -> u64 {
    let (kept, left_out) = ledger.totals();
    kept + left_out
}

fn reasons(ledger: &Ledger, kept: bool) -> Vec<(&str, u64)> {
    let lines = ledger.lines.iter().filter(|line| line.kept == kept);
    lines.map(|l| (l.reason.as_str(), l.count)).collect()
}

/// The one call of a line behind an open.
fn one(line: &str) -> String {
    let text = format!("open(\"/f\", O_RDWR) = 3\nopen(\"/g\", O_RDWR) = 4\n{line}\n");
    let calls = calls(&text);
    assert_eq!(calls.len(), 3, "{line}: {calls:?}");
    calls[2].clone()
}

#[test]
fn every_call_is_read_in_its_forms() {
    let mut forms = include_str!("tests/forms.txt").lines().skip(1);
    while let (Some(line), Some(expected)) = (forms.next(), forms.next()) {
        assert_eq!(one(line), expected.trim_start(), "{line}");
    }
}

#[test]
fn what_moved_nothing_between_a_file_and_a_pipe_is_left_out() {
    let finished = clean(
        "open(\"/f\", O_RDWR) = 3\nsocket(AF_INET, SOCK_STREAM, 0) = 5\npipe([6, 7]) = 0\n\
         sendfile(5, 3, NULL, 100) = -1 EAGAIN (Resource temporarily unavailable)\n\
         sendfile(5, 6, NULL, 100) = 100\nsplice(6, NULL, 3, NULL, 100, 0) = 0\n\
         splice(6, NULL, 5, NULL, 100, 0) = 100\nsplice(0, NULL, 1, NULL, 100, 0) = 100\n\
         splice(8, NULL, 9, NULL, 100, 0) = 100\ntee(6, 7, 100, 0) = 100\n",
    );
    assert_eq!(finished.sink.calls.len(), 1, "{:?}", lines(&finished));
    let left_out = reasons(&finished.ledger, false);
    let count = |reason| left_out.iter().find(|(r, _)| *r == reason).map(|r| r.1);
    assert_eq!(count("socket"), Some(4), "{left_out:?}");
    assert_eq!(count("pipe"), Some(4), "{left_out:?}");
    assert_eq!(count("other call on files"), Some(1), "{left_out:?}");
}

#[test]
fn calls_on_no_file_are_left_out_by_what_they_are() {
    let finished = clean(
        "pipe2([3, 4], O_CLOEXEC) = 0\nwrite(4, \"x\", 1) = 1\nsocket(AF_INET, SOCK_STREAM, 0) = 5\n\
         read(5, \"\", 1) = 0\nread(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"\", 1) = 0\n\
         read(8</dev/tty<char 5:0>>, \"\", 1) = 0\nread(7<pipe:[12]>, \"\", 1) = 0\n\
         read(6<anon_inode:[eventfd]>, \"\", 8) = 8\nioctl(10, BINDER_WRITE_READ, 0xbe) = 0\n\
         ioctl(11, 0x40087707, 0) = 0\nioctl(11, 0xc0186201, 0xbe) = 0\nfutex(0x1, FUTEX_WAKE, 1) = 0\n\
         read(12<UNIX:[1->2,\"/a>b\"]>, \"\", 1) = 0\ngetxattr(\"/f\", \"a\", 0x1, 1) = -1 ENODATA (x)\n\
         open(0x7ffe, O_RDONLY) = -1 EFAULT (Bad address)\ncapset({}, {effective=1<<CAP_X}) = 0\n",
    );
    let mut left_out = reasons(&finished.ledger, false);
    left_out.sort_unstable();
    assert_eq!(
        left_out,
        [
            ("ashmem", 1),
            ("binder", 2),
            ("device", 1),
            ("event descriptor", 1),
            ("not about files", 2),
            ("other call on files", 1),
            ("path not in the text", 1),
            ("pipe", 3),
            ("socket", 4),
        ]
    );
    assert!(finished.sink.calls.is_empty());
}

#[test]
fn a_link_that_was_read_whole_says_where_it_leads() {
    let finished = clean(
        "readlink(\"/whole\", \"to\\303\\244\", 100) = 4\nreadlink(\"/cut\", \"to\"..., 100) = 40\n\
         readlink(\"/full\", \"to\", 2) = 2\nreadlinkat(AT_FDCWD</d>, \"below\", \"/a\", 9) = 2\n\
         readlink(\"/none\", 0x7ffe, 100) = -1 EINVAL (Invalid argument)\n",
    );
    let links = finished.initial.iter().filter_map(|file| match file.kind {
        InitialKind::Symlink { content } => {
            let texts = [file.path, content].map(|path| finished.paths.get(path).to_vec());
            Some(texts.map(|text| String::from_utf8(text).expect("UTF-8")))
        }
        _ => None,
    });
    let links: Vec<_> = links.collect();
    assert_eq!(links, [["/whole", "toä"], ["/d/below", "/a"]]);
    assert_eq!(sum(&finished.ledger), 5);
}

#[test]
fn memory_of_files_is_followed_where_it_goes() {
    let calls = calls(
        "open(\"/f\", O_RDWR) = 3\n\
         mmap(NULL, 8192, PROT_READ, MAP_SHARED, 3, 0x1000) = 0x7f0000000000\n\
         mremap(0x7f0000000000, 8192, 16384, MREMAP_MAYMOVE) = 0x7f0000010000\n\
         mremap(0x600000000000, 8192, 16384, MREMAP_MAYMOVE) = 0x600000000000\n\
         munmap(0x7f0000010000, 16384) = 0\n",
    );
    let expected = [
        "mremap h1 offset=4096 size=8192 new_size=16384 = 0",
        "munmap h1 offset=4096 size=16384 = 0",
    ];
    assert_eq!(calls[2..], expected);
}

#[test]
fn halves_of_calls_are_put_together() {
    let finished = clean(
        "10 1700000000.000000 open(\"/f\", O_RDWR) = 3 <0.000010>\n\
         10 1700000000.000100 read(3,  <unfinished ...>\n\
         11 1700000000.000150 <... read resumed> \"\", 1) = 0\n\
         10 1700000000.000200 <... read resumed> \"abc\", 100) = 3 <0.000090>\n\
         10 1700000000.000300 fsync(3 <unfinished ...>\n\
         10 1700000000.000400 <... fsync resumed>) = 0\n\
         10 1700000000.000500 fsync(3 <unfinished ...>\n\
         10 1700000000.000600 <... fsync resumed> <unfinished ...>) = ?\n\
         10 1700000000.000700 write(3, \"x\", 1 <unfinished ...>\n\
         10 1700000000.000800 +++ killed by SIGKILL +++\n",
    );
    assert_eq!(
        lines(&finished),
        [
            "0 10000 t1 open path=\"/f\" flags=O_RDWR mode=0000 = h1",
            "100000 90000 t1 read h1 size=100 = 3",
            "300000 100000 t1 fsync h1 = 0",
            "500000 ? t1 fsync h1 = ?",
            "700000 ? t1 write h1 size=1 = ?",
            "800000 ? t1 exit h1 = 0",
        ]
    );
    assert_eq!(reasons(&finished.ledger, false), [("cannot be read", 1)]);
    assert_eq!(sum(&finished.ledger), 10);
}

/// Start times of the calls of a text.
fn starts(text: &str) -> Vec<u64> {
    let finished = clean(text);
    assert_eq!(sum(&finished.ledger), text.lines().count() as u64);
    finished
        .sink
        .calls
        .iter()
        .map(|call| call.start_ns)
        .collect()
}

#[test]
fn times_are_read_in_every_form() {
    let second = 1_000_000_000;
    let since = |a: &str, b: &str| starts(&format!("{a}sync() = 0\n{b}sync() = 0\n"));
    assert_eq!(since("23:59:59 ", "00:00:01 "), [0, 2 * second]);
    assert_eq!(since("23:59:59.5 ", "00:00:01.250000 "), [0, 1_750_000_000]);
    assert_eq!(
        since("1700000000.000001 ", "1700000001.000000 "),
        [0, second - 1000]
    );
    assert_eq!(
        since("1700000000.000000001 ", "1700000000.000000003 "),
        [0, 2]
    );
    assert_eq!(since("1700000000 ", "1700000001 "), [0, second]);
    assert_eq!(since("     0.000100 ", "     0.000025 "), [0, 25_000]);
    assert_eq!(
        since("10:00:00 (+     0.000000) ", "10:00:01 (+     1.000000) "),
        [0, second]
    );
    assert_eq!(since("", ""), [1, 2]);
    assert_eq!(
        since("77<cat> 1700000000.5 ", "[pid    77] 1700000000.6 "),
        [0, 100_000_000]
    );
    // What a clock of whole seconds cannot tell apart stays in order.
    let text = "10:00:00 open(\"/f\", O_RDONLY) = 3 <0.5>\n10:00:00 fsync(3) = 0 <0.1>\n";
    assert_eq!(starts(text), [0, 500_000_000]);
}

#[test]
fn children_have_what_their_parents_opened() {
    // The child's first call comes before the parent's clone has returned.
    let finished = clean(
        "100 1.0 open(\"/f\", O_RDWR) = 3\n\
         100 1.1 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>\n\
         101 1.2 read(3, \"\", 5) = 0\n\
         100 1.3 <... clone resumed>, child_tidptr=0x7f) = 101\n\
         101 1.4 exit_group(0) = ?\n\
         101 1.5 +++ exited with 0 +++\n\
         100 1.6 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=101} ---\n\
         100 1.7 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, exit_signal=0} => {parent_tid=[102]}, 88) = 102\n\
         102 1.8 close(3) = 0\n\
         102 1.9 exit(0) = ?\n\
         100 2.0 exit_group(0) = ?\n",
    );
    let told = lines(&finished);
    let bare: Vec<_> = told
        .iter()
        .map(|l| l.splitn(3, ' ').nth(2).unwrap_or_default())
        .collect();
    assert_eq!(
        bare,
        [
            "t1 open path=\"/f\" flags=O_RDWR mode=0000 = h1",
            "t1 clone child=t2 h1 = 0",
            "t2 read h1 size=5 = 0",
            "t2 exit h1 = 0",
            "t3 close h1 = 0",
        ]
    );
    assert_eq!(
        finished.sink.threads[2].process,
        finished.sink.threads[0].process
    );
    assert_eq!(reasons(&finished.ledger, false), [("signal", 1)]);
    assert_eq!(sum(&finished.ledger), 11);
}

#[test]
fn threads_without_numbers_are_known_by_who_is_left() {
    let finished = clean(
        "open(\"/f\", O_RDWR) = 3\n\
         clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLDProcess 101 attached\n , child_tidptr=0x1) = 101\n",
    );
    assert_eq!(sum(&finished.ledger), 3);
    let finished = clean(
        "open(\"/f\", O_RDWR) = 3\n\
         clone(child_stack=NULL, flags=SIGCHLD) = 101\n\
         strace: Process 101 attached\n\
         [pid   101] fsync(3) = 0\n\
         [pid   100] fsync(3) = 0\n\
         [pid   101] exit_group(0) = ?\n\
         [pid   101] +++ exited with 0 +++\n\
         close(3) = 0\n",
    );
    let threads: Vec<_> = finished
        .sink
        .calls
        .iter()
        .map(|call| call.thread.0)
        .collect();
    assert_eq!(threads, [1, 1, 2, 1, 2, 1]);
    assert_eq!(finished.sink.threads.len(), 2);
    assert_eq!(sum(&finished.ledger), 8);
}

#[test]
fn old_messages_in_the_middle_of_a_clone_are_read() {
    let finished = clean(
        "open(\"/f\", O_RDWR) = 3\n\
         clone(Process 101 attached\n\
         child_stack=0, flags=CLONE_FILES|SIGCHLD, child_tidptr=0x1) = 101\n\
         [pid 101] close(3) = 0\n\
         Process 101 detached\n",
    );
    assert_eq!(sum(&finished.ledger), 5);
    let calls = finished.sink.calls.len();
    assert_eq!((calls, finished.sink.threads.len()), (2, 2));
    assert_eq!(reasons(&finished.ledger, false), [("message of strace", 1)]);
}

#[test]
fn a_line_that_a_message_tore_is_whole_again() {
    let finished = clean(
        "open(\"/f\", O_RDWR) = 3\n\
         clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, exit_signal=0}strace: Process 101 attached\n \
         => {parent_tid=[101]}, 88) = 101 <0.000036>\n\
         [pid   101] close(3) = 0\n\
         [pid   100] vfork(strace: Process 102 attached\n \
         <unfinished ...>\n\
         [pid   102] exit_group(0) = ?\n\
         [pid   102] +++ exited with 0 +++\n\
         [pid   100] <... vfork resumed>)        = 102\n\
         [pid   100] futex(0x1, FUTEX_WAIT, 0strace: Process 103 attached\n\
         <unfinished ...>\n",
    );
    assert_eq!(sum(&finished.ledger), 11);
    assert_eq!(reasons(&finished.ledger, false), [("not about files", 1)]);
    let calls: Vec<_> = finished
        .sink
        .calls
        .iter()
        .map(|call| call.thread.0)
        .collect();
    assert_eq!(calls, [1, 2]);
}

#[test]
fn an_exec_by_another_thread_goes_on_under_the_first_number() {
    let finished = clean(
        "100 open(\"/f\", O_RDWR|O_CLOEXEC) = 3\n\
         100 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD|CLONE_FS) = 101\n\
         100 futex(0x1, FUTEX_WAIT, 1 <unfinished ...>\n\
         101 execve(\"/bin/true\", [\"true\"], 0x1 /* 1 var */ <pid changed to 100 ...>\n\
         100 +++ superseded by execve in pid 101 +++\n\
         100 <... execve resumed>) = 0\n\
         100 fsync(3) = -1 EBADF (Bad file descriptor)\n",
    );
    assert_eq!(
        reasons(&finished.ledger, false),
        [("not about files", 1), ("closed descriptor", 1)]
    );
    assert_eq!(sum(&finished.ledger), 7);
}

#[test]
fn a_header_says_what_strace_says() {
    let text: &[u8] =
        b"1700000000.000001 execve(\"/bin/a\", [\"a\", \"b c\\n\"], 0x1 /* 9 vars */) = 0\n";
    let header = Import::open(vec![Input::new("x", text)])
        .expect("strace")
        .header();
    assert_eq!(header.command, [&b"a"[..], b"b c\n"]);
    assert_eq!(header.clock.start_wall_ns, Some(1_700_000_000_000_001_000));
    assert_eq!(header.clock.resolution_ns, 1000);
}

#[test]
fn what_cannot_be_read_is_counted_and_told() {
    let mut text = b"sync() = 0\n".to_vec();
    let bad: [&[u8]; 12] = [
        b"read(3, \"abc",
        b"read(3",
        b"open(",
        b"hello",
        b"\0\0\xff(",
        b"<... read resumed>) = 0",
        b"read(3, \"\", 1) = x",
        b"99999999999999999999.1 sync() = 0",
        b"[pid 99999999999] sync() = 0",
        b"+++ what +++",
        b"a() b",
        b"read(3, \"\\",
    ];
    for line in bad {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.resize(text.len() + MAX_LINE_BYTES + 1, b'x');
    text.extend_from_slice(b"\nsync() = 0");
    let mut told = Vec::new();
    let import = Import::open(vec![Input::new("x", &text[..])]).expect("strace");
    let mut lines = 0;
    import
        .events(&mut |event| {
            lines += 1;
            if let iostep_model::syscall::raw::Action::LeftOut { name, reason } = event.action {
                told.push((name.into_owned(), reason));
            }
            Ok(())
        })
        .expect("all is counted");
    assert_eq!(lines, 15);
    assert_eq!(told.len(), 13);
    assert_eq!(told[0], (r#"x:2: read(3, \"abc"#.into(), "cannot be read"));
    assert_eq!(told[12], (String::new(), "line too long"));
}
