//! Fuzzes the reader of traces of system calls.

#![no_main]

#[path = "../entries/syscalls.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
