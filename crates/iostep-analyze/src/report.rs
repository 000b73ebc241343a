//! What each subject's report consists of.

pub mod advise;
pub mod bench;
mod disk;
pub mod doctor;
pub mod explain;
pub mod lab;
#[cfg(test)]
pub(crate) mod page;
pub mod replay;
pub mod syscalls;
pub mod trace;
