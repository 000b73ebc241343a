use iostep_model::fixture;
use iostep_model::operation::{Flags, Operation};
use proptest::prelude::*;

use super::*;

fn bytes_of<K>(shares: &[Share<K>]) -> (u64, u64) {
    shares.iter().fold((0, 0), |(read, write), share| {
        (
            read + share.amounts.read.bytes,
            write + share.amounts.write.bytes,
        )
    })
}

fn requests_of<K>(shares: &[Share<K>]) -> (u64, u64) {
    shares.iter().fold((0, 0), |(read, write), share| {
        (
            read + share.amounts.read.requests,
            write + share.amounts.write.requests,
        )
    })
}

/// Read and written bytes by the totals table.
fn total_bytes(summary: &Summary) -> (u64, u64) {
    let sum = |of: fn(Operation) -> bool| {
        let rows = summary.totals.iter().filter(|total| of(total.operation));
        rows.map(|total| total.amount.bytes).sum()
    };
    (
        sum(|operation| operation == Operation::Read),
        sum(Operation::is_write),
    )
}

fn assert_bytes_add_up(summary: &Summary) {
    let expected = total_bytes(summary);
    assert_eq!(bytes_of(&summary.classes), expected, "classes");
    assert_eq!(bytes_of(&summary.layers), expected, "layers");
    assert_eq!(bytes_of(&summary.file_types), expected, "file types");
    assert_eq!(bytes_of(&summary.modes), expected, "modes");
    assert_eq!(bytes_of(&summary.orders), expected, "orders");
    assert_eq!(bytes_of(&summary.sizes), expected, "sizes");
    assert_eq!(bytes_of(&summary.heat), expected, "heat");
    let by_phase = summary
        .phase_layers
        .iter()
        .fold((0, 0), |(read, write), row| {
            (read + row.read_bytes, write + row.write_bytes)
        });
    assert_eq!(by_phase, expected, "layers by phase");
    let all = summary.all();
    assert_eq!((all.read.bytes, all.write.bytes), expected, "all");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_distributions_bytes_add_up_to_the_totals(
        requests in 0usize..600,
        bare in 1usize..9,
        tracer in 1usize..9,
        phases in 1usize..9,
    ) {
        let mut trace = fixture::sqlite_on_ext4(requests);
        for (index, request) in trace.requests.iter_mut().enumerate() {
            if index % (bare + 1) == 0 {
                // A request whose bio was not seen has no segments.
                request.segments = 0;
            }
            request.by_tracer = index % (tracer + 7) == 0;
            request.phase = iostep_model::table::Phase::ALL[index / (phases * 20) % 3];
        }
        let summary = Summary::of(&trace);
        assert_bytes_add_up(&summary);
        let counted: u64 = trace
            .requests
            .iter()
            .filter(|r| r.operation == Operation::Read || r.operation.is_write())
            .map(|r| u64::from(r.bytes))
            .sum();
        let (read, write) = total_bytes(&summary);
        prop_assert_eq!(counted, read + write + summary.tracer.sum().bytes);
    }
}

#[test]
fn a_distribution_of_whole_requests_counts_each_once() {
    let summary = Summary::of(&fixture::sqlite_on_ext4(300));
    let all = summary.all();
    let expected = (all.read.requests, all.write.requests);
    assert_eq!(requests_of(&summary.modes), expected);
    assert_eq!(requests_of(&summary.orders), expected);
    assert_eq!(requests_of(&summary.sizes), expected);
    // A commit's request has a descriptor and logged blocks: it is in both rows.
    assert!(requests_of(&summary.classes).1 > expected.1);
    assert_eq!(requests_of(&summary.layers), expected);
}

#[test]
fn an_empty_trace_has_an_empty_summary() {
    let summary = Summary::of(&fixture::empty());
    assert!(summary.all().is_empty());
    assert!(summary.totals.is_empty() && summary.files.is_empty());
    assert_eq!(summary.rewrites, Rewrites::default());
    assert_eq!(summary.joj.joj_share, None);
    assert!(summary.overview.passed);
}

