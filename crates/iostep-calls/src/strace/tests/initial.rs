//! What lines tell of the beginning: sizes, types, and what errors mean.

use iostep_model::syscall::{Content, InitialKind};

use super::{Finished, Recording, clean, lines};

/// What was at each path, in the words of a trace without their order.
fn beginning(finished: &Finished<Recording>) -> Vec<String> {
    let text = |path| String::from_utf8_lossy(finished.paths.get(path)).into_owned();
    let each = finished.initial.iter().map(|file| {
        let what = match &file.kind {
            InitialKind::Absent => "absent".to_owned(),
            InitialKind::Directory => "directory".to_owned(),
            InitialKind::Fifo => "fifo".to_owned(),
            InitialKind::Socket => "socket".to_owned(),
            InitialKind::Device => "device".to_owned(),
            InitialKind::Symlink { content } => format!("-> {}", text(*content)),
            InitialKind::HardLink { of } => format!("is {}", text(*of)),
            InitialKind::File { size, content } => match content {
                Content::Data => size.to_string(),
                other => format!("{size} {other:?}"),
            },
        };
        let mode = file.mode.map(|mode| format!(" {mode:o}"));
        format!("{} {what}{}", text(file.path), mode.unwrap_or_default())
    });
    let mut all: Vec<String> = each.collect();
    all.sort();
    all
}

/// What a text says of the beginning, apart from the directory `/d` that is all it is about.
fn first(text: &str) -> Vec<String> {
    let mut found = beginning(&clean(text));
    found.retain(|line| line != "/d directory");
    found
}

const MIB: &str = "1048576";

#[test]
fn sizes_are_what_calls_told_before_the_file_was_written() {
    let open = "openat(AT_FDCWD, \"/d/f\", O_RDWR) = 3\n";
    let write = "pwrite64(3, \"aaaa\"..., 4096, 40960) = 4096\n";
    for asked in [
        "fstat(3, {st_mode=S_IFREG|0644, st_size=1048576, ...}) = 0\n",
        "fstat64(3, {st_mode=S_IFREG|0644, st_size=1048576, ...}) = 0\n",
        "newfstatat(3, \"\", {st_mode=S_IFREG|0644, st_size=1048576, ...}, AT_EMPTY_PATH) = 0\n",
        "statx(3, \"\", AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_ALL, {stx_mask=STATX_ALL|STATX_MNT_ID, stx_attributes=0, stx_mode=S_IFREG|0644, stx_size=1048576, ...}) = 0\n",
        "stat(\"/d/f\", {st_mode=S_IFREG|0644, st_size=1048576, ...}) = 0\n",
        "lstat(\"/d/f\", {st_mode=S_IFREG|0644, st_size=1048576, ...}) = 0\n",
    ] {
        // Before the file is written, and after.
        for text in [[open, asked, write], [open, write, asked]] {
            let told = first(&text.concat());
            assert_eq!(told, ["/d/f 1048576 644"], "{text:?}");
        }
    }
    for (what, told) in [
        ("lseek(3, 0, SEEK_END) = 1048576\n", MIB),
        ("lseek(3, -576, SEEK_END) = 1048000\n", MIB),
        ("_llseek(3, 0, [1048576], SEEK_END) = 0\n", MIB),
        ("lseek(3, 0, SEEK_HOLE) = 1048576\n", MIB),
        (
            "mmap(NULL, 1048576, PROT_READ, MAP_SHARED, 3, 0) = 0x7f00\n",
            MIB,
        ),
        (
            "mmap(NULL, 1044480, PROT_READ, MAP_SHARED, 3, 0x1000) = 0x7f00\n",
            MIB,
        ),
        // It ends where a read is short, or where the next one reads nothing.
        ("pread64(3, \"aa\"..., 4096, 1048000) = 576\n", MIB),
        (
            "read(3, \"aa\"..., 1048576) = 1048576\nread(3, \"\", 4096) = 0\n",
            MIB,
        ),
        // Behind the end nothing is told but that.
        ("pread64(3, \"\", 4096, 1048576) = 0\n", "0"),
        // The loader maps more than a file has.
        (
            "mmap(NULL, 1048576, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 3, 0) = 0x7f00\n",
            "0",
        ),
        // What the recording made so, was not so.
        (
            "ftruncate(3, 1048576) = 0\nlseek(3, 0, SEEK_END) = 1048576\n",
            "0",
        ),
    ] {
        let expected = [format!("/d/f {told}")];
        assert_eq!(first(&[open, what].concat()), expected, "{what}");
    }
}

