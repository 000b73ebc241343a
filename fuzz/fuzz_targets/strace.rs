//! Fuzzes the reader of strace's texts.

#![no_main]

#[path = "../entries/strace.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
