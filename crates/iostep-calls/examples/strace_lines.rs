//! How many lines of strace a second are read on one core, and followed by the tracker:
//! `cargo run --release -p iostep-calls --example strace_lines [FILE]`. Without a file it makes
//! 1,000,000 lines as a database's: opens, reads, writes and syncs of two threads.

use std::io::{Cursor, Write};
use std::time::Instant;

use iostep_calls::Tracker;
use iostep_calls::import::{Format, Input};
use iostep_calls::sink::Sink;
use iostep_model::syscall::raw::Action;
use iostep_model::syscall::{Call, Paths, Thread};

const LINES: u64 = 1_000_000;
/// Lines that are shown of those that are not understood.
const SHOWN: usize = 10;

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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = match std::env::args_os().nth(1) {
        Some(path) => std::fs::read(path)?,
        None => made()?,
    };
    let lines = text.iter().filter(|byte| **byte == b'\n').count();
    let input = || vec![Input::new("strace", Cursor::new(&text))];
    let begun = Instant::now();
    let mut told = Vec::new();
    Format::Strace.open(input())?.events(&mut |event| {
        if let Action::LeftOut { name, reason } = event.action
            && matches!(reason, "cannot be read" | "arguments not understood")
            && told.len() < SHOWN
        {
            told.push(format!("{reason}: {name}"));
        }
        Ok(())
    })?;
    let read = begun.elapsed();
    let begun = Instant::now();
    let mut tracker = Tracker::new(Nothing);
    let import = Format::Strace.open(input())?;
    import.events(&mut |event| tracker.event(event))?;
    let followed = begun.elapsed();
    for line in told {
        println!("{line}");
    }
    let rate = |time: std::time::Duration| lines as f64 / time.as_secs_f64();
    println!("{lines} lines, {} bytes", text.len());
    println!("{:>12.0} lines/s read", rate(read));
    println!("{:>12.0} lines/s read and followed", rate(followed));
    for line in tracker.finish().ledger.lines {
        println!(
            "{:>12} {} {}",
            line.count,
            if line.kept { "kept" } else { "left out" },
            line.reason
        );
    }
    Ok(())
}

/// Every tenth read is in two halves.
fn made() -> std::io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(120 << 20);
    let mut number = 0;
    while number < LINES {
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
    Ok(text)
}
