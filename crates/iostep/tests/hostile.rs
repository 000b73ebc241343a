//! Everything that reads bytes from outside, over bytes that nobody meant: an error or a value,
//! never a panic, never without an end. `fuzz/` looks for more with the same functions.

#[path = "../../../fuzz/entries/bench_result.rs"]
mod bench_result;
#[path = "../../../fuzz/entries/blkparse.rs"]
mod blkparse;
#[path = "../../../fuzz/entries/ext4_layout.rs"]
mod ext4_layout;
#[path = "../../../fuzz/entries/job_file.rs"]
mod job_file;
#[path = "../../../fuzz/entries/lab.rs"]
mod lab;
#[path = "../../../fuzz/entries/lab_results.rs"]
mod lab_results;
#[path = "../../../fuzz/entries/mangle.rs"]
mod mangle;
#[path = "../../../fuzz/entries/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/entries/partial.rs"]
mod partial;
#[path = "../../../fuzz/entries/replay.rs"]
mod replay;
#[path = "../../../fuzz/entries/spool.rs"]
mod spool;
#[path = "../../../fuzz/entries/store.rs"]
mod store;
#[path = "../../../fuzz/entries/syscalls.rs"]
mod syscalls;
#[path = "../../../fuzz/entries/upload.rs"]
mod upload;

use std::io::Read;

use flate2::read::GzDecoder;
use iostep_model::event::{Event, Marker, Process};
use iostep_model::syscall::Header;
use iostep_trace::blkparse::Format;
use iostep_trace::syscalls::present::Present;
use iostep_trace::syscalls::record::{self, Record};
use iostep_trace::syscalls::spool as spool_of_calls;
use mangle::mangle;
use mutate::Random;

/// Every kind of line, and the cases that were thought of.
const BLKPARSE: [&str; 12] = [
    "  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n\
     \x20 8,0    3        2     0.000001000   697  G   W 223490 + 8 [kjournald]\n\
     \x20 8,0    3        3     0.000002000   697  D   W 223490 + 8 [kjournald]\n\
     \x20 8,0    3        4     0.000700000     0  C   W 223490 + 8 [0]\n\
     CPU3 (8,0):\n Reads Queued:           0,        0KiB\n\
     Skips: 2 forward (1,234 -   0.1%)\n",
    "8,0 0 1 0.000000001 7 Q FWFSM 8 + 2 [a]\n8,0 0 1 0.000000002 7 C WSM 8 + 2 [0]\n\
     8,0 0 1 0.000000003 7 C WSM 8 [0]\n",
    "8,0 0 1 0.000000001 7 Q FWS [a]\n8,0 0 1 0.000000002 7 D FN [a]\n\
     8,0 0 1 0.000000003 7 C FN 18446744073709551615 [0]\n",
    "8,0 0 1 0.000000001 7 X W 8 / 16 [a]\n8,0 0 1 0.000000002 7 R W 8 + 8 [65531]\n",
    "8,0 0 1 0.000000001 7 A W 8 + 8 <- (8,1) 0\n8,0 0 1 0.000000002 7 m N cfq [x]\n",
    "8,0 0 1 0.000000001 7 D N 0 (12 00 00 00 24 00 ) [a]\n",
    "8,0 0 1 0.000000001 7 D W 8 + 8 (     12) [a [b] c]\n",
    "8,0 0 1 0.000000001 7 Q W 36028797018963967 + 8388607 [a]\n",
    "7,1 0 1 1000000000.999999999 7 Q D 0 + 8388607 []\n",
    "7,1 0 1 0.000000001 7 Q",
    "8,0",
    "",
];

#[test]
fn blkparse_text() {
    for text in BLKPARSE {
        blkparse::run(text.as_bytes());
    }
    let all = BLKPARSE.concat().into_bytes();
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let text = match seed % 4 {
            0 => all.clone(),
            _ => BLKPARSE[random.below(BLKPARSE.len())].as_bytes().to_vec(),
        };
        blkparse::run(&mangle(text, &mut random));
    }
}

#[test]
fn recordings_of_blktrace_of_the_kernel_and_of_fio() {
    let binary = &include_bytes!("../../iostep-trace/testdata/block/loop.bin")[..1500];
    let events = include_bytes!("../../iostep-trace/testdata/block/loop.ftrace");
    let log = b"fio version 3 iolog\n1 /dev/sdb add\n2 /dev/sdb write 4096 8192\n\
                3 /dev/sdb trim 0 4096\n4 /dev/sdb sync 0 0\n5 /dev/sdb read 7 9\n";
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let mut damaged = binary.to_vec();
        mutate::damage(&mut damaged, &mut random);
        blkparse::run_as(Format::Blktrace, &damaged);
        let text = mangle(events[800..4000].to_vec(), &mut random);
        blkparse::run_as(Format::Ftrace, &text);
        blkparse::run_as(Format::Iolog, &mangle(log.to_vec(), &mut random));
    }
}

