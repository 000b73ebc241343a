//! What cannot be true in a result, and what keeps a true one from being ranked.
//!
//! A result says many things twice: operations by thread, by second and by latency; times as sums
//! and as histograms; bytes as payload and as the device counted them. Whoever makes one up has to
//! make all of it up consistently. Whoever does that is not found here: reproducing is the guard.

mod device;

use std::mem::discriminant;

use iostep_analyze::bench::Summary;
use iostep_analyze::report::bench::advice;
use iostep_model::bench::off_device;
use iostep_model::bench::{
    Document, Engine, Job, LatencyHistogram, Run, RunState, SqliteOperation, Step, Warning,
};
use serde::{Deserialize, Serialize};

/// What no counter of a device and no clock reaches: sums of such numbers do not overflow.
const GREATEST: u64 = 1 << 56;
/// Letters of a text; the names of hardware are shorter.
const MOST_LETTERS: usize = 256;
/// Clocks are read one after the other: how much longer latencies may be than the time in which
/// they were, nanoseconds and share.
const SLACK_NS: u128 = 1_000_000;
const SLACK_SHARE: u128 = 1_000;
/// H2 buckets end there; what was longer is in the last one.
const LAST_BUCKET_NS: u64 = (1 << 40) - 1;

/// Why a result is not ranked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// A word for programs: the `kind` of a warning, or one of this crate's.
    pub code: String,
    /// The same for people.
    pub text: String,
}

/// What cannot be true in a document; nothing if all of it can.
///
/// To be asked before anything is computed from it: the numbers of a document without faults do
/// not overflow.
pub fn faults(document: &Document) -> Vec<String> {
    let mut faults = texts(document);
    if document.runs.is_empty() {
        faults.push("it has no run".into());
    }
    for (number, run) in (1..).zip(&document.runs) {
        let place = |fault: String| format!("run {number}: {fault}");
        let found = match magnitude(run) {
            // Nothing else can be said of numbers that overflow.
            Some(fault) => vec![fault],
            None => of_run(document, run),
        };
        faults.extend(found.into_iter().map(place));
    }
    faults
}

/// Why a document is not ranked; nothing if it is. `summary` is that of the document.
pub fn against(document: &Document, summary: &Summary) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut push = |code: &str, text: String| {
        reasons.push(Reason {
            code: code.to_owned(),
            text,
        });
    };
    if !summary.is_whole() {
        let text = "a run did not come to its end, or read back something wrong";
        push("incomplete", text.to_owned());
    }
    let mut warnings = summary.warnings.clone();
    for shown in off_device(document) {
        // Whoever left the warning out does not get round it.
        if !warnings
            .iter()
            .any(|it| discriminant(it) == discriminant(&shown))
        {
            warnings.push(shown);
        }
    }
    for warning in warnings.iter().filter(|it| spoils(it)) {
        push(&kind(warning), advice::of(warning).0);
    }
    let environment = &document.environment;
    if environment.disks.is_empty() && environment.host.android.is_none() {
        push(
            "unknown_device",
            "nothing says what hardware it was".to_owned(),
        );
    }
    reasons
}

/// Warnings of which the rest of a document tells.
fn off_device(document: &Document) -> Vec<Warning> {
    let environment = &document.environment;
    let mut warnings = Vec::new();
    if let Some(filesystem) = &environment.filesystem {
        warnings.extend(off_device::in_memory(filesystem));
        warnings.extend(off_device::compressing_option(filesystem));
    }
    if let Job::File(job) = &document.job {
        let memory_bytes = environment.memory_bytes;
        warnings.extend(off_device::fits_in_page_cache(
            job,
            memory_bytes,
            &document.runs,
        ));
    }
    let name = environment
        .device
        .as_ref()
        .map_or("", |device| &device.name);
    if name.starts_with("zram") {
        warnings.push(Warning::Compression {
            by: name.to_owned(),
        });
    } else if name.starts_with("loop") {
        warnings.push(Warning::LoopDevice {
            device: name.to_owned(),
            backing_file: "a file".into(),
        });
    }
    warnings
}

