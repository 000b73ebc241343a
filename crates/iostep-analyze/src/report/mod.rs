//! The forms in which traces, benches and replays are shown.

pub mod advise;
pub mod bench;
pub mod events;
pub mod export;
pub mod html;
pub mod lab;
pub mod quantity;
pub mod replay;
pub mod syscalls;
pub mod text;
