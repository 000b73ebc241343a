//! Fuzzes the reader of job files.

#![no_main]

#[path = "../entries/job_file.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
