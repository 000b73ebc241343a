use iostep_model::fixture;
use iostep_model::operation::Operation;
use iostep_model::table::Trace;

use super::*;

mod perfetto;

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

/// What MOST's viewer takes the letters for (`Viewer/test.py`); `None` for those of the line before.
fn viewer(letters: &str) -> Option<char> {
    match letters {
        letters if letters.contains('R') => Some('R'),
        letters if letters.contains('W') => Some('W'),
        "N" => Some('N'),
        _ => None,
    }
}

#[test]
fn most_s_viewer_knows_the_letters_of_every_operation() {
    let mut trace = fixture::sqlite_on_ext4(1);
    let row = trace.requests[0].clone();
    for operation in Operation::ALL {
        let expected = match operation {
            Operation::Read => 'R',
            Operation::Discard
            | Operation::SecureErase
            | Operation::Other
            | Operation::ZoneManagement
            | Operation::DriverIn
            | Operation::DriverOut => 'N',
            _ => 'W',
        };
        for bits in 0..1u16 << 10 {
            trace.requests = vec![row.clone()];
            trace.requests[0].operation = operation;
            trace.requests[0].flags = iostep_model::Flags(bits);
            let text = exported(&trace, Format::Most);
            for line in text.lines() {
                let letters = line.split('\t').nth(2).expect("the flags");
                assert_eq!(
                    viewer(letters),
                    Some(expected),
                    "{operation:?} {bits:#x} {letters}"
                );
            }
            assert!(!text.is_empty());
        }
    }
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
                assert_eq!(columns, 30, "line {lines}");
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

/// Two filesystems of one disk, on which the blocks of the database alternate.
fn two_volumes() -> Trace {
    let mut trace = fixture::sqlite_on_ext4(60);
    let filesystem = trace.manifest.filesystem.clone();
    let volume = |name| fixture::volume(name, filesystem.clone());
    trace.manifest.volumes = vec![volume("sda1"), volume("sda2")];
    for (index, segment) in trace.segments.iter_mut().enumerate() {
        segment.volume = [Some(0), Some(1), None][index % 3];
    }
    trace
}

#[test]
fn each_part_has_its_device_and_its_filesystem_in_csv() {
    let trace = two_volumes();
    let device = &trace.manifest.device.name;
    let text = exported(&trace, Format::Csv);
    for (volume, name) in [(Some(0), "sda1"), (Some(1), "sda2")] {
        let parts = trace.segments.iter().filter(|part| part.volume == volume);
        let end = format!(",{device},{name}");
        let lines = text.lines().filter(|line| line.ends_with(&end));
        assert_eq!(lines.count(), parts.count(), "{name}");
    }
}

#[test]
fn each_filesystem_has_tracks_of_its_own_in_perfettos_trace() {
    let mut out = Vec::new();
    write(&mut out, &two_volumes(), Format::Perfetto).expect("a vector takes it");
    let has = |name: &str| out.windows(name.len()).any(|part| part == name.as_bytes());
    for name in ["sda1: data", "sda2: data", "loop0: data"] {
        assert!(has(name), "{name}");
    }
    let mut out = Vec::new();
    let one = fixture::sqlite_on_ext4(60);
    write(&mut out, &one, Format::Perfetto).expect("a vector takes it");
    let has = |name: &str| out.windows(name.len()).any(|part| part == name.as_bytes());
    assert!(has("loop0: data") && !has("sda1"));
}
