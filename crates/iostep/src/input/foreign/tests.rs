use super::*;

/// The first words of what a text is said to be.
fn named(text: &[u8]) -> Option<&'static str> {
    of_calls(text)
        .or_else(|| of_others(text))
        .map(|known| known.what)
}

/// Beginnings of what tools write, and a word of what they are said to be.
const KNOWN: [(&str, &str); 39] = [
    (
        "128166372003061629,hm,0,Read,383496192,32768,413\n128166372016382155,hm,1,Write,310983680,4096,579\n",
        "MSR Cambridge",
    ),
    (
        "Timestamp,Response,IOType,LUN,Offset,Size\n1455592980.51,0.000324,W,0,23448064,4096\n1455592981,,R,0,0,512\n",
        "SYSTOR",
    ),
    (
        "0,20941264,8192,W,0.551706\n0,20939840,8192,r,0.554041,1\n",
        "SPC",
    ),
    (
        "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360974\n",
        "Alibaba",
    ),
    (
        "1538323200,12910952,128,0,1063\n1538323200,6338688,8,1,1627\n",
        "Tencent",
    ),
    (
        "89966405734 4892 syslogd 904265560 8 W 6 0 531e779b9bd5\n",
        "FIU",
    ),
    ("0.000000 0 126 8 0\n1.5 0 134 8 1\n", "DiskSim"),
    (
        "TIME(s)     COMM           PID     DISK    T SECTOR     BYTES  LAT(ms)\n0.000000    jbd2/sda-8 260 sda W 1024 4096 0.4\n",
        "biosnoop",
    ),
    (
        "Tracing...\nTIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)\n",
        "biosnoop",
    ),
    (
        "__libc_start_main([ \"ls\" ] <unfinished ...>\nstrlen(\"abc\")    = 3\n",
        "ltrace",
    ),
    (
        "[pid 12] fopen(\"a\", \"r\")                 = 0x55\n",
        "ltrace",
    ),
    (
        "ls->strlen(\"a\") = 1\nls->free(0x1) = <void>\n+++ exited (status 0) +++\n",
        "ltrace",
    ),
    ("SYS_openat(0xffffff9c, 0x7f, 0x80000, 0)   = 3\n", "ltrace"),
    (
        "     0.000 ( 0.004 ms): cat/1234 openat(dfd: CWD, filename: \"/etc/passwd\") = 3\n",
        "perf trace",
    ),
    (
        "         ? (         ): cat/1234  ... [continued]: read()) = 0\n     0.010 (         ): cat/1 read(fd: 3) ...\n",
        "perf trace",
    ),
    (
        "1 13:25:50.123456789 0 cat (1234) > open \n2 13:25:50.123456799 0 cat (1234) < open fd=3(<f>/etc/passwd)\n",
        "sysdig",
    ),
    ("cat(1234): RO /etc/passwd\nsh(7): CW /tmp/a b\n", "fatrace"),
    (
        "Linux 6.1.0 (host)  01/01/24\n\nDevice   tps    kB_read/s\nsda 1 2\n",
        "iostat",
    ),
    (
        "Linux 5.4.0 (host) 01/01/20 _x86_64_ (4 CPU)\n\n12:00:01  DEV  tps  rkB/s\n12:00:02 dev8-0 1.00 0.00\n",
        "sar",
    ),
    (
        "Attaching 4 probes...\nTIME(ms)     DISK    COMM             PID    LAT(ms)\n611 nvme0n1 bash 4179 10\n",
        "biosnoop",
    ),
    (
        "Tracing block I/O. Ctrl-C to end.\nCOMM PID TYPE DEV BLOCK BYTES LATms\na 1809 W 202,1 17039968 4096 1.32\n",
        "iosnoop",
    ),
    (
        "==================== All Devices ====================\n\n            ALL           MIN           AVG           MAX           N\n",
        "btt",
    ),
    (
        "Attaching 3 probes...\n@bytes[kworker/u16:1]: \n",
        "bpftrace",
    ),
    ("Attached 1 probe\n@a: 1\n", "bpftrace"),
    (
        "[15:36:24.123456789] (+?.?????????) host block_rq_insert: { cpu_id = 0 }, { dev = 8388608 }\n",
        "babeltrace",
    ),
    ("/* CTF 1.8 */\n", "CTF"),
    (
        "type=SYSCALL msg=audit(1364481363.243:24287): arch=c000003e syscall=2 success=no\n",
        "auditd",
    ),
    (
        "execve(\"/usr/bin/ls\", 0x08047E30, 0x08047E38)  argc = 1\nopen(\"/a\", O_RDONLY)             Err#2 ENOENT\n",
        "truss",
    ),
    (
        "\tPID/THRD  SYSCALL(args) \t\t = return\n 1234/0x1:  open(\"/etc/passwd\\0\", 0x0, 0x1B6)\t\t = 3 0\n",
        "dtruss",
    ),
    (
        "  1234 ls       CALL  open(0x800a3c000,0<O_RDONLY>,0)\n",
        "kdump",
    ),
    (
        "% time     seconds  usecs/call     calls    errors syscall\n------ ----------- -----------\n",
        "strace -c",
    ),
    (
        "# tracer: nop\n#\n# nop latency trace v1.1.5 on 6.1.0\n",
        "latency format",
    ),
    ("\x7fELF\x02\x01\x01\0", "a program"),
    ("<!DOCTYPE html>\n<html>\n", "web page"),
    ("BeginHeader\n", "ETW"),
    ("PERFILE2\0\0", "perf"),
    ("\x17\x08\x44tracing6\0", "trace-cmd"),
    ("PK\x03\x04", "zip"),
    ("BZh91AY", "bzip2"),
];