/// A frame's payload of small events.
fn events() -> Vec<u8> {
    let process = Event::Process(Process {
        mono_ns: 5,
        pid: 1,
        tgid: 1,
        parent_tgid: 0,
        comm: "sqlite3".to_owned(),
        kernel: false,
        command_line: Some("sqlite3 app.db".to_owned()),
    });
    let step = Event::Marker {
        mono_ns: 6,
        marker: Marker::Step("insert".to_owned()),
    };
    let split = Event::Split {
        mono_ns: 7,
        sector: 8,
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("events.log");
    let mut writer = iostep_model::spool::Writer::create(&path).expect("create");
    for event in [&process, &step, &split] {
        writer.push(event).expect("push");
    }
    writer.flush().expect("flush");
    drop(writer);
    // The file's header, then the frame's.
    std::fs::read(&path).expect("read")[16..].to_vec()
}

#[test]
fn event_logs() {
    let payload = events();
    spool::run(&payload);
    for bytes in [
        &[][..],
        &[0; 8],
        &[0xFF; 8],
        &[0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0],
    ] {
        spool::run(bytes);
    }
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        spool::run(&mangle(payload.clone(), &mut random));
    }
}

/// A process that another one started, and the first system calls of the kernel's table.
fn calls() -> Vec<u8> {
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut writer = spool_of_calls::Writer::create(&place.path().join("app")).expect("create");
    let beginning = spool_of_calls::Beginning {
        header: Header::default(),
        start_mono_ns: 5,
        present_since_ns: 6,
        present: Present::default(),
    };
    writer.begin(&beginning).expect("begin");
    let notes = [record::FORK, record::EXEC];
    for (number, at) in notes.into_iter().chain(0..90).zip(7..) {
        let record = Record {
            start_ns: at,
            duration_ns: 1,
            result: 3,
            tid: 9,
            number,
            flags: 0,
            word: [3; 10],
            text: [b"/tmp/app.db", b"/tmp/new.db"],
        };
        writer.push(&record.bytes()).expect("push");
    }
    writer.flush().expect("flush");
    std::fs::read(writer.path()).expect("read")
}

#[test]
fn recordings_that_were_cut_short() {
    let clean = calls();
    assert!(partial::run(&clean) > 0, "the calls are read");
    for length in (0..=clean.len()).step_by(7) {
        partial::run(&clean[..length]);
    }
    for seed in 0..5_000 {
        partial::run(&mangle(clean.clone(), &mut Random::new(seed)));
    }
}

#[test]
fn trace_directories() {
    for number in 0..9 {
        let clean = store::good(number);
        store::run(&[&[number][..], &clean].concat());
        for length in [0, 1, 4, clean.len() / 2, clean.len() - 1] {
            store::run(&[&[number][..], &clean[..length]].concat());
        }
        for seed in 0..120 {
            let mut random = Random::new(seed);
            let bytes = mangle(clean.clone(), &mut random);
            store::run(&[&[number][..], &bytes].concat());
        }
    }
}

#[test]
fn images_of_nothing() {
    for bytes in [0, 1, 1024, 2048, 4096, 66_000, 200_000] {
        ext4_layout::run(&vec![0; bytes]);
        ext4_layout::run(&vec![0xFF; bytes]);
    }
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let mut image = vec![0; 70_000];
        // The magics of ext4, xfs, btrfs, f2fs and nilfs2, and noise around them.
        let (at, magic): (usize, &[u8]) = match seed % 5 {
            0 => (1080, &[0x53, 0xEF]),
            1 => (0, b"XFSB"),
            2 => (65_600, b"_BHRfS_M"),
            3 => (1024, &[0x10, 0x20, 0xF5, 0xF2]),
            _ => (1030, &[0x34, 0x34]),
        };
        let start = at & !1023;
        image[start..start + 1024].fill_with(|| random.next() as u8 & random.next() as u8);
        image[at..at + magic.len()].copy_from_slice(magic);
        ext4_layout::run(&image);
    }
}

/// Every kind of value and place.
const JOB_FILE: &str = r#"
[defaults]
workload = "file"
target = "/mnt"
size = ["1MiB", 4096, -1, 0.5]
shared = [true, false]

