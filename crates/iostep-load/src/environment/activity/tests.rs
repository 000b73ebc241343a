use super::*;

use crate::environment::fake::Root;
use crate::environment::tests::file_job;
use iostep_model::bench::{Access, Cpu, FileJob, MachineTime, PageCache, PageCacheState, Transfer};

const SECOND_NS: u64 = 1_000_000_000;

/// A run of two seconds on two CPUs, half of one of which it took, 1000 operations of 4 KiB.
fn run() -> Run {
    Run {
        elapsed_ns: 2 * SECOND_NS,
        operations: 1000,
        bytes: 1000 * 4096,
        cpu: Cpu {
            user_ns: SECOND_NS / 4,
            system_ns: SECOND_NS * 3 / 4,
            voluntary_switches: 0,
            involuntary_switches: 0,
            machine: Some(MachineTime {
                user_ns: SECOND_NS / 4,
                system_ns: SECOND_NS * 3 / 4,
                idle_ns: 3 * SECOND_NS,
                ..MachineTime::default()
            }),
        },
        ..Run::empty(RunState::Complete, 0)
    }
}

fn with_machine(change: impl Fn(&mut MachineTime)) -> Run {
    let mut run = run();
    change(run.cpu.machine.as_mut().expect("it has one"));
    run
}

fn warnings_of(job: FileJob, runs: &[Run]) -> Vec<Warning> {
    let mut environment = crate::environment::here(Root::new().path());
    environment.host.cpus = 2;
    environment.memory_bytes = 1 << 30;
    let mut warnings = Vec::new();
    warn_of_job(&Job::File(job), &environment, runs, &mut warnings);
    warnings
}

