//! Fuzzes the readers of a trace directory.

#![no_main]

#[path = "../entries/store.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
