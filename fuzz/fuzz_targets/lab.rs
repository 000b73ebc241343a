//! Fuzzes the reader of labs.

#![no_main]

#[path = "../entries/lab.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
