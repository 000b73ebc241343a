//! Fuzzes what a server of results makes of an upload.

#![no_main]

#[path = "../entries/upload.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
