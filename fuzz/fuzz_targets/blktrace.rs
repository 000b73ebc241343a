//! Fuzzes the reader of blktrace's files.

#![no_main]

#[path = "../entries/blkparse.rs"]
mod entry;

use iostep_trace::blkparse::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run_as(Format::Blktrace, bytes));