/// True for what makes a result one of something else than the device, or of nothing.
fn spoils(warning: &Warning) -> bool {
    match warning {
        Warning::InMemory { .. }
        | Warning::LoopDevice { .. }
        | Warning::Compression { .. }
        | Warning::FilesystemNearlyFull { .. }
        | Warning::FitsInPageCache { .. }
        | Warning::Swapping { .. }
        | Warning::BusyMachine { .. }
        | Warning::BusyDevice { .. }
        | Warning::StayedInMemory { .. }
        | Warning::Steal { .. }
        | Warning::TooShort { .. }
        | Warning::NotSteady { .. }
        | Warning::SpreadTooWide { .. }
        | Warning::StockLog { .. }
        | Warning::BatterySaver
        | Warning::Hot { .. } => true,
        // What every phone has, or what the test itself asks for.
        Warning::CpuGovernor { .. }
        | Warning::OnBattery
        | Warning::WithoutCheckpoint
        | Warning::Unreadable { .. }
        | Warning::CallsRefused { .. }
        | Warning::MoreThreadsThanCpus { .. }
        | Warning::RateNotReached { .. } => false,
    }
}

/// The name of a warning's kind in JSON.
fn kind(warning: &Warning) -> String {
    let json = serde_json::to_value(warning).unwrap_or_default();
    json["kind"].as_str().unwrap_or_default().to_owned()
}

fn texts(document: &Document) -> Vec<String> {
    let environment = &document.environment;
    let host = &environment.host;
    let mut texts = vec![
        &document.iostep_version,
        &host.kernel,
        &host.machine,
        &host.processor,
        &environment.clock_source,
    ];
    if let Some(android) = &host.android {
        texts.extend(android.manufacturer.iter().chain(&android.brand));
        texts.extend(android.model.iter().chain(&android.device));
        texts.extend(android.release.iter().chain(&android.fingerprint));
    }
    texts.extend(environment.filesystem.iter().map(|it| &it.kind));
    for disk in &environment.disks {
        texts.extend(disk.vendor.iter().chain(&disk.model).chain(&disk.firmware));
    }
    let is_long = |text: &&&String| text.chars().nth(MOST_LETTERS).is_some();
    let long = texts.iter().filter(is_long);
    long.map(|text| {
        let start = iostep_model::printable::excerpt(text, 20);
        format!("{start}...: a name of more than {MOST_LETTERS} letters")
    })
    .collect()
}

/// The first number that nothing reaches.
fn magnitude(run: &Run) -> Option<String> {
    let cpu = &run.cpu;
    let machine = cpu.machine.unwrap_or_default();
    let mut numbers = vec![
        ("elapsed_ns", run.elapsed_ns),
        ("operations", run.operations),
        ("bytes", run.bytes),
        ("idle_ns", run.idle_ns),
        ("cpu", cpu.user_ns.max(cpu.system_ns)),
        (
            "switches",
            cpu.voluntary_switches.max(cpu.involuntary_switches),
        ),
        ("machine", machine.active_ns().max(machine.total_ns())),
    ];
    for second in &run.seconds {
        numbers.extend([
            ("seconds", second.length_ns),
            ("seconds", second.operations),
            ("seconds", second.bytes),
            ("seconds", second.latency_sum_ns),
        ]);
    }
    for counters in run.seconds.iter().map(|it| it.device).chain([run.device]) {
        let Some(counters) = counters else { continue };
        let groups = [
            counters.read,
            counters.write,
            counters.discard,
            counters.flush,
        ];
        numbers.extend(groups.map(|group| ("device", group.ios.max(group.bytes))));
    }
    for thread in &run.threads {
        numbers.extend([
            ("threads", thread.operations),
            ("threads", thread.bytes),
            ("threads", thread.elapsed_ns),
        ]);
    }
    for latency in &run.latencies {
        let histogram = &latency.histogram;
        numbers.extend([
            ("latencies", histogram.count()),
            ("latencies", histogram.sum_ns()),
            ("latencies", histogram.max_ns().unwrap_or(0)),
        ]);
    }
    let beyond = numbers.into_iter().find(|(_, number)| *number > GREATEST);
    beyond.map(|(name, number)| format!("{name}: {number} is more than anything counts"))
}