#[test]
fn a_write_where_the_last_one_ended_is_sequential_also_between_reads() {
    let mut trace = fixture::sqlite_on_ext4(4);
    let (write, read) = (Operation::Write, Operation::Read);
    let requests = [
        (write, 80, 4096),
        (read, 8, 4096),
        (write, 88, 512),
        (write, 89, 4096),
    ];
    for (request, (operation, sector, bytes)) in trace.requests.iter_mut().zip(requests) {
        request.operation = operation;
        request.sector = sector;
        request.bytes = bytes;
        request.segments = 0;
    }
    let summary = Summary::of(&trace);
    let [random, sequential] = &summary.orders[..] else {
        panic!("two orders, found {:?}", summary.orders);
    };
    assert_eq!(random.of, Order::Random);
    assert_eq!(
        random.amounts.write,
        Amount {
            requests: 1,
            bytes: 4096
        }
    );
    assert_eq!(
        random.amounts.read,
        Amount {
            requests: 1,
            bytes: 4096
        }
    );
    assert_eq!(
        sequential.amounts.write,
        Amount {
            requests: 2,
            bytes: 4608
        }
    );
    assert!(sequential.amounts.read == Amount::default());
}

#[test]
fn journal_of_journal_is_what_the_database_logs_syncs_caused() {
    let trace = fixture::sqlite_on_ext4(300);
    let summary = Summary::of(&trace);
    let caused_by_logs: u64 = trace
        .segments
        .iter()
        .filter(|s| s.class.layer() == Layer::Journal)
        .filter_map(|s| Some((s, trace.syncs[s.cause? as usize].file?)))
        .filter(|(_, file)| trace.files[*file as usize].file_type.is_database_log())
        .map(|(s, _)| u64::from(s.bytes))
        .sum();
    assert!(caused_by_logs > 0);
    assert_eq!(summary.joj.joj_bytes, caused_by_logs);
    let rows: u64 = summary.joj.files.iter().map(|row| row.journal_bytes).sum();
    assert_eq!(
        rows + summary.joj.uncaused_journal_bytes,
        summary.joj.journal_bytes
    );
    let database = &summary
        .joj
        .files
        .iter()
        .find(|row| row.path == "/app/app.db");
    let database = database.expect("the database");
    let all = database.data_bytes + database.journal_bytes + database.metadata_bytes;
    assert_eq!(
        database.amplification,
        Some(all as f64 / database.data_bytes as f64)
    );
}

#[test]
fn a_block_written_three_times_is_rewritten_twice() {
    let mut trace = fixture::sqlite_on_ext4(4);
    let places = [
        (800, 4096, 10),
        (800, 8192, 30),
        (804, 512, 70),
        (4096, 4096, 90),
    ];
    for (request, (sector, bytes, issue_ns)) in trace.requests.iter_mut().zip(places) {
        request.operation = Operation::Write;
        request.sector = sector;
        request.bytes = bytes;
        request.issue_ns = issue_ns;
        request.segments = 0;
    }
    let rewrites = Summary::of(&trace).rewrites;
    assert_eq!(
        (
            rewrites.blocks,
            rewrites.block_writes,
            rewrites.block_rewrites
        ),
        (3, 5, 2)
    );
    assert_eq!(rewrites.rewrite_share, Some(0.4));
    let times: Vec<(u64, u64)> = rewrites
        .times_written
        .iter()
        .map(|t| (t.up_to_writes, t.blocks))
        .collect();
    assert_eq!(times, [(1, 2), (4, 1)]);
    let interval = rewrites.interval.expect("rewrites");
    assert_eq!(
        (interval.count, interval.p50_ns, interval.max_ns),
        (2, 20, 40)
    );
}

#[test]
fn a_process_is_counted_as_dirtier_and_as_submitter() {
    let summary = Summary::of(&fixture::sqlite_on_ext4(300));
    let of = |name: &str| {
        let row = summary.processes.iter().find(|row| row.name == name);
        row.unwrap_or_else(|| panic!("no process {name}"))
    };
    assert!(of("app").dirtied.bytes > of("app").submitted.write.bytes);
    assert_eq!(of("jbd2/loop0-8").dirtied, Amount::default());
    assert!(of("jbd2/loop0-8").submitted.write.bytes > 0);
    assert_eq!(of("app").syncs, summary.sync_calls.len() as u64);
}

