//! Fuzzes the reader of fio's log of I/O.

#![no_main]

#[path = "../entries/blkparse.rs"]
mod entry;

use iostep_trace::blkparse::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::run_as(Format::Iolog, bytes));
