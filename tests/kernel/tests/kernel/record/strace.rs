//! Facts of calls, of strace's text and of a recording, in the same words.
//!
//! A fact is a call's name, the arguments that are compared, and its result. Descriptors are not
//! compared: a recording has none. Neither are addresses.

use std::collections::HashMap;

use iostep_model::syscall::{Call, Errno, Operation, Outcome, Recording, Syscall};

/// What strace tells and a recording leaves out or has under another name.
const NOT_KEPT: &str = "\
    access_denied arch_prctl brk chdir clone clone3 execve exit exit_group fork futex getcwd \
    getegid geteuid getgid getpid getppid getrandom getuid madvise mprotect pipe2 prlimit64 \
    rseq rt_sigaction rt_sigprocmask rt_sigreturn set_robust_list set_tid_address sysinfo \
    uname vfork wait4 waitid kill tgkill gettid prctl sigaltstack umask getpgrp getpgid poll \
    clock_nanosleep";

/// Where a thread mapped memory without a file. The C library's loader reserves such memory where
/// segments are aligned to more than a page, as on arm64, and takes the ends away again; a recording
/// has only files.
#[derive(Default)]
struct Memory {
    /// Beginning and end, and whether there is memory without a file, in the order of the calls.
    ranges: Vec<(u64, u64, bool)>,
}

impl Memory {
    /// Follows a call. True if it takes memory without a file away.
    fn follow(&mut self, call: &str) -> bool {
        let Some((name, rest)) = call.split_once('(') else {
            return false;
        };
        let Some((arguments, result)) = rest.rsplit_once(" = ") else {
            return false;
        };
        let words: Vec<&str> = arguments
            .trim_end()
            .trim_end_matches(')')
            .split(", ")
            .collect();
        let number = |at: usize| words.get(at).and_then(|word| parse(word)).unwrap_or(0);
        let (at, size, nameless) = match name {
            "execve" if result == "0" => {
                self.ranges.clear();
                return false;
            }
            "mmap" => (
                parse(result),
                number(1),
                arguments.contains("MAP_ANONYMOUS"),
            ),
            "mremap" => (parse(result), number(2), self.is_nameless(number(0))),
            "munmap" if self.is_nameless(number(0)) => return true,
            "munmap" => (Some(number(0)), number(1), false),
            _ => return false,
        };
        let range = at.map(|at| (at, at.saturating_add(size), nameless));
        self.ranges.extend(range);
        false
    }

    fn is_nameless(&self, address: u64) -> bool {
        let mut later_first = self.ranges.iter().rev();
        let range = later_first.find(|(from, to, _)| (*from..*to).contains(&address));
        range.is_some_and(|(.., nameless)| *nameless)
    }
}

