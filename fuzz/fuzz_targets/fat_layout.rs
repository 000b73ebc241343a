//! Fuzzes the readers of an image.

#![no_main]

#[path = "../entries/fat_layout.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
