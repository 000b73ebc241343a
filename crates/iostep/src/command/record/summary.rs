//! What a recording holds, in a table and as JSON.

use std::path::Path;

use iostep_calls::Sink;
use iostep_model::printable;
use iostep_model::syscall::text::Writer;
use iostep_model::syscall::{Call, Direction, Ledger, Operation, Paths, Thread, kept};
use iostep_trace::syscalls::file_data::Counts;

use crate::ledger;

/// A trace file that counts what goes into it.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) writer: Writer,
    calls: u64,
    threads: u64,
    read_bytes: u64,
    written_bytes: u64,
}

impl Counted {
    pub(super) fn new(writer: Writer) -> Counted {
        Counted {
            writer,
            calls: 0,
            threads: 0,
            read_bytes: 0,
            written_bytes: 0,
        }
    }
}

impl Sink for Counted {
    fn thread(&mut self, thread: &Thread) -> iostep_calls::Result<()> {
        self.threads += 1;
        Sink::thread(&mut self.writer, thread)
    }

    fn changed(&mut self, thread: &Thread) {
        self.writer.changed(thread);
    }

    fn call(&mut self, call: Call, paths: &Paths) -> iostep_calls::Result<()> {
        self.calls += 1;
        let bytes = call.moved_bytes();
        match call.operation {
            Operation::Transfer { direction, .. } => match direction {
                Direction::Read => self.read_bytes += bytes,
                Direction::Write => self.written_bytes += bytes,
            },
            Operation::Copy { .. } => {
                self.read_bytes += bytes;
                self.written_bytes += bytes;
            }
            _ => {}
        }
        Sink::call(&mut self.writer, call, paths)
    }
}

/// What a recording holds.
#[derive(Debug)]
pub(super) struct Summary {
    calls: u64,
    threads: u64,
    read_bytes: u64,
    written_bytes: u64,
    pub(super) ledger: Ledger,
    data: Option<Counts>,
    interrupted: bool,
}

impl Summary {
    pub(super) fn new(
        counted: &Counted,
        ledger: Ledger,
        data: Option<Counts>,
        interrupted: bool,
    ) -> Summary {
        Summary {
            calls: counted.calls,
            threads: counted.threads,
            read_bytes: counted.read_bytes,
            written_bytes: counted.written_bytes,
            ledger,
            data,
            interrupted,
        }
    }

    /// True if nothing is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.ledger.lost == 0 && !self.interrupted
    }

    /// The table. What is missing comes first.
    pub(super) fn text(&self, output: &Path) -> String {
        let mut lines = Vec::new();
        if self.ledger.lost > 0 {
            lines.push(format!(
                "LOST {} records: a replay will differ; record a quieter machine",
                self.ledger.lost
            ));
        }
        if self.interrupted {
            lines.push("interrupted: the trace holds only the beginning".to_owned());
        }
        let line = |count: u64, of: &str| format!("{count:>14}  {of}");
        lines.push(line(self.calls, "calls"));
        lines.push(line(self.threads, "threads"));
        lines.push(line(self.read_bytes, "bytes read"));
        lines.push(line(self.written_bytes, "bytes written"));
        lines.push(line(self.ledger.lost, "lost"));
        let titles = ["events kept", "events left out"];
        lines.extend(ledger::lines(&self.ledger, titles, line));
        lines.push(format!("wrote {}", output.display()));
        if let Some(data) = self.data {
            lines.push(data_line(&data, output));
        }
        lines.iter().map(|line| printable(line) + "\n").collect()
    }

    pub(super) fn json(&self, output: &Path) -> serde_json::Value {
        serde_json::json!({
            "lost": self.ledger.lost,
            "output": output,
            "interrupted": self.interrupted,
            "calls": self.calls,
            "threads": self.threads,
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
            "kept": ledger::reasons(&self.ledger, true),
            "left_out": ledger::reasons(&self.ledger, false),
            "data": self.data.map(|data| serde_json::json!({
                "files": data.files,
                "bytes": data.bytes,
                "too_much": data.too_much,
                "unreadable": data.unreadable,
            })),
        })
    }
}

/// Whose data was kept, and whose was not.
fn data_line(data: &Counts, output: &Path) -> String {
    let mut line = match data.files {
        0 => "no file held data".to_owned(),
        files => format!(
            "wrote {}: {} bytes of {files} files",
            kept::directory_of(output).display(),
            data.bytes
        ),
    };
    for (count, why) in [
        (data.too_much, "that are more than --data-limit"),
        (data.unreadable, "that could not be read"),
    ] {
        if count > 0 {
            line += &format!("; not of {count} {why}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_first() {
        let mut summary = Summary {
            calls: 3,
            threads: 1,
            read_bytes: 20,
            written_bytes: 10,
            ledger: Ledger::default(),
            data: None,
            interrupted: false,
        };
        summary.ledger.add(true, "call", 3);
        summary.ledger.add(false, "pipe", 2);
        assert!(summary.is_whole());
        assert!(
            summary
                .text(Path::new("a"))
                .starts_with("             3  calls\n")
        );
        summary.ledger.lost = 7;
        assert!(!summary.is_whole());
        assert!(summary.text(Path::new("a")).starts_with("LOST 7 records"));
        let json = summary.json(Path::new("a"));
        assert_eq!(json["lost"], 7);
        assert_eq!(json["left_out"]["pipe"], 2);
    }

    #[test]
    fn files_whose_data_is_missing_are_told() {
        let mut data = Counts {
            files: 2,
            bytes: 500,
            ..Counts::default()
        };
        let line = |data: &Counts| data_line(data, Path::new("a.trace"));
        assert_eq!(line(&data), "wrote a.trace.data: 500 bytes of 2 files");
        data.too_much = 1;
        assert!(line(&data).ends_with("; not of 1 that are more than --data-limit"));
    }
}