fn parse(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// The facts of strace's text.
pub fn facts(text: &str) -> Vec<String> {
    let mut facts = Vec::new();
    // Calls that another thread's line cut in two, by thread.
    let mut begun = HashMap::new();
    let mut pipe = Vec::new();
    let mut memory: HashMap<String, Memory> = HashMap::new();
    for line in text.lines() {
        let Some((tid, line)) = line.split_once(' ') else {
            continue;
        };
        let line = line.trim_start();
        if let Some(first) = line.strip_suffix(" <unfinished ...>") {
            begun.insert(tid.to_owned(), first.to_owned());
            continue;
        }
        let whole = match line
            .strip_prefix("<... ")
            .and_then(|rest| rest.split_once(" resumed>"))
        {
            Some((_, rest)) => begun.remove(tid).unwrap_or_default() + rest,
            None => line.to_owned(),
        };
        if let Some(numbers) = whole.strip_prefix("pipe2([") {
            let numbers = numbers.split_once(']').map_or("", |(numbers, _)| numbers);
            pipe.extend(numbers.split(", ").map(str::to_owned));
        }
        if !memory.entry(tid.to_owned()).or_default().follow(&whole) {
            facts.extend(fact(&whole, &pipe));
        }
    }
    facts
}

fn fact(line: &str, pipe: &[String]) -> Option<String> {
    let (name, rest) = line.split_once('(')?;
    if NOT_KEPT.split(' ').any(|kept| kept == name)
        || !name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b"_0123456789".contains(&b))
    {
        return None;
    }
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().strip_suffix(')')?;
    let words: Vec<&str> = arguments.split(", ").collect();
    let first = *words.first()?;
    // Calls on pipes, on no descriptor, and memory without a file.
    let on_pipe = matches!(name, "read" | "write" | "close") && pipe.iter().any(|n| n == first);
    let closed = result.contains("EBADF");
    // The one is left out, the other only followed.
    let asks = arguments.contains("F_GETFD") || arguments.contains("F_SETFD");
    if on_pipe || closed || asks || arguments.contains("MAP_ANONYMOUS") {
        return None;
    }
    let makes = matches!(
        name,
        "openat" | "open" | "openat2" | "creat" | "dup" | "dup2" | "dup3"
    );
    let duplicates = arguments.contains("F_DUPFD");
    let result = match result.split_once(' ') {
        Some(("-1", error)) => error.split(' ').next()?.to_owned(),
        _ if makes || duplicates => "descriptor".to_owned(),
        _ if name == "mmap" || name == "mremap" => "0".to_owned(),
        _ if arguments.contains("F_GETFL") => "flags".to_owned(),
        Some((number, _)) => number.to_owned(),
        None => result.to_owned(),
    };
    let last = |count: usize| words[words.len().saturating_sub(count)..].join(" ");
    let lengths = || -> u64 {
        let lengths = arguments.split("iov_len=").skip(1);
        let number = |text: &str| {
            text.split(['}', ','])
                .next()
                .and_then(|n| n.parse::<u64>().ok())
        };
        lengths.filter_map(number).sum()
    };
    let compared = match name {
        "read" | "write" | "ftruncate" | "truncate" | "getdents64" | "readlink" | "readlinkat" => {
            last(1)
        }
        "pread64" | "pwrite64" => last(2),
        "fallocate" => last(2),
        "readv" | "writev" => lengths().to_string(),
        "preadv" | "pwritev" if !arguments.contains("...]") => format!("{} {}", lengths(), last(1)),
        "openat" => words.get(2)?.to_string(),
        "open" => words.get(1)?.to_string(),
        "copy_file_range" => {
            let before = |word: &str| word.split(['[', ']']).nth(1).unwrap_or("").to_owned();
            format!("{} {} {}", before(words[1]), before(words[3]), words[4])
        }
        "sendfile" => last(1),
        _ => String::new(),
    };
    Some(format!("{name} {compared} = {result}"))
}

pub fn facts_of(recording: &Recording) -> Vec<String> {
    let ours = |call: &&Call| {
        !matches!(
            call.syscall,
            Syscall::Present | Syscall::Clone | Syscall::Execve | Syscall::Exit
        )
    };
    recording.calls.iter().filter(ours).map(fact_of).collect()
}

fn fact_of(call: &Call) -> String {
    let name = call.syscall.name();
    let result = match call.outcome {
        Outcome::Handle(_) => "descriptor".to_owned(),
        Outcome::Failed(error) => error_name(error),
        _ if matches!(call.operation, Operation::StatusFlags { set: None, .. }) => {
            "flags".to_owned()
        }
        Outcome::Value(value) => value.to_string(),
        Outcome::Unfinished | Outcome::Unknown => "?".to_owned(),
    };
    let compared = match &call.operation {
        Operation::Transfer {
            size,
            offset,
            flags: 0,
            ..
        } => match (call.syscall, offset) {
            (Syscall::Preadv2 | Syscall::Pwritev2, _) => String::new(),
            (_, Some(offset)) => format!("{size} {offset}"),
            (_, None) => size.to_string(),
        },
        Operation::Truncate { size, .. } => size.to_string(),
        Operation::Allocate { offset, size, .. } => format!("{offset} {size}"),
        Operation::ReadDirectory { size, .. } | Operation::ReadLink { size, .. } => {
            size.to_string()
        }
        Operation::Open { flags, .. }
            if matches!(call.syscall, Syscall::Openat | Syscall::Open) =>
        {
            flags.to_string()
        }
        Operation::Copy {
            from_offset: Some(from),
            to_offset: Some(to),
            size,
            ..
        } => {
            format!("{from} {to} {size}")
        }
        Operation::Copy { size, .. } => size.to_string(),
        _ => String::new(),
    };
    format!("{name} {compared} = {result}")
}

fn error_name(error: Errno) -> String {
    error
        .name()
        .map_or_else(|| format!("E{}", error.0), str::to_owned)
}
