//! Fuzzes the readers of a recording.

#![no_main]

#[path = "../entries/spool.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
