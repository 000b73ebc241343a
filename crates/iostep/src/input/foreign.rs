//! What other tools write that iostep does not read: by name, and with the way on.
//!
//! A format is told by its first lines: by a head that only it has, or by fields that only its
//! lines have. Where nothing is sure, nothing is said.

use crate::packed;

/// A format that is known and not read.
#[derive(Debug)]
pub struct Foreign {
    /// Whose, and what.
    pub what: &'static str,
    /// How to get to something that iostep reads.
    pub way_on: &'static str,
    looks_like: fn(&Start<'_>) -> bool,
}

impl PartialEq for Foreign {
    fn eq(&self, other: &Foreign) -> bool {
        self.what == other.what
    }
}

impl Eq for Foreign {}

/// How a file begins.
struct Start<'a> {
    bytes: &'a [u8],
    /// The first lines that are whole and not empty.
    lines: Vec<&'a str>,
}

/// Lines that are looked at.
const LINES: usize = 32;

const TO_LINES: &str = "docs/import.md shows how lines of such formats become blkparse's, which \
                        iostep import reads";
const TRACE_INSTEAD: &str = "it does not tell the whole way of every request; record with iostep \
                             trace, or with blktrace, and read that with iostep import";
const STRACE_INSTEAD: &str = "record with strace -f -ttt -T -y, and read that with iostep clean, or \
                              with iostep record";
const UNPACK: &str =
    "unpack it first; iostep import and iostep clean read gzip and zstd as they are";

