//! Texts as versions of strace since 4.5 write them, in the form that their sources print.

use super::{calls, clean, lines, reasons, sum};

/// strace 4.5 of a 32-bit program: names with 64, locks without `l_`, `_exit`, no word of a
/// thread's end, numbers where strace was older than the call.
const V4_5: &str = r#"
1234  12:00:00.000000 execve("/bin/app", ["app", "app.db"], [/* 17 vars */]) = 0 <0.000510>
1234  12:00:00.001000 brk(0)            = 0x8c5000 <0.000010>
1234  12:00:00.001100 old_mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0xb7f0a000 <0.000011>
1234  12:00:00.001200 open("/data/app.db", O_RDWR|O_CREAT|O_LARGEFILE, 0644) = 3 <0.000021>
1234  12:00:00.001300 fcntl64(3, F_SETFD, FD_CLOEXEC) = 0 <0.000005>
1234  12:00:00.001400 fstat64(3, {st_mode=S_IFREG|0644, st_size=8192, ...}) = 0 <0.000006>
1234  12:00:00.001500 _llseek(3, 4294967296, [4294967296], SEEK_SET) = 0 <0.000005>
1234  12:00:00.001600 read(3, "SQLite format 3\0\4\0\1\1\0@  \0\0\0\2"..., 100) = 100 <0.000009>
1234  12:00:00.001700 fcntl64(3, F_SETLK64, {type=F_WRLCK, whence=SEEK_SET, start=1073741824, len=1}, 0xbe8f5d10) = 0 <0.000004>
1234  12:00:00.001800 access("/data/app.db-journal", F_OK) = -1 ENOENT (No such file or directory) <0.000012>
1234  12:00:00.001900 mmap2(NULL, 4096, PROT_READ, MAP_SHARED, 3, 0x3) = 0xb7000000 <0.000012>
1234  12:00:00.002000 writev(3, [{"ab", 2}, {"c"..., 40}], 2) = 42 <0.000020>
1234  12:00:00.002100 SYS_295(0x3, 0xbe8f5d10, 0x1, 0, 0) = 4 <0.000020>
1234  12:00:00.002200 clone(child_stack=0, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, parent_tidptr=0xb7) = 1235 <0.000100>
1234  12:00:00.002400 fsync(3 <unfinished ...>
1235  12:00:00.002500 _exit(0)          = ?
1234  12:00:00.012600 <... fsync resumed> ) = 0 <0.010200>
1234  12:00:00.012700 --- SIGCHLD (Child exited) @ 0 (0) ---
1234  12:00:00.012800 ftruncate64(3, 0) = 0 <0.000030>
1234  12:00:00.012900 close(3)          = 0 <0.000010>
1234  12:00:00.013000 exit_group(0)     = ?
"#;

#[test]
fn version_4_5_of_a_32_bit_program() {
    let finished = clean(V4_5.trim_start());
    let expected = r#"
1200000 21000 t1 open path="/data/app.db" flags=O_RDWR|O_CREAT|O_LARGEFILE mode=0644 = h1
1400000 6000 t1 fstat h1 = 0
1500000 5000 t1 lseek h1 offset=4294967296 whence=set = 4294967296
1600000 9000 t1 read h1 size=100 = 100
1700000 4000 t1 fcntl h1 lock=1 of=process offset=1073741824 size=1 = 0
1800000 12000 t1 access path="/data/app.db-journal" mode=0 = -ENOENT
1900000 12000 t1 mmap h1 offset=12288 size=4096 protection=0x1 flags=0x1 = 0
2000000 20000 t1 writev h1 size=42 buffers=2 = 42
2400000 10200000 t1 fsync h1 = 0
12800000 30000 t1 ftruncate h1 size=0 = 0
12900000 10000 t1 close h1 = 0"#;
    assert_eq!(lines(&finished).join("\n"), expected.trim_start());
    assert_eq!(
        reasons(&finished.ledger, false),
        [
            ("not about files", 1),
            ("memory without a file", 1),
            ("call without a name", 1),
            ("signal", 1),
        ]
    );
    assert_eq!(sum(&finished.ledger), 21);
}

