//! How many lines of strace a second are read on one core, then followed by the tracker too, then
//! written as a trace too, as `iostep clean` does; and the most memory that each took:
//! `cargo run --release -p iostep-calls --example strace_lines [FILE|LINES]`. Without a file it
//! makes 1,000,000 lines, or as many as it is told, as a database's: opens, reads, writes and syncs
//! of two threads.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use iostep_calls::Tracker;
use iostep_calls::import::{Format, Import, Input};
use iostep_calls::sink::Sink;
use iostep_model::syscall::raw::Action;
use iostep_model::syscall::text::Writer;
use iostep_model::syscall::{Call, Header, Paths, Thread};

const LINES: u64 = 1_000_000;
/// Lines that are shown of those that are not understood.
const SHOWN: usize = 10;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Takes calls and keeps none.
struct Nothing;

impl Sink for Nothing {
    fn thread(&mut self, _: &Thread) -> iostep_calls::Result<()> {
        Ok(())
    }
    fn renamed(&mut self, _: &Thread) {}
    fn call(&mut self, _: Call, _: &Paths) -> iostep_calls::Result<()> {
        Ok(())
    }
}

fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let argument = std::env::args().nth(1);
    let number = argument.as_deref().unwrap_or("").parse().ok();
    let path = match (&argument, number) {
        (Some(path), None) => PathBuf::from(path),
        _ => made(directory.path(), number.unwrap_or(LINES))?,
    };
    let lines = lines(&path)?;
    println!("{lines} lines, {} bytes", std::fs::metadata(&path)?.len());
    let rate = |begun: Instant, what: &str| -> Result<()> {
        let rate = lines as f64 / begun.elapsed().as_secs_f64();
        let peak = peak_kib()?;
        println!("{rate:>12.0} lines/s {what}; at most {peak} KiB of memory so far");
        Ok(())
    };

    let begun = Instant::now();
    let told = read(&path)?;
    rate(begun, "read")?;

    let begun = Instant::now();
    let mut tracker = Tracker::new(Nothing);
    import(&path)?.events(&mut |event| tracker.event(event))?;
    let ledger = tracker.finish().ledger;
    rate(begun, "read and followed")?;

    let begun = Instant::now();
    let writer = Writer::create(&directory.path().join("trace"), Header::default())?;
    let mut tracker = Tracker::new(writer);
    import(&path)?.events(&mut |event| tracker.event(event))?;
    let finished = tracker.finish();
    let (initial, paths) = (finished.initial, finished.paths);
    finished.sink.finish(&initial, &finished.ledger, &paths)?;
    rate(begun, "read, followed and written")?;

    for line in told {
        println!("{line}");
    }
    for line in ledger.lines {
        let is = if line.kept { "kept" } else { "left out" };
        println!("{:>12} {is} {}", line.count, line.reason);
    }
    Ok(())
}

fn import(path: &Path) -> Result<Import<'static>> {
    let text = BufReader::new(File::open(path)?);
    Ok(Format::Strace.open(vec![Input::new(path, text)])?)
}

/// Reads all lines. Gives some that are not understood.
fn read(path: &Path) -> Result<Vec<String>> {
    let mut told = Vec::new();
    import(path)?.events(&mut |event| {
        if let Action::LeftOut { name, reason } = event.action
            && matches!(reason, "cannot be read" | "arguments not understood")
            && told.len() < SHOWN
        {
            told.push(format!("{reason}: {name}"));
        }
        Ok(())
    })?;
    Ok(told)
}

fn lines(path: &Path) -> std::io::Result<u64> {
    let mut text = BufReader::new(File::open(path)?);
    let mut lines = 0;
    while text.skip_until(b'\n')? > 0 {
        lines += 1;
    }
    Ok(lines)
}

/// The most memory that this process had so far (`VmHWM`, proc(5)), KiB.
fn peak_kib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mut lines = status.lines();
    let peak = lines.find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.ok_or("no VmHWM in /proc/self/status")?;
    Ok(peak.trim().trim_end_matches(" kB").parse()?)
}

/// A text of this many lines. Every tenth is half of a call.
fn made(directory: &Path, lines: u64) -> std::io::Result<PathBuf> {
    let path = directory.join("app.strace");
    let mut text = BufWriter::new(File::create(&path)?);
    let mut number = 0;
    while number < lines {
        let tid = 100 + number % 2;
        let at = 1_700_000_000_000_000 + 20 * number;
        let (second, fraction) = (at / 1_000_000, at % 1_000_000);
        let at = format!("{tid} {second}.{fraction:06}");
        match number % 10 {
            0 => writeln!(
                text,
                "{at} openat(AT_FDCWD, \"/data/app/databases/app.db-{}\", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = {tid} <0.000015>",
                number % 1000
            )?,
            1 => writeln!(
                text,
                "{at} fstat({tid}</data/app.db>, {{st_mode=S_IFREG|0644, st_size=8192, ...}}) = 0 <0.000005>"
            )?,
            2 => writeln!(
                text,
                "{at} pread64({tid}, \"SQLite format 3\\0\\20\\0\\2\\2\\0@  \"..., 100, 0) = 100 <0.000008>"
            )?,
            3 => {
                writeln!(text, "{at} read({tid},  <unfinished ...>")?;
                number += 1;
                writeln!(
                    text,
                    "{at} <... read resumed>\"\\0\\1\\2abc\"..., 4096) = 4096 <0.000020>"
                )?;
            }
            5 => writeln!(
                text,
                "{at} pwrite64({tid}, \"\\r\\0\\0\\0\\1\\17\\312\\0\"..., 4096, 4096) = 4096 <0.000017>"
            )?,
            6 => writeln!(
                text,
                "{at} fcntl({tid}, F_SETLK, {{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=1073741824, l_len=1}}) = 0 <0.000004>"
            )?,
            7 => writeln!(
                text,
                "{at} futex(0x7f3a4c0008c8, FUTEX_WAIT_PRIVATE, 2, NULL) = -1 EAGAIN (Resource temporarily unavailable) <0.000004>"
            )?,
            8 => writeln!(text, "{at} fdatasync({tid}) = 0 <0.002113>")?,
            _ => writeln!(text, "{at} close({tid}) = 0 <0.000006>")?,
        }
        number += 1;
    }
    text.flush()?;
    Ok(path)
}
