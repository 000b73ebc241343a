//! Fuzzes the reports of labs.

#![no_main]

#[path = "../entries/lab_results.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
