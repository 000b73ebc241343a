use super::*;
use crate::fixture;
use iostep_model::bench::{Access, Latency, PageCache, Transfer};
use iostep_model::host::Android;

fn the_fault(change: impl FnOnce(&mut Document)) -> String {
    let mut document = fixture::file(2);
    change(&mut document);
    let faults = faults(&document);
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults.into_iter().next().unwrap_or_default()
}

fn file_job(document: &mut Document) -> &mut iostep_model::bench::FileJob {
    match &mut document.job {
        Job::File(job) => job,
        Job::Sqlite(_) => panic!("a job of files"),
    }
}

#[test]
fn what_a_generator_measured_can_be_true() {
    assert_eq!(faults(&fixture::file(3)), [""; 0]);
    assert_eq!(faults(&fixture::sqlite(2)), [""; 0]);
}

#[test]
fn more_operations_than_were_timed_are_told() {
    let fault = the_fault(|document| {
        let run = &mut document.runs[1];
        run.operations += 1;
        run.bytes += 4096;
        run.seconds[0].operations += 1;
        run.seconds[0].bytes += 4096;
        run.threads[0].operations += 1;
        run.threads[0].bytes += 4096;
    });
    assert!(fault.starts_with("run 2: 6"), "{fault}");
    assert!(fault.contains("latencies of total for"), "{fault}");
}

#[test]
fn parts_that_do_not_add_up_are_told() {
    let fault = the_fault(|document| document.runs[0].seconds[0].bytes -= 1);
    assert!(fault.contains("bytes of its seconds are"), "{fault}");
    let fault = the_fault(|document| document.runs[0].threads[0].operations -= 1);
    assert!(fault.contains("operations of its threads are"), "{fault}");
    let fault = the_fault(|document| document.runs[0].seconds[0].latency_sum_ns -= 1);
    assert!(fault.contains("and of its histogram"), "{fault}");
    let fault = the_fault(|document| document.runs[0].seconds[0].length_ns += 1);
    assert!(fault.contains("elapsed_ns of its seconds are"), "{fault}");
}

#[test]
fn a_shorter_time_makes_no_faster_device() {
    let fault = the_fault(|document| {
        let run = &mut document.runs[0];
        run.elapsed_ns /= 2;
        run.threads[0].elapsed_ns = run.elapsed_ns;
        let mut rest_ns = run.elapsed_ns;
        for second in &mut run.seconds {
            second.length_ns = second.length_ns.min(rest_ns);
            rest_ns -= second.length_ns;
        }
    });
    assert!(fault.contains("were under way at once"), "{fault}");
}

#[test]
fn a_histogram_cannot_say_two_things() {
    let fault = the_fault(|document| {
        let mut json = serde_json::to_value(&document.runs[0].latencies[1]).expect("JSON");
        json["histogram"]["sum_ns"] = 7.into();
        let latency: Latency = serde_json::from_value(json).expect("a histogram");
        document.runs[0].latencies[1] = latency;
    });
    assert!(fault.contains("their sum is 7 ns"), "{fault}");
    let fault = the_fault(|document| {
        let again = document.runs[0].latencies[1].clone();
        document.runs[0].latencies.push(again);
    });
    assert!(fault.ends_with("are there twice"), "{fault}");
}

#[test]
fn bytes_past_the_page_cache_are_the_devices() {
    let fault = the_fault(|document| {
        file_job(document).transfer = Transfer::Direct;
        let run = &mut document.runs[0];
        run.device.as_mut().expect("counters").write.bytes = run.bytes / 2;
    });
    assert!(fault.contains("went past the page cache"), "{fault}");
}

#[test]
fn syncs_are_flushes_unless_nobody_counts_or_wants_them() {
    let few = |document: &mut Document| {
        let counters = document.runs[0].device.as_mut().expect("counters");
        counters.flush.ios /= 2;
    };
    let fault = the_fault(few);
    assert!(fault.contains("syncs one after the other"), "{fault}");
    let changes: [fn(&mut Document); 4] = [
        |document| document.environment.host.kernel = "4.19.0".into(),
        |document| {
            let device = document.environment.device.as_mut().expect("a device");
            device.volatile_write_cache = Some(false);
        },
        |document| {
            let filesystem = document.environment.filesystem.as_mut();
            filesystem.expect("a filesystem").options = "rw,nobarrier".into();
        },
        // By a version that took a partition's flushes from where the kernel counts none.
        |document| document.environment.flushes_of.clear(),
    ];
    for change in changes {
        let mut document = fixture::file(1);
        few(&mut document);
        change(&mut document);
        assert_eq!(faults(&document), [""; 0]);
    }
}

