//! Fuzzes what a server of results answers to any bytes on a connection.

#![no_main]

#[path = "../entries/api.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    entry::run(bytes);
});