#[test]
fn what_is_appended_is_not_part_of_the_first_size() {
    let open = "open(\"/d/f\", O_WRONLY|O_APPEND) = 3\nwrite(3, \"aaaa\"..., 100) = 100\n";
    for (asked, size) in [
        ("lseek(3, 0, SEEK_CUR) = 1048676\n", MIB),
        ("lseek(3, 0, SEEK_END) = 1048676\n", MIB),
        (
            "fstat(3, {st_mode=S_IFREG|0644, st_size=1048676, ...}) = 0\n",
            "1048576 644",
        ),
        (
            "write(3, \"b\", 1) = 1\nlseek(3, 0, SEEK_CUR) = 1048677\n",
            MIB,
        ),
        // All of it was appended.
        ("lseek(3, 0, SEEK_CUR) = 100\n", "0"),
    ] {
        let expected = [format!("/d/f {size}")];
        assert_eq!(first(&[open, asked].concat()), expected, "{asked}");
    }
}

#[test]
fn a_file_that_an_open_may_have_made_was_there_if_it_has_bytes_that_nobody_wrote() {
    let open = "open(\"/d/f\", O_RDWR|O_CREAT, 0644) = 3\n";
    let size = |bytes| format!("fstat(3, {{st_mode=S_IFREG|0644, st_size={bytes}, ...}}) = 0\n");
    assert_eq!(first(&[open, &size(5)].concat()), ["/d/f 5 644"]);
    assert_eq!(first(&[open, &size(0)].concat()), [""; 0]);
    let write = "write(3, \"aaaaa\", 5) = 5\n";
    assert_eq!(first(&[open, write, &size(5)].concat()), [""; 0]);
}

