//! Texts that have not every action: what is read of them, and what is said.

use iostep_model::Operation;
use iostep_model::table::Request;

use super::*;

/// As recorded on device mapper: bios that complete themselves.
const BIOS: &str = "\
254,0    3        1     0.000000000   594  Q   W 16520 + 16 [app]
254,0    3        2     0.000500000     0  C   W 16520 + 16 [0]
254,0    3        3     0.001000000   594  Q FWFSM 120 + 8 [jbd2/dm-0-8]
254,0    3        4     0.001900000     0  C FWFSM 120 + 8 [0]
254,0    3        5     0.002000000   594  Q   R 17032 + 8 [app]
254,0    3        6     0.002400000     0  C   R 17032 + 8 [0]
254,0    3        7     0.003000000   595  Q FWS [sync]
254,0    3        8     0.003400000     0  C FWS 0 [0]
";

fn rows(trace: &Trace) -> Vec<(Operation, u64, u32, Option<u64>)> {
    let row = |request: &Request| {
        let took_ns = request.complete_ns.map(|end| end - request.queue_ns);
        (request.operation, request.sector, request.bytes, took_ns)
    };
    trace.requests.iter().map(row).collect()
}

fn report(case: &Case) -> String {
    let output = iostep().arg("report").arg(case.path("trace")).output();
    said(&output.expect("run iostep"))
}

#[test]
fn a_device_without_requests_has_one_for_each_bio() {
    let case = Case::new();
    let output = case.import(BIOS, &[]);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.starts_with("warning: no D (issue), as on a device without requests"),
        "{text}"
    );
    let trace = store::read(&case.path("trace")).expect("read the trace");
    assert_eq!(
        rows(&trace),
        [
            (Operation::Write, 16520, 8192, Some(500_000)),
            (Operation::Write, 120, 4096, Some(900_000)),
            (Operation::Read, 17032, 4096, Some(400_000)),
            (Operation::Flush, 0, 0, Some(400_000)),
        ]
    );
    let submitter = |n: usize| trace.requests[n].submitter.expect("the text names it");
    let pid = |n: usize| trace.processes[submitter(n) as usize].pid;
    assert_eq!([pid(0), pid(1), pid(3)], [594, 594, 595]);
    let check = &trace.manifest.check;
    assert_eq!(
        (check.completed.write.bytes, check.completed.read.bytes),
        (12_288, 4096)
    );
    assert_eq!(
        (check.in_flight_before_bytes, check.in_flight_after_bytes),
        (0, 0)
    );
    let text = report(&case);
    assert!(
        text.contains("check incomplete") && text.contains("no D (issue)"),
        "{text}"
    );
    assert!(!text.contains("check passed"), "{text}");
}

#[test]
fn a_text_of_one_action_has_its_requests_and_says_what_is_missing() {
    for (letter, missing, complete) in [
        (" Q ", &["no D", "no C"][..], false),
        (" D ", &["no Q", "no C"], false),
        (" C ", &["no Q", "no D"], true),
    ] {
        let case = Case::new();
        let text = write_lines(1, 1, 2) + &write_lines(2, 9, 4);
        let lines = text.lines().filter(|line| line.contains(letter));
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        let output = case.import(&text, &["--json"]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(json["requests"], 2, "{json}");
        assert_eq!(json["bytes"]["bytes"], 6 * BLOCK_BYTES, "{json}");
        let warnings = json["warnings"].as_array().expect("warnings");
        let warnings: Vec<&str> = warnings.iter().filter_map(|text| text.as_str()).collect();
        for (warning, missing) in warnings.iter().zip(missing) {
            assert!(warning.starts_with(missing), "{warnings:?}");
        }
        assert_eq!(warnings.len(), 2);
        let trace = store::read(&case.path("trace")).expect("read the trace");
        assert_eq!(trace.requests[0].complete_ns.is_some(), complete);
        let text = report(&case);
        assert!(!text.contains("check passed"), "{text}");
    }
}

#[test]
fn a_text_of_all_actions_says_nothing_is_missing() {
    let case = Case::new();
    let trace = case.imported(&write_lines(1, 1, 1), &[]);
    assert!(trace.manifest.check.unrecorded.is_empty());
    assert!(report(&case).contains("check passed"));
}

#[test]
fn a_text_without_requests_is_refused() {
    let case = Case::new();
    let text = "8,0 1 1 0.000000001 7 I W 8 + 8 [a]\n8,0 1 2 0.000000002 7 m N cfq\n";
    let (code, said) = refused(&case, text, &[]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("1 message") && said.contains("-a issue"),
        "{said}"
    );
    let (code, said) = refused(&case, "", &[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("empty"), "{said}");
}

#[test]
fn barriers_of_an_old_blkparse_are_flushes() {
    let case = Case::new();
    let text = "\
  8,0    0        1     0.000001000   594  Q WBS 120 + 8 [jbd2]
  8,0    0        2     0.000002000   594  D WBS 18446744073709551615 + 0 [kworker]
  8,0    0        3     0.000003000   594  C WBS 18446744073709551615 + 0 [0]
  8,0    0        4     0.000004000   594  D  WS 120 + 8 [kworker]
  8,0    0        5     0.000005000   594  C  WS 120 + 8 [0]
";
    let trace = case.imported(text, &[]);
    assert_eq!(
        rows(&trace),
        [
            (Operation::Flush, 0, 0, Some(2000)),
            (Operation::Write, 120, 4096, Some(4000)),
        ]
    );
}

/// Who asked for a flush is in the lines of Q alone. The device flushed all the same.
#[test]
fn every_flush_of_the_text_is_there_wherever_the_filesystem_begins() {
    const FLUSHES: &str = "\
  8,0    0        1     0.000001000   700  Q FWFSM 4096 + 8 [app]
  8,0    0        2     0.000002000   700  D  FF [app]
  8,0    0        3     0.000003000   700  C  FF 0 [0]
  8,0    0        4     0.000004000   700  D WFSM 4096 + 8 [app]
  8,0    0        5     0.000005000   700  C WFSM 4096 + 8 [0]
  8,0    0        6     0.000006000   700  D  FF [app]
  8,0    0        7     0.000007000   700  C  FF 0 [0]
";
    let case = Case::new();
    for queue in ["", "Q"] {
        let has = |line: &&str| queue == "Q" || !line.contains(" Q ");
        let text: String = FLUSHES
            .lines()
            .filter(has)
            .map(|line| line.to_owned() + "\n")
            .collect();
        for offset in ["0", "1MiB"] {
            let _ = std::fs::remove_dir_all(case.path("trace"));
            let trace = case.imported(&text, &["--offset", offset]);
            let flushes = rows(&trace);
            let flushes = flushes.iter().filter(|row| row.0 == Operation::Flush);
            assert_eq!(flushes.count(), 2, "{queue} {offset}");
        }
    }
}
