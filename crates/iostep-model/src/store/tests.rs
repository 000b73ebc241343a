use std::path::PathBuf;

use parquet::file::writer::SerializedRowGroupWriter;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;

use super::*;
use crate::class::{Class, Evidence, FileType};
use crate::columnar::{Column, Written};
use crate::event::Marker;
use crate::fixture;
use crate::identity::FileKey;
use crate::manifest::State;
use crate::operation::{Flags, Operation};
use crate::sync::SyncKind;
use crate::table::{Commit, File, MarkerRow, Phase, ProcessRow, Request, Segment, Sync};

const FILES: u32 = 3;
const PROCESSES: u32 = 2;
const SYNCS: u32 = 4;

fn class() -> impl Strategy<Value = Class> {
    select(Class::ALL.to_vec())
}

prop_compose! {
    fn segment()(
        sectors in 1u32..200,
        class in class(),
        evidence in select(Evidence::ALL.to_vec()),
        file in option::of(0..FILES),
        file_offset_bytes in option::of(any::<u64>()),
        dirtier in option::of(0..PROCESSES),
        dirtier_by_inode: bool,
        cause in option::of(0..SYNCS),
        commit in option::of(any::<u64>()),
        home in option::of(any::<u64>()),
        home_class in option::of(class()),
        volume: Option<u16>,
    ) -> Segment {
        Segment {
            request: 0,
            sector: 0,
            bytes: sectors * 512,
            class, evidence, file, file_offset_bytes, dirtier, dirtier_by_inode, cause, commit,
            home, home_class, volume,
        }
    }
}

prop_compose! {
    fn request()(
        times: (u64, u64, Option<u64>),
        sector in 0u64..1 << 40,
        operation in select(Operation::ALL.to_vec()),
        flags: u16,
        status: u8,
        bios: u16,
        submitter in option::of(0..PROCESSES),
        sync in option::of(0..SYNCS),
        phase in select(Phase::ALL.to_vec()),
        (by_tracer, device) in any::<(bool, u8)>(),
    ) -> Request {
        Request {
            queue_ns: times.0,
            issue_ns: times.1,
            complete_ns: times.2,
            sector,
            bytes: 0,
            operation,
            flags: Flags(flags),
            status, bios, submitter, sync,
            first_segment: 0,
            segments: 0,
            phase, by_tracer, device,
        }
    }
}

prop_compose! {
    fn file()(
        key: (u64, u64, u32),
        path in option::of(".{0,20}"),
        mode: u16,
        file_type in select(FileType::ALL.to_vec()),
        birth_wall_ns: Option<i64>,
        deleted_ns: Option<u64>,
        volume: Option<u16>,
        first_path in option::of(".{0,20}"),
    ) -> File {
        let key = FileKey { subvolume: key.0, inode: key.1, generation: key.2 };
        File {
            key, path, mode, file_type, birth_wall_ns, deleted_ns, volume, first_path,
        }
    }
}

prop_compose! {
    fn process()(
        times: (u64, u32, u32, u32),
        comm in ".{0,15}",
        kernel: bool,
        command_line: Option<String>,
        (cgroup_id, cgroup) in any::<(Option<u64>, Option<String>)>(),
    ) -> ProcessRow {
        let (mono_ns, pid, tgid, parent_tgid) = times;
        ProcessRow {
            mono_ns, pid, tgid, parent_tgid, comm, kernel, command_line, cgroup_id, cgroup,
        }
    }
}

prop_compose! {
    fn sync()(
        enter_ns: u64,
        exit_ns: Option<u64>,
        kind in select(SyncKind::ALL.to_vec()),
        process in option::of(0..PROCESSES),
        file in option::of(0..FILES),
        result: Option<i64>,
        commit: Option<u64>,
        volume: Option<u16>,
    ) -> Sync {
        Sync { enter_ns, exit_ns, kind, process, file, result, commit, volume }
    }
}

prop_compose! {
    fn commit()(
        id: u64,
        start_ns: u64,
        end_ns: Option<u64>,
        cause in option::of(0..SYNCS),
        volume: Option<u16>,
    ) -> Commit {
        Commit { id, start_ns, end_ns, cause, volume }
    }
}

fn marker() -> impl Strategy<Value = MarkerRow> {
    let marker = prop_oneof![
        Just(Marker::CommandStart),
        Just(Marker::CommandEnd),
        Just(Marker::SettleStart),
        Just(Marker::SettleEnd),
        any::<String>().prop_map(Marker::Step),
    ];
    (any::<u64>(), marker).prop_map(|(mono_ns, marker)| MarkerRow { mono_ns, marker })
}

