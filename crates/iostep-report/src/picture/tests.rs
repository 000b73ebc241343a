use std::collections::BTreeMap;

use iostep_model::class::Class;
use iostep_model::event::Marker;
use iostep_model::fixture;
use iostep_model::printable;
use iostep_model::table::{MarkerRow, Trace};
use serde_json::Value;

use super::Picture;
use super::columns::tests::unpack;

fn read(trace: &Trace) -> (Value, BTreeMap<String, Vec<u64>>) {
    let picture = Picture::of(trace);
    let data: Value = serde_json::from_str(&picture.data).expect("JSON");
    let columns = unpack(&data["columns"], &picture.stream);
    (data, columns)
}

fn or_0(index: Option<u32>) -> u64 {
    index.map_or(0, |index| u64::from(index) + 1)
}

#[test]
fn every_request_and_segment_is_in_the_picture() {
    let trace = fixture::sqlite_on_ext4(700);
    let (data, columns) = read(&trace);
    let zero_ns = trace.manifest.clocks.mono_ns;
    assert_eq!(columns["request.sector"].len(), 700);
    for (row, request) in trace.requests.iter().enumerate() {
        let issue_ns = columns["request.issue_ns"][row] + zero_ns;
        let complete_ns = issue_ns + columns["request.service_ns_or_0"][row] - 1;
        assert_eq!(issue_ns, request.issue_ns);
        assert_eq!(Some(complete_ns), request.complete_ns);
        assert_eq!(issue_ns - columns["request.wait_ns"][row], request.queue_ns);
        assert_eq!(columns["request.sector"][row], request.sector);
        assert_eq!(columns["request.bytes"][row], u64::from(request.bytes));
        let operation = columns["request.operation"][row] as usize;
        assert_eq!(data["operations"][operation], request.operation.name());
    }
    assert_eq!(columns["segment.bytes"].len(), trace.segments.len());
    for (row, segment) in trace.segments.iter().enumerate() {
        let request = &trace.requests[segment.request as usize];
        let sector = request.sector + columns["segment.distance_sectors"][row];
        assert_eq!(sector, segment.sector);
        assert_eq!(columns["segment.bytes"][row], u64::from(segment.bytes));
        let class = &data["classes"][columns["segment.class"][row] as usize];
        assert_eq!(class["name"], segment.class.name());
        assert_eq!(class["layer"], segment.class.layer().name());
        assert_eq!(columns["segment.file_or_0"][row], or_0(segment.file));
        assert_eq!(columns["segment.cause_or_0"][row], or_0(segment.cause));
    }
    assert_eq!(columns["sync.kind"].len(), trace.syncs.len());
    assert_eq!(columns["commit.id"].len(), trace.commits.len());
    assert_eq!(data["files"][0]["path"], "/mnt/app/app/app.db");
}

#[test]
fn requests_out_of_order_are_sorted_with_their_segments() {
    let mut trace = fixture::sqlite_on_ext4(40);
    trace.requests.reverse();
    let last = trace.requests.len() as u32 - 1;
    for segment in &mut trace.segments {
        segment.request = last - segment.request;
    }
    assert_eq!(
        read(&trace).1["segment.bytes"],
        read(&fixture::sqlite_on_ext4(40)).1["segment.bytes"]
    );
}

#[test]
fn a_trace_without_requests_or_filesystem_has_a_picture() {
    let (data, columns) = read(&fixture::empty());
    assert!(columns["request.bytes"].is_empty());
    assert_eq!(data["journal"], serde_json::json!([]));
}

#[test]
fn a_single_request_has_a_picture() {
    let (_, columns) = read(&fixture::sqlite_on_ext4(1));
    assert_eq!(columns["request.bytes"], [4096]);
    assert_eq!(columns["segment.bytes"], [4096]);
}

#[test]
fn a_request_without_segments_is_in_the_picture() {
    let mut trace = fixture::sqlite_on_ext4(1);
    trace.requests[0].segments = 0;
    trace.segments.clear();
    let (_, columns) = read(&trace);
    assert_eq!(columns["request.segments"], [0]);
    assert_eq!(columns["request.bytes"], [4096]);
}

#[test]
fn the_journal_is_the_layouts_range_or_else_what_was_seen_of_it() {
    let mut trace = fixture::sqlite_on_ext4(60);
    let (data, _) = read(&trace);
    assert_eq!(
        data["journal"],
        serde_json::json!([[131_072 * 8, 8_192 * 8]])
    );
    assert_eq!(data["journal_observed"], false);
    trace.manifest.filesystem = None;
    let (data, _) = read(&trace);
    let logged = |s: &&iostep_model::table::Segment| {
        matches!(
            s.class,
            Class::LogDescriptor | Class::LoggedBlock | Class::LogCommit
        )
    };
    let sectors = trace.segments.iter().filter(logged).map(|s| s.sector);
    assert_eq!(data["journal"][0][0], sectors.min().expect("a commit"));
    assert_eq!(data["journal_observed"], true);
}

#[test]
fn every_module_stands_behind_those_it_imports_from() {
    let mut exported: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, source) in super::MODULES {
        let braces = |start: &str, end: &str| {
            let list = source.split(start).skip(1);
            let names = list.map(|rest| rest.split_once(end).expect(end));
            names
                .map(|(names, rest)| (words(names), rest))
                .collect::<Vec<_>>()
        };
        for (imported, rest) in braces("\nimport {", "} from \".") {
            let path = rest.split_once(".js\";").expect("a module of the page").0;
            let module = path.rsplit('/').next().expect("a name");
            for word in imported {
                let from = exported
                    .get(module)
                    .is_some_and(|names| names.contains(&word));
                assert!(from, "{name}: {word} of {module}");
            }
        }
        let exports = braces("\nexport {", "};")
            .into_iter()
            .flat_map(|(names, _)| names);
        exported.insert(name, exports.collect());
    }
}

/// The words of a list with commas.
fn words(list: &str) -> Vec<&str> {
    let words = list.split(',').map(str::trim);
    words.filter(|word| !word.is_empty()).collect()
}

#[test]
fn the_types_of_the_script_have_every_column_and_list() {
    let types = include_str!("types.d.ts");
    let (data, columns) = read(&fixture::sqlite_on_ext4(1));
    for list in data.as_object().expect("an object").keys() {
        assert!(types.contains(&format!("    {list}: ")), "{list}");
    }
    for column in columns.keys() {
        let (table, name) = column.split_once('.').expect("table.column");
        let start = types.find(&format!("    {table}: Record<")).expect(table);
        let record = types[start..].split(">;").next().expect(table);
        assert!(record.contains(&format!("\"{name}\"")), "{column}");
    }
}

#[test]
fn no_name_ends_the_data() {
    let hostile = "</script><img src=x onerror=alert(1)>\u{2028}\"'--><!--";
    let mut trace = fixture::sqlite_on_ext4(60);
    trace.files[0].path = Some(hostile.to_owned());
    trace.processes[0].comm = hostile.to_owned();
    trace.markers.push(MarkerRow {
        mono_ns: trace.manifest.clocks.mono_ns,
        marker: Marker::Step(hostile.to_owned()),
    });
    let picture = Picture::of(&trace);
    assert!(!picture.data.contains(['<', '>', '\u{2028}']));
    let (data, _) = read(&trace);
    assert_eq!(data["files"][0]["path"], *printable(hostile));
}
