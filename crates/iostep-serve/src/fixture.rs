//! Results that could be true, for tests.

use iostep_analyze::bench::fixture;
use iostep_model::bench::{Document, Job, LatencyHistogram, LatencyRecorder, Run, Step};
use iostep_model::disk::{Bus, Disk};

/// Writes of 4 KiB with fdatasync(2) by one thread, for so many runs.
pub fn file(runs: u32) -> Document {
    let mut document = fixture::write_fdatasync(runs);
    let Job::File(job) = &mut document.job else {
        unreachable!("a file job")
    };
    job.threads = 1;
    let record_bytes = job.record_bytes;
    let steps = [Step::Total, Step::Write, Step::Sync];
    document
        .runs
        .iter_mut()
        .for_each(|run| make_true(run, record_bytes, &steps));
    with_disk(document)
}

/// Inserts in WAL mode by one thread, for so many runs.
pub fn sqlite(runs: u32) -> Document {
    let mut document = fixture::sqlite_wal(runs);
    let Job::Sqlite(job) = &mut document.job else {
        unreachable!("a job of SQLite")
    };
    job.threads = 1;
    let record_bytes = job.record_bytes.into();
    let steps = [Step::Total, Step::Sync, Step::Transaction];
    document
        .runs
        .iter_mut()
        .for_each(|run| make_true(run, record_bytes, &steps));
    with_disk(document)
}

/// The result of another phone, which is `share` times as fast.
pub fn scaled(mut document: Document, share: f64) -> Document {
    for run in &mut document.runs {
        let scale = |ns: &mut u64| *ns = (*ns as f64 / share) as u64;
        scale(&mut run.elapsed_ns);
        let mut rest_ns = run.elapsed_ns;
        let last = run.seconds.len() - 1;
        for (number, second) in run.seconds.iter_mut().enumerate() {
            scale(&mut second.length_ns);
            if number == last {
                second.length_ns = rest_ns;
            }
            rest_ns -= second.length_ns;
        }
        run.threads[0].elapsed_ns = run.elapsed_ns;
    }
    document
}

fn with_disk(mut document: Document) -> Document {
    document.environment.disks = vec![Disk {
        name: "nvme0n1".into(),
        bus: Some(Bus::Nvme),
        vendor: Some("ACME".into()),
        model: Some("Flash 1".into()),
        firmware: Some("1.0".into()),
        capacity_bytes: Some(1 << 40),
        ..Disk::default()
    }];
    document
}

/// Makes one thread's latencies and seconds of the operations that a run has.
fn make_true(run: &mut Run, record_bytes: u64, steps: &[Step]) {
    let mut total = LatencyRecorder::new();
    for second in &mut run.seconds {
        second.bytes = second.operations * record_bytes;
        (second.latency_sum_ns, second.latency_max_ns) = (0, 0);
        let mean_ns = second.length_ns / second.operations.max(1);
        for number in 0..second.operations {
            let latency_ns = mean_ns - mean_ns / 10 * (number % 3);
            total.record(latency_ns);
            second.latency_sum_ns += latency_ns;
            second.latency_max_ns = second.latency_max_ns.max(latency_ns);
        }
    }
    let total = LatencyHistogram::from(total);
    run.bytes = run.operations * record_bytes;
    run.threads.truncate(1);
    run.threads[0].operations = run.operations;
    run.threads[0].bytes = run.bytes;
    run.latencies = steps
        .iter()
        .map(|&step| iostep_model::bench::Latency {
            step,
            histogram: total.clone(),
        })
        .collect();
}
