use iostep_model::class::Layer;
use iostep_model::fixture;
use iostep_model::operation::Operation;
use iostep_model::table::Trace;

use super::*;

fn exported(trace: &Trace, format: Format) -> String {
    let mut out = Vec::new();
    write(&mut out, trace, format).expect("a vector takes it");
    String::from_utf8(out).expect("text")
}

/// A trace whose names try to break every format.
fn hostile() -> Trace {
    let mut trace = fixture::sqlite_on_ext4(30);
    trace.files[0].path = Some("/a,\"b\"\t\n\r\u{1b}".into());
    trace.files[1].path = None;
    trace.processes[0].comm = "x], [y\n\t\"".into();
    trace.requests[3].complete_ns = None;
    trace.requests[4].submitter = None;
    trace
}

#[test]
fn blkparse_text_is_as_blkparse_prints_it() {
    insta::assert_snapshot!(exported(&fixture::sqlite_on_ext4(5), Format::Blkparse));
}

#[test]
fn blkparse_lines_are_in_the_order_of_time_and_end_in_one_bracket() {
    let text = exported(&hostile(), Format::Blkparse);
    let times: Vec<&str> = text.lines().map(|line| &line[21..36]).collect();
    assert!(times.is_sorted());
    assert_eq!(times.len(), 30 * 3 - 1);
    assert!(
        text.lines()
            .all(|line| line.matches('[').count() == 1 && line.ends_with(']'))
    );
}

#[test]
fn most_lines_have_nine_columns_and_every_byte_that_came_back() {
    let trace = hostile();
    let text = exported(&trace, Format::Most);
    let mut sum = 0;
    for line in text.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        assert_eq!(columns.len(), 9, "{line}");
        assert!(["D", "J", "M"].contains(&columns[7]), "{line}");
        assert!(columns[2].contains(['R', 'W']), "{line}");
        sum += columns[4].trim().parse::<u64>().expect("sectors") * 512;
    }
    let complete = trace.requests.iter().filter(|r| r.complete_ns.is_some());
    assert_eq!(sum, complete.map(|r| u64::from(r.bytes)).sum::<u64>());
}

#[test]
fn most_text_is_as_most_writes_it() {
    insta::assert_snapshot!(exported(&fixture::sqlite_on_ext4(5), Format::Most));
}

#[test]
fn csv_has_the_same_columns_in_every_line() {
    let text = exported(&hostile(), Format::Csv);
    let mut lines = 0;
    let (mut columns, mut in_quotes) = (1, false);
    for character in text.chars() {
        match character {
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => columns += 1,
            '\n' if !in_quotes => {
                assert_eq!(columns, 28, "line {lines}");
                (columns, lines) = (1, lines + 1);
            }
            _ => {}
        }
    }
    let trace = hostile();
    let bare = trace.requests.iter().filter(|r| r.segments == 0).count();
    assert_eq!(lines, 1 + trace.segments.len() + bare);
}

#[test]
fn csv_reads_well() {
    insta::assert_snapshot!(exported(&fixture::sqlite_on_ext4(5), Format::Csv));
}

#[test]
fn perfetto_slices_begin_and_end_and_lie_in_their_layers_group() {
    let trace = hostile();
    let text = exported(&trace, Format::Perfetto);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = value["traceEvents"].as_array().expect("events");
    let of = |phase: &str| events.iter().filter(|e| e["ph"] == phase).count();
    assert_eq!(of("b"), of("e"));
    assert_eq!(of("X"), trace.syncs.len());
    let journal_group = (1u64 << 30) + Layer::Journal as u64;
    let journal = events
        .iter()
        .filter(|e| e["ph"] == "b" && e["pid"] == journal_group);
    let expected = trace
        .segments
        .iter()
        .filter(|s| s.class.layer() == Layer::Journal);
    assert_eq!(journal.count(), expected.count());
    let flushes = events
        .iter()
        .filter(|e| e["ph"] == "b" && e["name"] == "flush");
    let expected = trace
        .requests
        .iter()
        .filter(|r| r.operation == Operation::Flush);
    // Once among the device's, once among the submitter's.
    let submitted = expected.clone().filter(|r| r.submitter.is_some()).count();
    assert_eq!(flushes.count(), expected.count() + submitted);
}
