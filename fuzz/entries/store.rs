//! The reader of a trace directory over files of any bytes.

use std::path::Path;
use std::sync::LazyLock;

use iostep_model::fixture;
use iostep_model::store;
use serde_json::json;

const TABLES: [&str; 7] = [
    "requests.parquet",
    "segments.parquet",
    "files.parquet",
    "processes.parquet",
    "syncs.parquet",
    "commits.parquet",
    "markers.parquet",
];
const MANIFEST: &str = "manifest.json";
const CHECKSUMS: &str = "checksums.json";

static TRACE: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    store::write(directory.path(), &fixture::sqlite_on_ext4(64)).expect("write");
    directory
});

/// The bytes of a file of a good trace, chosen by number.
#[allow(
    dead_code,
    reason = "for those who damage it; a fuzzer brings its own bytes"
)]
pub fn good(number: u8) -> Vec<u8> {
    std::fs::read(TRACE.path().join(name(number))).expect("a file of the trace")
}

fn name(number: u8) -> &'static str {
    let number = usize::from(number) % (TABLES.len() + 2);
    match TABLES.get(number) {
        Some(table) => table,
        None if number == TABLES.len() => MANIFEST,
        None => CHECKSUMS,
    }
}

/// Puts the bytes behind the first in place of the file that the first one chooses, and reads.
pub fn run(bytes: &[u8]) {
    let Some((number, bytes)) = bytes.split_first() else {
        return;
    };
    let name = name(*number);
    let path = TRACE.path().join(name);
    let sums = TRACE.path().join(CHECKSUMS);
    let (before, sums_before) = (read(&path), read(&sums));
    write(&path, bytes);
    if TABLES.contains(&name) {
        // The checksum would find every change; what is behind it must stand alone too.
        write(&sums, &with_sum(&sums_before, name, bytes));
    }
    if let Ok(trace) = store::read(TRACE.path()) {
        for request in &trace.requests {
            let parts = trace.segments_of(request);
            assert_eq!(parts.len(), usize::from(request.segments));
        }
    }
    write(&path, &before);
    write(&sums, &sums_before);
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file of the trace")
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("write to the temporary directory");
}

fn with_sum(sums: &[u8], name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut sums: serde_json::Value = serde_json::from_slice(sums).expect("JSON");
    sums[name] = json!({ "bytes": bytes.len(), "crc32c": crc32c::crc32c(bytes) });
    sums.to_string().into_bytes()
}
