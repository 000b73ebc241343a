//! NOTE TO THE AUTHOR OF syscalls/bpf (goes away with the first commit): this recorder fills the
//! same captured call as wire.h (number, six arguments, extra words, two texts, flags) by the same
//! classes of your table.rs, and wants your decoder of it: please keep table.rs and the function
//! "captured call -> raw::Action" outside bpf/ and free of libbpf types, e.g.
//! `syscalls/table.rs: pub(super) fn class(number: u64) -> u32` + an iterator over all numbers, and
//! `syscalls/decode.rs: pub(super) fn action<'a>(call: &'a Captured<'a>) -> Option<Action<'a>>`.
//! The same for `/proc/PID/{fd,fdinfo,cwd}` -> Present events (syscalls/present.rs).
