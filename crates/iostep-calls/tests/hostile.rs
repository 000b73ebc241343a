//! Foreign text that nobody meant: events or an error, never a panic, and every line counted.

#[path = "../../../fuzz/entries/mangle.rs"]
mod mangle;
#[path = "../../../fuzz/entries/mobigen.rs"]
mod mobigen;
#[path = "../../../fuzz/entries/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/entries/strace.rs"]
mod strace;

use mangle::mangle;
use mutate::Random;

/// Every kind of line, with descriptors that are used again.
const SCRIPT: &str = "\
0 0 open /data/data O_WRONLY|O_CREAT|O_TRUNC|O_LARGEFILE 36
0 0 write 36 4
9 1256 open data/data O_RDWR|O_CREAT|O_LARGEFILE 43
9 1257 pwrite 43 4294967296 4096
3 1300 open \"/data/a/b\" O_RDONLY 36
3 1301 read 36 100
3 1302 unlink \"/data/a/b\" 0
3 1303 stat64 \"/data/a/../a/b\" -1
0 1304 openat / \"/data/a/b\" 44
0 1305 fsync 44 0
0 1306 close 44 0
0 1307 pread 44 -1 9223372036854775807
1 1308 access \"/data/a\" 0
1 1309 lstat64 \"/data/\\303\\244\" 0
1 1310 open dev/binder O_RDWR 12
";

#[test]
fn mobigen_scripts() {
    mobigen::run(SCRIPT.as_bytes());
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut script = mangle(SCRIPT.as_bytes().to_vec(), &mut random);
        if seed % 3 == 0 {
            script = mangle(script, &mut random);
        }
        mobigen::run(&script);
    }
}

/// Every form that lines have, and calls that the forms' own tests know.
const STRACE: [&str; 4] = [
    "100 1700000000.000001 execve(\"/bin/a\", [\"a\"], 0x1 /* 9 vars */) = 0 <0.000100>
100 1700000000.000200 openat(AT_FDCWD</here>, \"f\", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 3</here/f> <0.000010>
100 1700000000.000300 clone(child_stack=NULL, flags=CLONE_FILES|SIGCHLD <unfinished ...>
101 1700000000.000400 read(3</here/f>,  <unfinished ...>
100 1700000000.000500 <... clone resumed>, child_tidptr=0x7f) = 101 <0.000200>
101 1700000000.000600 <... read resumed>\"abc\"..., 4096) = 100 <0.000200>
101 1700000000.000700 pwritev(3, [{iov_base=\"ab\", iov_len=2}, ...], 40, 8) = 400 <0.000001>
101 1700000000.000800 exit_group(0) = ?
101 1700000000.000900 +++ exited with 0 +++
100 1700000000.001000 --- SIGCHLD {si_signo=SIGCHLD, si_pid=101} ---
100 1700000000.001100 close(3</here/f>) = 0 <0.000001>
100 1700000000.001200 fsync(3 <unfinished ...>) = ?
100 1700000000.001300 +++ killed by SIGKILL +++
",
    "open(\"/f\", O_RDWR) = 3
clone(Process 101 attached
child_stack=0, flags=CLONE_FILES|SIGCHLD, child_tidptr=0x1) = 101
[pid   101] mmap2(NULL, 4096, PROT_READ, MAP_SHARED, 3, 0x3) = 0xb7000000
[pid   100] mremap(0xb7000000, 4096, 8192, MREMAP_MAYMOVE) = 0xb7100000
[pid   100] munmap(0xb7100000, 4096) = 0
[pid   100] readlinkat(3, \"l\", \"to\\303\", 40) = 3
[pid   101] dup2(3, 4) = 4
[pid   101] fcntl64(4, F_SETLKW64, {type=F_RDLCK, whence=SEEK_SET, start=0, len=0}, 0xbf) = 0
Process 101 detached
restart_syscall(<... resuming interrupted read ...>) = 1
close_range(3, 4294967295, 0) = 0
",
    "23:59:59.999999 [ 257] [00007f0000000000] openat(3<\\x2f\\x66>, \"\\x61\", 0x241 /* O_RDWR */, 0666) = 5
00:00:00 (+     0.000100) read(5, \"a\\\"b), = 1\\0\\377\", 7) = ? ERESTARTSYS (To be restarted)
00:00:01 _llseek(5, 4294967296, [4294967296], SEEK_SET) = 0
00:00:02 rename(\"a\"..., \"b\") = -1 EXDEV (Invalid cross-device link)
00:00:03 execve(\"/a\", [], 0x1 <pid changed to 7 ...>
7 00:00:04 +++ superseded by execve in pid 8 +++
7 00:00:05 <... execve resumed>) = 0
",
    "     0.000100 ioctl(3, _IOC(_IOC_READ|_IOC_WRITE, 0x62, 0x1, 0x30), 0xbe) = 0
     0.000025 vfork(strace: Process 102 attached
 <unfinished ...>
",
];

#[test]
fn texts_of_strace() {
    let all = STRACE.concat().into_bytes();
    strace::run(&all);
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut text = match seed % 4 {
            0 => all.clone(),
            _ => STRACE[random.below(STRACE.len())].as_bytes().to_vec(),
        };
        for _ in 0..1 + seed % 3 {
            text = mangle(text, &mut random);
        }
        strace::run(&text);
    }
}

/// Halves without their other half, threads that nobody made, ends of what goes on.
#[test]
fn lines_of_strace_in_any_order() {
    let all = STRACE.concat();
    let lines: Vec<&str> = all.split_inclusive('\n').collect();
    let threads = ["100", "101", "7", "[pid 100]", "[pid   103]", ""];
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut text = String::new();
        for _ in 0..1 + random.below(14) {
            let line = lines[random.below(lines.len())];
            let before = |c: char| c.is_ascii_digit() || " .:[]()+pid".contains(c);
            match random.below(3) {
                0 => text += line,
                kind => {
                    text += threads[random.below(threads.len())];
                    text += [" ", " 1700000000.5 "][kind - 1];
                    text += line.trim_start_matches(before);
                }
            }
        }
        let mut text = text.into_bytes();
        if seed % 3 == 0 {
            text = mangle(text, &mut random);
        }
        strace::run(&text);
    }
}