#[test]
fn types_are_what_calls_told() {
    let text = "\
stat(\"/d/e\", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0
newfstatat(AT_FDCWD, \"/d/e2\", {st_mode=S_IFDIR|S_ISVTX|0777, st_size=4096, ...}, 0) = 0
stat(\"/d/p\", {st_mode=S_IFIFO|0600, st_size=0, ...}) = 0
stat(\"/d/s\", {st_mode=S_IFSOCK|0600, st_size=0, ...}) = 0
stat(\"/d/b\", {st_mode=S_IFBLK|0600, st_rdev=makedev(0x8, 0), ...}) = 0
stat(\"/d/c\", {st_mode=S_IFCHR|0600, st_rdev=makedev(0x1, 0x3), ...}) = 0
stat(\"/d/x\", {st_mode=S_IFREG|S_ISUID|0755, st_size=9, ...}) = 0
stat(\"/d/n\", {st_mode=0100640, st_size=8, ...}) = 0
stat(\"/d/h\", {st_mode=S_IFREG|0644, st_nlink=1, st_blocks=0, st_size=1048576, ...}) = 0
stat(\"/d/t\", {st_mode=S_IFREG|0644, st_blocks=16, st_size=1048576, ...}) = 0
";
    let expected = [
        "/d/b device",
        "/d/c device",
        "/d/e directory",
        "/d/e2 directory",
        "/d/h 1048576 Hole 644",
        "/d/n 8 640",
        "/d/p fifo",
        "/d/s socket",
        "/d/t 1048576 Sparse(8192) 644",
        "/d/x 9 4755",
    ];
    assert_eq!(first(text), expected);
}

#[test]
fn a_fifo_that_was_told_of_is_no_file() {
    let text = "\
stat(\"/d/p\", {st_mode=S_IFIFO|0600, st_size=0, ...}) = 0
open(\"/d/p\", O_RDONLY) = 3
read(3, \"a\", 4096) = 1
close(3) = 0
";
    let finished = clean(text);
    assert_eq!(beginning(&finished), ["/d directory", "/d/p fifo"]);
    assert_eq!(finished.sink.calls.len(), 1);
}

#[test]
fn a_links_length_is_known_before_its_words() {
    let lstat = "lstat(\"/d/l\", {st_mode=S_IFLNK|0777, st_size=7, ...}) = 0\n";
    assert_eq!(first(lstat), ["/d/l -> ~~~~~~0"]);
    // Who follows it finds what it leads to.
    let through = "stat(\"/d/l/x\", {st_mode=S_IFREG|0644, st_size=3, ...}) = 0\n";
    let expected = [
        "/d/l -> ~~~~~~0",
        "/d/~~~~~~0 directory",
        "/d/~~~~~~0/x 3 644",
    ];
    assert_eq!(first(&[lstat, through].concat()), expected);
    let read = "readlink(\"/d/l\", \"target7\", 4096) = 7\n";
    let expected = [
        "/d/l -> target7",
        "/d/target7 directory",
        "/d/target7/x 3 644",
    ];
    for text in [
        [lstat, through, read].concat(),
        [lstat, read, through].concat(),
        [through, lstat, read].concat(),
        [through, read, lstat].concat(),
    ] {
        assert_eq!(first(&text), expected, "{text}");
    }
    // What was found by two names, through the link and past it, is one.
    let past = "\
stat(\"/d/target7/x\", {st_mode=S_IFREG|0644, st_size=3, ...}) = 0
stat(\"/d/target7/e/y\", {st_mode=S_IFREG|0644, st_size=4, ...}) = 0
stat(\"/d/l/e/z\", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0
";
    let expected = [
        "/d/l -> target7",
        "/d/target7 directory",
        "/d/target7/e directory",
        "/d/target7/e/y 4 644",
        "/d/target7/e/z 5 644",
        "/d/target7/x 3 644",
    ];
    for text in [
        [through, past, lstat, read].concat(),
        [past, lstat, through, read].concat(),
        [lstat, past, through, read].concat(),
    ] {
        assert_eq!(first(&text), expected, "{text}");
    }
    // One that leads nowhere is there all the same.
    let nowhere = "stat(\"/d/l\", 0x7ffc) = -1 ENOENT (No such file or directory)\n";
    assert_eq!(first(&[nowhere, lstat, read].concat()), ["/d/l -> target7"]);
    assert_eq!(
        first(&[lstat, nowhere, read].concat())[0],
        "/d/l -> target7"
    );
}

#[test]
fn names_of_one_file_are_known_by_its_number() {
    let text = "\
stat(\"/d/a\", {st_dev=makedev(0xfe, 0), st_ino=7, st_mode=S_IFREG|0644, st_nlink=2, st_size=5, ...}) = 0
statx(AT_FDCWD, \"/d/b\", 0, STATX_ALL, {stx_mask=STATX_ALL, stx_nlink=2, stx_mode=S_IFREG|0644, stx_ino=7, stx_size=5, stx_dev_major=254, stx_dev_minor=0}) = 0
stat(\"/d/c\", {st_dev=makedev(0xfe, 0x1), st_ino=7, st_mode=S_IFREG|0644, st_nlink=2, st_size=6, ...}) = 0
stat(\"/d/e\", {st_dev=makedev(0xfe, 0), st_ino=7, st_mode=S_IFREG|0644, st_nlink=1, st_size=5, ...}) = 0
";
    let expected = ["/d/a 5 644", "/d/b is /d/a", "/d/c 6 644", "/d/e 5 644"];
    assert_eq!(first(text), expected);
}

#[test]
fn a_directorys_entries_were_there() {
    let text = "\
openat(AT_FDCWD, \"/d\", O_RDONLY|O_DIRECTORY) = 3
getdents64(3, [{d_ino=2, d_off=1, d_reclen=24, d_type=DT_DIR, d_name=\".\"}, {d_ino=5, d_off=2, d_reclen=24, d_type=DT_REG, d_name=\"f\"}, {d_ino=6, d_off=3, d_reclen=24, d_type=DT_DIR, d_name=\"e\"}, {d_ino=7, d_off=4, d_reclen=24, d_type=DT_LNK, d_name=\"l\"}], 32768) = 96
";
    assert_eq!(
        first(text),
        ["/d/e directory", "/d/f 0", "/d/l -> ~~~~~~~0"]
    );
}

/// An error, and what it tells of `/d`.
fn tells(line: &str, expected: &[&str]) {
    let text = format!("stat(\"/d\", {{st_mode=S_IFDIR|0755, st_size=9, ...}}) = 0\n{line} (x)\n");
    assert_eq!(first(&text), expected, "{line}");
}

#[test]
fn errors_tell_what_was_there() {
    for (line, expected) in [
        (
            "readlink(\"/d/f\", 0x7ffc, 4096) = -1 EINVAL",
            &["/d/f 0"][..],
        ),
        ("stat(\"/d/f/x\", 0x7ffc) = -1 ENOTDIR", &["/d/f 0"]),
        (
            "open(\"/d/f/x\", O_RDWR|O_CREAT, 0644) = -1 ENOTDIR",
            &["/d/f 0"],
        ),
        (
            "open(\"/d/f\", O_RDONLY|O_DIRECTORY) = -1 ENOTDIR",
            &["/d/f 0"],
        ),
        ("stat(\"/d/f/\", 0x7ffc) = -1 ENOTDIR", &["/d/f 0"]),
        ("chdir(\"/d/f\") = -1 ENOTDIR", &["/d/f 0"]),
        ("rmdir(\"/d/f\") = -1 ENOTDIR", &["/d/f 0"]),
        ("mkdir(\"/d/f/x\", 0755) = -1 ENOTDIR", &["/d/f 0"]),
        (
            "rmdir(\"/d/e\") = -1 ENOTEMPTY",
            &["/d/e directory", "/d/e/iostep.entry 0"],
        ),
    ] {
        tells(line, expected);
    }
}

#[test]
fn errors_of_calls_on_names_and_of_opens_tell_what_was_there() {
    for (line, expected) in [
        (
            "rename(\"/d/a\", \"/d/e\") = -1 ENOTEMPTY",
            &["/d/a directory", "/d/e directory", "/d/e/iostep.entry 0"][..],
        ),
        (
            "rename(\"/d/a\", \"/d/e\") = -1 EISDIR",
            &["/d/a 0", "/d/e directory"],
        ),
        ("rename(\"/d/a\", \"/d/b\") = -1 ENOENT", &["/d/a absent"]),
        (
            "link(\"/d/a\", \"/d/b\") = -1 EEXIST",
            &["/d/a 0", "/d/b 0"],
        ),
        ("link(\"/d/a\", \"/d/b\") = -1 ENOENT", &["/d/a absent"]),
        ("symlink(\"x\", \"/d/l\") = -1 EEXIST", &["/d/l 0"]),
        ("mkdir(\"/d/e\", 0755) = -1 EEXIST", &["/d/e directory"]),
        (
            "open(\"/d/f\", O_RDWR|O_CREAT|O_EXCL, 0644) = -1 EEXIST",
            &["/d/f 0"],
        ),
        ("open(\"/d/e\", O_WRONLY) = -1 EISDIR", &["/d/e directory"]),
        ("unlink(\"/d/e\") = -1 EISDIR", &["/d/e directory"]),
        (
            "open(\"/d/l\", O_RDONLY|O_NOFOLLOW) = -1 ELOOP",
            &["/d/l -> ~~~~~~~0"],
        ),
        ("stat(\"/d/l\", 0x7ffc) = -1 ELOOP", &["/d/l -> l"]),
        (
            "open(\"/d/p\", O_WRONLY|O_NONBLOCK) = -1 ENXIO",
            &["/d/p fifo"],
        ),
        ("open(\"/d/s\", O_RDWR) = -1 ENXIO", &["/d/s socket"]),
        ("open(\"/d/x\", O_WRONLY) = -1 ETXTBSY", &["/d/x 0 755"]),
        ("access(\"/d/x\", X_OK) = -1 EACCES", &["/d/x 0 644"]),
        ("access(\"/d/x\", X_OK) = 0", &["/d/x 0 755"]),
        (
            "faccessat2(AT_FDCWD, \"/d/x\", R_OK|X_OK, AT_EACCESS) = 0",
            &["/d/x 0 755"],
        ),
        ("unlink(\"/d/f\") = -1 EPERM", &["/d/f 0"]),
        ("open(\"/d/f\", O_RDWR) = -1 EROFS", &["/d/f 0"]),
        ("stat(\"/d/n\", 0x7ffc) = -1 ENOENT", &["/d/n absent"]),
    ] {
        tells(line, expected);
    }
}

#[test]
fn an_emptied_directory_had_what_was_taken_out_of_it() {
    let text = "\
rmdir(\"/d/e\") = -1 ENOTEMPTY (Directory not empty)
unlink(\"/d/e/f\") = 0
rmdir(\"/d/e\") = 0
";
    assert_eq!(first(text), ["/d/e directory", "/d/e/f 0"]);
    // Somebody else emptied it.
    let text = "rmdir(\"/d/e\") = -1 ENOTEMPTY (Directory not empty)\nrmdir(\"/d/e\") = 0\n";
    assert_eq!(first(text), ["/d/e directory"]);
}

#[test]
fn what_the_recording_did_itself_tells_nothing_of_the_beginning() {
    let text = "\
mkdir(\"/d/e\", 0755) = 0
open(\"/d/e/f\", O_RDWR|O_CREAT|O_TRUNC, 0755) = 3
ftruncate(3, 99) = 0
fstat(3, {st_mode=S_IFREG|0755, st_size=99, ...}) = 0
rmdir(\"/d/e\") = -1 ENOTEMPTY (Directory not empty)
stat(\"/d/e/f/x\", 0x7ffc) = -1 ENOTDIR (Not a directory)
symlink(\"f\", \"/d/e/l\") = 0
lstat(\"/d/e/l\", {st_mode=S_IFLNK|0777, st_size=1, ...}) = 0
chmod(\"/d/old\", 0755) = 0
stat(\"/d/old\", {st_mode=S_IFREG|0755, st_size=1, ...}) = 0
";
    assert_eq!(first(text), ["/d/e absent", "/d/old 1"]);
}

/// Whatever a text says, each path is said once, nothing is in what is no directory, and directories
/// have no further names.
#[test]
fn what_contradicts_itself_can_be_made_all_the_same() {
    for text in [
        "mkdir(\"/d/e\", 0755) = -1 EEXIST (x)\nrmdir(\"/d/e\") = -1 ENOTEMPTY (x)\nstat(\"/d/e\", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\n",
        "stat(\"/d/e/x\", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\nstat(\"/d/e\", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\n",
        "stat(\"/d/e\", {st_dev=makedev(0x8, 0), st_ino=1, st_mode=S_IFREG|0644, st_nlink=2, st_size=1, ...}) = 0\nstat(\"/d/h\", {st_dev=makedev(0x8, 0), st_ino=1, st_mode=S_IFREG|0644, st_nlink=2, st_size=1, ...}) = 0\nstat(\"/d/e/x\", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\n",
        "lstat(\"/d/e\", {st_mode=S_IFLNK|0777, st_size=1, ...}) = 0\nstat(\"/d/e/x\", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\nreadlink(\"/d/e\", \"e\", 99) = 1\n",
    ] {
        let finished = clean(text);
        let path = |id| finished.paths.get(id);
        let kind_of = |wanted: &[u8]| {
            let mut all = finished.initial.iter();
            all.find(|file| path(file.path) == wanted)
                .map(|file| file.kind.clone())
        };
        for (at, file) in finished.initial.iter().enumerate() {
            let again = finished.initial[at + 1..]
                .iter()
                .any(|other| other.path == file.path);
            assert!(!again, "{text}");
            let above = path(file.path)
                .iter()
                .rposition(|byte| *byte == b'/')
                .unwrap_or(0);
            if file.kind != InitialKind::Absent && above > 0 {
                let parent = kind_of(&path(file.path)[..above]);
                assert_eq!(parent, Some(InitialKind::Directory), "{text}");
            }
            if let InitialKind::HardLink { of } = file.kind {
                let is_file = matches!(kind_of(path(of)), Some(InitialKind::File { .. }));
                assert!(is_file, "{text}");
            }
        }
    }
}

/// A file that was open before has the position that a call tells, from that call on.
#[test]
fn the_position_of_a_file_that_was_open_before_is_what_calls_tell() {
    let seeks = |text: &str| -> Vec<String> {
        let lines = lines(&clean(text)).into_iter();
        let told = lines.map(|line| line.splitn(3, ' ').nth(2).unwrap_or_default().to_owned());
        told.skip(1).collect()
    };
    assert_eq!(
        seeks(
            "9 write(3</f>, \"\"..., 100) = 100\n9 lseek(3</f>, 0, SEEK_CUR) = 5100\n9 write(3</f>, \"\"..., 100) = 100\n"
        ),
        [
            "t1 write h1 size=100 = 100",
            "t1 present h1 offset=5100 whence=set = 5100",
            "t1 lseek h1 offset=0 whence=cur = 5100",
            "t1 write h1 size=100 = 100",
        ]
    );
    assert_eq!(
        seeks("9 lseek(3</f>, -10, SEEK_CUR) = 90\n")[0],
        "t1 present h1 offset=100 whence=set = 100"
    );
    // The end is told, and the read that reached it began so far before.
    let ends = "9 fstat(3</f>, {st_mode=S_IFREG|0644, st_size=10000, ...}) = 0\n";
    for (read, at) in [("4096) = 1808", 8192), ("4096) = 0", 10_000)] {
        let text = format!("{ends}9 read(3</f>, \"\"..., {read}\n");
        let expected = format!("t1 present h1 offset={at} whence=set = {at}");
        assert_eq!(seeks(&text)[1], expected);
    }
    // It is where it would be without a word.
    for text in [
        "9 read(3</f>, \"\"..., 100) = 100\n9 lseek(3</f>, 0, SEEK_CUR) = 100\n",
        "9 lseek(3</f>, 70, SEEK_SET) = 70\n9 lseek(3</f>, 0, SEEK_CUR) = 70\n",
        "9 open(\"/f\", O_RDWR) = 3\n9 read(3, \"\"..., 100) = 100\n9 lseek(3, 0, SEEK_CUR) = 200\n",
    ] {
        let told = seeks(text);
        assert!(
            told.iter().all(|line| !line.contains("present")),
            "{told:?}"
        );
    }
}