const fn known(
    what: &'static str,
    way_on: &'static str,
    looks_like: fn(&Start<'_>) -> bool,
) -> Foreign {
    Foreign {
        what,
        way_on,
        looks_like,
    }
}

/// Traces of calls, whose lines look like strace's.
static OF_CALLS: [Foreign; 5] = [
    known(
        "calls that ltrace recorded",
        "ltrace -S shows system calls among those of libraries, in a form of its own; record with strace -f -ttt -T -y, and read that with iostep clean",
        is_ltrace,
    ),
    known(
        "calls that perf trace recorded",
        STRACE_INSTEAD,
        is_perf_trace,
    ),
    known("calls that sysdig recorded", STRACE_INSTEAD, is_sysdig),
    known(
        "calls that truss or dtruss recorded",
        STRACE_INSTEAD,
        is_truss,
    ),
    known(
        "calls that ktrace recorded (kdump)",
        STRACE_INSTEAD,
        is_kdump,
    ),
];

static OTHERS: [Foreign; 37] = [
    known(
        "records of perf",
        "perf script -i FILE > FILE.txt makes text of it, whose block events iostep import reads",
        |s| s.begins(b"PERFILE2"),
    ),
    known(
        "records of trace-cmd",
        "trace-cmd report FILE > FILE.txt makes text of it, whose block events iostep import reads",
        |s| s.begins(b"\x17\x08\x44tracing"),
    ),
    known(
        "a text in UTF-16, as PowerShell writes what it redirects",
        "iconv -f UTF-16 -t UTF-8 FILE > FILE.txt makes text of it that iostep reads",
        |s| s.begins(b"\xff\xfe") || s.begins(b"\xfe\xff"),
    ),
    known(
        "a text in UTF-16 without a mark",
        "iconv -f UTF-16LE -t UTF-8 FILE > FILE.txt makes text of it that iostep reads",
        |s| s.is_utf16([1, 0]),
    ),
    known(
        "a text in UTF-16 without a mark",
        "iconv -f UTF-16BE -t UTF-8 FILE > FILE.txt makes text of it that iostep reads",
        |s| s.is_utf16([0, 1]),
    ),
    known(
        "a summary of strace -c",
        "it counts calls and does not have them; record with strace -f -ttt -T -y, and read that \
         with iostep clean",
        |s| {
            s.lines
                .first()
                .is_some_and(|line| line.starts_with("% time "))
        },
    ),
    known(
        "block events in tracefs' latency format",
        "their times are those since the first event; echo 0 > options/latency-format in tracefs, \
         and read trace again",
        |s| s.lines.iter().any(|line| line.contains("latency trace v")),
    ),
    known(
        "packets (pcap)",
        "they are no block I/O; record on the machine that has the disk",
        is_pcap,
    ),
    known("a file packed by xz", UNPACK, |s| s.begins(packed::XZ)),
    known("a file packed by bzip2", UNPACK, |s| {
        s.begins(packed::BZIP2)
    }),
    known("a file packed by lz4", UNPACK, |s| s.begins(packed::LZ4)),
    known("a zip archive", UNPACK, |s| s.begins(packed::ZIP)),
    known("a table of biosnoop", TRACE_INSTEAD, |s| {
        s.heads(&["TIME", "COMM", "PID", "DISK"]) || s.heads(&["TIME", "DISK", "COMM", "PID"])
    }),
    known("a table of iosnoop", TRACE_INSTEAD, |s| {
        s.heads(&["COMM", "PID", "TYPE", "DEV", "BLOCK"])
    }),
    known("the output of btt", TRACE_INSTEAD, |s| {
        s.lines
            .iter()
            .any(|line| line.starts_with("===") && line.ends_with("==="))
            && s.heads(&["ALL", "MIN", "AVG", "MAX"])
    }),
    known("the output of bpftrace", TRACE_INSTEAD, |s| {
        let is_attaching =
            |line: &&str| line.starts_with("Attaching ") || line.starts_with("Attached ");
        let first = s.lines.first().filter(|line| is_attaching(line));
        first.is_some_and(|line| line.contains(" probe"))
    }),
    known(
        "events that LTTng recorded (babeltrace)",
        TRACE_INSTEAD,
        is_babeltrace,
    ),
    known("records of LTTng (CTF)", TRACE_INSTEAD, |s| {
        s.begins(b"\xc1\x1f\xfc\xc1") || s.begins(b"\xc1\xfc\x1f\xc1") || s.begins(b"/* CTF ")
    }),
    known("a log of auditd", STRACE_INSTEAD, |s| {
        s.lines
            .iter()
            .any(|line| line.contains("type=SYSCALL msg=audit("))
    }),
    known("a table of biotop or biolatency", TRACE_INSTEAD, |s| {
        s.heads(&["PID", "COMM", "D", "MAJ", "MIN"])
            || s.heads(&["usecs", ":", "count", "distribution"])
    }),
    known(
        "a table of opensnoop, filetop or an ext4slower",
        STRACE_INSTEAD,
        |s| {
            s.heads(&["PID", "COMM", "FD", "ERR", "PATH"])
                || s.heads(&["TIME", "COMM", "PID", "T", "BYTES", "OFF_KB"])
                || s.heads(&["TID", "COMM", "READS", "WRITES"])
        },
    ),
    known("a table of iostat", TRACE_INSTEAD, |s| {
        s.heads(&["Device"])
            && s.lines
                .iter()
                .any(|line| line.contains("%util") || line.contains("tps"))
    }),
    known("a table of sar", TRACE_INSTEAD, |s| {
        let is_head = |line: &&str| line.contains(" DEV ") && line.contains(" tps ");
        s.lines.iter().any(is_head)
    }),
    known(
        "a program",
        "iostep record -o FILE -- PROGRAM records its system calls, iostep trace DIR -- PROGRAM its \
         block I/O",
        |s| s.begins(b"\x7fELF"),
    ),
    known(
        "a web page (HTML)",
        "what was downloaded is the page about the file and not the file",
        |s| {
            let first = s.lines.first().map(|line| line.to_ascii_lowercase());
            first
                .is_some_and(|line| line.starts_with("<!doctype html") || line.starts_with("<html"))
        },
    ),
    known("a trace of MSR Cambridge (CSV)", TO_LINES, is_msr),
    known("a trace of SYSTOR '17 (CSV)", TO_LINES, is_systor),
    known(
        "a trace in the form of the Storage Performance Council (SPC)",
        TO_LINES,
        is_spc,
    ),
    known("a trace of Alibaba's cloud (CSV)", TO_LINES, is_alibaba),
    known("a trace of Tencent's cloud (CSV)", TO_LINES, is_tencent),
    known("a trace of FIU", TO_LINES, is_fiu),
    known("a trace in DiskSim's ASCII form", TO_LINES, is_disksim),
    known(
        "events of Windows (ETW)",
        "xperf's disk events have no filesystem of Linux; nothing of iostep reads them",
        |s| s.begins(b"BeginHeader"),
    ),
    known(
        "a table of Process Monitor",
        "it has calls of Windows; nothing of iostep reads them",
        |s| s.begins(b"\"Time of Day\",\"Process Name\""),
    ),
    known("a trace of iotrace (CSV)", TO_LINES, |s| {
        s.begins(b"header.sid,") || s.begins(b"header.seq_id,")
    }),
    known("the output of fatrace", STRACE_INSTEAD, is_fatrace),
    known(
        "a result of fio",
        "fio --write_iolog=FILE writes a log of I/O, which iostep import reads",
        |s| s.lines.iter().any(|line| line.contains(": (g=0): rw=")),
    ),
];

/// What a file that begins with `bytes` is, if it is a trace of calls of another tool than those
/// that iostep reads: to be asked before whether it is strace's.
pub fn of_calls(bytes: &[u8]) -> Option<&'static Foreign> {
    find(&OF_CALLS, bytes)
}

