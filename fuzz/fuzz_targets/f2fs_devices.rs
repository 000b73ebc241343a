//! Fuzzes the reader of the devices that an f2fs names.

#![no_main]

#[path = "../entries/f2fs_devices.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run(bytes));
