//! What a command says that it did (docs/lab.md, "Commands").

use std::io::Read;
use std::path::Path;

use iostep_model::lab::{Latency, Run};
use iostep_model::manifest::{Counters, Totals};
use serde::Deserialize;

use crate::error::{Error, Result};

/// What is longer is no answer.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Deserialize)]
struct Answer {
    operations: u64,
    elapsed_ns: Option<u64>,
    latency: Option<Latency>,
    device: Option<Counted>,
}

/// What the kernel counted in the part that the program measured.
#[derive(Deserialize)]
struct Counted {
    #[serde(default)]
    reads: u64,
    #[serde(default)]
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    flushes: u64,
}

/// The run of a command that came to its end. Where it does not say itself how long it measured and
/// what its device did meanwhile, its whole time counts: `elapsed_ns`, and what was `counted` in it.
///
/// Errors: `Usage` if its standard output is no answer.
pub(crate) fn read(path: &Path, elapsed_ns: u64, counted: Option<Counters>) -> Result<Run> {
    let mut text = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut text))
        .map_err(Error::io(path, "read"))?;
    parse(&text, elapsed_ns, counted)
}

fn parse(text: &[u8], elapsed_ns: u64, counted: Option<Counters>) -> Result<Run> {
    let answer: Answer = serde_json::from_slice(text).map_err(|error| Error::Usage {
        what: format!("what the command printed is no answer: {error}"),
        hint: r#"let it print one object of JSON, as {"operations": 1000}"#.into(),
    })?;
    let group = |ios, bytes| Totals { ios, bytes };
    let own = answer.device.map(|device| Counters {
        read: group(device.reads, device.read_bytes),
        write: group(device.writes, device.written_bytes),
        flush: group(device.flushes, 0),
        ..Counters::default()
    });
    Ok(Run {
        elapsed_ns: answer.elapsed_ns.unwrap_or(elapsed_ns),
        operations: answer.operations,
        latency: answer.latency,
        device: own.or(counted),
        ..Run::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_says_goes_before_what_was_seen_from_outside() {
        let text = br#"{"operations": 2000, "elapsed_ns": 5, "device":
            {"writes": 4, "written_bytes": 8192, "flushes": 3}, "latency":
            {"count": 2000, "p50_ns": 50, "p99_ns": 60, "max_ns": 70}}"#;
        let run = parse(text, 9, Some(Counters::default())).expect("an answer");
        assert_eq!((run.operations, run.elapsed_ns), (2000, 5));
        let device = run.device.expect("it was counted");
        assert_eq!((device.write.ios, device.write.bytes), (4, 8192));
        assert_eq!(device.flush.ios, 3);
        assert_eq!(run.latency.map(|latency| latency.max_ns), Some(70));
    }

    #[test]
    fn a_command_may_say_what_was_read() {
        let text = br#"{"operations": 2, "device": {"reads": 3, "read_bytes": 12288,
            "writes": 0, "written_bytes": 0, "flushes": 0}}"#;
        let device = parse(text, 9, None).expect("an answer").device;
        let read = device.expect("it was counted").read;
        assert_eq!((read.ios, read.bytes), (3, 12288));
    }

    #[test]
    fn the_whole_time_counts_for_a_command_that_says_no_more() {
        let counted = Counters {
            flush: Totals { ios: 2, bytes: 0 },
            ..Counters::default()
        };
        let run = parse(br#"{"operations": 1, "device": null}"#, 9, Some(counted));
        let run = run.expect("an answer");
        assert_eq!((run.elapsed_ns, run.device), (9, Some(counted)));
    }

    #[test]
    fn another_output_is_refused() {
        for text in ["", "done", "[]", "{}", r#"{"operations": -1}"#] {
            let error = parse(text.as_bytes(), 9, None).expect_err(text);
            assert!(error.to_string().contains("no answer"), "{error}");
        }
    }
}
