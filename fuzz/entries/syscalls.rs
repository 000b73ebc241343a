//! The reader of trace files and what adds them up, over any bytes.

use std::io::{Cursor, Write};
use std::path::Path;

use iostep_analyze::syscalls::Count;
use iostep_model::syscall::text::{Reader, write_call};

/// How a file that is compressed with zstd begins (RFC 8878, section 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// Reads the bytes as a trace, compressed if they look so. What can be read as a whole is the same
/// when it is read again.
pub fn run(bytes: &[u8]) {
    if bytes.starts_with(&ZSTD) {
        return compressed(bytes);
    }
    let Some(first) = open(bytes).and_then(trace) else {
        return;
    };
    let again = open(first.as_bytes()).and_then(trace);
    assert_eq!(again.as_ref(), Some(&first), "read again");
}

/// What of a damaged file can be read is a trace like any other.
fn compressed(bytes: &[u8]) {
    let mut file = tempfile::Builder::new().suffix(".zst").tempfile();
    let file = file.as_mut().expect("a temporary file");
    file.write_all(bytes).expect("room for a file");
    if let Some(text) = Reader::open(file.path()).ok().and_then(trace) {
        run(text.as_bytes());
    }
}

fn open(bytes: &[u8]) -> Option<Reader> {
    Reader::new(Path::new("x"), Box::new(Cursor::new(bytes.to_vec()))).ok()
}

/// The trace's text again; none if a line of it cannot be read.
fn trace(mut reader: Reader) -> Option<String> {
    let magic = iostep_model::syscall::text::MAGIC;
    let mut text = format!("{magic}\n{}", reader.declarations());
    let mut count = Count::default();
    let mut calls = 0;
    while let Some(call) = reader.next_call().ok()? {
        count.call(&call);
        write_call(&call, reader.paths(), &mut text);
        text.push('\n');
        calls += 1;
    }
    let whole = reader.cut_at_line().is_none();
    let info = count.finish(&reader, true, false);
    assert_eq!(info.totals.calls, calls);
    assert_eq!(info.calls.iter().map(|row| row.calls).sum::<u64>(), calls);
    if whole {
        text.push_str(&format!("@end calls={calls}\n"));
    }
    Some(text)
}