#[test]
fn counters_are_read_and_only_threads_of_the_kernel_count() {
    let stat = |flags: u64, user: u64, system: u64| {
        format!(
            "7 (a) b (c) S 2 0 0 0 -1 {flags} 0 0 0 0 {user} {system} 0 0 20 0 1 0 9 0 0 \
             0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    };
    let root = Root::with(&[
        ("proc/vmstat", "nr_free_pages 5\npswpin 30\npswpout 12\n"),
        ("proc/2/stat", &stat(0x0020_8040, 1, 41)),
        ("proc/8/stat", &stat(0x0020_8040, 0, 8)),
        ("proc/900/stat", &stat(0x0040_0000, 1000, 1000)),
        ("proc/self/stat", &stat(0x0020_8040, 5, 5)),
    ]);
    let now = Activity::now(root.path());
    let tick_ns = 1_000_000_000 / procfs::ticks_per_second();
    let expected = Activity {
        swapped_pages: 42,
        kernel_threads_ns: 50 * tick_ns,
        process_ns: 10 * tick_ns,
    };
    assert_eq!(now, expected);
    assert_eq!(Activity::default().since(now), Activity::default());
}

#[test]
fn swapped_pages_are_told() {
    let mut warnings = Vec::new();
    let passed = Activity {
        swapped_pages: 3,
        ..Activity::default()
    };
    warn(&passed, &Job::File(file_job()), &[run()], &mut warnings);
    assert_eq!(warnings, [Warning::Swapping { pages: 3 }]);
}

#[test]
fn others_are_who_is_neither_the_load_nor_the_kernel() {
    let others = |kernel_threads_ns, runs: &[Run]| Shares::of(runs, kernel_threads_ns).others;
    assert_eq!(others(0, &[run()]), 0.0);
    let busy = with_machine(|time| {
        time.user_ns += SECOND_NS;
        time.idle_ns -= SECOND_NS;
    });
    assert_eq!(others(0, std::slice::from_ref(&busy)), 0.25);
    assert_eq!(others(SECOND_NS / 2, std::slice::from_ref(&busy)), 0.125);
    assert_eq!(others(0, &[busy, run()]), 0.125);
    let interrupts = with_machine(|time| time.softirq_ns += SECOND_NS);
    assert_eq!(others(0, &[interrupts]), 0.0);
    assert_eq!(others(0, &[]), 0.0);
}

#[test]
fn shares_are_told_from_a_threshold_on() {
    let told = |run: Run| {
        let mut warnings = Vec::new();
        let job = Job::File(file_job());
        warn(&Activity::default(), &job, &[run], &mut warnings);
        warnings
    };
    assert_eq!(told(run()), []);
    assert_eq!(
        told(with_machine(|time| time.steal_ns += SECOND_NS / 100)),
        []
    );
    let stolen = told(with_machine(|time| time.steal_ns += SECOND_NS));
    assert_eq!(stolen, [Warning::Steal { share: 0.2 }]);
    let busy = told(with_machine(|time| time.system_ns += SECOND_NS));
    assert_eq!(busy, [Warning::BusyMachine { others: 0.2 }]);
}

#[test]
fn the_workers_of_a_ring_are_not_others() {
    let busy = with_machine(|time| time.system_ns += SECOND_NS);
    let told = |engine: Engine| {
        let job = FileJob {
            engine,
            ..file_job()
        };
        let passed = Activity {
            process_ns: 2 * SECOND_NS,
            ..Activity::default()
        };
        let mut warnings = Vec::new();
        warn(
            &passed,
            &Job::File(job),
            std::slice::from_ref(&busy),
            &mut warnings,
        );
        warnings
    };
    assert_eq!(told(Engine::Uring), []);
    assert_eq!(told(Engine::Psync), [Warning::BusyMachine { others: 0.2 }]);
}

#[test]
fn threads_are_held_against_the_cpus_that_they_may_use() {
    let told = |threads: u32, cpus: &[u32]| {
        let mut job = file_job();
        (job.threads, job.measurement.cpus) = (threads, cpus.to_vec());
        warnings_of(job, &[])
    };
    assert_eq!(told(2, &[]), []);
    let too_many = |threads, cpus| [Warning::MoreThreadsThanCpus { threads, cpus }];
    assert_eq!(told(3, &[]), too_many(3, 2));
    assert_eq!(told(2, &[1, 1]), too_many(2, 1));
}

#[test]
fn reads_that_the_page_cache_can_answer_are_told() {
    let told = |change: &dyn Fn(&mut FileJob, &mut Run)| {
        let mut job = FileJob {
            access: Access::Read,
            file_bytes: 1000 * 4096,
            ..file_job()
        };
        let mut run = run();
        change(&mut job, &mut run);
        !warnings_of(job, &[run]).is_empty()
    };
    assert!(!told(&|_, _| ()));
    assert!(told(&|job, _| job.page_cache = PageCache::Warm));
    assert!(told(&|_, run| run.bytes += 4096), "it reads some twice");
    assert!(!told(&|job, run| {
        job.transfer = Transfer::DontCache;
        run.bytes += 4096;
    }));
    let found = |resident_pages| {
        told(&|_, run| {
            run.page_cache = Some(PageCacheState {
                pages: 1000,
                resident_pages,
                dirty_pages: None,
            });
        })
    };
    assert!(!found(32));
    assert!(found(900));
    let warm = |change: &dyn Fn(&mut FileJob)| {
        told(&|job, _| {
            job.page_cache = PageCache::Warm;
            change(job);
        })
    };
    assert!(!warm(&|job| job.transfer = Transfer::Direct));
    assert!(!warm(&|job| job.access = Access::RandomWrite));
    assert!(!warm(&|job| job.file_bytes = 2 << 30));
}

#[test]
fn runs_of_less_than_a_second_are_short_unless_they_were_cut() {
    let short = Run {
        elapsed_ns: SECOND_NS - 1,
        ..run()
    };
    let expected = Warning::TooShort {
        elapsed_ns: SECOND_NS - 1,
    };
    assert_eq!(warnings_of(file_job(), &[run(), short.clone()]), [expected]);
    let cut = Run {
        state: RunState::Interrupted,
        ..short
    };
    assert_eq!(warnings_of(file_job(), &[run(), cut]), []);
}

#[test]
fn a_missed_rate_is_told_with_the_slowest_run() {
    let told = |asked: f64| {
        let mut job = file_job();
        job.measurement.pace.operations_per_second = Some(asked);
        let mut slow = run();
        slow.operations = 900;
        warnings_of(job, &[run(), slow])
    };
    assert_eq!(told(450.0), []);
    let expected = Warning::RateNotReached {
        asked: 500.0,
        reached: 450.0,
    };
    assert_eq!(told(500.0), [expected]);
}
