//! Fuzzes the readers of blkparse text.

#![no_main]

#[path = "../entries/blkparse.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