fn of_run(document: &Document, run: &Run) -> Vec<String> {
    let job = &document.job;
    let mut faults = sums(run);
    faults.extend(payload(job, run));
    faults.extend(run.latencies.iter().enumerate().filter_map(|(at, it)| {
        let name = it.step.name();
        let again = run.latencies[..at]
            .iter()
            .any(|other| other.step == it.step);
        match again {
            true => Some(format!("latencies of {name} are there twice")),
            false => Some(format!("latencies of {name}: {}", bounds(&it.histogram)?)),
        }
    }));
    faults.extend(time(job, run));
    if run.state == RunState::Complete {
        faults.extend(counts(job, run));
        faults.extend(device::bytes(document, run));
        faults.extend(device::flushes(document, run));
        faults.extend(device::floor(document, run));
    }
    faults
}

fn total(numbers: impl Iterator<Item = u64>) -> u128 {
    numbers.map(u128::from).sum()
}

/// Seconds and threads each add up to the run.
fn sums(run: &Run) -> Vec<String> {
    let seconds = || run.seconds.iter();
    let threads = || run.threads.iter();
    let whole = [
        (
            "operations",
            "seconds",
            total(seconds().map(|it| it.operations)),
            run.operations,
        ),
        (
            "bytes",
            "seconds",
            total(seconds().map(|it| it.bytes)),
            run.bytes,
        ),
        (
            "elapsed_ns",
            "seconds",
            total(seconds().map(|it| it.length_ns)),
            run.elapsed_ns,
        ),
        (
            "operations",
            "threads",
            total(threads().map(|it| it.operations)),
            run.operations,
        ),
        (
            "bytes",
            "threads",
            total(threads().map(|it| it.bytes)),
            run.bytes,
        ),
    ];
    let wrong = whole
        .into_iter()
        .filter(|(_, _, sum, all)| *sum != u128::from(*all));
    wrong
        .map(|(what, of, sum, all)| format!("{what} of its {of} are {sum}, and of the run {all}"))
        .collect()
}

/// Operations have the length that was asked for.
fn payload(job: &Job, run: &Run) -> Option<String> {
    let (record, is_exact) = match job {
        Job::File(job) => (u128::from(job.record_bytes), true),
        Job::Sqlite(job) => {
            let factors = [job.record_bytes, job.statements, job.tables, job.databases];
            let record = factors.into_iter().map(u128::from).product();
            let writes = matches!(
                job.operation,
                SqliteOperation::Insert | SqliteOperation::Update
            );
            (record, writes)
        }
    };
    let most = u128::from(run.operations).saturating_mul(record);
    let bytes = u128::from(run.bytes);
    match is_exact {
        true if bytes != most => Some(format!(
            "{bytes} bytes, and {} operations of {record} bytes are {most}",
            run.operations
        )),
        false if bytes > most => Some(format!(
            "{bytes} bytes, and {} operations of at most {record} bytes are {most}",
            run.operations
        )),
        _ => None,
    }
}

/// What is wrong with a histogram in itself: its sum, least and greatest lie where its buckets do.
fn bounds(histogram: &LatencyHistogram) -> Option<String> {
    let (mut low, mut high) = (0, 0);
    let (mut first, mut last) = (None, None);
    for (from_ns, to_ns, count) in histogram.occupied() {
        low += u128::from(from_ns) * u128::from(count);
        high += u128::from(to_ns) * u128::from(count);
        first = first.or(Some((from_ns, to_ns)));
        last = Some((from_ns, to_ns));
    }
    let (Some(first), Some(last)) = (first, last) else {
        return (histogram.sum_ns() > 0).then(|| "a sum of nothing".to_owned());
    };
    let min_ns = histogram.min_ns().unwrap_or(0);
    let max_ns = histogram.max_ns().unwrap_or(0);
    let sum_ns = u128::from(histogram.sum_ns());
    let is_open = last.1 >= LAST_BUCKET_NS;
    let lies = |value: u64, (from, to): (u64, u64)| value >= from && value <= to;
    let is_least = lies(min_ns, first) || (is_open && first == last && min_ns > last.0);
    if !is_least {
        return Some(format!(
            "the least, {min_ns} ns, is not in the first bucket"
        ));
    }
    let is_greatest = lies(max_ns, last) || (is_open && max_ns > last.0);
    if !is_greatest {
        return Some(format!(
            "the greatest, {max_ns} ns, is not in the last bucket"
        ));
    }
    if sum_ns < low || (sum_ns > high && !is_open) {
        return Some(format!(
            "their sum is {sum_ns} ns, and the buckets say {low} to {high}"
        ));
    }
    None
}