/// What a file that begins with `bytes` is, if it is known and is nothing that iostep reads: to be
/// asked last.
pub fn of_others(bytes: &[u8]) -> Option<&'static Foreign> {
    find(&OTHERS, bytes)
}

fn find(known: &'static [Foreign], bytes: &[u8]) -> Option<&'static Foreign> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').peekable();
    let mut whole = Vec::new();
    while let Some(line) = lines.next() {
        // The last one may be cut off, but is all there is of a file of one line.
        let is_last = lines.peek().is_none() && !line.ends_with(b"\n");
        if is_last && !whole.is_empty() || whole.len() == LINES {
            break;
        }
        if let Ok(line) = std::str::from_utf8(line)
            && !line.trim().is_empty()
        {
            whole.push(line.trim());
        }
    }
    let start = Start {
        bytes,
        lines: whole,
    };
    known.iter().find(|known| (known.looks_like)(&start))
}

impl Start<'_> {
    fn begins(&self, magic: &[u8]) -> bool {
        self.bytes.starts_with(magic)
    }

    /// True for text of ASCII in UTF-16: of two bytes each, those at the first of `places` are 0.
    fn is_utf16(&self, places: [usize; 2]) -> bool {
        let [zero, letter] = places;
        let pairs = self.bytes.chunks_exact(2).take(64);
        let is_letter = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        pairs.len() >= 4
            && pairs
                .clone()
                .all(|pair| pair[zero] == 0 && is_letter(pair[letter]))
    }

    /// True if one of the first lines begins with these words, whatever stands behind them.
    fn heads(&self, words: &[&str]) -> bool {
        let mut lines = self.lines.iter().take(8);
        lines.any(|line| {
            let mut found = line.split_whitespace();
            words.iter().all(|word| {
                let is = |found: &str| {
                    found.trim_end_matches(|c: char| !c.is_alphanumeric() && c != ':') == *word
                        || found
                            .strip_prefix(word)
                            .is_some_and(|rest| rest.starts_with('(') || rest == ":")
                };
                found.next().is_some_and(is)
            })
        })
    }

    /// True if every line, but for a head, has the fields that `is` looks for.
    fn all_fields(&self, separator: char, is: fn(&[&str]) -> bool) -> bool {
        let fields = |line: &&str| -> bool {
            let fields: Vec<&str> = line
                .split(separator)
                .map(str::trim)
                .filter(|f| separator == ',' || !f.is_empty())
                .collect();
            is(&fields)
        };
        let lines = match self.lines.first() {
            Some(first) if !fields(first) && self.lines.len() > 1 => &self.lines[1..],
            _ => &self.lines[..],
        };
        !lines.is_empty() && lines.iter().all(fields)
    }
}

