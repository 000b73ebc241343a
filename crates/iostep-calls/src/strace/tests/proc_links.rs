//! Files that are opened through what /proc says of a process.

use super::{clean, lines, reasons, sum};

/// The calls of a text of several threads, without times.
fn told(text: &str) -> Vec<String> {
    let finished = clean(text);
    assert_eq!(sum(&finished.ledger), text.lines().count() as u64);
    let lines = lines(&finished).into_iter();
    lines
        .map(|line| line.splitn(3, ' ').nth(2).unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn an_open_file_that_is_opened_again_is_the_same_file_with_a_position_of_its_own() {
    for (first, again) in [
        (
            "openat(AT_FDCWD, \"/d/f\", O_RDONLY|O_PATH) = 3",
            "/proc/self/fd/3",
        ),
        ("open(\"/d/f\", O_RDONLY) = 3", "/dev/fd/3"),
        ("open(\"/d/f\", O_RDWR) = 3", "/proc/thread-self/fd/3"),
        ("open(\"/d/f\", O_RDWR) = 3", "/proc/900/fd/3"),
        ("open(\"/d/f\", O_RDWR) = 3", "/proc/self/task/900/fd/3"),
        ("open(\"/d/f\", O_RDWR) = 3", "/proc/../proc/self/./fd//3"),
        ("dup2(5</d/f>, 0) = 0", "/dev/stdin"),
    ] {
        let text = format!(
            "900 {first}\n900 open(\"{again}\", O_RDWR|O_APPEND) = 4\n\
             900 pwrite64(4, \"\"..., 4096, 0) = 4096\n900 fdatasync(4) = 0\n900 close(4) = 0\n",
        );
        let told = told(&text);
        let [.., opened, written, synced, closed] = &told[..] else {
            panic!("{again}: {told:?}");
        };
        assert_eq!(
            opened, "t1 open h1 flags=O_RDWR|O_APPEND mode=0000 = h2",
            "{again}"
        );
        assert_eq!(written, "t1 pwrite64 h2 size=4096 offset=0 = 4096");
        assert_eq!([synced, closed], ["t1 fdatasync h2 = 0", "t1 close h2 = 0"]);
    }
}

#[test]
fn a_file_without_a_name_is_opened_again_and_linked() {
    assert_eq!(
        told(
            "1 open(\"/d\", O_RDWR|O_DIRECTORY|O_TMPFILE, 0600) = 3\n\
             1 openat(AT_FDCWD, \"/proc/self/fd/3\", O_RDONLY) = 4\n\
             1 linkat(AT_FDCWD, \"/proc/self/fd/3\", AT_FDCWD, \"/d/final\", AT_SYMLINK_FOLLOW) = 0\n\
             1 linkat(3, \"\", AT_FDCWD, \"/d/other\", AT_EMPTY_PATH) = 0\n",
        )[1..],
        [
            "t1 openat h1 flags=O_RDONLY mode=0000 = h2",
            "t1 linkat h1 to=\"/d/final\" flags=0x400 = 0",
            "t1 linkat h1 to=\"/d/other\" flags=0x1000 = 0",
        ]
    );
}

#[test]
fn calls_by_the_name_of_an_open_file_are_calls_on_it() {
    assert_eq!(
        told(
            "1 open(\"/d/f\", O_RDWR) = 3\n\
             1 stat(\"/proc/self/fd/3\", {st_mode=S_IFREG|0644, ...}) = 0\n\
             1 truncate(\"/dev/fd/3\", 77) = 0\n\
             1 chmod(\"/proc/self/fd/3\", 0600) = 0\n\
             1 chown(\"/proc/self/fd/3\", 0, 0) = 0\n\
             1 utimensat(AT_FDCWD, \"/proc/self/fd/3\", NULL, 0) = 0\n\
             1 access(\"/proc/self/fd/3\", R_OK) = 0\n\
             1 statfs(\"/proc/self/fd/3\", {f_type=EXT2_SUPER_MAGIC}) = 0\n",
        )[1..],
        [
            "t1 stat h1 = 0",
            "t1 truncate h1 size=77 = 0",
            "t1 chmod h1 mode=0600 = 0",
            "t1 chown h1 user=0 group=0 = 0",
            "t1 utimensat h1 = 0",
            "t1 access h1 mode=4 = 0",
            "t1 statfs h1 = 0",
        ]
    );
}

#[test]
fn directories_of_a_process_are_where_they_lead() {
    assert_eq!(
        told(
            "1 chdir(\"/d\") = 0\n\
             1 open(\"/proc/self/cwd/a\", O_RDWR) = 3\n\
             1 open(\"/proc/self/root/d/b\", O_RDWR) = 4\n\
             1 open(\"/e\", O_RDONLY|O_DIRECTORY) = 5\n\
             1 rename(\"/proc/self/fd/5/c\", \"/proc/1/cwd/c\") = 0\n\
             1 chdir(\"/proc/self/fd/5\") = 0\n\
             1 unlink(\"x\") = 0\n\
             1 chdir(\"/proc/self\") = 0\n\
             1 open(\"fd/3\", O_RDONLY) = 6\n\
             1 open(\"cwd/fd/3\", O_RDONLY) = 7\n",
        ),
        [
            "t1 open path=\"/d/a\" flags=O_RDWR mode=0000 = h1",
            "t1 open path=\"/d/b\" flags=O_RDWR mode=0000 = h2",
            "t1 open path=\"/e\" flags=O_RDONLY|O_DIRECTORY mode=0000 = h3",
            "t1 rename from=\"/e/c\" to=\"/d/c\" = 0",
            "t1 unlink path=\"/e/x\" = 0",
            "t1 open h1 flags=O_RDONLY mode=0000 = h4",
            "t1 open h1 flags=O_RDONLY mode=0000 = h5",
        ]
    );
}

#[test]
fn files_of_another_process_are_its_own() {
    assert_eq!(
        told(
            "1 open(\"/d/f\", O_RDWR) = 3\n1 chdir(\"/d\") = 0\n1 fork() = 2\n\
             2 close(3) = 0\n2 open(\"/d/g\", O_RDWR) = 3\n2 chdir(\"/e\") = 0\n\
             1 open(\"/proc/2/fd/3\", O_RDWR) = 4\n1 open(\"/proc/2/cwd/x\", O_RDONLY) = 5\n\
             2 open(\"/proc/1/task/1/fd/3\", O_RDWR) = 4\n",
        )[4..],
        [
            "t1 open h2 flags=O_RDWR mode=0000 = h3",
            "t1 open path=\"/e/x\" flags=O_RDONLY mode=0000 = h4",
            "t2 open h1 flags=O_RDWR mode=0000 = h5",
        ]
    );
}

#[test]
fn what_the_link_itself_is_asked_is_no_call_on_its_file() {
    let finished = clean(
        "1 open(\"/d/f\", O_RDWR) = 3\n\
         1 readlink(\"/proc/self/fd/3\", \"/d/f\", 100) = 4\n\
         1 lstat(\"/proc/self/fd/3\", {st_mode=S_IFLNK|0700, ...}) = 0\n\
         1 open(\"/proc/self/fd/3\", O_RDONLY|O_NOFOLLOW) = -1 ELOOP (Too many levels)\n\
         1 unlink(\"/proc/self/fd/3\") = -1 EPERM (Operation not permitted)\n\
         1 open(\"/proc/self/fd/9\", O_RDONLY) = -1 ENOENT (No such file or directory)\n\
         1 open(\"/proc/self/fdinfo/3\", O_RDONLY) = 4\n1 read(4, \"pos\", 10) = 3\n\
         1 open(\"/proc/77/fd/3\", O_RDONLY) = 5\n1 read(5, \"\", 10) = 3\n\
         1 pipe([6, 7]) = 0\n1 open(\"/dev/fd/6\", O_RDONLY) = 8\n1 read(8, \"\", 10) = 3\n\
         1 open(\"/dev/stdout\", O_WRONLY) = 9\n1 write(9, \"\", 10) = 3\n",
    );
    assert_eq!(lines(&finished).len(), 1);
    let mut left_out = reasons(&finished.ledger, false);
    left_out.sort_unstable();
    assert_eq!(
        left_out,
        [
            ("failed on a descriptor never opened", 1),
            ("kernel file", 6),
            ("link of /proc to another process", 2),
            ("pipe", 3),
            ("standard stream", 2),
        ]
    );
    assert_eq!(finished.initial.len(), 2, "nothing is concluded of /proc");
}

#[test]
fn a_descriptor_from_before_the_recording_gets_an_open_first() {
    let finished = clean("1 open(\"/dev/fd/7\", O_RDONLY) = 3\n1 read(3, \"\", 10) = 5\n");
    let told = lines(&finished);
    assert!(
        told[0].contains(" present path=\"/iostep.never-opened/"),
        "{told:?}"
    );
    assert!(told[1].contains(" open h1 flags=O_RDONLY"), "{told:?}");
    assert_eq!(
        reasons(&finished.ledger, true),
        [("call that needed an open", 1), ("call", 1)]
    );
}

#[test]
fn a_file_that_is_cut_or_read_through_its_link_tells_its_size() {
    use iostep_model::syscall::InitialKind;
    let size = |text: &str| match &clean(text).initial[..] {
        [.., file] => match file.kind {
            InitialKind::File { size, .. } => Some(size),
            _ => None,
        },
        [] => None,
    };
    let open = "1 open(\"/f\", O_RDONLY) = 3\n";
    let read = "1 read(4, \"\"..., 100) = 100\n";
    let again = |flags| format!("{open}1 open(\"/proc/self/fd/3\", {flags}) = 4\n{read}");
    assert_eq!(size(&again("O_RDWR")), Some(100));
    let cut = again("O_RDWR|O_TRUNC");
    assert_eq!(size(&cut), Some(0), "what was read was not there before");
}

#[test]
fn symbolic_links_into_proc_lead_where_proc_leads() {
    for (link, again) in [
        ("symlink(\"/proc/self/fd\", \"/d/fds\") = 0", "/d/fds/3"),
        ("symlink(\"/proc/self\", \"/d/me\") = 0", "/d/me/fd/3"),
        (
            "symlink(\"../proc/self/fd/3\", \"/d/three\") = 0",
            "/d/three",
        ),
        ("symlink(\"/dev/fd/3\", \"/d/three\") = 0", "/d/three"),
        (
            "readlink(\"/d/fds\", \"/proc/self/fd\", 100) = 13",
            "/d/./fds/3",
        ),
        (
            "symlinkat(\"/proc/self/cwd\", AT_FDCWD, \"/d/here\") = 0",
            "/d/here/../q/../../proc/self/fd/3",
        ),
    ] {
        let text = format!(
            "9 chdir(\"/d\") = 0\n9 open(\"/d/f\", O_RDWR) = 3\n9 {link}\n9 open(\"{again}\", O_RDWR) = 4\n",
        );
        let told = told(&text);
        assert_eq!(
            told.last().map(String::as_str),
            Some("t1 open h1 flags=O_RDWR mode=0000 = h2"),
            "{link}"
        );
    }
    let told = told(
        "9 chdir(\"/d\") = 0\n9 symlink(\"/proc/self/cwd\", \"here\") = 0\n\
         9 open(\"here/f\", O_RDWR) = 3\n9 symlink(\"/proc/meminfo\", \"memory\") = 0\n\
         9 open(\"memory\", O_RDONLY) = 4\n9 lstat(\"memory\", {}) = 0\n9 unlink(\"memory\") = 0\n",
    );
    assert_eq!(
        told,
        [
            "t1 symlink content=\"/proc/self/cwd\" path=\"/d/here\" = 0",
            "t1 open path=\"/d/f\" flags=O_RDWR mode=0000 = h1",
            "t1 symlink content=\"/proc/meminfo\" path=\"/d/memory\" = 0",
            "t1 lstat path=\"/d/memory\" nofollow = 0",
            "t1 unlink path=\"/d/memory\" = 0",
        ],
        "the link itself is a file"
    );
}

#[test]
fn a_changed_root_is_where_absolute_paths_begin() {
    assert_eq!(
        told(
            "9 chdir(\"/jail/d\") = 0\n9 chroot(\"..\") = 0\n9 open(\"/f\", O_RDWR) = 3\n\
             9 open(\"g\", O_RDWR) = 4\n9 chdir(\"/\") = 0\n9 open(\"h\", O_RDWR) = 5\n\
             9 open(\"/proc/self/fd/5\", O_RDWR) = 6\n9 open(\"dev/null\", O_RDWR) = 7\n\
             9 open(\"/proc/self/root/i\", O_RDWR) = 7\n9 chroot(\"/k\") = 0\n\
             9 open(\"/l\", O_RDWR) = 8\n9 chroot(\"/none\") = -1 ENOENT (No such file or directory)\n\
             9 open(\"/m\", O_RDWR) = 9\n9 fork() = 10\n10 unlink(\"/l\") = 0\n11 unlink(\"/l\") = 0\n",
        ),
        [
            "t1 open path=\"/jail/d/../f\" flags=O_RDWR mode=0000 = h1",
            "t1 open path=\"/jail/d/g\" flags=O_RDWR mode=0000 = h2",
            "t1 open path=\"/jail/d/../h\" flags=O_RDWR mode=0000 = h3",
            "t1 open h3 flags=O_RDWR mode=0000 = h4",
            "t1 open path=\"/jail/d/../i\" flags=O_RDWR mode=0000 = h5",
            "t1 open path=\"/jail/d/../k/l\" flags=O_RDWR mode=0000 = h6",
            "t1 open path=\"/jail/d/../k/m\" flags=O_RDWR mode=0000 = h7",
            "t1 clone child=t2 h1 h2 h3 h4 h5 h6 h7 = 0",
            "t2 unlink path=\"/jail/d/../k/l\" = 0",
            "t3 unlink path=\"/l\" = 0",
        ]
    );
}
