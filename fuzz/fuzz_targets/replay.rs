//! Fuzzes the replay of traces of system calls.

#![no_main]

#[path = "../entries/replay.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
