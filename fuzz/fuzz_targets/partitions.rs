//! Fuzzes the reader of partition tables.

#![no_main]

#[path = "../entries/partitions.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