/// strace 4.8 of a running program, to a terminal, ended by Ctrl-C.
const V4_8: &str = r#"
Process 700 attached with 2 threads - interrupt to quit
[pid   701] futex(0xb7, FUTEX_WAIT_PRIVATE, 1, NULL <unfinished ...>
[pid   700] restart_syscall(<... resuming interrupted call ...>) = 0
[pid   700] open("/f", O_RDONLY|O_CLOEXEC) = 9
[pid   700] pread(9, "abc", 3, 2147483648) = 3
[pid   700] clone(Process 702 attached
child_stack=0, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0xb7) = 702
[pid   702] read(9, "", 16)             = 0
[pid   702] exit_group(0)               = ?
Process 702 detached
[pid   700] close(9)                    = 0
[pid   700] epoll_wait(5,  <unfinished ...>
Process 700 detached
Process 701 detached
"#;

#[test]
fn version_4_8_attached_to_a_program() {
    let text = V4_8.trim_start();
    assert_eq!(
        calls(text),
        [
            r#"open path="/f" flags=O_RDONLY|O_CLOEXEC mode=0000 = h1"#,
            "pread64 h1 size=3 offset=2147483648 = 3",
            "clone child=t2 h1 = 0",
            "read h1 size=16 = 0",
            "close h1 = 0",
            "exit h1 = 0",
        ]
    );
}

/// strace 5.10 with -yy, -xx and -X verbose.
const V5_10: &str = r#"
77 1700000000.000001 openat(AT_FDCWD</data/a>, "\x2f\x6c\x69\x62", O_RDONLY|O_CLOEXEC) = 3<\x2f\x6c\x69\x62> <0.000010>
77 1700000000.000101 access("\x72\x65\x6c", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
77 1700000000.000201 mmap(NULL, 8192, 0x1 /* PROT_READ */, 0x2 /* MAP_PRIVATE */, 3<\x2f\x6c\x69\x62>, 0x1000) = 0x7f0000000000 <0.000010>
77 1700000000.000301 read(0</dev/pts/1<char 136:1>>, "\x0a", 1) = 1 <0.000010>
77 1700000000.000401 sendto(4<UNIX:[1->2]>, "\x00", 1, 0, NULL, 0) = 1 <0.000010>
77 1700000000.000501 write(5</data/a/log (deleted)>, "\x0a", 1) = 1 <0.000010>
77 1700000000.000601 pwrite64(6</data/a/b\76\x3e>(deleted), "\x0a"..., 100, 8192) = 100 <0.000010>
77 1700000000.000701 +++ exited with 0 +++
"#;

#[test]
fn version_5_10_with_paths_behind_descriptors() {
    let text = V5_10.trim_start();
    assert_eq!(
        calls(text),
        [
            r#"openat path="/lib" flags=O_RDONLY|O_CLOEXEC mode=0000 = h1"#,
            r#"access path="/data/a/rel" mode=0 = -ENOENT"#,
            "mmap h1 offset=4096 size=8192 protection=0x1 flags=0x2 = 0",
            r#"present path="/data/a/log" flags=O_RDWR mode=0000 = h2"#,
            "write h2 size=1 = 1",
            r#"present path="/data/a/b>>" flags=O_RDWR mode=0000 = h3"#,
            "pwrite64 h3 size=100 offset=8192 = 100",
            "exit h1 h2 h3 = 0",
        ]
    );
}

#[test]
fn numbers_before_calls_are_skipped() {
    assert_eq!(
        calls(
            "77 1.0 [ 257] [00007f15fd2b3f3d] openat(AT_FDCWD, \"/f\", O_RDWR) = 3\n\
             77 1.1 [  74] [????????????????] fsync(3) = 0\n\
             \x20> /lib/x86_64-linux-gnu/libc.so.6(fsync+0x10) [0x11c0b0]\n"
        ),
        [
            r#"openat path="/f" flags=O_RDWR mode=0000 = h1"#,
            "fsync h1 = 0",
        ]
    );
}

#[test]
fn what_the_kernel_does_again_is_counted_once() {
    let finished = clean(
        "open(\"/f\", O_RDWR) = 3\n\
         fcntl(3, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=1}) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)\n\
         --- SIGALRM {si_signo=SIGALRM, si_code=SI_KERNEL} ---\n\
         rt_sigreturn({mask=[]}) = 72\n\
         fcntl(3, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=1}) = 0\n",
    );
    assert_eq!(finished.sink.calls.len(), 2);
    assert_eq!(
        reasons(&finished.ledger, false),
        [
            ("interrupted by a signal", 1),
            ("signal", 1),
            ("not about files", 1),
        ]
    );
}

#[test]
fn a_thread_that_leaves_early_takes_nothing_from_the_others() {
    let finished = clean(
        "100 open(\"/f\", O_RDWR) = 3\n\
         100 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 101\n\
         101 _exit(0) = ?\n\
         100 fsync(3) = 0\n\
         100 exit_group(0) = ?\n",
    );
    let told = lines(&finished);
    let bare: Vec<_> = told
        .iter()
        .filter_map(|line| line.splitn(3, ' ').nth(2))
        .collect();
    assert_eq!(
        bare,
        [
            "t1 open path=\"/f\" flags=O_RDWR mode=0000 = h1",
            "t1 fsync h1 = 0",
            "t1 exit h1 = 0",
        ]
    );
}

/// `strace -s 0` writes `[...]` for every array.
#[test]
fn two_descriptors_that_an_array_does_not_name_are_the_lowest_that_are_free() {
    let text = "execve(\"/bin/app\", [...], 0x1 /* 9 vars */) = 0\n\
        open(\"/f\", O_RDWR) = 3\nopen(\"/g\", O_RDWR) = 5\nclose(0) = 0\n\
        pipe2([...], O_CLOEXEC) = 0\n\
        socketpair(AF_UNIX, SOCK_STREAM, 0, [...]) = 0\n\
        read(0, \"\"..., 10) = 10\nwrite(4, \"\"..., 10) = 10\nwrite(7, \"\"..., 9) = 9\n\
        write(6, \"\"..., 9) = 9\nwrite(5, \"\"..., 8) = 8\npipe([...]) = -1 EMFILE (Too many open files)\n";
    let finished = clean(text);
    assert_eq!(
        reasons(&finished.ledger, true),
        [("followed", 1), ("call", 3)]
    );
    let left_out = reasons(&finished.ledger, false);
    assert!(left_out.contains(&("pipe", 4)), "{left_out:?}");
    // Of a process that was not seen from its beginning nobody knows what is free.
    let attached = text.split_once('\n').expect("lines").1;
    let made_up = ("call that needed an open", 3);
    let kept = clean(attached).ledger;
    assert!(reasons(&kept, true).contains(&made_up), "{kept:?}");
}