#[test]
fn every_known_format_is_named() {
    for (text, what) in KNOWN {
        let found = named(text.as_bytes());
        assert!(
            found.is_some_and(|found| found.contains(what)),
            "{what}: {found:?}"
        );
    }
    for magic in [&b"\xd4\xc3\xb2\xa1\x02\0"[..], b"\x0a\x0d\x0d\x0a"] {
        assert_eq!(named(magic), Some("packets (pcap)"));
    }
    for (is_big, iconv) in [(false, "UTF-16LE"), (true, "UTF-16BE")] {
        let units = "900 1700000001.0 close(3) = 0\n".encode_utf16();
        let text: Vec<u8> = match is_big {
            true => units.flat_map(u16::to_be_bytes).collect(),
            false => units.flat_map(u16::to_le_bytes).collect(),
        };
        let way_on = of_others(&text).map_or("", |known| known.way_on);
        assert!(way_on.contains(iconv), "{way_on}");
    }
    assert!(named(b"\xfd7zXZ\0\0").is_some_and(|what| what.contains("xz")));
}

#[test]
fn what_iostep_reads_is_nobody_elses() {
    for text in [
        "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n",
        "1234  12:00:00.001600 read(3, \"\", 100) = 100 <0.000009>\n",
        "1700000000.000001 openat(AT_FDCWD, \"/usr/lib/libc.so.6\", O_RDONLY) = 3 <0.000009>\n",
        "execve(\"/bin/malloc\", [\"malloc\"], 0x7ffc /* 20 vars */) = 0\n",
        "[pid 7] write(1, \"ls->free(0)\", 11) = 11\n+++ exited with 0 +++\n",
        "0 12 open \"/data/a\" O_RDONLY 3\n",
        "fio version 3 iolog\n19 /dev/sdb add\n",
        "# iostep system calls 1\n",
        "SQLite format 3\0",
        "1234  1700000000.0 write(1, \"x) Err#2 EIO\", 6) = 6\n7 1700000000.1 close(3) = 0\n",
        "hello, world\n",
        "1,2,3,4\n",
        "1 2 3 4 5\n",
        "",
    ] {
        assert_eq!(named(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn a_way_on_is_told_for_each() {
    for known in OF_CALLS.iter().chain(&OTHERS) {
        assert!(
            known.way_on.len() > 20 && !known.way_on.ends_with('.'),
            "{}",
            known.what
        );
    }
}

#[test]
fn any_bytes_have_an_answer() {
    let mut state = 1u64;
    for length in 0..400 {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                b"0123,. ():<>-RWabc\n\xff+"[(state >> 33) as usize % 21]
            })
            .collect();
        let _ = named(&bytes);
    }
}