#[test]
fn no_device_answers_within_nanoseconds() {
    let fault = the_fault(|document| {
        let run = &mut document.runs[0];
        let operations = run.seconds.iter().map(|it| it.operations).sum::<u64>();
        let whole: LatencyHistogram = (0..operations).map(|_| 500).collect();
        for second in &mut run.seconds {
            second.latency_sum_ns = 500 * second.operations;
            second.latency_max_ns = 500;
        }
        for latency in &mut run.latencies {
            latency.histogram = whole.clone();
        }
    });
    assert!(fault.contains("no device answers within 1000"), "{fault}");
}

#[test]
fn numbers_that_overflow_and_endless_names_are_told_and_add_nothing_up() {
    let fault = the_fault(|document| document.runs[0].elapsed_ns = u64::MAX);
    assert!(fault.contains("more than anything counts"), "{fault}");
    let fault = the_fault(|document| {
        document.environment.disks[0].model = Some("x".repeat(MOST_LETTERS + 1));
    });
    assert!(fault.ends_with("more than 256 letters"), "{fault}");
    let fault = the_fault(|document| document.runs.clear());
    assert_eq!(fault, "it has no run");
}

fn codes(document: &Document) -> Vec<String> {
    let reasons = against(document, &Summary::of(document));
    reasons.into_iter().map(|reason| reason.code).collect()
}

#[test]
fn what_spoils_a_result_keeps_it_from_being_ranked_and_the_rest_does_not() {
    let mut document = fixture::file(3);
    assert_eq!(codes(&document), [""; 0]);
    document.warnings = vec![
        Warning::OnBattery,
        Warning::CpuGovernor {
            governor: "schedutil".into(),
            cpus: 8,
        },
    ];
    assert_eq!(codes(&document), [""; 0]);
    document.warnings.push(Warning::InMemory {
        filesystem: "tmpfs".into(),
    });
    document.warnings.push(Warning::BatterySaver);
    document.warnings.push(Warning::Hot { status: 2 });
    document.runs[0].state = RunState::Interrupted;
    assert_eq!(
        codes(&document),
        ["incomplete", "in_memory", "battery_saver", "hot"]
    );
}

#[test]
fn a_warning_that_was_left_out_is_given_all_the_same() {
    let with = |change: &dyn Fn(&mut Document)| {
        let mut document = fixture::file(3);
        change(&mut document);
        assert_eq!(document.warnings, []);
        codes(&document)
    };
    let filesystem = |kind: &'static str, options: &'static str| {
        with(&move |document| {
            let filesystem = document.environment.filesystem.as_mut().expect("one");
            filesystem.kind = kind.into();
            filesystem.options = options.into();
        })
    };
    assert_eq!(filesystem("tmpfs", "rw"), ["in_memory"]);
    assert_eq!(filesystem("btrfs", "rw,compress=zstd:1"), ["compression"]);
    assert_eq!(filesystem("btrfs", "rw"), [""; 0]);
    for (name, code) in [("loop3", "loop_device"), ("zram0", "compression")] {
        let found = with(&|document| {
            let device = document.environment.device.as_mut().expect("one");
            device.name = name.into();
        });
        assert_eq!(found, [code]);
    }
    let found = with(&|document| {
        let Job::File(job) = &mut document.job else {
            panic!("a job of files");
        };
        job.access = Access::Read;
        job.transfer = Transfer::Buffered;
        job.page_cache = PageCache::Warm;
        document
            .runs
            .iter_mut()
            .for_each(|run| run.page_cache = None);
        document.environment.memory_bytes = u64::MAX;
    });
    assert_eq!(found, ["fits_in_page_cache"]);
}

#[test]
fn a_result_of_unknown_hardware_is_not_ranked() {
    let mut document = fixture::file(3);
    document.environment.disks.clear();
    assert_eq!(codes(&document), ["unknown_device"]);
    document.environment.host.android = Some(Android::default());
    assert_eq!(codes(&document), [""; 0]);
}

#[test]
fn steps_of_an_operation_fit_into_the_time_and_what_is_outside_of_them_may_take_longer() {
    let with = |step, each_ns: u64| {
        let mut document = fixture::file(1);
        let run = &mut document.runs[0];
        let mut histogram = iostep_model::bench::LatencyRecorder::default();
        (0..run.operations).for_each(|_| histogram.record(each_ns));
        run.latencies.retain(|latency| latency.step != step);
        run.latencies.push(Latency {
            step,
            histogram: histogram.into(),
        });
        faults(&document)
    };
    let second_ns = 1_000_000_000;
    for step in [Step::EndSync, Step::Lateness, Step::Checkpoint] {
        assert_eq!(with(step, second_ns), [""; 0], "{}", step.name());
    }
    let faults = with(Step::Write, second_ns);
    assert!(faults[0].contains("write took"), "{faults:?}");
}
