//! Fuzzes the reader of results of a bench.

#![no_main]

#[path = "../entries/bench_result.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
