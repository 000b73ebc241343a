//! Fuzzes the reader of a recording of system calls that was cut short.

#![no_main]

#[path = "../entries/partial.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    entry::run(bytes);
});