/// Lays the segments of each request out one after the other.
fn join(parts: Vec<(Request, Vec<Segment>)>) -> (Vec<Request>, Vec<Segment>) {
    let (mut requests, mut segments) = (Vec::new(), Vec::new());
    for (mut request, own) in parts {
        request.first_segment = segments.len() as u32;
        request.segments = own.len() as u16;
        for mut segment in own {
            segment.request = requests.len() as u32;
            segment.sector = request.sector + u64::from(request.bytes) / 512;
            request.bytes += segment.bytes;
            segments.push(segment);
        }
        requests.push(request);
    }
    (requests, segments)
}

prop_compose! {
    fn trace()(
        parts in vec((request(), vec(segment(), 0..4)), 0..30),
        files in vec(file(), FILES as usize),
        processes in vec(process(), PROCESSES as usize),
        syncs in vec(sync(), SYNCS as usize),
        commits in vec(commit(), 0..4),
        markers in vec(marker(), 0..4),
    ) -> Trace {
        let (requests, segments) = join(parts);
        let manifest = fixture::manifest();
        Trace { manifest, requests, segments, files, processes, syncs, commits, markers }
    }
}

fn assert_same(found: &Trace, expected: &Trace) {
    assert_eq!(found.manifest, expected.manifest);
    assert_eq!(found.requests, expected.requests);
    assert_eq!(found.segments, expected.segments);
    assert_eq!(found.files, expected.files);
    assert_eq!(found.processes, expected.processes);
    assert_eq!(found.syncs, expected.syncs);
    assert_eq!(found.commits, expected.commits);
    assert_eq!(found.markers, expected.markers);
}

/// Requests and segments as parts have them, each of at most `most`, which is seen to.
fn in_parts(dir: &Path, most: usize) -> Result<(Vec<Request>, Vec<Segment>)> {
    let mut stream = Stream::open(dir)?;
    let (mut requests, mut segments) = (Vec::new(), Vec::new());
    while let Some(part) = stream.next(most)? {
        assert_eq!(part.first_request as usize, requests.len());
        assert_eq!(part.first_segment as usize, segments.len());
        assert!((1..=most).contains(&part.requests.len()));
        assert!(part.segments.len() <= most || part.requests.len() == 1);
        let own = part.requests.iter().flat_map(|own| part.segments_of(own));
        assert!(own.eq(&part.segments));
        requests.extend(part.requests);
        segments.extend(part.segments);
    }
    Ok((requests, segments))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_trace_is_read_as_it_was_written(trace in trace(), most in 1usize..9) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        write(dir.path(), &trace).expect("write");
        assert_same(&read(dir.path()).expect("read"), &trace);
        let (requests, segments) = in_parts(dir.path(), most).expect("read");
        assert_eq!(requests, trace.requests);
        assert_eq!(segments, trace.segments);
    }
}

#[test]
fn a_trace_of_several_groups_is_read_the_same_in_parts() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let trace = fixture::sqlite_on_ext4(crate::columnar::GROUP_ROWS + 9);
    write(dir.path(), &trace).expect("write");
    let (requests, segments) = in_parts(dir.path(), 50_000).expect("read");
    assert!(requests == trace.requests && segments == trace.segments);
    let syncs = Stream::open(dir.path()).and_then(|stream| all(stream.syncs()?));
    assert!(syncs.expect("read") == trace.syncs);
}

/// A trace with a row in each table, in a directory.
fn stored() -> (tempfile::TempDir, Trace) {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let parts = vec((request(), vec(segment(), 2..4)), 5)
        .new_tree(&mut runner)
        .expect("parts");
    let rest = (vec(commit(), 2), vec(marker(), 2))
        .new_tree(&mut runner)
        .expect("the rest");
    let owners = (vec(file(), 3), vec(process(), 2), vec(sync(), 4));
    let owners = owners.new_tree(&mut runner).expect("owners");
    let (requests, segments) = join(parts.current());
    let (commits, markers) = rest.current();
    let (files, processes, syncs) = owners.current();
    let manifest = fixture::manifest();
    let trace = Trace {
        manifest,
        requests,
        segments,
        files,
        processes,
        syncs,
        commits,
        markers,
    };
    let dir = tempfile::tempdir().expect("a temporary directory");
    write(dir.path(), &trace).expect("write");
    (dir, trace)
}