[[job]]
name = "sync"
sync = ["fsync", "fdatasync"]

[[job]]
workload = 'sqlite'
target = 'd'
rows = 0x10
keys = [ "random", # and
  "sequential" ]
"#;

#[test]
fn job_files() {
    job_file::run(JOB_FILE.as_bytes());
    job_file::run(&[0xFF; 8]);
    job_file::run("[".repeat(100_000).as_bytes());
    job_file::run(format!("a={}", "[".repeat(100_000)).as_bytes());
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        job_file::run(&mangle(JOB_FILE.as_bytes().to_vec(), &mut random));
    }
}

/// Every kind of value and place.
const LAB: &str = r#"
title = "A lab"

[defaults]
workload = "sqlite"
device-size = "512MiB"
journal = ["delete", "wal"]

[[cells]]
filesystem = ["ext4", "f2fs"]
switches = ["", "F+E", "waldio"]
mkfs-options = ["-O", "quota"]
trace = true
pattern = 3

[[cells]]
name = "files"
workload = 'file'
filesystem = 'fat32'
journal = false
sync = "osync"
repeat = 0x2
cpu-load = 1
"#;

#[test]
fn labs() {
    lab::run(LAB.as_bytes());
    lab::run(&[0xFF; 8]);
    lab::run(format!("[[cells]]\nfilesystem={}", "[".repeat(100_000)).as_bytes());
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        lab::run(&mangle(LAB.as_bytes().to_vec(), &mut random));
    }
}

/// Puts another number in the place of one.
fn misnumber(bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    const NUMBERS: [&str; 5] = [
        "0",
        "1",
        "4294967295",
        "9223372036854775808",
        "18446744073709551615",
    ];
    let is_first = |at: &usize| {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        bytes[*at].is_ascii_digit() && before == Some(b':')
    };
    let places: Vec<usize> = (0..bytes.len()).filter(is_first).collect();
    if places.is_empty() {
        return bytes;
    }
    let at = places[random.below(places.len())];
    let digits = bytes[at..].iter().take_while(|b| b.is_ascii_digit());
    let end = at + digits.count();
    let number = NUMBERS[random.below(NUMBERS.len())].as_bytes();
    [&bytes[..at], number, &bytes[end..]].concat()
}

#[test]
fn results_of_labs() {
    const RECORDED: [&[u8]; 4] = [
        include_bytes!("../../iostep-analyze/src/lab/recorded/fsync-patterns.json.gz"),
        include_bytes!("../../iostep-analyze/src/lab/recorded/polling.json.gz"),
        include_bytes!("../../iostep-analyze/src/lab/recorded/replay.json.gz"),
        include_bytes!("../../iostep-analyze/src/lab/recorded/waldio.json.gz"),
    ];
    for packed in RECORDED {
        let mut clean = Vec::new();
        let read = GzDecoder::new(packed).read_to_end(&mut clean);
        read.expect("it is packed by gzip");
        lab_results::run(&clean);
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let mut bytes = clean.clone();
            for _ in 0..1 + seed % 8 {
                bytes = misnumber(bytes, &mut random);
            }
            lab_results::run(&bytes);
            lab_results::run(&mangle(bytes, &mut random));
        }
    }
}

#[test]
fn results_of_benches() {
    let documents = [
        iostep_analyze::bench::fixture::write_fdatasync(2),
        iostep_analyze::bench::fixture::sqlite_wal(1),
    ];
    for document in documents {
        let clean = serde_json::to_vec(&document).expect("JSON");
        bench_result::run(&clean);
        bench_result::run(&clean[..clean.len() / 2]);
        for seed in 0..2_000 {
            let mut random = Random::new(seed);
            let damaged = match seed % 4 {
                0 => misnumber(clean.clone(), &mut random),
                _ => mangle(clean.clone(), &mut random),
            };
            bench_result::run(&damaged);
        }
    }
}

#[test]
fn uploads() {
    for whole in [
        &include_bytes!("old-0.1/file.json")[..],
        include_bytes!("old-0.1/sqlite.json"),
        include_bytes!("old-0.1/waldio.json"),
    ] {
        iostep_serve::upload::Upload::read(whole).expect("what is damaged is taken");
        let whole: serde_json::Value = serde_json::from_slice(whole).expect("JSON");
        let whole = whole.to_string().into_bytes();
        upload::run(&whole);
        upload::run(&whole[..whole.len() / 2]);
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let damaged = match seed % 4 {
                3 => mangle(whole.clone(), &mut random),
                _ => misnumber(whole.clone(), &mut random),
            };
            upload::run(&damaged);
        }
    }
}

