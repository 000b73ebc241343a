//! What each subject's report consists of.

pub mod advise;
pub mod bench;
mod disk;
pub mod explain;
pub mod lab;
#[cfg(test)]
mod page;
pub mod replay;
pub mod syscalls;
pub mod trace;
