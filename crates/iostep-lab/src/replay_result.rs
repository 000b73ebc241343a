//! What a cell takes out of the result of `iostep replay` (docs/format-replay.md).

use std::path::Path;

use iostep_model::bench::Cpu;
use iostep_model::lab::Run;
use iostep_model::manifest::{Counters, Totals};
use serde::Deserialize;

/// What is longer is no result of a replay.
const MAX_BYTES: u64 = 1 << 30;

#[derive(Deserialize)]
struct Document {
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    runs: Vec<Replay>,
}

#[derive(Deserialize)]
struct Replay {
    summary: Summary,
    block: Option<BlockIo>,
}

#[derive(Deserialize)]
struct Summary {
    interrupted: bool,
    replayed_ns: u64,
    totals: Issued,
    cpu_ns: u64,
    own_cpu_ns: u64,
}

#[derive(Deserialize)]
struct Issued {
    done: u64,
}

#[derive(Deserialize)]
struct BlockIo {
    reads: u64,
    writes: u64,
    read_bytes: Layers,
    written_bytes: Layers,
    flushes: u64,
}

#[derive(Deserialize)]
struct Layers {
    data: u64,
    metadata: u64,
    journal: u64,
    unknown: u64,
}

impl Layers {
    fn sum(&self) -> u64 {
        let parts = [self.data, self.metadata, self.journal, self.unknown];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// The replays that came to their end; none if there is no result to read.
pub(crate) fn read(path: &Path) -> Vec<Run> {
    let small = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
    let text = small.then(|| std::fs::read(path).ok()).flatten();
    text.map_or(Vec::new(), |text| parse(&text))
}

fn parse(text: &[u8]) -> Vec<Run> {
    let Ok(document) = serde_json::from_slice::<Document>(text) else {
        return Vec::new();
    };
    let replays = document.targets.into_iter().flat_map(|target| target.runs);
    replays
        .filter(|replay| !replay.summary.interrupted)
        .map(run)
        .collect()
}

fn run(replay: Replay) -> Run {
    let summary = replay.summary;
    Run {
        elapsed_ns: summary.replayed_ns,
        operations: summary.totals.done,
        device: replay.block.as_ref().map(counters),
        cpu: Some(Cpu {
            user_ns: summary.own_cpu_ns,
            system_ns: summary.cpu_ns.saturating_sub(summary.own_cpu_ns),
            ..Cpu::default()
        }),
        ..Run::default()
    }
}

fn counters(block: &BlockIo) -> Counters {
    let group = |ios, bytes| Totals { ios, bytes };
    Counters {
        read: group(block.reads, block.read_bytes.sum()),
        write: group(block.writes, block.written_bytes.sum()),
        flush: group(block.flushes, 0),
        ..Counters::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{"schema_version": 1, "targets": [{"directory": "/mnt", "runs": [
        {"summary": {"interrupted": false, "replayed_ns": 5, "totals": {"calls": 9, "done": 7},
                     "cpu_ns": 4, "own_cpu_ns": 1}, "block": null},
        {"summary": {"interrupted": false, "replayed_ns": 6, "totals": {"done": 7},
                     "cpu_ns": 4, "own_cpu_ns": 1},
         "block": {"device": "loop0", "whole": true, "reads": 1, "writes": 2, "flushes": 3,
                   "read_bytes": {"data": 1, "metadata": 0, "journal": 0, "unknown": 0},
                   "written_bytes": {"data": 1, "metadata": 2, "journal": 4, "unknown": 8}}},
        {"summary": {"interrupted": true, "replayed_ns": 1, "totals": {"done": 1},
                     "cpu_ns": 1, "own_cpu_ns": 1}, "block": null}]}]}"#;

    #[test]
    fn each_replay_that_ended_is_a_run() {
        let runs = parse(RESULT.as_bytes());
        assert_eq!(runs.len(), 2);
        assert_eq!((runs[0].elapsed_ns, runs[0].operations), (5, 7));
        assert_eq!(runs[0].device, None);
        let device = runs[1].device.expect("it was recorded");
        assert_eq!((device.write.ios, device.write.bytes), (2, 15));
        assert_eq!(device.flush.ios, 3);
        let cpu = runs[1].cpu.expect("it is told");
        assert_eq!((cpu.user_ns, cpu.system_ns), (1, 3));
    }

    #[test]
    fn what_is_no_result_holds_no_run() {
        for text in ["", "{}", "{\"targets\": [{}]}", "\u{0}"] {
            assert!(parse(text.as_bytes()).is_empty(), "{text}");
        }
    }
}