/// Calls by two threads on what they share, and paths that lead elsewhere.
const REPLAYED: &str = r#"# iostep system calls 1
@thread t1 p1 tid=1 name="a"
@thread t2 p1 tid=2 name="b"
@initial file path="/f" size=8192 content=data seen
@initial directory path="/d"
@initial symlink path="/l" content="../../.."
@initial hardlink path="/k" of="/f"
0 5 t1 openat path="/f" flags=O_RDWR|O_CREAT mode=0644 = h1
10 5 t1 pread64 h1 size=100 offset=0 = 100
20 5 t2 write h1 size=10 = 10
30 5 t1 lseek h1 offset=-10 whence=end = 8182
40 5 t2 openat path="/../victim" flags=O_WRONLY|O_TRUNC mode=0 = h2
50 5 t1 unlink path="/l/victim" = 0
60 5 t1 dup h1 = h1
70 5 t2 rename from="/l" to="/d/m" = 0
80 5 t2 mkdir path="/d/n" mode=0700 = 0
90 5 t1 mmap h1 offset=0 size=4096 protection=0x3 flags=0x1 = 0
92 1 t1 msync h1 offset=0 size=4096 flags=0x4 = 0
94 1 t1 mremap h1 offset=0 size=4096 new_size=8192 = 0
96 1 t1 munmap h1 offset=0 size=8192 = 0
100 5 t1 fcntl h1 lock=1 of=process offset=0 size=1 = 0
110 5 t2 copy_file_range h1 h2 size=8 to_offset=3 = 8
120 5 t2 ftruncate h1 size=9223372036854775807 = -EFBIG
130 5 t1 ioctl h1 request=0x5401 = -ENOTTY
140 5 t1 clone child=t2 h1 h2 = 0
150 5 t2 close h1 = 0
160 5 t1 getdents64 h1 size=32768 = -ENOTDIR
170 5 t1 exit h1 h1 = 0
@end calls=21
"#;

#[test]
fn traces_that_are_replayed() {
    let clean = REPLAYED.as_bytes();
    replay::run(clean);
    for seed in 0..1_000 {
        let mut random = Random::new(seed);
        let damaged = mangle(clean.to_vec(), &mut random);
        replay::run(&damaged);
        if seed % 4 == 0 {
            replay::run(&mangle(damaged, &mut random));
        }
    }
}

/// Every declaration, and calls of every kind of argument.
const SYSCALLS: &str = r#"# iostep system calls 1
@lost 2
@recorder "iostep"
@machine "Linux"
@command "a" "b\xff"
@clock wall=1795316400123456789 resolution=1
@thread t1 p1 tid=4711 name="a"
@thread t2 p2 tid=4712 name="b"
@initial file path="/f" size=8192 content=data seen
@initial directory path="/"
@initial symlink path="/l" content="f"
@kept "call" 13
@left-out "socket" 12
0 12 t1 openat path="/f" flags=O_RDWR|O_CREAT mode=0644 = h1
10 ? t1 present path="/g" flags=O_RDONLY mode=0000 = h2
20 3 t1 pread64 h1 size=100 offset=-1 = -EINVAL
30 3 t1 pwritev2 h1 size=100 offset=9223372036854775807 buffers=3 flags=0x2 = 100
40 3 t1 clone child=t2 h1 h2 = 0
50 3 t2 dup2 h1 replaces=h2 = h1
60 3 t2 copy_file_range h1 h2 size=8 to_offset=3 = 8
70 3 t2 mmap h1 offset=0 size=4096 protection=0x3 flags=0x1 = 0
75 3 t2 mremap h1 offset=0 size=4096 new_size=8192 = 0
80 3 t2 rename from="/f" to="/\xffh" = ~
90 3 t2 fcntl h1 lock=1 of=process offset=0 size=1 wait = ?
100 3 t2 exit h1 h1 = 0
110 3 t1 close h1 = 0
@end calls=13
"#;

#[test]
fn traces_of_system_calls() {
    let clean = SYSCALLS.as_bytes();
    syscalls::run(clean);
    let compressed = zstd::encode_all(clean, 0).expect("bytes");
    for seed in 0..2_000 {
        syscalls::run(&mangle(compressed.clone(), &mut Random::new(seed)));
    }
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        syscalls::run(&mangle(clean.to_vec(), &mut random));
    }
}