fn histogram(run: &Run, step: Step) -> Option<&LatencyHistogram> {
    let found = run.latencies.iter().find(|latency| latency.step == step);
    found.map(|latency| &latency.histogram)
}

/// How many operations are under way at once at most.
fn at_once(job: &Job) -> u128 {
    let depth = match job {
        Job::File(job) if job.engine == Engine::Uring => u128::from(job.depth.max(1)),
        _ => 1,
    };
    depth * u128::from(job.threads())
}

/// Operations take no longer than the time there was: throughput times latency is what was under way.
fn time(job: &Job, run: &Run) -> Vec<String> {
    let mut faults = Vec::new();
    let elapsed_ns = u128::from(run.elapsed_ns);
    let room_ns = elapsed_ns * at_once(job);
    let room_ns = room_ns + room_ns / SLACK_SHARE + SLACK_NS;
    for latency in &run.latencies {
        let taken_ns = latency.histogram.sum_ns();
        let room_ns = match latency.step {
            Step::Total => room_ns,
            // A part of what is under way may be asked for while its operation is counted as ended.
            Step::Read | Step::Write | Step::Transaction | Step::Commit => 2 * room_ns,
            // After the last operation, or before the first was issued; of whatever length.
            Step::Sync | Step::EndSync | Step::Checkpoint | Step::BusyWait | Step::Lateness => {
                continue;
            }
        };
        if u128::from(taken_ns) > room_ns {
            let what = match latency.step {
                Step::Total => "operations",
                step => step.name(),
            };
            faults.push(format!(
                "{what} took {taken_ns} ns, and in {elapsed_ns} ns {} of them were under way at once",
                at_once(job)
            ));
        }
    }
    let threads_ns = elapsed_ns * u128::from(job.threads());
    if u128::from(run.idle_ns) > threads_ns + SLACK_NS {
        faults.push(format!("threads waited {} ns of {threads_ns}", run.idle_ns));
    }
    if let Some(thread) = run
        .threads
        .iter()
        .find(|thread| u128::from(thread.elapsed_ns) > elapsed_ns + SLACK_NS)
    {
        faults.push(format!(
            "a thread ran for {} ns, and the run took {elapsed_ns}",
            thread.elapsed_ns
        ));
    }
    faults
}

/// Latencies are those of the operations, each of which was in some second.
fn counts(job: &Job, run: &Run) -> Vec<String> {
    let mut faults = Vec::new();
    if run.threads.len() != job.threads() as usize {
        faults.push(format!(
            "{} threads, and {} were asked for",
            run.threads.len(),
            job.threads()
        ));
    }
    let steps: &[Step] = match job {
        Job::File(_) => &[Step::Total],
        Job::Sqlite(_) => &[Step::Total, Step::Transaction],
    };
    for &step in steps {
        let count = histogram(run, step).map_or(0, LatencyHistogram::count);
        if count != run.operations {
            let name = step.name();
            let operations = run.operations;
            faults.push(format!(
                "{count} latencies of {name} for {operations} operations"
            ));
        }
    }
    let Some(whole) = histogram(run, Step::Total) else {
        return faults;
    };
    let sum_ns = total(run.seconds.iter().map(|it| it.latency_sum_ns));
    if sum_ns != u128::from(whole.sum_ns()) {
        faults.push(format!(
            "latencies of its seconds are {sum_ns} ns, and of its histogram {}",
            whole.sum_ns()
        ));
    }
    let max_ns = run.seconds.iter().map(|it| it.latency_max_ns).max();
    if max_ns.unwrap_or(0) != whole.max_ns().unwrap_or(0) {
        faults.push(format!(
            "the greatest latency of its seconds is {} ns, and of its histogram {}",
            max_ns.unwrap_or(0),
            whole.max_ns().unwrap_or(0)
        ));
    }
    faults
}

#[cfg(test)]
mod tests;
