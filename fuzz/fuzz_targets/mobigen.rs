//! Fuzzes the reader of MobiGen's scripts.

#![no_main]

#[path = "../entries/mobigen.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