/// A process as it was stored before control groups were.
struct OlderProcess(ProcessRow);

impl parquet_file::Row for OlderProcess {
    const TABLE: &'static str = <ProcessRow as parquet_file::Row>::TABLE;

    fn columns() -> Vec<Column> {
        let mut columns = <ProcessRow as parquet_file::Row>::columns();
        columns.truncate(7);
        columns
    }

    fn write<W: std::io::Write + Send>(
        rows: &[Self],
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Written {
        let rows = || rows.iter().map(|row| &row.0);
        column::write(group, rows().map(|row| row.mono_ns))?;
        column::write(group, rows().map(|row| row.pid))?;
        column::write(group, rows().map(|row| row.tgid))?;
        column::write(group, rows().map(|row| row.parent_tgid))?;
        column::write(group, rows().map(|row| row.comm.clone()))?;
        column::write(group, rows().map(|row| row.kernel))?;
        column::write(group, rows().map(|row| row.command_line.clone()))
    }
}

#[test]
fn what_older_traces_do_not_tell_is_not_known() {
    let (dir, trace) = stored();
    let rows = trace.processes.iter().cloned();
    let older: Vec<OlderProcess> = rows.clone().map(OlderProcess).collect();
    let mut sums = Checksums::read(dir.path()).expect("checksums");
    parquet_file::write(dir.path(), &older, &mut sums).expect("write");
    let found: Vec<ProcessRow> = parquet_file::read(dir.path(), &sums).expect("an older table");
    let expected = rows.map(|row| ProcessRow {
        cgroup_id: None,
        cgroup: None,
        ..row
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
}

/// A process's first column, of another type.
struct OtherProcess;

impl parquet_file::Row for OtherProcess {
    const TABLE: &'static str = <ProcessRow as parquet_file::Row>::TABLE;

    fn columns() -> Vec<Column> {
        vec![column::column::<i64>("mono_ns")]
    }

    fn write<W: std::io::Write + Send>(
        rows: &[Self],
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Written {
        column::write(group, rows.iter().map(|_| -1i64))
    }
}

#[test]
fn a_column_of_another_type_is_refused() {
    let (dir, _) = stored();
    let mut sums = Checksums::default();
    parquet_file::write(dir.path(), &[OtherProcess], &mut sums).expect("write");
    let refused = parquet_file::read::<ProcessRow>(dir.path(), &sums).expect_err("another type");
    let text = refused.to_string();
    let expected = "processes.parquet: damaged at mono_ns: unexpected type INT64, no logical type";
    assert!(text.ends_with(expected), "{text}");
}

fn tables(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("list");
    entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "parquet"))
        .collect()
}

/// Writes `trace` and returns the reader's complaint.
fn complaint(trace: &Trace) -> String {
    let dir = tempfile::tempdir().expect("a temporary directory");
    write(dir.path(), trace).expect("write");
    let error = read(dir.path()).expect_err("a contradiction");
    let text = error.to_string();
    if text.contains("/requests.parquet") || text.contains("/segments.parquet") {
        // Found out in the last part at the latest.
        let found = in_parts(dir.path(), 1).expect_err("a contradiction");
        assert_eq!(found.to_string(), text);
    }
    text.replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn a_missing_table_is_named() {
    let (dir, _) = stored();
    let paths = tables(dir.path());
    assert_eq!(paths.len(), 7);
    for path in paths {
        let bytes = std::fs::read(&path).expect("read");
        std::fs::remove_file(&path).expect("remove");
        let text = read(dir.path()).expect_err("incomplete").to_string();
        assert!(text.starts_with(&format!("{}: damaged at file: missing;", path.display())));
        std::fs::write(&path, bytes).expect("restore");
    }
}

#[test]
fn a_table_cut_anywhere_is_refused() {
    let (dir, _) = stored();
    for path in tables(dir.path()) {
        let bytes = std::fs::read(&path).expect("read");
        for length in (0..bytes.len()).step_by(7) {
            std::fs::write(&path, &bytes[..length]).expect("cut");
            read(dir.path()).expect_err("a cut table");
        }
        std::fs::write(&path, bytes).expect("restore");
    }
}

/// Makes the checksums agree with whatever the tables are now.
fn forge_checksums(dir: &Path) {
    let mut sums = Checksums::default();
    for path in tables(dir) {
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let mut file = std::fs::File::open(&path).expect("open");
        sums.insert(name, checksums::sum(&path, &mut file).expect("sum"));
    }
    sums.write(dir).expect("write");
}

/// Calls `then` for every `step`th byte of each table with some of its bits flipped.
fn with_flips(dir: &Path, step: usize, mask: u8, mut then: impl FnMut()) {
    for path in tables(dir) {
        let mut bytes = std::fs::read(&path).expect("read");
        for place in (0..bytes.len()).step_by(step) {
            bytes[place] ^= mask;
            std::fs::write(&path, &bytes).expect("flip");
            then();
            bytes[place] ^= mask;
        }
        std::fs::write(&path, bytes).expect("restore");
    }
}

#[test]
fn a_flipped_bit_anywhere_is_refused() {
    let (dir, _) = stored();
    with_flips(dir.path(), 5, 4, || {
        let text = read(dir.path()).expect_err("damaged").to_string();
        assert!(text.contains("changed after it was written"), "{text}");
    });
}

#[test]
fn a_flipped_bit_under_a_forged_checksum_never_panics() {
    let (dir, _) = stored();
    let mut refused = 0;
    with_flips(dir.path(), 13, 0x90, || {
        forge_checksums(dir.path());
        // Some bits carry a value that may as well be the other one.
        refused += usize::from(read(dir.path()).is_err());
    });
    assert!(refused > 0);
}

#[test]
fn a_table_under_anothers_name_is_refused() {
    let (dir, _) = stored();
    std::fs::copy(
        dir.path().join("syncs.parquet"),
        dir.path().join("commits.parquet"),
    )
    .expect("copy");
    let text = read(dir.path()).expect_err("the wrong table").to_string();
    assert!(text.contains("commits.parquet"), "{text}");
}

#[test]
fn an_unfinished_recording_is_not_read_as_a_trace() {
    let (dir, mut trace) = stored();
    trace.manifest.state = State::Recording;
    trace.manifest.write(dir.path()).expect("write");
    let text = read(dir.path()).expect_err("unfinished").to_string();
    assert!(text.contains("finish it with `iostep report`"), "{text}");
}

#[test]
fn a_reference_out_of_range_is_named_with_file_row_and_column() {
    let (_dir, trace) = stored();
    let mut edited = trace.clone();
    edited.segments[3].file = Some(FILES);
    let expected = "segments.parquet: damaged at row 3, file: refers to row 3 of 3";
    assert_eq!(complaint(&edited), expected);
    let mut edited = trace.clone();
    edited.requests[1].sync = Some(u32::MAX);
    let expected = "requests.parquet: damaged at row 1, sync: refers to row 4294967295 of 4";
    assert_eq!(complaint(&edited), expected);
    let mut edited = trace;
    edited.commits[1].cause = Some(SYNCS);
    let expected = "commits.parquet: damaged at row 1, cause: refers to row 4 of 4";
    assert_eq!(complaint(&edited), expected);
}

#[test]
fn segments_in_another_order_than_their_requests_are_named() {
    let (_dir, mut trace) = stored();
    // The first two requests change the places of their segments.
    let [first, second] = [0, 1].map(|row: usize| trace.requests[row].segments);
    trace.segments[..usize::from(first + second)].rotate_left(first.into());
    trace.requests[0].first_segment = second.into();
    trace.requests[1].first_segment = 0;
    let text = complaint(&trace);
    assert!(text.starts_with("requests.parquet: damaged at row 0, first_segment: "));
}

#[test]
fn segments_that_do_not_add_up_are_named() {
    let (_dir, trace) = stored();
    let mut edited = trace.clone();
    edited.requests[2].bytes += 512;
    assert!(complaint(&edited).starts_with("requests.parquet: damaged at row 2, bytes: "));
    let mut edited = trace.clone();
    edited.requests[2].first_segment -= 1;
    assert!(complaint(&edited).contains("row 2, first_segment: names another"));
    let mut edited = trace.clone();
    let one = edited.segments[0].clone();
    edited.segments.push(one);
    assert!(complaint(&edited).contains("segments.parquet: damaged at row "));
    let mut edited = trace.clone();
    edited.requests[4].first_segment = u32::MAX;
    assert!(complaint(&edited).contains("row 4, first_segment: reaches past"));
    let mut edited = trace;
    edited.segments[0].sector = u64::MAX;
    assert!(complaint(&edited).contains("row 0, sector: a segment lies outside"));
}