fn is_whole(field: &str) -> bool {
    !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_decimal(field: &str) -> bool {
    field
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
        && field.parse::<f64>().is_ok()
}

fn is_direction(field: &str) -> bool {
    matches!(
        field,
        "R" | "W" | "r" | "w" | "Read" | "Write" | "read" | "write"
    )
}

/// `128166372003061629,hm,0,Read,383496192,32768,413`.
fn is_msr(start: &Start<'_>) -> bool {
    start.all_fields(',', |fields| {
        matches!(fields, [time, _, disk, direction, offset, size, took]
            if is_whole(time) && time.len() >= 16 && is_whole(disk) && is_direction(direction)
                && is_whole(offset) && is_whole(size) && is_whole(took))
    })
}

/// `1455592980.51,0.000324,W,0,23448064,4096`, below `Timestamp,Response,IOType,LUN,Offset,Size`.
fn is_systor(start: &Start<'_>) -> bool {
    start.all_fields(',', |fields| {
        matches!(fields, [time, took, direction, unit, offset, size]
            if is_decimal(time) && (took.is_empty() || is_decimal(took))
                && is_direction(direction) && is_whole(unit) && is_whole(offset)
                && is_whole(size))
    })
}

/// `0,20941264,8192,W,0.551706`, and more fields if need be.
fn is_spc(start: &Start<'_>) -> bool {
    start.all_fields(',', |fields| {
        matches!(fields, [unit, place, size, direction, time, ..]
            if is_whole(unit) && is_whole(place) && is_whole(size) && is_direction(direction)
                && is_decimal(time))
    })
}

/// `419,W,8792731648,16384,1577808144360767`.
fn is_alibaba(start: &Start<'_>) -> bool {
    start.all_fields(',', |fields| {
        matches!(fields, [device, direction, offset, size, time]
            if is_whole(device) && is_direction(direction) && is_whole(offset) && is_whole(size)
                && is_whole(time))
    })
}

/// `1538323200,12910952,128,0,1063`: a time of day, and a number for the direction.
fn is_tencent(start: &Start<'_>) -> bool {
    start.all_fields(',', |fields| {
        matches!(fields, [time, offset, size, direction, volume]
            if is_whole(time) && time.len() == 10 && is_whole(offset) && is_whole(size)
                && matches!(*direction, "0" | "1") && is_whole(volume))
    })
}

/// `89966405734 4892 syslogd 904265560 8 W 6 0 531e779b9bd5...`.
fn is_fiu(start: &Start<'_>) -> bool {
    start.all_fields(' ', |fields| {
        matches!(fields, [time, pid, _, place, size, direction, major, minor, ..]
            if is_whole(time) && is_whole(pid) && is_whole(place) && is_whole(size)
                && is_direction(direction) && is_whole(major) && is_whole(minor))
    })
}

/// `0.000000 0 126 8 0`.
fn is_disksim(start: &Start<'_>) -> bool {
    start.all_fields(' ', |fields| {
        matches!(fields, [time, device, place, size, flags]
            if time.contains('.') && is_decimal(time) && is_whole(device) && is_whole(place)
                && is_whole(size) && is_whole(flags))
    })
}

fn is_pcap(start: &Start<'_>) -> bool {
    [
        &b"\xa1\xb2\xc3\xd4"[..],
        b"\xd4\xc3\xb2\xa1",
        b"\xa1\xb2\x3c\x4d",
        b"\x4d\x3c\xb2\xa1",
        b"\x0a\x0d\x0d\x0a",
    ]
    .iter()
    .any(|magic| start.begins(magic))
}

/// `strlen("abc")                    = 3`, `libc.so.6->malloc(5)`, `+++ exited (status 0) +++`.
fn is_ltrace(start: &Start<'_>) -> bool {
    const OF_LIBRARIES: [&str; 16] = [
        "__libc_start_main",
        "malloc",
        "free",
        "calloc",
        "realloc",
        "strlen",
        "strcmp",
        "memcpy",
        "memset",
        "puts",
        "printf",
        "fopen",
        "fclose",
        "fread",
        "fwrite",
        "setlocale",
    ];
    start.lines.iter().any(|line| {
        let name = line.split('(').next().unwrap_or_default();
        let name = name.rsplit([' ', '>', ']']).next().unwrap_or_default();
        // Version 0.7.3 writes `SYS_open` for a system call with -S.
        line.starts_with("+++ exited (status ")
            || line.contains(".so")
                && line
                    .split('(')
                    .next()
                    .is_some_and(|before| before.contains("->"))
            || line.contains('(') && (OF_LIBRARIES.contains(&name) || name.starts_with("SYS_"))
    })
}

/// `     0.000 ( 0.004 ms): cat/1234 openat(dfd: CWD, filename: "/etc/passwd") = 3`.
fn is_perf_trace(start: &Start<'_>) -> bool {
    start.lines.iter().any(|line| {
        let Some((time, rest)) = line.split_once('(') else {
            return false;
        };
        is_decimal(time.trim())
            && !time.trim().is_empty()
            && rest
                .split_once("):")
                .is_some_and(|(took, _)| took.trim().is_empty() || took.trim_end().ends_with("ms"))
    })
}

/// `1 13:25:50.123456789 0 cat (1234) > open fd=3(<f>/etc/passwd)`.
fn is_sysdig(start: &Start<'_>) -> bool {
    start.lines.iter().any(|line| {
        let mut words = line.split_whitespace();
        let (number, time, cpu) = (words.next(), words.next(), words.next());
        let is_time = |time: &str| time.matches(':').count() == 2 && time.contains('.');
        let rest: Vec<&str> = words.take(4).collect();
        number.is_some_and(is_whole)
            && time.is_some_and(is_time)
            && cpu.is_some_and(is_whole)
            && rest
                .windows(2)
                .any(|two| two[0].ends_with(')') && matches!(two[1], ">" | "<"))
    })
}

/// `open("/etc/passwd", O_RDONLY)     Err#2 ENOENT`; dtruss has a head.
fn is_truss(start: &Start<'_>) -> bool {
    start.lines.iter().any(|line| {
        let mut words = line.split_whitespace().rev();
        let name = words.next().unwrap_or_default();
        let failed = words.next().is_some_and(|word| word.starts_with("Err#"))
            && words.next().is_some_and(|word| word.ends_with(')'));
        let is_name = name
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        line.contains("SYSCALL(args)") || failed && is_name
    })
}

/// `  1234 ls       CALL  open(0x800a3c000,0<O_RDONLY>,0)`.
fn is_kdump(start: &Start<'_>) -> bool {
    start.lines.iter().any(|line| {
        let words: Vec<&str> = line.split_whitespace().take(4).collect();
        matches!(words[..], [pid, _, "CALL", call] if is_whole(pid) && call.contains('('))
    })
}

/// `[15:36:24.123456789] (+0.000000210) host block_rq_issue: { cpu_id = 0 }, { dev = 8388608 }`.
fn is_babeltrace(start: &Start<'_>) -> bool {
    start.lines.iter().any(|line| {
        line.starts_with('[') && line.contains("] (+") && line.contains(": { cpu_id = ")
    })
}

/// `cat(1234): RO /etc/passwd`.
fn is_fatrace(start: &Start<'_>) -> bool {
    !start.lines.is_empty()
        && start.lines.iter().all(|line| {
            let Some((who, rest)) = line.split_once("): ") else {
                return false;
            };
            let pid = who.rsplit('(').next().unwrap_or_default();
            let what = rest.split_whitespace().next().unwrap_or_default();
            is_whole(pid) && what.bytes().all(|b| b"ROCW+D<>M".contains(&b)) && rest.contains('/')
        })
}

#[cfg(test)]
mod tests;