#[test]
fn files_of_one_path_are_one_row_by_path() {
    let mut trace = fixture::sqlite_on_ext4(300);
    let before = Summary::of(&trace);
    // Every other sync and write of the database is of another file of the same name.
    let other = trace.files.len() as u32;
    let mut copy = trace.files[0].clone();
    copy.key.inode = 99;
    copy.deleted_ns = Some(1);
    trace.files.push(copy);
    for segment in trace
        .segments
        .iter_mut()
        .step_by(2)
        .filter(|s| s.file == Some(0))
    {
        segment.file = Some(other);
    }
    for sync in trace
        .syncs
        .iter_mut()
        .step_by(2)
        .filter(|s| s.file == Some(0))
    {
        sync.file = Some(other);
    }
    let after = Summary::of(&trace);
    assert_eq!(after.files.len(), before.files.len() + 1);
    assert_eq!(after.joj.files.len(), before.joj.files.len() + 1);
    let of = |summary: &Summary| {
        let rows = summary.joj.by_path().into_iter();
        rows.map(|row| (row.path, row.syncs, row.journal_bytes, row.amplification))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&after), of(&before));
    let database = after
        .files_by_path()
        .into_iter()
        .find(|row| row.path == "/app/app.db");
    let database = database.expect("the database");
    assert_eq!((database.files, database.deleted_files), (2, 1));
    assert!(!database.deleted);
    let bytes = |rows: Vec<FileRow>| -> u64 { rows.iter().map(|r| r.amounts.sum().bytes).sum() };
    assert_eq!(bytes(after.files_by_path()), bytes(before.files_by_path()));
}

#[test]
fn a_flush_is_one_that_the_device_executed() {
    let mut trace = fixture::sqlite_on_ext4(40);
    let of = |trace: &Trace| Summary::of(trace).barriers;
    let before = of(&trace);
    let position = |of: fn(&&mut Request) -> bool, trace: &mut Trace| {
        let found = trace.requests.iter_mut().find(of);
        found.expect("the fixture has one").clone()
    };
    // One more write that asks for a flush first, and one more flush that does not come back.
    let mut asking = position(|r| r.operation.is_write() && r.bytes > 0, &mut trace);
    asking.flags = Flags::PREFLUSH;
    let mut lost = position(|r| r.operation == Operation::Flush, &mut trace);
    lost.complete_ns = None;
    trace.requests.extend([asking, lost]);
    let expected = Barriers {
        preflush_writes: before.preflush_writes + 1,
        ..before
    };
    assert_eq!(of(&trace), expected);
    let totals = Summary::of(&trace).totals;
    let rows = totals
        .iter()
        .filter(|row| row.operation == Operation::Flush);
    assert_eq!(
        rows.map(|row| row.amount.requests).sum::<u64>(),
        before.flushes
    );
}

/// The fixture's first process, with a thread that does everything instead.
fn with_a_worker(leader: Option<&str>, command_line: Option<&str>) -> Trace {
    let mut trace = fixture::sqlite_on_ext4(40);
    let first = trace.processes[0].clone();
    let worker = &mut trace.processes[0];
    worker.pid = first.pid + 1;
    worker.comm = "worker".into();
    worker.command_line = command_line.map(str::to_owned);
    trace.processes.extend(leader.map(|comm| {
        let mut leader = first.clone();
        leader.comm = comm.into();
        leader
    }));
    trace
}

#[test]
fn a_process_goes_by_its_programs_name() {
    for (leader, command_line, expected) in [
        (Some("app"), Some("/usr/bin/program --fast"), "app"),
        // Traces of old do not always tell of the first thread.
        (None, Some("/usr/bin/program --fast"), "program"),
        (None, None, "worker"),
    ] {
        let trace = with_a_worker(leader, command_line);
        let summary = Summary::of(&trace);
        let pid = trace.processes[0].tgid;
        let row = summary.processes.iter().find(|row| row.pid == pid);
        assert_eq!(row.map(|row| row.name.as_str()), Some(expected));
        let thread = format!("{expected}:{pid}/worker:{}", pid + 1);
        assert_eq!(trace.thread_name(0), thread);
    }
}

#[test]
fn files_that_never_had_a_name_are_told_apart() {
    let mut trace = fixture::sqlite_on_ext4(40);
    let mut nameless = trace.files[0].clone();
    nameless.path = Some(format!("/tmp/#{}", nameless.key.inode));
    nameless.deleted_ns = Some(1);
    let mut next = nameless.clone();
    next.key.generation += 1;
    trace.files.extend([nameless, next]);
    let last = trace.files.len() as u32 - 1;
    assert_ne!(trace.file_name(last - 1), trace.file_name(last));
    // That is its name: somebody gave it.
    trace.files[last as usize].deleted_ns = None;
    let name = format!("/tmp/#{}", trace.files[0].key.inode);
    assert_eq!(trace.file_path(last), name);
}
