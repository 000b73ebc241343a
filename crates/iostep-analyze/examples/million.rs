//! Times a report of 1,000,000 I/Os: `cargo run --release -p iostep-analyze --example million`.
//!
//! Makes the trace, writes it, and then, in a process of its own so that the peak is the
//! report's alone, reads it and makes the summary as text. The bound is 3 s and 500 MiB.
//! An argument is another number of I/Os; `--keep DIR` leaves the trace in DIR.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use iostep_analyze::report::trace;
use iostep_analyze::stats::Summary;
use iostep_model::fixture;
use iostep_model::store;
use iostep_report::document::Detail;
use iostep_report::text::Style;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--report", directory] => report(Path::new(directory)),
        [] => make_and_report(1_000_000, None),
        [requests] => make_and_report(number(requests), None),
        [requests, "--keep", directory] => {
            make_and_report(number(requests), Some(Path::new(directory)))
        }
        _ => panic!("usage: million [REQUESTS [--keep DIR]]"),
    }
}

fn number(text: &str) -> usize {
    text.parse().expect("a number of requests")
}

fn make_and_report(requests: usize, keep: Option<&Path>) -> ExitCode {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let directory = keep.unwrap_or(temporary.path());
    std::fs::create_dir_all(directory).expect("the directory");
    let started = Instant::now();
    let trace = fixture::sqlite_on_ext4(requests);
    println!(
        "made    {:>6.2} s  {} requests, {} segments",
        started.elapsed().as_secs_f64(),
        trace.requests.len(),
        trace.segments.len()
    );
    let started = Instant::now();
    store::write(directory, &trace).expect("write");
    println!("wrote   {:>6.2} s", started.elapsed().as_secs_f64());
    let this = std::env::current_exe().expect("this program");
    let status = Command::new(this)
        .arg("--report")
        .arg(directory)
        .status()
        .expect("run");
    ExitCode::from(u8::from(!status.success()))
}

fn report(directory: &Path) -> ExitCode {
    let all = Instant::now();
    let trace = store::read(directory).expect("read");
    println!(
        "read    {:>6.2} s  {} MiB",
        all.elapsed().as_secs_f64(),
        peak_mib()
    );
    let started = Instant::now();
    let summary = Summary::of(&trace);
    println!(
        "summary {:>6.2} s  {} MiB",
        started.elapsed().as_secs_f64(),
        peak_mib()
    );
    let started = Instant::now();
    let text = trace::render(&summary, Detail::Brief, Style::default());
    println!(
        "text    {:>6.2} s  {} lines",
        started.elapsed().as_secs_f64(),
        text.lines().count()
    );
    println!(
        "report  {:>6.2} s  {} MiB at most",
        all.elapsed().as_secs_f64(),
        peak_mib()
    );
    let within = all.elapsed().as_secs_f64() < 3.0 && peak_mib() < 500;
    ExitCode::from(u8::from(!within))
}

/// The most memory that this process ever held (`VmHWM`, proc_pid_status(5)).
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc is mounted");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("VmHWM");
    let kib: u64 = line
        .split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .expect("KiB");
    kib / 1024
}
